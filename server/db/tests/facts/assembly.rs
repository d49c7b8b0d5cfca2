//! Inline PTX held against the same kernel in CUDA: registers, jumps, barriers, and what is not understood.

#[path = "../../benches/kernel/mod.rs"]
mod kernel;

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_facts::facts::{Node, SourceFacts};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn text(body: &str) -> String {
    format!(
        "#include <cstdint>\n__global__ void k(unsigned *out, const unsigned *in, unsigned n) {{\n\
         __shared__ unsigned tile[256]; unsigned at = __cvta_generic_to_shared(&tile[threadIdx.x ^ 33]);\n\
         unsigned r = 0, v = 0;\n{body}\n\
         out[threadIdx.x] = r;\n}}\n"
    )
}

/// What is counted of a kernel with 128 threads, and what is not understood, in words.
fn facts(body: &str) -> (std::sync::Arc<SourceFacts>, Vec<String>) {
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([2, 1, 1]),
            block: Some([128, 1, 1]),
            args: [("n".to_owned(), 5)].into_iter().collect(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(&text(body), Language::Cuda),
            Path::new("k.cu"),
            &Settings::default(),
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    let facts = file.kernels[0].analysis.facts.clone();
    let lost = facts.not_understood.iter();
    let lost = lost.map(|lost| lost.reason.to_string()).collect();
    (facts, lost)
}

/// What each access costs.
fn costs(facts: &SourceFacts) -> Vec<String> {
    let accesses = facts.accesses.iter().map(|access| {
        format!(
            "{:?} {:?}: {:?} requests of {:?} lanes, {:?} transactions, exact {}",
            access.space,
            access.op,
            access.requests,
            access.active_lanes_per_request,
            access.transactions_per_request,
            access.exact(),
        )
    });
    accesses.collect()
}

/// Accesses, barriers and what is around them, in order.
fn order(nodes: &[Node]) -> String {
    let nodes = nodes.iter().map(|node| match node {
        Node::Compute { .. } => String::new(),
        Node::Access { access, .. } => format!("access {access}; "),
        Node::Barrier { .. } => "barrier; ".to_owned(),
        Node::Loop { body, .. } => format!("loop {{ {}}} ", order(body)),
        Node::Branch {
            then, otherwise, ..
        } => format!("if {{ {}}} else {{ {}}} ", order(then), order(otherwise)),
    });
    nodes.collect()
}

#[test]
fn registers_that_are_declared_and_not_named_are_no_variables() {
    let declared: Vec<String> = (0..300)
        .map(|number| format!(".reg .b32 a{number}_<4096>;"))
        .collect();
    let declared = declared.join(" ");
    let named = "mov.u32 a7_4095, 3; add.u32 %0, a7_4095, a7_4095;";
    let body = |declared: &str, named: &str| format!("asm(\"{declared}{named}\" : \"=r\"(r));");
    let many = kernel::read(&text(&body(&declared, named)), "k");
    let one = kernel::read(&text(&body(".reg .b32 a7_4095; ", named)), "k");
    assert_eq!(many.vars.len(), one.vars.len());
    // The count bounds the names: one more is none of them.
    let beyond = named.replace("4095", "4096");
    let register = |named: &str| {
        let body = format!("asm(\".reg .u64 a7_<4096>; {named}\" : \"=r\"(r));");
        let kernel = kernel::read(&text(&body), "k");
        let mut vars = kernel.vars.into_iter();
        let var = vars.find(|var| var.name.starts_with("a7_"));
        var.expect("a register").ty
    };
    assert_eq!(register(named), warplens_ir::Type::SIZE);
    assert_eq!(register(&beyond), warplens_ir::Type::UINT);
}

#[test]
fn a_name_that_another_scope_declares_again_is_another_register() {
    // The inner one is one of 64 bits, of which the upper half is 1.
    let (found, lost) = facts(
        "asm(\"{ .reg .b32 q<2>; mov.u32 q1, 0; { .reg .u64 q1; mov.u64 q1, 4294967296; shr.u64 q1, q1, 32; \
         cvt.u32.u64 %0, q1; } }\" : \"=r\"(v)); r = in[v * threadIdx.x];",
    );
    assert_eq!(lost, Vec::<String>::new());
    let load = &found.accesses[0];
    assert!(load.exact());
    assert_eq!(load.transactions_per_request, Some(4.0));
}

#[test]
fn a_register_that_an_inner_scope_hides_is_itself_again_behind_it() {
    // 4 sectors of neighbours, by the lanes below 16 alone: the inner registers would give 1 sector and 8 lanes.
    for assembly in [
        "{ .reg .u32 t; mov.u32 t, %1; { .reg .u32 t; mov.u32 t, 5; } mov.u32 %0, t; }",
        "{ .reg .u32 t<4>; mov.u32 t2, %1; { .reg .u32 t2; .reg .u64 t2; mov.u64 t2, 5; } mov.u32 %0, t2; }",
        "{ .reg .u32 t; .reg .pred p; mov.u32 t, %1; setp.lt.u32 p, %1, 8; @p bra L; { .reg .u32 t; mov.u32 t, 5; \
         bra M; } L: { .reg .u32 t; mov.u32 t, 6; } M: mov.u32 %0, t; }",
    ] {
        let (found, lost) = facts(&format!(
            "asm(\"{assembly}\" : \"=r\"(v) : \"r\"(threadIdx.x)); r = in[v];"
        ));
        assert_eq!(lost, Vec::<String>::new(), "{assembly}");
        let load = &found.accesses[0];
        assert!(load.exact(), "{assembly}");
        assert_eq!(load.transactions_per_request, Some(4.0), "{assembly}");
    }
    let (found, _) = facts(
        "asm volatile(\"{ .reg .pred p; setp.lt.u32 p, %0, 16; { .reg .pred p; setp.lt.u32 p, %0, 8; } \
         @p st.global.u32 [%1], %0; }\" :: \"r\"(threadIdx.x), \"l\"(&out[threadIdx.x]) : \"memory\");",
    );
    let store = &found.accesses[0];
    assert!(store.exact());
    assert_eq!(store.active_lanes_per_request, Some(16.0));
}

#[test]
fn what_an_instruction_that_is_not_understood_writes_is_not_known() {
    let index = |assembly: &str| {
        let (found, lost) = facts(&format!(
            "asm volatile(\"{{ .reg .b32 q, %%s<2>; .reg .pred p; {assembly} }}\" : \"=r\"(v) : \"r\"(r), \"r\"(n)); \
             r = in[v * threadIdx.x];"
        ));
        (found.accesses[0].exact(), lost)
    };
    for known in [
        "mov.u32 %0, 1;",
        "mov.u32 q, 1; mov.u32 %0, q;",
        // What it reads, and what it does not touch, stay what they are.
        "mov.u32 %0, 1; mov.u32 q, 2; zorp.b32 q, %0, %1;",
        "zorp.b32 [%1], %0; mov.u32 %0, 1;",
    ] {
        assert!(index(known).0, "{known}");
    }
    for unknown in [
        "mov.u32 %0, 1; zorp.b32 %0, %0, %1;",
        "mov.u32 q, 1; zorp.b32 q, q, %1; mov.u32 %0, q;",
        "mov.u32 %%s1, 1; zorp.b32 {_, %%s1}, q; mov.u32 %0, %%s1;",
        "mov.u32 %0, 1; zorp.b32 %0|p, %1;",
        "mov.u32 %0, 1; setp.eq.u32 p, %1, %1; @p zorp.b32 %0, %1;",
        "mov.u32 %0, 1; mov.u32 %0, {%1;",
    ] {
        let (exact, lost) = index(unknown);
        assert!(!exact, "{unknown}");
        assert_eq!(lost.len(), 1, "{unknown}: {lost:?}");
    }
}

#[test]
fn a_jump_over_instructions_is_the_branch_of_the_source() {
    let store = "st.global.u32 [%0], 1;";
    let place = "&in[threadIdx.x]";
    let compare = ".reg .pred p; setp.ge.u32 p, %1, 40;";
    for (assembly, source) in [
        (
            format!("@p bra SKIP; {store} SKIP:"),
            "if (!(threadIdx.x >= 40)) *at = 1;",
        ),
        (
            format!("@!p bra.uni SKIP; {store} SKIP: {store}"),
            "if (threadIdx.x >= 40) *at = 1; *at = 1;",
        ),
        (
            format!("@p bra OTHER; {store} bra DONE; OTHER: st.global.u32 [%0 + 64], 1; DONE:"),
            "if (!(threadIdx.x >= 40)) *at = 1; else at[16] = 1;",
        ),
        (
            format!(
                "@p bra DONE; .reg .pred q; setp.lt.u32 q, %1, 8; @q bra DONE; {store} DONE: bra END; {store} END:"
            ),
            "if (!(threadIdx.x >= 40)) { if (!(threadIdx.x < 8)) *at = 1; }",
        ),
    ] {
        let (found, lost) = facts(&format!(
            "asm volatile(\"{{ {compare} {assembly} }}\" :: \"l\"({place}), \"r\"(threadIdx.x) : \"memory\");"
        ));
        let (twin, _) = facts(&format!("unsigned *at = (unsigned *){place}; {source}"));
        assert_eq!(lost, Vec::<String>::new(), "{assembly}");
        assert_eq!(costs(&found), costs(&twin), "{assembly}");
        assert_eq!(order(&found.flow), order(&twin.flow), "{assembly}");
    }
}

#[test]
fn a_loop_that_only_waits_is_its_wait() {
    for wait in [
        "W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra.uni D; bra.uni W; D:",
        "W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra W;",
        "W: mbarrier.test_wait.parity.shared.b64 p, [%0], %1; selp.b32 q, 1, 0, p; setp.eq.u32 s, q, 0; \
         nanosleep.u32 20; @s bra W;",
        "setp.eq.u32 s, %1, 0; @s bra D; W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @p bra D; bra W; D:",
    ] {
        let (found, lost) = facts(&format!(
            "asm volatile(\"{{ .reg .pred p, s; .reg .b32 q; {wait} }}\" :: \"r\"(at), \"r\"(n));"
        ));
        assert_eq!(lost, Vec::<String>::new(), "{wait}");
        assert!(!order(&found.flow).contains("loop"), "{wait}");
    }
}

#[test]
fn a_loop_of_the_source_that_only_waits_is_one_wait() {
    let ask = "asm volatile(\"{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }\" \
               : \"=r\"(v) : \"r\"(at), \"r\"(n));";
    let trips = |body: &str| {
        let (found, lost) = facts(body);
        assert_eq!(lost, Vec::<String>::new(), "{body}");
        let mut guesses = found.assumptions.iter();
        let guess = guesses.find(|assumption| assumption.symbol.to_string().contains("trips"));
        guess.map(|guess| guess.value.clone())
    };
    assert_eq!(
        trips(&format!("do {{ {ask} }} while (!v);")).as_deref(),
        Some("1")
    );
    assert_eq!(
        trips(&format!("while (!v) {{ {ask} }}")).as_deref(),
        Some("1")
    );
    // A loop that does something until it may go on is work.
    assert_eq!(
        trips(&format!(
            "do {{ {ask} r += in[threadIdx.x + r]; }} while (!v);"
        ))
        .as_deref(),
        Some("16")
    );
}

#[test]
fn any_other_jump_is_told_and_what_it_may_skip_or_repeat_is_not_exact() {
    for (assembly, told) in [
        ("@p bra AWAY; st.global.u32 [%0], 1;", "@p bra AWAY"),
        ("@p ret; st.global.u32 [%0], 1;", "@p ret"),
        ("@p exit; st.global.u32 [%0], 1;", "@p exit"),
        (
            "L: st.global.u32 [%0], 1; @p bra\\n\\t AWAY; add.u32 r, r, 1; setp.lt.u32 p, r, 5; @p bra L;",
            "@p bra",
        ),
        (
            "bra TEST; L: st.global.u32 [%0], 1; TEST: setp.eq.u32 p, r, 0; @p bra L;",
            "@p bra L",
        ),
    ] {
        let (found, lost) = facts(&format!(
            "asm volatile(\"{{ .reg .pred p; .reg .u32 r; setp.eq.u32 p, %1, 4; {assembly} }}\" \
             :: \"l\"(&in[threadIdx.x]), \"r\"(at));"
        ));
        let said = format!("PTX jump not understood: {told}");
        assert!(
            !lost.is_empty() && lost.iter().all(|one| one.starts_with(&said)),
            "{lost:?}"
        );
        let first = &found.accesses[0];
        let text = format!("{assembly}: {:?}", costs(&found));
        assert!(!first.exact(), "{text}");
    }
}

#[test]
fn a_jump_back_is_the_loop_of_the_source() {
    let place = "&in[threadIdx.x]";
    for (assembly, source) in [
        (
            "mov.u32 c, 0; L: st.global.u32 [%0], 1; add.u32 c, c, 1; setp.lt.u32 p, c, 16; @p bra L;",
            "unsigned c = 0; do { *at = 1; c++; } while (c < 16);",
        ),
        (
            "mov.u32 c, 8; mov.u64 a, %0; L: st.global.u32 [a], 1; add.u64 a, a, 128; sub.u32 c, c, 2; \
             setp.eq.u32 p, c, 0; @!p bra.uni L; st.global.u32 [a+4*8], 1;",
            "unsigned c = 8; do { *at = 1; at += 32; c -= 2; } while (c != 0); at[8] = 1;",
        ),
    ] {
        let (found, lost) = facts(&format!(
            "asm volatile(\"{{ .reg .pred p; .reg .u32 c; .reg .u64 a; {assembly} }}\" :: \"l\"({place}) : \"memory\");"
        ));
        let (twin, _) = facts(&format!("unsigned *at = (unsigned *){place}; {source}"));
        assert_eq!(lost, Vec::<String>::new(), "{assembly}");
        assert_eq!(costs(&found), costs(&twin), "{assembly}");
        assert_eq!(order(&found.flow), order(&twin.flow), "{assembly}");
        assert!(found.accesses[0].exact(), "{assembly}");
    }
    // Where data ends it nothing is exact.
    for assembly in [
        "L: ld.global.u32 c, [%0]; setp.eq.u32 p, c, 0; @p bra.uni\\n\\t L;",
        "W: mbarrier.try_wait.parity.shared.b64 p, [%1], 0; st.global.u32 [%0], 1; @!p bra W;",
    ] {
        let (found, lost) = facts(&format!(
            "asm volatile(\"{{ .reg .pred p; .reg .u32 c; {assembly} }}\" :: \"l\"({place}), \"r\"(at));"
        ));
        assert_eq!(lost, Vec::<String>::new(), "{assembly}");
        assert!(!found.accesses[0].exact(), "{assembly}");
    }
}

#[test]
fn fields_of_registers_are_integers() {
    let sectors = |assembly: &str| {
        let (found, lost) = facts(&format!(
            "asm(\"{assembly}\" : \"=r\"(v) : \"r\"(threadIdx.x)); r = in[v];"
        ));
        assert_eq!(lost, Vec::<String>::new(), "{assembly}");
        let load = &found.accesses[0];
        load.transactions_per_request.filter(|_| load.exact())
    };
    assert_eq!(sectors("bfi.b32 %0, %1, 0, 3, 5;"), Some(32.0));
    assert_eq!(sectors("bfi.b32 %0, 0, %1, 0, 3;"), Some(1.0 + 3.0));
    assert_eq!(sectors("bfe.u32 %0, %1, 2, 3;"), Some(1.0));
    // 15 and less are what they are, from 16 on 32 is taken away.
    assert_eq!(sectors("bfe.s32 %0, %1, 0, 5;"), Some(4.0));
}

#[test]
fn a_barrier_of_the_block_stands_where_it_is_written() {
    let load = "ld.shared.u32 %0, [%1];";
    let store = "st.shared.u32 [%1], 7;";
    let (r, tile) = ("r = tile[threadIdx.x ^ 33];", "tile[threadIdx.x ^ 33] = 7;");
    for (assembly, source) in [
        (
            format!("bar.sync 0; {load}"),
            format!("__syncthreads(); {r}"),
        ),
        (
            format!("{store} bar.sync 0; {load}"),
            format!("{tile} __syncthreads(); {r}"),
        ),
        (
            format!("{store} barrier.sync 0; {load} bar.sync 0;"),
            format!("{tile} __syncthreads(); {r} __syncthreads();"),
        ),
    ] {
        let (found, lost) = facts(&format!(
            "tile[threadIdx.x] = n; asm volatile(\"{assembly}\" : \"=r\"(r) : \"r\"(at));"
        ));
        let (twin, _) = facts(&format!("tile[threadIdx.x] = n; {source}"));
        assert_eq!(lost, Vec::<String>::new(), "{assembly}");
        assert_eq!(order(&found.flow), order(&twin.flow), "{assembly}");
        assert_eq!(costs(&found), costs(&twin), "{assembly}");
    }
}

#[test]
fn what_is_not_understood_reads_its_inputs_all_the_same() {
    let (facts, lost) =
        facts("asm(\"v_mov_b32_e32 %0, %1\" : \"=r\"(r) : \"r\"(in[threadIdx.x * 2]));");
    assert_eq!(lost, ["PTX instruction not understood: v_mov_b32_e32"]);
    let read: Vec<_> = facts
        .accesses
        .iter()
        .filter(|access| access.array == "in")
        .collect();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].transactions_per_request, Some(8.0));
}

