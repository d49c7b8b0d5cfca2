//! Bounds on registers: from the kernel's own words and from its compile command, and what does not fit.
//!
//! Measured on these kernels: `nvcc -arch=sm_80` of release 13, `ptxas -v`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use warplens_base::DiskFiles;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides, Project, wire};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// That many sums at a time, in registers where there are enough.
fn sums(attribute: &str, count: u32) -> String {
    format!(
        "__global__ void {attribute} sums(const float *x, const float *y, float *o, int n) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            float a[{count}];
            #pragma unroll
            for (int k = 0; k < {count}; k++) a[k] = 0.0f;
            for (int j = 0; j < n; j++) {{
                float b = y[j * 1024 + i];
                #pragma unroll
                for (int k = 0; k < {count}; k++) a[k] += x[j * {count} + k] * b;
            }}
            #pragma unroll
            for (int k = 0; k < {count}; k++) o[i * {count} + k] = a[k];
        }}"
    )
}

fn estimated(text: &str, flags: &str) -> wire::KernelResult {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k.cu");
    fs::write(&path, text).expect("written");
    let entry = serde_json::json!([{
        "directory": folder.path(),
        "file": "k.cu",
        "command": format!("nvcc {flags} -c k.cu"),
    }]);
    let commands = folder.path().join("compile_commands.json");
    fs::write(commands, entry.to_string()).expect("written");
    let project = Project::new(Arc::new(DiskFiles::new()), Vec::new());
    let engine = Engine::with_project(Profiles::builtin(), project);
    let found = engine.estimate(
        &Document::new(text, Language::Cuda),
        &path,
        &Settings::default(),
        &Overrides::default(),
        &["a100-sxm4-40gb".to_owned()],
        &[],
        &[],
    );
    found.expect("a GPU").results.swap_remove(0)
}

/// Registers, and whether some did not fit.
fn registers(attribute: &str, count: u32, flags: &str) -> (u32, bool) {
    let resources = estimated(&sums(attribute, count), flags).resources;
    assert_eq!(resources.registers_source, "estimated");
    let spilled = resources.spill_bytes.expect("estimated as well");
    (resources.registers_per_thread, spilled > 0)
}

#[test]
fn fewer_warps_are_taken_before_anything_is_spilled() {
    for (count, measured) in [(16, 32), (24, 40), (32, 48), (48, 64), (64, 80), (96, 128)] {
        assert_eq!(registers("", count, ""), (measured, false), "{count} sums");
    }
}

#[test]
fn a_bound_of_the_compile_command_makes_what_does_not_fit_spill() {
    for (flag, count, measured) in [
        ("-maxrregcount=32", 16, (32, false)),
        ("-maxrregcount=32", 24, (32, true)),
        ("--maxrregcount 40", 28, (40, false)),
        ("-maxrregcount=40", 32, (40, true)),
        ("-Xptxas -maxrregcount=64", 48, (64, false)),
        ("-maxrregcount=64", 64, (64, true)),
        // No kernel gets fewer than calls need.
        ("-maxrregcount=8", 24, (24, true)),
    ] {
        assert_eq!(registers("", count, flag), measured, "{flag}, {count} sums");
    }
}

#[test]
fn a_kernel_s_own_bound_counts_before_the_compile_command_s() {
    for (attribute, count, measured) in [
        ("__launch_bounds__(512, 3)", 32, (40, true)),
        ("__launch_bounds__(2 * 512, 1 + 1)", 24, (32, true)),
        ("__launch_bounds__(256, 4)", 32, (64, false)),
        ("__launch_bounds__(256, 4, 2)", 64, (64, true)),
        // Warps are dealt out to the quarters of an SM.
        ("__launch_bounds__(96, 7)", 128, (80, true)),
        // A bound on threads alone leaves the choice.
        ("__launch_bounds__(128)", 32, (48, false)),
        ("__maxnreg__(48)", 64, (48, true)),
    ] {
        let found = registers(attribute, count, "-maxrregcount=32");
        assert_eq!(found, measured, "{attribute}, {count} sums");
    }
}

/// A size that a macro gives may be anything while it is typed: a block without threads bounds nothing, and ends nothing.
#[test]
fn a_required_block_without_threads_is_survived() {
    for size in ["0, 8, 1", "0, 0, 0", "32, 8, 0"] {
        let text = format!(
            "__kernel __attribute__((reqd_work_group_size({size}))) void k(__global float *a) {{ a[get_global_id(0)] = 1; }}
             __kernel void other(__global float *a) {{ a[get_global_id(0)] = 1; }}"
        );
        let document = Document::new(&text, Language::OpenCl);
        let found = Engine::new(Profiles::builtin()).analyze(
            &document,
            Path::new("k.cl"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        );
        assert_eq!(found.expect("a result").kernels.len(), 2, "{size}");
    }
}

#[test]
fn spilling_is_counted_in_local_loads_and_stores_and_in_the_occupancy() {
    let free = estimated(&sums("", 64), "");
    let bound = estimated(&sums("", 64), "-maxrregcount=32");
    let local = |result: &wire::KernelResult| {
        let of = |class: &str| result.instructions.get(class).copied().unwrap_or(0.0);
        (of("ldl"), of("stl"))
    };
    assert_eq!(local(&free), (0.0, 0.0));
    let (loads, stores) = local(&bound);
    let words = bound.resources.spill_bytes.expect("estimated") as f64 / 4.0;
    assert!(words > 0.0 && loads >= words && stores >= words);
    assert!(free.occupancy.fraction < 0.5);
    assert_eq!(bound.occupancy.fraction, 1.0);
}

#[test]
fn fast_mathematics_are_the_compile_command_s() {
    let text = "__global__ void k(float *o) { o[threadIdx.x] = sinf(o[threadIdx.x]) / o[0]; }";
    let total = |flags: &str| estimated(text, flags).instructions["total"];
    let (exact, fast) = (total(""), total("--use_fast_math"));
    assert!(fast < exact / 2.0, "{fast} of {exact} instructions");
}

#[test]
fn a_register_s_tile_fits_as_it_does_for_the_compiler() {
    // No braces: between the heads of loops stand pragmas.
    let tile = |rows: u32, columns: u32| {
        format!(
            "__global__ void tile(const float *a, const float *b, float *c, int n) {{
                int x = threadIdx.x + blockIdx.x * blockDim.x;
                float sum[{rows}][{columns}];
                #pragma unroll
                for (int i = 0; i < {rows}; i++)
                    #pragma unroll
                    for (int j = 0; j < {columns}; j++) sum[i][j] = 0.0f;
                for (int k = 0; k < n; k++)
                    #pragma unroll
                    for (int i = 0; i < {rows}; i++)
                        #pragma unroll
                        // of the row
                        for (int j = 0; j < {columns}; j++)
                            sum[i][j] += a[k * {rows} + i] * b[k * {columns} + j];
                #pragma unroll
                for (int i = 0; i < {rows}; i++)
                    #pragma unroll
                    for (int j = 0; j < {columns}; j++) c[(i * {columns} + j) * n + x] = sum[i][j];
            }}"
        )
    };
    let result = estimated(&tile(8, 8), "-maxrregcount=32");
    assert!(result.not_understood.is_empty());
    assert_eq!(result.resources.local_bytes_per_thread, 0);
    assert!(result.resources.spill_bytes > Some(0));
    let result = estimated(&tile(2, 4), "-maxrregcount=32");
    assert_eq!(result.resources.spill_bytes, Some(0));
}
