//! Programs in the C++ of today that are run: class templates that own device memory, containers in classes, loops over
//! elements, tables of kernels.

mod common;

use common::running::{LAUNCH, data, launches, n, ran, words};
use warplens_host::{Direction, HostEventKind};

/// Device memory that frees itself, as many programs write it anew.
const BUFFER: &str = "
    template <typename T> class Buffer {
     public:
      explicit Buffer(size_t count) : count_(count) { cudaMalloc(&data_, count * sizeof(T)); }
      explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) { upload(host); }
      ~Buffer() { cudaFree(data_); }
      void upload(const std::vector<T>& host) {
        cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
      }
      T* get() const { return data_; }
      size_t size() const { return count_; }
     private:
      T* data_ = nullptr;
      size_t count_;
    };
    std::vector<int> ramp(size_t count) {
      std::vector<int> values(count);
      for (size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i % 7);
      return values;
    }
";

/// The extent of the first argument of the only launch, and its second argument.
fn extent(before: &str, body: &str) -> (Option<u64>, Option<i64>) {
    let sites = launches(before, body);
    assert_eq!(sites.len(), 1, "{body}");
    (sites[0].extents[0], sites[0].arguments[1])
}

#[test]
fn a_class_template_is_walked_with_its_arguments() {
    let launch = "k<<<1, 32>>>(b.get(), b.size());";
    assert_eq!(
        extent(BUFFER, &format!("Buffer<int> b(1000); {launch}")),
        (Some(4000), Some(1000))
    );
    // The constructor is chosen by the type of what it is given.
    let body = format!("std::vector<int> h(300); Buffer<int> b(h); {launch}");
    assert_eq!(extent(BUFFER, &body), (Some(1200), Some(300)));
    let body = format!("Buffer<int> b(ramp(200)); {launch}");
    assert_eq!(extent(BUFFER, &body), (Some(800), Some(200)));
    let derived = format!(
        "{BUFFER} template <class U, int N> struct Tile : Buffer<U> {{ Tile() : Buffer<U>(N * N) {{}} }};"
    );
    let body = format!("Tile<int, 16> b; {launch}");
    assert_eq!(extent(&derived, &body), (Some(1024), Some(256)));
}

#[test]
fn what_a_container_holds_reaches_the_kernel() {
    let found = data(
        BUFFER,
        "Buffer<int> b(ramp(100)); k<<<1, 32>>>(b.get(), 1);",
    );
    let expected: Vec<i32> = (0..100).map(|i| i % 7).collect();
    assert_eq!(found, Some(expected));
}

#[test]
fn a_container_that_is_a_member_is_the_objects_own() {
    let graph = "
        struct Graph {
          std::vector<int> offsets, edges;
          int nodes = 0;
          Graph(int n) : offsets(n + 1), nodes(n) {
            for (int i = 0; i < n; ++i) {
              offsets[i] = edges.size();
              for (int j = 0; j < i % 3; ++j) edges.push_back(i);
            }
            offsets[n] = edges.size();
          }
        };";
    let of = |rest: &str| n(graph, &format!("Graph g(100); {rest} {LAUNCH}"));
    assert_eq!(of("int n = g.edges.size();"), Some(99));
    assert_eq!(of("int n = g.offsets[100] + g.offsets.size();"), Some(200));
    // A copy is another one.
    let copied = "Graph h = g; h.edges.clear(); h.offsets.resize(7);";
    assert_eq!(
        of(&format!(
            "{copied} int n = g.edges.size() * 100 + h.edges.size() * 10 + h.offsets.size();"
        )),
        Some(9907)
    );
    // What gets the object by its address may change its containers.
    assert_eq!(of("unread(&g); int n = g.edges.size();"), None);
    // What gets a member by its address may not change the ones beside it.
    assert_eq!(of("unread(&g.nodes); int n = g.edges.size();"), Some(99));
    assert_eq!(of("unread(&g.nodes); int n = g.nodes;"), None);
}

