//! Instances of templates as they are spelled.

use warplens_ir::{Bound, Type, spell_type};

use crate::types::class_of;

/// `name<arguments>`, as an instance is called.
pub(super) fn spell_instance(name: &str, arguments: &[Bound]) -> String {
    let arguments: Vec<String> = arguments.iter().map(spell).collect();
    format!("{name}<{}>", arguments.join(", "))
}

/// The same with what tells classes of one name in several namespaces apart.
pub(super) fn key_of_instance(name: &str, arguments: &[Bound]) -> String {
    let arguments: Vec<String> = arguments.iter().map(key_of).collect();
    format!("{name}<{}>", arguments.join(", "))
}

fn key_of(bound: &Bound) -> String {
    match bound {
        Bound::Type(ty) => key_of_type(ty),
        Bound::Pack(all) => all.iter().map(key_of).collect::<Vec<_>>().join(", "),
        Bound::Value(_) | Bound::Template(_) => spell(bound),
    }
}

fn key_of_type(ty: &Type) -> String {
    match ty {
        Type::Pointer(inner, space) => format!("{}*{space:?}", key_of_type(inner)),
        Type::Array(inner, extent) => format!("{}[{extent:?}]", key_of_type(inner)),
        Type::Struct(structure) => match class_of(structure) {
            Some(class) => {
                let name = key_of_instance(&class.name, &class.arguments);
                format!(
                    "{}::{name} {:x}",
                    class.definition.space, class.definition.hash
                )
            }
            None => spell_type(ty),
        },
        _ => spell_type(ty),
    }
}

/// A template argument as text.
pub(super) fn spell(bound: &Bound) -> String {
    match bound {
        Bound::Type(ty) => spell_type(ty),
        Bound::Value(value) => value.to_string(),
        Bound::Template(name) => name.clone(),
        Bound::Pack(all) => all.iter().map(spell).collect::<Vec<_>>().join(", "),
    }
}

/// True where a type, or what it points to, is not known.
pub(super) fn is_open(ty: &Type) -> bool {
    match ty {
        Type::Unknown(_) => true,
        Type::Pointer(inner, _) | Type::Array(inner, _) => is_open(inner),
        _ => false,
    }
}
