//! Members of classes that are templates, as a program names them: `Policy<float, 4>::total()`, `Power<8>::value`.
//!
//! What holds: where a class has specialisations, what is not known to be one of them or none is unknown.

use warplens_hir::{Source, default_value};
use warplens_ir::{Bound, Type};
use warplens_syntax::{Field, Kind, Node};

use super::arguments::{Argument, Named};
use super::index::{Class, declared_name, plain};
use super::nodes::{parts, text};
use super::state::Host;
use super::value::Value;

/// Which definition of a class arguments of its template mean.
enum Meant<'p> {
    /// That of the template itself.
    Primary(Class<'p>),
    /// That of a specialisation.
    Special(Class<'p>),
}

impl<'p> Host<'p> {
    /// A constant that is a member of an instance of a class, in a run; `None` for what is none.
    pub(super) fn member_of_instance(&mut self, node: Node, source: Source) -> Option<Value> {
        self.running.as_ref()?;
        let (class, list, member) = scope_of(node)?;
        let name = plain(text(class, source));
        if !self.index.classes.contains_key(&name) {
            return None;
        }
        let class = match self.meant_by(&name, list, source)? {
            Meant::Primary(class) | Meant::Special(class) => class,
        };
        let own = self.source_of(class.text);
        let wanted = text(member, source).trim();
        let declared = parts(class.body).into_iter().find_map(|one| {
            let constant = one.kind() == Kind::FieldDeclaration
                && text(one, own).contains("static")
                && text(one, own).contains("const");
            let all: Vec<Node> = one.fields(Field::Declarator).collect();
            let mut all = all.into_iter().filter(|_| constant);
            let named = |one: &Node| text(declared_name(*one), own) == wanted;
            all.find(named).map(|declarator| (one, declarator))
        });
        let (declaration, declarator) = declared?;
        let value = default_value(declaration, declarator, own)?;
        let instance = self.instantiated(&name, Some(list), source);
        let bindings = instance.bindings_of(&name);
        let value = self.under(bindings.clone(), own, |host| host.eval(value, own));
        let ty = self.under(bindings, own, |host| {
            host.declared_type(declaration.field(Field::Type), declarator, own)
        });
        match (&value, ty) {
            (Value::Int(..) | Value::Float(..), ty @ (Type::Int { .. } | Type::Float { .. })) => {
                Some(value.converted(&ty))
            }
            // `auto`.
            (Value::Int(..) | Value::Float(..), Type::Unknown(name)) if name == "auto" => {
                Some(value)
            }
            _ => None,
        }
    }

    /// A call of a static member function of an instance of a class, in a run; `None` for another call.
    pub(super) fn call_of_instance(
        &mut self,
        node: Node,
        function: Node,
        named: &Named,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        self.running.as_ref()?;
        let (class, list, _) = scope_of(function)?;
        let name = plain(text(class, source));
        if !self.index.classes.contains_key(&name) {
            return None;
        }
        // Which of several definitions has the function is not told apart.
        if self.index.specialised.contains_key(&name) {
            self.forget_arguments(&named.name, arguments, source);
            return Some(Value::Unknown);
        }
        let instance = self.instantiated(&name, Some(list), source);
        let object = instance.without_fields();
        let place = self.temporary(Type::Unknown(String::new()), object);
        self.method(&name, &named.name, &place, named, arguments, node, source)
    }

    /// The definition that arguments of a template mean; `None` where that is not known.
    fn meant_by(&mut self, name: &str, list: Node, source: Source) -> Option<Meant<'p>> {
        let primary = self.index.classes.get(name).copied()?;
        let Some(special) = self.index.specialised.get(name).cloned() else {
            return Some(Meant::Primary(primary));
        };
        let given = self.whole_arguments(list, source)?;
        for (list, class) in special {
            // One with parameters of its own may mean anything.
            let has_parameters = class.template.is_none_or(|template| {
                let list = template.field(Field::Parameters);
                list.is_none_or(|list| !parts(list).is_empty())
            });
            if has_parameters {
                return None;
            }
            let own = self.source_of(class.text);
            if self.whole_arguments(list, own)? == given {
                return Some(Meant::Special(class));
            }
        }
        Some(Meant::Primary(primary))
    }

    /// Arguments of a template that are all known.
    fn whole_arguments(&mut self, list: Node, source: Source) -> Option<Vec<Bound>> {
        let all: Vec<Option<Bound>> = self.template_arguments(list, source);
        (all.len() == parts(list).len())
            .then(|| all.into_iter().collect())
            .flatten()
    }
}

/// The class, its arguments and the member of `a::Class<4>::member`.
fn scope_of(node: Node<'_>) -> Option<(Node<'_>, Node<'_>, Node<'_>)> {
    let mut at = node;
    for _ in 0..8 {
        if at.kind() != Kind::QualifiedIdentifier {
            return None;
        }
        let member = at.field(Field::Name)?;
        if let Some(scope) = at.field(Field::Scope)
            && scope.kind() == Kind::TemplateType
            && member.kind() != Kind::QualifiedIdentifier
        {
            return Some((
                scope.field(Field::Name)?,
                scope.field(Field::Arguments)?,
                member,
            ));
        }
        at = member;
    }
    None
}
