//! Device functions that are read once for all their calls.
//!
//! Putting a function in place of each of its calls multiplies: a hash that is called thirty times, each time
//! through helpers of a thousand lines, is more than anybody waits for. Where a function takes numbers and
//! pointers into arrays and structures of the calling thread alone, its body says the same for every call: it is
//! lowered with its parameters as variables, and a call only names it.

use warplens_syntax::{Field, Kind, Node};

use super::candidate::Candidate;
use super::forms::space_of;
use super::forms::{parameter_nodes, returns_reference};
use super::{Call, Frame, Lowering, Named, Result, Scope, Source, child_of_kind};
use crate::definition::Definition;
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{Expr, ExprKind, Routine, RoutineId, Storage};

/// Shorter functions that take structures are put in place of their calls.
const LEAST_WITH_STRUCTURES: usize = 1000;

impl Lowering<'_> {
    /// The call of a function that is kept already: nothing of its text is looked at again.
    pub(super) fn known_routine(
        &mut self,
        candidate: &Candidate,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        if self.unevaluated > 0 || candidate.this.is_some() || !candidate.bindings.is_empty() {
            return None;
        }
        let id = (*self.routine_of.get(&candidate.definition.hash)?)?;
        if !self.takes_all(id, arguments) {
            return None;
        }
        self.note_noinline(&candidate.definition, arguments, site);
        Some(self.apply(id, arguments, site))
    }

    /// The call of a function that can be kept once.
    pub(super) fn applied(
        &mut self,
        definition: &Definition,
        function: Node,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        // What is read unevaluated leaves no variables behind.
        if self.unevaluated > 0 {
            return None;
        }
        let known = self.routine_of.get(&definition.hash).copied();
        let id = match known {
            Some(Some(id)) => self.takes_all(id, arguments).then_some(id)?,
            Some(None) => return None,
            None => self.routine(definition, function, arguments, site)?,
        };
        Some(self.apply(id, arguments, site))
    }

    fn apply(&self, id: RoutineId, arguments: &[Expr], site: Site) -> Expr {
        let ty = match self.routines[id.0 as usize].result {
            Some(result) => self.vars[result.0 as usize].ty.clone(),
            None => Type::Void,
        };
        Expr {
            kind: ExprKind::Apply(id, arguments.to_vec()),
            ty,
            site,
        }
    }

    /// True where the arguments are what a routine's body was read for.
    fn takes_all(&self, id: RoutineId, arguments: &[Expr]) -> bool {
        let params = &self.routines[id.0 as usize].params;
        params.len() == arguments.len()
            && params
                .iter()
                .zip(arguments)
                .all(|(param, argument)| self.fits_param(&self.vars[param.0 as usize].ty, argument))
    }

    fn fits_param(&self, param: &Type, argument: &Expr) -> bool {
        match param {
            Type::Pointer(element, _) => {
                let private = match **element {
                    Type::Struct(_) => self.is_private_structure(argument),
                    _ => self.is_private_array(argument),
                };
                private && argument.ty.element().is_some_and(|own| own == &**element)
            }
            _ => is_number(&argument.ty),
        }
    }

    /// True for the address of a structure that is the thread's own and whose fields are not followed.
    fn is_private_structure(&self, argument: &Expr) -> bool {
        match &argument.kind {
            ExprKind::Var(id) => self.private_pointers.contains(id),
            ExprKind::AddressOf(place) => self.is_private_place(place),
            _ => false,
        }
    }

    /// True for a structure that is the thread's own and is kept whole.
    fn is_private_place(&self, place: &Expr) -> bool {
        match &place.kind {
            ExprKind::Var(id) => {
                let var = &self.vars[id.0 as usize];
                var.storage == Storage::Local
                    && matches!(var.ty, Type::Struct(_))
                    && !self.split.contains_key(id)
            }
            ExprKind::Deref(pointer) => {
                matches!(&pointer.kind, ExprKind::Var(id) if self.private_pointers.contains(id))
            }
            ExprKind::Field(base, _) => {
                matches!(base.ty, Type::Struct(_)) && self.is_private_place(base)
            }
            _ => false,
        }
    }

    /// True for an address in an array that is the thread's own.
    fn is_private_array(&self, argument: &Expr) -> bool {
        match &argument.kind {
            ExprKind::Var(id) => {
                let var = &self.vars[id.0 as usize];
                self.private_pointers.contains(id)
                    || (var.storage == Storage::Local && matches!(var.ty, Type::Array(..)))
            }
            ExprKind::AddressOf(place) => match &place.kind {
                ExprKind::Index(base, _) => self.is_private_array(base),
                _ => false,
            },
            ExprKind::Field(..) => {
                matches!(argument.ty, Type::Array(..)) && self.is_private_place(argument)
            }
            ExprKind::Binary(warplens_ir::BinaryOp::Add, base, _) => self.is_private_array(base),
            _ => false,
        }
    }

    /// Reads the body.
    fn routine(
        &mut self,
        definition: &Definition,
        function: Node,
        arguments: &[Expr],
        site: Site,
    ) -> Option<RoutineId> {
        let call = Call {
            // For every caller: only the line of the kernel is one call's.
            site: Site { callee: 0, ..site },
            within: definition.within,
        };
        let source = definition.source(call);
        let never = |lowering: &mut Self| {
            lowering.routine_of.insert(definition.hash, None);
            None
        };
        let body = function.field(Field::Body)?;
        let returned = function.field(Field::Type)?;
        if returns_reference(function)
            || child_of_kind(function, Kind::FieldInitializerList).is_some()
            || function
                .field(Field::Declarator)
                .is_none_or(|declarator| declarator.kind() != Kind::FunctionDeclarator)
        {
            return never(self);
        }
        let gives = self.base_type(returned, source);
        if gives != Type::Void && !is_number(&gives) {
            return never(self);
        }
        let nodes = parameter_nodes(function, source)?;
        let mut declared = Vec::new();
        for &param in &nodes {
            match self.routine_param(param, source) {
                Some(param) => declared.push(param),
                None => return never(self),
            }
        }
        let fits = declared.len() == arguments.len()
            && declared
                .iter()
                .zip(arguments)
                .all(|((_, ty, _), argument)| self.fits_param(ty, argument));
        if !fits {
            return None;
        }
        // A copy of a structure's address hides what its fields hold: no price for a few lines.
        let short = definition.range.len() < LEAST_WITH_STRUCTURES;
        let structure =
            |ty: &Type| matches!(ty, Type::Pointer(to, _) if matches!(**to, Type::Struct(_)));
        if short && declared.iter().any(|(_, ty, _)| structure(ty)) {
            return never(self);
        }
        let mut scope = Scope::new();
        let mut params = Vec::new();
        for (name, ty, at) in declared {
            let pointer = matches!(ty, Type::Pointer(..));
            let id = self.fresh(&name, ty, Storage::Local, at);
            if pointer {
                self.private_pointers.insert(id);
            }
            scope.insert(name, Named::Var(id));
            params.push(id);
        }
        let frame = Frame {
            scopes: vec![scope],
            bindings: Vec::new(),
            this: None,
            result: Result::None,
            function: definition.hash,
        };
        // A value that waits to be put before the caller's statement is none of the function's.
        let before = std::mem::take(&mut self.before);
        let read = self.body_in_place(
            frame,
            &[],
            Some(body),
            None,
            Some(returned),
            function,
            source,
            &[],
            call.site,
        );
        self.before = before;
        let ExprKind::Inline(body, result) = read.kind else {
            return never(self);
        };
        let id = RoutineId(self.routines.len() as u32);
        self.routines.push(Routine {
            params,
            body,
            result,
        });
        self.routine_of.insert(definition.hash, Some(id));
        Some(id)
    }

    /// Name and type of a parameter that a routine may have.
    fn routine_param(&mut self, param: Node, source: Source) -> Option<(String, Type, Site)> {
        if param.kind() != Kind::ParameterDeclaration {
            return None;
        }
        let space = space_of(param, source).unwrap_or(AddressSpace::Private);
        let base = self.base_type(param.field(Field::Type)?, source);
        let declarator = param.field(Field::Declarator)?;
        let declared = self.declarator(declarator, base, space, source);
        let ty = match declared.ty {
            Type::Array(element, _) => Type::Pointer(element, space),
            ty => ty,
        };
        let fits = match &ty {
            Type::Pointer(element, _) => is_number(element) || is_plain(element),
            ty => is_number(ty),
        };
        let at = self.site(declarator, source);
        (fits && !declared.reference).then_some((declared.name, ty, at))
    }
}

/// True for a structure of numbers and arrays of numbers.
fn is_plain(ty: &Type) -> bool {
    match ty {
        Type::Struct(structure) => {
            !structure.fields.is_empty() && structure.fields.iter().all(|field| is_plain(&field.ty))
        }
        Type::Array(element, _) => is_plain(element),
        ty => is_number(ty),
    }
}

fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Int { .. } | Type::Float { .. })
}
