//! Small problems for the kernels that are written after those of published models.

use warplens_oracle::Argument;

use super::{Number, Problem, floats, int, problem, ramp};

pub fn problems(all: &mut Vec<Problem>) {
    products(all);
    hopping(all);
    sparse(all);
    transforms(all);
    vector_machines(all);
    images(all);
    options(all);
    grids(all);
    bodies(all);
    elements(all);
}

/// Rows of A times columns of B, `depth` long; `b` gives an element by its place in the sum and its column.
fn product(
    a: &[f32],
    depth: usize,
    rows: usize,
    columns: usize,
    b: impl Fn(usize, usize) -> f32,
) -> Vec<f32> {
    let mut out = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let terms = (0..depth).map(|k| a[row * depth + k] * b(k, column));
            out.push(terms.sum());
        }
    }
    out
}

fn products(all: &mut Vec<Problem>) {
    let (rows, columns, depth) = (16, 32, 48);
    let (a, b) = (ramp(rows * depth, 7), ramp(columns * depth, 5));
    let want = product(&a, depth, rows, columns, |k, column| b[column * depth + k]);
    for file in ["matmul_abt16.cu", "matmul_abt16.cl"] {
        for kernel in ["matmul_abt16_conflict", "matmul_abt16_padded"] {
            let mut made = problem(file, kernel, [2, 1, 1], [16, 16, 1]);
            made.arguments = vec![
                ("a", floats(a.clone())),
                ("b", floats(b.clone())),
                ("c", floats(vec![0.0; rows * columns])),
                ("depth", int(depth)),
                ("columns", int(columns)),
            ];
            made.want = vec![(2, want.clone())];
            all.push(made);
        }
    }

    // One block each: the first sixteen rows of the result.
    for (kernel, width) in [
        ("matmul_tile_16", 16usize),
        ("matmul_tile_32", 32),
        ("matmul_tile_64", 64),
        ("matmul_tile_128", 128),
        ("matmul_tile_192", 192),
    ] {
        let (a, b) = (ramp(width * width, 7), ramp(width * width, 5));
        let mut want = product(&a, width, 16, width, |k, column| b[k * width + column]);
        want.resize(width * width, 0.0);
        for file in ["matmul_tiles.cu", "matmul_tiles.cl"] {
            let mut made = problem(file, kernel, [1, 1, 1], [16, 16, 1]);
            made.arguments = vec![
                ("a", floats(a.clone())),
                ("b", floats(b.clone())),
                ("c", floats(vec![0.0; width * width])),
                ("n", int(width)),
            ];
            made.want = vec![(2, want.clone())];
            all.push(made);
        }
    }

    let (rows, columns, depth) = (32, 48, 32);
    let (a, b) = (ramp(rows * depth, 7), ramp(columns * depth, 5));
    let want = product(&a, depth, rows, columns, |k, column| {
        b[k * columns + column]
    });
    let mut made = problem("skinny_matmul.cu", "skinny_matmul", [3, 2, 1], [16, 16, 1]);
    made.arguments = vec![
        ("a", floats(a)),
        ("b", floats(b)),
        ("c", floats(vec![0.0; rows * columns])),
        ("columns", int(columns)),
        ("depth", int(depth)),
    ];
    made.want = vec![(2, want)];
    all.push(made);
}

type Complex = (f64, f64);

fn plus(a: Complex, b: Complex) -> Complex {
    (a.0 + b.0, a.1 + b.1)
}

fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// `(1 + sign gamma_mu)` of a spinor, for one spin: what is added to it, and from which other.
fn partner(mu: usize, spin: usize) -> (usize, Complex) {
    let (one, i): (Complex, Complex) = ((1.0, 0.0), (0.0, 1.0));
    let upper = [[i, i], [one, (-1.0, 0.0)], [i, (0.0, -1.0)], [one, one]][mu];
    let crossed = mu < 2;
    let of_upper = |spin: usize| if crossed { 3 - spin } else { spin + 2 };
    if spin < 2 {
        (of_upper(spin), upper[spin])
    } else {
        let above = if crossed { 3 - spin } else { spin - 2 };
        (above, (upper[above].0, -upper[above].1))
    }
}

