//! Classes that are taken for a template parameter by the members that a kernel asks of it: `Traits::kThreads`.

use crate::namespaces::Name;
use warplens_syntax::{Field, Kind, Node, has_word, is_word_part};

use super::assumptions::{ASSUMED_NUMBER, ASSUMED_TYPE, said};
use super::forms::{Parameter, templated};
use super::instances::is_open;
use super::{Lowering, Source, text_of};
use crate::definition::Definition;
use crate::types::class_of;
use warplens_ir::{AssumptionKind, Bound, Type};

/// Classes that are looked at for one parameter.
const MOST_CLASSES: usize = 32;
/// Arguments of arguments that are looked into.
const DEEPEST_ARGUMENTS: u32 = 8;

impl Lowering<'_> {
    /// The first class, or instance of a class template, that has all the members that the kernel names of a parameter.
    pub(super) fn class_with_members(
        &mut self,
        parameter: &Parameter,
        kernel: Node,
        source: Source,
        given: &[(String, String)],
    ) -> Option<(String, Bound)> {
        let around = kernel.parent().unwrap_or(kernel);
        let mut members = members_named(&parameter.name, text_of(around, source), "::");
        // What is asked of its objects, of the kernel's parameters and of others that it declares.
        for object in objects_named(&parameter.name, text_of(around, source)) {
            for member in members_named(object, text_of(around, source), ".") {
                if !members.contains(&member) {
                    members.push(member);
                }
            }
        }
        if members.is_empty() {
            return None;
        }
        let unit = self.unit;
        let plain: Vec<(String, Type)> = unit
            .classes_in_order()
            .filter(|(_, ty)| names_all(ty, &members))
            .take(MOST_CLASSES)
            .map(|(name, ty)| (name.to_owned(), ty.clone()))
            .collect();
        for (name, ty) in plain {
            if self.has_members(&ty, &members) {
                return Some((said(&name), Bound::Type(ty)));
            }
        }
        let templates: Vec<(String, Definition)> = unit
            .templates_in_order()
            .filter(|(_, definition)| {
                let text = &definition.text.text[definition.range.clone()];
                members.iter().all(|member| has_word(text, member))
            })
            .take(MOST_CLASSES)
            .map(|(name, definition)| (name.to_owned(), definition.clone()))
            .collect();
        for (name, definition) in templates {
            let assumed = self.assumed.len();
            if let Some(ty) = self.assumed_instance(&name, &definition, given)
                && self.has_members(&ty, &members)
            {
                return Some((said(&name), Bound::Type(ty)));
            }
            self.assumed.truncate(assumed);
        }
        None
    }

    fn has_members(&mut self, ty: &Type, members: &[&str]) -> bool {
        let Type::Struct(structure) = ty else {
            return false;
        };
        let Some(class) = class_of(structure) else {
            return false;
        };
        let site = warplens_ir::Site::default();
        members.iter().all(|member| {
            self.value_of_class(&class, member, site).is_some()
                || self.type_of_class(ty, member).is_some()
                || !self.methods(&class, member).is_empty()
                || structure.fields.iter().any(|field| field.name == **member)
        })
    }

    /// An instance with what is assumed of each parameter that has no default.
    fn assumed_instance(
        &mut self,
        name: &str,
        definition: &Definition,
        given: &[(String, String)],
    ) -> Option<Type> {
        let source = Source::of(definition);
        let template = definition.node(&[Kind::TemplateDeclaration])?;
        let (_, of) = templated(template)?;
        if of.kind() == Kind::TemplateType {
            return None;
        }
        let mut arguments = Vec::new();
        for parameter in self.parameters(template, source) {
            if parameter.pack {
                return None;
            }
            if parameter.default.is_some() {
                break;
            }
            let known = self.given_argument(&parameter.name, parameter.is_type, given);
            arguments.push(match known {
                Some(bound) => bound,
                None if parameter.is_type => self.assumed_argument(&parameter.name),
                None => self.assumed_number(&parameter.name, template, source),
            });
        }
        self.instance(Name::new(name, &definition.space), &arguments)
    }

    fn given_argument(
        &mut self,
        name: &str,
        is_type: bool,
        given: &[(String, String)],
    ) -> Option<Bound> {
        let (_, text) = given.iter().find(|(of, _)| of == name)?;
        self.bound_text(text, is_type)
    }

    fn assumed_argument(&mut self, name: &str) -> Bound {
        self.assume(name, ASSUMED_TYPE.0, AssumptionKind::Template);
        Bound::Type(ASSUMED_TYPE.1)
    }

    /// The number that a value among a template's parameters is taken for.
    fn assumed_number(&mut self, name: &str, template: Node, source: Source) -> Bound {
        let list = template.field(Field::Parameters);
        let flag = list.is_some_and(|list| is_flag(name, text_of(list, source)));
        let value = if flag { 1 } else { ASSUMED_NUMBER };
        self.assume(name, &value.to_string(), AssumptionKind::Template);
        Bound::Value(value)
    }

    /// A launch's template argument; where it is an instance with types that only the callers of the host's function know, the
    /// instance with what is assumed of these.
    pub(super) fn with_assumed_arguments(
        &mut self,
        bound: &Bound,
        given: &[(String, String)],
    ) -> Bound {
        let Bound::Type(Type::Struct(structure)) = bound else {
            return bound.clone();
        };
        let Some(class) = class_of(structure) else {
            return bound.clone();
        };
        let open = |bound: &Bound| matches!(bound, Bound::Type(ty) if is_open(ty));
        if !class.bindings.iter().any(|(_, bound)| open(bound)) {
            return bound.clone();
        }
        // A name that nothing is known of is read as a type; the template says which of its parameters are numbers.
        let template = class.definition.node(&[Kind::TemplateDeclaration]);
        let template = template.or_else(|| {
            let node = class.definition.node(super::forms::CLASSES)?;
            node.parent()
                .filter(|around| around.kind() == Kind::TemplateDeclaration)
        });
        let source = Source::of(&class.definition);
        let of_template = template.map(|template| self.parameters(template, source));
        let mut arguments = Vec::new();
        for (name, bound) in &class.bindings {
            let declared = of_template.iter().flatten().find(|of| of.name == *name);
            // A default that is made of those before it is made of what is assumed of them.
            if declared.is_some_and(|of| of.default.is_some()) && is_made_of_open(bound, 0) {
                break;
            }
            if !open(bound) {
                arguments.push(bound.clone());
                continue;
            }
            let is_number = declared.is_some_and(|of| !of.is_type);
            arguments.push(
                match (self.given_argument(name, !is_number, given), template) {
                    (Some(bound), _) => bound,
                    (None, Some(template)) if is_number => {
                        self.assumed_number(name, template, source)
                    }
                    (None, _) => self.assumed_argument(name),
                },
            );
        }
        match self.instance(Name::new(&class.name, &class.definition.space), &arguments) {
            Some(ty) => Bound::Type(ty),
            None => bound.clone(),
        }
    }
}

