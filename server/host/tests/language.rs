//! The language of host programs in a run: what their expressions, functions and objects come to, and what they do not.

mod common;

use common::running::{LAUNCH, READ, come_to, launches};

#[test]
fn fields_hold_what_their_types_hold() {
    let before = "struct Flags { unsigned level : 3; int offset : 4; unsigned on : 1; int rest; };
        struct Sizes { int n; unsigned char few; Sizes(double of) : n(of), few(of) {} };";
    let cases = [
        (
            "Flags f = {9, 8, 3, 3}; n = f.level + f.on + f.rest;",
            Some(5),
        ),
        (
            "Flags f = {0, 7, 0, 0}; f.offset += 2; n = f.offset;",
            Some(-7),
        ),
        (
            "Flags f; f.level = 6; for (int i = 0; i < 20; i++) f.level++; n = f.level;",
            Some(2),
        ),
        (
            "Sizes s(300.9); s.few += 1; n = s.n * 2 + s.few;",
            Some(645),
        ),
        ("Sizes s(1); s.n = 7.9; n = s.n * 2;", Some(14)),
    ];
    come_to(before, &cases);
    let unknown = format!("{READ} Flags f; f.level = u; n = f.level;");
    come_to(before, &[(&unknown, None)]);
}

#[test]
fn parts_between_commas_happen_in_turn() {
    let cases = [
        ("n = (g = 4, g + 1);", Some(5)),
        (
            "int x = 3; int y = (x = 5, twice(x), x + g); n = y;",
            Some(10),
        ),
        (
            "int x = 1; int y = ((x += 2), (x *= 3)); n = x * 100 + y;",
            Some(909),
        ),
        ("int y = (g = u, g + 1); n = y;", None),
    ];
    let cases = cases.map(|(body, expected)| (format!("{READ} {body}"), expected));
    let cases: Vec<(&str, Option<i64>)> =
        cases.iter().map(|(body, n)| (body.as_str(), *n)).collect();
    come_to(
        "int g = 1; int twice(int v) { g = v; return v * 2; }",
        &cases,
    );
}

#[test]
fn exceptions_go_to_the_clause_that_catches_them() {
    let before = "struct Failure : std::runtime_error { int code; Failure(int c) : code(c) {} };
        int checked(int x) { if (x > 3) throw 8; return x; }
        int sum(int most) { int s = 0; for (int i = 0; i < most; i++) s += checked(i); return s; }
        int kind(int x) { try { if (x == 0) throw Failure(4); if (x == 1) throw 2.5; return 9; }
          catch (int) { return 1; } catch (const std::exception &e) { return 2; } catch (...) { return 3; } }";
    let cases = [
        (
            "try { n = 1; checked(5); n = 5; } catch (int e) { n = n + e; }",
            Some(9),
        ),
        (
            "try { n = sum(9); n = 2; } catch (int e) { n += e; }",
            Some(8),
        ),
        ("try { n = sum(4); } catch (int e) { n += e; }", Some(6)),
        ("n = kind(0) * 100 + kind(1) * 10 + kind(2);", Some(239)),
        (
            "try { throw Failure(40); } catch (const Failure &f) { n = f.code; }",
            Some(40),
        ),
        (
            "try { n = std::stoi(\"x\"); } catch (const std::exception &e) { n = 13; }",
            Some(13),
        ),
        (
            "std::vector<int> v(2); try { n = 4; n = v.at(1) + v.at(5); } catch (const std::out_of_range &) { n += 9; }",
            Some(13),
        ),
        (
            "try { n = std::stoi(\"12k\"); } catch (const std::exception &e) { n = 13; }",
            Some(12),
        ),
        (
            "for (int i = 0; i < 6; i++) { try { n += checked(i); } catch (int) { n += 100; continue; } n += 10; }",
            Some(246),
        ),
        (
            "try { try { throw 3; } catch (long) { n = 1; } n = 2; } catch (int e) { n += e; }",
            Some(3),
        ),
    ];
    come_to(before, &cases);
    // Whether it is thrown is not known.
    for body in [
        "n = 1; try { n = 2; checked(u); n = 3; } catch (int) { n = n * 2; }",
        "try { n = checked(u) > 9; } catch (int e) { n = e; }",
        "n = 4; try { if (u) throw 1; } catch (...) { n = 5; }",
    ] {
        come_to(before, &[(&format!("{READ} {body}"), None)]);
    }
    // No clause goes on.
    let body =
        format!("{READ} n = 4; try {{ if (u) throw 1; n += 2; }} catch (...) {{ return 1; }}");
    come_to(before, &[(&body, Some(6))]);
}