#[test]
fn a_cache_policy_is_an_operand_more() {
    let policy = ".reg .b64 p; createpolicy.fractional.L2::evict_last.b64 p, 1.0;";
    let place = "\"l\"(&out[4 * threadIdx.x])";
    for (assembly, sectors) in [
        (
            "ld.global.L1::evict_first.L2::cache_hint.v4.u32 {%0, q, q, q}, [%1], p;",
            16.0,
        ),
        (
            "ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, q, q, q}, [%1];",
            16.0,
        ),
        ("ld.global.L2::cache_hint.u32 %0, [%1].unified, p;", 16.0),
        ("st.global.L2::cache_hint.v2.u32 [%1], {q, q}, p;", 16.0),
        (
            "st.global.L1::no_allocate.L2::cache_hint.u32 [%1], q, p;",
            16.0,
        ),
        ("atom.global.add.L2::cache_hint.u32 %0, [%1], 1, p;", 16.0),
        (
            "atom.global.cas.L2::cache_hint.b32 %0, [%1], 1, q, p;",
            16.0,
        ),
        ("red.global.add.L2::cache_hint.u32 [%1], 1, p;", 16.0),
    ] {
        let (found, lost) = facts(&format!(
            "asm volatile(\"{{ .reg .b32 q; {policy} {assembly} }}\" : \"=r\"(r) : {place} : \"memory\");"
        ));
        assert_eq!(lost, Vec::<String>::new(), "{assembly}");
        let access = &found.accesses[0];
        assert!(access.exact(), "{assembly}");
        assert_eq!(access.transactions_per_request, Some(sectors), "{assembly}");
    }
    let (found, lost) = facts(
        "asm volatile(\"{ .reg .b64 p; cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, p; \
         cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 4, 0, p; }\" :: \"r\"(at & ~15u), \"l\"(&in[4 * threadIdx.x]));",
    );
    assert_eq!(lost, Vec::<String>::new());
    assert_eq!(found.accesses[0].transactions_per_request, Some(16.0));
}