fn hopping(all: &mut Vec<Problem>) {
    let (sites, threads) = (1024usize, 64usize);
    let spinors = ramp(sites * 24, 19);
    let links = ramp(sites * 72, 23);
    let number = |of: &[f32], at: usize| (f64::from(of[at]), f64::from(of[at + 1]));
    let mut want = vec![0.0f32; sites * 24];
    for site in 0..threads {
        for spin in 0..4 {
            for row in 0..3 {
                let mut sum = (0.0, 0.0);
                for (mu, step) in [1usize, 8, 64, 512].into_iter().enumerate() {
                    let side = if mu < 3 { 8 } else { sites / 512 };
                    let here = site / step % side;
                    for (forwards, there) in [(true, here + 1), (false, here + side - 1)] {
                        let from = site - here * step + there % side * step;
                        let (other, phase) = partner(mu, spin);
                        let sign = if forwards { 1.0 } else { -1.0 };
                        for k in 0..3 {
                            let of = |spin: usize| number(&spinors, from * 24 + spin * 6 + k * 2);
                            let turned = times((sign * phase.0, sign * phase.1), of(other));
                            let at = |site: usize, row: usize, column: usize| {
                                number(&links, site * 72 + mu * 18 + row * 6 + column * 2)
                            };
                            let link = if forwards {
                                at(site, row, k)
                            } else {
                                let (re, im) = at(from, k, row);
                                (re, -im)
                            };
                            sum = plus(sum, times(link, plus(of(spin), turned)));
                        }
                    }
                }
                let at = site * 24 + spin * 6 + row * 2;
                (want[at], want[at + 1]) = (sum.0 as f32, sum.1 as f32);
            }
        }
    }
    let by_field = |from: &[f32], each: usize| {
        let elements = (0..each).flat_map(|element| (0..sites).map(move |site| (site, element)));
        elements
            .map(|(site, element)| from[site * each + element])
            .collect::<Vec<f32>>()
    };
    let doubles = |from: &[f32]| {
        let bytes = from
            .iter()
            .flat_map(|&value| f64::from(value).to_le_bytes());
        Argument::Buffer(bytes.collect())
    };
    for kernel in ["hopping_aos", "hopping_soa"] {
        let laid = |from: &[f32], each: usize| {
            if kernel == "hopping_soa" {
                by_field(from, each)
            } else {
                from.to_vec()
            }
        };
        let mut made = problem("hopping.cu", kernel, [1, 1, 1], [threads as u32, 1, 1]);
        made.arguments = vec![
            ("spinors", doubles(&laid(&spinors, 24))),
            ("links", doubles(&laid(&links, 72))),
            ("out", doubles(&vec![0.0; sites * 24])),
            ("sites", int(sites)),
        ];
        made.number = Number::F64;
        made.want = vec![(2, laid(&want, 24))];
        all.push(made);
    }
}

fn sparse(all: &mut Vec<Problem>) {
    let rows = 100usize;
    let mut starts = vec![0usize];
    for row in 0..rows {
        starts.push(starts[row] + row * 37 % 46);
    }
    let elements = starts[rows];
    let columns: Vec<usize> = (0..elements).map(|k| k * 29 % rows).collect();
    let (values, x) = (ramp(elements, 11), ramp(rows, 13));
    let want: Vec<f32> = (0..rows)
        .map(|row| {
            let of_row = starts[row]..starts[row + 1];
            of_row.map(|k| values[k] * x[columns[k]]).sum()
        })
        .collect();
    let words = |from: &[usize]| {
        let bytes = from.iter().flat_map(|&value| (value as i32).to_le_bytes());
        Argument::Buffer(bytes.collect())
    };
    for file in ["spmv.cu", "spmv.cl"] {
        for (kernel, blocks) in [
            ("spmv_global", 1),
            ("spmv_shared", 1),
            ("spmv_consecutive", 13),
            ("spmv_coalesced", 13),
        ] {
            let mut made = problem(file, kernel, [blocks, 1, 1], [128, 1, 1]);
            made.arguments = vec![
                ("row_start", words(&starts)),
                ("column", words(&columns)),
                ("value", floats(values.clone())),
                ("x", floats(x.clone())),
                ("y", floats(vec![0.0; rows])),
                ("rows", int(rows)),
            ];
            made.want = vec![(4, want.clone())];
            made.on_data = true;
            all.push(made);
        }
    }
}

