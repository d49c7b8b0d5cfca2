//! What an object holds from the start: values that its class gives members where it declares them.

use std::sync::Arc;

use warplens_ir::{Expr, ExprKind, Site, Stmt, StmtKind, Type};
use warplens_syntax::{Field, Kind, Node};

use super::classes::default_value;
use super::forms::CLASSES;
use super::forms::has_word;
use super::{Lowering, Source, parts, text_of};
use crate::types::{Class, class_of};

/// Members of members are looked at this deep.
const DEEPEST_MEMBER: u32 = 8;

impl Lowering<'_> {
    /// `T x;`, or `T x{…}` with values for the first members, where a class without constructors gives members values of
    /// their own.
    pub(super) fn with_member_values(
        &mut self,
        ty: &Type,
        given: Option<Vec<Expr>>,
        site: Site,
    ) -> Option<Expr> {
        let Type::Struct(structure) = ty else {
            return None;
        };
        let class = class_of(structure)?;
        let object = self.temporary("object", ty.clone(), site);
        let this = self.var(object, site);
        let count = given.as_ref().map_or(0, Vec::len);
        let mut defaults = Vec::new();
        self.member_defaults(&class, &this, count, &[], 0, &mut defaults);
        if defaults.is_empty() {
            return None;
        }
        let mut statements = Vec::new();
        if let Some(given) = given {
            let whole = super::split::list(ty, given, site);
            self.assign_to(object, whole, site, &mut statements);
        }
        statements.append(&mut defaults);
        Some(Expr {
            kind: ExprKind::Inline(statements, Some(object)),
            ty: ty.clone(),
            site,
        })
    }

    /// Members that a constructor's list leaves out, before its body.
    pub(super) fn members_of_constructor(
        &mut self,
        list: Option<Node>,
        function: Node,
        source: Source,
        out: &mut Vec<Stmt>,
    ) {
        let Some(this) = self.current().this.clone() else {
            return;
        };
        // Where a destructor or an operator is called there is no such class.
        let declared = crate::outline::function_declarator(function)
            .and_then(|declarator| declarator.field(Field::Declarator));
        let name = declared.map_or("", |name| text_of(name, source));
        let Some(class) = self.base_named(&this, name, None) else {
            return;
        };
        let initializers = list.map(parts).unwrap_or_default().into_iter();
        let named = initializers.filter_map(|initializer| parts(initializer).into_iter().next());
        let named: Vec<&str> = named.map(|name| text_of(name, source)).collect();
        // One that hands over to another constructor leaves it to that.
        if !named.contains(&class.name.as_str()) {
            self.member_defaults(&class, &this, 0, &named, 0, out);
        }
    }

    /// The class of an object that a constructor's list names, or one of its bases: `Base<N>(1)`. Within a constructor of a base the
    /// object is still the whole.
    pub(super) fn base_named(
        &mut self,
        object: &Expr,
        name: &str,
        list: Option<(Node, Source)>,
    ) -> Option<Arc<Class>> {
        let Type::Struct(structure) = &object.ty else {
            return None;
        };
        let mut classes = vec![class_of(structure)?];
        let mut looked = 0;
        while let Some(class) = classes.get(looked).cloned() {
            looked += 1;
            classes.extend(class.bases.iter().filter_map(|(base, _)| match base {
                Type::Struct(structure) => class_of(structure),
                _ => None,
            }));
        }
        let path = name.split('<').next()?.trim();
        let name = path.rsplit("::").next()?;
        // `Parameters() : Base::Parameters()`: a base that has the name of the class whose constructor this is.
        let own = list.filter(|_| path != name).and_then(|(list, source)| {
            classes.iter().position(|class| {
                Arc::ptr_eq(&class.definition.text, source.parsed)
                    && class.definition.range.contains(&list.start_byte())
            })
        });
        let mut behind = classes.into_iter().skip(own.map_or(0, |own| own + 1));
        behind.find(|class| class.name == name)
    }

    /// Gives members of an object what their declarations say: not the first `given`, nor those `named` elsewhere.
    pub(super) fn member_defaults(
        &mut self,
        class: &Arc<Class>,
        object: &Expr,
        given: usize,
        named: &[&str],
        depth: u32,
        out: &mut Vec<Stmt>,
    ) {
        if depth > DEEPEST_MEMBER || self.depth > super::DEEPEST_CALLS {
            return;
        }
        let definition = class.definition.clone();
        let Some(node) = definition.node(CLASSES) else {
            return;
        };
        let Some(body) = node.field(Field::Body) else {
            return;
        };
        if node.kind() == Kind::UnionSpecifier && given > 0 {
            return;
        }
        let source = Source::of(&definition);
        let site = self.site(node, source);
        // The first values that a list gives are the bases'.
        let mut before = 0;
        for (base, _) in &class.bases {
            let Type::Struct(structure) = base else {
                continue;
            };
            before += usize::from(!structure.fields.is_empty());
            if let Some(class) = class_of(structure)
                && !named.contains(&class.name.as_str())
                && before > given
            {
                let constructors = self.constructors(&class);
                match self.constructor_call(constructors, object, &[], site) {
                    Some(call) => out.push(Stmt {
                        kind: StmtKind::Expr(call),
                        site,
                    }),
                    None => self.member_defaults(&class, object, 0, &[], depth + 1, out),
                }
            }
        }
        let this = Some(object.clone());
        self.depth += 1;
        self.under(class.bindings.clone(), this, |lowering| {
            for member in parts(body) {
                if !matches!(member.kind(), Kind::FieldDeclaration | Kind::Declaration)
                    || has_word(member, source, "static")
                {
                    continue;
                }
                let declarators: Vec<_> = member.fields(Field::Declarator).collect();
                for declarator in declarators {
                    if declarator.kind() == Kind::FunctionDeclarator {
                        continue;
                    }
                    before += 1;
                    let mut inner = declarator;
                    while let Some(next) = inner.field(Field::Declarator) {
                        inner = next;
                    }
                    let name = text_of(inner, source);
                    if before <= given || named.contains(&name) {
                        continue;
                    }
                    let value = default_value(member, declarator, source);
                    let at = value.unwrap_or(declarator);
                    let site = lowering.site(at, source);
                    // Not what it refers to already, but the reference itself.
                    let references = std::mem::take(&mut lowering.references);
                    let target = lowering.member(object, name, site);
                    lowering.references = references;
                    let Some(target) = target else { continue };
                    let value = match value {
                        Some(list) if list.kind() == Kind::InitializerList => {
                            let values = lowering.initializers(list, source);
                            let ty = target.ty.clone();
                            Some(lowering.constructed(&ty, values, site))
                        }
                        Some(value) => Some(lowering.expr(value, source)),
                        None => lowering.default_constructed(&target.ty, site),
                    };
                    let value = match (value, &target.kind) {
                        (Some(value), ExprKind::Var(field)) => {
                            lowering.bound_reference(*field, value, site)
                        }
                        (value, _) => value,
                    };
                    let Some(value) = value else { continue };
                    let assigned = lowering.assigned(target, value, site);
                    out.push(Stmt {
                        kind: StmtKind::Expr(assigned),
                        site,
                    });
                }
            }
        });
        self.depth -= 1;
    }
}
