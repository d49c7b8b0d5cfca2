//! What pictures show is what the facts and the estimates say.

use std::path::Path;

use warplens_db::pictures::{Pictures, Touched};
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, Overrides};
use warplens_facts::facts::Space;
use warplens_machine::{Profiles, global_request, shared_request};
use warplens_models::ModelId;
use warplens_syntax::{Document, Language};

const TRANSPOSE: &str = include_str!("../../../../tests/kernels/transpose.cu");
const MATMUL: &str = include_str!("../../../../tests/kernels/matmul.cu");
const SPMV: &str = include_str!("../../../../tests/kernels/spmv.cu");

fn pictures(text: &str, gpu: &str, compare: &[&str]) -> Pictures {
    let settings = Settings {
        gpu: Some(gpu.to_owned()),
        compare: compare.iter().map(|gpu| (*gpu).to_owned()).collect(),
        ..Settings::default()
    };
    let engine = Engine::new(Profiles::builtin());
    let pictures = engine.pictures(
        &Document::new(text, Language::Cuda),
        Path::new("k.cu"),
        &settings,
        &Overrides::default(),
        &[],
        &ModelId::analytical(),
        &[],
        &Cancel::default(),
    );
    let pictures = pictures.expect("pictures");
    assert_eq!(pictures.kernels.len(), pictures.estimate.results.len());
    assert!(!pictures.kernels.is_empty());
    pictures
}

#[test]
fn a_picture_of_lanes_costs_what_the_facts_say() {
    let mut pictured = 0;
    for text in [TRANSPOSE, MATMUL, SPMV] {
        for gpu in [
            "a100-sxm4-40gb",
            "gtx-280",
            "tesla-k40c",
            "tesla-c2070",
            "r9-fury",
        ] {
            let profile = Profiles::builtin().get(gpu).expect("a profile");
            for kernel in pictures(text, gpu, &["t4"]).kernels {
                for picture in kernel.lanes {
                    assert_eq!(picture.lanes.len(), profile.warp_size as usize);
                    let addresses: Vec<i64> =
                        picture.lanes.iter().map(|at| at.unwrap_or(0)).collect();
                    let active = picture.lanes.iter().enumerate();
                    let active = active.fold(0_u64, |mask, (lane, at)| {
                        mask | u64::from(at.is_some()) << lane
                    });
                    let access = &picture.access;
                    let place = format!("{} on {gpu}", access.text);
                    let uniform = picture.alike > 0.999_999;
                    if access.space == Space::Shared {
                        let cost =
                            shared_request(&profile, access.bytes_per_lane, &addresses, active);
                        if uniform {
                            assert_eq!(
                                Some(f64::from(cost.passes)),
                                access.passes_per_request,
                                "{place}"
                            );
                        }
                        let Touched::Banks { words, .. } = &picture.touched else {
                            panic!("{place}: banks");
                        };
                        assert_eq!(words.len(), profile.bank_rule.banks as usize, "{place}");
                        let most = words.iter().copied().max().unwrap_or(0);
                        // All lanes together meet a bank no less often than those that are served at a time.
                        assert!(most >= 1 && u64::from(most) <= 64, "{place}: {most}");
                    } else {
                        let op = warplens_machine::Access::Load;
                        let Touched::Units { bytes, units } = &picture.touched else {
                            panic!("{place}: units");
                        };
                        assert_eq!(*bytes, access.transaction_bytes, "{place}");
                        assert!(units.iter().all(|(_, asked)| asked <= bytes), "{place}");
                        let asked: u32 = units.iter().map(|(_, asked)| asked).sum();
                        let most = active.count_ones() * access.bytes_per_lane;
                        assert!(asked <= most && asked > 0, "{place}");
                        if uniform && gpu == "a100-sxm4-40gb" {
                            let cost = global_request(
                                &profile,
                                op,
                                access.bytes_per_lane,
                                &addresses,
                                active,
                            );
                            assert_eq!(cost.transactions as usize, units.len(), "{place}");
                            assert_eq!(
                                Some(units.len() as f64),
                                access.transactions_per_request,
                                "{place}"
                            );
                        }
                    }
                    pictured += 1;
                }
            }
        }
    }
    assert!(pictured > 15, "{pictured}");
}

#[test]
fn the_curves_go_through_the_kernels_own_points() {
    for gpu in ["a100-sxm4-40gb", "gtx-280", "r9-fury"] {
        let pictures = pictures(MATMUL, gpu, &["t4"]);
        for (kernel, result) in pictures.kernels.iter().zip(&pictures.estimate.results) {
            let residence = &kernel.residence;
            assert!((residence.now - result.occupancy.fraction).abs() < 1e-12);
            for curve in [&residence.registers, &residence.block] {
                let Some(now) = curve.now else { continue };
                let at = curve.steps.iter().rev().find(|(from, _)| *from <= now);
                let (_, fraction) = at.expect("a step at or before it");
                assert!(
                    (fraction - residence.now).abs() < 1e-12,
                    "{gpu}: {curve:?} at {now}"
                );
            }
            assert!(
                residence.shared.steps.len() > 2,
                "{gpu}: {:?}",
                residence.shared
            );

            let scaling = &kernel.scaling;
            let (last, cycles) = *scaling.points.last().expect("points");
            assert_eq!(last, result.occupancy.active_warps_per_sm);
            let whole = result.estimates["auto"].cycles.expect("cycles");
            assert!(
                (cycles / whole - 1.0).abs() < 1e-9,
                "{gpu}: {cycles} of {whole}"
            );

            let shares: f64 = kernel.source.iter().filter_map(|line| line.share).sum();
            assert!(shares > 0.5 && shares < 1.0 + 1e-9, "{gpu}: {shares}");
        }
    }
}

