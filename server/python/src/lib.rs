//! `warplens._native`: the engine for the Python package around it (`python/warplens`).
//!
//! Requests and results cross the border as JSON: requests as [`question::Question`] and the configurations of a sweep, answers
//! as the engine's own documents. What is wrong with a question is a `ValueError`; a panic never crosses.

mod question;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;
use warplens_base::DiskFiles;
use warplens_db::wire::SweepLine;
use warplens_db::{
    Configuration, DEFAULT_GPU, Engine, ModelId, Overrides, Profiles, STACK, TunedKernel,
    user_profiles,
};
use warplens_report::gpus::{GpusDocument, gpu};

use question::{Question, read};

/// Where the analysis runs: on stacks as deep as source nests, without the lock of the interpreter.
fn pool() -> PyResult<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    POOL.get_or_init(|| ThreadPoolBuilder::new().stack_size(STACK).build().ok())
        .as_ref()
        .ok_or_else(|| PyRuntimeError::new_err("the threads that analyse could not be started"))
}

/// The engine for texts without a file. It is kept, so that its caches serve later calls.
fn for_texts() -> &'static Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| Arc::new(Engine::new(profiles())))
}

/// The built-in GPUs, and over them the user's and those of the current folder.
fn profiles() -> Profiles {
    user_profiles::in_force(&DiskFiles::new(), &[PathBuf::from(".")]).0
}

/// Runs a piece of work on the pool. Its own error is a `ValueError`, a panic a `RuntimeError`.
fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, String> + Send) -> PyResult<T> {
    let pool = pool()?;
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| pool.install(work))));
    match done {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(why)) => Err(PyValueError::new_err(why)),
        Err(_) => Err(PyRuntimeError::new_err(
            "an internal error lost this result; please report it with the source",
        )),
    }
}

fn json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// A question about a text, answered with a `warplens.estimate/1` document.
#[pyfunction]
fn estimate(py: Python<'_>, source: &str, question: &str) -> PyResult<String> {
    run(py, || {
        let question: Question = read(question)?;
        let engine = question.engine();
        let models = question.models()?;
        let settings = question.settings(engine.profiles())?;
        let overrides = Overrides::of_configuration(&question.configuration);
        let document = question.document(source)?;
        let kernels: Vec<String> = question.kernel.clone().into_iter().collect();
        let path = question.path();
        let answer = engine.estimate(
            &document,
            &path,
            &settings,
            &overrides,
            &[],
            &models,
            &kernels,
        )?;
        if answer.results.is_empty() {
            return Err(format!("there is no kernel in {}", path.display()));
        }
        json(&answer)
    })
}

/// The GPUs as a `warplens.gpus/1` document.
#[pyfunction]
fn gpus(py: Python<'_>) -> PyResult<String> {
    run(py, || {
        let profiles = profiles();
        let gpus: Vec<_> = profiles.iter().map(|profile| gpu(&profile)).collect();
        json(&GpusDocument {
            schema: "warplens.gpus/1",
            gpus,
        })
    })
}

/// One kernel under many configurations.
#[pyclass(frozen)]
struct Sweep {
    kernel: std::sync::Mutex<TunedKernel>,
    kernel_tuner: bool,
}

#[pymethods]
impl Sweep {
    /// `kernel_tuner`: the configurations are built as Kernel Tuner builds them.
    #[new]
    fn new(py: Python<'_>, source: &str, question: &str, kernel_tuner: bool) -> PyResult<Sweep> {
        run(py, || {
            let question: Question = read(question)?;
            let model = match question.models()?.as_slice() {
                [model] => *model,
                _ => return Err("a sweep asks one model".to_owned()),
            };
            let engine = question.engine();
            let kernel = question
                .kernel
                .as_deref()
                .ok_or("a sweep needs the kernel's name")?;
            let settings = question.settings(engine.profiles())?;
            let document = question.document(source)?;
            let path = question.path();
            let kernel = TunedKernel::new(engine, document, &path, settings, kernel, model);
            Ok(Sweep {
                kernel: std::sync::Mutex::new(kernel),
                kernel_tuner,
            })
        })
    }

    /// What is predicted of these configurations, in their order: the lines of `warplens sweep`.
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 passes owned values")]
    fn predict(&self, py: Python<'_>, configurations: Vec<String>) -> PyResult<Vec<String>> {
        run(py, || {
            let all: Vec<Result<Configuration, String>> = configurations
                .iter()
                .map(|text| self.configuration(text))
                .collect();
            let lost = "an internal error lost this sweep";
            let mut kernel = self.kernel.lock().map_err(|_| lost.to_owned())?;
            kernel.prepare(all.iter().flatten());
            let kernel = &*kernel;
            let line = |one: &Result<Configuration, String>| match one {
                Ok(configuration) => kernel.line(configuration),
                Err(why) => SweepLine::invalid(serde_json::Value::Null, why.clone()),
            };
            all.par_iter().map(|one| json(&line(one))).collect()
        })
    }
}

impl Sweep {
    fn configuration(&self, text: &str) -> Result<Configuration, String> {
        let mut configuration: Configuration = read(text)?;
        if self.kernel_tuner {
            configuration.as_kernel_tuner_builds();
        }
        Ok(configuration)
    }
}

/// The module.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DEFAULT_GPU", DEFAULT_GPU)?;
    module.add("MODELS", ModelId::ALL.map(ModelId::name).to_vec())?;
    module.add_function(wrap_pyfunction!(estimate, module)?)?;
    module.add_function(wrap_pyfunction!(gpus, module)?)?;
    module.add_class::<Sweep>()
}
