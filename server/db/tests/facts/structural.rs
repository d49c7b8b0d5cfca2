//! Structural conditions of Baghsorkhi et al. 2010 (section 3.1): a thread's number against a loop's counter. The
//! weight of what is under such a condition is what a replay of the threads gives, and expression (12).

use std::path::Path;
use std::sync::LazyLock;

use warplens_db::settings::Settings;
use warplens_db::wire::Branch;
use warplens_db::{Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Profiles::builtin()));

const THREADS: i64 = 128;

/// The condition in a loop over i from 0 to `last`.
fn condition(text: &str, last: i64) -> Branch {
    branch(&format!("if ({text}) y[t] += 1;"), last)
}

/// The first `if` of a loop's body.
fn branch(body: &str, last: i64) -> Branch {
    let source = format!(
        "__global__ void k(float *y, int last) {{\n\
         int t = threadIdx.x; float best = y[t]; int at = 0;\n\
         for (int i = 0; i <= last; ++i) {{\n\
         {body} }}\n\
         y[t] = best + at;\n}}\n"
    );
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([3, 1, 1]),
            block: Some([THREADS as u64, 1, 1]),
            args: [("last".to_owned(), last)].into(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let mut document = ENGINE
        .estimate(
            &Document::new(&source, Language::Cuda),
            Path::new("k.cu"),
            &Settings::default(),
            &overrides,
            &[],
            &[],
            &[],
        )
        .expect("the default GPU");
    let mut branches = document.results.remove(0).branches.into_iter();
    branches.find(|branch| branch.kind == "if").expect("one")
}

/// The part of warps in which some thread, and in which but some thread, takes the condition.
fn replay(holds: impl Fn(i64, i64) -> bool, last: i64) -> (f64, f64) {
    let (mut taken, mut split, mut all) = (0.0, 0.0, 0.0);
    for i in 0..=last {
        for warp in 0..THREADS / 32 {
            let lanes = (0..32).filter(|lane| holds(32 * warp + lane, i)).count();
            taken += f64::from(u8::from(lanes > 0));
            split += f64::from(u8::from(lanes > 0 && lanes < 32));
            all += 1.0;
        }
    }
    (taken / all, split / all)
}

#[track_caller]
fn agrees(text: &str, holds: impl Fn(i64, i64) -> bool, last: i64) {
    let branch = condition(text, last);
    let (taken, split) = replay(holds, last);
    assert!(branch.exact, "{text}: {branch:?}");
    let close = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-12);
    assert!(
        close(branch.taken_warp_fraction, taken),
        "{text}: {branch:?}, not {taken}"
    );
    assert!(
        close(branch.divergent_warp_fraction, split),
        "{text}: {branch:?}, not {split}"
    );
}

#[test]
fn comparisons_have_the_weight_of_a_replay() {
    // Definition (9) with the operators, and linear and geometric series.
    for last in [0, 9, 40] {
        agrees(
            "2 * t + 3 <= 7 * i + 1",
            |t, i| 2 * t + 3 <= 7 * i + 1,
            last,
        );
        agrees("t >= 4 * i", |t, i| t >= 4 * i, last);
        agrees("3 * t == 6 * i + 3", |t, i| 3 * t == 6 * i + 3, last);
        agrees("t != 2 * i", |t, i| t != 2 * i, last);
    }
    for last in [0, 4, 9] {
        agrees("t <= (1 << i)", |t, i| t <= 1 << i, last);
        agrees("t < (256 >> i)", |t, i| t < 256 >> i, last);
    }
}

#[test]
fn divisibility_has_the_weight_of_a_replay() {
    for last in [0, 5, 30] {
        agrees(
            "(t + 1) % (2 * i + 3) == 0",
            |t, i| (t + 1) % (2 * i + 3) == 0,
            last,
        );
    }
    for last in [0, 3, 8] {
        agrees(
            "(t + 1) % (1 << i) == 0",
            |t, i| (t + 1) % (1 << i) == 0,
            last,
        );
    }
}

#[test]
fn iterations_without_divergence_dilute_the_weight() {
    // Expression (12): behind I_0 all threads satisfy A t + B <= alpha i + beta.
    let (a, b, alpha, beta) = (2, 3, 7, 1);
    let text = "2 * t + 3 <= 7 * i + 1";
    let first = (a * (THREADS - 1) + b - beta + alpha - 1) / alpha;
    // w_0 is that of the I_0 iterations before.
    let before = condition(text, first - 1);
    let w = before.taken_warp_fraction.expect("known");
    for last in [first, first + 1, 2 * first, 100 * first] {
        let (i, i0) = ((last + 1) as f64, first as f64);
        let expected = ((i - i0).max(0.0) + w * i0) / i.max(i0);
        let found = condition(text, last).taken_warp_fraction.expect("known");
        assert!(
            (found - expected).abs() < 1e-12,
            "{last}: {found}, not {expected}"
        );
    }
}

#[test]
fn a_far_end_takes_no_longer() {
    // Expressions (10) and (11): the steps are bounded by the threads, not by the loop.
    let branch = condition("2 * t + 3 <= 7 * i + 1", 1_000_000_000);
    assert!(branch.exact, "{branch:?}");
    let taken = branch.taken_warp_fraction.expect("known");
    assert!(taken < 1.0 && taken > 0.999_999, "{taken}");
}

#[test]
fn the_greatest_so_far_changes_as_often_as_records_are_set() {
    let taken = |body: &str, last: i64| branch(body, last).taken_warp_fraction.expect("known");
    for last in [15_i64, 1023] {
        let n = (last + 1) as f64;
        // Of n values in any order: 1 + 1/2 + ... + 1/n of them.
        let records: f64 = (1..=last + 1).map(|k| 1.0 / k as f64).sum();
        let expected = 1.0 - (1.0 - records / n).powi(32);
        for body in [
            "float v = y[i * 128 + t]; if (v > best) { best = v; at = i; }",
            "float v = y[i * 128 + t]; if (best < v) best = v;",
            "if (y[i * 128 + t] < best) { at = i; best = y[i * 128 + t]; }",
        ] {
            let found = taken(body, last);
            assert!(
                (found / expected - 1.0).abs() < 0.02,
                "{body}: {found} {expected}"
            );
        }
        // Another value is kept, or none: nothing is known of it.
        let half = 1.0 - 0.5_f64.powi(32);
        for body in [
            "float v = y[i * 128 + t]; if (v > best) { best = v + 1; }",
            "float v = y[i * 128 + t]; if (v > best) at = i;",
            "float v = y[i * 128 + t]; if (v != best) best = v;",
        ] {
            let found = taken(body, last);
            assert!((found - half).abs() < 1e-6, "{body}: {found}");
        }
    }
}
