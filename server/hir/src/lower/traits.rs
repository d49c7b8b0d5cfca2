//! Questions about types that a program asks while it is compiled: `std::is_same_v<A, B>`, and the tuples that
//! it passes them about in.

use crate::namespaces::Name;
use std::sync::Arc;

use super::instances::is_open;
use super::{Lowering, library};
use crate::types::class_of;
use warplens_ir::spell_type;
use warplens_ir::{Bound, Struct};
use warplens_ir::{Expr, ExprKind};
use warplens_ir::{Site, Type};

impl Lowering<'_> {
    /// `name<arguments>::value`, or `name_v<arguments>`, of the standard library's traits (ISO C++17, 23.15).
    pub(super) fn type_trait(&mut self, name: &str, arguments: &[Bound]) -> Option<(i64, Type)> {
        let ty = |at: usize| match arguments.get(at) {
            Some(Bound::Type(ty)) => Some(ty),
            _ => None,
        };
        let known = |at: usize| ty(at).filter(|ty| !is_open(ty));
        let truth = |value: bool| Some((i64::from(value), Type::BOOL));
        match name {
            "is_same" => {
                let (a, b) = (ty(0)?, ty(1)?);
                match (is_open(a), is_open(b)) {
                    (false, false) => truth(a == b),
                    (true, true) => (spell_type(a) == spell_type(b)).then_some((1, Type::BOOL)),
                    // A type that was not read is none of those that were, unless another name hides it.
                    _ => truth(false),
                }
            }
            "is_integral" => truth(known(0)?.is_int()),
            "is_floating_point" => truth(is_built_in_float(known(0)?)),
            "is_arithmetic" => truth(known(0)?.is_int() || is_built_in_float(known(0)?)),
            "is_fundamental" => truth(match known(0)? {
                Type::Void | Type::Int { .. } => true,
                ty => is_built_in_float(ty),
            }),
            "is_scalar" => truth(!matches!(
                known(0)?,
                Type::Struct(_)
                    | Type::Vector(..)
                    | Type::Array(..)
                    | Type::Void
                    | Type::Float { bits: 16, .. }
            )),
            "is_pointer" => truth(matches!(known(0)?, Type::Pointer(..))),
            "is_array" => truth(matches!(known(0)?, Type::Array(..))),
            "is_void" => truth(matches!(known(0)?, Type::Void)),
            "is_class" => truth(matches!(
                known(0)?,
                Type::Struct(_)
                    | Type::Vector(..)
                    | Type::Callable(_)
                    | Type::Library(_)
                    | Type::Float { bits: 16, .. }
            )),
            "is_signed" => truth(match known(0)? {
                Type::Int { signed, .. } => *signed,
                ty => is_built_in_float(ty),
            }),
            "is_unsigned" => truth(matches!(known(0)?, Type::Int { signed: false, .. })),
            "is_empty" => match known(0)? {
                Type::Struct(structure) => truth(structure.fields.is_empty()),
                _ => truth(false),
            },
            "is_base_of" => {
                let (Type::Struct(base), Type::Struct(derived)) = (known(0)?, known(1)?) else {
                    return truth(false);
                };
                truth(base == derived || derives(derived, base, 0))
            }
            "alignment_of" => Some((i64::try_from(known(0)?.align()).ok()?, Type::SIZE)),
            "extent" => match known(0)? {
                Type::Array(_, extent) => Some((i64::try_from((*extent)?).ok()?, Type::SIZE)),
                _ => Some((0, Type::SIZE)),
            },
            "tuple_size" => match known(0)? {
                Type::Struct(structure) if structure.class.is_none() => {
                    Some((structure.fields.len() as i64, Type::SIZE))
                }
                Type::Array(_, extent) => Some((i64::try_from((*extent)?).ok()?, Type::SIZE)),
                _ => None,
            },
            "conjunction" | "disjunction" | "negation" => {
                let all: Option<Vec<bool>> = arguments
                    .iter()
                    .map(|argument| self.truth_of(argument))
                    .collect();
                let all = all?;
                truth(match name {
                    "conjunction" => all.iter().all(|value| *value),
                    "disjunction" => all.iter().any(|value| *value),
                    _ => !*all.first()?,
                })
            }
            _ => None,
        }
    }

    /// `T::value` of a trait.
    fn truth_of(&mut self, argument: &Bound) -> Option<bool> {
        let Bound::Type(Type::Struct(structure)) = argument else {
            return None;
        };
        let class = class_of(structure)?;
        self.constant_of_class(&class, "value")
            .map(|(value, _)| value != 0)
    }

    /// Functions on tuples and on lists of numbers: `std::get<1>(t)`, `std::make_tuple(a, b)`.
    pub(super) fn tuple_call(
        &mut self,
        name: &str,
        explicit: &[Bound],
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        match name {
            "get" => {
                let [tuple] = arguments else { return None };
                let at = match explicit.first()? {
                    Bound::Value(at) => usize::try_from(*at).ok()?,
                    Bound::Type(wanted) => match &tuple.ty {
                        Type::Struct(structure) => {
                            let mut fields = structure.fields.iter();
                            fields.position(|field| field.ty == *wanted)?
                        }
                        _ => return None,
                    },
                    _ => return None,
                };
                match &tuple.ty {
                    Type::Struct(structure) if structure.class.is_none() => {
                        let field = structure.fields.get(at)?.name.clone();
                        self.member(tuple, &field, site)
                    }
                    Type::Array(..) => {
                        let index = Expr {
                            kind: ExprKind::Int(at as i64),
                            ty: Type::SIZE,
                            site,
                        };
                        Some(super::construct::element(tuple.clone(), index, site))
                    }
                    _ => None,
                }
            }
            "make_tuple" | "forward_as_tuple" | "make_pair" => {
                let types: Vec<Bound> = arguments
                    .iter()
                    .map(|argument| {
                        Bound::Type(match &argument.ty {
                            Type::Array(element, _) => Type::Pointer(
                                Arc::clone(element),
                                warplens_ir::AddressSpace::Global,
                            ),
                            ty => ty.clone(),
                        })
                    })
                    .collect();
                let of = if name == "make_pair" { "pair" } else { "tuple" };
                let ty = library::template_type(of, &types)?;
                Some(super::split::list(&ty, arguments.to_vec(), site))
            }
            _ => None,
        }
    }

    /// `std::make_index_sequence<4>` as the sequence that it is.
    pub(super) fn made_sequence(&mut self, name: &str, arguments: &[Bound]) -> Option<Type> {
        /// A sequence of more numbers is a mistake.
        const MOST: i64 = 1024;
        let (of, count) = match (name, arguments) {
            ("make_index_sequence", [Bound::Value(count)]) => (Type::SIZE, *count),
            ("make_integer_sequence", [Bound::Type(of), Bound::Value(count)]) => {
                (of.clone(), *count)
            }
            ("index_sequence_for", all) => (Type::SIZE, all.len() as i64),
            _ => return None,
        };
        if !(0..=MOST).contains(&count) {
            return None;
        }
        let mut all = vec![Bound::Type(of)];
        all.extend((0..count).map(Bound::Value));
        self.instance(Name::new("integer_sequence", ""), &all)
    }

    /// An object that a conversion operator of its class makes a number of: `std::integral_constant<int, 4>{}`.
    pub(super) fn converted_to_number(&mut self, object: Expr) -> Expr {
        self.converted(object, Wanted::Any)
    }

    /// An object as what is given to something of that type: the number or the pointer that a conversion operator of its class makes,
    /// `T *tile = SharedMemory<T>();`.
    pub(super) fn converted_to(&mut self, object: Expr, ty: &Type) -> Expr {
        match ty {
            Type::Int { .. } | Type::Float { .. } => self.converted(object, Wanted::Number),
            Type::Pointer(..) => self.converted_to_pointer(object),
            _ => object,
        }
    }

    /// An object that is taken for the pointer that its class makes of it.
    pub(super) fn converted_to_pointer(&mut self, object: Expr) -> Expr {
        self.converted(object, Wanted::Pointer)
    }

    fn converted(&mut self, object: Expr, wanted: Wanted) -> Expr {
        let Type::Struct(structure) = &object.ty else {
            return object;
        };
        let Some(class) = class_of(structure) else {
            return object;
        };
        let site = object.site;
        let Some(call) = self.conversion(&class, &object, wanted, site) else {
            return object;
        };
        if call.ty.is_int() || call.ty.is_float() || matches!(call.ty, Type::Pointer(..)) {
            call
        } else {
            object
        }
    }
}

/// What an object is to be converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Any,
    Number,
    Pointer,
}

impl Wanted {
    /// Whether a conversion operator to a pointer, or to something else, makes it.
    pub(super) fn takes(self, pointer: bool) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Number => !pointer,
            Wanted::Pointer => pointer,
        }
    }
}

/// True for `float` and `double`: those of 16 bits are classes of the toolkit's headers.
fn is_built_in_float(ty: &Type) -> bool {
    matches!(ty, Type::Float { bits: 32.., .. })
}

/// True where a class has another one as a base.
fn derives(derived: &Struct, base: &Struct, depth: u32) -> bool {
    /// Bases of bases.
    const DEEPEST: u32 = 16;
    let Some(class) = class_of(derived) else {
        return false;
    };
    depth < DEEPEST
        && class.bases.iter().any(|(of, _)| match of {
            Type::Struct(of) => **of == *base || derives(of, base, depth + 1),
            _ => false,
        })
}
