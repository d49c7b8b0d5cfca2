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
fn any_other_jump_is_told_and_what_it_may_skip_or_repeat_is_not_exact() {
    for (assembly, told) in [
        (
            "L: st.global.u32 [%0], 1; add.u32 r, r, 1; setp.lt.u32 p, r, 5; @p bra L;",
            "@p bra L",
        ),
        (
            "L: ld.global.u32 r, [%0]; setp.eq.u32 p, r, 0; @p bra.uni\\n\\t L;",
            "@p bra.uni L",
        ),
        ("@p bra AWAY; st.global.u32 [%0], 1;", "@p bra AWAY"),
        ("@p ret; st.global.u32 [%0], 1;", "@p ret"),
        ("@p exit; st.global.u32 [%0], 1;", "@p exit"),
        (
            "W: mbarrier.try_wait.parity.shared.b64 p, [%1], 0; st.global.u32 [%0], 1; @!p bra W;",
            "@!p bra W",
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
        assert_eq!(lost, [format!("PTX jump not understood: {told}")]);
        let first = &found.accesses[0];
        let text = format!("{assembly}: {:?}", costs(&found));
        assert!(!first.exact(), "{text}");
    }
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
