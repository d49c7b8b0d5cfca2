//! Kernels of one name: which of the definitions in a text a launch means.
//!
//! In: the heads of all of them. Out: a [`Signature`] each, and which of them takes a launch's arguments. What holds: where types are not
//! told it may be any of them; a full specialisation, or an overload without template parameters, takes what is of its very types
//! before a template does (C++20 12.2 [over.match], 13.9.4 [temp.expl.spec]).

use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_syntax::{Expanded, Kind, words_in};

use super::forms::{Parameter, parameter_nodes};
use super::inline::specialised;
use super::{Lowering, Source, text_of};
use crate::definition::node_ending;
use crate::types::by_name;
use crate::{Item, Unit};
use warplens_ir::{AddressSpace, Bound, Type, spell_type};

/// The head of a kernel, as far as it tells it from others of its name. Types are spelled, with classes by their full names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The types of its parameters; `None` for one that the template's parameters decide.
    parameters: Vec<Option<String>>,
    /// What a full specialisation is for, where it is spelled: `k<float, 4>`.
    arguments: Vec<String>,
}

impl Signature {
    /// The heads of these kernels of a text.
    pub fn of(parsed: &Arc<Expanded>, items: &[&Item], unit: &Unit) -> Option<Vec<Signature>> {
        let each = items.iter().map(|item| {
            let node = node_ending(parsed, &item.range, &[Kind::FunctionDefinition])?;
            let source = Source {
                space: &item.space,
                ..Source::new(parsed, false)
            };
            let mut lowering = Lowering::new(unit);
            lowering.space = Arc::clone(&item.space);
            let template = (node.parent()).filter(|of| of.kind() == Kind::TemplateDeclaration);
            let own: Vec<Parameter> = template
                .map(|template| lowering.parameters(template, source))
                .unwrap_or_default();
            let is_own = |word: &str| own.iter().any(|parameter| parameter.name == word);
            let parameters = parameter_nodes(node, source)?.into_iter().map(|parameter| {
                let is_open = words_in(text_of(parameter, source)).any(is_own);
                let ty = (!is_open).then(|| lowering.parameter_type(parameter, source))?;
                spelled(&ty)
            });
            let parameters = parameters.collect();
            let arguments = specialised(node).map(|list| lowering.template_arguments(list, source));
            let arguments = arguments.iter().flatten().map(spelled_bound);
            let arguments = arguments.collect::<Option<_>>()?;
            Some(Signature {
                parameters,
                arguments,
            })
        });
        each.collect()
    }

    /// Whether a launch with these template arguments, and with arguments of these types, may mean the one at a place among all
    /// definitions of its name.
    pub fn takes(
        all: &[Signature],
        at: usize,
        explicit: &[Option<Bound>],
        types: &[Option<Type>],
    ) -> bool {
        let types: Vec<Option<String>> = (types.iter())
            .map(|ty| ty.as_ref().and_then(spelled))
            .collect();
        let fits: Vec<Option<bool>> = (all.iter())
            .map(|one| one.fits(all, explicit, &types))
            .collect();
        match fits.get(at) {
            // Where none fits the types were not read as they are.
            Some(Some(false)) => fits.iter().all(|other| *other == Some(false)),
            Some(None) => !fits.contains(&Some(true)),
            Some(Some(true)) | None => true,
        }
    }

    /// Whether it is for these arguments and no others; `None` where that is not told, as of a template.
    fn fits(
        &self,
        all: &[Signature],
        explicit: &[Option<Bound>],
        types: &[Option<String>],
    ) -> Option<bool> {
        let arguments = explicit.iter().zip(&self.arguments).map(|(given, own)| {
            let given = given.as_ref()?;
            same(&spelled_bound(given)?, own)
        });
        let parameters = self.parameters.iter().enumerate().filter(|(at, _)| {
            // What all of them take tells nothing.
            let others = all.iter().map(|other| other.parameters.get(*at));
            others.collect::<FxHashSet<_>>().len() > 1
        });
        let parameters = parameters.filter_map(|(at, own)| {
            let own = own.as_ref()?;
            Some(match types.get(at) {
                Some(Some(given)) => same(given, own),
                _ => None,
            })
        });
        let (mut fits, mut untold) = (None, false);
        for said in arguments.chain(parameters) {
            match said {
                Some(false) => return Some(false),
                Some(true) => fits = fits.or(Some(true)),
                None => untold = true,
            }
        }
        if untold { None } else { fits }
    }
}

/// Whether two spelled types are the same; `None` where one of them was not read and has another name.
fn same(one: &str, other: &str) -> Option<bool> {
    let read = |ty: &str| !ty.starts_with(UNREAD);
    let last = |ty: &str| ty.rsplit([':', UNREAD]).next().map(str::to_owned);
    if one == other || (!read(one) || !read(other)) && last(one) == last(other) {
        return Some(true);
    }
    (read(one) && read(other)).then_some(false)
}

/// What begins the spelling of a type that was not read: it may be an alias.
const UNREAD: char = '?';

fn spelled_bound(bound: &Bound) -> Option<String> {
    match bound {
        Bound::Type(ty) => spelled(ty),
        bound => Some(bound.spelled()),
    }
}

/// A type that differs for types that differ; an array is a pointer. `None` for lambdas and classes without a name.
fn spelled(ty: &Type) -> Option<String> {
    let ty = match ty {
        Type::Array(element, _) => &Type::Pointer(Arc::clone(element), AddressSpace::Global),
        Type::Pointer(to, _) => &Type::Pointer(Arc::clone(to), AddressSpace::Global),
        ty => ty,
    };
    // One that was read elsewhere has its namespace.
    let read = !matches!(innermost(ty), Type::Unknown(name) if !name.contains("::"));
    let spelled = spell_type(&by_name(ty)?);
    Some(if read {
        spelled
    } else {
        format!("{UNREAD}{spelled}")
    })
}

/// What a pointer, or a pointer to that, leads to in the end.
fn innermost(ty: &Type) -> &Type {
    let mut at = ty;
    while let Some(element) = at.element() {
        at = element;
    }
    at
}
