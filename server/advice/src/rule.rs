//! What a rule is: what is known of it without running it, what looks for it, and the code actions that answer it.

use crate::fixes::{Fix, Request};
use crate::{Context, Finding};

/// How far a rule is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On unless it is turned off.
    Stable,
    /// Off unless it is asked for by its id, or all such rules are: its precision is not good enough yet, or not measured.
    Preview,
}

impl State {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            State::Stable => "stable",
            State::Preview => "preview",
        }
    }
}

/// A rule: an entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// `category/name`, what diagnostics carry as their code.
    pub id: &'static str,
    /// One line.
    pub title: &'static str,
    /// How loud its findings are, in words.
    pub severity: &'static str,
    /// Whether it is reported without being enabled.
    pub state: State,
    /// The page, Markdown: what it detects, why it costs, how it is computed, an example, when it is wrong,
    /// how sure it is, references.
    pub explain: &'static str,
    /// What looks for it.
    pub(crate) look: Look,
    /// The code actions that answer its findings, in the order in which they are offered.
    pub(crate) actions: &'static [Action],
}

impl Rule {
    /// The part of the id before the slash.
    pub fn category(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }
}

/// Looks at one kernel under one launch: facts in, findings out.
pub(crate) type Check = fn(&Context<'_>) -> Vec<Finding>;

/// Offers edits for a range of a document, each proved.
pub(crate) type Action = fn(&Request<'_>) -> Vec<Fix>;

/// What looks for a rule's findings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Look {
    /// The rule itself. Of several rules about one thing the most general looks, and asks the more specific ones first.
    At(When, Check),
    /// The rule of this id, which looks for both.
    With(
        #[allow(
            dead_code,
            reason = "for who reads; a test holds that it is a rule that looks"
        )]
        &'static str,
    ),
    /// What reads settings and files.
    Elsewhere,
}

/// When a rule looks; in this order findings at one place are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before all others: whether the launch can happen.
    Launch,
    /// Where the launch can happen: what accesses move.
    Traffic,
    /// Where the launch can happen: what the compiler loads again.
    Reload,
    /// Where the launch can happen: what else costs time under it.
    Cost,
    /// Likewise, and only where the rule is enabled: what is tried out, and may compile the kernel once more.
    Trial,
    /// Under any launch: what is right or wrong.
    Always,
}
