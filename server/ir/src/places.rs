//! Where the parts of a kernel stand, apart from what they are.
//!
//! A kernel's IR numbers the positions that it speaks of in their order and leaves to [`Places`] which bytes and
//! lines these are. Comments, white space and blank lines move the bytes and keep the numbers: what is known of the
//! IR holds on, and a new table says where it is now.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHasher;

use crate::kernel::{BinaryOp, Expr, ExprKind, Kernel, Stmt, StmtKind};
use crate::walk::{Part, each_site, parts};
use crate::{CalleeLine, Site, Span};

/// Where the sites of one kernel stand in its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    text: Box<str>,
    /// The byte of each position.
    bytes: Vec<u32>,
    /// Each line that holds a site, 0-based from the kernel's first.
    lines: Vec<u32>,
    callees: Vec<CalleeLine>,
}

impl Places {
    /// Takes the bytes and lines out of a kernel just lowered: its sites hold numbers from then on.
    pub fn number(kernel: &mut Kernel, text: &str, callees: Vec<CalleeLine>) {
        // An end before the beginning that touches it, so that a space between the two changes no order.
        let mut positions: BTreeSet<(u32, bool)> = BTreeSet::new();
        let mut lines: BTreeSet<u32> = BTreeSet::new();
        all_sites(kernel, &mut |site| {
            positions.insert((site.span.start, true));
            positions.insert((site.span.end, false));
            lines.insert(site.line);
        });
        let positions: Vec<(u32, bool)> = positions.into_iter().collect();
        let lines: Vec<u32> = lines.into_iter().collect();
        let of =
            |position: (u32, bool)| positions.partition_point(|known| *known < position) as u32;
        all_sites(kernel, &mut |site| {
            site.span = Span {
                start: of((site.span.start, true)),
                end: of((site.span.end, false)),
            };
            site.line = lines.partition_point(|known| *known < site.line) as u32;
        });
        kernel.places = Arc::new(Places {
            text: text.into(),
            bytes: positions.into_iter().map(|(byte, _)| byte).collect(),
            lines,
            callees,
        });
    }

    /// Bytes from the kernel's first.
    pub fn bytes(&self, span: Span) -> Range<usize> {
        let byte = |position: u32| self.bytes.get(position as usize).copied().unwrap_or(0) as usize;
        byte(span.start)..byte(span.end)
    }

    /// The positions of a site that is just these bytes; none where no site begins or none ends there.
    pub fn span(&self, bytes: Range<usize>) -> Option<Span> {
        let (start, end) = (bytes.start as u32, bytes.end as u32);
        // Where one ends and one begins at a byte, the end has the lower number.
        let start_at = self.bytes.partition_point(|byte| *byte <= start);
        let end_at = self.bytes.partition_point(|byte| *byte < end);
        let span = Span {
            start: start_at.checked_sub(1)? as u32,
            end: end_at as u32,
        };
        (self.bytes(span) == bytes && end_at < self.bytes.len()).then_some(span)
    }

    /// The line of a site, 0-based from the kernel's first.
    pub fn line(&self, number: u32) -> u32 {
        self.lines.get(number as usize).copied().unwrap_or(0)
    }

    /// The lines that hold sites, by their numbers.
    pub fn lines(&self) -> &[u32] {
        &self.lines
    }

    /// Lines of the functions that the kernel calls, which sites refer to.
    pub fn callees(&self) -> &[CalleeLine] {
        &self.callees
    }

    /// The line of a called function that a site names.
    pub fn callee(&self, site: Site) -> Option<&CalleeLine> {
        self.callees.get((site.callee as usize).checked_sub(1)?)
    }

    /// The text at a site, in one line without its comments.
    pub fn quote(&self, site: Site) -> String {
        match self.callee(site) {
            Some(callee) => callee.text.to_string(),
            None => in_one_line(self.text.get(self.bytes(site.span)).unwrap_or("")),
        }
    }
}

