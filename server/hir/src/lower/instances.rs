//! Instances of templates as they are spelled.

use warplens_ir::{Bound, Type, spell_type};

/// `name<arguments>`, as an instance is called.
pub(super) fn spell_instance(name: &str, arguments: &[Bound]) -> String {
    let arguments: Vec<String> = arguments.iter().map(spell).collect();
    format!("{name}<{}>", arguments.join(", "))
}

/// A template argument as text, to tell instances apart.
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
