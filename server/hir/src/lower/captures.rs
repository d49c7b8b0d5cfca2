//! Variables that a lambda declares where it captures: `[i = blockIdx.x + 1] { … }`.

use warplens_ir::{ExprKind, Opaque, Reason};
use warplens_syntax::{Field, Kind, Node, words_in};

use super::forms::writes;
use super::shapes::is_pure;
use super::{Lowering, Named, Scope, Source, parts, text_of};

impl Lowering<'_> {
    /// The names that a lambda's captures give values; `None` where none does. The lambda is put in place of its calls, so that a value
    /// counts only where nothing that it reads changes until then.
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
            let read = self.expr(value, source);
            let body = around(lambda);
            let changes = |word: &str| body.is_none_or(|body| writes(body, word, source));
            let stays = is_pure(&read) && !words_in(text_of(value, source)).any(changes);
            let meaning = if stays {
                read
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