#[test]
fn a_loop_over_elements_writes_through_its_reference() {
    let few = "std::vector<int> v(10); for (auto& x : v) x = 3; int n = v[4];";
    assert_eq!(n("", &format!("{few} {LAUNCH}")), Some(3));
    let list = "int t[3] = {1, 2, 3}; for (int& x : t) x *= 2; int n = t[1];";
    assert_eq!(n("", &format!("{list} {LAUNCH}")), Some(4));
    let copies = "int t[3] = {1, 2, 3}; for (int x : t) x *= 2; int n = t[1];";
    assert_eq!(n("", &format!("{copies} {LAUNCH}")), Some(2));
    let many = "int at = 0; std::vector<int> v(500); for (int& x : v) x = at++ % 5; int n = v[499] + v.size();";
    assert_eq!(n("", &format!("{many} {LAUNCH}")), Some(504));
    let written = "std::vector<int> v(10); for (int& x : v) unread(&x); int n = v[4];";
    assert_eq!(n("", &format!("{written} {LAUNCH}")), None);
    let pairs = "struct P { int a, b; }; std::vector<P> v; v.push_back({7, 8}); int n = 0;
                 for (auto [a, b] : v) n += a * b;";
    assert_eq!(n("", &format!("{pairs} {LAUNCH}")), Some(56));
}

#[test]
fn each_turn_over_a_container_is_a_launch() {
    let sites = launches(
        "",
        "std::vector<float> times(200); int *d; cudaMalloc(&d, 4);
         for (float& ms : times) { k<<<1, 32>>>(d, 5); cudaEventElapsedTime(&ms, a, b); }",
    );
    assert_eq!(sites.len(), 1);
    assert_eq!(sites[0].count, Some(200));
}