impl Kernel {
    /// A hash of all that an analysis of the kernel depends on: what it says, which of its places share a line, and
    /// what may be quoted of it. Where it is is no part of that.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (&self.name, self.name_site, self.language).hash(&mut hasher);
        (&self.vars, self.params, &self.body, &self.routines).hash(&mut hasher);
        (self.max_threads, self.min_blocks, self.max_registers).hash(&mut hasher);
        (self.required_block, self.cluster, self.axes).hash(&mut hasher);
        (&self.template_args, &self.assumed, &self.undefined).hash(&mut hasher);
        (&self.not_understood, &self.calls).hash(&mut hasher);
        for callee in self.places.callees() {
            (&callee.text, callee.caller).hash(&mut hasher);
        }
        let mut quoted: BTreeSet<Site> = BTreeSet::new();
        let bodies = self.routines.iter().map(|routine| &routine.body);
        for body in bodies.chain([&self.body]) {
            parts(body, &mut |part| match part {
                Part::Expression(expression) => quotes(expression, &mut quoted),
                Part::Statement(statement) => quotes_of(statement, &mut quoted),
            });
        }
        for site in quoted {
            if site.callee == 0 {
                self.places.quote(site).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// What facts and findings quote: accesses of memory, conditions, constants, divisions.
fn quotes(expression: &Expr, into: &mut BTreeSet<Site>) {
    match &expression.kind {
        ExprKind::Var(_)
        | ExprKind::Index(..)
        | ExprKind::Deref(_)
        | ExprKind::Field(..)
        | ExprKind::AddressOf(_)
        | ExprKind::Call(..)
        | ExprKind::Opaque(..)
        | ExprKind::Float(_)
        | ExprKind::Binary(BinaryOp::Div | BinaryOp::Rem, ..) => {
            into.insert(expression.site);
        }
        ExprKind::Select(condition, ..) => {
            into.insert(condition.site);
        }
        _ => {}
    }
}

fn quotes_of(statement: &Stmt, into: &mut BTreeSet<Site>) {
    match &statement.kind {
        StmtKind::If(condition, ..) | StmtKind::Switch(condition, _) => {
            into.insert(condition.site);
        }
        // Of a barrier it matters whose it is: the block's or the grid's.
        StmtKind::Loop { .. } | StmtKind::Barrier => {
            into.insert(statement.site);
        }
        _ => {}
    }
}

fn all_sites(kernel: &mut Kernel, visit: &mut dyn FnMut(&mut Site)) {
    visit(&mut kernel.name_site);
    for var in &mut kernel.vars {
        visit(&mut var.site);
        var.extent_sites.iter_mut().for_each(&mut *visit);
    }
    each_site(&mut kernel.body, visit);
    for routine in &mut kernel.routines {
        each_site(&mut routine.body, visit);
    }
    for lost in &mut kernel.not_understood {
        visit(&mut lost.site);
    }
    for call in &mut kernel.calls {
        visit(&mut call.site);
    }
}

/// A text without its comments, each stretch of white space as one space.
pub fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut gap = false;
    let mut quote = None;
    let mut rest = text.chars();
    loop {
        if quote.is_none()
            && let Some(behind) = behind_comment(rest.as_str())
        {
            gap = true;
            rest = behind.chars();
            continue;
        }
        let Some(letter) = rest.next() else {
            return line;
        };
        if letter.is_whitespace() {
            gap = true;
            continue;
        }
        if gap && !line.is_empty() {
            line.push(' ');
        }
        gap = false;
        line.push(letter);
        match quote {
            Some(_) if letter == '\\' => {
                line.extend(rest.next());
            }
            Some(open) if letter == open => quote = None,
            None if letter == '"' || letter == '\'' => quote = Some(letter),
            _ => {}
        }
    }
}

/// What lies behind the comment that a text begins with: the end of its line, or what follows its last mark.
fn behind_comment(text: &str) -> Option<&str> {
    if text.starts_with("//") {
        let end = text.find('\n').unwrap_or(text.len());
        return text.get(end..);
    }
    let inner = text.strip_prefix("/*")?;
    Some(inner.split_once("*/").map_or("", |(_, behind)| behind))
}

#[cfg(test)]
mod tests {
    use super::in_one_line;

    #[test]
    fn a_quote_has_no_comments_and_one_line() {
        for (text, line) in [
            ("a[i]", "a[i]"),
            ("a[i /* the i */ +\n   j]", "a[i + j]"),
            ("a[i] // the i\n  + b", "a[i] + b"),
            (r#"f("// no \" comment", x)"#, r#"f("// no \" comment", x)"#),
            ("a /* open", "a"),
        ] {
            assert_eq!(in_one_line(text), line);
        }
    }
}
