//! Launch and arguments as options: what `check` and `estimate` share, and what of it is refused.

use clap::Args;
use warplens_db::settings::Scalar;
use warplens_db::{FileAnalysis, KernelAnalysis, LOST_KERNEL, LaunchValues};
use warplens_machine::Profile;

use crate::{suggest, values};

/// Kernels, their launch and their arguments.
#[derive(Debug, Clone, Default, Args)]
pub struct Launching {
    /// Only kernels of that name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub kernel: Vec<String>,
    /// Blocks of the launch
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = values::extents)]
    grid: Option<[u64; 3]>,
    /// Threads of a block
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = values::extents)]
    block: Option<[u64; 3]>,
    /// OpenCL's global size, in work-items
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = values::extents, conflicts_with = "grid")]
    global: Option<[u64; 3]>,
    /// OpenCL's local size, in work-items
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = values::extents, conflicts_with = "block")]
    local: Option<[u64; 3]>,
    /// Dynamic shared memory of a block
    #[arg(long, value_name = "BYTES")]
    dynamic_shared: Option<u64>,
    /// Value of a scalar kernel parameter (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::argument)]
    arg: Vec<(String, Scalar)>,
}

impl Launching {
    /// The values, as they win over those of files.
    pub fn values(&self) -> LaunchValues {
        let mut values = LaunchValues {
            grid: self.grid,
            block: self.block.or(self.local),
            global: self.global,
            dynamic_shared_bytes: self.dynamic_shared,
            ..LaunchValues::default()
        };
        for (name, value) in &self.arg {
            values.give(name, *value);
        }
        values
    }

    /// True where a kernel of that name is asked for.
    pub fn wants(&self, kernel: &str) -> bool {
        self.kernel.is_empty() || self.kernel.iter().any(|of| of == kernel)
    }

    /// True where names of kernels or parameters are given, which may be wrong.
    pub fn names_something(&self) -> bool {
        !self.kernel.is_empty() || !self.arg.is_empty()
    }

    /// One line about a block that no launch on this GPU can have.
    pub fn refuse_block(&self, profile: &Profile) -> Result<(), String> {
        let (option, block) = match (self.block, self.local) {
            (Some(block), _) => ("--block", block),
            (None, Some(local)) => ("--local", local),
            (None, None) => return Ok(()),
        };
        let threads = block
            .iter()
            .fold(1, |product: u64, side| product.saturating_mul(*side));
        let most = u64::from(profile.max_threads_per_block);
        if threads <= most {
            return Ok(());
        }
        let [given, fits] = [block, values::fitting(block, most)].map(values::as_given);
        Err(format!(
            "{option} {given}: a block has at most {most} threads on {}, and this one has {threads}; try {option} {fits}",
            profile.id
        ))
    }
}

/// What kernels call things: names that options may mean.
#[derive(Debug, Clone, Default)]
pub struct Names {
    kernels: Vec<String>,
    scalars: Vec<String>,
    templates: Vec<String>,
}

impl Names {
    /// Those of the kernels of a file that are asked for; the others are known by name.
    pub fn of(analysis: &FileAnalysis, launching: &Launching) -> Names {
        let mut names = Names::default();
        let lost = analysis.findings.iter();
        let lost = lost.filter(|finding| finding.rule == LOST_KERNEL);
        let lost = lost.filter_map(|finding| finding.kernel.clone());
        names.kernels.extend(lost);
        for kernel in &analysis.kernels {
            let kernel: &KernelAnalysis = &kernel.analysis;
            names.kernels.push(kernel.facts.name.clone());
            if launching.wants(&kernel.facts.name) {
                names.scalars.extend(kernel.scalars.iter().cloned());
                let bound = kernel.template_args.iter().map(|(name, _)| name.clone());
                let assumed = kernel.facts.assumptions.iter();
                names.templates.extend(bound);
                let named = assumed
                    .filter(|assumed| assumed.symbol.is_named(&assumed.symbol.to_string()))
                    .map(|assumed| assumed.symbol.to_string())
                    .filter(|name| !kernel.scalars.contains(name));
                names.templates.extend(named);
            }
        }
        names
    }

    /// Those of several files.
    pub fn add(&mut self, other: Names) {
        self.kernels.extend(other.kernels);
        self.scalars.extend(other.scalars);
        self.templates.extend(other.templates);
    }

    /// One line about the first name that is no kernel's; `place` says what was looked at: `k.cu has`.
    pub fn refuse(
        mut self,
        launching: &Launching,
        templates: &[(String, String)],
        place: &str,
    ) -> Result<(), String> {
        for names in [&mut self.kernels, &mut self.scalars, &mut self.templates] {
            names.sort_unstable();
            names.dedup();
        }
        let known = |names: &[String], name: &str| names.iter().any(|known| known == name);
        let unknown = |what: &str, name: &str, names: &[String], look: &str| {
            Err(suggest::unknown(
                what,
                name,
                names.iter().map(String::as_str),
                look,
            ))
        };
        if let Some(name) = launching
            .kernel
            .iter()
            .find(|name| !known(&self.kernels, name))
        {
            let look = match self.kernels.as_slice() {
                [] => format!("{place} no kernels"),
                kernels => format!("{place} {}", listed(kernels)),
            };
            return unknown("kernel", name, &self.kernels, &look);
        }
        let scalar = |name: &str| {
            // A member that the kernel does not read changes nothing.
            let of = name.split(['.', '[']).next().unwrap_or(name);
            known(&self.scalars, name) || of != name && known(&self.scalars, of)
        };
        if let Some((name, _)) = launching.arg.iter().find(|(name, _)| !scalar(name)) {
            let look = match self.scalars.as_slice() {
                [] => "there are no scalar parameters".to_owned(),
                scalars => format!("scalar parameters: {}", listed(scalars)),
            };
            return unknown("parameter", name, &self.scalars, &look);
        }
        if let Some((name, _)) = templates
            .iter()
            .find(|(name, _)| !known(&self.templates, name))
        {
            let look = match self.templates.as_slice() {
                [] => "there are no template parameters".to_owned(),
                templates => format!("template parameters: {}", listed(templates)),
            };
            return unknown("template parameter", name, &self.templates, &look);
        }
        Ok(())
    }
}

/// Names that a line lists; the others are counted.
const LISTED: usize = 12;

fn listed(names: &[String]) -> String {
    let first = names[..names.len().min(LISTED)].join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