/// A pass of Stockham's transform over transforms of length `n`, of which those of length `ns` are done.
fn pass(input: &[f32], radix: usize, n: usize, ns: usize) -> Vec<f32> {
    let mut out = vec![0.0; input.len()];
    for i in 0..input.len() / 2 / radix {
        let share = n / radix;
        let from = i / share * n + i % share;
        let to = i / ns * ns * radix + i % ns;
        for r in 0..radix {
            let mut sum = (0.0, 0.0);
            for q in 0..radix {
                let turn =
                    q as f64 * ((i % ns) as f64 / (ns * radix) as f64 + r as f64 / radix as f64);
                let (sine, cosine) = (-std::f64::consts::TAU * turn).sin_cos();
                let at = 2 * (from + q * share);
                let value = (f64::from(input[at]), f64::from(input[at + 1]));
                sum = plus(sum, times(value, (cosine, sine)));
            }
            let at = 2 * (to + r * ns);
            (out[at], out[at + 1]) = (sum.0 as f32, sum.1 as f32);
        }
    }
    out
}

fn transforms(all: &mut Vec<Problem>) {
    let mut add = |kernel, block, input: Vec<f32>, want, scalars: &[(&'static str, usize)]| {
        let mut made = problem("fft.cu", kernel, [1, 1, 1], block);
        made.arguments = vec![
            ("in", floats(input.clone())),
            ("out", floats(vec![0.0; input.len()])),
        ];
        made.arguments
            .extend(scalars.iter().map(|&(name, value)| (name, int(value))));
        made.want = vec![(1, want)];
        // The numbers of a transform come to some thousands.
        made.absolute = 2e-3;
        all.push(made);
    };
    for (kernel, radix) in [
        ("fft_global_2", 2),
        ("fft_global_4", 4),
        ("fft_global_16", 16),
    ] {
        let n = 256;
        for ns in [1, radix] {
            let input = ramp(2 * 64 * radix.max(4), 13);
            let block = [(input.len() / 2 / radix) as u32, 1, 1];
            let want = pass(&input, radix, n, ns);
            add(kernel, block, input, want, &[("n", n), ("ns", ns)]);
        }
    }
    for (kernel, radix, block) in [
        ("fft_shared_2", 2, [128, 1, 1]),
        ("fft_shared_4", 4, [64, 1, 1]),
        ("fft_shared_16", 16, [16, 4, 1]),
    ] {
        let input = ramp(2 * 256 * block[1] as usize, 13);
        // All at once: one pass of radix 256.
        let want = pass(&input, 256, 256, 1);
        assert_eq!(block[0] as usize * radix, 256);
        add(kernel, block, input, want, &[]);
    }
}

fn vector_machines(all: &mut Vec<Problem>) {
    let (n, features, bias) = (40usize, 816usize, 0.5f32);
    let (pixels, weights, mean) = (ramp(n * features, 11), ramp(features, 7), ramp(n, 5));
    let inverse: Vec<f32> = (0..n).map(|i| 0.5 + (i % 3) as f32 * 0.25).collect();
    let score = |i: usize| {
        let terms =
            (0..features).map(|k| (pixels[i * features + k] - mean[i]) * inverse[i] * weights[k]);
        bias + terms.sum::<f32>()
    };
    for kernel in ["svm_naive", "svm_constant", "svm_constant_coalesced"] {
        let mut made = problem("svm.cu", kernel, [2, 1, 1], [32, 1, 1]);
        let naive = kernel == "svm_naive";
        let laid = if kernel == "svm_constant_coalesced" {
            (0..n * features)
                .map(|at| pixels[at % n * features + at / n])
                .collect()
        } else {
            pixels.clone()
        };
        made.arguments = vec![("pixels", floats(laid))];
        if naive {
            made.arguments.push(("weights", floats(weights.clone())));
        }
        made.arguments.extend([
            ("mean", floats(mean.clone())),
            ("inverse_spread", floats(inverse.clone())),
            ("score", floats(vec![0.0; n])),
            ("bias", Argument::Float(f64::from(bias))),
            ("n", int(n)),
        ]);
        // No host code fills the table in constant memory.
        let want = (0..n)
            .map(|i| if naive { score(i) } else { bias })
            .collect();
        made.want = vec![(if naive { 4 } else { 3 }, want)];
        all.push(made);
    }
}

fn images(all: &mut Vec<Problem>) {
    let (width, height) = (40usize, 10usize);
    let image: Vec<u8> = (0..width * height * 3)
        .map(|i| (i * 37 % 251) as u8)
        .collect();
    let mut aged = Vec::new();
    for pixel in image.chunks(3) {
        let [red, green, blue] = [0, 1, 2].map(|c| f32::from(pixel[c]));
        for [r, g, b] in [
            [0.393f32, 0.769, 0.189],
            [0.349, 0.686, 0.168],
            [0.272, 0.534, 0.131],
        ] {
            aged.push((r * red + g * green + b * blue).min(255.0).trunc());
        }
    }
    let mut smooth = vec![0.0; image.len()];
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            for c in 0..3 {
                let around = (0..9).map(|k| (y + k / 3 - 1) * width + x + k % 3 - 1);
                let sum: u32 = around.map(|at| u32::from(image[at * 3 + c])).sum();
                smooth[(y * width + x) * 3 + c] = (sum / 9) as f32;
            }
        }
    }
    for file in ["images.cu", "images.cl"] {
        for (kernel, want) in [("sepia", &aged), ("linear", &smooth)] {
            let mut made = problem(file, kernel, [2, 2, 1], [32, 8, 1]);
            made.arguments = vec![
                ("in", Argument::Buffer(image.clone())),
                ("out", Argument::Buffer(vec![0; image.len()])),
                ("width", int(width)),
                ("height", int(height)),
            ];
            made.number = Number::U8;
            made.want = vec![(1, want.clone())];
            all.push(made);
        }
    }
}