#[test]
fn behind_what_ends_the_program_nothing_is_launched() {
    let before = "void usage() { puts(\"usage\"); exit(1); }
        void check(int ok) { if (!ok) throw std::runtime_error(\"no\"); }";
    let made = |body: &str| launches(before, &format!("int n = 3; {body} {LAUNCH}")).len();
    assert_eq!(made("if (argc < 5) usage();"), 0);
    assert_eq!(made("if (argc < 2) usage();"), 1);
    assert_eq!(made("check(argc == 7);"), 0);
    assert_eq!(made("check(argc == 2);"), 1);
    assert_eq!(made(&format!("{READ} if (u) usage(); check(u);")), 1);
}

#[test]
fn streams_of_characters_are_read_part_by_part() {
    let cases = [
        (
            "std::stringstream in(\"4,5,,6\"); std::string t; int all = 0;
             while (std::getline(in, t, ',')) { all++; if (!t.empty()) n += std::stoi(t); } n += all * 100;",
            Some(415),
        ),
        (
            "std::istringstream in(\"a\\nbcd\\n\"); std::string t;
             while (std::getline(in, t)) n = n * 10 + t.size();",
            Some(13),
        ),
        ("std::string t = \"7\"; std::getline(std::cin, t); n = t.size();", None),
        (
            "std::ifstream in(\"sizes.txt\"); std::string t; n = 3;
             while (std::getline(in, t)) n += std::stoi(t);",
            None,
        ),
    ];
    come_to("", &cases);
}

#[test]
fn functions_that_call_themselves_are_followed() {
    let before = "int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        constexpr int power(int of, int n) { return n == 0 ? 1 : of * power(of, n - 1); }
        int odd(int n); int even(int n) { return n == 0 ? 1 : odd(n - 1); }
        int odd(int n) { return n == 0 ? 0 : even(n - 1); }
        int turns = 0; void halve(int n) { turns += n; if (n > 1) { halve(n / 2); halve(n / 2); } }
        int kept = 3; int down(int n) { if (n == 0) { kept = 9; return 1; } return down(n - 1); }
        int twice(int x) { return 2 * x; } int third(int x) { return x / 3; }
        int applied(int (*f)(int), int x) { return f(x); }";
    let cases = [
        ("n = fib(12);", Some(144)),
        ("constexpr int q = power(3, 5); n = q;", Some(243)),
        ("n = even(10) * 10 + odd(7);", Some(11)),
        ("halve(8); n = turns;", Some(32)),
        (
            "int (*f)(int) = fib; n = f(10); f = &third; n += f(30) + applied(twice, 4);",
            Some(73),
        ),
        // Too deep, too long, without an end.
        ("n = fib(60);", None),
        ("n = even(-1);", None),
    ];
    come_to(before, &cases);
    for body in ["n = fib(u);", "if (u) n = down(3); n = kept;"] {
        come_to(before, &[(&format!("{READ} {body}"), None)]);
    }
}

#[test]
fn classes_say_their_operators_and_conversions() {
    let before = "struct V { int x, y; V(int a = 0, int b = 0) : x(a), y(b) {}
          V operator+(const V &o) const { return V(x + o.x, y + o.y); }
          V operator-() const { return V(-x, -y); }
          V &operator+=(const V &o) { x += o.x; y += o.y; return *this; }
          V &operator++() { x++; return *this; }
          V operator++(int) { V was = *this; x++; return was; }
          int operator[](int at) const { return at ? y : x; }
          bool operator==(const V &o) const { return x == o.x && y == o.y; }
          bool operator<(const V &o) const { return x < o.x; }
          friend int operator%(const V &a, int by) { return (a.x + a.y) % by; } };
        V operator*(const V &v, int by) { return V(v.x * by, v.y * by); }
        struct Wrapped { int v; operator int() const { return v; } };
        struct Half { int v; explicit operator bool() const { return v > 3; } operator float() const { return v / 2.f; } };
        struct Node { int v; Node *next; };
        struct To { Node *node; Node *operator->() const { return node; } Node &operator*() const { return *node; } };
        struct Tripled { int v; Tripled &operator=(int of) { v = of * 3; return *this; } };
        int three() { return 3.7; } unsigned char few() { return 300; }";
    let cases = [
        (
            "V a(1, 2), b{3, 4}; V c = a + b * 2; c += -a; n = c.x * 100 + c.y;",
            Some(608),
        ),
        ("V a(1, 2); V b = a++; ++a; n = a.x * 10 + b.x;", Some(31)),
        (
            "V a(1, 2), b(1, 2); n = (a == b) + (a != b) * 2 + (a < V(5)) * 4 + a[1] * 10 + a % 2;",
            Some(26),
        ),
        (
            "Wrapped w{41}; n = w + 1; if (w) n += w; long q = w; n += q;",
            Some(124),
        ),
        (
            "Half h{9}, l{1}; if (h) n = 1; if (!l) n += 2; n += h && !l ? 4 : 0; n += (float)h * 10;",
            Some(52),
        ),
        (
            "Node *h = nullptr; for (int i = 0; i < 6; i++) h = new Node{i, h}; for (Node *p = h; p; p = p->next) n += p->v;",
            Some(15),
        ),
        (
            "Node at{4, nullptr}; To p{&at}; p->v += 3; n = p->v;",
            Some(7),
        ),
        ("Tripled t{1}; t = 5; n = t.v;", Some(15)),
        ("n = three() * 2 + few();", Some(50)),
        // Written through what an operator gives: whatever it may be is not known any more.
        (
            "Node at{4, nullptr}; To p{&at}; *p = Node{5, nullptr}; n = at.v;",
            None,
        ),
    ];
    come_to(before, &cases);
    for body in [
        "V a(u), b(1); n = (a + b).x;",
        "Wrapped w{u}; n = w + 1;",
        "Half h{u}; n = h ? 1 : 2;",
    ] {
        come_to(before, &[(&format!("{READ} {body}"), None)]);
    }
}

#[test]
fn templates_are_followed_to_their_members() {
    let before = "template <typename T, int N> struct Policy { static constexpr int twice = N * 2;
          static constexpr int bytes() { return N * sizeof(T); } static int all() { return 2 * bytes(); } };
        template <int N> struct Power { static constexpr int value = 2 * Power<N - 1>::value; };
        template <> struct Power<0> { static constexpr int value = 1; };
        template <typename T> struct Lanes { static const int n = 4; static int of() { return 4; } };
        template <> struct Lanes<double> { static const int n = 2; static int of() { return 2; } };
        template <typename T> struct Held { int n = 4; };
        template <> struct Held<double> { int n = 2; };
        template <typename T> struct Size { static const int n = 4; };
        template <typename T> struct Size<T *> { static const int n = 8; };";
    let cases = [
        (
            "n = Policy<float, 7>::bytes() + Policy<double, 3>::twice * 100;",
            Some(628),
        ),
        ("n = Policy<short, 4>::all();", Some(16)),
        ("n = Power<12>::value;", Some(4096)),
        ("n = Lanes<double>::n * 10 + Lanes<float>::n;", Some(24)),
        // Which of several definitions it is, is not told apart.
        ("n = Lanes<double>::of();", None),
        ("Held<double> h; n = h.n;", None),
        ("n = Power<-1>::value;", None),
    ];
    come_to(before, &cases);
}

