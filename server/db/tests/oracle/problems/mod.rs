//! Small problems for our own kernels (`tests/kernels`): arguments, and what the arrays hold afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use warplens_oracle::{Argument, Dialect, Launch};

use crate::against::Case;

mod papers;
mod passes;

pub fn text_of(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/kernels")
        .join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn floats(values: impl IntoIterator<Item = f32>) -> Argument {
    Argument::Buffer(values.into_iter().flat_map(f32::to_le_bytes).collect())
}

/// Small whole numbers with an odd period: sums are exact, and no permutation passes for another.
fn ramp(count: usize, period: usize) -> Vec<f32> {
    (0..count).map(|i| (i % period) as f32 - 3.0).collect()
}

/// What the arrays of a problem that are looked at hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    F32,
    F64,
    I32,
    U8,
}

/// A kernel of `tests/kernels` on a small problem: its arguments, and what its arrays hold afterwards.
pub struct Problem {
    pub file: &'static str,
    pub kernel: &'static str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    dynamic_shared: u64,
    template: &'static [(&'static str, &'static str)],
    pub arguments: Vec<(&'static str, Argument)>,
    pub number: Number,
    /// By the number of the array; its numbers to the end.
    pub want: Vec<(usize, Vec<f32>)>,
    /// How far off a number may be that is small beside those it was summed up from.
    pub absolute: f32,
    /// Some trips, ways or addresses depend on the contents of arrays.
    pub on_data: bool,
}

fn problem(file: &'static str, kernel: &'static str, grid: [u32; 3], block: [u32; 3]) -> Problem {
    Problem {
        file,
        kernel,
        grid,
        block,
        dynamic_shared: 0,
        template: &[],
        arguments: Vec::new(),
        number: Number::F32,
        want: Vec::new(),
        absolute: 0.0,
        on_data: false,
    }
}

fn int(value: usize) -> Argument {
    Argument::Int(value as i64)
}

fn vector_add(all: &mut Vec<Problem>) {
    // The last block is not full.
    let n = 1000usize;
    for (file, kernel, template, stride) in [
        ("vector_add.cu", "vector_add", None, 1),
        ("vector_add.cl", "vector_add", None, 1),
        ("vector_add.cu", "vector_add_strided", Some("1"), 1),
        ("vector_add.cu", "vector_add_strided", Some("2"), 2),
        ("vector_add.cu", "vector_add_strided", Some("32"), 32),
        ("vector_add.cu", "vector_add_by", None, 3),
        ("vector_add.cl", "vector_add_by", None, 3),
    ] {
        let count = n * stride;
        let (a, b) = (ramp(count, 97), ramp(count, 89));
        let mut want = vec![0.0; count];
        for i in 0..n {
            want[i * stride] = a[i * stride] + b[i * stride];
        }
        let mut made = problem(file, kernel, [4, 1, 1], [256, 1, 1]);
        made.template = match template {
            Some("1") => &[("STRIDE", "1")],
            Some("2") => &[("STRIDE", "2")],
            Some(_) => &[("STRIDE", "32")],
            None => &[],
        };
        made.arguments = vec![
            ("a", floats(a)),
            ("b", floats(b)),
            ("c", floats(vec![0.0; count])),
            ("n", int(n)),
        ];
        if kernel == "vector_add_by" {
            made.arguments.push(("stride", int(stride)));
        }
        made.want = vec![(2, want)];
        all.push(made);
    }
}

fn transpose(all: &mut Vec<Problem>) {
    for n in [64usize, 80] {
        let input = ramp(n * n, 101);
        let mut want = vec![0.0; n * n];
        for y in 0..n {
            for x in 0..n {
                want[x * n + y] = input[y * n + x];
            }
        }
        let tiles = n.div_ceil(32) as u32;
        for file in ["transpose.cu", "transpose.cl"] {
            for (kernel, grid) in [
                ("transpose_naive", [tiles, tiles * 4, 1]),
                ("transpose_tiled", [tiles, tiles, 1]),
                ("transpose_padded", [tiles, tiles, 1]),
            ] {
                let mut made = problem(file, kernel, grid, [32, 8, 1]);
                made.arguments = vec![
                    ("in", floats(input.clone())),
                    ("out", floats(vec![0.0; n * n])),
                    ("n", int(n)),
                ];
                made.want = vec![(1, want.clone())];
                all.push(made);
            }
        }
    }
}

fn products(all: &mut Vec<Problem>) {
    for n in [32usize, 40] {
        let (a, b) = (ramp(n * n, 7), ramp(n * n, 5));
        for (stem, kernels, side, transposed) in [
            (
                "matmul",
                &["matmul_global", "matmul_tiled"][..],
                16u32,
                false,
            ),
            (
                "matmul_abt",
                &[
                    "matmul_abt_global",
                    "matmul_abt_conflict",
                    "matmul_abt_padded",
                ][..],
                32,
                true,
            ),
        ] {
            let mut want = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..n {
                    let other = |k: usize| {
                        if transposed {
                            b[j * n + k]
                        } else {
                            b[k * n + j]
                        }
                    };
                    want[i * n + j] = (0..n).map(|k| a[i * n + k] * other(k)).sum();
                }
            }
            for kernel in kernels {
                for ending in ["cu", "cl"] {
                    let tiles = (n as u32).div_ceil(side);
                    let file = match (stem, ending) {
                        ("matmul", "cu") => "matmul.cu",
                        ("matmul", _) => "matmul.cl",
                        (_, "cu") => "matmul_abt.cu",
                        _ => "matmul_abt.cl",
                    };
                    let mut made = problem(file, kernel, [tiles, tiles, 1], [side, side, 1]);
                    made.arguments = vec![
                        ("a", floats(a.clone())),
                        ("b", floats(b.clone())),
                        ("c", floats(vec![0.0; n * n])),
                        ("n", int(n)),
                    ];
                    made.want = vec![(2, want.clone())];
                    all.push(made);
                }
            }
        }
    }
}

