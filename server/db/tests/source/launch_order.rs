//! The first that gives a launch decides it, in whichever way it says so.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

fn grid(argument: LaunchValues) -> [u64; 3] {
    let text = "// warplens: block=256 grid=2048\n\
        __kernel void k(__global float *a) { a[get_global_id(0)] = 0; }\n";
    let overrides = Overrides {
        argument,
        ..Overrides::default()
    };
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(text, Language::OpenCl),
            Path::new("k.cl"),
            &Settings::default(),
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    file.kernels[0].analysis.facts.launch.grid
}

#[test]
fn a_global_size_on_the_command_line_wins_over_the_grid_of_a_directive() {
    assert_eq!(grid(LaunchValues::default()), [2048, 1, 1]);
    let global = LaunchValues {
        global: Some([1000, 1, 1]),
        ..LaunchValues::default()
    };
    assert_eq!(grid(global), [4, 1, 1]);
    let both = LaunchValues {
        global: Some([1000, 1, 1]),
        block: Some([64, 1, 1]),
        ..LaunchValues::default()
    };
    assert_eq!(grid(both), [16, 1, 1]);
}
