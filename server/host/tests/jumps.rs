//! `goto` in programs that are run: error paths, loops made of jumps, ways out of nested loops.

mod common;

use common::running::{LAUNCH, READ, come_to, launches, ran};
use warplens_host::HostEventKind;

#[test]
fn jumps_that_the_program_makes_are_followed() {
    come_to(
        "int setup(int **d, int n) { cudaError_t e = cudaMalloc((void **)d, n * 4);
           if (e != cudaSuccess) goto fail; return 3; fail: return -1; }
         int early(int n) { int r = 1; if (n > 3) goto out; r = 2; out: return r; }",
        &[
            ("n = 4; goto end; n = 9; end: n++;", Some(5)),
            ("int *p; n = setup(&p, 8);", Some(3)),
            ("n = early(7) * 10 + early(2);", Some(12)),
            ("again: n += 3; if (n < 10) goto again;", Some(12)),
            (
                "for (int i = 0; i < 10; i++) for (int j = 0; j < 10; j++)
                   if (i * j == 42) { n = i * 100 + j; goto found; } n = -1; found:;",
                Some(607),
            ),
            (
                "for (int i = 0; i < 10; i++) { if (i % 3) goto next; n += i; next:; }",
                Some(18),
            ),
            (
                "switch (argc) { case 2: n = 5; goto past; default: n = 7; } n += 100; past: n += 1;",
                Some(6),
            ),
            // A block further out, and one that begins after the label.
            (
                "{ { n = 3; goto out; } n = 4; } n = 5; out: n *= 2;",
                Some(6),
            ),
            ("int i = 0; { top: n += i; } if (++i < 4) goto top;", None),
        ],
    );
}

#[test]
fn jumps_of_some_runs_leave_open_what_they_change() {
    let come = |body: &str, expected: Option<i64>| {
        come_to("", &[(&format!("{READ} {body}"), expected)]);
    };
    come("n = 4; if (u) goto end; n = 9; end:;", None);
    come("n = 4; int m = 8; if (u) goto end; m = 9; end:;", Some(4));
    come(
        "n = 4; int m = 8; if (u) { m = 7; goto end; } m = 9; end: n = m;",
        None,
    );
    come("again: n += 3; u /= 2; if (u) goto again;", None);
    come(
        "n = 5; int m = 0; again: m++; u /= 2; if (u) goto again;",
        Some(5),
    );
}

#[test]
fn launches_between_a_label_and_a_jump_are_made_as_often_as_it() {
    let counts = |body: &str| -> Vec<Option<u64>> {
        let sites = launches("", &format!("{READ} int *d; cudaMalloc(&d, 400); {body}"));
        sites.iter().map(|site| site.count).collect()
    };
    assert_eq!(
        counts("int t = 0; again: k<<<1, 32>>>(d, 100); if (++t < 7) goto again;"),
        [Some(7)]
    );
    assert_eq!(
        counts("again: k<<<1, 32>>>(d, 100); u /= 2; if (u) goto again; k<<<2, 32>>>(d, 100);"),
        [None, Some(1)]
    );
    assert_eq!(
        counts("goto end; k<<<1, 32>>>(d, 100); end: k<<<2, 32>>>(d, 3);"),
        [Some(1)]
    );
    // A label that only some runs come to.
    assert_eq!(
        counts(
            "if (u) goto other; k<<<1, 32>>>(d, 100); goto end; other: k<<<2, 32>>>(d, 3);
             end: k<<<3, 32>>>(d, 5);"
        ),
        [Some(1), None, Some(1)]
    );
    // Without an end.
    assert!(counts("again: k<<<1, 32>>>(d, 100); goto again;").len() <= 1);
    assert!(counts("int i = 0; again: i++; goto again; k<<<1, 32>>>(d, 3);").len() <= 1);
}

#[test]
fn a_jump_back_is_a_loop_in_the_events() {
    let text = format!(
        "__global__ void k(int *data, int n) {{ data[n] = 1; }}
         int main() {{ {READ} int n = 3; {LAUNCH} again: k<<<1, 64>>>(d, n); u--; if (u) goto again; }}"
    );
    let ran = ran(&text, &[]);
    let launches = ran
        .events
        .iter()
        .filter(|event| matches!(event.kind, HostEventKind::Launch(_)));
    let often: Vec<_> = launches.map(|event| &event.often).collect();
    assert_eq!(often[0].number(), Some(1));
    assert_eq!(often[1].known, 1);
    let [open] = often[1].open.as_slice() else {
        panic!("{often:?}")
    };
    assert!(open.deciding[0].is_loop());
    assert_eq!(&*open.deciding[0].text, "again");
}

#[test]
fn what_follows_a_way_out_behind_a_launch_is_done_where_the_program_did_not_take_it() {
    let counts = |before: &str, body: &str| -> Vec<Option<u64>> {
        let sites = launches(
            before,
            &format!("{READ} int *d; cudaMalloc(&d, 400); {body}"),
        );
        sites.iter().map(|site| site.count).collect()
    };
    let (a, b) = ("k<<<1, 32>>>(d, 100);", "k<<<2, 32>>>(d, 100);");
    let other = |left: &str| counts("", &format!("if (u > 3) {{ {a} {left} }} {b}"));
    assert_eq!(other("exit(0);"), [None, None]);
    assert_eq!(other("return 0;"), [None, None]);
    assert_eq!(other(""), [None, Some(1)]);
    assert_eq!(
        counts(
            "",
            &format!("if (u > 3) {{ }} else {{ {a} return 0; }} {b}")
        ),
        [None, None]
    );
    // What leaves without a launch failed.
    assert_eq!(
        counts(
            "",
            &format!("if (!u) exit(1); {a} if (u < 0) return 1; {b}")
        ),
        [Some(1), Some(1)]
    );
    // The function that returns is left, not its caller.
    let function = format!("void f(int u, int *d) {{ if (u > 3) {{ {a} return; }} {b} }}");
    assert_eq!(
        counts(&function, "f(u, d); k<<<3, 32>>>(d, 100);"),
        [None, None, Some(1)]
    );
}
