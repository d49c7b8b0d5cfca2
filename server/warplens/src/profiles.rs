//! The profiles in force for a command, and what is wrong with those that were left out.

use std::path::{Path, PathBuf};

use warplens_base::DiskFiles;
use warplens_db::settings::gpu_named;
use warplens_db::user_profiles;
use warplens_db::wire::Diagnostic;
use warplens_machine::{ProfileError, Profiles};

use crate::config::shown;

/// Those for files or folders that are looked at; what is wrong as `config/invalid`.
pub fn of(places: &[PathBuf]) -> (Profiles, Vec<Diagnostic>) {
    let (profiles, problems) = user_profiles::in_force(&DiskFiles::new(), places);
    (profiles, problems.into_iter().map(invalid).collect())
}

/// Those for the current folder; what is wrong as lines.
pub fn here() -> (Profiles, Vec<String>) {
    let (profiles, problems) = user_profiles::in_force(&DiskFiles::new(), &[PathBuf::from(".")]);
    let lines = problems.into_iter().map(|mut problem| {
        problem.file = shown(Path::new(&problem.file)).display().to_string();
        problem.to_string()
    });
    (profiles, lines.collect())
}

/// The id of the GPU that an option names.
pub fn id(name: &str, profiles: &Profiles) -> anyhow::Result<String> {
    let profile = gpu_named(name, profiles).map_err(anyhow::Error::msg)?;
    Ok(profile.id.clone())
}

/// The ids of the GPUs that an option names, each once; `all` is every GPU.
pub fn ids(names: &[String], profiles: &Profiles) -> anyhow::Result<Vec<String>> {
    if names.iter().any(|name| name == "all") {
        return Ok(profiles.ids().map(str::to_owned).collect());
    }
    let mut ids = Vec::new();
    for name in names {
        let id = id(name, profiles)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn invalid(problem: ProfileError) -> Diagnostic {
    let narrow = |place: usize| u32::try_from(place.max(1)).unwrap_or(u32::MAX);
    let (line, column) = (narrow(problem.line), narrow(problem.column));
    let bytes = problem.span.map_or(1, |span| span.len());
    let key = problem
        .key
        .map(|key| format!("{key}: "))
        .unwrap_or_default();
    Diagnostic {
        rule: "config/invalid".to_owned(),
        severity: "error",
        file: shown(Path::new(&problem.file)).display().to_string(),
        line,
        column,
        end_line: line,
        end_column: column.saturating_add(narrow(bytes)),
        message: format!("{key}{}; the profile is ignored", problem.problem),
        gain: 1.0,
        ..Diagnostic::default()
    }
}