#[test]
fn parts_of_registers_are_integers() {
    let sectors = |assembly: &str| {
        let (found, lost) = facts(&format!(
            "asm(\"{{ .reg .b64 d; .reg .b32 a, b; .reg .b16 h, g; {assembly} }}\" \
             : \"=r\"(v) : \"r\"(threadIdx.x), \"l\"((unsigned long long)threadIdx.x << 33)); r = in[v];"
        ));
        assert_eq!(lost, Vec::<String>::new(), "{assembly}");
        let load = &found.accesses[0];
        load.transactions_per_request.filter(|_| load.exact())
    };
    assert_eq!(sectors("mov.b64 {a, b}, %2; mov.b32 %0, a;"), Some(1.0));
    assert_eq!(sectors("mov.b64 {_, %0}, %2;"), Some(8.0));
    assert_eq!(
        sectors("mov.b32 a, %1; mov.b64 {a, b}, %2; mov.b32 %0, b;"),
        Some(8.0)
    );
    assert_eq!(
        sectors("mov.b64 d, {%1, %1}; shr.u64 d, d, 31; cvt.u32.u64 %0, d;"),
        Some(8.0)
    );
    assert_eq!(
        sectors("mov.b32 {h, g}, %1; mov.b32 %0, {h, g};"),
        Some(4.0)
    );
}