fn reductions(all: &mut Vec<Problem>) {
    let (n, blocks) = (1000usize, 4usize);
    let input = ramp(n, 17);
    for (file, kernel) in [
        ("reduction.cu", "reduce_interleaved"),
        ("reduction.cu", "reduce_sequential"),
        ("reduction.cl", "reduce_interleaved"),
        ("reduction.cl", "reduce_sequential"),
        ("reduction.cu", "reduce_shuffle"),
    ] {
        let shuffle = kernel == "reduce_shuffle";
        let grid = if shuffle { 2 } else { blocks };
        let mut want = vec![0.0; grid];
        for (i, value) in input.iter().enumerate() {
            want[i / 256 % grid] += value;
        }
        let mut made = problem(file, kernel, [grid as u32, 1, 1], [256, 1, 1]);
        made.arguments = vec![
            ("in", floats(input.clone())),
            ("sums", floats(vec![0.0; grid])),
            ("n", int(n)),
        ];
        made.want = vec![(1, want)];
        all.push(made);
    }
}

fn scans(all: &mut Vec<Problem>) {
    let (threads, blocks) = (256usize, 2usize);
    let input = ramp(2 * threads * blocks, 13);
    let mut want = input.clone();
    for chunk in want.chunks_mut(2 * threads) {
        for i in 1..chunk.len() {
            chunk[i] += chunk[i - 1];
        }
    }
    for kernel in ["scan_init", "scan_div", "scan_div_b", "scan_init_b"] {
        let bytes = if kernel.ends_with("_b") { 2112 } else { 2048 };
        for file in ["scan.cu", "scan.cl"] {
            let mut made = problem(file, kernel, [blocks as u32, 1, 1], [threads as u32, 1, 1]);
            made.arguments = vec![
                ("in", floats(input.clone())),
                ("out", floats(vec![0.0; input.len()])),
            ];
            if file == "scan.cl" {
                made.arguments.push(("sums", Argument::Shared(bytes)));
            }
            made.dynamic_shared = bytes;
            made.want = vec![(1, want.clone())];
            all.push(made);
        }
    }
}

