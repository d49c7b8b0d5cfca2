//! Places in a kernel and the launch it runs under.

use crate::Reason;
use std::fmt;

/// Two positions in the kernel's text, as numbers in their order: [`crate::Places`] knows their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// Where it begins.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

/// A place in the kernel, by numbers: they stay when only comments and white space change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Site {
    /// From where to where.
    pub span: Span,
    /// Which of the lines that hold a site, in their order.
    pub line: u32,
    /// 0 for what the kernel's own text says; otherwise the place is the call's, and this numbers the callee's
    /// line among [`crate::Places::callees`], from 1.
    pub callee: u32,
}

/// A line of a function that was put in place of its call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CalleeLine {
    /// The header it is in; `None` for the kernel's own file.
    pub path: Option<std::sync::Arc<std::path::Path>>,
    /// In the kernel's own file: which function, as the hash of its text; lines count from its first.
    pub function: u64,
    /// 0-based line of that function's first byte when it was read.
    pub base_line: u32,
    /// 0-based line.
    pub line: u32,
    /// 0-based byte column.
    pub column: u32,
    /// The text there, the beginning of it.
    pub text: Box<str>,
    /// The call that led here: 0 is the kernel's own, otherwise a callee's line, from 1.
    pub caller: u32,
}

/// Something that was not understood; it costs that statement, not the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NotUnderstood {
    /// Where.
    pub site: Site,
    /// Why.
    pub reason: Reason,
}

/// Where a launch value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// Command line.
    Argument,
    /// `warplens.setLaunch`.
    SetLaunch,
    /// `// warplens: block=…`.
    Directive,
    /// `reqd_work_group_size`.
    Attribute,
    /// The launch in the source.
    LaunchSite,
    /// A run of the host program with its arguments.
    Run,
    /// Editor settings.
    Settings,
    /// `warplens.toml`.
    Config,
    /// As many threads as the kernel's guard lets work, where the grid is not given.
    Guard,
    /// The stated default.
    Assumed,
}

impl Source {
    /// The name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Source::Argument => "argument",
            Source::SetLaunch => "set-launch",
            Source::Directive => "directive",
            Source::Attribute => "attribute",
            Source::LaunchSite => "launch-site",
            Source::Run => "run",
            Source::Settings => "settings",
            Source::Config => "config",
            Source::Guard => "guard",
            Source::Assumed => "assumed",
        }
    }

    /// Values of the last three kinds are assumptions.
    pub fn is_assumption(self) -> bool {
        matches!(self, Source::Config | Source::Guard | Source::Assumed)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Launch {
    /// Blocks (work-groups) along x, y, z.
    pub grid: [u64; 3],
    /// Threads of a block along x, y, z.
    pub block: [u64; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared_bytes: u64,
    /// Where `block` comes from.
    pub block_source: Source,
    /// Where `grid` comes from.
    pub grid_source: Source,
    /// Where `dynamic_shared_bytes` comes from.
    pub shared_source: Source,
}

impl Launch {
    /// Threads of one block.
    pub fn threads_per_block(&self) -> u64 {
        self.block.iter().product()
    }

    /// Blocks of the launch.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().product()
    }

    /// Warps (waves) of one block, the last one perhaps partial.
    pub fn warps_per_block(&self, warp_size: u32) -> u64 {
        self.threads_per_block().div_ceil(u64::from(warp_size))
    }
}
