//! Programs that are run with arguments: what their loops compute, fill and draw is what their launches are given.

mod common;

use common::running::{LAUNCH, data, launches, n, ran, ran_on, ran_under};
use warplens_host::{Device, Direction, HostEventKind};

#[test]
fn what_loops_count_is_known() {
    let counted = |loops: &str| n("", &format!("int n = 0; {loops} {LAUNCH}"));
    assert_eq!(
        counted(
            "for (int a = 0; a <= 8; a++) for (int b = 0; b <= a; b++)
               for (int c = abs(a - b); c <= (8 < a + b ? 8 : a + b); c += 2) n++;"
        ),
        Some(
            (0..=8i64)
                .flat_map(|a| (0..=a).flat_map(move |b| ((a - b)..=8.min(a + b)).step_by(2)))
                .count() as i64
        )
    );
    assert_eq!(
        counted("int x = 27; while (x != 1) { x = x % 2 ? 3 * x + 1 : x / 2; n++; }"),
        Some(111)
    );
    assert_eq!(
        counted("do { if (n == 70) break; n += 7; } while (true);"),
        Some(70)
    );
    // A number that is not known decides nothing.
    assert_eq!(
        counted("int t = time(0); for (int i = 0; i < 100; i++) if (t > i) n++;"),
        None
    );
    assert_eq!(
        counted("int t = time(0); for (int i = 0; i < 100; i++) { t += i; n++; }"),
        Some(100)
    );
}

#[test]
fn what_pointers_lead_to_is_counted_too() {
    let counted = |body: &str| {
        n(
            "struct Box { int count; double step; };
             void fill(int *all, Box *box, int *n) {
               for (double x = 0; x < 1; x += box->step) { all[*n] = *n; *n += 1; box->count += 2; }
             }",
            &format!(
                "int all[100]; Box box = {{0, 0.125}}; int n = 0; fill(all, &box, &n); {body} {LAUNCH}"
            ),
        )
    };
    assert_eq!(counted(""), Some(8));
    assert_eq!(counted("n = box.count;"), Some(16));
    assert_eq!(counted("n = all[7];"), Some(7));
}

#[test]
fn classes_give_their_bases_what_these_are_made_of() {
    let text = "__global__ void k(int *data, int n) {}
        struct Sizes { int rows_, columns_; Sizes(int rows, int columns) : rows_(rows), columns_(columns) {}
          int rows() const { return rows_; } };
        class Base { Sizes sizes_; public: Base(int rows, int columns) : sizes_(rows, columns) {}
          Sizes sizes() const { return sizes_; } };
        class Derived : public Base { public: Derived(int rows, int columns) : Base(rows, columns) {}
          void go() { Sizes s = sizes(); k<<<s.rows() / 8, 8>>>(nullptr, s.columns_); } };
        int main() { Derived d(64, 7); d.go(); return 0; }";
    let sites = ran(text, &[]).sites;
    assert_eq!(sites[0].grid, Some([8, 1, 1]));
    assert_eq!(sites[0].arguments[1], Some(7));
}

#[test]
fn what_loops_fill_reaches_the_kernel() {
    let filled = |fill: &str| {
        data(
            "int next(int x) { return 5 * x + 3; }",
            &format!(
                "const int n = 100; int *h = (int *)malloc(n * sizeof(int)); {fill}
                 int *d; cudaMalloc(&d, n * sizeof(int));
                 cudaMemcpy(d, h, n * sizeof(int), cudaMemcpyHostToDevice);
                 k<<<1, 32>>>(d, n);"
            ),
        )
    };
    let of = |value: fn(i32) -> i32| Some((0..100).map(value).collect::<Vec<_>>());
    assert_eq!(
        filled("for (int i = 0; i < n; i++) h[i] = next(i) % 7;"),
        of(|i| (5 * i + 3) % 7)
    );
    assert_eq!(
        filled("int *p = h; for (int i = 0; i < n; i++) *p++ = i / 3;"),
        of(|i| i / 3)
    );
    assert_eq!(
        filled("memset(h, 0, n * sizeof(int)); h[0] = 0;"),
        of(|_| 0)
    );
    assert_eq!(
        filled("for (int i = 0; i < n; i++) h[i] = 0; for (int i = 0; i < n; i += 2) h[i] = -i;"),
        of(|i| if i % 2 == 0 { -i } else { 0 })
    );
    // Half of it is known, and so is none.
    assert_eq!(filled("for (int i = 0; i < n / 2; i++) h[i] = i;"), None);
    assert_eq!(
        filled("int t = time(0); for (int i = 0; i < n; i++) h[i] = i == 3 ? t : i;"),
        None
    );
    // Out of its bounds nothing is defined.
    assert_eq!(filled("for (int i = 0; i <= n; i++) h[i] = i;"), None);
}

