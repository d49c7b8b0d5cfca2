//! Parameter packs: `f(args...)`, `sizeof...(Ts)`, folds.

use warplens_syntax::nodes::FoldExpression;
use warplens_syntax::{Field, Kind, Node};

use super::construct::binary_op;
use super::construct::operation;
use super::{Lowering, Named, Scope, Source, text_of};
use warplens_ir::Bound;
use warplens_ir::Reason;
use warplens_ir::{BinaryOp, Expr, ExprKind};
use warplens_ir::{Site, Type};

/// A pack by name.
enum Pack {
    /// Arguments of a function.
    Values(Vec<Named>),
    /// Template arguments.
    Bounds(Vec<Bound>),
}

impl Pack {
    fn len(&self) -> usize {
        match self {
            Pack::Values(all) => all.len(),
            Pack::Bounds(all) => all.len(),
        }
    }
}

impl Lowering<'_> {
    /// Reads a pattern once for each element of the packs that it names; `None` where it names none.
    pub(super) fn expanded<T>(
        &mut self,
        pattern: Node,
        source: Source,
        mut read: impl FnMut(&mut Self) -> T,
    ) -> Option<Vec<T>> {
        let packs = self.packs_in(pattern, source);
        let length = packs.iter().map(|(_, pack)| pack.len()).min()?;
        let mut all = Vec::with_capacity(length);
        for at in 0..length {
            let mut scope = Scope::new();
            let bound = self.current().bindings.len();
            for (name, pack) in &packs {
                match pack {
                    Pack::Values(elements) => {
                        scope.insert(name.clone(), elements[at].clone());
                    }
                    Pack::Bounds(elements) => {
                        let element = (name.clone(), elements[at].clone());
                        self.frame().bindings.push(element);
                    }
                }
            }
            self.frame().scopes.push(scope);
            all.push(read(self));
            self.frame().scopes.pop();
            self.frame().bindings.truncate(bound);
        }
        Some(all)
    }

    /// The packs that a pattern names outside the expansions it holds itself.
    fn packs_in(&self, pattern: Node, source: Source) -> Vec<(String, Pack)> {
        let mut found: Vec<(String, Pack)> = Vec::new();
        let mut open = vec![pattern];
        while let Some(node) = open.pop() {
            match node.kind() {
                Kind::ParameterPackExpansion | Kind::FoldExpression
                    if node.id() != pattern.id() => {}
                Kind::SizeofExpression if is_pack_length(node, source) => {}
                Kind::Identifier | Kind::TypeIdentifier | Kind::NamespaceIdentifier => {
                    let name = text_of(node, source);
                    if found.iter().all(|(known, _)| known != name)
                        && let Some(pack) = self.pack(name)
                    {
                        found.push((name.to_owned(), pack));
                    }
                }
                _ => {
                    open.extend(node.named_children());
                }
            }
        }
        found
    }

    fn pack(&self, name: &str) -> Option<Pack> {
        match self.named(name) {
            Some(Named::Pack(all)) => return Some(Pack::Values(all.clone())),
            Some(_) => return None,
            None => {}
        }
        let bound = self
            .current()
            .bindings
            .iter()
            .rev()
            .find(|(of, _)| of == name);
        match bound {
            Some((_, Bound::Pack(all))) => Some(Pack::Bounds(all.clone())),
            _ => None,
        }
    }

    /// `sizeof...(pack)`.
    pub(super) fn pack_length(&self, node: Node, source: Source) -> Option<u64> {
        if !is_pack_length(node, source) {
            return None;
        }
        let text = text_of(node, source);
        let name = text.rsplit_once("...")?.1;
        let name = name.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        self.pack(name).map(|pack| pack.len() as u64)
    }

    /// `(pack op ...)` and its like.
    pub(super) fn fold(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let (left, right) = (
            node.field(Field::Left).filter(Node::is_named),
            node.field(Field::Right).filter(Node::is_named),
        );
        let fold = FoldExpression::cast(node);
        // One side is the pattern, the other one, where there is one, the first value.
        let mut all = None;
        let mut first = None;
        for side in [left, right].into_iter().flatten() {
            let read = match all {
                None => self.expanded(side, source, |lowering| lowering.expr(side, source)),
                Some(_) => None,
            };
            match read {
                Some(read) => all = Some(read),
                None => first = Some(side),
            }
        }
        let Some(mut all) = all else {
            return self.opaque(site, Reason::ParameterPack, Vec::new());
        };
        let from_left = left.is_none() || (first.is_some() && first == left);
        if let Some(first) = first {
            let first = self.expr(first, source);
            all.insert(if from_left { 0 } else { all.len() }, first);
        }
        if fold.is_some_and(FoldExpression::is_comma) {
            let ty = all.last().map_or(Type::Void, |last| last.ty.clone());
            return super::split::list(&ty, all, site);
        }
        let Some(operator) = fold.and_then(FoldExpression::op) else {
            return self.opaque(site, Reason::ParameterPack, all);
        };
        let op = binary_op(operator);
        if all.is_empty() {
            let value = i64::from(op == BinaryOp::LogicalAnd);
            return Expr {
                kind: ExprKind::Int(value),
                ty: Type::BOOL,
                site,
            };
        }
        let spelled = format!("operator{}", operator.as_str());
        let mut join = |a: Expr, b: Expr| {
            if matches!(a.ty, Type::Struct(_)) || matches!(b.ty, Type::Struct(_)) {
                let arguments = std::slice::from_ref(&b);
                if let Some(call) = self.operator_call(&spelled, &a, arguments, site) {
                    return call;
                }
            }
            operation(op, a, b, site)
        };
        let joined = if from_left {
            all.into_iter().reduce(&mut join)
        } else {
            all.into_iter().rev().reduce(|b, a| join(a, b))
        };
        match joined {
            Some(joined) => joined,
            None => self.opaque(site, Reason::ParameterPack, Vec::new()),
        }
    }
}

fn is_pack_length(node: Node, source: Source) -> bool {
    text_of(node, source)
        .strip_prefix("sizeof")
        .is_some_and(|rest| rest.trim_start().starts_with("..."))
}
