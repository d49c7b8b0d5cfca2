//! Objects of the standard library in a run: pairs, tuples, optionals, maps, sets, smart pointers, vectors of structures.

mod common;

use common::running::{READ, come_to};

/// The same cases where a number is read first; whatever depends on it stays unknown.
fn stay_unknown(before: &str, bodies: &[&str]) {
    for body in bodies {
        come_to(before, &[(&format!("{READ} {body}"), None)]);
    }
}

#[test]
fn pairs_and_tuples_hold_their_parts() {
    let before = "std::pair<int, int> both(int x) { return {x, 2 * x}; }
        std::pair<double, int> halves() { return std::make_pair(7, 3); }
        std::tuple<int, int, int> sizes(int x) { return std::make_tuple(x, x + 1, x + 2); }";
    let cases = [
        ("std::pair<int, int> p{4, 5}; p.first += 2; n = p.first * p.second;", Some(30)),
        ("auto p = both(3); auto [a, b] = both(5); n = p.second * 100 + a * 10 + b;", Some(660)),
        ("int a, b; std::tie(a, b) = both(4); n = a * 10 + b;", Some(48)),
        // A number has the type of its part.
        ("auto h = halves(); n = h.first / 2 * 10;", Some(35)),
        ("std::pair<int, int> p; p = {2.9, 4}; n = p.first * 10 + p.second;", Some(24)),
        ("std::tuple<int, double> t(7, 3); n = std::get<0>(t) * 10 + std::get<1>(t) / 2 * 2;", Some(73)),
        ("auto [a, b, c] = sizes(4); n = a * 100 + b * 10 + c;", Some(456)),
        (
            "std::vector<std::pair<double, int>> all = {{1, 2}, {3, 4}}; all.push_back({5, 6}); all.emplace_back(7, 8);
             for (auto &[x, y] : all) n += y; n += all[0].first / 2 * 1000;",
            Some(520),
        ),
    ];
    come_to(before, &cases);
    stay_unknown(
        before,
        &[
            "auto [a, b] = both(u); n = b;",
            "n = std::get<1>(sizes(u));",
        ],
    );
}

#[test]
fn optionals_hold_a_value_or_none() {
    let before = "std::optional<int> half(int x) { if (x % 2) return std::nullopt; return x / 2; }
        struct Size { int rows; int twice() const { return 2 * rows; } };";
    let cases = [
        (
            "std::optional<int> o = 17; n = o.value_or(3) + *o;",
            Some(34),
        ),
        (
            "std::optional<int> o; n = o.value_or(3); if (!o) n += 10;",
            Some(13),
        ),
        (
            "std::optional<int> o = 5; o = 7.9; n = o.value(); o.reset(); n += o.has_value();",
            Some(7),
        ),
        (
            "n = half(8).value_or(9) * 10 + half(7).value_or(9);",
            Some(49),
        ),
        (
            "std::optional<Size> o; o = Size{4}; o->rows++; n = o->twice();",
            Some(10),
        ),
        (
            "std::optional<int> o; try { n = o.value(); } catch (const std::exception &) { n = 6; }",
            Some(6),
        ),
    ];
    come_to(before, &cases);
    stay_unknown(
        before,
        &[
            "std::optional<int> o; if (u) o = 3; n = o.value_or(4);",
            "n = half(u).value_or(1);",
            "std::optional<int> o = 3; if (u) o.reset(); n = o ? 1 : 2;",
        ],
    );
}

