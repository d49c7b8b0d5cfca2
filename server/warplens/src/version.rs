//! What `--version` says: of a wrong figure, these are what one has to know to look for it.

use std::sync::LazyLock;

use warplens_machine::Profiles;
use warplens_syntax::Language;

/// Version and commit.
pub const SHORT: &str = env!("WARPLENS_VERSION");

/// The same, and below it the grammars, the profiles and the machine that it was built for.
pub fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{SHORT}\ngrammars: {}, {}\nprofiles: {}\ntarget: {}",
            Language::Cuda.grammar(),
            Language::OpenCl.grammar(),
            Profiles::builtin_version(),
            env!("WARPLENS_TARGET"),
        )
    });
    &LONG
}
