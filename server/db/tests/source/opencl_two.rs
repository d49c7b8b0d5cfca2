//! What OpenCL 2 added: pipes, blocks and the launches that kernels make.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides};
use warplens_facts::facts::{Access, Certainty, Op};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The analysis of a program, all of which must be understood.
fn analyse(text: &str) -> FileAnalysis {
    let engine = Engine::new(Profiles::builtin());
    let file = engine
        .analyze(
            &Document::new(text, Language::OpenCl),
            Path::new("a.cl"),
            &Settings::default(),
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    for kernel in &file.kernels {
        assert_eq!(kernel.analysis.facts.not_understood, [], "{text}");
    }
    file
}

fn accesses(file: &FileAnalysis) -> &[Access] {
    &file.kernels[0].analysis.facts.accesses
}

fn kind(op: Op) -> &'static str {
    match op {
        Op::Load => "load",
        Op::Store => "store",
        Op::Atomic => "atomic",
    }
}

/// Text, kind and what is said of it.
fn told(access: &Access) -> (&str, &str, Option<String>) {
    let why = access.why.as_ref().map(ToString::to_string);
    (access.text.as_str(), kind(access.op), why)
}

#[test]
fn packets_are_accesses_of_which_nobody_knows_where_they_go() {
    let file = analyse(
        "__kernel void relay(read_only pipe int from, write_only pipe int to, __global int *seen) {\n\
         \x20 int packet;\n\
         \x20 if (read_pipe(from, &packet) == 0) {\n\
         \x20   seen[get_global_id(0)] = packet;\n\
         \x20   write_pipe(to, &packet);\n\
         \x20 }\n}\n",
    );
    let why = Some("where a pipe's packet lies is the runtime's affair".to_owned());
    let all = accesses(&file);
    assert_eq!(
        told(&all[0]),
        ("read_pipe(from, &packet)", "load", why.clone())
    );
    assert_eq!(all[1].text, "seen[get_global_id(0)]");
    assert_eq!(all[1].transactions_per_request, Some(4.0));
    assert_eq!(told(&all[2]), ("write_pipe(to, &packet)", "store", why));
    for pipe in [&all[0], &all[2]] {
        assert_eq!(pipe.certainty, Certainty::Unknown);
        assert_eq!(pipe.transactions_per_request, None);
    }
    let branch = &file.kernels[0].analysis.facts.branches[0];
    assert_ne!(branch.certainty, Certainty::Exact, "the runtime decides");
}

#[test]
fn operands_of_a_reserved_packet_are_read() {
    let file = analyse(
        "__kernel void put(write_only pipe float4 to, __global const float4 *in, __global int *slot) {\n\
         \x20 reserve_id_t id = work_group_reserve_write_pipe(to, slot[0]);\n\
         \x20 if (is_valid_reserve_id(id)) {\n\
         \x20   float4 packet = in[get_global_id(0)];\n\
         \x20   write_pipe(to, id, slot[get_local_id(0)], &packet);\n\
         \x20   work_group_commit_write_pipe(to, id);\n\
         \x20 }\n\
         \x20 slot[get_global_id(0)] = get_pipe_num_packets(to) + get_pipe_max_packets(to);\n}\n",
    );
    let texts: Vec<&str> = accesses(&file).iter().map(|a| a.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "slot[0]",
            "in[get_global_id(0)]",
            "slot[get_local_id(0)]",
            "write_pipe(to, id, slot[get_local_id(0)], &packet)",
            "slot[get_global_id(0)]",
        ]
    );
    assert_eq!(accesses(&file)[3].bytes_per_lane, 16);
}

#[test]
fn what_an_enqueued_block_does_is_listed_and_counted_nowhere() {
    let file = analyse(
        "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void parent(__global float *a, __global const int *sizes) {\n\
         \x20 queue_t queue = get_default_queue();\n\
         \x20 void (^work)(void) = ^{ a[get_global_id(0) * 2] = 1.0f; };\n\
         \x20 enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(sizes[0], 64), work);\n\
         \x20 clk_event_t done;\n\
         \x20 enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64), 0, NULL, &done,\n\
         \x20   ^(local float *tile) { int i = get_local_id(0); tile[i] = a[i]; }, 64 * sizeof(float));\n\
         \x20 release_event(done);\n\
         \x20 a[get_global_id(0)] = 0;\n}\n",
    );
    let inside = Some("it runs in the launch that is enqueued here".to_owned());
    let mut all: Vec<_> = accesses(&file).iter().map(told).collect();
    all.sort_unstable();
    assert_eq!(
        all,
        [
            ("a[get_global_id(0) * 2]", "store", inside.clone()),
            ("a[get_global_id(0)]", "store", None),
            ("a[i]", "load", inside.clone()),
            ("sizes[0]", "load", None),
            ("tile[i]", "store", inside.clone()),
        ]
    );
    for access in accesses(&file) {
        if access.why.as_ref().map(ToString::to_string) == inside {
            assert_eq!(
                (access.requests, access.transactions_per_request),
                (None, None)
            );
        }
    }
}

#[test]
fn a_block_that_is_called_runs_where_it_is_called() {
    let file = analyse(
        "__kernel void direct(__global int *a) {\n\
         \x20 int (^twice)(int) = ^(int n) { return 2 * n; };\n\
         \x20 a[twice(get_global_id(0))] = 0;\n}\n",
    );
    assert_eq!(accesses(&file)[0].transactions_per_request, Some(8.0));
}
