//! The subscript of the FFT in Baghsorkhi et al. (PPoPP 2010), expression (15):
//! `floor((b*N + t) / 2^j) * 2^(j+1) + (b*N + t) mod 2^j + i*2^j`. Under `N % 2^J == 0`, J the upper bound of j, the
//! part of the thread is separated from that of the block: `2*b*N + floor(t / 2^j) * 2^(j+1) + t mod 2^j + i*2^j`.

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, LaunchValues, Overrides};
use warplens_facts::facts::Access;
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

const WHOLE: &str =
    "(b * N + t) / (1 << j) * (1 << (j + 1)) + (b * N + t) % (1 << j) + i * (1 << j)";
const SEPARATED: &str = "2 * b * N + t / (1 << j) * (1 << (j + 1)) + t % (1 << j) + i * (1 << j)";

/// The store of two loops over j up to `most` and i; N is 1024 by assumption or as given.
fn store(index: &str, most: u32, n: Option<i64>) -> Access {
    let text = format!(
        "__global__ void fft(float *data, int N) {{\n\
         int t = threadIdx.x, b = blockIdx.x;\n\
         for (int j = 0; j <= {most}; j++) for (int i = 0; i < 2; i++) data[{index}] = 0;\n}}\n"
    );
    let overrides = Overrides {
        argument: LaunchValues {
            grid: Some([16, 1, 1]),
            block: Some([64, 1, 1]),
            args: n.map(|n| ("N".to_owned(), n)).into_iter().collect(),
            ..LaunchValues::default()
        },
        ..Overrides::default()
    };
    let file = Engine::new(Profiles::builtin())
        .analyze(
            &Document::new(&text, Language::Cuda),
            Path::new("fft.cu"),
            &Settings::default(),
            &overrides,
            &Cancel::default(),
        )
        .expect("not cancelled");
    file.kernels[0].analysis.facts.accesses[0].clone()
}

#[test]
fn the_constraint_is_that_of_the_paper() {
    // From J = 3 on it also keeps whole sectors of 8 floats together.
    for most in 3..=6 {
        let access = store(WHOLE, most, None);
        assert!(access.exact(), "{:?}", access.why);
        assert_eq!(access.constraints, [format!("N % {} == 0", 1 << most)]);
    }
}

#[test]
fn under_the_constraint_the_whole_is_what_is_separated() {
    for most in [3, 4, 5] {
        let step = 1 << most;
        for n in [step, 5 * step, 1024, 1024 + step] {
            let (whole, separated) = (store(WHOLE, most, Some(n)), store(SEPARATED, most, Some(n)));
            assert!(whole.exact() && separated.exact());
            assert_eq!(
                (whole.transactions_per_request, whole.requests),
                (separated.transactions_per_request, separated.requests),
                "J = {most}, N = {n}"
            );
            // And what the assumed N gives, as the constraint says.
            assert_eq!(
                whole.transactions_per_request,
                store(WHOLE, most, None).transactions_per_request
            );
        }
    }
    // One off, blocks begin in the middle of a butterfly: the two part.
    let (whole, separated) = (store(WHOLE, 4, Some(1025)), store(SEPARATED, 4, Some(1025)));
    assert_ne!(
        whole.transactions_per_request,
        separated.transactions_per_request
    );
}
