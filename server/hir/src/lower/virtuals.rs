//! Member functions that a class leaves to those derived from it, and functions that only arguments find.

use crate::namespaces::Name;
use std::sync::Arc;
use warplens_syntax::{Field, Kind, is_word_part};

use super::candidate::Candidate;
use super::split::{address_of, deref};
use super::{Lowering, parts};
use crate::definition::Definition;
use crate::types::{Class, class_of};
use warplens_ir::Bound;
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{Expr, ExprKind, StaysCall};

/// A call that more classes than this may answer is not followed.
const MOST_CLASSES: usize = 8;

impl Lowering<'_> {
    /// A member function by its object; where the class only declares it, what the classes derived from it do.
    pub(super) fn virtual_call(
        &mut self,
        object: &Expr,
        name: &str,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let Type::Struct(structure) = &object.ty else {
            return None;
        };
        let class = class_of(structure)?;
        if self.methods(&class, name).is_empty() || declared_virtual(&class, name) {
            let derived = self.derived_from(&class);
            let mut calls = Vec::new();
            let mut before = Vec::new();
            // An object of the thread's own has the class that it was made as.
            if !derived.is_empty() && matches!(object.kind, ExprKind::Deref(_)) {
                self.note_call(name, StaysCall::Virtual, arguments, site);
            }
            let object = &if derived.is_empty() {
                object.clone()
            } else {
                self.frozen(object.clone(), &mut before)
            };
            let arguments: Vec<Expr> = if derived.len() > 1 {
                arguments
                    .iter()
                    .map(|argument| self.read_once(argument, &mut before))
                    .collect()
            } else {
                arguments.to_vec()
            };
            for ty in derived.into_iter().take(MOST_CLASSES) {
                let Type::Struct(structure) = &ty else {
                    continue;
                };
                let Some(of) = class_of(structure) else {
                    continue;
                };
                let name = if name.starts_with('~') {
                    format!("~{}", of.name)
                } else {
                    name.to_owned()
                };
                // What it inherits is counted once, with the class itself.
                if !defines(&of, &name) {
                    continue;
                }
                let space = AddressSpace::Global;
                let pointer = address_of(object.clone(), space, site);
                let pointer = self.cast(pointer, Type::Pointer(Arc::new(ty.clone()), space), site);
                let this = deref(pointer, site);
                calls.extend(self.method_call(&this, &name, &[], &arguments, site));
            }
            calls.extend(self.method_call(object, name, &[], &arguments, site));
            if calls.is_empty() {
                return None;
            }
            let whole = self.one_of(None, calls, site);
            return Some(if before.is_empty() {
                whole
            } else {
                super::construct::after(before, whole)
            });
        }
        self.method_call(object, name, &[], arguments, site)
    }

    /// The classes of the unit that derive from a class directly; instances with the same arguments of those
    /// that are templates.
    fn derived_from(&mut self, class: &Arc<Class>) -> Vec<Type> {
        let mut found: Vec<Type> = self
            .unit
            .types()
            .filter(|ty| match ty {
                Type::Struct(structure) => class_of(structure).is_some_and(|of| {
                    of.bases.iter().any(|(base, _)| {
                        matches!(base, Type::Struct(base)
                        if class_of(base).is_some_and(|base| {
                            base.definition.hash == class.definition.hash
                                && base.bindings == class.bindings
                        }))
                    })
                }),
                _ => false,
            })
            .cloned()
            .collect();
        let arguments: Vec<Bound> = class
            .bindings
            .iter()
            .map(|(_, bound)| bound.clone())
            .collect();
        for name in self.unit.templates_naming(&class.name) {
            let Some(ty) = self.instance(Name::new(&name, &class.definition.space), &arguments)
            else {
                continue;
            };
            let derives = matches!(&ty, Type::Struct(structure)
            if class_of(structure).is_some_and(|of| of.bases.iter().any(|(base, _)| {
                matches!(base, Type::Struct(base)
                    if class_of(base).is_some_and(|base| {
                        base.definition.hash == class.definition.hash
                    }))
            })));
            if derives && !found.contains(&ty) {
                found.push(ty);
            }
        }
        found.sort_by_key(|ty| match ty {
            Type::Struct(structure) => structure.name.clone(),
            _ => String::new(),
        });
        found
    }

    /// Functions that the classes of the arguments define as their friends.
    pub(super) fn friends(&mut self, name: &str, arguments: &[Expr]) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        for argument in arguments {
            let Type::Struct(structure) = &argument.ty else {
                continue;
            };
            let Some(class) = class_of(structure) else {
                continue;
            };
            let definition = &class.definition;
            let Some(body) = definition
                .node(super::forms::CLASSES)
                .and_then(|node| node.field(Field::Body))
            else {
                continue;
            };
            for member in parts(body) {
                let friend = match member.kind() {
                    Kind::FriendDeclaration => Some(member),
                    Kind::TemplateDeclaration => {
                        super::child_of_kind(member, Kind::FriendDeclaration)
                    }
                    _ => None,
                };
                let Some(function) = friend
                    .and_then(|friend| super::child_of_kind(friend, Kind::FunctionDefinition))
                else {
                    continue;
                };
                let named = crate::outline::function_declarator(function)
                    .and_then(|declarator| declarator.field(Field::Declarator))
                    .is_some_and(|of| {
                        let of = &definition.text.text[of.byte_range()];
                        of.split_whitespace().collect::<String>() == name
                    });
                let range = function.byte_range();
                if named
                    && !found.iter().any(|known| {
                        known.definition.range == range && known.bindings == class.bindings
                    })
                {
                    found.push(Candidate {
                        definition: Definition::new(
                            &definition.text,
                            range,
                            definition.header,
                            definition.within,
                            &definition.space,
                        ),
                        bindings: class.bindings.clone(),
                        // It has no object, but the names of its class ([class.friend]).
                        this: Some(super::split::list(&argument.ty, Vec::new(), argument.site)),
                    });
                }
            }
        }
        found
    }
}

/// True where the class declares that member function as virtual.
fn declared_virtual(class: &Class, name: &str) -> bool {
    members(class)
        .iter()
        .any(|text| text.contains("virtual") && names(text, name))
}

/// True where the class's own text defines that member function.
fn defines(class: &Class, name: &str) -> bool {
    members(class).iter().any(|text| names(text, name))
}

fn names(text: &str, name: &str) -> bool {
    let head = &text[..text.find('{').unwrap_or(text.len())];
    let word = |c: char| is_word_part(c) || c == '~';
    head.match_indices(name).any(|(at, _)| {
        !head[..at].ends_with(word) && head[at + name.len()..].trim_start().starts_with('(')
    })
}

fn members(class: &Class) -> Vec<&str> {
    let Some(body) = class
        .definition
        .node(super::forms::CLASSES)
        .and_then(|node| node.field(Field::Body))
    else {
        return Vec::new();
    };
    parts(body)
        .into_iter()
        .filter_map(|member| class.definition.text.text.get(member.byte_range()))
        .collect()
}
