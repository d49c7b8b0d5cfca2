//! Blocks that a launch could have: with each of them the kernel leaves the same in its arrays.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{BlockChoices, Cancel, Document, Engine, FixedBlock, Language, Overrides};
use warplens_machine::Profiles;

use crate::actions::{Run, fixtures};
use crate::fixed::{Number, close, number, results};

/// The choices of the first kernel of a text.
fn choices(text: &str) -> BlockChoices {
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(text, Language::Cuda);
    let (path, settings) = (Path::new("k.cu"), Settings::default());
    let (overrides, never) = (Overrides::default(), Cancel::default());
    let file = engine.analyze(&document, path, &settings, &overrides, &never);
    let file = file.expect("not cancelled");
    let choices = engine.block_choices(
        &document,
        path,
        &settings,
        &overrides,
        &file.kernels[0],
        &never,
    );
    choices.expect("not cancelled")
}

fn blocks(text: &str) -> Vec<[u64; 3]> {
    choices(text).choices.iter().map(|one| one.block).collect()
}

#[test]
fn a_kernel_of_grid_coordinates_has_blocks_to_choose_from() {
    let text = |body: &str| {
        format!(
            "// warplens: block=100 grid=1000 n=100000\n\
             __global__ void k(float *out, const float *in, int n) {{\n{body}}}\n"
        )
    };
    let line = [32, 64, 100, 128, 256, 512, 1024].map(|x| [x, 1, 1]);
    for body in [
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = in[i];",
        "int i = threadIdx.x + blockDim.x * blockIdx.x; if (i < n) out[i] = in[i];",
        "int tx = threadIdx.x, bx = blockIdx.x; int i = tx + bx * blockDim.x; if (i < n) out[i] = in[i];",
        "int first = blockIdx.x * blockDim.x; int i = 1 + first + threadIdx.x; if (i < n) out[i] = in[i];",
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) out[i] = in[i];",
    ] {
        let found = choices(&text(body));
        assert_eq!(found.fixed, None, "{body}");
        assert_eq!(blocks(&text(body)), line, "{body}");
        let now: Vec<_> = found.choices.iter().filter(|one| one.is_present).collect();
        assert_eq!(now.len(), 1, "{body}");
        assert_eq!((now[0].block, now[0].grid), ([100, 1, 1], [1000, 1, 1]));
        assert_eq!(found.stand_ins, []);
        let threads = |one: &warplens_db::BlockChoice| one.block[0] * one.grid[0];
        assert!(found.choices.iter().all(|one| threads(one) >= 100_000));
        assert!(found.choices.iter().all(|one| one.time_ms.is_some()));
    }
    // The number of a lane is the same in blocks of whole warps.
    let lanes = text(
        "int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;\n\
         if (row < n) out[row * 32 + lane] = in[row * 32 + lane];",
    );
    assert_eq!(blocks(&lanes), line);
}

#[test]
fn a_kernel_that_computes_with_its_block_has_one() {
    let text = |body: &str| {
        format!(
            "// warplens: block=128 grid=1000 n=100000\n\
             __global__ void k(float *out, const float *in, int n) {{\n{body}\n}}\n"
        )
    };
    for (body, read) in [
        (
            "int i = blockIdx.x * 128 + threadIdx.x; if (i < n) out[i] = in[i];",
            "blockIdx.x",
        ),
        (
            "int i = 2 * blockIdx.x * blockDim.x + threadIdx.x; out[i] = in[i];",
            "blockIdx.x",
        ),
        (
            "out[blockIdx.x * blockDim.x + threadIdx.x] = in[threadIdx.x];",
            "threadIdx.x",
        ),
        (
            "out[blockIdx.x * blockDim.x + threadIdx.x] = in[blockIdx.x];",
            "blockIdx.x",
        ),
        (
            "out[blockIdx.x * blockDim.x + threadIdx.x] = blockDim.x;",
            "blockDim.x",
        ),
        (
            "for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = in[i];",
            "threadIdx.x",
        ),
        (
            "int t = threadIdx.x; int i = blockIdx.x * blockDim.x + t; out[i] = in[t % 64];",
            "t",
        ),
    ] {
        let found = choices(&text(body));
        assert_eq!(found.choices, [], "{body}");
        let Some(FixedBlock::Read(2, said)) = &found.fixed else {
            panic!("{body}: {:?}", found.fixed);
        };
        assert!(said.contains(read), "{body}: {said}");
    }
    let shared = text(
        "__shared__ float sum; int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i == 0) sum = 0; __syncthreads(); atomicAdd(&sum, in[i]);",
    );
    assert_eq!(choices(&shared).fixed, Some(FixedBlock::Shared));
}