#[test]
fn containers_grow_as_they_are_filled() {
    let sizes = |fill: &str| {
        n(
            "#include <vector>",
            &format!("std::vector<int> v; {fill} int n = v.size(); {LAUNCH}"),
        )
    };
    assert_eq!(
        sizes("for (int i = 0; i < 1000; i++) if (i % 3 == 0) v.push_back(i);"),
        Some(334)
    );
    assert_eq!(
        sizes(
            "v.resize(70); std::vector<int> w(200); for (int i = 0; i < w.size(); i++) v.push_back(i);"
        ),
        Some(270)
    );
    assert_eq!(
        sizes(
            "std::vector<int> w(200, 7); for (int i = 0; i < 200; i++) for (int j = 0; j < w[i]; j++) v.push_back(j);"
        ),
        Some(1400)
    );
    assert_eq!(
        sizes("std::vector<int> w = {1, 2, 3}; v.insert(v.end(), w.begin(), w.end());"),
        Some(3)
    );
}

#[test]
fn what_a_kernel_writes_is_not_known_behind_it() {
    let both = |kernel: &str| {
        let text = format!(
            "__global__ void k(int *data, int n) {{ int i = threadIdx.x; {kernel} }}
             __global__ void last(int *data) {{ }}
             int main() {{ const int n = 200; int h[n];
               for (int i = 0; i < n; i++) h[i] = i;
               int *d; cudaMalloc(&d, sizeof(h)); cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);
               k<<<1, 32>>>(d, n); last<<<1, 32>>>(d); return 0; }}"
        );
        let sites = ran(&text, &[]).sites;
        assert_eq!(sites.len(), 2);
        assert!(sites[0].contents[0].is_some());
        sites[1].contents[0].is_some()
    };
    assert!(both("if (data[i] > 3) n = data[data[i]];"));
    assert!(!both("data[i] = 3;"));
    assert!(!both("data[i]++;"));
    assert!(!both("atomicAdd(&data[i], 1);"));
    assert!(!both("int *p = data + n; *p = 1;"));
}

#[test]
fn what_generators_draw_follows_their_seed() {
    let drawn = |body: &str| n("#include <random>", &format!("{body} {LAUNCH}"));
    // The first numbers of glibc's sequence of seed 1.
    assert_eq!(drawn("int n = rand() % 1000;"), Some(383));
    assert_eq!(drawn("srand(1); rand(); int n = rand() % 1000;"), Some(886));
    assert_eq!(drawn("srand(time(0)); int n = rand() % 1000;"), None);
    // The 10,000th number that the standard asks of its generators, by whatever way there.
    assert_eq!(
        drawn("std::mt19937 g; for (int i = 0; i < 9999; i++) g(); int n = g() % 1000000u;"),
        Some(123_659_995 % 1_000_000)
    );
    // Numbers of a long loop are passed over by its trip count.
    assert_eq!(
        drawn(
            "float *x = (float *)malloc(400000); srand(1);
               for (int i = 0; i < 99999; i++) x[i] = rand() / (float)RAND_MAX;
               int n = rand();"
        ),
        drawn("srand(1); int n = 0; for (int i = 0; i < 100000; i++) n = rand();")
    );
    // Under a condition on what is not known, how many were drawn is not known.
    assert_eq!(drawn("if (time(0) > 3) rand(); int n = rand();"), None);
}