#[test]
fn a_roofline_is_of_the_counted_work_and_the_moved_bytes() {
    let pictures = pictures(MATMUL, "a100-sxm4-40gb", &["t4"]);
    for (kernel, result) in pictures.kernels.iter().zip(&pictures.estimate.results) {
        let roofline = kernel.roofline.as_ref().expect("a roofline");
        assert_eq!(roofline.work, "FLOP");
        let flops: f64 = result
            .counts
            .iter()
            .filter(|count| count.class.starts_with("fp"))
            .filter_map(|count| count.value)
            .sum();
        let bytes: f64 = result
            .accesses
            .iter()
            .filter(|access| access.space == "global")
            .map(|access| {
                let figures = (
                    access.requests,
                    access.transactions_per_request,
                    access.transaction_bytes,
                );
                let (Some(requests), Some(units), Some(bytes)) = figures else {
                    panic!("{access:?}");
                };
                requests * units * f64::from(bytes)
            })
            .sum();
        assert!(
            (roofline.intensity / (flops / bytes) - 1.0).abs() < 1e-9,
            "{roofline:?}"
        );
        assert!(roofline.ideal_intensity >= roofline.intensity * (1.0 - 1e-12));
        let seconds = result.estimates["auto"].time_ms.expect("a time") / 1000.0;
        assert_eq!(roofline.achieved, Some(flops / seconds));
    }
    // Without floating point it is instructions; where an address depends on data there is none.
    let moved = self::pictures(TRANSPOSE, "a100-sxm4-40gb", &["t4"]);
    let works = moved
        .kernels
        .iter()
        .map(|kernel| kernel.roofline.as_ref().map(|one| one.work));
    assert!(
        works
            .into_iter()
            .all(|work| work == Ok("warp instructions"))
    );
    let data = self::pictures(SPMV, "a100-sxm4-40gb", &["t4"]);
    let whys = data
        .kernels
        .iter()
        .filter_map(|kernel| kernel.roofline.as_ref().err());
    assert!(whys.into_iter().any(|why| why.contains("is not known")));
}

#[test]
fn other_gpus_are_those_named_or_all_and_the_target_is_among_them() {
    let named = pictures(TRANSPOSE, "t4", &["h100-sxm5", "gtx-280", "t4"]);
    for kernel in &named.kernels {
        let gpus: Vec<&str> = kernel
            .elsewhere
            .iter()
            .map(|one| one.gpu.as_str())
            .collect();
        assert_eq!(gpus.len(), 3, "{gpus:?}");
        assert_eq!(kernel.elsewhere.iter().filter(|one| one.target).count(), 1);
        let times = kernel.elsewhere.iter().filter_map(|one| one.time_ms);
        assert!(times.is_sorted());
    }
    let all = pictures(
        "__global__ void k(float *a) { a[threadIdx.x] = 1; }",
        "t4",
        &[],
    );
    assert_eq!(
        all.kernels[0].elsewhere.len(),
        Profiles::builtin().ids().count()
    );
}

#[test]
fn nothing_that_is_strange_stops_the_pictures() {
    for text in [
        "__global__ void k() {}",
        "__global__ void k(float *a, int n) { for (long i = 0; i < 1000000000000; i++) a[i * n] = i; }",
        "__global__ void k(int *a) { a[a[threadIdx.x]] = a[-1 - threadIdx.x]; }",
        "// warplens: block=4096\n__global__ void k(int *a) { a[threadIdx.x] = 1; }",
        "__global__ void k(char *a) { ((float4 *)(a + 1))[threadIdx.x].x = 1; }",
        "__global__ void k(int *a) { if (threadIdx.x > 4096) a[threadIdx.x] = 1; }",
        "__global__ void k(int *a, int n) { __shared__ char big[1 << 20]; big[threadIdx.x * n] = a[0];",
    ] {
        for gpu in ["a100-sxm4-40gb", "gtx-280", "mi250x"] {
            for kernel in pictures(text, gpu, &["t4"]).kernels {
                assert!(
                    kernel
                        .scaling
                        .points
                        .iter()
                        .all(|(_, cycles)| cycles.is_finite())
                );
                assert!(kernel.residence.block.steps.len() <= 256);
            }
        }
    }
}

#[test]
fn products_of_matrices_have_a_roof_of_their_own() {
    let text = "__global__ void k(const unsigned *a, float *out) {\n\
        float c[4] = {}; unsigned r = a[blockIdx.x * 64 + threadIdx.x];\n\
        for (int i = 0; i < 16; i++)\n\
        asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};\"\n\
        : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]) : \"r\"(r));\n\
        out[blockIdx.x * 64 + threadIdx.x] = c[0];\n}\n\
        void run(unsigned *a, float *out) { k<<<8, 64>>>(a, out); }\n";
    let pictures = pictures(text, "a100-sxm4-40gb", &[]);
    let roofline = pictures.kernels[0].roofline.as_ref().expect("a roofline");
    assert_eq!(roofline.work, "FLOP");
    let [roof] = roofline.peaks.as_slice() else {
        panic!("{:?}", roofline.peaks);
    };
    // 108 multiprocessors with 1024 multiply-adds a clock at 1.41 GHz.
    assert_eq!(roof.name, "tensor FP16");
    assert!((roof.per_second / 312e12 - 1.0).abs() < 0.01, "{roof:?}");
    // 16 warps with 16 products of 16 · 8 · 16; 8 bytes a thread.
    let flops = 16.0 * 16.0 * 2.0 * 16.0 * 8.0 * 16.0;
    assert!(
        (roofline.intensity / (flops / (512.0 * 8.0)) - 1.0).abs() < 1e-9,
        "{roofline:?}"
    );
}
