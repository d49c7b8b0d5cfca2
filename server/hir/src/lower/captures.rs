//! Variables that a lambda declares where it captures: `[i = blockIdx.x + 1] { … }`.

use warplens_ir::{Expr, ExprKind, Opaque, Reason, Stmt, Type};
use warplens_syntax::{Field, Kind, Node};

use super::forms::writes;
use super::shapes::is_pure;
use super::{Lowering, Named, Scope, Source, parts, text_of};

impl Lowering<'_> {
    /// What a lambda, or an expression that is one, is; the second are the variables that hold what its captures are given.
    pub(super) fn with_captures_before(&mut self, node: Node, source: Source) -> (Expr, Vec<Stmt>) {
        let mut at = node;
        while at.kind() == Kind::ParenthesizedExpression
            && let Some(inner) = parts(at).into_iter().next()
        {
            at = inner;
        }
        if at.kind() != Kind::LambdaExpression {
            return (self.expr(node, source), Vec::new());
        }
        let around = self.capturing.replace(Vec::new());
        let value = self.expr(node, source);
        let before = std::mem::replace(&mut self.capturing, around);
        (value, before.unwrap_or_default())
    }

    /// The names that a lambda's captures give values; `None` where none does. The lambda is put in place of its calls, so that a value
    /// is kept in a variable where something that it reads may change until then.
    pub(super) fn initialised_captures(&mut self, lambda: Node, source: Source) -> Option<Scope> {
        let captures = lambda.field(Field::Captures)?;
        let mut declared = Scope::new();
        for capture in parts(captures) {
            let (Kind::LambdaCaptureInitializer, Some(name), Some(value)) = (
                capture.kind(),
                capture.field(Field::Left),
                capture.field(Field::Right),
            ) else {
                continue;
            };
            let site = self.site(value, source);
            let capturing = self.capturing.take();
            let read = self.expr(value, source);
            self.capturing = capturing;
            let body = around(lambda);
            let changes = |word: &str| body.is_none_or(|body| writes(body, word, source));
            let stays = is_pure(&read) && !names_in(value, source).into_iter().any(changes);
            let meaning = if stays {
                read
            } else if self.capturing.is_some()
                && !matches!(read.ty, Type::Callable(_) | Type::Library(_))
            {
                let id = self.temporary("captured", read.ty.clone(), site);
                let mut before = Vec::new();
                self.assign_to(id, read, site, &mut before);
                self.capturing.get_or_insert_default().append(&mut before);
                self.var(id, site)
            } else {
                let ty = read.ty.clone();
                let mut unknown = self.opaque(site, Reason::Lambda, vec![read]);
                unknown.kind = match unknown.kind {
                    ExprKind::Opaque(..) => unknown.kind,
                    _ => ExprKind::Opaque(Opaque::Unknown, Vec::new()),
                };
                unknown.ty = ty;
                unknown
            };
            let name = text_of(name, source).trim_start_matches('&').trim();
            declared.insert(name.to_owned(), Named::Alias(Box::new(meaning)));
        }
        (!declared.is_empty()).then_some(declared)
    }
}

/// The names in an expression that no object is before.
fn names_in<'t>(expression: Node, source: Source<'t>) -> Vec<&'t str> {
    let mut names = Vec::new();
    let mut open = vec![expression];
    while let Some(node) = open.pop() {
        if node.kind() == Kind::Identifier {
            names.push(text_of(node, source));
        }
        open.extend(parts(node));
    }
    names
}

/// The body of the function or lambda around a lambda.
fn around(lambda: Node) -> Option<Node> {
    let mut at = lambda.parent();
    while let Some(node) = at {
        if matches!(
            node.kind(),
            Kind::FunctionDefinition | Kind::LambdaExpression
        ) {
            return node.field(Field::Body);
        }
        at = node.parent();
    }
    None
}
