//! Where accesses go and what that costs, besides global and shared memory in a row: settings of the banks, constant
//! memory, atomics, a thread's own arrays.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, KernelAnalysis, Overrides};
use warplens_facts::facts::{Access, Op, Pattern, SourceFacts, Space, Why};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn facts(body: &str, settings: &str) -> SourceFacts {
    analysis(body, settings).facts.as_ref().clone()
}

fn analysis(body: &str, settings: &str) -> Arc<KernelAnalysis> {
    let text = format!(
        "__constant__ float table[64];\n\
         __global__ void k(float *a, int *bins) {{\n\
         __shared__ double wide[512]; __shared__ int few[64]; int t = threadIdx.x;\n{body}\n}}\n\
         void host(float *a, int *bins) {{ k<<<1, 32>>>(a, bins); }}\n"
    );
    let (settings, problems) = Settings::from_toml(settings);
    assert_eq!(problems, []);
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(&text, Language::Cuda),
            Path::new("a.cu"),
            &settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled");
    let analysis = Arc::clone(&file.kernels[0].analysis);
    let lost = &analysis.facts.not_understood;
    assert_eq!(*lost, [], "everything is understood");
    analysis
}

fn first(facts: &SourceFacts, text: &str) -> Access {
    let access = facts.accesses.iter().find(|access| access.text == text);
    access.unwrap_or_else(|| panic!("no {text}")).clone()
}

#[test]
fn lanes_that_share_an_unknown_start_take_what_they_take_on_average() {
    let expected = |body: &str, index: &str| {
        let analysis = analysis(body, "gpu = 'rtx-a4000'");
        let access = first(&analysis.facts, index);
        // No fact is made of it.
        assert_eq!(access.pattern, Pattern::DataDependent, "{body}");
        assert_eq!(access.transactions_per_request, None, "{body}");
        let executed = analysis.input.accesses.iter();
        let mut executed = executed.filter(|executed| executed.site == access.site);
        let executed = executed.next().expect("it is executed");
        executed.expected.map(|request| request.transactions)
    };
    // Over the eight places of a word in a sector.
    let mean = |word: &dyn Fn(i32) -> i32| {
        let sectors = |start: i32| {
            let all: HashSet<i32> = (0..32).map(|lane| (start + word(lane)) / 8).collect();
            all.len() as f64
        };
        Some((0..8).map(sectors).sum::<f64>() / 8.0)
    };
    let row = "a[bins[blockIdx.x] + threadIdx.x]";
    assert_eq!(expected(&format!("{row} = 0;"), row), mean(&|lane| lane));
    let even = "a[bins[3] + 2 * t]";
    assert_eq!(
        expected(&format!("{even} = 0;"), even),
        mean(&|lane| 2 * lane)
    );
    // Whole sectors further: the figure is the same wherever that is.
    let whole = "a[8 * bins[3] + t]";
    let found = facts(&format!("{whole} = 0;"), "gpu = 'rtx-a4000'");
    let access = first(&found, whole);
    assert!(access.exact());
    assert_eq!(access.transactions_per_request, Some(4.0));
    assert_eq!(
        access.constraints,
        ["any value of the offset that data decides"]
    );
    // Lanes with a value of their own each go to a place of their own each.
    let gather = "a[bins[t] + t]";
    assert_eq!(expected(&format!("{gather} = 0;"), gather), Some(32.0));
    let factor = "a[bins[3] * t]";
    assert_eq!(expected(&format!("{factor} = 0;"), factor), Some(32.0));
}