#[test]
fn an_instruction_that_cannot_be_says_why() {
    let product = |mnemonic: &str, left: &str, right: &str| {
        format!(
            "mma.sync.aligned.{mnemonic} {{q, q, q, q}}, {{{left}}}, {{{right}}}, {{q, q, q, q}};"
        )
    };
    for (assembly, why) in [
        (
            product("m16n8k16.row.col.f32.f16.f16.f32", "q, q, q, q", "q, q"),
            None,
        ),
        (
            product("m16n8k8.row.col.f32.tf32.tf32.f32", "q, q, q, q", "q, q"),
            None,
        ),
        (
            product("m16n8k32.row.col.s32.s8.s8.s32", "q, q, q, q", "q, q"),
            None,
        ),
        (
            product("m16n8k64.row.col.s32.s4.s4.s32", "q, q, q, q", "q, q"),
            None,
        ),
        (
            product(
                "m16n8k256.row.col.s32.b1.b1.s32.and.popc",
                "q, q, q, q",
                "q, q",
            ),
            None,
        ),
        (
            product("m16n8k16.row.col.f32.f16.f16.f32", "q, q", "q"),
            Some("left factor takes 4 registers"),
        ),
        (
            product("m16n8k16.row.col.f32.f16.f16.f32", "q, q, q, q", "q"),
            Some("right factor takes 2 registers"),
        ),
        (
            product("m16n8k16.row.col.f16.f16.f16.f16", "q, q, q, q", "q, q"),
            Some("sum takes 2 registers"),
        ),
        (
            product("m16n8k17.row.col.f32.f16.f16.f32", "q, q, q, q", "q, q"),
            Some("no shape `m16n8k17`"),
        ),
        ("ld.global.u32 q, [%5];".to_owned(), Some("no operand `%5`")),
        (
            "ld.global.u32 q, [%1], q;".to_owned(),
            Some("2 operands, not 3"),
        ),
        (
            "ld.global.v4.u32 {q, q}, [%1];".to_owned(),
            Some("4 registers, not 2"),
        ),
        (
            "cp.async.ca.shared.global [%0], [%1], 12;".to_owned(),
            Some("4, 8 or 16 bytes, not 12"),
        ),
        (
            "cp.async.cg.shared.global [%0], [%1], 8;".to_owned(),
            Some("16 bytes with `.cg`, not 8"),
        ),
    ] {
        let (_, lost) = facts(&format!(
            "asm volatile(\"{{ .reg .b32 q; mov.u32 q, 0; {assembly} }}\" :: \"r\"(at), \"l\"(in));"
        ));
        match why {
            None => assert_eq!(lost, Vec::<String>::new(), "{assembly}"),
            Some(why) => {
                assert_eq!(lost.len(), 1, "{assembly}: {lost:?}");
                assert!(lost[0].contains(why), "{assembly}: {lost:?}");
            }
        }
    }
}
