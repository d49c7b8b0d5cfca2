//! The queries, a file a family. From a keystroke to what is shown:
//!
//! | query | of | is computed again where |
//! | --- | --- | --- |
//! | [`files`] `analyze` | a document, its path, settings | it is asked |
//! | [`targets`] `on_nearest` | a file's analysis | it is asked; another GPU is asked where the target cannot run a kernel |
//! | [`translation`] `translate` | the same | the document or a file that it read has changed |
//! | [`includers`] `chain`, `including` | a path | a file near it includes something else |
//! | [`commands`] `command` | a path | files appear or go, or the caller says that they may have |
//! | [`before`], [`near`] | a path, names | words of files near it change |
//! | [`expansion`] `expand` | a document under its compile command | its text or a header changed; item by item |
//! | [`headers`] | a header under macros | its text or a macro that it looks at changed |
//! | [`units`] `items`, `program` | a preprocessed text | a declaration changed |
//! | [`launches`] | a program | what launches changed; kernels count by their names |
//! | [`hosts`] `host_program` | a file | it or a file that it reads changed |
//! | [`launchers`] `near_launches` | a kernel's head, its file's path | a host program near it changed |
//! | [`linkage`] `lacking` | texts | one of them calls or defines another function |
//! | [`runs`] `program_texts`, `may_launch` | a file with `main`; and the names of kernels | it or a file that it is made of changed |
//! | [`runs`] `program_run` | a file with `main`, its arguments | the same; what is typed in a kernel runs nothing |
//! | [`parts`] | all of these | one of them changed |
//! | [`variants`] `kernel_results` | a kernel under each launch that is looked at | it is asked |
//! | [`kernels`] `lowered` | a kernel's text, its unit | either changed |
//! | [`compiled_kernels`] `compiled_kernel` | a kernel in IR, options | what a compiler sees of it changed |
//! | [`facts`] `facts` | a kernel in IR, its launch resolved, a GPU | one of them changed; not where a compiler reported |
//! | [`model_inputs`] `model_input` | facts, what the machine executes | one of them changed |
//! | [`estimates`] `estimates` | a model's input, what is left out | one of them changed; a model runs when it is asked |
//! | [`findings`] `findings` | a model's input, the rules that are enabled | one of them changed |
//! | [`analyses`] `analysis` | a kernel in IR, a launch, a GPU | the IR changed; its place is no part of it; it joins the five before |
//!
//! Those of files and folders ([`near`], [`includers`], [`hosts`], [`launchers`]) are salsa's and known by what they read; those of
//! texts are known by content, see [`crate::memo`] and [`crate::readings`]. Each panics for itself: what failed costs one kernel.

pub(crate) mod analyses;
pub(crate) mod arguments;
pub(crate) mod before;
pub(crate) mod branches;
mod builds;
pub(crate) mod commands;
pub(crate) mod compiled_kernels;
pub(crate) mod estimates;
pub(crate) mod expansion;
pub(crate) mod facts;
pub(crate) mod files;
pub(crate) mod findings;
pub(crate) mod headers;
pub(crate) mod hosts;
pub(crate) mod includers;
pub(crate) mod kernels;
pub(crate) mod launchers;
pub(crate) mod launches;
mod linkage;
pub(crate) mod model_inputs;
pub(crate) mod near;
pub(crate) mod parts;
pub(crate) mod runs;
pub(crate) mod targets;
pub(crate) mod translation;
pub(crate) mod units;
pub(crate) mod variants;
