//! Integer arithmetic as C, CUDA and OpenCL define it, seen through the bank conflicts of an index: each row
//! of a table is an expression in the source and the same as a function of the thread.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, LaunchValues, Overrides, wire};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn analyse(text: &str, language: Language, block: u64, args: &[(&str, i64)]) -> wire::KernelResult {
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(text, language);
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([4, 1, 1]),
            block: Some([block, 1, 1]),
            args: args
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let path = match language {
        Language::OpenCl => "k.cl",
        _ => "k.cu",
    };
    engine
        .estimate(
            &document,
            Path::new(path),
            &Settings::default(),
            &overrides,
            &[],
            &[],
            &[],
        )
        .expect("a known GPU")
        .results
        .remove(0)
}

/// Times the banks are cycled for 32 lanes that ask for these words: most distinct words of a bank.
fn passes(words: &[i64]) -> f64 {
    let mut words = words.to_vec();
    words.sort_unstable();
    words.dedup();
    let of = |bank: i64| {
        words
            .iter()
            .filter(|word| word.rem_euclid(32) == bank)
            .count()
    };
    (0..32).map(of).max().unwrap_or(0) as f64
}

fn average(threads: i64, index: impl Fn(i64) -> i64) -> f64 {
    let warps: Vec<f64> = (0..threads / 32)
        .map(|warp| {
            passes(
                &(0..32)
                    .map(|lane| index(warp * 32 + lane))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    warps.iter().sum::<f64>() / warps.len() as f64
}

#[test]
fn integer_arithmetic_of_cuda() {
    // CUDA C++ programming guide, "Mathematical functions", integer intrinsics; C11, 6.3.1 and 6.5.
    type Row = (&'static str, fn(i64) -> i64);
    let rows: [Row; 34] = [
        ("t * 2", |t| t * 2),
        ("(unsigned char)(t * 24)", |t| (t * 24) & 255),
        ("(signed char)(t * 24) + 128", |t| {
            i64::from((t * 24) as i8) + 128
        }),
        ("(short)(t * 4096) / 512 + 64", |t| {
            i64::from((t * 4096) as i16) / 512 + 64
        }),
        ("(unsigned short)(t * 4096) / 64", |t| {
            ((t * 4096) & 65535) / 64
        }),
        ("(t - 40) / 3 + 16", |t| (t - 40) / 3 + 16),
        ("(t - 40) % 7 + 8", |t| (t - 40) % 7 + 8),
        ("((t - 40) >> 2) * 3 + 64", |t| ((t - 40) >> 2) * 3 + 64),
        ("((unsigned)t - 1u) >> 24", |t| {
            i64::from((t as u32).wrapping_sub(1) >> 24)
        }),
        ("((unsigned)t * 0x9E3779B9u) >> 24", |t| {
            i64::from((t as u32).wrapping_mul(0x9E37_79B9) >> 24)
        }),
        ("(int)((unsigned long long)t * 3000000000ull >> 30)", |t| {
            (t * 3_000_000_000) >> 30
        }),
        ("(t ^ (t >> 1)) * 2", |t| (t ^ (t >> 1)) * 2),
        ("~t & 63", |t| !t & 63),
        ("(t | 8) * 4", |t| (t | 8) * 4),
        ("__mul24(t, 6)", |t| t * 6),
        ("__mul24(t + 0x1000000, 6)", |t| t * 6),
        ("__umul24(t | 0x2000000, 5)", |t| t * 5),
        ("(int)__umulhi((unsigned)t << 26, 1u << 10)", |t| {
            ((t << 26 & 0xffff_ffff) << 10) >> 32
        }),
        ("__mulhi((t - 32) << 24, 256) + 64", |t| {
            ((t - 32) << 24) * 256 / (1 << 32) + 64
        }),
        ("(int)(__brev(t) >> 26) * 2", |t| {
            i64::from((t as u32).reverse_bits() >> 26) * 2
        }),
        ("__clz(t) * 2", |t| {
            i64::from((t as u32).leading_zeros()) * 2
        }),
        ("__clz(t - 8) * 2", |t| {
            i64::from(((t - 8) as i32).leading_zeros()) * 2
        }),
        ("__clzll(t)", |t| i64::from((t as u64).leading_zeros())),
        ("__popc(t) * 32 + t % 4", |t| {
            i64::from(t.count_ones()) * 32 + t % 4
        }),
        ("__popc(-t) * 32", |t| {
            i64::from((-t as i32).count_ones()) * 32
        }),
        ("__ffs(t) * 32 + t", |t| {
            (if t == 0 {
                0
            } else {
                i64::from(t.trailing_zeros()) + 1
            }) * 32
                + t
        }),
        ("min(t, 40) * 2", |t| t.min(40) * 2),
        ("max(t - 40, -8) + 8", |t| (t - 40).max(-8) + 8),
        ("(int)min((unsigned)(t - 4), 60u)", |t| {
            i64::from(((t - 4) as u32).min(60))
        }),
        ("abs(t - 33) * 2", |t| (t - 33).abs() * 2),
        ("(t < 17 ? t : 3 * t)", |t| if t < 17 { t } else { 3 * t }),
        ("((t - 5) < 7u) * 32 + t", |t| {
            i64::from(((t - 5) as u32) < 7) * 32 + t
        }),
        ("!(t & 3) * 32 + t", |t| i64::from(t % 4 == 0) * 32 + t),
        ("(t & 6) == 2 && t > 20 ? 64 + t : t", |t| {
            if t & 6 == 2 && t > 20 { 64 + t } else { t }
        }),
    ];
    for (source, index) in rows {
        let text = format!(
            "__global__ void k() {{ __shared__ float s[8192]; int t = threadIdx.x; s[{source}] = 0; }}"
        );
        let result = analyse(&text, Language::Cuda, 64, &[]);
        let access = result.accesses.last().expect("the store");
        assert!(access.exact, "{source}: {:?}", access.why);
        assert_eq!(
            access.passes_per_request,
            Some(average(64, index)),
            "{source}"
        );
    }
}

#[test]
fn integer_arithmetic_of_opencl() {
    // OpenCL C 3.0, 6.15.3: integer functions work in the type of their operands.
    type Row = (&'static str, fn(i64) -> i64);
    let rows: [Row; 7] = [
        ("mul24(t, 6)", |t| t * 6),
        ("mad24(t, 4, 8)", |t| t * 4 + 8),
        ("clamp(t * 2, 10, 60)", |t| (t * 2).clamp(10, 60)),
        ("popcount(t) * 32 + t % 4", |t| {
            i64::from(t.count_ones()) * 32 + t % 4
        }),
        ("clz((uchar)t) * 32", |t| {
            i64::from((t as u8).leading_zeros()) * 32
        }),
        ("mul_hi(t << 20, 1 << 14)", |t| (t << 34) >> 32),
        ("rotate_free(t)", |t| t * 2),
    ];
    for (source, index) in rows {
        let text = format!(
            "int rotate_free(int t) {{ return t << 1; }}\n\
             kernel void k() {{ local float s[8192]; int t = get_local_id(0); s[{source}] = 0; }}"
        );
        let result = analyse(&text, Language::OpenCl, 64, &[]);
        let access = result.accesses.last().expect("the store");
        assert!(access.exact, "{source}: {:?}", access.why);
        assert_eq!(
            access.passes_per_request,
            Some(average(64, index)),
            "{source}"
        );
    }
}

#[test]
fn what_c_leaves_undefined_is_unknown_and_says_so() {
    for source in [
        "t / zero",
        "t % (zero * 4)",
        "t << 32",
        "t >> 40",
        "1 << (t * 0 - 1)",
    ] {
        let text = format!(
            "__global__ void k(int zero) {{ __shared__ float s[8192]; int t = threadIdx.x; s[{source}] = 0; }}"
        );
        let result = analyse(&text, Language::Cuda, 64, &[("zero", 0)]);
        let access = result.accesses.last().expect("the store");
        assert_eq!(access.certainty, "unknown", "{source}");
        assert_eq!(access.passes_per_request, None, "{source}");
        assert!(access.why.is_some(), "{source}");
    }
}

#[test]
fn probabilities_of_conditions_on_data() {
    let kernel = |above: &str, condition: &str| {
        let text = format!(
            "__global__ void k(const int *a, int *b) {{\n int t = threadIdx.x; int v = a[t];\n{above}\n if ({condition}) b[t] = 1;\n}}"
        );
        let result = analyse(&text, Language::Cuda, 64, &[]);
        let stated: Vec<String> = result
            .assumptions
            .iter()
            .filter(|one| one.symbol.starts_with("probability"))
            .map(|one| format!("{} {} {}", one.symbol, one.value, one.source))
            .collect();
        let branch = result.branches.into_iter().next().expect("the branch");
        assert_eq!(branch.certainty, "assumed");
        (branch.taken_warp_fraction.expect("a figure"), stated)
    };
    let some_lane = |p: f64| 1.0 - (1.0 - p).powi(32);
    let (taken, stated) = kernel("", "v > 3");
    assert!((taken - some_lane(0.5)).abs() < 1e-12);
    assert_eq!(stated, ["probability 0.5 default"]);
    let (taken, stated) = kernel("// warplens: probability=0.02", "v > 3");
    assert!((taken - some_lane(0.02)).abs() < 1e-12);
    assert!(stated.is_empty(), "{stated:?}");
    let (taken, stated) = kernel("", "__builtin_expect(v > 3, 0)");
    assert!((taken - some_lane(0.1)).abs() < 1e-12, "{taken}");
    assert_eq!(stated.len(), 1);
    assert!(
        stated[0].contains("__builtin_expect(v > 3, 0)"),
        "{stated:?}"
    );
}

#[test]
fn a_number_with_a_fraction_is_seldom_just_the_one_that_is_written_there() {
    let taken = |condition: &str, off: bool| {
        let text = format!(
            "__global__ void k(const float *a, float *b, bool on) {{\n int t = threadIdx.x; float v = a[t];\n if ({condition}) b[t] = v;\n}}"
        );
        let arguments: &[(&str, i64)] = if off { &[("on", 0)] } else { &[] };
        let result = analyse(&text, Language::Cuda, 64, arguments);
        let branch = result.branches.into_iter().next().expect("the branch");
        assert_eq!(branch.certainty, "assumed");
        branch.taken_warp_fraction.expect("a figure")
    };
    for rare in ["v == 123.0f", "v == 12", "-7.5 == v", "!(v != 123.0)"] {
        assert!(taken(rare, false) < 1e-5, "{rare}");
    }
    assert!(taken("on || v == 123.0f", true) < 1e-5);
    assert!(taken("v != 123.0f", false) > 0.99);
    // Flags, and whatever a switch that is not set hides.
    for common in ["v == 0.0f", "v == 1.0f", "v == -1.0f", "v > 123.0f"] {
        assert!(taken(common, false) > 0.99, "{common}");
    }
}

#[test]
fn an_expectation_does_not_hide_a_condition() {
    let text = "__global__ void k(int *b, int n) { int t = threadIdx.x; if (__builtin_expect(t < n, 1)) b[t] = 1; }";
    let result = analyse(text, Language::Cuda, 64, &[("n", 40)]);
    let branch = &result.branches[0];
    assert!(branch.exact);
    // Of each block's two warps one splits.
    assert_eq!(branch.divergent_warp_fraction, Some(0.5));
    assert_eq!(branch.taken_warp_fraction, Some(1.0));
}
