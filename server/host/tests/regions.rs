//! Host programs with threads of `OpenMP`.

mod common;

use common::running::{come_to, launches, ran_under};

#[test]
fn each_thread_of_a_team_launches() {
    let made = |body: &str| -> Vec<(Option<i64>, Option<u64>)> {
        let sites = launches("", &format!("int *d; cudaMalloc(&d, 4096); {body}"));
        let sites = sites.iter();
        sites.map(|site| (site.arguments[1], site.count)).collect()
    };
    let by_thread = [0, 1, 2].map(|thread| (Some(10 * thread + 3), Some(1)));
    for directive in [
        "#pragma omp parallel num_threads(3)",
        "#pragma  omp parallel num_threads ( t ) shared(d)",
    ] {
        assert_eq!(
            made(&format!(
                "int t = 3;\n{directive}\n{{ int id = omp_get_thread_num(); k<<<1, 32>>>(d, 10 * id + omp_get_num_threads()); }}"
            )),
            by_thread
        );
    }
    assert_eq!(
        made(
            "omp_set_num_threads(5);\n#pragma omp parallel\n{ k<<<1, 32>>>(d, 7); }\nk<<<1, 32>>>(d, omp_get_max_threads());"
        ),
        [(Some(7), Some(5)), (Some(5), Some(1))]
    );
    // How many threads there are, nothing says.
    assert_eq!(
        made(
            "#pragma omp parallel\n{ k<<<1, 32>>>(d, 7);\n#pragma omp single\nk<<<1, 32>>>(d, 8);\n
              #pragma omp for\nfor (int i = 0; i < 4; i++) k<<<1, 32>>>(d, 9); }"
        ),
        [(Some(7), None), (Some(8), Some(1)), (Some(9), Some(4))]
    );
    assert_eq!(
        made(
            "#pragma omp parallel num_threads(4)\n{ k<<<1, 32>>>(d, 7);\n#pragma omp barrier\n\n#pragma omp master\n{ k<<<1, 32>>>(d, 8); } }"
        ),
        [(Some(7), Some(4)), (Some(8), Some(1))]
    );
    // Work that is divided is done once.
    assert_eq!(
        made(
            "#pragma omp parallel for num_threads(2) schedule(static)\nfor (int i = 0; i < 3; i++) k<<<1, 32>>>(d, i);"
        ),
        [0, 1, 2].map(|i| (Some(i), Some(1)))
    );
    // A directive between the head of a loop or a branch and its body.
    assert_eq!(
        made(
            "for (int r = 0; r < 3; r++)\n#pragma omp parallel for\nfor (int i = 0; i < 2; i++) k<<<1, 32>>>(d, r);
             if (argc == 77)\n#pragma omp parallel for\nfor (int i = 0; i < 2; i++) k<<<1, 32>>>(d, 8);
             for (int r = 0; r < 2; r++)\n#pragma unroll\nfor (int i = 0; i < 2; i++)\n#pragma unroll\nfor (int j = 0; j < 2; j++) k<<<1, 32>>>(d, 9);
             k<<<1, 32>>>(d, 5);"
        ),
        [(0, 2), (1, 2), (2, 2), (9, 8), (5, 1)].map(|(n, times)| (Some(n), Some(times)))
    );
    // Not among threads.
    assert_eq!(
        made("k<<<1, 32>>>(d, 10 * omp_get_num_threads() + omp_get_thread_num());"),
        [(Some(10), Some(1))]
    );
}

#[test]
fn what_threads_change_is_as_known_as_how_many_there_are() {
    come_to(
        "",
        &[
            (
                "n = 5;\n#pragma omp parallel num_threads(4)\n{\n#pragma omp critical\nn += 2; }",
                Some(13),
            ),
            (
                "n = 5;\n#pragma omp parallel\n{\n#pragma omp critical\nn += 2; }",
                None,
            ),
            (
                "n = 5; int m = 1;\n#pragma omp parallel\n{\n#pragma omp atomic\nm += 2; }",
                Some(5),
            ),
            (
                "#pragma omp parallel for reduction(+ : n)\nfor (int i = 0; i < 100; i++) n += i;",
                Some(4950),
            ),
            (
                "int a[100];\n#pragma omp parallel for\nfor (int i = 0; i < 100; i++) a[i] = 3 * i;\nn = a[50];",
                Some(150),
            ),
            // Within a loop of numbers.
            (
                "for (int r = 0; r < 3; r++) {\n#pragma omp parallel for reduction(+:n)\nfor (int i = 0; i < 10; i++) n += r; }",
                Some(30),
            ),
            (
                "\nfor (int r = 0; r < 3; r++)\n#pragma omp parallel for reduction(+:n)\nfor (int i = 0; i < 10; i++) n += r;",
                Some(30),
            ),
            (
                "for (int r = 0; r < 3; r++) {\n#pragma omp parallel\n{\n#pragma omp atomic\nn += 1; } }",
                None,
            ),
        ],
    );
}

#[test]
fn the_environment_says_how_many_threads_there_are() {
    let text = "__global__ void k(int *data, int n) { data[n] = 1; }
        int main() { int *d; cudaMalloc(&d, 400);
        #pragma omp parallel
        { k<<<1, 32>>>(d, omp_get_thread_num()); }
        }";
    let made = ran_under(text, &[], &[("OMP_NUM_THREADS", "2")]).sites;
    let n: Vec<_> = made.iter().map(|site| site.arguments[1]).collect();
    assert_eq!(n, [Some(0), Some(1)]);
    let made = ran_under(text, &[], &[]).sites;
    assert_eq!(made.len(), 1);
    assert_eq!((made[0].arguments[1], made[0].count), (None, None));
}
