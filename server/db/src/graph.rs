//! The work flow graph of one kernel, for pictures.

use std::path::Path;

use warplens_models::wfg::drawing::{Drawing, draw};
use warplens_syntax::Document;

use crate::settings::Settings;
use crate::{Cancel, Engine, Overrides, PlacedKernel};

/// A kernel's work flow graph for one GPU; the lines of its nodes are the file's, from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkFlow {
    /// The kernel.
    pub kernel: String,
    /// The GPU's name.
    pub gpu: String,
    /// Blocks and threads of a block.
    pub launch: ([u64; 3], [u64; 3]),
    /// The graph.
    pub drawing: Drawing,
}

impl PlacedKernel {
    /// Its work flow graph; `Err` says why there is none.
    pub fn work_flow(&self) -> Result<WorkFlow, String> {
        let analysis = &self.analysis;
        let mut drawing = draw(&analysis.question())?;
        for node in &mut drawing.nodes {
            node.line = node.line.map(|line| self.place_line(line) + 1);
        }
        let launch = analysis.facts.launch;
        Ok(WorkFlow {
            kernel: analysis.facts.name.clone(),
            gpu: analysis.profile.name.clone(),
            launch: (launch.grid, launch.block),
            drawing,
        })
    }
}

impl Engine {
    /// The work flow graph of the kernel that is chosen: by `kernels`, or because there is one only. `Err` is one
    /// line about what to choose.
    pub fn work_flow(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        kernels: &[String],
    ) -> Result<WorkFlow, String> {
        let analysis = self
            .analyze(document, path, settings, overrides, &Cancel::default())
            .ok_or_else(|| "the analysis was stopped".to_owned())?;
        let chosen: Vec<&PlacedKernel> = analysis
            .kernels
            .iter()
            .filter(|placed| kernels.is_empty() || kernels.contains(&placed.analysis.facts.name))
            .collect();
        if let [one] = chosen.as_slice() {
            return one.work_flow();
        }
        let mut names: Vec<&str> = chosen
            .iter()
            .map(|placed| placed.analysis.facts.name.as_str())
            .collect();
        names.dedup();
        Err(if names.is_empty() {
            format!("a graph is of one kernel: {} has none", path.display())
        } else {
            format!(
                "a graph is of one kernel: choose one of {} with --kernel",
                names.join(", ")
            )
        })
    }
}