fn particles(all: &mut Vec<Problem>) {
    let (n, dt) = (500usize, 0.125f32);
    let by_particle = ramp(n * 8, 19);
    let mut want = by_particle.clone();
    for particle in want.chunks_mut(8) {
        for field in 0..3 {
            particle[field] += particle[field + 3] * dt;
        }
    }
    let column = |from: &[f32], field: usize| {
        from.iter()
            .skip(field)
            .step_by(8)
            .copied()
            .collect::<Vec<f32>>()
    };
    for file in ["particles.cu", "particles.cl"] {
        let mut made = problem(file, "move_aos", [2, 1, 1], [256, 1, 1]);
        made.arguments = vec![
            ("particles", floats(by_particle.clone())),
            ("n", int(n)),
            ("dt", Argument::Float(f64::from(dt))),
        ];
        made.want = vec![(0, want.clone())];
        all.push(made);
        let mut made = problem(file, "move_soa", [2, 1, 1], [256, 1, 1]);
        let mut fields = (0..8).map(|field| floats(column(&by_particle, field)));
        made.arguments = if file == "particles.cu" {
            vec![("particles", Argument::Fields(fields.collect()))]
        } else {
            ["x", "y", "z", "vx", "vy", "vz"]
                .into_iter()
                .zip(fields.by_ref())
                .collect()
        };
        made.arguments.push(("n", int(n)));
        made.arguments.push(("dt", Argument::Float(f64::from(dt))));
        made.want = (0..3).map(|field| (field, column(&want, field))).collect();
        all.push(made);
    }
}

fn stencils(all: &mut Vec<Problem>) {
    let (nx, ny) = (70usize, 20usize);
    let input = ramp(nx * ny, 23);
    let mut want = vec![0.0f32; nx * ny];
    for y in 1..ny - 1 {
        for x in 1..nx - 1 {
            let at = y * nx + x;
            want[at] =
                0.2 * (input[at] + input[at - 1] + input[at + 1] + input[at - nx] + input[at + nx]);
        }
    }
    for file in ["stencil.cu", "stencil.cl"] {
        for kernel in ["stencil_global", "stencil_tiled"] {
            let mut made = problem(file, kernel, [3, 3, 1], [32, 8, 1]);
            made.arguments = vec![
                ("in", floats(input.clone())),
                ("out", floats(vec![0.0; nx * ny])),
                ("nx", int(nx)),
                ("ny", int(ny)),
            ];
            made.want = vec![(1, want.clone())];
            all.push(made);
        }
    }
}