#[test]
fn launches_in_loops_of_powers_are_all_made() {
    let body = "for (int n = 6; n <= 48; n *= 2) { int *d; cudaMalloc(&d, n * 4);
                  for (int i = 0; i < 100000; i++) { float x = i; check(x); } k<<<n, 32>>>(d, n); }";
    let sites = launches(
        "float sum; void check(float x) { for (int i = 0; i < 9; i++) sum += x; }",
        body,
    );
    let n: Vec<Option<i64>> = sites.iter().map(|site| site.arguments[1]).collect();
    assert_eq!(n, [6, 12, 24, 48].map(Some));
}

#[test]
fn a_process_that_no_launcher_started_is_the_only_one() {
    let text = "__global__ void k(int *data, int n) {}
        int main(int argc, char **argv) { int size, rank; MPI_Init(&argc, &argv);
          MPI_Comm_size(MPI_COMM_WORLD, &size); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
          int n = 1024 * (rank + 1) / size; k<<<n / 32, 32>>>(nullptr, n); return 0; }";
    let n = |environment: &[(&str, &str)]| ran_under(text, &[], environment).sites[0].arguments[1];
    assert_eq!(n(&[]), Some(1024));
    assert_eq!(n(&[("OMPI_COMM_WORLD_SIZE", "4")]), Some(256));
    assert_eq!(n(&[("OMPI_COMM_WORLD_SIZE", "")]), None);
}

#[test]
fn loops_without_an_end_are_left() {
    for body in [
        "int n = 1; while (n) { n = n == 7 ? 1 : n + 1; }",
        "int n = 1; for (;;) n ^= 1;",
        "int n = 0; for (long i = 0; i < 1L << 60; i++) n ^= 5;",
        "int n = 5; for (int i = 0; i < 10; i++) n /= i;",
        // Much memory, again and again.
        "int n = 1; char *p = (char *)malloc(30000000);
         for (int i = 0; i < 1000000; i++) { memset(p, i, 30000000); usleep(1); for (int j = 0; j < 9; j++) p[j] = j; }",
    ] {
        assert!(
            launches("", &format!("{body} {LAUNCH}")).len() <= 1,
            "{body}"
        );
    }
}

/// 10 SMs of 1536 threads and 100 KiB.
fn small_gpu() -> Device {
    Device {
        name: "small".to_owned(),
        properties: vec![
            ("multiProcessorCount", 10),
            ("warpSize", 32),
            ("maxThreadsPerBlock", 1024),
            ("maxThreadsPerMultiProcessor", 1536),
            ("maxBlocksPerMultiProcessor", 16),
            ("sharedMemPerMultiprocessor", 102_400),
        ],
    }
}

#[test]
fn occupancy_queries_are_answered_by_the_target_and_said_to_be_assumed() {
    let launched = |body: &str| {
        let text = format!(
            "__global__ void k(int *data, int n) {{ if (threadIdx.x < n) n = data[threadIdx.x]; }}\n\
             int main() {{ int *d; cudaMalloc(&d, 4096); {body} return 0; }}\n"
        );
        let sites = ran_on(Some(small_gpu()), &text, &[], &[]).sites;
        assert_eq!(sites.len(), 1, "{body}");
        let site = &sites[0];
        (
            site.grid.map(|grid| grid[0]),
            site.block.map(|block| block[0]),
            site.assumes_residency,
        )
    };
    // 1536 threads are two blocks of 768, and one of 1024.
    assert_eq!(
        launched(
            "int least, block; cudaOccupancyMaxPotentialBlockSize(&least, &block, k, 0, 0);
             k<<<least, block>>>(d, 8);"
        ),
        (Some(20), Some(768), true)
    );
    assert_eq!(
        launched(
            "int least, block; cudaOccupancyMaxPotentialBlockSize(&least, &block, k, 0, 512);
             k<<<least, block>>>(d, 8);"
        ),
        (Some(30), Some(512), true)
    );
    // Shared memory: two blocks of 40 KiB. Threads: six of 256.
    let counted = |shared: u32| {
        launched(&format!(
            "int blocks; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 256, {shared});
             k<<<blocks * 10, 256, {shared}>>>(d, 8);"
        ))
    };
    assert_eq!(counted(40_960), (Some(20), Some(256), true));
    assert_eq!(counted(0), (Some(60), Some(256), true));
    assert_eq!(launched("k<<<3, 64>>>(d, 8);"), (Some(3), Some(64), false));
}

