//! Default arguments that only a declaration gives ([dcl.fct.default]): of a member function that is defined outside its class, of a
//! function behind its prototype.

use warplens_ir::{Expr, Type};
use warplens_syntax::{Field, Kind, Node};

use super::candidate::Candidate;
use super::forms::CLASSES;
use super::forms::parameter_nodes;
use super::{Lowering, Source, parts};
use crate::definition::Definition;
use crate::outline::function_declarator;
use crate::types::class_of;

/// Bases of bases are looked at this deep.
const DEEPEST_BASE: u32 = 8;

impl Lowering<'_> {
    /// The arguments of a call with those behind them that a declaration gives; `None` where the call has all, or none gives them.
    pub(super) fn completed(
        &mut self,
        candidate: &Candidate,
        arguments: &[Expr],
    ) -> Option<Vec<Expr>> {
        let definition = &candidate.definition;
        let function = definition.node(&[Kind::FunctionDefinition])?;
        let source = Source::of(definition);
        let params = parameter_nodes(function, source)?;
        let has_none = |param: &Node| param.kind() == Kind::ParameterDeclaration;
        if !params.get(arguments.len()..)?.iter().any(has_none) {
            return None;
        }
        let name = function_declarator(function)?.field(Field::Declarator)?;
        let name = last_name(&definition.text.text[name.byte_range()]);
        let declared = match &candidate.this {
            Some(this) => declared_in_class(&this.ty, &name, 0),
            None => self.unit.prototypes(&name),
        };
        for declaration in declared {
            if candidate.this.is_none() && declaration.space != definition.space {
                continue;
            }
            let Some(node) = declaration.node(&[Kind::FieldDeclaration, Kind::Declaration]) else {
                continue;
            };
            let there = Source::of(&declaration);
            let Some(known) = parameter_nodes(node, there).filter(|of| of.len() == params.len())
            else {
                continue;
            };
            // The definition may give some of them itself.
            let values: Option<Vec<(Node, Source)>> = (arguments.len()..params.len())
                .map(|at| {
                    let own = params[at].field(Field::DefaultValue);
                    let declared = known[at].field(Field::DefaultValue);
                    let own = own.map(|value| (value, source));
                    own.or_else(|| Some((declared?, there)))
                })
                .collect();
            let Some(values) = values else { continue };
            let bindings = candidate.bindings.clone();
            let given = self.under(bindings, candidate.this.clone(), |lowering| {
                let values = values.into_iter();
                values
                    .map(|(value, source)| lowering.expr(value, source))
                    .collect::<Vec<Expr>>()
            });
            return Some(arguments.iter().cloned().chain(given).collect());
        }
        None
    }
}

/// The declarations of a member function without a body, of a class and its bases.
fn declared_in_class(ty: &Type, name: &str, depth: u32) -> Vec<Definition> {
    let Type::Struct(structure) = ty else {
        return Vec::new();
    };
    let Some(class) = class_of(structure).filter(|_| depth < DEEPEST_BASE) else {
        return Vec::new();
    };
    let definition = &class.definition;
    let text = &definition.text;
    let body = definition
        .node(CLASSES)
        .and_then(|node| node.field(Field::Body));
    let members = body.map(parts).unwrap_or_default().into_iter();
    let members = members.filter_map(|member| match member.kind() {
        Kind::TemplateDeclaration => super::child_of_kind(member, Kind::Declaration),
        Kind::FieldDeclaration | Kind::Declaration => Some(member),
        _ => None,
    });
    let named = members.filter(|member| {
        let of = function_declarator(*member).and_then(|of| of.field(Field::Declarator));
        of.is_some_and(|of| last_name(&text.text[of.byte_range()]) == name)
    });
    let mut found: Vec<Definition> = named
        .map(|member| {
            Definition::new(
                text,
                member.byte_range(),
                definition.header,
                definition.within,
                &definition.space,
            )
        })
        .collect();
    for (base, _) in &class.bases {
        found.extend(declared_in_class(base, name, depth + 1));
    }
    found
}

/// `f` of `Class<N>::f`; an operator with what it is of.
fn last_name(spelled: &str) -> String {
    let mut depth = 0_usize;
    let mut from = 0;
    let bytes = spelled.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => from = at + 1,
            _ => {}
        }
    }
    spelled[from..].split_whitespace().collect()
}
