//! Host code, as far as launches need it: types of variables, and numbers that only the file's declarations
//! decide.

use std::sync::Arc;

use warplens_syntax::{Expanded, Kind, Node};

use super::constants::constant;
use super::forms::Parameter;
use super::{Frame, Lowering, MOST_EXPRESSIONS, Named, Result, Scope, Source, literals};
use crate::unit::Constant;
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{Bindings, Bound};
use warplens_ir::{Expr, ExprKind, Opaque};

/// One reading expands to this many expressions at most.
const MOST_OF_ONE: u32 = 4_000;

/// What a name of host code means where the lowering reads an expression or a type.
#[derive(Debug, Clone, PartialEq)]
pub enum HostName {
    /// A variable: its type, and the integer it holds where that is known.
    Variable(Type, Option<i64>),
    /// A type.
    Type(Type),
}

impl<'a> Source<'a> {
    /// A text that is read where it is.
    pub fn new(parsed: &'a Arc<Expanded>, header: bool) -> Source<'a> {
        Source {
            parsed,
            space: "",
            header,
            at: None,
            fixed: None,
            copied: None,
            of: None,
        }
    }

    /// The text of a definition.
    pub fn of(definition: &'a crate::Definition) -> Source<'a> {
        Source {
            space: &definition.space,
            of: Some(definition.within),
            ..Source::new(&definition.text, definition.header)
        }
    }

    /// The same in these namespaces.
    #[must_use]
    pub fn within(self, space: &'a str) -> Source<'a> {
        Source { space, ..self }
    }

    /// The namespaces around what is read.
    pub fn space(self) -> &'a str {
        self.space
    }

    /// True in a header.
    pub fn is_header(self) -> bool {
        self.header
    }
}

impl Lowering<'_> {
    /// Reads something of host code under these names and template parameters, and those of the file.
    pub fn in_host<T>(
        &mut self,
        names: Vec<(String, HostName)>,
        bindings: &Bindings,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut scope = Scope::new();
        for (name, meaning) in names {
            let meaning = match meaning {
                HostName::Type(ty) => Named::Type(ty),
                HostName::Variable(ty, value) => Named::Alias(Box::new(Expr {
                    kind: value.map_or_else(
                        || ExprKind::Opaque(Opaque::Unknown, Vec::new()),
                        ExprKind::Int,
                    ),
                    ty,
                    site: Site::default(),
                })),
            };
            scope.insert(name, meaning);
        }
        self.frames.push(Frame {
            scopes: vec![scope],
            bindings: bindings.clone(),
            this: None,
            result: Result::None,
            function: 0,
        });
        self.expressions = MOST_EXPRESSIONS - MOST_OF_ONE;
        let result = self.unevaluated(read);
        self.frames.pop();
        // Variables of what was read are gone, and so is what was known of them.
        self.split.clear();
        result
    }

    /// Expressions read since the last [`Lowering::in_host`] began.
    pub fn host_work(&self) -> u32 {
        (self.expressions + MOST_OF_ONE).saturating_sub(MOST_EXPRESSIONS)
    }

    /// The type of an expression, and its value where it is an integer that the text decides.
    pub fn host_expression(&mut self, node: Node, source: Source) -> (Type, Option<i64>) {
        let expression = self.expr(node, source);
        let value = constant(&expression);
        (expression.ty, value)
    }

    /// A type as a declaration writes it.
    pub fn host_type(&mut self, node: Node, source: Source) -> Type {
        self.base_type(node, source)
    }

    /// The type that a declarator makes of the declared one.
    pub fn host_declarator(&mut self, node: Node, base: Type, source: Source) -> Type {
        self.declarator(node, base, AddressSpace::Global, source).ty
    }

    /// A type by name.
    pub fn host_type_named(&mut self, name: &str) -> Option<Type> {
        self.type_named(name, "")
    }

    /// The constants of an enumeration that a function defines, and the names of its types.
    pub fn host_local_types(&mut self, node: Node, source: Source) -> Vec<(String, HostName)> {
        let mut found = Vec::new();
        if node.kind() == Kind::EnumSpecifier {
            for (name, constant) in self.enumeration(node, source) {
                if let Constant::Int(value, ty) = constant {
                    found.push((name, HostName::Variable(ty, Some(value))));
                }
            }
            return found;
        }
        for (name, ty) in self.typedefs(node, source) {
            found.push((name, HostName::Type(ty)));
        }
        found
    }

    /// What a call binds of a function template: explicit arguments first, then what the types of the
    /// arguments say, then defaults. `declared` are the parameters' declarations.
    pub fn host_bindings(
        &mut self,
        template: Node,
        explicit: &[Option<Bound>],
        declared: &[Node],
        arguments: &[Option<Type>],
        source: Source,
    ) -> Bindings {
        let own: Vec<Parameter> = self.parameters(template, source);
        let mut bindings = Bindings::new();
        for (position, parameter) in own.iter().enumerate() {
            if parameter.pack {
                let rest: Option<Vec<Bound>> = explicit
                    .get(position..)
                    .unwrap_or(&[])
                    .iter()
                    .cloned()
                    .collect();
                if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                    bindings.push((parameter.name.clone(), Bound::Pack(rest)));
                }
                break;
            }
            if let Some(Some(bound)) = explicit.get(position) {
                bindings.push((parameter.name.clone(), bound.clone()));
            }
        }
        for (declaration, ty) in declared.iter().zip(arguments) {
            if let Some(ty) = ty {
                if let Type::Array(element, _) = ty
                    && self.deduce_elements(*declaration, element, &own, source, &mut bindings)
                {
                    continue;
                }
                let ty = match ty {
                    // By value an array is a pointer.
                    Type::Array(element, _) => {
                        Type::Pointer(Arc::clone(element), AddressSpace::Global)
                    }
                    ty => ty.clone(),
                };
                self.deduce(*declaration, &ty, &own, source, &mut bindings);
            }
        }
        for (position, parameter) in own.iter().enumerate() {
            let bound = bindings.iter().any(|(name, _)| *name == parameter.name);
            // What the call gives and was not understood must not become the default.
            let given = explicit.get(position).is_some();
            if !bound
                && !given
                && !parameter.pack
                && let Some(bound) = self.default(parameter, &bindings, None, source)
                && !matches!(bound, Bound::Type(Type::Unknown(_)))
            {
                bindings.push((parameter.name.clone(), bound));
            }
        }
        bindings
    }

    /// An integer literal as written, and its type; no value for floating point.
    pub fn host_number(text: &str) -> (Option<i64>, Type) {
        match literals::number(text, false) {
            (ExprKind::Int(value), ty) => (Some(value), ty),
            (_, ty) => (None, ty),
        }
    }

    /// A character literal's value.
    pub fn host_character(text: &str) -> i64 {
        literals::character(text)
    }

    /// A number in this many bits.
    pub fn host_wrapped(value: i64, bits: u8, signed: bool) -> i64 {
        warplens_ir::wrapped(value, bits, signed)
    }
}