#[test]
fn texts_are_taken_apart_as_the_libraries_do() {
    let cases = [
        ("sscanf(\"--n=24,7\", \"--n=%d,%d\", &m, &n);", 7),
        ("sscanf(\"8 x 2.5\", \"%d x %f\", &n, &f); n += f * 2;", 13),
        ("n = sscanf(\"a=1\", \"b=%d\", &m);", 0),
        ("n = sscanf(\"3;4\", \"%d,%d\", &m, &n);", 1),
        (
            "char *w = strtok(\"a=12=5\", \"=\"); w = strtok(NULL, \"=\"); n = atoi(w);",
            12,
        ),
        ("n = strtok(\"==\", \"=\") == NULL ? 3 : 4;", 3),
        (
            "string s = \"--size=64\"; string q(s, 2, s.find('=') - 2); n = q == \"size\";",
            1,
        ),
        (
            "string s = \"--size=64\"; n = atoi(string(s, s.find('=') + 1, s.length() - 1).c_str());",
            64,
        ),
        (
            "string s = \"flag\"; n = s.find('=') == string::npos ? 5 : 6;",
            5,
        ),
        (
            "string s = \"--n=9\"; n = s.compare(0, 4, \"--n=\") == 0;",
            1,
        ),
        (
            "n = string(12, 'x').size() + string(\"abcdef\", 4).size();",
            16,
        ),
        (
            "char **at = std::find(argv, argv + argc, string(\"16\")); n = at != argv + argc ? 3 : 4;",
            3,
        ),
        (
            "char **end = argv + argc, **at = std::find(argv, end, string(\"-nx\")); n = at == end ? 5 : 6;",
            5,
        ),
        (
            "int all[] = {4, 8, 16}; n = *std::find(all, all + 3, 8) + (std::find(all, all + 3, 9) == all + 3);",
            9,
        ),
        // Elements of a container that nothing was said of are empty texts.
        (
            "vector<string> v(10); v.push_back(\"q\"); for (auto &s : v) n += s == \"q\";",
            1,
        ),
    ];
    for (body, expected) in cases {
        let body = format!("int n = 0, m = 0; float f = 0; {body} {LAUNCH}");
        assert_eq!(n("using namespace std;", &body), Some(expected), "{body}");
    }
}

#[test]
fn a_list_says_how_long_an_array_is() {
    let sizes = "int sizes[] = {32, 64, 128}; char name[] = \"four\";";
    let body =
        format!("{sizes} int n = sizeof(sizes) / sizeof(int) * 100 + sizeof(name); {LAUNCH}");
    assert_eq!(n("", &body), Some(305));
    let body = format!("int n = sizeof(all) / sizeof(*all); {LAUNCH}");
    assert_eq!(
        n("static const float all[] = {1, 2, 3, 4};", &body),
        Some(4)
    );
}

#[test]
fn what_a_function_that_is_read_in_part_is_given_to_write_is_unknown() {
    let turns =
        "for (int i = 0; i < 100000; i++) { t = i * 7 % 13; if (in[i] > t) puts(\"no\"); }\n"
            .repeat(80);
    let long = format!(
        "void check(int *out, const int *in, int &count) {{\nint t = 0;\n{turns}*out = 5; count = 9; }}"
    );
    let call = "int n = 1, m = 2, kept = 3; check(&n, &kept, m);";
    assert_eq!(n(&long, &format!("{call} {LAUNCH}")), None);
    assert_eq!(n(&long, &format!("{call} n = m; {LAUNCH}")), None);
    assert_eq!(n(&long, &format!("{call} n = kept; {LAUNCH}")), Some(3));
}

