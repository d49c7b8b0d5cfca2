//! `warplens explain`: what a rule means.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use warplens_advice::{catalogue, find};
use warplens_report::{Paint, Style, pages};

use crate::output::{self, Colour};
use crate::suggest;

/// What a rule means, why it costs, how to fix it and how sure it is; without RULE all of them, one a line
#[derive(Debug, Args)]
pub struct Explain {
    /// Rule id, such as mem/strided
    rule: Option<String>,
}

impl Explain {
    /// Runs it.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        let style = output::style(colour);
        let Some(id) = self.rule else {
            output::emit(&list(style))?;
            return Ok(ExitCode::SUCCESS);
        };
        let rule = find(&id).ok_or_else(|| {
            let known = catalogue().iter().map(|rule| rule.id);
            anyhow!(suggest::unknown(
                "rule",
                &id,
                known,
                "`warplens explain` lists them"
            ))
        })?;
        output::emit(&pages::shown(rule.explain, style))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn list(style: Style) -> String {
    let width = catalogue()
        .iter()
        .map(|rule| rule.id.len())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for rule in catalogue() {
        style.push(&mut out, Paint::Strong, rule.id);
        out.push_str(&" ".repeat(width - rule.id.len() + 2));
        out.push_str(rule.title);
        out.push('\n');
    }
    out
}
