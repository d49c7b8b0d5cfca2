//! What a program hands on to what is not read, or keeps for a call that comes later, may be written there.

mod common;

use common::running::{LAUNCH, come_to, n, ran};

const BEFORE: &str = "struct Shape { int rows; int columns; std::vector<int> all; };
    static void put(const std::string &text, size_t &to, const std::string &name) { to = std::stol(text); }
    void set(int &to, int value) { to = value; }
    void with(const std::function<void(int)> &handle) { handle(7); }";

#[test]
fn bound_calls_are_made_with_what_they_keep() {
    let bound = "size_t w = 4; std::function<void(std::string)> h =
        std::bind(put, std::placeholders::_1, std::ref(w), \"w\");";
    come_to(
        BEFORE,
        &[
            (&format!("{bound} n = w;"), Some(4)),
            (&format!("{bound} h(argv[1]); n = w;"), Some(16)),
            (
                "int w = 4; using namespace std::placeholders; with(std::bind(set, std::ref(w), _1)); n = w;",
                Some(7),
            ),
            (
                "int w = 4; with(std::bind([](int x, int &to) { to = x + 1; }, std::placeholders::_1, std::ref(w))); n = w;",
                Some(8),
            ),
            // The field alone.
            (
                "Shape s{4, 5, {}}; auto h = std::bind(set, std::ref(s.rows), _1); h(9); n = s.rows * 10 + s.columns;",
                Some(95),
            ),
            // What is bound without `std::ref` is a copy.
            (
                "int w = 4; auto h = std::bind(set, w, 9); h(); n = w;",
                Some(4),
            ),
            (
                "int w = 4, x = 1; auto h = std::bind(set, std::ref(w), x); x = 2; h(); n = w;",
                Some(1),
            ),
            (
                "int w = 4, x = 1; auto h = std::bind(set, std::ref(w), std::cref(x)); x = 2; h(); n = w;",
                Some(2),
            ),
        ],
    );
}

#[test]
fn references_as_values_name_their_variable() {
    come_to(
        BEFORE,
        &[
            ("int w = 4; set(std::ref(w), 9); n = w;", Some(9)),
            (
                "int w = 4; std::thread t(set, std::ref(w), 9); t.join(); n = w;",
                Some(9),
            ),
            (
                "int w = 4; auto r = std::ref(w); set(r, 8); n = w;",
                Some(8),
            ),
            (
                "int w = 4; auto r = std::ref(w); r.get() = 8; n = w;",
                Some(8),
            ),
            (
                "int w = 4; auto r = std::ref(w); w = 6; n = r.get() + 1;",
                Some(7),
            ),
        ],
    );
}

#[test]
fn what_an_unread_callable_may_write_is_unknown() {
    come_to(
        BEFORE,
        &[
            (
                "int w = 4; auto h = std::bind(unread, std::ref(w), _1); h(5); n = w;",
                None,
            ),
            (
                "int w = 4; auto h = std::bind(unread, std::ref(w), _1); w = 3; h(5); n = w;",
                None,
            ),
            ("int w = 4; lib::keep(std::ref(w)); n = w;", None),
            (
                "int w = 4; auto h = lib::bound(std::bind(set, std::ref(w), _1)); h(5); n = w;",
                None,
            ),
            (
                "int w = 4; auto h = lib::bound([&](int x) { w = x; }); w = 5; h(6); n = w;",
                None,
            ),
            // It has no way to this one.
            (
                "int w = 4, x = 3; auto h = lib::bound([&](int y) { w = y; }); h(6); n = x;",
                Some(3),
            ),
        ],
    );
}

#[test]
fn an_unread_function_may_change_the_objects_it_is_given_by_name() {
    let of = |call: &str, asked: &str| {
        let body = format!(
            "int n = 0; std::vector<int> u(3, 1); Shape s{{4, 5, {{1, 2}}}}; std::map<int, int> m; m[1] = 3; {call} n = {asked}; {LAUNCH}"
        );
        n(BEFORE, &body)
    };
    for (asked, known) in [
        ("u.size()", 3),
        ("u[1]", 1),
        ("s.rows", 4),
        ("s.all.size()", 2),
        ("m.size()", 1),
    ] {
        assert_eq!(of("", asked), Some(known), "{asked}");
        assert_eq!(of("lib::foreign(u, s, m);", asked), None, "{asked}");
        assert_eq!(of("object.foreign(u, s, m);", asked), None, "{asked}");
    }
    // These only read.
    for call in [
        "std::cout << std::size(u);",
        "std::vector<std::vector<int>> all; all.push_back(u);",
        "std::vector<int> w; w.insert(w.end(), u.begin(), u.end());",
        "cudaMemcpy(p, u.data(), 12, cudaMemcpyHostToDevice);",
        "lib::foreign(s);",
    ] {
        assert_eq!(of(call, "u.size()"), Some(3), "{call}");
    }
    assert_eq!(of("std::erase_if(u, odd);", "u.size()"), None);
}

#[test]
fn how_long_an_unread_value_is_does_not_follow_from_an_element() {
    come_to(
        "",
        &[
            ("auto w = parse(argv[1]); n = w.size();", None),
            ("auto w = parse(argv[1]); w[3] = 5; n = w.size();", None),
            (
                "auto w = parse(argv[1]); for (int i = 0; i < 4; i++) w[i] = i; n = w.size();",
                None,
            ),
            ("Unread w(3); w[3] = 5; n = w.size();", None),
            (
                "auto w = std::vector<int>{1, 2}; w[1] = 5; n = w.size() * 10 + w[1];",
                Some(25),
            ),
            ("int w[4]; w[3] = 5; n = w[3];", Some(5)),
            ("auto w = new int[4]; w[3] = 5; n = w[3];", Some(5)),
            ("auto *w = (int *)malloc(16); w[3] = 5; n = w[3];", Some(5)),
        ],
    );
}

#[test]
fn launches_of_calls_that_are_not_followed_are_left_out_openly() {
    let of = |again: &str| {
        let done = ran(
            &format!(
                "__global__ void k(int n) {{}}
                 void f(int i) {{ k<<<1, 32>>>(5); {again} }} int main() {{ f(0); }}"
            ),
            &[],
        );
        (done.is_cut, done.sites[0].count)
    };
    // Without an end, past what is followed, and to an end that is not known.
    assert!(of("f(i + 1);").0);
    assert!(of("if (i < 1000) f(i + 1);").0);
    assert!(of("if (time(0) > i) f(i + 1);").0);
    assert_eq!(of("if (i < 20) f(i + 1);"), (false, Some(21)));
}

#[test]
fn options_are_read_through_bound_calls() {
    let reader = r"const auto read = [&args](size_t &at, const std::string &arg,
          const std::initializer_list<std::string> &names, const std::function<void(std::string)> &handle) {
        if (std::find(names.begin(), names.end(), arg) == names.end()) return false;
        if (at + 1 < args.size()) handle(args[++at]); else exit(1);
        return true;
      };
      const auto number = [](const std::string &text, size_t &to, const std::string &name) {
        try { to = std::stol(text); } catch (...) { exit(1); }
      };";
    let of = |words: &str| {
        n(
            BEFORE,
            &format!(
                r#"int n = 0; size_t w = 4, i = 7; std::vector<std::string> args = {{{words}}}; {reader}
                for (size_t at = 0; at < args.size(); ++at) {{
                  using namespace std::placeholders;
                  if (read(at, args[at], {{"--width", "-w"}}, std::bind(number, _1, std::ref(w), "w"))) continue;
                  if (read(at, args[at], {{"-i"}}, std::bind(number, _1, std::ref(i), "i"))) continue;
                }}
                n = w * 1000 + i; {LAUNCH}"#
            ),
        )
    };
    assert_eq!(of(""), Some(4007));
    assert_eq!(of(r#""--width", "256""#), Some(256_007));
    assert_eq!(of(r#""-i", "100", "-w", "32""#), Some(32_100));
    assert_eq!(of(r#"unread(), "64""#), None);
}

#[test]
fn arrays_of_the_library_are_as_long_as_their_type_says() {
    come_to(
        "",
        &[
            (
                "std::array<int, 4> w{}; n = w.size() * 10 + w[3];",
                Some(40),
            ),
            (
                "std::array<int, 4> w = {7, 8}; n = w.size() * 100 + w[1] * 10 + w[2];",
                Some(480),
            ),
            (
                "std::array<int, 2> w = {7, 8}; n = w.size() * 10 + w[1];",
                Some(28),
            ),
            ("std::array<int, unread()> w{}; n = w.size();", None),
        ],
    );
}