#[test]
fn what_bounds_the_block_bounds_the_choice() {
    let bounded = "// warplens: block=64 grid=1000 n=64000\n\
        __global__ void __launch_bounds__(128) k(float *out, int n) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = 1;\n}\n";
    assert_eq!(blocks(bounded), [[32, 1, 1], [64, 1, 1], [128, 1, 1]]);
    let square = "// warplens: block=(16,16) grid=(64,64) n=1024\n\
        __global__ void k(float *out, int n) {\n\
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
        if (x < n && y < n) out[y * n + x] = 1;\n}\n";
    let found = choices(square);
    assert!(found.choices.len() >= 8, "{found:?}");
    for choice in &found.choices {
        let covered = [0, 1].map(|axis| choice.block[axis] * choice.grid[axis]);
        assert_eq!(covered, [1024, 1024], "{choice:?}");
    }
    // What nothing gives has one value in all of them.
    let open = "__global__ void k(float *out, int n) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = 1;\n}\n";
    let found = choices(open);
    let [(name, value)] = &found.stand_ins[..] else {
        panic!("{found:?}");
    };
    assert_eq!(name, "n");
    for choice in &found.choices {
        assert!(
            choice.block[0] * choice.grid[0] >= *value as u64,
            "{choice:?}"
        );
        assert!(choice.time_ms.is_some(), "{choice:?}");
    }
}

/// The kernels of the code actions' fixtures, run thread by thread under each block that they are said to have.
#[test]
fn every_choice_leaves_the_same_results() {
    let mut compared = 0;
    for fixture in fixtures() {
        let opened = fixture.open(&fixture.text);
        let analysis = opened.analysis();
        let named = |name: &String| fixture.kernel.as_ref().is_none_or(|wanted| wanted == name);
        let mut kernels = analysis.kernels.iter();
        let Some(kernel) = kernels.find(|one| named(&one.analysis.facts.name)) else {
            continue;
        };
        for choice in opened.block_choices(kernel).choices {
            for run in &fixture.runs {
                let extents = |name| run.extents(name).unwrap_or([1; 3]);
                let (grid, block) = (extents("grid"), extents("block"));
                let threads: [u64; 3] =
                    std::array::from_fn(|axis| u64::from(grid[axis]) * u64::from(block[axis]));
                let whole = |axis: usize| threads[axis].is_multiple_of(choice.block[axis]);
                if !(0..3).all(whole) {
                    // More threads than the run has: without a guard they would leave its arrays.
                    continue;
                }
                let list = |of: [u64; 3]| format!("({},{},{})", of[0], of[1], of[2]);
                let blocks = std::array::from_fn(|axis| threads[axis] / choice.block[axis]);
                let mut other = Run::default();
                other.values.insert("block".to_owned(), list(choice.block));
                other.values.insert("grid".to_owned(), list(blocks));
                let left = |launch: &Run| results(&fixture, &fixture.text, run, launch);
                let Ok(before) = left(&Run::default()) else {
                    continue;
                };
                let after = left(&other);
                let after = after.unwrap_or_else(|error| {
                    panic!("{}: {:?}: {error}", fixture.path.display(), choice.block)
                });
                for ((name, a), (_, b)) in before.arrays.iter().zip(&after.arrays) {
                    let kind = match fixture.tolerance {
                        Some(_) => number(&fixture, &fixture.text, name),
                        None => Number::Bytes,
                    };
                    let tolerance = fixture.tolerance.unwrap_or(0.0);
                    assert!(
                        close(a, b, kind, tolerance),
                        "{}: `{name}` differs with a block of {:?}",
                        fixture.path.display(),
                        choice.block
                    );
                    compared += 1;
                }
            }
        }
    }
    if std::env::var("FIXTURE").is_err() {
        assert!(compared > 50, "{compared} arrays were compared");
    }
}