#[test]
fn packs_are_folded() {
    let before = "template <typename... A> int sum(A... a) { return (a + ...); }
        template <typename... A> int from(A... a) { return (100 - ... - a); }
        template <typename... A> int squares(A... a) { return ((a * a) + ... + 0) * sizeof...(a); }
        template <typename... A> bool all(A... a) { return (... && (a > 0)); }
        template <typename T> int last(T t) { return t; }
        template <typename T, typename... R> int last(T t, R... r) { return last(r...); }";
    let cases = [
        ("n = sum(1, 2, 3, 4);", Some(10)),
        ("n = from(1, 2) + squares(1, 2) * 100;", Some(1097)),
        ("n = all(1, 2) * 10 + all(1, -1);", Some(10)),
        ("n = last(1, 2, 7);", Some(7)),
        (
            "auto add = [&](auto... x) { ((n += x), ...); }; add(1, 2, 3);",
            Some(6),
        ),
    ];
    come_to(before, &cases);
    come_to(before, &[(&format!("{READ} n = sum(1, u);"), None)]);
}

#[test]
fn what_a_pointer_may_lead_to_is_not_known_after_it_was_written() {
    let before = "struct Holder { int *at; }; int *either(int *a, int *b, int u) { if (u) return a; return b; }
        void set(int *to);";
    let unknown = [
        "int a = 1, b = 2; int *p = u ? &a : &b; *p = 7; n = b;",
        "int a = 1, b = 2; int *p; if (u > 3) p = &a; else p = &b; *p = 7; n = a;",
        "int a = 1, b = 2; int *p = &a; if (u > 3) p = &b; p[0] += 7; n = a;",
        "int a = 1, b = 2; int *p = u ? &a : &b; p[0] = 7; a = 5; p[0] = 8; n = a;",
        "int a = 1, b = 2; int *t[2] = {&a, &b}; *t[u & 1] = 7; n = a;",
        "int a = 1, b = 2; Holder h; h.at = u ? &a : &b; (*h.at)++; n = b;",
        "int a = 1, b = 2; *either(&a, &b, u) = 7; n = b;",
        "int v[4] = {1, 2, 3, 4}; int *p = v; while (u-- > 0) *p++ = 9; n = v[2];",
        "int a = 1, b = 2; int *p = u ? &a : &b; memset(p, 0, 4); n = b;",
        "int a = 1, b = 2; int *p = u ? &a : &b; set(p); n = a;",
    ];
    for body in unknown {
        come_to(before, &[(&format!("{READ} {body}"), None)]);
    }
    // The twins: the pointer is known, or leads elsewhere.
    let known = [
        ("int a = 1, b = 2; int *p = u ? &b : &b; *p = 7; n = b;", 7),
        (
            "int a = 1, b = 2, c = 3; int *p = u ? &a : &b; *p = 7; n = c;",
            3,
        ),
        (
            "int a = 1, b = 2; int *p = u ? &a : &b; int s = *p; n = a + b;",
            3,
        ),
        (
            "int a = 1, b = 2; int *p = &a; if (u > 3) p = &b; p = &a; *p = 5; n = a + b;",
            7,
        ),
        (
            "int v[4] = {1, 2, 3, 4}; int s = v[u & 3]; s++; n = v[2];",
            3,
        ),
        (
            "int v[2][2] = {{1, 2}, {3, 4}}; int s = v[u & 1][1] + v[1][u & 1]; n = v[1][0] + v[0][1];",
            5,
        ),
    ];
    for (body, expected) in known {
        come_to(before, &[(&format!("{READ} {body}"), Some(expected))]);
    }
}

