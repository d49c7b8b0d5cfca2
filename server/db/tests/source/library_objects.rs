//! Objects of the toolkit's C++ library: atomics, group copies, operators of groups; and floating point of 16 bits.

use warplens_codegen::Class;
use warplens_db::FileAnalysis;
use warplens_facts::facts::{Op, OpClass, Space};

use crate::modern::{analyse, instructions};

/// What the first kernel does to memory outside the threads: operation, space, bytes per lane.
fn operations(file: &FileAnalysis) -> Vec<(Op, Space, u32)> {
    let input = &file.kernels[0].analysis.input;
    let accesses = file.kernels[0].analysis.facts.accesses.iter();
    let memory = accesses.filter(|access| input.is_memory(access));
    memory
        .map(|access| (access.op, access.space, access.bytes_per_lane))
        .collect()
}

fn with(parameters: &str, body: &str) -> FileAnalysis {
    analyse(&format!(
        "__global__ void k({parameters}) {{ {body} }}\n\
         void go({parameters}) {{ k<<<4, 64>>>(o); }}\n"
    ))
}

#[test]
fn the_operators_of_groups_that_are_called_as_comparisons_choose() {
    for (operator, sums) in [("greater", 0), ("less", 0), ("plus", 3)] {
        let file = analyse(&format!(
            "namespace cg = cooperative_groups;\n\
             __global__ void k(const float *a, float *o) {{\n\
             \x20 auto tile = cg::tiled_partition<8>(cg::this_thread_block());\n\
             \x20 o[threadIdx.x] = cg::reduce(tile, a[threadIdx.x], cg::{operator}<float>());\n\
             }}\n\
             void go(float *a, float *o) {{ k<<<1, 256>>>(a, o); }}\n"
        ));
        // A minimum is one instruction of its own, no comparison and no choice.
        let made = instructions(&file, [Class::Shfl, Class::Fadd, Class::Fsetp, Class::Sel]);
        assert_eq!(made, [3, sums, 0, 0], "{operator}");
    }
}