/// True where a type is not known, or an instance with one that is not.
fn is_made_of_open(bound: &Bound, depth: u32) -> bool {
    let Bound::Type(ty) = bound else {
        return false;
    };
    let Type::Struct(structure) = ty else {
        return is_open(ty);
    };
    depth < DEEPEST_ARGUMENTS
        && class_of(structure).is_some_and(|class| {
            let mut all = class.bindings.iter();
            all.any(|(_, bound)| is_made_of_open(bound, depth + 1))
        })
}

/// What a text declares with a type: `Parameter name`, `const Parameter &name`.
fn objects_named<'t>(parameter: &str, text: &'t str) -> Vec<&'t str> {
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(parameter) {
        if text[..at].ends_with(|letter: char| is_word_part(letter) || letter == ':') {
            continue;
        }
        let rest = &text[at + parameter.len()..];
        let name = rest.trim_start_matches([' ', '&']);
        let name = name.strip_prefix("const ").unwrap_or(name);
        let end = name.find(|letter: char| !is_word_part(letter));
        let name = &name[..end.unwrap_or(name.len())];
        let is_name = name.len() < rest.len() && !name.is_empty();
        if is_name && !rest.starts_with(is_word_part) && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The members of a parameter or an object that a text names, `Parameter::member` or `object.member`, each once.
fn members_named<'t>(parameter: &str, text: &'t str, by: &str) -> Vec<&'t str> {
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(parameter) {
        let before = text[..at].chars().next_back();
        let Some(rest) = text[at + parameter.len()..].strip_prefix(by) else {
            continue;
        };
        if before.is_some_and(|letter| is_word_part(letter) || letter == ':') {
            continue;
        }
        let rest = rest.strip_prefix("template ").unwrap_or(rest);
        let end = rest.find(|letter: char| !is_word_part(letter));
        let member = &rest[..end.unwrap_or(rest.len())];
        if !member.is_empty() && !found.contains(&member) {
            found.push(member);
        }
    }
    found
}

fn names_all(ty: &Type, members: &[&str]) -> bool {
    let Type::Struct(structure) = ty else {
        return false;
    };
    class_of(structure).is_some_and(|class| {
        let definition = &class.definition;
        let text = &definition.text.text[definition.range.clone()];
        members.iter().all(|member| has_word(text, member))
    })
}

/// True for `bool name` among the parameters of a template.
fn is_flag(name: &str, list: &str) -> bool {
    list.split(['<', ',', '>']).any(|one| {
        let mut words = one.split_whitespace();
        words.next() == Some("bool") && words.next() == Some(name)
    })
}