#[test]
fn what_a_method_calls_is_the_object_s_own() {
    let before = "struct Op { virtual ~Op() = default; virtual int width() const { return 64; } virtual int rows() const = 0;
            int plain() const { return 1; } int area() const { return width() * rows() + plain(); } };
        struct Wide : Op { int width() const override { return 100; } int rows() const override { return 3; } int plain() const { return 9; } };
        struct Tall : Wide { int rows() const override { return 7; } };
        template <class T> struct Base { int twice() { return 2 * static_cast<T *>(this)->once(); } };
        struct Own : Base<Own> { int once() { return 21; } };";
    let cases = [
        ("Wide w; n = w.area();", Some(301)),
        ("Tall t; Op *p = &t; n = p->area();", Some(701)),
        ("Op *p = new Tall; n = p->area() + p->width();", Some(801)),
        (
            "std::unique_ptr<Op> p(new Wide); const Op &o = *p; n = o.area();",
            Some(301),
        ),
        ("Own o; n = o.twice();", Some(42)),
    ];
    come_to(before, &cases);
}

#[test]
fn arrays_take_braces_within_braces() {
    let before = "struct Config { int threads, tile; };";
    let cases = [
        (
            "std::array<int, 3> a{{8, 16, 32}}; n = a.front() * 1000 + a[1] * 10 + a.size();",
            Some(8163),
        ),
        (
            "std::array<int, 3> a = {8, 16, 32}; n = a.back();",
            Some(32),
        ),
        (
            "std::array<Config, 2> all{{{64, 1}, {128, 2}}}; for (auto &c : all) n = n * 1000 + c.threads + c.tile;",
            Some(65130),
        ),
        (
            "const std::array<Config, 2> all = {{{64, 1}, {128, 2}}}; n = all[1].threads;",
            Some(128),
        ),
        (
            "Config all[] = {{64, 1}, {128, 2}}; n = all[1].threads + all[0].tile;",
            Some(129),
        ),
    ];
    come_to(before, &cases);
}