/// The kernels that are measured for the linear model: blocks of 256, and the last one is not full.
fn linear_measure(all: &mut Vec<Problem>) {
    const FILE: &str = "linear_measure.cu";
    const ROUNDS: usize = 64;
    const ROWS: usize = 16;
    let n = 1000usize;
    let input: Vec<f32> = (0..3 * n)
        .map(|i| 1.0 + (i % 97) as f32 / 65536.0)
        .collect();
    let of = |element: &dyn Fn(usize) -> f64| -> Vec<f32> {
        (0..n).map(|i| element(i) as f32).collect()
    };
    let x = |i: usize| f64::from(input[i]);
    let behind = |i: usize, by: usize| {
        let at = i / 256 * 256 + (i % 256 + by) % 256;
        if at < n { x(at) } else { 0.0 }
    };
    let exponentials = |i: usize| (0..ROUNDS).fold(x(i), |x, _| (-x).exp());
    let mut add = |kernel, template, inputs: &[&'static str], want: Vec<f32>| {
        let mut made = problem(FILE, kernel, [4, 1, 1], [256, 1, 1]);
        made.template = template;
        for &name in inputs {
            made.arguments.push((name, floats(input.clone())));
        }
        if kernel != "empty" {
            made.arguments.push(("out", floats(vec![0.0; want.len()])));
            made.arguments.push(("n", int(n)));
            made.want = vec![(inputs.len(), want)];
        }
        all.push(made);
    };
    let every_second = |i: usize| if i.is_multiple_of(2) { 3.0 * x(i) } else { 0.0 };
    let two: Vec<f32> = (0..2 * n).map(|i| every_second(i) as f32).collect();
    add("empty", &[], &[], Vec::new());
    add("store", &[], &[], vec![1.0; n]);
    add("copy", &[], &["in"], of(&x));
    let four = of(&|i| 4.0 * x(i));
    add("add_four", &[], &["a", "b", "c", "d"], four);
    let three = of(&|i| 3.0 * x(i));
    add("scale_add", &[("STRIDE", "1")], &["a", "b"], three);
    add("scale_add", &[("STRIDE", "2")], &["a", "b"], two);
    let pairs = of(&|i| x(2 * i) + x(2 * i + 1));
    add("filled_sum_two", &[], &["in"], pairs);
    let triples = of(&|i| x(3 * i) + x(3 * i + 1) + x(3 * i + 2));
    add("filled_sum_three", &[], &["in"], triples);
    for template in [&[("T", "float")][..], &[("T", "double")]] {
        let sums = of(&|i| (ROUNDS + 1) as f64 * x(i));
        add("add", template, &["in"], sums);
        let products = of(&|i| x(i).powi(ROUNDS as i32 + 1));
        add("multiply", template, &["in"], products);
        let quotients = of(&|i| x(i).powi(1 - ROUNDS as i32));
        add("divide", template, &["in"], quotients);
        add("exponential", template, &["in"], of(&exponentials));
    }
    let loaded = of(&|i| (0..ROUNDS).map(|by| behind(i, by)).sum());
    add("shared_loads", &[], &["in"], loaded);
    let round = of(&|i| ROWS as f64 * behind(i, 1));
    add("shared_round", &[], &["in"], round);
    add("barriers", &[], &[], vec![1.0; n]);
}

/// All of them.
pub fn problems() -> Vec<Problem> {
    let mut all = Vec::new();
    vector_add(&mut all);
    transpose(&mut all);
    products(&mut all);
    reductions(&mut all);
    scans(&mut all);
    particles(&mut all);
    stencils(&mut all);
    papers::problems(&mut all);
    linear_measure(&mut all);
    passes::problems(&mut all);
    all
}

impl Problem {
    /// The numbers of an array, as its bytes say them.
    pub fn numbers(&self, bytes: &[u8]) -> Vec<f32> {
        let words = |size: usize| bytes.chunks_exact(size);
        match self.number {
            Number::F32 => words(4)
                .map(|word| f32::from_le_bytes(word.try_into().expect("4 bytes")))
                .collect(),
            Number::F64 => words(8)
                .map(|word| f64::from_le_bytes(word.try_into().expect("8 bytes")) as f32)
                .collect(),
            Number::I32 => words(4)
                .map(|word| i32::from_le_bytes(word.try_into().expect("4 bytes")) as f32)
                .collect(),
            Number::U8 => bytes.iter().map(|&byte| f32::from(byte)).collect(),
        }
    }

    pub fn name(&self) -> String {
        format!(
            "{} {} {:?} {:?}",
            self.file, self.kernel, self.grid, self.template
        )
    }

    pub fn case<'a>(&self, text: &'a str) -> Case<'a> {
        Case {
            text,
            dialect: if Path::new(self.file)
                .extension()
                .is_some_and(|ending| ending == "cl")
            {
                Dialect::OpenCl
            } else {
                Dialect::Cuda
            },
            kernel: self.kernel,
            launch: Launch {
                grid: self.grid,
                block: self.block,
                // OpenCL's comes with its argument.
                dynamic_shared_bytes: self.dynamic_shared,
                template: self
                    .template
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                ..Launch::default()
            },
            scalars: self
                .arguments
                .iter()
                .filter_map(|(name, argument)| match argument {
                    Argument::Int(value) => Some(((*name).to_owned(), *value)),
                    _ => None,
                })
                .collect::<BTreeMap<_, _>>(),
            arguments: self
                .arguments
                .iter()
                .map(|(_, argument)| argument.clone())
                .collect(),
        }
    }
}
