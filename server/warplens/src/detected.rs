//! The GPUs of this machine, as their vendors' tools name them, and the profiles that they have.

use std::sync::Arc;
use std::time::Duration;

use warplens_machine::{Profile, Profiles};
use warplens_toolchain::machine::{self, NamedGpu};

/// How long one tool may take.
const BOUND: Duration = Duration::from_secs(10);

/// A GPU of this machine.
#[derive(Debug, serde::Serialize)]
pub struct DetectedGpu {
    /// The tool that lists it.
    pub tool: &'static str,
    /// As the tool names it.
    pub name: String,
    /// The id of its profile; `None` where there is none.
    pub profile: Option<String>,
    /// The id of the profile that is nearest to it, where it has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// What was found.
#[derive(Debug)]
pub struct Detected {
    /// Each GPU once, in the order of the tools.
    pub gpus: Vec<DetectedGpu>,
    /// Tools that are there and did not answer, with why.
    pub silent: Vec<(&'static str, String)>,
    /// True where some tool is there.
    pub has_tools: bool,
}

/// Runs the tools on the PATH.
pub fn here(profiles: &Profiles) -> Detected {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let lists = machine::gpus(&search_path, BOUND);
    let mut detected = Detected {
        gpus: Vec::new(),
        silent: Vec::new(),
        has_tools: lists.iter().any(|list| list.path.is_some()),
    };
    for list in lists {
        match list.gpus {
            Err(failure) => detected.silent.push((list.tool, failure.to_string())),
            Ok(gpus) => {
                for gpu in gpus {
                    let found = profile(&gpu, profiles);
                    let id = |own: bool| {
                        let found = found.as_ref().filter(|(_, is_it)| *is_it == own);
                        found.map(|(profile, _)| profile.id.clone())
                    };
                    let (profile, nearest) = (id(true), id(false));
                    // OpenCL lists again what the vendor's own tool listed.
                    let known = |one: &DetectedGpu| {
                        one.tool != list.tool
                            && (one.name == gpu.name
                                || one.profile.is_some() && one.profile == profile)
                    };
                    if detected.gpus.iter().any(known) {
                        continue;
                    }
                    detected.gpus.push(DetectedGpu {
                        tool: list.tool,
                        name: gpu.name,
                        profile,
                        nearest,
                    });
                }
            }
        }
    }
    detected
}

/// The profile by the GPU's name, else one of its architecture; whether it is the GPU's own.
fn profile(gpu: &NamedGpu, profiles: &Profiles) -> Option<(Arc<Profile>, bool)> {
    let by_architecture = || {
        let name = gpu.architecture.as_deref()?;
        let found = profiles
            .named(name)
            .or_else(|| profiles.of_capability(name))?;
        Some((found, false))
    };
    profiles.meant(&gpu.name).or_else(by_architecture)
}