#[test]
fn arrays_that_nothing_is_in_are_gone_through_as_well() {
    let before = "";
    let cases = [
        (
            "int *all[3]; for (auto &one : all) { one = new int(2); n++; }",
            Some(3),
        ),
        (
            "int all[5]; for (int &one : all) one = 7; for (int one : all) n += one;",
            Some(35),
        ),
    ];
    come_to(before, &cases);
}

#[test]
fn conditions_declare_what_they_ask() {
    let before = "";
    let cases = [
        ("if (int v = 5; v > 3) n = v; else n = 1;", Some(5)),
        ("if (int v = 5) n = v + 1;", Some(6)),
        ("if (const char *e = nullptr) n = 2; else n = 3;", Some(3)),
        (
            "switch (int z = 4; z) { case 4: n = 8; break; default: n = 9; }",
            Some(8),
        ),
        (
            "int left = 3; while (int q = left) { n += q; left--; }",
            Some(6),
        ),
    ];
    come_to(before, &cases);
}

#[test]
fn elements_of_containers_bind_what_a_template_is_given() {
    let before = "#include <vector>
        template <class T> int bytes(const std::vector<T> &v) { return v.size() * sizeof(T); }
        template <class T> int whole(const T &v) { return v.size(); }
        struct Matrix { std::vector<double> values; };";
    come_to(
        before,
        &[
            ("std::vector<short> v(10); n = bytes(v);", Some(20)),
            (
                "std::vector<double> v; v.push_back(1); n = bytes(v);",
                Some(8),
            ),
            (
                "Matrix m; m.values.resize(5); n = bytes(m.values);",
                Some(40),
            ),
            ("std::vector<int> v(7); n = whole(v);", Some(7)),
        ],
    );
}