#[test]
fn a_map_whose_type_has_another_name_is_one() {
    let found = n(
        "struct Option { int value; };
         struct Options { typedef std::map<std::string, Option> Map; Map all;
           void add(const std::string &name, int value) { Option made; made.value = value; all[name] = made; }
           int get(const std::string &name) const { Map::const_iterator at = all.find(name);
             return at == all.end() ? -1 : at->second.value; } };",
        &format!(
            "Options options; options.add(\"size\", 7); int n = options.get(\"size\"); {LAUNCH}"
        ),
    );
    assert_eq!(found, Some(7));
}

#[test]
fn what_a_graph_holds_is_done_as_often_as_it_is_launched() {
    let counts = |body: &str| {
        let text = format!(
            "__global__ void k(int *data, int n) {{ data[threadIdx.x] = n; }}\n\
             int main() {{ int *d; cudaStream_t s; cudaGraph_t g; cudaGraphExec_t e; {body} return 0; }}\n"
        );
        let found = ran(&text, &[]);
        let launches = found.events.iter().filter_map(|event| match event.kind {
            HostEventKind::Launch(_) => Some(event.often.number()),
            _ => None,
        });
        let launches: Vec<Option<u64>> = launches.collect();
        let sites: Vec<Option<u64>> = found.sites.iter().map(|site| site.count).collect();
        assert_eq!(launches, sites);
        launches
    };
    let capture = "cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
        for (int i = 0; i < 10; i++) k<<<4, 64, 0, s>>>(d, 1);
        cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, NULL, NULL, 0);";
    assert_eq!(
        counts(&format!(
            "{capture} for (int i = 0; i < 300; i++) cudaGraphLaunch(e, s);"
        )),
        [Some(3000)]
    );
    // Made in the first turn of the loop that launches it.
    let lazily = format!(
        "bool made = false; for (int i = 0; i < 50; i++) {{
           if (!made) {{ {capture} made = true; }} cudaGraphLaunch(e, s); }}"
    );
    assert_eq!(counts(&lazily), [Some(500)]);
    // Captured again in each turn, with what the turn launches.
    let again = "for (int i = 0; i < 5; i++) {
           cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
           k<<<4, 64, 0, s>>>(d, i);
           cudaStreamEndCapture(s, &g);
           if (i == 0) cudaGraphInstantiate(&e, g, NULL, NULL, 0);
           else cudaGraphExecUpdate(e, g, NULL);
           cudaGraphLaunch(e, s); cudaGraphLaunch(e, s); }";
    assert_eq!(counts(again), [Some(2); 5]);
    // Two of them, and how often one is launched is not known.
    let two = format!(
        "{capture} cudaGraphLaunch(e, s);
         cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal); k<<<8, 64, 0, s>>>(d, 2);
         cudaStreamEndCapture(s, &g); cudaGraphInstantiate(&e, g, NULL, NULL, 0);
         for (int i = 0; i < time(0); i++) cudaGraphLaunch(e, s);"
    );
    assert_eq!(counts(&two), [Some(10), None]);
    // No launch of it is in sight.
    assert_eq!(counts(capture), [Some(10)]);
}