#[test]
fn a_table_of_kernels_launches_each() {
    let text = "
        __global__ void k(int *data, int n) { data[threadIdx.x] = n; }
        __global__ void j(int *data, int n) { data[threadIdx.x] += n; }
        int main() {
          int *d; cudaMalloc(&d, 400);
          const struct { const char *name; void (*kernel)(int *, int); int n; } all[] = {{\"k\", k, 10}, {\"j\", j, 20}};
          for (const auto& each : all) each.kernel<<<1, 32>>>(d, each.n);
          for (const bool first : {true, false}) (first ? k : j)<<<2, 32>>>(d, 7);
        }";
    let found = ran(text, &[]).sites.into_iter();
    let found: Vec<(String, Option<i64>)> =
        found.map(|site| (site.kernel, site.arguments[1])).collect();
    let expected = [("k", 10), ("j", 20), ("k", 7), ("j", 7)];
    let expected = expected.map(|(kernel, n)| (kernel.to_owned(), Some(n)));
    assert_eq!(found, expected);
}

#[test]
fn a_reference_is_another_name() {
    let point = "struct Point { int x, y; std::vector<int> all; };";
    let body = "Point p; p.x = 1; int& r = p.x; r = 50; int n = p.x;";
    assert_eq!(n(point, &format!("{body} {LAUNCH}")), Some(50));
    let body =
        "Point p; auto& all = p.all; all.push_back(4); all.push_back(5); int n = p.all.size();";
    assert_eq!(n(point, &format!("{body} {LAUNCH}")), Some(2));
    // Written through what a member function gives.
    let matrix = "struct Matrix { std::vector<int> v; Matrix(int n) : v(n, 3) {}
                    int& operator()(int i) { return v[i]; } };";
    let body = "Matrix m(8); m(2) = 9; int n = m.v[2];";
    assert_eq!(n(matrix, &format!("{body} {LAUNCH}")), None);
}

#[test]
fn the_algorithms_of_the_library_give_arrays_their_numbers() {
    let sized = |body: &str| {
        let body = format!(
            "std::vector<int> v(200); {body} int *d; cudaMalloc(&d, 800);
             cudaMemcpy(d, v.data(), 800, cudaMemcpyHostToDevice); k<<<1, 32>>>(d, 1);"
        );
        let sites = launches("", &body);
        words(sites[0].contents[0].as_deref()).map(|all| (all[0], all[150]))
    };
    assert_eq!(sized("std::iota(v.begin(), v.end(), 3);"), Some((3, 153)));
    assert_eq!(sized("std::fill(v.begin() + 1, v.end(), 4);"), Some((0, 4)));
    assert_eq!(sized("std::fill_n(v.begin(), 10, 4);"), Some((4, 0)));
    let descending = "for (int i = 0; i < 200; i++) v[i] = 199 - i;";
    assert_eq!(
        sized(&format!("{descending} std::sort(v.begin(), v.end());")),
        Some((0, 150))
    );
    let sums = "std::iota(v.begin(), v.end(), 1); std::partial_sum(v.begin(), v.end(), v.begin());";
    assert_eq!(sized(sums), Some((1, 11476)));
    // By an order that is not read.
    assert_eq!(
        sized(&format!(
            "{descending} std::sort(v.begin(), v.end(), less);"
        )),
        None
    );
    let sum = "std::vector<int> v(200); std::iota(v.begin(), v.end(), 0);
               int n = std::accumulate(v.begin(), v.end(), 5) + *std::max_element(v.begin(), v.end());";
    assert_eq!(n("", &format!("{sum} {LAUNCH}")), Some(20_104));
}

#[test]
fn a_condition_that_is_not_known_leaves_a_length_open() {
    let grown = "std::vector<int> v(10); if (unread()) v.resize(12); int n = v.size();";
    assert_eq!(n("", &format!("{grown} {LAUNCH}")), None);
    let same = "std::vector<int> v(10); if (unread()) v[3] = 12; int n = v.size();";
    assert_eq!(n("", &format!("{same} {LAUNCH}")), Some(10));
}

#[test]
fn what_gets_a_container_may_make_it_longer() {
    let of = |call: &str| {
        let declared = "void change(std::vector<int>& v); void fill(int *v);";
        n(
            declared,
            &format!("std::vector<int> v(10); {call} int n = v.size(); {LAUNCH}"),
        )
    };
    assert_eq!(of("change(v);"), None);
    assert_eq!(of("unread(&v);"), None);
    assert_eq!(of("fill(v.data());"), Some(10));
}

#[test]
fn a_thread_may_write_what_it_is_given() {
    let body = |thread: &str| {
        format!(
            "int *h = (int *)malloc(40); memset(h, 0, 40); {thread} int *d; cudaMalloc(&d, 40);
             cudaMemcpy(d, h, 40, cudaMemcpyHostToDevice); k<<<1, 32>>>(d, 1);"
        )
    };
    assert_eq!(data("", &body("")), Some(vec![0; 10]));
    assert_eq!(data("", &body("std::thread t(work, h); t.join();")), None);
}

#[test]
fn a_pointer_into_an_array_leads_to_its_rest() {
    let body = "int *d; cudaMalloc(&d, 400); k<<<1, 32>>>(d + 10, 1);";
    assert_eq!(extent("", body), (Some(360), Some(1)));
    // Counted in bytes, then in integers.
    let body = "char *d; cudaMalloc(&d, 400); int *p = (int *)(d + 40); k<<<1, 32>>>(p + 1, 1);";
    assert_eq!(extent("", body), (None, Some(1)));
}

#[test]
fn a_function_that_is_handed_on_is_called_with_its_template_arguments() {
    let text = "
        __global__ void k(int *data, int n) { data[threadIdx.x] = n; }
        template <int PARTS, typename T> double run(T *d, int n) { k<<<PARTS, 32>>>((int *)d, n + sizeof(T)); return 1; }
        template <typename T> void test(T *d, double (*f)(T *, int)) { (*f)(d, 1); f(d, 2); }
        struct Case { const char *name; void (*make)(int *, int); };
        void one(int *d, int n) { k<<<1, 64>>>(d, n); }
        int main() {
          int *d; cudaMalloc(&d, 400);
          test(d, run<3, int>);
          Case c = {\"one\", one};
          c.make(d, 9);
        }";
    let found = ran(text, &[]).sites.into_iter();
    let found: Vec<_> = found
        .map(|site| (site.grid, site.block, site.arguments[1]))
        .collect();
    let launch = |grid, block, n| (Some([grid, 1, 1]), Some([block, 1, 1]), Some(n));
    assert_eq!(
        found,
        [launch(3, 32, 5), launch(3, 32, 6), launch(1, 64, 9)]
    );
}

#[test]
fn a_capture_by_value_is_a_copy() {
    let of = |body: &str| n("", &format!("{body} {LAUNCH}"));
    assert_eq!(
        of("int x = 1; auto g = [x]() { return x; }; x = 5; int n = g();"),
        Some(1)
    );
    assert_eq!(
        of("int x = 1; auto g = [=]() { return x; }; x = 5; int n = g();"),
        Some(1)
    );
    assert_eq!(
        of("int x = 1; auto g = [&]() { return x; }; x = 5; int n = g();"),
        Some(5)
    );
    assert_eq!(
        of("int x = 1; auto g = [x]() mutable { x++; return x; }; g(); int n = x;"),
        Some(1)
    );
    let vector = "std::vector<int> v(3); auto g = [v]() mutable { v.push_back(1); }; g(); g();";
    assert_eq!(of(&format!("{vector} int n = v.size();")), Some(3));
}

#[test]
fn what_is_written_through_a_choice_of_variables_is_not_known() {
    let of = |body: &str| {
        let before = "int& big(int& a, int& b) { return a > b ? a : b; }";
        n(
            before,
            &format!("int a = 4, b = 9; {body} int n = b; {LAUNCH}"),
        )
    };
    assert_eq!(of("big(a, b) = 1;"), None);
    assert_eq!(of("(a > b ? a : b) = 50;"), None);
    assert_eq!(of("int& r = a > b ? a : b; r = 3;"), None);
    assert_eq!(of("auto d = [&]() -> int& { return b; }; d() = 7;"), None);
}

#[test]
fn a_copy_of_an_object_has_containers_of_its_own() {
    let classes = "
        struct Box { std::vector<int> v; };
        struct Holder { Box c; Holder(Box& x) : c(x) {} };
        struct Bag { std::vector<int> d{1, 2}; std::vector<int> copy() { return d; } std::vector<int>& own() { return d; } };";
    let of = |body: &str| n(classes, &format!("{body} {LAUNCH}"));
    assert_eq!(
        of("Box x; Holder h(x); h.c.v.push_back(9); int n = x.v.size();"),
        Some(0)
    );
    assert_eq!(
        of(
            "Box x; std::vector<Box> all; all.push_back(x); all[0].v.push_back(5); int n = x.v.size();"
        ),
        Some(0)
    );
    assert_eq!(
        of("Bag b; b.copy().push_back(5); int n = b.d.size();"),
        Some(2)
    );
    assert_eq!(
        of("Bag b; b.own().push_back(5); int n = b.d.size();"),
        Some(3)
    );
}

#[test]
fn what_is_moved_or_changed_in_ways_that_are_not_read_is_not_known() {
    let of = |body: &str| {
        n(
            "",
            &format!("std::vector<int> v(3), w(5); {body} int n = v.size(); {LAUNCH}"),
        )
    };
    assert_eq!(of("auto u = std::move(v);"), None);
    assert_eq!(of("std::swap(v, w);"), Some(5));
    assert_eq!(of("v.swap(w);"), None);
    assert_eq!(of("v.erase(v.begin());"), Some(2));
    assert_eq!(of("v.erase(v.begin() + time(0));"), None);
    assert_eq!(
        of("std::copy(w.begin(), w.end(), std::back_inserter(v));"),
        None
    );
    assert_eq!(of("int f = v.front() + v.at(1);"), Some(3));
}

#[test]
fn what_a_base_class_makes_of_its_members_is_not_skipped() {
    let classes = "
        struct Base { int v = 1; Base() { v = 5; } };
        struct Derived : Base { int w = 3; };
        struct Plain { int n = 1; };
        struct Hiding : Plain { int n = 2; };
        struct Counted { int id = 1; Counted() {} Counted(const Counted& o) : id(o.id + 100) {} };";
    let of = |body: &str| n(classes, &format!("{body} {LAUNCH}"));
    assert_eq!(of("Derived d; int n = d.v;"), None);
    assert_eq!(of("Derived d; int n = d.w;"), Some(3));
    assert_eq!(of("Hiding d; int n = d.n;"), Some(2));
    assert_eq!(of("Counted a; Counted b(a); int n = b.id;"), None);
}

#[test]
fn a_member_that_is_a_reference_names_what_it_was_given() {
    let classes = "
        struct Box { int n = 0; void add() { n++; } };
        struct Holder { Box& b; Box c; Holder(Box& x) : b(x), c(x) {} };
        struct Counter { int& r; Counter(int& x) : r(x) { r++; } };";
    let of = |body: &str| n(classes, &format!("{body} {LAUNCH}"));
    assert_eq!(
        of("Box x; Holder h(x); h.b.add(); h.c.add(); h.c.add(); int n = x.n;"),
        Some(1)
    );
    assert_eq!(of("int x = 0; Counter c(x); int n = x;"), Some(1));
    assert_eq!(of("int x = 0; Counter c(x); c.r = 5; int n = x;"), Some(5));
}

#[test]
fn a_static_variable_stays_and_overloads_are_told_apart() {
    let functions = "
        int next() { static int c = 5; return c++; }
        int chosen(int) { return 1; }
        int chosen(long) { return 2; }
        int chosen(double) { return 3; }";
    let of = |body: &str| n(functions, &format!("{body} {LAUNCH}"));
    assert_eq!(of("next(); next(); int n = next();"), Some(7));
    assert_eq!(
        of("int n = chosen(1) * 100 + chosen(1L) * 10 + chosen(1.0);"),
        Some(123)
    );
}

#[test]
fn parts_of_a_value_have_names() {
    let of = |body: &str| n("struct P { int a, b; };", &format!("{body} {LAUNCH}"));
    assert_eq!(
        of("P p{3, 4}; auto [x, y] = p; x = 9; int n = p.a * 10 + y;"),
        Some(34)
    );
    assert_eq!(
        of("P p{3, 4}; auto& [x, y] = p; x = 9; int n = p.a * 10 + y;"),
        Some(94)
    );
    assert_eq!(
        of("int a[3] = {1, 2, 3}; auto& [u, v, w] = a; u = 50; int n = a[0] + w;"),
        Some(53)
    );
}

#[test]
fn a_variable_of_the_program_is_what_it_was_at_the_start() {
    let of = |before: &str, body: &str| n(before, &format!("{body} {LAUNCH}"));
    assert_eq!(
        of(
            "int g = 3; int h = g + 1;",
            "int n = h; g = 90; n = n * 10 + h;"
        ),
        Some(44)
    );
    assert_eq!(of("int g = 3; int h = g + 1;", "g = 90; int n = h;"), None);
    // Of two the nearest.
    assert_eq!(
        of("int g = 3; namespace other { int g = 50; }", "int n = g;"),
        Some(3)
    );
    let spaces = "namespace one { int g = 3, h = 0; int made() { if (h == 0) { g += 4; h = 1; } return g; } }
         namespace two { int g = 50, h = 0; int made() { if (h == 0) { g += 4; h = 1; } return g; } }";
    assert_eq!(
        of(spaces, "int n = one::made() + two::made() * 100;"),
        Some(5407)
    );
}

#[test]
fn a_class_that_copies_itself_decides_what_a_copy_is() {
    let class = "
        struct Counted { int id = 1; Counted() {} Counted(const Counted& o) : id(o.id + 100) {} };
        struct Plain { int id = 1; };
        struct Own { Own& r; int n = 3; Own() : r(r) {} };
        int of(Counted c) { return c.id; }
        Counted made() { Counted c; c.id = 7; return c; }";
    let of = |body: &str| n(class, &format!("{body} {LAUNCH}"));
    assert_eq!(of("Counted a; Counted b = a; int n = b.id;"), None);
    assert_eq!(of("Counted a; int n = of(a);"), None);
    // A value that a call gives is not copied.
    assert_eq!(of("Counted a = made(); int n = a.id;"), Some(7));
    assert_eq!(of("Plain a; a.id = 4; Plain b = a; int n = b.id;"), Some(4));
    // A reference that is made of itself ends.
    assert_eq!(of("Own o; int n = o.r.n;"), None);
}

#[test]
fn an_object_that_is_made_to_be_called_is_called() {
    let before = "
        struct Held { int block; Held(int b) : block(b) {} void operator()(int *p) const { k<<<1, 32>>>(p, block); } };
        struct Plain { int block; void operator()(int *p) const { k<<<1, 32>>>(p, block); } };
        template <int B> struct Constant { void operator()(int *p) const { k<<<1, 32>>>(p, B); } };";
    for (made, n) in [
        ("Held(96)", 96),
        ("Plain{64}", 64),
        ("Constant<32>()", 32),
        ("Constant<16>{}", 16),
    ] {
        let body = format!("int *p; cudaMalloc(&p, 400); {made}(p);");
        assert_eq!(extent(before, &body), (Some(400), Some(n)), "{made}");
    }
}

/// A base of the same plain name in another namespace, bases in a circle, an object within itself: bounded, the launch is found.
#[test]
fn a_class_may_have_the_name_of_its_base() {
    for before in [
        "namespace detail { struct Size { int n = 7; }; } struct Size : detail::Size { Size() {} };",
        "namespace a { struct Size; } namespace b { struct Other : a::Size { int m; }; } struct Size : b::Other { int n = 7; };",
        "template <class T> struct Holder { T t; }; namespace in { struct Size { int n; }; } struct Size { Holder<Size> own; in::Size other; int n = 7; };",
    ] {
        let sites = launches(
            before,
            "Size s; try { int c = s.n; } catch (Size& e) {} k<<<1, 64>>>(nullptr, s.n);",
        );
        assert_eq!(sites.len(), 1, "{before}");
        assert_eq!(sites[0].block, Some([64, 1, 1]));
    }
}

#[test]
fn a_pointer_to_a_member_function_is_called_for_its_object() {
    let class = "struct Base { int *d; int base; Base() : base(7) { cudaMalloc(&d, 400); }
                   virtual void go(int n) { k<<<1, 32>>>(d, n + base); } };
                 struct Derived : Base { void go(int n) override { k<<<2, 32>>>(d, n); } };
                 struct Tool { static void run(int *d, int n) { k<<<3, 32>>>(d, n); } };";
    let made = |body: &str| -> Vec<(u64, Option<i64>)> {
        let sites = launches(class, body);
        let site = |site: &warplens_host::LaunchSite| {
            (site.grid.map_or(0, |grid| grid[0]), site.arguments[1])
        };
        sites.iter().map(site).collect()
    };
    for body in [
        "Base b; auto f = std::bind(&Base::go, &b, std::placeholders::_1); f(3);",
        "Base b; std::function<void(int)> f = std::bind(&Base::go, &b, 3); f(9);",
        "Base b; auto f = std::mem_fn(&Base::go); f(b, 3);",
        "Base b; std::invoke(&Base::go, b, 3);",
        "Base b; std::thread t(&Base::go, &b, 3); t.join();",
    ] {
        assert_eq!(made(body), [(1, Some(10))], "{body}");
    }
    assert_eq!(
        made("Derived d; std::invoke(&Base::go, &d, 3);"),
        [(2, Some(3))]
    );
    assert_eq!(
        made("int *p; cudaMalloc(&p, 4); std::invoke(&Tool::run, p, 5);"),
        [(3, Some(5))]
    );
}

#[test]
fn vectors_of_the_device_are_copied_from_and_to_the_host() {
    let copies = |body: &str| -> Vec<(Option<Direction>, Option<u64>)> {
        let text = format!("__global__ void k(int *d, int n) {{}}\nint main() {{ {body} }}");
        let events = ran(&text, &[]).events;
        let copies = events.iter().filter_map(|event| match &event.kind {
            HostEventKind::Copy(copy) => Some((copy.direction, copy.size.bytes)),
            _ => None,
        });
        copies.collect()
    };
    let (to, from) = (
        (Some(Direction::HostToDevice), Some(400)),
        (Some(Direction::DeviceToHost), Some(400)),
    );
    let host = "thrust::host_vector<int> h(100);";
    for (body, expected) in [
        (
            format!("{host} thrust::device_vector<int> d = h;"),
            vec![to],
        ),
        (format!("{host} thrust::device_vector<int> d(h);"), vec![to]),
        (
            format!("{host} thrust::device_vector<int> d(h.begin(), h.end()); h = d;"),
            vec![to, from],
        ),
        (
            format!(
                "{host} thrust::device_vector<int> d(100); thrust::copy(d.begin(), d.end(), h.begin());"
            ),
            vec![from],
        ),
        (
            "thrust::device_vector<int> d(100), e = d; std::vector<int> h(100), g = h;".to_owned(),
            vec![],
        ),
    ] {
        assert_eq!(copies(&body), expected, "{body}");
    }
}

#[test]
fn a_tensor_map_that_lies_on_the_device_is_the_one_that_was_copied_there() {
    let text = |launch: &str| {
        format!(
            "struct CUtensorMap;
             __global__ void k(const CUtensorMap *a, const CUtensorMap b) {{}}
             CUtensorMap made(void *p) {{ CUtensorMap m; uint64_t all[2] = {{8192, 4096}}, row[1] = {{16384}};
               uint32_t box[2] = {{64, 128}}, one[2] = {{1, 1}};
               cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, p, all, row, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
                 CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE); return m; }}
             int main() {{ void *p; cudaMalloc(&p, 8192 * 8192); CUtensorMap m = made(p), *d;
               cudaMalloc(&d, sizeof(CUtensorMap)); {launch} }}"
        )
    };
    let members = |launch: &str| -> Vec<(usize, i64)> {
        let sites = ran(&text(launch), &[]).sites;
        let all = sites[0].members.iter();
        let sides = all.filter(|member| member.path == format!("{}[1]", warplens_host::MAP_SIDES));
        sides
            .map(|member| (member.argument, member.value))
            .collect()
    };
    let copy = "cudaMemcpy(d, &m, sizeof(CUtensorMap), cudaMemcpyHostToDevice);";
    assert_eq!(
        members(&format!("{copy} k<<<1, 32>>>(d, m);")),
        [(0, 128), (1, 128)]
    );
    assert_eq!(members("k<<<1, 32>>>(d, m);"), [(1, 128)]);
}