#[test]
fn kepler_has_banks_of_8_bytes_on_request() {
    let passes = |body: &str, settings: &str| {
        let facts = facts(body, settings);
        let access = &facts.accesses[0];
        assert!(access.exact());
        (access.passes_per_request, access.ideal_passes_per_request)
    };
    let doubles = "wide[t] = 0;";
    let column = "wide[t * 32 % 512] = 0;";
    for (settings, expected) in [
        ("gpu = 'tesla-k40c'", [2.0, 2.0]),
        ("gpu = 'tesla-k40c'\nsharedBankBytes = 4", [2.0, 2.0]),
        ("gpu = 'tesla-k40c'\nsharedBankBytes = 8", [1.0, 1.0]),
        // Others have one mode: the setting changes nothing.
        ("gpu = 'a100-sxm4-40gb'\nsharedBankBytes = 8", [2.0, 2.0]),
    ] {
        let [now, ideal] = expected.map(Some);
        assert_eq!(passes(doubles, settings), (now, ideal), "{settings}");
    }
    // 16 words, twice each, of one bank.
    assert_eq!(
        passes(column, "gpu = 'tesla-k40c'\nsharedBankBytes = 8"),
        (Some(16.0), Some(1.0))
    );
    let (_, problems) = Settings::from_toml("sharedBankBytes = 16");
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].message.contains("4 or 8 bytes"),
        "{}",
        problems[0].message
    );
}

#[test]
fn a_pointer_that_each_lane_chooses_goes_to_either_array() {
    type Takes = fn(i32) -> bool;
    let choices: [(&str, Takes); 4] = [
        ("t % 3 == 0", |t| t % 3 == 0),
        ("t < 11", |t| t < 11),
        ("t / 7 % 2 == 1", |t| t / 7 % 2 == 1),
        ("t < 40", |_| true),
    ];
    for (condition, takes) in choices {
        for (choose, shift) in [
            (format!("p = {condition} ? a : (float *)bins;"), 0),
            (
                format!("if ({condition}) p = a; else {{ p = (float *)bins; p += 13; }}"),
                13,
            ),
        ] {
            let body = format!("float *p; {choose} float v = p[2 * t]; wide[t] = v;");
            let found = facts(&body, "gpu = 'rtx-a4000'");
            let access = first(&found, "p[2 * t]");
            let sectors: HashSet<(bool, i32)> = (0..32)
                .map(|t| {
                    let word = 2 * t + if takes(t) { 0 } else { shift };
                    (takes(t), word / 8)
                })
                .collect();
            assert_eq!(
                access.transactions_per_request,
                Some(sectors.len() as f64),
                "{body}"
            );
        }
    }
}

#[test]
fn constant_memory_is_read_a_word_at_a_time() {
    for (index, expected) in [("0", 1.0), ("t", 32.0), ("t / 8", 4.0), ("t % 3", 3.0)] {
        let facts = facts(&format!("a[t] = table[{index}];"), "");
        let access = first(&facts, &format!("table[{index}]"));
        assert_eq!(access.space, Space::Constant);
        assert_eq!(access.passes_per_request, Some(expected), "{index}");
        assert!(access.exact());
    }
}

#[test]
fn atomics_wait_for_one_another_on_one_address() {
    for (index, expected) in [("0", 32.0), ("t", 1.0), ("t % 4", 8.0), ("t / 5", 5.0)] {
        for (array, space) in [("bins", Space::Global), ("few", Space::Shared)] {
            let facts = facts(&format!("atomicAdd(&{array}[{index}], 1);"), "");
            let access = &facts.accesses[0];
            assert_eq!((access.space, access.op), (space, Op::Atomic));
            assert_eq!(
                access.passes_per_request,
                Some(expected),
                "{array}[{index}]"
            );
            assert!(access.exact());
        }
    }
}

#[test]
fn a_threads_own_array_is_in_registers_while_its_index_is_known() {
    // What the compiler makes of it in the end is said to be its affair.
    let own = |body: &str| {
        let analysis = analysis(body, "");
        let access = first(&analysis.facts, "own[1]");
        assert_eq!(access.space, Space::Local);
        assert!(!access.exact());
        let why = access.why.expect("not exact for a reason");
        assert!(why == Why::InRegisters, "{why}");
        analysis.input.resources.local_bytes_per_thread
    };
    assert_eq!(own("float own[4]; own[1] = a[t]; a[t] = own[1];"), 0);
    // Of four the assembler picks one by comparisons; of two hundred it does not, nor of doubles.
    assert_eq!(own("float own[4]; own[1] = a[t]; a[t] = own[t % 4];"), 0);
    assert_eq!(
        own("float own[200]; own[1] = a[t]; own[bins[1]] = a[t + 1]; a[t] = own[bins[0]];"),
        800
    );
    assert_eq!(
        own("double own[3]; own[1] = a[t]; a[t] = own[bins[0]];"),
        24
    );
}