#[test]
fn turns_of_a_long_loop_represent_those_that_differ_by_its_counter() {
    let found = |body: &str| {
        let text = format!(
            "__global__ void k(int *to, int *from, int n) {{ to[threadIdx.x] = from[n]; }}\n\
             int main() {{ int *a, *b; cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); {body} return 0; }}\n"
        );
        let found = ran(&text, &[]);
        assert!(!found.is_cut, "{body}");
        let launches = found.events.iter().filter_map(|event| match event.kind {
            HostEventKind::Launch(_) => event.often.number(),
            _ => None,
        });
        (launches.sum::<u64>(), found.sites)
    };
    let (times, sites) =
        found("for (int t = 0; t < 1000001; t++) { k<<<4, 64>>>(a, b, t); std::swap(a, b); }");
    assert_eq!(times, 1_000_001);
    assert!(sites.len() < 200, "{}", sites.len());
    let counters: Vec<i64> = sites.iter().filter_map(|site| site.arguments[2]).collect();
    assert!(counters.is_sorted() && counters.len() == sites.len());
    assert!(sites.iter().all(|site| site.extents[0] == Some(4096)));
    assert_eq!(
        (counters.first(), counters.last()),
        (Some(&0), Some(&1_000_000))
    );
    assert!(
        sites
            .iter()
            .any(|site| site.represents && site.count.is_none())
    );
    // A launch that the counter does not change is one.
    let (times, sites) =
        found("for (int t = 0; t < 50000; t++) { k<<<4, 64>>>(a, b, t); k<<<1, 1>>>(b, a, 7); }");
    assert_eq!(times, 100_000);
    let same: Vec<_> = sites
        .iter()
        .filter(|site| site.grid == Some([1, 1, 1]))
        .collect();
    assert_eq!((same.len(), same[0].count), (1, Some(50_000)));
    // A grid that shrinks with it, in a loop that counts down.
    let (times, sites) =
        found("for (int t = 20000; t > 0; t -= 2) k<<<(t + 63) / 64, 64>>>(a, b, t);");
    assert_eq!(times, 10_000);
    let blocks =
        |site: &warplens_host::LaunchSite| (site.arguments[2].unwrap() as u64).div_ceil(64);
    assert!(
        sites
            .iter()
            .all(|site| site.grid == Some([blocks(site), 1, 1]))
    );
    // What some turns alone launch is not told from a few.
    let text = "__global__ void k(int *d, int n) { d[n] = 1; }\n__global__ void rare(int *d) { d[0] = 1; }\n\
        int main() { int *d; for (int t = 0; t < 100000; t++) { k<<<1, 64>>>(d, t); if (t % 1000 == 999) rare<<<1, 1>>>(d); } }";
    let rare = ran(text, &[]);
    let rare = rare.sites.iter().filter(|site| site.kernel == "rare");
    assert!(rare.clone().all(|site| !site.represents));
}

#[test]
fn options_are_found_as_the_helpers_of_the_samples_do() {
    let n = |read: &str, arguments: &[&str]| {
        let text = format!(
            "__global__ void k(int *data, int n) {{ data[n] = 1; }}\n\
             int main(int argc, char **argv) {{ int *d; int n = 5; {read} k<<<1, 64>>>(d, n); }}\n"
        );
        ran(&text, arguments).sites[0].arguments[1]
    };
    let guarded = "if (checkCmdLineFlag(argc, (const char **)argv, \"n\"))
        n = getCmdLineArgumentInt(argc, (const char **)argv, \"n\");";
    assert_eq!(n(guarded, &["-v", "--n=1000"]), Some(1000));
    assert_eq!(n(guarded, &["-n"]), Some(0));
    assert_eq!(n(guarded, &["nodes=7"]), Some(5));
    let with_sign = "n = getCmdLineArgumentInt(argc, (const char **)argv, \"width=\");";
    assert_eq!(n(with_sign, &["-width=64"]), Some(64));
    let text =
        "char *s; if (getCmdLineArgumentString(argc, (const char **)argv, \"s\", &s)) n = atoi(s);";
    assert_eq!(n(text, &["-s=12"]), Some(12));
    assert_eq!(n(text, &[]), Some(5));
}

#[test]
fn buffers_of_the_bindings_are_as_large_as_what_they_are_made_of() {
    let text = "__global__ void k(float *d, int n) { d[n] = 1; }\n\
        int main() { std::vector<float> v(1000, 0.5f); cl::Context c; cl::CommandQueue q;
        cl::Buffer of_range(c, v.begin(), v.end(), true);
        cl::Buffer of_size(c, CL_MEM_WRITE_ONLY, sizeof(float) * 64);
        cl::Buffer filled(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, 256, v.data());
        hipLaunchKernelGGL(k, 1, 64, 0, 0, of_range, 1);
        hipLaunchKernelGGL(k, 1, 64, 0, 0, of_size, 2);
        hipLaunchKernelGGL(k, 1, 64, 0, 0, filled, 3);
        cl::copy(q, v.begin(), v.end(), of_range); cl::copy(q, of_range, v.begin(), v.end()); }";
    let found = ran(text, &[]);
    let extents: Vec<Option<u64>> = found.sites.iter().map(|site| site.extents[0]).collect();
    assert_eq!(extents, [Some(4000), Some(256), Some(256)]);
    let copies = found.events.iter().filter_map(|event| match &event.kind {
        HostEventKind::Copy(copy) => Some((copy.direction?, copy.size.bytes?)),
        _ => None,
    });
    let to = Direction::HostToDevice;
    let expected = [
        (to, 4000),
        (to, 256),
        (to, 4000),
        (Direction::DeviceToHost, 4000),
    ];
    assert_eq!(copies.collect::<Vec<_>>(), expected);
}

