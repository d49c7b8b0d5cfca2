//! Expressions.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_syntax::nodes::{
    FieldExpression, PointerExpression, UnaryExpression, UpdateExpression,
};
use warplens_syntax::{
    AssignOperator, BinaryOperator, Field, Kind, Node, PointerOperator, UnaryOperator,
    UpdateOperator, words_in,
};

use super::constants::constant;
use super::construct::binary_op;
use super::construct::{after, element, folded, hoisted, is_preceded, operation};
use super::split::{address_of, deref, list, referred};
use super::types::LONGEST_PATH;
use super::{
    DEEPEST, Lowering, MOST_EXPRESSIONS, Named, Source, library, literals, parts, text_of,
};
use crate::definition::Definition;
use crate::misread;
use crate::namespaces::{Name, Space, joined};
use crate::types::{Callable, class_of, type_of_callable};
use crate::unit::Constant;
use warplens_ir::Bound;
use warplens_ir::Reason;
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{BinaryOp, Builtin, Expr, ExprKind, Opaque, Stmt, StmtKind, Storage, UnaryOp};

impl Lowering<'_> {
    pub(super) fn expr(&mut self, node: Node, source: Source) -> Expr {
        self.expressions += 1;
        let site = self.site(node, source);
        if self.expressions > MOST_EXPRESSIONS || self.depth > DEEPEST {
            self.lost(site, Reason::TooMuch);
            return Expr {
                kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
                ty: Type::INT,
                site,
            };
        }
        self.depth += 1;
        let operators = misread::is_operation(&node);
        let within = std::mem::replace(&mut self.in_operation, operators);
        let again = if operators && !within {
            self.misread_scopes(node, source, site)
                .or_else(|| self.misread_casts(node, source, site))
        } else if node.kind() == Kind::QualifiedIdentifier {
            self.misread_scopes(node, source, site)
        } else {
            None
        };
        let expression = again.unwrap_or_else(|| self.expression(node, source, site));
        self.in_operation = within;
        self.depth -= 1;
        expression
    }

    fn expression(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let make = |kind, ty| Expr { kind, ty, site };
        let field = |name: Field| node.field(name);
        match node.kind() {
            Kind::NumberLiteral | Kind::UserDefinedLiteral => {
                let (kind, ty) = literals::number(text_of(node, source), self.opencl());
                make(kind, ty)
            }
            Kind::True => make(ExprKind::Int(1), Type::BOOL),
            Kind::False => make(ExprKind::Int(0), Type::BOOL),
            Kind::Null | Kind::Nullptr | Kind::NullMacro => make(ExprKind::Int(0), Type::LONG),
            Kind::CharLiteral => make(
                ExprKind::Int(literals::character(text_of(node, source))),
                Type::CHAR,
            ),
            Kind::StringLiteral | Kind::ConcatenatedString | Kind::RawStringLiteral => make(
                ExprKind::List(Vec::new()),
                Type::Unknown("string".to_owned()),
            ),
            Kind::Identifier
            | Kind::TypeIdentifier
            | Kind::FieldIdentifier
            | Kind::PrimitiveType => {
                if let Some(value) = self.hidden(node, source) {
                    return value;
                }
                let name = text_of(node, source);
                self.name(Name::new(name, source.space), site)
            }
            Kind::QualifiedIdentifier | Kind::TemplateFunction | Kind::TemplateType => {
                if let Some(value) = self.concept_value(node, source) {
                    return make(ExprKind::Int(value), Type::BOOL);
                }
                match node.kind() {
                    Kind::QualifiedIdentifier => self.qualified(node, "", source, site),
                    _ => self.template_value(node, "", source, site),
                }
            }
            Kind::ConstraintConjunction | Kind::ConstraintDisjunction => {
                let (Some(left), Some(right)) = (field(Field::Left), field(Field::Right)) else {
                    return self.opaque(site, Reason::SyntaxError, Vec::new());
                };
                let op = match node.kind() {
                    Kind::ConstraintConjunction => BinaryOp::LogicalAnd,
                    _ => BinaryOp::LogicalOr,
                };
                let (left, right) = (self.expr(left, source), self.expr(right, source));
                operation(op, left, right, site)
            }
            Kind::RequiresExpression => {
                match self.unevaluated(|lowering| lowering.required(node, source)) {
                    Some(is_met) => make(ExprKind::Int(i64::from(is_met)), Type::BOOL),
                    None => self.opaque(site, Reason::Expression, Vec::new()),
                }
            }
            Kind::This => match self.current().this.clone() {
                Some(this) => address_of(this, AddressSpace::Global, site),
                None => self.opaque(site, Reason::NoThis, Vec::new()),
            },
            Kind::ParenthesizedExpression => match parts(node).into_iter().next() {
                Some(inner) => self.expr(inner, source),
                None => self.opaque(site, Reason::SyntaxError, Vec::new()),
            },
            Kind::BinaryExpression => self.binary(node, source, site),
            Kind::UnaryExpression => self.unary(node, source, site),
            Kind::PointerExpression => {
                let Some(argument) = field(Field::Argument) else {
                    return self.opaque(site, Reason::SyntaxError, Vec::new());
                };
                let operator = PointerExpression::cast(node).and_then(PointerExpression::op);
                let argument = self.expr(argument, source);
                if operator == Some(PointerOperator::AddressOf) {
                    let (mut before, mut place) = hoisted(argument);
                    // A constant with a name has an address too: a variable holds it.
                    if let ExprKind::Int(_) | ExprKind::Float(_) = place.kind {
                        let held = self.fresh("constant", place.ty.clone(), Storage::Local, site);
                        let value = std::mem::replace(&mut place, self.var(held, site));
                        before.push(Stmt {
                            kind: StmtKind::Declare(held, Some(value)),
                            site,
                        });
                    }
                    let address = address_of(place, AddressSpace::Global, site);
                    return if before.is_empty() {
                        address
                    } else {
                        after(before, address)
                    };
                }
                if let Type::Struct(_) = argument.ty
                    && let Some(call) = self.operator_call("operator*", &argument, &[], site)
                {
                    return call;
                }
                let argument = self.converted_to_pointer(argument);
                deref(argument, site)
            }
            Kind::SubscriptExpression => self.subscript(node, source, site),
            Kind::FieldExpression => self.field(node, source, site),
            Kind::AssignmentExpression => self.assignment(node, source, site),
            Kind::UpdateExpression => {
                let Some(argument) = field(Field::Argument) else {
                    return self.opaque(site, Reason::SyntaxError, Vec::new());
                };
                let step = UpdateExpression::cast(node).and_then(UpdateExpression::op);
                let by = match step {
                    Some(UpdateOperator::Increment) => 1,
                    _ => -1,
                };
                let postfix = argument.start_byte() == node.start_byte();
                let (before, argument) = hoisted(self.expr(argument, source));
                if let Type::Struct(_) = argument.ty {
                    let name = if by > 0 { "operator++" } else { "operator--" };
                    if let Some(call) = self.operator_call(name, &argument, &[], site) {
                        return if before.is_empty() {
                            call
                        } else {
                            after(before, call)
                        };
                    }
                }
                let ty = argument.ty.clone();
                let step = make(ExprKind::Step(by, postfix, Box::new(argument)), ty);
                if before.is_empty() {
                    step
                } else {
                    after(before, step)
                }
            }
            Kind::ConditionalExpression => {
                let (Some(c), Some(b)) = (field(Field::Condition), field(Field::Alternative))
                else {
                    return self.opaque(site, Reason::SyntaxError, Vec::new());
                };
                let c = self.expr(c, source);
                // Of what is only worked out, what is not chosen may not even make sense.
                if self.unevaluated > 0
                    && let Some(value) = self.evaluated(&c)
                {
                    return match (value, field(Field::Consequence)) {
                        (0, _) => self.expr(b, source),
                        (_, Some(a)) => self.expr(a, source),
                        (_, None) => c,
                    };
                }
                // GNU: `a ?: b`.
                let a = match field(Field::Consequence) {
                    Some(a) => self.expr(a, source),
                    None => c.clone(),
                };
                let b = self.expr(b, source);
                // Of two places either is one that a reference to an object of the toolkit may go to.
                if let Type::Library(_) = b.ty
                    && super::shapes::is_place(&a)
                {
                    return a;
                }
                let functions = super::function_types::either(&a, &b);
                if functions.is_some()
                    && let Some(value) = constant(&c)
                {
                    return Expr {
                        site,
                        ..if value != 0 { a } else { b }
                    };
                }
                let ty = functions.unwrap_or_else(|| a.ty.common(&b.ty));
                make(ExprKind::Select(Box::new(c), Box::new(a), Box::new(b)), ty)
            }
            Kind::CastExpression => {
                let (Some(ty), Some(value)) = (field(Field::Type), field(Field::Value)) else {
                    return self.opaque(site, Reason::SyntaxError, Vec::new());
                };
                let ty = self.base_type(ty, source);
                // OpenCL's vector literal where the grammar reads a cast: (float4)(a, b, c, d).
                if let Type::Vector(..) = ty
                    && value.kind() == Kind::ParenthesizedExpression
                    && let Some(inner) = value.named_child(0)
                    && inner.kind() == Kind::CommaExpression
                {
                    let inner = self.comma_parts(inner, source);
                    return list(&ty, inner, site);
                }
                let value = self.expr(value, source);
                self.cast(value, ty, site)
            }
            Kind::VectorLiteral => {
                let ty = field(Field::Type).map_or(Type::Unknown(String::new()), |ty| {
                    self.base_type(ty, source)
                });
                let arguments = match field(Field::Arguments) {
                    Some(arguments) if arguments.kind() == Kind::ArgumentList => {
                        self.arguments(arguments, source)
                    }
                    _ => {
                        let nodes: Vec<Node> = node
                            .fields(Field::Arguments)
                            .filter(Node::is_named)
                            .collect();
                        nodes.into_iter().map(|n| self.expr(n, source)).collect()
                    }
                };
                list(&ty, arguments, site)
            }
            Kind::CommaExpression => {
                let all = self.comma_parts(node, source);
                let ty = all.last().map_or(Type::Void, |last| last.ty.clone());
                make(ExprKind::List(all), ty)
            }
            Kind::SizeofExpression => {
                let size = if let Some(length) = self.pack_length(node, source) {
                    return make(ExprKind::Int(length as i64), Type::SIZE);
                } else if let Some(ty) = field(Field::Type) {
                    self.unevaluated(|lowering| lowering.base_type(ty, source).size())
                } else if let Some(value) = field(Field::Value) {
                    self.unevaluated(|lowering| {
                        // `sizeof(T)` of a name the grammar takes for a value.
                        let inner = parts(value).into_iter().next().unwrap_or(value);
                        if value.kind() == Kind::ParenthesizedExpression
                            && matches!(inner.kind(), Kind::Identifier | Kind::QualifiedIdentifier)
                            && let Some(ty) =
                                lowering.type_named(text_of(inner, source), source.space)
                        {
                            return ty.size();
                        }
                        // `sizeof(T<2>)` reads as a function's name.
                        if matches!(
                            inner.kind(),
                            Kind::TemplateFunction | Kind::QualifiedIdentifier
                        ) {
                            let size = lowering.base_type(inner, source).size();
                            if size > 0 {
                                return size;
                            }
                        }
                        lowering.expr(value, source).ty.size()
                    })
                } else {
                    0
                };
                if size == 0 {
                    // One number for the whole launch.
                    return make(ExprKind::Opaque(Opaque::Build, Vec::new()), Type::SIZE);
                }
                make(ExprKind::Int(size as i64), Type::SIZE)
            }
            Kind::AlignofExpression => {
                let align = field(Field::Type).map_or(1, |ty| self.base_type(ty, source).align());
                make(ExprKind::Int(align as i64), Type::SIZE)
            }
            Kind::InitializerList => {
                let all = self.initializers(node, source);
                make(ExprKind::List(all), Type::Unknown("list".to_owned()))
            }
            Kind::CompoundLiteralExpression => {
                let ty = field(Field::Type).map_or(Type::Unknown(String::new()), |ty| {
                    self.base_type(ty, source)
                });
                let all = field(Field::Value)
                    .map(|value| self.initializers(value, source))
                    .unwrap_or_default();
                let ty = match field(Field::Type) {
                    Some(written) => self.type_made(ty, written, &all, source),
                    None => ty,
                };
                self.constructed(&ty, all, site)
            }
            Kind::CallExpression => self.call(node, source, site),
            Kind::LambdaExpression | Kind::BlockLiteral => {
                let mut scopes = self.captured(node, source);
                scopes.extend(self.initialised_captures(node, source));
                let callable = Callable {
                    definition: Definition::new(
                        source.parsed,
                        node.byte_range(),
                        source.header,
                        self.within(source),
                        &source.space.into(),
                    ),
                    scopes,
                    bindings: self.current().bindings.clone(),
                    this: self.current().this.clone(),
                };
                make(ExprKind::List(Vec::new()), type_of_callable(callable))
            }
            Kind::NewExpression => self.allocation(node, source, site),
            Kind::DeleteExpression => self.deletion(node, source, site),
            Kind::CompoundStatement => self.statement_expression(node, source, site),
            Kind::FoldExpression => self.fold(node, source, site),
            Kind::GnuAsmExpression => self.inline_assembly(node, source, site),
            Kind::Comment => make(ExprKind::List(Vec::new()), Type::Void),
            Kind::TypeDescriptor => match node.field(Field::Type) {
                // A template argument that is a number.
                Some(inner) => self.expr(inner, source),
                None => self.opaque(site, Reason::Expression, Vec::new()),
            },
            kind => {
                let reason = match kind {
                    Kind::Error => Reason::SyntaxError,
                    Kind::ParameterPackExpansion => Reason::ParameterPack,
                    _ => Reason::Expression,
                };
                self.opaque(site, reason, Vec::new())
            }
        }
    }

    pub(super) fn arguments(&mut self, node: Node, source: Source) -> Vec<Expr> {
        let mut all = Vec::new();
        for child in parts(node) {
            self.element(child, source, &mut all);
        }
        all
    }

    /// One of several values, or what a parameter pack expands to.
    fn element(&mut self, node: Node, source: Source, out: &mut Vec<Expr>) {
        if node.kind() == Kind::ParameterPackExpansion
            && let Some(pattern) = node.field(Field::Pattern)
            && let Some(all) =
                self.expanded(pattern, source, |lowering| lowering.expr(pattern, source))
        {
            out.extend(all);
            return;
        }
        out.push(self.expr(node, source));
    }

    /// The values of `{ … }`, designators looked through.
    pub(super) fn initializers(&mut self, node: Node, source: Source) -> Vec<Expr> {
        let mut all = Vec::new();
        for child in parts(node) {
            match child.kind() {
                Kind::InitializerPair => match child.field(Field::Value) {
                    Some(value) => all.push(self.expr(value, source)),
                    None => {
                        let site = self.site(child, source);
                        all.push(self.opaque(site, Reason::SyntaxError, Vec::new()));
                    }
                },
                _ => self.element(child, source, &mut all),
            }
        }
        all
    }

    fn comma_parts(&mut self, node: Node, source: Source) -> Vec<Expr> {
        let mut nodes = Vec::new();
        let mut at = Some(node);
        // The grammar nests to the right.
        while let Some(node) = at {
            if node.kind() == Kind::CommaExpression {
                nodes.extend(node.field(Field::Left));
                at = node.field(Field::Right);
            } else {
                nodes.push(node);
                at = None;
            }
        }
        nodes
            .into_iter()
            .map(|node| self.expr(node, source))
            .collect()
    }

    pub(super) fn cast(&mut self, value: Expr, ty: Type, site: Site) -> Expr {
        let value = self.converted_to(value, &ty);
        if value.ty == ty && matches!(ty, Type::Pointer(..)) {
            return Expr { site, ..value };
        }
        match (&ty, &value.kind) {
            (Type::Void, _) => Expr { site, ..value },
            // Its class has no such conversion.
            (Type::Int { .. } | Type::Float { .. }, _)
                if matches!(value.ty, Type::Struct(_))
                    && !matches!(value.kind, ExprKind::List(_)) =>
            {
                Expr {
                    ty,
                    ..self.opaque(site, Reason::Operator, vec![value])
                }
            }
            (Type::Int { bits, signed }, ExprKind::Int(number)) => Expr {
                kind: ExprKind::Int(warplens_ir::wrapped(*number, *bits, *signed)),
                ty,
                site,
            },
            (Type::Int { bits, signed }, _)
                if value.ty.is_float()
                    && let Some(number) = super::constants::real(&value) =>
            {
                Expr {
                    kind: ExprKind::Int(warplens_ir::wrapped(number as i64, *bits, *signed)),
                    ty,
                    site,
                }
            }
            // A vector of one scalar: every lane has it.
            (Type::Vector(..), _) if !matches!(value.ty, Type::Vector(..) | Type::Struct(_)) => {
                list(&ty, vec![value], site)
            }
            (Type::Pointer(to, space), _) => {
                // The cast keeps the address space that the value is known to point into.
                let space = match &value.ty {
                    Type::Pointer(_, known) if *space == AddressSpace::Global => *known,
                    _ => *space,
                };
                let ty = Type::Pointer(Arc::clone(to), space);
                // A reinterpreted scalar: `*(int *)&x` reads the scalar.
                Expr {
                    kind: ExprKind::Cast(true, Box::new(value)),
                    ty,
                    site,
                }
            }
            _ => Expr {
                kind: ExprKind::Cast(true, Box::new(value)),
                ty,
                site,
            },
        }
    }

    // ---- names ---------------------------------------------------------------------------------

    pub(super) fn name(&mut self, written: Name, site: Site) -> Expr {
        let name = written.last;
        let make = |kind, ty| Expr { kind, ty, site };
        if !written.path().is_empty() {
            return self.file_scope_or_type(written, site);
        }
        match self.named(name) {
            Some(Named::Var(id)) => return self.var(*id, site),
            Some(Named::Alias(expression)) => {
                return Expr {
                    site,
                    ..(**expression).clone()
                };
            }
            _ => {}
        }
        match self
            .current()
            .bindings
            .iter()
            .rev()
            .find(|(of, _)| of == name)
        {
            Some((_, Bound::Value(value))) => return make(ExprKind::Int(*value), Type::INT),
            Some((_, Bound::Type(ty))) => {
                // A type is an object of it: `T{}`, a functor passed as a template argument.
                return make(ExprKind::List(Vec::new()), ty.clone());
            }
            // `template <const unsigned (&MODULUS)[8]>`: the array that it is given.
            Some((_, Bound::Template(of))) => {
                let of = of.clone();
                let meant = Name::new(&of, "");
                if self.unit.global(meant).is_some()
                    && let Some(found) = self.file_scope_name(meant, site)
                {
                    return found;
                }
            }
            _ => {}
        }
        if let Some(this) = self.current().this.clone() {
            if let Some(found) = self.member(&this, name, site) {
                return found;
            }
            if let Some(class) = self.this_class()
                && let Some(value) = self.in_enclosing(class, |lowering, class| {
                    lowering.value_of_class(class, name, site)
                })
            {
                return value;
            }
        }
        self.file_scope_or_type(written, site)
    }

    fn file_scope_or_type(&mut self, written: Name, site: Site) -> Expr {
        let name = written.last;
        if let Some(found) = self.file_scope_name(written, site) {
            return found;
        }
        if let Some(ty) = self.type_meant(written) {
            return list(&ty, Vec::new(), site);
        }
        self.not_defined(name);
        if let Some(value) = self.value_from_the_build(name, site) {
            return value;
        }
        let reason = Reason::Undeclared;
        self.opaque(site, reason, Vec::new())
    }

    /// The names in scope as a lambda captures them: what it copies and what the function around it changes is
    /// not followed.
    fn captured(&self, lambda: Node, source: Source) -> Vec<super::Scope> {
        // Only names that it mentions: lambdas one behind the other would each keep all that is before.
        let words: FxHashSet<&str> = words_in(text_of(lambda, source)).collect();
        let mentioned = |scope: &super::Scope| {
            let found = words.iter().filter_map(|word| scope.get_key_value(*word));
            let found = found.map(|(name, meaning)| (name.clone(), meaning.clone()));
            found.collect()
        };
        let mut scopes: Vec<super::Scope> = self.current().scopes.iter().map(mentioned).collect();
        let captures = lambda
            .field(Field::Captures)
            .map_or("", |captures| text_of(captures, source));
        let mut around = lambda.parent();
        while let Some(node) = around
            && !matches!(
                node.kind(),
                Kind::FunctionDefinition | Kind::LambdaExpression
            )
        {
            around = node.parent();
        }
        let Some(body) = around.and_then(|around| around.field(Field::Body)) else {
            return scopes;
        };
        for (name, meaning) in scopes.iter_mut().flatten() {
            let Named::Var(id) = meaning else { continue };
            let copied = if captures.contains(&format!("&{name}")) {
                false
            } else {
                captures.contains('=') || captures.contains(name.as_str())
            };
            let ty = &self.vars[id.0 as usize].ty;
            if copied && !matches!(ty, Type::Array(..)) && super::forms::writes(body, name, source)
            {
                *meaning = Named::Alias(Box::new(Expr {
                    kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
                    ty: ty.clone(),
                    site: Site::default(),
                }));
            }
        }
        scopes
    }

    /// A constant, a device variable, a builtin, a function.
    fn file_scope_name(&mut self, written: Name, site: Site) -> Option<Expr> {
        let name = written.last;
        let make = |kind, ty| Expr { kind, ty, site };
        match self.unit.constant(written) {
            Some(Constant::Int(value, ty)) => return Some(make(ExprKind::Int(*value), ty.clone())),
            Some(Constant::Data(value, ty)) => {
                return Some(make(ExprKind::Float(*value), ty.clone()));
            }
            None => {}
        }
        if let Some((around, (ty, space))) = self.unit.global(written).cloned() {
            let table = self.unit.table(written).cloned();
            // Each is an array of its own.
            let name = if self.unit.has_several_globals(name) {
                joined(&around, name)
            } else {
                name.into()
            };
            let name = &*name;
            if let Type::Library(_) = ty {
                return Some(make(ExprKind::List(Vec::new()), ty));
            }
            // Declared once for the kernel.
            let storage = match space {
                AddressSpace::Constant => Storage::Constant,
                AddressSpace::Shared if matches!(ty, Type::Array(_, None)) => {
                    Storage::DynamicShared
                }
                AddressSpace::Shared => Storage::Shared,
                _ => Storage::Global,
            };
            let known = self
                .vars
                .iter()
                .position(|var| var.storage == storage && var.name == name);
            let id = match known {
                Some(at) => warplens_ir::VarId(at as u32),
                None => self.fresh(name, ty, storage, site),
            };
            if let Some(table) = table {
                self.keep_table(id, table);
            }
            return Some(self.var(id, site));
        }
        if let Some(whole) = self.coordinate(name, site) {
            return Some(whole);
        }
        if let Some((kind, ty)) = library::value(name) {
            if let ExprKind::Builtin(Builtin::ThreadIdx(axis)) = kind {
                return Some(make(self.thread(axis), ty));
            }
            return Some(make(kind, ty));
        }
        self.function_value(written, site)
    }

    /// A function that is not called, with the namespaces around it.
    fn function_value(&self, written: Name, site: Site) -> Option<Expr> {
        let found = self.unit.function_meant(written)?;
        let name = joined(&found.space, written.last);
        let ty = Type::Library(format!("function {name}").into());
        Some(list(&ty, Vec::new(), site))
    }

    /// `a::b`, behind the qualifiers `outer`.
    fn qualified(&mut self, node: Node, outer: &str, source: Source, site: Site) -> Expr {
        let (Some(scope), Some(name)) = (node.field(Field::Scope), node.field(Field::Name)) else {
            let name = text_of(node, source)
                .trim_start_matches(':')
                .trim()
                .to_owned();
            let name = Name::new(&name, "");
            return match self.file_scope_name(name, site) {
                Some(found) => found,
                None => self.name(name, site),
            };
        };
        let path = joined(outer, text_of(scope, source));
        let class = self.scope_class(scope, outer, source);
        let is_class = class.is_some();
        if !is_class && self.is_of_parameter(node, source) {
            return self.opaque(site, Reason::Undeclared, Vec::new());
        }
        // Namespaces, unless the outermost scope is a class.
        if name.kind() == Kind::QualifiedIdentifier && class.is_none() {
            return if path.len() > LONGEST_PATH {
                self.opaque(site, Reason::Expression, Vec::new())
            } else {
                self.qualified(name, &path, source, site)
            };
        }
        let text = text_of(name, source);
        if text == "value"
            && scope.kind() == Kind::TemplateType
            && let Some(found) = self.trait_by_node(scope, source, site)
        {
            return found;
        }
        if let Some(ty) = class
            && let Type::Struct(structure) = &ty
            && let Some(class) = class_of(structure)
        {
            if let Some(value) = self.value_of_class(&class, text, site) {
                return value;
            }
            // `Base::field` in a member function of a class that derives from it.
            if self.unevaluated == 0
                && structure.fields.iter().any(|field| field.name == text)
                && let Some(this) = self.current().this.clone()
                && let Some(field) = self.member(&this, text, site)
            {
                return field;
            }
            // `decltype(Class::field)`.
            if self.unevaluated > 0
                && let Some(field) = structure.fields.iter().find(|field| field.name == text)
            {
                return super::split::list(&field.ty, Vec::new(), site);
            }
            if name.kind() == Kind::QualifiedIdentifier
                && let (Some(inner), Some(last)) =
                    (name.field(Field::Scope), name.field(Field::Name))
            {
                let (inner, last) = (text_of(inner, source), text_of(last, source));
                if let Some((value, ty)) = self.enumerator_of_class(&class, inner, last) {
                    let kind = ExprKind::Int(value);
                    return Expr { kind, ty, site };
                }
                if let Some(Type::Struct(structure)) = self.type_of_class(&ty, inner)
                    && let Some(class) = class_of(&structure)
                    && let Some(value) = self.value_of_class(&class, last, site)
                {
                    return value;
                }
            }
        }
        if let Some((kind, ty)) = library::limits_value(text_of(node, source), |text| {
            self.type_named(text, source.space)
        }) {
            return Expr { kind, ty, site };
        }
        match name.kind() {
            Kind::Identifier | Kind::TypeIdentifier => {
                let written = joined(&path, text);
                // An enumerator of an enumeration of the block.
                if let Some(Named::Alias(value)) = self.named(&written) {
                    return Expr {
                        site,
                        ..(**value).clone()
                    };
                }
                let written = Name::new(&written, source.space);
                // A member of a class that is named from inside of it, or an enumerator.
                let is_type = is_class || self.type_named(&path, source.space).is_some();
                if is_type && self.unit.constant(written).is_none() {
                    return self.name(Name::new(text, source.space), site);
                }
                self.name(written, site)
            }
            Kind::TemplateFunction | Kind::TemplateType => {
                self.template_value(name, &path, source, site)
            }
            _ => self.expr(name, source),
        }
    }

    /// `is_same<A, B>` or `is_same_v<A, B>`.
    fn trait_by_node(&mut self, node: Node, source: Source, site: Site) -> Option<Expr> {
        let name = text_of(node.field(Field::Name)?, source);
        let name = name.rsplit("::").next().unwrap_or(name);
        let name = name.strip_suffix("_v").unwrap_or(name);
        // A trait of the program's own comes first.
        if self.unit.has_template(name) {
            return None;
        }
        let arguments = self.template_arguments(node.field(Field::Arguments)?, source);
        let (value, ty) = self.type_trait(name, &arguments)?;
        Some(Expr {
            kind: ExprKind::Int(value),
            ty,
            site,
        })
    }

    /// True where the outermost scope of `T::b::c` is a template parameter, of whose members nothing is known then.
    pub(super) fn is_of_parameter(&self, qualified: Node, source: Source) -> bool {
        let scope = qualified.field(Field::Scope);
        let scope = scope.filter(|_| qualified.kind() == Kind::QualifiedIdentifier);
        let mut bindings = self.current().bindings.iter();
        scope.is_some_and(|scope| {
            let scope = text_of(scope, source).trim();
            bindings.any(|(name, _)| name == scope)
        })
    }

    /// The class that the last name of `a::b::c` is looked up in, namespaces looked through.
    pub(super) fn scope_of(&mut self, qualified: Node, source: Source) -> Option<Type> {
        let mut class: Option<Type> = None;
        let mut at = qualified;
        let mut outer = Space::from("");
        while at.kind() == Kind::QualifiedIdentifier {
            if let Some(scope) = at.field(Field::Scope) {
                let inner = match &class {
                    Some(outer) => {
                        let outer = outer.clone();
                        self.type_of_class(&outer, text_of(scope, source))
                    }
                    None => None,
                };
                class = inner.or_else(|| self.scope_class(scope, &outer, source));
                outer = joined(&outer, text_of(scope, source));
            }
            at = at.field(Field::Name)?;
        }
        class
    }

    fn scope_class(&mut self, scope: Node, outer: &str, source: Source) -> Option<Type> {
        let ty = match scope.kind() {
            Kind::TemplateType => self.template_type(scope, outer, source),
            Kind::Decltype => self.base_type(scope, source),
            _ => self.type_named(&joined(outer, text_of(scope, source)), source.space)?,
        };
        matches!(ty, Type::Struct(_)).then_some(ty)
    }

    /// `name<arguments>` that is not called: a variable template, a function as a value.
    fn template_value(&mut self, node: Node, path: &str, source: Source, site: Site) -> Expr {
        let name = node
            .field(Field::Name)
            .map_or("", |name| text_of(name, source));
        let text = text_of(node, source);
        if name.ends_with("_v")
            && let Some(found) = self.trait_by_node(node, source, site)
        {
            return found;
        }
        if let Some((kind, ty)) =
            library::limits_value(text, |text| self.type_named(text, source.space))
        {
            return Expr { kind, ty, site };
        }
        let written = Name::new(name, source.space).within(path);
        if let Some(found) = self.variable_template(written, node, source, site) {
            return found;
        }
        match self.function_value(written, site) {
            Some(function) => function,
            None => self.opaque(site, Reason::Expression, Vec::new()),
        }
    }

    /// `name<arguments>` of a variable template: a constant, or a device array.
    fn variable_template(
        &mut self,
        name: Name,
        node: Node,
        source: Source,
        site: Site,
    ) -> Option<Expr> {
        let definition = self.unit.variable_template(name)?;
        let template = definition.node(&[Kind::TemplateDeclaration])?;
        let inner = Source::of(&definition);
        let arguments = match node.field(Field::Arguments) {
            Some(list) => self.template_arguments(list, source),
            None => Vec::new(),
        };
        let own = self.parameters(template, inner);
        let bindings = self.bind_parameters(&own, &arguments, inner);
        let declaration = super::child_of_kind(template, Kind::Declaration)?;
        let declarator = declaration.field(Field::Declarator)?;
        let (declared, value) = self.under(bindings, None, |lowering| {
            lowering.unevaluated(|lowering| {
                let base = declaration
                    .field(Field::Type)
                    .map_or(Type::INT, |ty| lowering.base_type(ty, inner));
                let declared = lowering.declarator(declarator, base, AddressSpace::Global, inner);
                let value = declarator
                    .field(Field::Value)
                    .map(|value| lowering.expr(value, inner));
                (declared, value)
            })
        });
        if let Some(value) = value.as_ref().and_then(constant) {
            return Some(Expr {
                kind: ExprKind::Int(value),
                ty: declared.ty,
                site,
            });
        }
        if declared.ty.is_float() {
            return Some(Expr {
                kind: ExprKind::Float(None),
                ty: declared.ty,
                site,
            });
        }
        let storage = if super::forms::has_word(declaration, inner, "__device__") {
            Storage::Global
        } else {
            Storage::Constant
        };
        let known = self.vars.iter().position(|var| {
            var.storage == storage && var.name == name.last && var.ty == declared.ty
        });
        let id = match known {
            Some(at) => warplens_ir::VarId(at as u32),
            None => self.fresh(name.last, declared.ty, storage, site),
        };
        Some(self.var(id, site))
    }

    pub(super) fn thread(&mut self, axis: u8) -> ExprKind {
        self.axes[axis as usize] = true;
        ExprKind::Builtin(Builtin::ThreadIdx(axis))
    }

    // ---- operators -----------------------------------------------------------------------------

    fn unary(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let Some(argument) = node.field(Field::Argument) else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        let operator = UnaryExpression::cast(node).and_then(UnaryExpression::op);
        let argument = self.expr(argument, source);
        if let Type::Struct(_) = argument.ty
            && let Some(operator) = operator
            && let Some(call) = self.operator_call(
                &format!("operator{}", operator.as_str()),
                &argument,
                &[],
                site,
            )
        {
            return call;
        }
        let argument = self.converted_to_number(argument);
        let argument = self.gathered(argument);
        let ty = argument.ty.common(&Type::INT);
        let kind = match operator {
            Some(UnaryOperator::Minus) => UnaryOp::Neg,
            Some(UnaryOperator::Plus) => return Expr { ty, ..argument },
            Some(UnaryOperator::Not) => {
                let whole = Expr {
                    kind: ExprKind::Unary(UnaryOp::Not, Box::new(argument)),
                    ty: Type::INT,
                    site,
                };
                return folded(whole);
            }
            _ => UnaryOp::BitNot,
        };
        folded(Expr {
            kind: ExprKind::Unary(kind, Box::new(argument)),
            ty,
            site,
        })
    }

    fn binary(&mut self, node: Node, source: Source, site: Site) -> Expr {
        if let Some(left) = node.field(Field::Left)
            && let Some(again) = self.misread_template(node, left, source, site)
        {
            return again;
        }
        let (Some(left), Some(right)) = (node.field(Field::Left), node.field(Field::Right)) else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        let operator = warplens_syntax::binary(node);
        let (left, right) = (self.expr(left, source), self.expr(right, source));
        if matches!(left.ty, Type::Struct(_) | Type::Vector(..))
            || matches!(right.ty, Type::Struct(_) | Type::Vector(..))
        {
            let arguments = std::slice::from_ref(&right);
            let spelled = operator.map_or("", BinaryOperator::as_str);
            if let Some(call) =
                self.operator_call(&format!("operator{spelled}"), &left, arguments, site)
            {
                return call;
            }
        }
        let Some(op) = operator.map(binary_op) else {
            return self.opaque(site, Reason::Operator, vec![left, right]);
        };
        let left = self.converted_to_number(left);
        let right = self.converted_to_number(right);
        if !takes(op, &left, &right) {
            return self.opaque(site, Reason::Operator, vec![left, right]);
        }
        operation(op, self.gathered(left), self.gathered(right), site)
    }

    fn assignment(&mut self, node: Node, source: Source, site: Site) -> Expr {
        // `a < b || c >= d` reads as an assignment to `a<b || c>`.
        if let Some(left) = node.field(Field::Left)
            && let Some(again) = self.misread_template(node, left, source, site)
        {
            return again;
        }
        let (Some(left), Some(right)) = (node.field(Field::Left), node.field(Field::Right)) else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        let operator = warplens_syntax::assigned(node).unwrap_or(AssignOperator::Plain);
        let (before, left) = hoisted(self.expr(left, source));
        let right = self.expr(right, source);
        let assigned = self.assignment_of(operator, left, right, site);
        if before.is_empty() {
            assigned
        } else {
            after(before, assigned)
        }
    }

    fn assignment_of(
        &mut self,
        operator: AssignOperator,
        left: Expr,
        mut right: Expr,
        site: Site,
    ) -> Expr {
        let has_operators = |side: &Expr| matches!(side.ty, Type::Struct(_) | Type::Vector(..));
        if matches!(left.ty, Type::Struct(_))
            || operator != AssignOperator::Plain && (has_operators(&left) || has_operators(&right))
        {
            let arguments = std::slice::from_ref(&right);
            let name = format!("operator{}", operator.spelling());
            if let Some(call) = self.operator_call(&name, &left, arguments, site) {
                return call;
            }
        }
        if matches!(&right.ty, Type::Unknown(name) if name == "list") {
            right.ty = left.ty.clone();
        }
        let AssignOperator::With(operator) = operator else {
            return self.assigned(left, right, site);
        };
        let op = binary_op(operator);
        let right = self.converted_to_number(right);
        if !takes(op, &left, &right) {
            return self.opaque(site, Reason::Operator, vec![left, right]);
        }
        let right = self.gathered(right);
        let ty = left.ty.clone();
        Expr {
            kind: ExprKind::Assign(Some(op), Box::new(left), Box::new(right)),
            ty,
            site,
        }
    }

    fn subscript(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let Some(base) = node.field(Field::Argument) else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        // `(T)(p)[i]` is a cast of `(p)[i]`.
        let cast = self.cast_in_front(base, source);
        let base = cast.as_ref().map_or(base, |(_, value)| *value);
        let mut result = self.expr(base, source);
        let indices = match (node.field(Field::Indices), node.field(Field::Index)) {
            (Some(list), _) => parts(list),
            (None, Some(index)) => vec![index],
            _ => return self.opaque(site, Reason::SyntaxError, vec![result]),
        };
        for index in indices {
            let index = self.expr(index, source);
            if let Type::Struct(_) = result.ty
                && let Some(call) =
                    self.operator_call("operator[]", &result, std::slice::from_ref(&index), site)
            {
                result = call;
                continue;
            }
            let index = self.converted_to_number(index);
            if let Type::Struct(_) = result.ty {
                result = self.converted_to_pointer(result);
            }
            // `2[a]`.
            let (base, index) = if result.ty.is_int() && index.ty.element().is_some() {
                (index, result)
            } else {
                (result, index)
            };
            if index.ty.is_float() {
                return self.opaque(site, Reason::Operator, vec![base, index]);
            }
            if let Some(chosen) = self.chosen_pointer(&base, &index, site) {
                result = chosen;
                continue;
            }
            result = element(base, index, site);
            if let Some(leaf) = self.part(&result) {
                result = self.var(leaf, site);
            } else if let Some(number) = self.element_of_table(&result) {
                result = number;
            }
        }
        match cast {
            Some((ty, _)) => self.cast(result, ty, site),
            None => result,
        }
    }

    /// The type and the value of a cast that reads as a call: `(T)(value)`.
    fn cast_in_front<'t>(&mut self, node: Node<'t>, source: Source) -> Option<(Type, Node<'t>)> {
        if node.kind() != Kind::CallExpression {
            return None;
        }
        let function = node
            .field(Field::Function)
            .filter(|function| function.kind() == Kind::ParenthesizedExpression)?;
        let name = parts(function).into_iter().next()?;
        if !matches!(name.kind(), Kind::Identifier | Kind::QualifiedIdentifier) {
            return None;
        }
        let (name, node_of) = (text_of(name, source), name);
        if matches!(self.named(name), Some(Named::Var(_) | Named::Alias(_))) {
            return None;
        }
        let ty = self
            .type_named(name, source.space)
            .or_else(|| self.type_around(node_of, name, source))?;
        match parts(node.field(Field::Arguments)?).as_slice() {
            [only] => Some((ty, *only)),
            _ => None,
        }
    }

    fn field(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let (Some(base_node), Some(name)) = (node.field(Field::Argument), node.field(Field::Field))
        else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        let name = match name.kind() {
            Kind::DependentName | Kind::TemplateMethod => text_of(name, source)
                .trim_start_matches("template ")
                .split('<')
                .next()
                .unwrap_or("")
                .to_owned(),
            _ => text_of(name, source).to_owned(),
        };
        let base_text = text_of(base_node, source);
        let axis = match name.as_str() {
            "x" => Some(0u8),
            "y" => Some(1),
            "z" => Some(2),
            _ => None,
        };
        if let Some(axis) = axis
            && self.named(base_text).is_none()
        {
            let builtin = match base_text {
                "threadIdx" => Some(self.thread(axis)),
                "blockIdx" => Some(ExprKind::Builtin(Builtin::BlockIdx(axis))),
                "blockDim" => Some(ExprKind::Builtin(Builtin::BlockDim(axis))),
                "gridDim" => Some(ExprKind::Builtin(Builtin::GridDim(axis))),
                _ => None,
            };
            if let Some(kind) = builtin {
                return Expr {
                    kind,
                    ty: Type::UINT,
                    site,
                };
            }
        }
        let arrow = FieldExpression::cast(node).is_some_and(FieldExpression::is_arrow);
        let mut base = self.expr(base_node, source);
        if arrow {
            if let Type::Struct(_) = base.ty
                && let Some(call) = self.operator_call("operator->", &base, &[], site)
            {
                base = call;
            }
            let inner = base.site;
            base = deref(base, inner);
        } else {
            base = referred(base);
        }
        if let Some(found) = self.member(&base, &name, site) {
            return found;
        }
        if let Type::Struct(structure) = &base.ty
            && let Some(class) = class_of(structure)
            && let Some(value) = self.value_of_class(&class, &name, site)
        {
            return value;
        }
        if let Some(found) = self.library_member(&base, &name, site) {
            return found;
        }
        self.opaque(site, Reason::UnknownField, vec![base])
    }

    /// A field of an object, as a place.
    pub(super) fn member(&mut self, object: &Expr, name: &str, site: Site) -> Option<Expr> {
        if let ExprKind::List(parts) = &object.kind
            && is_preceded(parts)
            && let (before, object) = hoisted(object.clone())
        {
            let member = self.member(&object, name, site)?;
            return Some(after(before, member));
        }
        // `f().x` of a structure whose fields are variables is one of these.
        if let ExprKind::Inline(statements, Some(result)) = &object.kind
            && self.split.contains_key(result)
        {
            let whole = self.var(*result, site);
            let member = self.member(&whole, name, site)?;
            return Some(after(statements.clone(), member));
        }
        // `(c ? a : b).x` is `c ? a.x : b.x`.
        if let ExprKind::Select(condition, a, b) = &object.kind
            && object.ty == a.ty
            && object.ty == b.ty
        {
            let (a, b) = (self.member(a, name, site)?, self.member(b, name, site)?);
            return Some(Expr {
                ty: a.ty.clone(),
                kind: ExprKind::Select(condition.clone(), Box::new(a), Box::new(b)),
                site,
            });
        }
        let (offset, ty) = match &object.ty {
            Type::Struct(structure) => {
                let field = structure.fields.iter().find(|field| field.name == name)?;
                (field.offset, field.ty.clone())
            }
            Type::Vector(element, lanes) => {
                let (first, count) = literals::swizzle(name, *lanes)?;
                let ty = if count == 1 {
                    (**element).clone()
                } else {
                    Type::Vector(Arc::clone(element), count)
                };
                (u64::from(first) * element.size(), ty)
            }
            // The bits of a small float, `__nv_fp8_e4m3::__x`.
            Type::Int { bits, .. } | Type::Float { bits, .. } if is_raw(name, &object.ty) => {
                return Some(Expr {
                    kind: object.kind.clone(),
                    ty: Type::Int {
                        bits: *bits,
                        signed: false,
                    },
                    site,
                });
            }
            _ => return None,
        };
        if let Type::Callable(_) | Type::Library(_) = ty {
            return Some(Expr {
                kind: ExprKind::List(Vec::new()),
                ty,
                site,
            });
        }
        // A field of a list is its value.
        let listed = match (&object.kind, &object.ty) {
            (ExprKind::List(parts), Type::Struct(structure))
                if parts.len() == structure.fields.len() =>
            {
                let at = structure.fields.iter().position(|field| field.name == name);
                at.and_then(|at| parts.get(at))
            }
            (ExprKind::List(parts), Type::Vector(element, lanes))
                if parts.len() == *lanes as usize && ty == **element =>
            {
                parts.get((offset / element.size().max(1)) as usize)
            }
            _ => None,
        };
        if let Some(value) = listed {
            return Some(Expr {
                site,
                ..value.clone()
            });
        }
        let whole = Expr {
            kind: ExprKind::Field(Box::new(object.clone()), offset),
            ty,
            site,
        };
        Some(match self.part(&whole) {
            Some(leaf) => match self.references.get(&leaf) {
                Some(place) => place.clone(),
                None => self.var(leaf, site),
            },
            None => whole,
        })
    }
}

/// True where the language's own operator takes such operands: no objects or functions, and no floating-point numbers where bits,
/// remainders or elements are meant. An open type for which that is false is another type.
fn takes(op: BinaryOp, left: &Expr, right: &Expr) -> bool {
    let is_object = |side: &Expr| {
        matches!(
            side.ty,
            Type::Struct(_) | Type::Callable(_) | Type::Library(_)
        )
    };
    if is_object(left) || is_object(right) {
        return false;
    }
    let is_pointer = |side: &Expr| side.ty.element().is_some();
    let is_float = |side: &Expr| side.ty.is_float();
    match op {
        BinaryOp::Rem
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::Shr => !is_float(left) && !is_float(right),
        BinaryOp::Add | BinaryOp::Sub => {
            !(is_pointer(left) && is_float(right) || is_pointer(right) && is_float(left))
        }
        _ => true,
    }
}

/// True for what the toolkits call the bits of a small float: several of them are one integer here.
fn is_raw(name: &str, ty: &Type) -> bool {
    let small = matches!(
        ty,
        Type::Float { bits: 16, .. } | Type::Int { bits: 8..=32, .. }
    );
    small && name == "__x"
}
