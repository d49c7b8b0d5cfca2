//! Pragmas among statements.
//!
//! Between a loop's head and a body without braces a pragma cuts the body off: for the grammar the loop ends there,
//! and its body follows as a statement of its own.

use warplens_syntax::{Field, Kind, Node};

use super::{Lowering, Source, parts, text_of};
use warplens_ir::{Stmt, StmtKind};

impl Lowering<'_> {
    /// `#pragma unroll [N]`: 0 is as often as the loop runs.
    pub(super) fn unroll(&mut self, node: Node, source: Source) -> Option<u64> {
        let text = text_of(node, source);
        let text = text.strip_prefix('#')?.trim_start();
        let text = text.strip_prefix("pragma")?.trim_start();
        let text = text.strip_prefix("GCC").unwrap_or(text).trim_start();
        if text.starts_with("nounroll") {
            return Some(1);
        }
        let argument = text.strip_prefix("unroll")?.trim();
        Some(self.factor(argument))
    }

    /// `__attribute__((opencl_unroll_hint(N)))` before a loop, read alike.
    pub(super) fn unroll_hint(&mut self, node: Node, inner: Node, source: Source) -> Option<u64> {
        let before = inner.start_byte() - node.start_byte();
        let text = text_of(node, source).get(..before)?;
        let (_, behind) = text.split_once("opencl_unroll_hint")?;
        let argument = behind.trim_start_matches("__").trim_start();
        let argument = argument
            .strip_prefix('(')
            .and_then(|rest| rest.split(')').next());
        Some(self.factor(argument.unwrap_or_default().trim()))
    }

    fn factor(&mut self, argument: &str) -> u64 {
        if argument.is_empty() {
            return 0;
        }
        let argument = argument.trim_matches(['(', ')']).trim();
        let value = argument.parse().ok().or_else(|| {
            self.constant_text(argument)
                .and_then(|value| u64::try_from(value).ok())
        });
        value.unwrap_or(0)
    }
}

/// Asks for the loops among these statements to be unrolled.
pub(super) fn set_unroll(statements: &mut [Stmt], factor: u64) {
    for statement in statements {
        if let StmtKind::Loop { unroll, .. } = &mut statement.kind {
            *unroll = Some(factor);
        }
    }
}

/// True of the body of a loop or a branch that a pragma cut off.
pub fn is_cut_off(body: Node) -> bool {
    body.byte_range().is_empty() && pragmas_and_body(body).is_some()
}

/// The pragmas behind a body that was cut off, and the statement that it is.
pub fn following(body: Node<'_>) -> Vec<Node<'_>> {
    pragmas_and_body(body).unwrap_or_default()
}

/// True of a statement that ends with the head of a loop or of a branch whose body was cut off.
pub fn lacks_body(statement: Node) -> bool {
    let mut last = statement;
    loop {
        let field = |name: Field| last.field(name);
        let inner = match last.kind() {
            Kind::ForStatement | Kind::WhileStatement | Kind::ForRangeLoop => field(Field::Body),
            Kind::IfStatement => field(Field::Alternative).or_else(|| field(Field::Consequence)),
            Kind::ElseClause => parts(last).pop(),
            _ => return is_cut_off(last),
        };
        match inner {
            Some(inner) => last = inner,
            None => return false,
        }
    }
}

fn pragmas_and_body(body: Node<'_>) -> Option<Vec<Node<'_>>> {
    let mut at = body;
    while at.next_named_sibling().is_none() {
        at = at.parent()?;
        // What is around a block follows the block.
        if at.kind() == Kind::CompoundStatement {
            return None;
        }
    }
    let mut found = Vec::new();
    while let Some(next) = at.next_named_sibling() {
        at = next;
        match at.kind() {
            Kind::Comment => {}
            Kind::PreprocCall => found.push(at),
            _ if found.is_empty() => return None,
            _ => {
                found.push(at);
                return Some(found);
            }
        }
    }
    None
}
