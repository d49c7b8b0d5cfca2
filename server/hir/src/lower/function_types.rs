//! The types of functions and of pointers to them.
//!
//! The type of a pointer says which functions it is known to point to: `function f|g`. A plain `function` says that it is
//! not known.

use std::sync::Arc;

use warplens_ir::{AddressSpace, Expr, ExprKind, Type};

/// The type of a function, as a pointer to it points to it.
pub(super) fn function_type() -> Type {
    Type::Library("function".into())
}

/// The functions that a value of that type may be, or point to; empty where they are not known.
pub(super) fn functions_of(ty: &Type) -> Option<Vec<&str>> {
    let of = match ty {
        Type::Library(of) => of,
        Type::Pointer(inner, _) => match &**inner {
            Type::Library(of) => of,
            _ => return None,
        },
        _ => return None,
    };
    let names = of.strip_prefix("function")?;
    if !names.is_empty() && !names.starts_with(' ') {
        return None;
    }
    Some(
        names
            .trim_start()
            .split('|')
            .filter(|name| !name.is_empty())
            .collect(),
    )
}

/// A pointer to one of these functions.
fn pointer_to(names: &[String]) -> Type {
    let of = Type::Library(format!("function {}", names.join("|")).into());
    Type::Pointer(Arc::new(of), AddressSpace::Global)
}

/// The functions that a value may be; `None` where one is not known.
fn targets(value: &Expr, out: &mut Vec<String>) -> Option<()> {
    if let Some(names) = functions_of(&value.ty)
        && !names.is_empty()
    {
        for name in names {
            if !out.iter().any(|known| known == name) {
                out.push(name.to_owned());
            }
        }
        return Some(());
    }
    match &value.kind {
        ExprKind::Select(_, a, b) => {
            targets(a, out)?;
            targets(b, out)
        }
        ExprKind::Cast(_, inner) | ExprKind::AddressOf(inner) => targets(inner, out),
        ExprKind::List(all) if !all.is_empty() => all.iter().try_for_each(|one| targets(one, out)),
        // A null pointer is not called.
        ExprKind::Int(0) => Some(()),
        _ => None,
    }
}

/// The type of `c ? f : g`, where both are functions.
pub(super) fn either(a: &Expr, b: &Expr) -> Option<Type> {
    functions_of(&a.ty).or_else(|| functions_of(&b.ty))?;
    let mut names = Vec::new();
    targets(a, &mut names)?;
    targets(b, &mut names)?;
    Some(pointer_to(&names))
}

/// A type that is a pointer to a function, or an array of them, with the functions that `values` name in it.
/// `None` where it is another type, or where they are not known.
pub(super) fn refined(ty: &Type, values: &[Expr]) -> Option<Type> {
    match ty {
        Type::Array(element, extent) => {
            Some(Type::Array(Arc::new(refined(element, values)?), *extent))
        }
        ty => {
            functions_of(ty).filter(Vec::is_empty)?;
            let mut names = Vec::new();
            values
                .iter()
                .try_for_each(|value| targets(value, &mut names))?;
            (!names.is_empty()).then(|| pointer_to(&names))
        }
    }
}

/// True for a pointer to a function of which nothing is known yet, and for an array of them.
pub(super) fn holds_functions(ty: &Type) -> bool {
    let mut at = ty;
    while let Type::Array(element, _) = at {
        at = element;
    }
    functions_of(at).is_some_and(|names| names.is_empty())
}

/// True for the type of a function, or of a pointer to one, that is not known.
pub(super) fn points_to_any(ty: &Type) -> bool {
    functions_of(ty).is_some_and(|names| names.is_empty())
}