#[test]
fn what_is_exchanged_is_known_on_both_sides() {
    let text = "template <class T> struct Buffer {
          T *data = nullptr; size_t size = 0;
          explicit Buffer(size_t n) : size(n) { cudaMalloc(&data, n * sizeof(T)); }
          Buffer(Buffer &&other) : data(std::exchange(other.data, nullptr)), size(std::exchange(other.size, 0)) {}
        };
        __global__ void k(float *a, float *b, int n) { a[n] = b[n]; }
        int main() { Buffer<float> a(100), b(200); std::swap(a, b);
          k<<<1, 64>>>(a.data, b.data, a.size);
          float *p, *q; cudaMalloc(&p, 16); cudaMalloc(&q, 32); std::swap(p, q); k<<<1, 64>>>(p, q, 0);
          std::vector<float> v(10), w(20); std::swap(v, w); k<<<1, 64>>>(v.data(), w.data(), v.size());
          int old = std::exchange(p, q) == q; Buffer<float> c(std::move(a)); k<<<1, 64>>>(p, c.data, c.size);
          std::unique_ptr<float[]> u(new float[5]), s(new float[6]); std::swap(u, s); k<<<1, 64>>>(u.get(), s.get(), 1); }";
    let sites = ran(text, &[]).sites;
    let seen: Vec<(Option<u64>, Option<u64>, Option<i64>)> = sites
        .iter()
        .map(|site| (site.extents[0], site.extents[1], site.arguments[2]))
        .collect();
    assert_eq!(
        seen,
        [
            (Some(800), Some(400), Some(200)),
            (Some(32), Some(16), Some(0)),
            (Some(80), Some(40), Some(20)),
            (Some(16), Some(800), Some(200)),
            (Some(24), Some(20), Some(1)),
        ]
    );
}

#[test]
fn arguments_are_gone_through_as_programs_of_today_do() {
    let n = |body: &str| {
        let text = format!(
            "__global__ void k(int *data, int n) {{ data[n] = 1; }}\n\
             int main(int argc, char **argv) {{ int *d; int n = 5; {body} k<<<1, 64>>>(d, n); }}\n"
        );
        let sites = ran(&text, &["--width=640", "--n", "3"]).sites;
        sites[0].arguments[1]
    };
    assert_eq!(
        n("std::vector<std::string> args(argv + 1, argv + argc);
           for (size_t i = 0; i < args.size(); i++) if (args[i] == \"--n\") n = std::stoi(args[++i]);"),
        Some(3)
    );
    assert_eq!(
        n(
            "for (const auto &arg : std::vector<std::string_view>(argv, argv + argc)) if (arg == \"--n\") n = 8;"
        ),
        Some(8)
    );
    assert_eq!(
        n("std::string_view a = argv[1]; auto text = a.substr(8);
           std::from_chars(text.data(), text.data() + text.size(), n);"),
        Some(640)
    );
    assert_eq!(
        n("std::string s = argv[2]; std::from_chars(s.data(), s.data() + s.size(), n);"),
        Some(5)
    );
    // What is not known is not read either.
    assert_eq!(
        n("char s[64]; fgets(s, 64, stdin); std::from_chars(s, s + 64, n);"),
        None
    );
}