fn options(all: &mut Vec<Problem>) {
    let n = 100usize;
    // The same polynomial, in double precision.
    let distribution = |d: f64| {
        let k = 1.0 / (1.0 + 0.231_641_9 * d.abs());
        let factors = [
            1.330_274_429,
            -1.821_255_978,
            1.781_477_937,
            -0.356_563_782,
            0.319_381_53,
        ];
        let sum = factors.iter().fold(0.0, |sum, factor| k * (factor + sum));
        let tail = 0.398_942_28 * (-0.5 * d * d).exp() * sum;
        if d > 0.0 { 1.0 - tail } else { tail }
    };
    let (mut given, mut want) = (Vec::new(), Vec::new());
    for i in 0..n {
        let [price, strike] = [5.0 + i as f32 * 0.25, 1.0 + (i * 7 % n) as f32 * 0.25];
        let [years, rate, volatility] = [0.25 + (i % 39) as f32 * 0.25, 0.02, 0.3];
        given.extend([price, strike, years, rate, volatility]);
        let [price, strike, years, rate, volatility] =
            [price, strike, years, rate, volatility].map(f64::from);
        let deviation = volatility * years.sqrt();
        let d1 =
            ((price / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / deviation;
        let (above1, above2) = (distribution(d1), distribution(d1 - deviation));
        let discounted = strike * (-rate * years).exp();
        want.push((price * above1 - discounted * above2) as f32);
        want.push((discounted * (1.0 - above2) - price * (1.0 - above1)) as f32);
    }
    let mut made = problem("black_scholes.cu", "black_scholes", [1, 1, 1], [128, 1, 1]);
    made.arguments = vec![
        ("options", floats(given)),
        ("prices", floats(vec![0.0; 2 * n])),
        ("n", int(n)),
    ];
    made.want = vec![(1, want)];
    made.absolute = 1e-4;
    made.on_data = true;
    all.push(made);
}

fn grids(all: &mut Vec<Problem>) {
    let n = 32usize;
    let (u, source) = (ramp((n + 2) * (n + 2), 23), ramp(n * n, 17));
    let mut want = Vec::new();
    for y in 1..=n {
        for x in 1..=n {
            let at = |y: usize, x: usize| u[y * (n + 2) + x];
            let around = at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1);
            want.push(0.25 * (around - 4.0 * at(y, x)) + source[(y - 1) * n + x - 1]);
        }
    }
    let mut made = problem(
        "finite_difference.cu",
        "finite_difference",
        [2, 2, 1],
        [16, 16, 1],
    );
    made.arguments = vec![
        ("u", floats(u)),
        ("source", floats(source)),
        ("out", floats(vec![0.0; n * n])),
        ("scale", Argument::Float(0.25)),
        ("n", int(n)),
    ];
    made.want = vec![(2, want)];
    all.push(made);

    let (n, side) = (32usize, 38usize);
    let (image, filter) = (ramp(3 * side * side, 11), ramp(3 * 49, 7));
    let mut want = Vec::new();
    for y in 0..n {
        for x in 0..n {
            let terms = (0..3 * 49).map(|k| {
                let (plane, dy, dx) = (k / 49, k / 7 % 7, k % 7);
                image[(plane * side + y + dy) * side + x + dx] * filter[k]
            });
            want.push(terms.sum());
        }
    }
    let mut made = problem("convolution.cu", "convolution", [2, 2, 1], [16, 16, 1]);
    made.arguments = vec![
        ("image", floats(image)),
        ("filter", floats(filter)),
        ("out", floats(vec![0.0; n * n])),
        ("n", int(n)),
    ];
    made.want = vec![(2, want)];
    all.push(made);
}

fn bodies(all: &mut Vec<Problem>) {
    let n = 512usize;
    let positions = ramp(3 * n, 31);
    let potential = |i: usize| {
        let terms = (0..n).map(|j| {
            let squared = (0..3).map(|axis| {
                let d = f64::from(positions[axis * n + j] - positions[axis * n + i]);
                d * d
            });
            1.0 / (squared.sum::<f64>() + 0.01).sqrt()
        });
        terms.sum::<f64>() as f32
    };
    let mut made = problem("n_body.cu", "n_body", [2, 1, 1], [256, 1, 1]);
    made.arguments = vec![
        ("positions", floats(positions.clone())),
        ("potential", floats(vec![0.0; n])),
        ("n", int(n)),
    ];
    made.want = vec![(1, (0..n).map(potential).collect())];
    all.push(made);
}

fn elements(all: &mut Vec<Problem>) {
    let (elements, nodes) = (16usize, 64usize);
    let (matrices, field) = (ramp(3 * nodes * nodes, 7), ramp(elements * nodes, 5));
    let mut want = Vec::new();
    for axis in 0..3 {
        want.extend(product(&field, nodes, elements, nodes, |k, row| {
            matrices[(axis * nodes + k) * nodes + row]
        }));
    }
    for kernel in ["dg_diff", "dg_diff_field", "dg_diff_both"] {
        let mut made = problem("dg_diff.cu", kernel, [4, 1, 1], [16, 16, 1]);
        made.arguments = vec![
            ("matrices", floats(matrices.clone())),
            ("field", floats(field.clone())),
            ("derivatives", floats(vec![0.0; 3 * elements * nodes])),
            ("elements", int(elements)),
        ];
        made.want = vec![(2, want.clone())];
        all.push(made);
    }
}
