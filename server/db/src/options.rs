//! The options with which host programs build the OpenCL of a file: what they define counts as it does for the
//! compiler.

use std::path::Path;
use std::sync::Arc;

use warplens_host::Build;
use warplens_ir::{Assumption, AssumptionKind};

use crate::settings::Settings;

/// Kernels of a file that are looked for in host programs.
const MOST_KERNELS: usize = 64;

/// What one build defines for a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct BuildOptions {
    defines: Vec<(String, String)>,
    /// Where the host program builds it.
    place: String,
    /// Other builds define something else.
    one_of_several: bool,
}

impl BuildOptions {
    /// The options of the first of a host program's builds that makes one of these kernels, or of which it is not known
    /// knows what it makes; without what the user defines.
    pub(crate) fn of(
        builds: &[Build],
        kernels: &[String],
        host: &Path,
        source: &str,
        settings: &Settings,
    ) -> Option<BuildOptions> {
        let makes = |build: &&Build| build.kernels.iter().any(|kernel| kernels.contains(kernel));
        let own: Vec<&Build> = match builds.iter().filter(makes).collect::<Vec<_>>() {
            own if own.is_empty() => builds
                .iter()
                .filter(|build| build.kernels.is_empty())
                .collect(),
            own => own,
        };
        let first = own.iter().find(|build| !build.defines.is_empty())?;
        let line = source
            .get(..first.range.start)
            .map_or(0, |before| before.matches('\n').count());
        let name = host.file_name().unwrap_or_default().to_string_lossy();
        Some(BuildOptions {
            defines: first
                .defines
                .iter()
                .filter(|(name, _)| !settings.defines.contains_key(name))
                .cloned()
                .collect(),
            place: format!("{name}:{}", line + 1),
            one_of_several: own.iter().any(|build| build.defines != first.defines),
        })
    }

    /// The settings with what is defined here.
    pub(crate) fn applied(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        for (name, value) in &self.defines {
            settings.defines.insert(name.clone(), value.clone());
        }
        settings
    }

    /// The names that it defines.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.defines.iter().map(|(name, _)| name.as_str())
    }

    /// What is to be said about a kernel in a text that has these words.
    pub(crate) fn assumptions<'a>(
        &'a self,
        is_used: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = Assumption> + 'a {
        self.defines
            .iter()
            .filter(move |(name, _)| is_used(name))
            .map(|(name, value)| Assumption {
                name: name.clone(),
                value: value.clone(),
                kind: AssumptionKind::Options {
                    place: Arc::from(self.place.as_str()),
                    one_of_several: self.one_of_several,
                },
            })
    }
}

/// The names of the kernels that an OpenCL text defines, by its words.
pub(crate) fn kernel_names(text: &str) -> Vec<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found: Vec<String> = Vec::new();
    for (at, _) in text.match_indices("kernel") {
        let Some(end) = text[at..].find(['{', ';']) else {
            break;
        };
        // `__kernel __attribute__((…)) void name(`: the last name before a parenthesis behind `void`.
        let head = &text[at..at + end];
        let Some(void) = head.find("void") else {
            continue;
        };
        let mut open = head[void..]
            .match_indices('(')
            .map(|(paren, _)| void + paren);
        let name = open.find_map(|paren| {
            let before = head[..paren].trim_end();
            let name = &before[before.trim_end_matches(word).len()..];
            let plain = !name.is_empty() && !matches!(name, "__attribute__" | "void");
            plain.then_some(name).filter(|_| {
                head[..paren].matches('(').count() == head[..paren].matches(')').count()
            })
        });
        if let Some(name) = name
            && found.len() < MOST_KERNELS
            && !found.iter().any(|known| known == name)
        {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::kernel_names;

    #[test]
    fn kernels_are_found_by_their_words() {
        assert_eq!(
            kernel_names(
                "__kernel void one(int a) { }\n\
                 kernel __attribute__((reqd_work_group_size(8, 1, 1))) void two(int b) {}\n\
                 // kernel\nvoid helper(int c) {}\n__kernel\nvoid three (global int *d) { }"
            ),
            ["one", "two", "helper", "three"]
        );
        assert!(kernel_names("int kernel; void f(").is_empty());
        assert!(kernel_names("kernel").is_empty());
        // A letter of more than one byte ends a name.
        assert!(kernel_names("kernel void blur\u{e9}(int a) {}").is_empty());
        assert_eq!(kernel_names("kernel void \u{e9}blur(int a) {}"), ["blur"]);
    }
}