#[test]
fn maps_and_sets_have_their_entries() {
    let before = "struct Options { std::map<std::string, int> all; int set = 0;
          void put(const std::string &key, int value) { all[key] = value; set++; } };
        void add(std::map<std::string, int> &to) { to[\"y\"] = 6; }
        int found(const std::map<std::string, int> &in, const std::string &key) {
          auto it = in.find(key); return it == in.end() ? -1 : it->second; }";
    let cases = [
        ("std::map<std::string, int> m{{\"n\", 30}}; m[\"b\"] = 9.7; m[\"n\"] += 1; n = m[\"n\"] * 100 + m.at(\"b\") * 10 + m[\"none\"];", Some(3190)),
        ("std::unordered_map<int, int> m; for (int i = 0; i < 10; i++) m[i % 3]++; n = m.size() * 10 + m[0];", Some(34)),
        ("std::map<int, double> m; m[3] = 7; m[-1] = 2; for (auto &[key, value] : m) n = n * 10 + key + value / 2 * 2;", Some(20)),
        (
            "std::map<std::string, int> m; m.insert({\"a\", 1}); m.insert({\"a\", 9}); m.emplace(\"b\", 2); n = m[\"a\"];
             n += m.erase(\"a\") * 10 + m.count(\"a\") * 100 + m.size() * 1000;",
            Some(1011),
        ),
        ("std::map<std::string, int> m; add(m); auto c = m; c[\"y\"] = 9; n = found(m, \"y\") * 10 + found(m, \"q\");", Some(59)),
        ("Options o; o.put(\"w\", 4); o.put(\"w\", 5); Options c = o; c.put(\"w\", 6); n = o.all[\"w\"] * 10 + o.set;", Some(52)),
        ("std::map<int, int> m; try { n = m.at(4); } catch (const std::out_of_range &) { n = 8; }", Some(8)),
        ("std::set<int> s; for (int i = 0; i < 20; i++) s.insert(i * i % 7); for (int x : s) n = n * 10 + x;", Some(124)),
        ("std::set<std::string> s = {\"b\", \"a\", \"b\"}; s.erase(\"a\"); n = s.size() * 10 + s.count(\"b\");", Some(11)),
    ];
    come_to(before, &cases);
    stay_unknown(
        before,
        &[
            "std::map<int, int> m; if (u) m[5] = 3; n = m.size();",
            "std::map<int, int> m; m[1] = 2; m[u] = 3; n = m[1];",
            "std::map<int, int> m; if (u) m[5] = 3; n = m.count(5);",
            "std::set<int> s; s.insert(u); n = s.size();",
            // In which order it is gone through is not said.
            "std::unordered_set<int> s = {5, 6}; for (int x : s) n = n * 10 + x;",
        ],
    );
}

#[test]
fn smart_pointers_lead_to_their_objects() {
    let before = "struct Solver { virtual ~Solver() {} virtual int width() const = 0; int levels() const { return 3; } };
        struct Big : Solver { int w; explicit Big(int w) : w(w) {} int width() const override { return 2 * w; } };
        struct Small : Solver { int width() const override { return 5; } };
        std::unique_ptr<Solver> made(int w) { if (w > 9) return std::make_unique<Big>(w); return std::make_unique<Small>(); }
        int used(const Solver &s) { return s.width(); }";
    let cases = [
        ("auto s = std::make_unique<Big>(40); s->w += 1; n = s->width();", Some(82)),
        ("std::shared_ptr<Solver> s = std::make_shared<Big>(7), t = s; n = t->width() * 10 + used(*s) + s->levels();", Some(157)),
        ("std::unique_ptr<Solver> s(new Small()), none; n = s->width(); if (!none) n += 10;", Some(15)),
        (
            "std::vector<std::unique_ptr<Solver>> all; all.push_back(made(20)); all.emplace_back(new Small); all.push_back(made(1));
             for (auto &one : all) n += one->width();",
            Some(50),
        ),
        ("auto p = std::make_unique<int>(5); *p += 2; n = *p;", Some(7)),
    ];
    come_to(before, &cases);
    stay_unknown(
        before,
        &[
            "auto s = std::make_unique<Big>(u); n = s->width();",
            "n = made(u)->width();",
            "auto s = std::make_unique<Big>(4); if (u) s.reset(new Big(9)); n = s->w;",
        ],
    );
}

#[test]
fn vectors_hold_structures_as_they_are_made() {
    let before = "struct Point { int x, y; Point(int a = 0, int b = 0) : x(a), y(b) {} };
        struct Layer { int width; float scale; }; Layer layer() { return {3, 4}; }";
    let cases = [
        (
            "std::vector<Point> v; for (int i = 0; i < 9; i++) v.emplace_back(i, i + 1); n = v.size() * 10 + v[8].y;",
            Some(99),
        ),
        (
            "std::vector<Point> v; v.push_back({4, 5}); v.push_back(Point(7)); n = v[0].y * 10 + v.back().x;",
            Some(57),
        ),
        (
            "std::vector<Layer> v; v.push_back({3, 5}); n = v[0].scale / 2 * 10; n += layer().scale / 8 * 100;",
            Some(75),
        ),
        (
            "std::vector<int> v; v.push_back(2.7); v[0] *= 2; n = v[0];",
            Some(4),
        ),
    ];
    come_to(before, &cases);
    stay_unknown(
        before,
        &["std::vector<Point> v; v.emplace_back(u, 1); n = v[0].x;"],
    );
}

#[test]
fn texts_are_gone_through_letter_by_letter() {
    let cases = [
        (
            "for (char c : std::string(\"abca\")) switch (c) { case 'a': n += 10; break; default: n += 1; }",
            Some(22),
        ),
        (
            "std::string s = \"1x2\"; for (auto c : s) if (isdigit(c)) n = n * 10 + (c - '0');",
            Some(12),
        ),
    ];
    come_to("", &cases);
    stay_unknown(
        "",
        &["std::string s; std::cin >> s; for (char c : s) n += c;"],
    );
}

#[test]
fn algorithms_ask_functions_and_lambdas() {
    let before = "struct Job { int size, at; }; bool large(int x) { return x > 3; }";
    let five = "std::vector<int> v = {1, 2, 3, 4, 5};";
    let cases = [
        ("n = std::count_if(v.begin(), v.end(), [](int x) { return x > 2; }) * 10 + std::count_if(v.begin(), v.end(), large);", Some(32)),
        ("n = std::any_of(v.begin(), v.end(), large) * 10 + std::all_of(v.begin(), v.end(), large);", Some(10)),
        ("auto at = std::find_if(v.begin(), v.end(), large); n = (at - v.begin()) * 10 + *at;", Some(34)),
        ("std::for_each(v.begin(), v.end(), [](int &x) { x *= 2; }); n = v[4];", Some(10)),
        (
            "std::vector<int> w(5); std::transform(v.begin(), v.end(), w.begin(), [](int x) { return x * x; });
             n = std::accumulate(w.begin(), w.end(), 0);",
            Some(55),
        ),
        ("n = std::accumulate(v.begin(), v.end(), 1, [](int a, int b) { return a * b; });", Some(120)),
        ("std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; }); n = v[0] * 10 + v[4];", Some(51)),
        (
            "std::vector<Job> jobs = {{3, 1}, {1, 2}, {2, 3}};
             std::sort(jobs.begin(), jobs.end(), [](const Job &a, const Job &b) { return a.size < b.size; });
             n = jobs[0].at * 100 + jobs[1].at * 10 + jobs[2].at;",
            Some(231),
        ),
        ("n = std::lower_bound(v.begin(), v.end(), 3) - v.begin() + 10 * (std::upper_bound(v.begin(), v.end(), 3) - v.begin());", Some(32)),
        ("n = std::max({3, 9, 2}) * 10 + std::min({4, 1, 3}) + std::count(v.begin(), v.end(), 4);", Some(92)),
        ("v.erase(v.begin() + 1); v.insert(v.begin(), 9); v.erase(v.begin() + 1, v.begin() + 3); for (int x : v) n = n * 10 + x;", Some(945)),
        ("std::deque<int> d; d.push_back(3); d.push_front(8); d.push_front(1); d.pop_back(); n = d.size() * 10 + d[1];", Some(28)),
        ("n = std::gcd(48, 36) * 100 + std::lcm(4, 6);", Some(1212)),
        ("n = __builtin_popcount(255) * 100 + 32 - __builtin_clz(1000) + std::bit_ceil(100u) + __builtin_ctz(48);", Some(942)),
    ];
    let cases = cases.map(|(body, expected)| (format!("{five} {body}"), expected));
    let cases: Vec<(&str, Option<i64>)> =
        cases.iter().map(|(body, n)| (body.as_str(), *n)).collect();
    come_to(before, &cases);
    stay_unknown(
        before,
        &[
            "std::vector<int> v = {1, u}; n = std::count_if(v.begin(), v.end(), large);",
            "std::vector<int> v = {1, 2}; v.erase(v.begin() + u); n = v[0];",
            "std::vector<int> v = {1, 2}; std::sort(v.begin(), v.end(), [u](int a, int b) { return a * u < b; }); n = v[0];",
            "n = std::max({3, u, 2});",
            "n = __builtin_clz(0);",
        ],
    );
}
