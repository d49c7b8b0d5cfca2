//! Programs that draw: what generators and distributions of the C++ library give, as libstdc++ gives it.

mod common;

use common::running::{LAUNCH, come_to, data, launches, n};

/// What is drawn into `a`, of which `n` elements are launched with.
fn drawn(n: usize, body: &str) -> Option<Vec<i32>> {
    data(
        "#include <random>",
        &format!(
            "const int n = {n}; std::vector<int> a(n); {body}
             int *d; cudaMalloc(&d, n * sizeof(int));
             cudaMemcpy(d, a.data(), n * sizeof(int), cudaMemcpyHostToDevice); k<<<1, 32>>>(d, n);"
        ),
    )
}

/// Each element is drawn by `d` from `g`, in all the ways that loops are written.
fn drawn_each(n: usize, declared: &str) -> Option<Vec<i32>> {
    let by_index = drawn(
        n,
        &format!("{declared} for (int i = 0; i < n; i++) a[i] = d(g);"),
    );
    let by_reference = drawn(n, &format!("{declared} for (auto &v : a) v = d(g);"));
    let behind = drawn(
        n,
        &format!("{declared} a.clear(); for (int i = 0; i < n; i++) a.push_back(d(g));"),
    );
    assert_eq!(by_index, by_reference, "{declared}");
    assert_eq!(by_index, behind, "{declared}");
    by_index
}

#[test]
fn distributions_draw_what_the_library_draws() {
    let first = |declared: &str, expected: &[i32]| {
        assert_eq!(
            drawn_each(expected.len(), declared).as_deref(),
            Some(expected),
            "{declared}"
        );
    };
    first(
        "std::mt19937 g(42); std::uniform_int_distribution<int> d(0, 99);",
        &[37, 79, 95, 18, 73, 77, 59, 59],
    );
    first(
        "std::mt19937_64 g(7); std::uniform_int_distribution<long> d(-5, 1000);",
        &[753, 949, 113, 892, 137, 50, 832, 901],
    );
    first(
        "std::default_random_engine g(3); std::uniform_int_distribution<> d(1, 6);",
        &[1, 3, 2, 3, 4, 4, 1, 1],
    );
    first(
        "std::mt19937 g(1); std::bernoulli_distribution d(0.25);",
        &[0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
    );
    first(
        "std::mt19937 g(1); std::uniform_real_distribution<float> d(0, 100);",
        &[41, 99, 72, 93, 0, 12, 30, 99],
    );
    // A seed, bounds or a distribution that is not known.
    for declared in [
        "std::mt19937 g(std::random_device{}()); std::uniform_int_distribution<int> d(0, 99);",
        "std::mt19937 g(42); std::uniform_int_distribution<int> d(0, time(0));",
        "std::mt19937 g(42); std::poisson_distribution<int> d(4);",
    ] {
        assert_eq!(drawn_each(8, declared), None, "{declared}");
    }
    // Numbers of 64 bits take two of such a generator.
    assert_eq!(
        drawn_each(
            8,
            "std::mt19937 g(42); std::uniform_int_distribution<long> d(0, 1L << 40);"
        ),
        None
    );
}

#[test]
fn what_is_shuffled_stands_where_the_library_puts_it() {
    let shuffled = |n: usize, generator: &str| {
        drawn(
            n,
            &format!(
                "std::iota(a.begin(), a.end(), 0); {generator} std::shuffle(a.begin(), a.end(), g);"
            ),
        )
    };
    assert_eq!(
        shuffled(9, "std::mt19937 g(5);"),
        Some(vec![3, 6, 0, 1, 2, 8, 7, 4, 5])
    );
    assert_eq!(
        shuffled(10, "std::mt19937 g(5);"),
        Some(vec![3, 8, 5, 2, 4, 6, 7, 1, 9, 0])
    );
    // As each takes a number of its own.
    let many = |n: usize, generator: &str| {
        let all = shuffled(n, generator).expect("known");
        [all[0], all[1], all[n - 1]]
    };
    assert_eq!(many(100_000, "std::mt19937 g(5);"), [77221, 89615, 96783]);
    assert_eq!(
        many(50_000, "std::minstd_rand g(5);"),
        [27242, 11918, 34861]
    );
    assert_eq!(shuffled(9, "std::mt19937 g(time(0));"), None);
    come_to(
        "#include <random>",
        &[
            (
                "std::vector<int> v(10); std::mt19937 g(5); std::shuffle(v.begin(), v.end(), g); n = g() % 1000;",
                Some(70),
            ),
            (
                "std::vector<int> v(1); std::mt19937 g(5); std::shuffle(v.begin(), v.end(), g); n = g() % 1000;",
                Some(411),
            ),
        ],
    );
}

#[test]
fn generators_are_seeded_anew_and_skip() {
    come_to(
        "#include <random>",
        &[
            (
                "std::mt19937 g; g.seed(99); g.discard(1000); n = g() % 100000;",
                Some(76772),
            ),
            (
                "std::mt19937 g(99); g(); g.seed(); n = g() % 100000;",
                Some(11612),
            ),
            ("std::mt19937 g; g.seed(time(0)); n = g() % 100000;", None),
            // Their word has 64 bits.
            ("std::mt19937 g(8); n = (g() * 1000) >> 32;", Some(873)),
            (
                "std::mt19937 g(8); for (int i = 0; i < 1; i++) n = (g() * 1000) >> 32;",
                Some(873),
            ),
        ],
    );
}

#[test]
fn a_container_is_as_long_as_it_was_whichever_element_is_read() {
    let unknown =
        "std::vector<int> v(257); for (auto &x : v) x = time(0); std::sort(v.begin(), v.end());";
    let sites = launches(
        "#include <vector>",
        &format!(
            "{unknown} int *d; cudaMalloc(&d, v.size() * sizeof(int)); k<<<1, 32>>>(d, v[10]);
             cudaMalloc(&d, v.size() * sizeof(int)); k<<<v.size(), 32>>>(d, v.size());"
        ),
    );
    assert_eq!(sites[1].grid, Some([257, 1, 1]));
    assert_eq!(sites[1].extents[0], Some(1028));
    let after = |body: &str| {
        n(
            "void resize(std::vector<int> &v);",
            &format!("{unknown} {body} {LAUNCH}"),
        )
    };
    assert_eq!(after("v[3] = 5; int n = v.size();"), Some(257));
    assert_eq!(
        after("v.clear(); v.push_back(time(0)); int n = v.size();"),
        Some(1)
    );
    // One that something else may have made longer.
    assert_eq!(
        after("std::vector<int> w(20); resize(w); w[3] = 5; int n = w.size();"),
        None
    );
    // A short one keeps what is written.
    assert_eq!(
        after("std::vector<int> w(20); for (auto &x : w) x = time(0); w[3] = 5; int n = w[3];"),
        Some(5)
    );
}
