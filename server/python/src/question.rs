//! What Python asks, as JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use warplens_base::DiskFiles;
use warplens_db::settings::{Settings, gpu_named};
use warplens_db::{
    Configuration, Document, Engine, Language, ModelId, Profiles, Project, language_by_content,
    user_profiles,
};

/// The parameters of a prediction for one text.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// The text's file: headers are searched from its folder.
    pub path: Option<PathBuf>,
    /// `cuda`, `hip` or `opencl`; by default what the file's name says, else the text.
    pub language: Option<String>,
    /// A profile's id, or a name or architecture that means one.
    pub gpu: Option<String>,
    /// A model's name, or `all`.
    pub model: Option<String>,
    /// The kernel's name.
    pub kernel: Option<String>,
    /// Macros for every configuration.
    pub defines: BTreeMap<String, String>,
    /// Folders of headers.
    pub include_paths: Vec<String>,
    /// The launch and the arguments.
    pub configuration: Configuration,
}

/// Reads JSON; an error in one line, without the place in a text that the user never saw.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        said.strip_suffix(&place).unwrap_or(&said).to_owned()
    })
}

impl Question {
    /// What the text is called in the answer.
    pub fn path(&self) -> PathBuf {
        self.path
            .clone()
            .unwrap_or_else(|| PathBuf::from("<source>"))
    }

    /// The engine that answers: for a file one that finds what lies around it, which may be another by the next question.
    pub fn engine(&self) -> Arc<Engine> {
        let Some(path) = &self.path else {
            return Arc::clone(crate::for_texts());
        };
        let folder = std::path::absolute(path)
            .ok()
            .and_then(|path| path.parent().map(Path::to_owned));
        let (profiles, _) = user_profiles::in_force(&DiskFiles::new(), std::slice::from_ref(path));
        let project = Project::new(Arc::new(DiskFiles::new()), folder.into_iter().collect());
        Arc::new(Engine::with_project(profiles, project))
    }

    /// The models to run.
    pub fn models(&self) -> Result<Vec<ModelId>, String> {
        match self.model.as_deref() {
            None => Ok(vec![ModelId::Auto]),
            Some("all") => Ok(ModelId::ALL.to_vec()),
            Some(name) => ModelId::named(name)
                .map(|model| vec![model])
                .ok_or_else(|| {
                    let names = ModelId::ALL.map(ModelId::name).join(", ");
                    format!("unknown model \"{name}\" (one of {names}, all)")
                }),
        }
    }

    /// The GPU, the macros and the folders of headers.
    pub fn settings(&self, profiles: &Profiles) -> Result<Settings, String> {
        if let Some(gpu) = &self.gpu
            && let Err(why) = gpu_named(gpu, profiles)
        {
            return Err(why.replace("`warplens gpus`", "`warplens.gpus()`"));
        }
        let mut defines = self.defines.clone();
        defines.extend(self.configuration.defines.clone());
        Ok(Settings {
            gpu: self.gpu.clone(),
            model: self.model.clone().filter(|model| model != "all"),
            defines,
            include_paths: self.include_paths.clone(),
            ..Settings::default()
        })
    }

    /// The text as a document of its language.
    pub fn document(&self, source: &str) -> Result<Document, String> {
        let language = match self.language.as_deref() {
            Some("cuda") => Language::Cuda,
            Some("hip") => Language::Hip,
            Some("opencl") => Language::OpenCl,
            Some(other) => {
                return Err(format!(
                    "unknown language \"{other}\" (one of cuda, hip, opencl)"
                ));
            }
            None => {
                let named = self.path.as_deref().and_then(Language::from_path);
                language_by_content(named, source)
            }
        };
        Ok(Document::new(source, language))
    }
}
