//! Calls: a cast, a constructor, a device function, a function of the toolkit.

use std::sync::Arc;

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::nodes::FieldExpression;
use warplens_syntax::{Field, Kind, Node};

use super::candidate::{Callee, Candidate};
use super::construct::known_call;
use super::shapes::is_place;
use super::{Lowering, Named, Source, parts, text_of};
use crate::namespaces::{Name, Space, is_standard};
use crate::types::{callable_of, class_of};
use warplens_ir::Bound;
use warplens_ir::Reason;
use warplens_ir::functions;
use warplens_ir::functions::{Effect, Exchange, Function};
use warplens_ir::{BinaryOp, Builtin, Expr, ExprKind};
use warplens_ir::{Site, Type};

/// What is called, as the source writes it.
struct Written {
    /// The plain name: no namespace, no template arguments.
    name: String,
    /// With its namespace or class.
    full: String,
    explicit: Vec<Bound>,
}

impl Written {
    /// Its name with its qualifiers, where it is written.
    fn qualified<'a>(&'a self, source: Source<'a>) -> Name<'a> {
        Name::new(without_last_arguments(&self.full), source.space)
    }
}

impl Lowering<'_> {
    pub(super) fn call(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let call = CallExpression::cast(node);
        let (Some(function), Some(list)) = (
            call.and_then(CallExpression::function),
            call.and_then(CallExpression::arguments),
        ) else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        if let Some(launch) = call.and_then(CallExpression::launch) {
            // What the launched kernel costs is its own affair.
            let mut all = self.arguments(launch.node(), source);
            all.extend(self.arguments(list, source));
            return Expr {
                kind: ExprKind::Call(Function::Ignored(Effect::Unknown, "".into()), all),
                ty: Type::Void,
                site,
            };
        }
        if let Some(again) = self.misread_template(node, function, source, site) {
            return again;
        }
        if list.kind() == Kind::InitializerList {
            // `float4{…}` where the grammar reads a call.
            let ty = self.base_type(function, source);
            let all = self.initializers(list, source);
            let ty = self.type_made(ty, function, &all, source);
            return self.constructed(&ty, all, site);
        }
        match function.kind() {
            Kind::FieldExpression => self.member_call(function, list, source, site),
            Kind::Identifier
            | Kind::QualifiedIdentifier
            | Kind::TemplateFunction
            | Kind::DependentName
            | Kind::PrimitiveType
            | Kind::TypeIdentifier
            | Kind::TemplateType
            | Kind::SizedTypeSpecifier
            | Kind::OperatorName => self.named_call(function, list, source, site),
            Kind::ParenthesizedExpression => {
                // `(f)(x)`, or a lambda called where it is written.
                let inner = parts(function).into_iter().next();
                match inner {
                    Some(inner)
                        if matches!(inner.kind(), Kind::Identifier | Kind::QualifiedIdentifier) =>
                    {
                        self.named_call(inner, list, source, site)
                    }
                    _ => self.called_value(function, list, source, site),
                }
            }
            _ => self.called_value(function, list, source, site),
        }
    }

    /// The value of any expression, called.
    fn called_value(&mut self, function: Node, list: Node, source: Source, site: Site) -> Expr {
        let (callee, before) = self.with_captures_before(function, source);
        let arguments = self.arguments(list, source);
        let call = self.call_of_value(callee, arguments, site);
        if before.is_empty() {
            return call;
        }
        super::construct::after(before, call)
    }

    fn call_of_value(&mut self, callee: Expr, arguments: Vec<Expr>, site: Site) -> Expr {
        if let Some(call) = self.call_through(&callee, &arguments, site) {
            return call;
        }
        match &callee.ty {
            Type::Callable(_) => {
                if let Some(lambda) = callable_of(&callee.ty) {
                    return self.call_lambda(&lambda, &[], &arguments, site);
                }
            }
            Type::Struct(_) => {
                if let Some(call) = self.operator_call("operator()", &callee, &arguments, site) {
                    return call;
                }
            }
            Type::Library(name) => {
                if let Some(found) = self.unknown_functor(&name.clone(), &arguments, site) {
                    return found;
                }
                if let Some(found) = self.library_functor(&name.clone(), &arguments, site) {
                    return found;
                }
            }
            _ => {}
        }
        let mut all = vec![callee];
        all.extend(arguments);
        self.opaque(site, Reason::UnreadFunction, all)
    }

    /// `object.name(…)`, `pointer->name(…)`.
    fn member_call(&mut self, function: Node, list: Node, source: Source, site: Site) -> Expr {
        let (Some(object), Some(field)) = (
            function.field(Field::Argument),
            function.field(Field::Field),
        ) else {
            return self.opaque(site, Reason::SyntaxError, Vec::new());
        };
        let mut explicit = Vec::new();
        let mut name_node = field;
        if name_node.kind() == Kind::DependentName {
            name_node = parts(name_node).into_iter().next().unwrap_or(name_node);
        }
        if matches!(
            name_node.kind(),
            Kind::TemplateMethod | Kind::TemplateFunction
        ) {
            if let Some(arguments) = name_node.field(Field::Arguments) {
                explicit = self.template_arguments(arguments, source);
            }
            name_node = name_node.field(Field::Name).unwrap_or(name_node);
        }
        let name = text_of(name_node, source).to_owned();
        let arrow = FieldExpression::cast(function).is_some_and(FieldExpression::is_arrow);
        let mut object = self.expr(object, source);
        if arrow {
            if let Type::Struct(_) = object.ty
                && let Some(call) = self.operator_call("operator->", &object, &[], site)
            {
                object = call;
            }
            let at = object.site;
            object = super::split::deref(object, at);
        } else {
            object = super::split::referred(object);
        }
        let arguments = self.arguments(list, source);
        // Through a pointer the object may be of a class derived from this one.
        let anywhere = arrow
            && explicit.is_empty()
            && matches!(object.kind, ExprKind::Deref(_) | ExprKind::Index(..))
            && function
                .field(Field::Argument)
                .is_some_and(|argument| argument.kind() != Kind::This);
        if anywhere && let Some(call) = self.virtual_call(&object, &name, &arguments, site) {
            return call;
        }
        if name == "operator()"
            && let Some(lambda) = callable_of(&object.ty)
        {
            return self.call_lambda(&lambda, &explicit, &arguments, site);
        }
        if let Some(call) = self.method_call(&object, &name, &explicit, &arguments, site) {
            return call;
        }
        if let Some(member) = self.member(&object, &name, site) {
            return self.call_of_value(member, arguments, site);
        }
        if let Some(found) = self.library_method(&object, &name, &explicit, &arguments, site) {
            return found;
        }
        let mut all = vec![object];
        all.extend(arguments);
        self.opaque(site, Reason::UnreadFunction, all)
    }

    fn written(&mut self, function: Node, source: Source) -> Written {
        let full = text_of(function, source).to_owned();
        let mut at = function;
        let mut explicit = Vec::new();
        loop {
            match at.kind() {
                Kind::QualifiedIdentifier | Kind::DependentName => {
                    let inner = at
                        .field(Field::Name)
                        .or_else(|| parts(at).into_iter().next_back());
                    match inner {
                        Some(inner) => at = inner,
                        None => break,
                    }
                }
                Kind::TemplateFunction | Kind::TemplateType => {
                    if let Some(arguments) = at.field(Field::Arguments) {
                        explicit = self.template_arguments(arguments, source);
                    }
                    match at.field(Field::Name) {
                        Some(name) => at = name,
                        None => break,
                    }
                }
                _ => break,
            }
        }
        Written {
            name: text_of(at, source).trim().to_owned(),
            full,
            explicit,
        }
    }

    fn named_call(&mut self, function: Node, list: Node, source: Source, site: Site) -> Expr {
        let base = match function.kind() {
            Kind::TemplateFunction | Kind::TemplateType => function
                .field(Field::Name)
                .map_or("", |name| text_of(name, source)),
            _ => "",
        };
        if matches!(
            base,
            "reinterpret_cast" | "static_cast" | "const_cast" | "bit_cast"
        ) || base == "dynamic_cast"
        {
            let ty = function
                .field(Field::Arguments)
                .and_then(|arguments| parts(arguments).into_iter().next())
                .map_or(Type::Unknown(String::new()), |ty| {
                    self.base_type(ty, source)
                });
            let reference = text_of(function, source).trim_end().ends_with("&>");
            let mut arguments = self.arguments(list, source);
            let Some(value) = arguments.pop() else {
                return self.opaque(site, Reason::SyntaxError, Vec::new());
            };
            if reference {
                // The same place, read as another type.
                return match value.kind {
                    ExprKind::Deref(pointer) => {
                        let pointer = self.cast(
                            *pointer,
                            Type::Pointer(Arc::new(ty), warplens_ir::AddressSpace::Global),
                            site,
                        );
                        super::split::deref(pointer, site)
                    }
                    _ if is_place(&value) => {
                        let pointer = match value.ty {
                            Type::Array(..) => value,
                            _ => super::split::address_of(
                                value,
                                warplens_ir::AddressSpace::Global,
                                site,
                            ),
                        };
                        let to =
                            Type::Pointer(Arc::new(ty.clone()), warplens_ir::AddressSpace::Global);
                        let pointer = self.cast(pointer, to, site);
                        Expr {
                            kind: ExprKind::Deref(Box::new(pointer)),
                            ty,
                            site,
                        }
                    }
                    kind => Expr {
                        kind,
                        ty: value.ty,
                        site,
                    },
                };
            }
            return self.cast(value, ty, site);
        }
        let mut written = self.written(function, source);
        if let Some(own) = self.of_glm(&written.full, &written.name) {
            written.full.clone_from(&own);
            written.name = own;
        }
        // `UNUSED(a, b)` of a header that was not read: what it is given is used nowhere.
        if is_unused_marker(&written.name) && !self.unit.has_function(&written.name) {
            return super::split::list(&Type::Void, Vec::new(), site);
        }
        // A variable: a lambda, a functor, a pointer to a function.
        if function.kind() == Kind::Identifier {
            match self.named(&written.name) {
                Some(Named::Type(ty)) => {
                    let ty = ty.clone();
                    let arguments = self.arguments(list, source);
                    return self.constructed(&ty, arguments, site);
                }
                Some(_) => return self.called_value(function, list, source, site),
                None => {}
            }
            if let Some(this) = self.current().this.clone()
                && let Some(member) = self.member(&this, &written.name, site)
            {
                let arguments = self.arguments(list, source);
                return self.call_of_value(member, arguments, site);
            }
        }
        if let Some(expression) = self.work_item(&written.name, list, source, site) {
            return expression;
        }
        let bound = self
            .current()
            .bindings
            .iter()
            .rev()
            .find(|(name, _)| *name == written.name)
            .map(|(_, bound)| bound.clone());
        if let Some(Bound::Template(function)) = &bound {
            let arguments = self.arguments(list, source);
            // `Op<T>()` where `Op` is bound to a class template.
            if self.unit.has_template(Callee::of(function).name)
                && let Some(ty) = self.instance(Name::new(function, ""), &written.explicit)
            {
                return self.constructed(&ty, arguments, site);
            }
            let function = if function.is_empty() {
                match self.first_taking(&written.name, &arguments) {
                    Some(first) => first,
                    None => {
                        return self.opaque(site, Reason::UnreadFunction, arguments);
                    }
                }
            } else {
                function.clone()
            };
            return self.call_by_name(Callee::of(&function), &written.explicit, arguments, site);
        }
        if let Some(Bound::Type(ty)) = bound {
            let arguments = self.arguments(list, source);
            if let Type::Callable(_) | Type::Library(_) = ty {
                let callee = super::split::list(&ty, Vec::new(), site);
                return self.call_of_value(callee, arguments, site);
            }
            return self.constructed(&ty, arguments, site);
        }
        // A class's static function, or a type's constructor.
        if function.kind() == Kind::QualifiedIdentifier {
            let ty = self.scope_of(function, source);
            if let Some(Type::Struct(structure)) = ty
                && let Some(class) = class_of(&structure)
            {
                let methods = self.methods(&class, &written.name);
                if !methods.is_empty() {
                    let arguments = self.arguments(list, source);
                    // A base's function called on this object keeps the object.
                    let this = self.current().this.clone().unwrap_or_else(|| {
                        super::split::list(&Type::Struct(Arc::clone(&structure)), Vec::new(), site)
                    });
                    let this = Expr {
                        ty: Type::Struct(Arc::clone(&structure)),
                        ..this
                    };
                    let candidates = Candidate::of_methods(methods, &this);
                    return match self.call_best(candidates, &written.explicit, &arguments, site) {
                        Some(call) => call,
                        None => self.opaque(site, Reason::UnreadFunction, arguments),
                    };
                }
                // `typename Traits::BlockLoad(memory)`: a type that the class declares.
                let own = Type::Struct(Arc::clone(&structure));
                if written.explicit.is_empty()
                    && let Some(ty) = self.type_of_class(&own, &written.name)
                {
                    let arguments = self.arguments(list, source);
                    return self.constructed(&ty, arguments, site);
                }
            }
        }
        let arguments = self.arguments(list, source);
        if self.is_of_parameter(function, source) {
            return self.unread_call(arguments, site);
        }
        // The name of the class being read, or of a base, makes an object of it ([class.pre]): a constructor is never called by it.
        let made = match function.kind() {
            Kind::QualifiedIdentifier => None,
            _ => self.class_named_so(&written.name),
        };
        // In a function without an object it has no layout here.
        if let Some(ty) = made.as_ref().filter(|ty| ty.size() > 1)
            && written.explicit.is_empty()
        {
            return self.constructed(ty, arguments, site);
        }
        // A member function of the class being read.
        if function.kind() != Kind::QualifiedIdentifier
            && made.is_none()
            && let Some(this) = self.current().this.clone()
            && let Some(call) =
                self.method_call(&this, &written.name, &written.explicit, &arguments, site)
        {
            return call;
        }
        if function.kind() != Kind::QualifiedIdentifier
            && made.is_none()
            && let Some(call) = self.static_call(&written.name, &written.explicit, &arguments, site)
        {
            return call;
        }
        let is_type = match function.kind() {
            Kind::TemplateFunction | Kind::TemplateType => {
                if self.unit.has_function(&written.name) {
                    None
                } else {
                    self.instance(Name::new(&written.name, source.space), &written.explicit)
                        .or_else(|| self.made_sequence(&written.name, &written.explicit))
                        .or_else(|| super::library::template_type(&written.name, &written.explicit))
                }
            }
            Kind::QualifiedIdentifier if !written.explicit.is_empty() => self
                .instance(written.qualified(source), &written.explicit)
                .or_else(|| self.made_sequence(&written.name, &written.explicit))
                .or_else(|| super::library::template_type(&written.name, &written.explicit)),
            _ if functions::known(&written.name, self.opencl()).is_some() => None,
            _ => self
                .type_named(&written.full, source.space)
                .or_else(|| self.type_around(function, &written.full, source)),
        };
        let is_type = is_type.or_else(|| {
            let is_template = written.explicit.is_empty() && !self.unit.has_function(&written.name);
            is_template
                .then(|| self.deduced_class(&written.full, &arguments, source))
                .flatten()
        });
        if let Some(ty) = is_type {
            return self.constructed(&ty, arguments, site);
        }
        let Written {
            name,
            full,
            explicit,
        } = written;
        // A function whose value is not used does something else than arithmetic.
        let taken = function
            .parent()
            .and_then(|call| call.parent())
            .is_some_and(|around| around.kind() != Kind::ExpressionStatement);
        let callee = Callee {
            name: &name,
            full: &full,
            space: source.space,
        };
        self.call_known(callee, &explicit, arguments, site)
            .or_else(|arguments| {
                self.function_from_the_build(&name, &arguments, site)
                    .filter(|_| taken)
                    .ok_or(arguments)
            })
            .unwrap_or_else(|arguments| self.unread_call(arguments, site))
    }

    /// What `glm::name` is called in the text that represents that library, where it declares it.
    pub(super) fn of_glm(&self, full: &str, name: &str) -> Option<String> {
        let scope = full.trim_start_matches(':').split_once("::")?.0;
        let own = crate::glm::declared(name);
        let known = scope == "glm"
            && (self.unit.ty(Name::new(&own, "")).is_some()
                || self.unit.has_template(&own)
                || self.unit.has_function(&own));
        known.then_some(own)
    }

    /// Those that the name as it is written can mean: with qualifiers those of one namespace, without them those that the
    /// namespaces around the call and those of the arguments' classes hold ([basic.lookup.argdep]), the nearest first.
    fn in_scope(
        &self,
        callee: Callee,
        arguments: &[Expr],
        mut candidates: Vec<Candidate>,
    ) -> Vec<Candidate> {
        // The types of `f<std::size_t>` have a namespace of their own.
        let written = without_last_arguments(callee.full);
        let name = Name::new(written, callee.space);
        let spaces = candidates.iter().map(|of| &of.definition.space);
        let only = self.unit.space_meant(name, spaces).cloned();
        if written.contains("::") || is_standard(name.path()) {
            let only = only.filter(|space| !written.starts_with("::") || name.nearness(space) > 0);
            candidates.retain(|of| Some(&of.definition.space) == only.as_ref());
            return candidates;
        }
        let of_arguments = |space: &Space| {
            let mut classes = arguments
                .iter()
                .filter_map(|argument| class_space(&argument.ty));
            classes.any(|of| of == space)
        };
        let mut ranked: Vec<(usize, Candidate)> = candidates
            .into_iter()
            .map(|of| (self.unit.nearness(name, &of.definition.space), of))
            .filter(|(nearness, of)| {
                let space = &of.definition.space;
                *nearness > 0 || Some(space) == only.as_ref() || of_arguments(space)
            })
            .collect();
        ranked.sort_by_key(|(nearness, _)| std::cmp::Reverse(*nearness));
        ranked.into_iter().map(|(_, of)| of).collect()
    }

    fn unread_call(&mut self, arguments: Vec<Expr>, site: Site) -> Expr {
        self.opaque(site, Reason::UnreadFunction, arguments)
    }

    /// A function at file scope, or one that is known.
    pub(super) fn call_by_name(
        &mut self,
        callee: Callee,
        explicit: &[Bound],
        arguments: Vec<Expr>,
        site: Site,
    ) -> Expr {
        self.call_known(callee, explicit, arguments, site)
            .unwrap_or_else(|arguments| self.unread_call(arguments, site))
    }

    /// The same; the arguments back where the function is not known.
    fn call_known(
        &mut self,
        callee: Callee,
        explicit: &[Bound],
        mut arguments: Vec<Expr>,
        site: Site,
    ) -> Result<Expr, Vec<Expr>> {
        let Callee { name, full, space } = callee;
        let candidates: Vec<Candidate> = self
            .unit
            .functions(name)
            .into_iter()
            .map(|definition| Candidate {
                definition,
                bindings: Vec::new(),
                this: None,
            })
            .collect();
        let of_glm = full.starts_with("glm::");
        let friends = if candidates.is_empty() || of_glm {
            self.friends(name, &arguments)
        } else {
            Vec::new()
        };
        let for_these_types = !friends.is_empty();
        let candidates = if for_these_types { friends } else { candidates };
        let mut candidates = self.in_scope(callee, &arguments, candidates);
        // Beside a function of the toolkit one of the same name must be meant for these very types.
        if functions::known(name, self.opencl()).is_some() {
            // What a wrapper of that name calls in its body is the toolkit's, where the wrapper is a template or
            // of an atomic: a plain function for these very types calls itself.
            let frames = &self.frames;
            candidates.retain(|candidate| {
                let definition = &candidate.definition;
                let entered = frames.iter().any(|frame| frame.function == definition.hash);
                let template = || {
                    let function = definition.node(&[Kind::FunctionDefinition])?;
                    Some(function.parent()?.kind() == Kind::TemplateDeclaration)
                };
                // None of the toolkit's functions is given template arguments.
                !entered
                    || !explicit.is_empty()
                    || !(name.starts_with("atomic") || template().unwrap_or(true))
            });
            candidates
                .retain(|candidate| for_these_types || self.takes_exactly(candidate, &arguments));
        }
        if !candidates.is_empty()
            && let Some(call) = self.call_best(candidates, explicit, &arguments, site)
        {
            return Ok(call);
        }
        if let Some(ty) = name.strip_prefix("make_").and_then(|vector| {
            Type::named(vector, false).or_else(|| self.type_named(vector, space))
        }) {
            return Ok(self.constructed(&ty, arguments, site));
        }
        if functions::is_barrier(name) {
            let barrier = warplens_ir::Stmt {
                kind: warplens_ir::StmtKind::Barrier,
                site,
            };
            let mut all = arguments;
            all.insert(
                0,
                Expr {
                    kind: ExprKind::Inline(vec![barrier], None),
                    ty: Type::Void,
                    site,
                },
            );
            // `__syncthreads_or(p)` gives a number.
            return Ok(if all.len() > 1 && !self.opencl() {
                let gathered = Expr {
                    kind: ExprKind::Call(
                        Function::WarpExchange(Exchange::Vote, name.into()),
                        all.split_off(1),
                    ),
                    ty: Type::INT,
                    site,
                };
                all.push(gathered);
                super::split::list(&Type::INT, all, site)
            } else {
                super::split::list(&Type::Void, all, site)
            });
        }
        if let Some(found) = self.tuple_call(name, explicit, &arguments, site) {
            return Ok(found);
        }
        if self.opencl() {
            // No function of its library changes an argument.
            let whole = arguments.into_iter().map(|value| self.gathered(value));
            arguments = whole.collect();
        }
        if let Some(found) = self.library_call(callee, explicit, &arguments, site) {
            return Ok(found);
        }
        match functions::known(name, self.opencl()) {
            Some(function) => {
                let arguments = arguments.into_iter().map(|value| self.gathered(value));
                Ok(known_call(function, name, arguments.collect(), site))
            }
            None => {
                if let Some(call) = self.unread_arithmetic(name, full, &arguments, site) {
                    return Ok(call);
                }
                self.not_defined(name);
                Err(arguments)
            }
        }
    }

    /// Notes a name that nothing defines in what was read: another file of the program may.
    pub(super) fn not_defined(&mut self, name: &str) {
        if self.unevaluated == 0 && !self.undefined.iter().any(|known| known == name) {
            self.undefined.push(name.to_owned());
        }
    }

    /// OpenCL's work-item functions.
    fn work_item(&mut self, name: &str, list: Node, source: Source, site: Site) -> Option<Expr> {
        if !name.starts_with("get_") || self.unit.has_function(name) {
            return None;
        }
        let axis = parts(list)
            .first()
            .map(|axis| self.expr(*axis, source))
            .and_then(|axis| super::constants::constant(&axis))
            .filter(|axis| (0..3).contains(axis))
            .unwrap_or(0) as u8;
        let make = |kind| Expr {
            kind,
            ty: Type::SIZE,
            site,
        };
        let builtin = |builtin| make(ExprKind::Builtin(builtin));
        let kind = match name {
            "get_local_id" => self.thread(axis),
            "get_group_id" => ExprKind::Builtin(Builtin::BlockIdx(axis)),
            "get_local_size" | "get_enqueued_local_size" => {
                ExprKind::Builtin(Builtin::BlockDim(axis))
            }
            "get_num_groups" => ExprKind::Builtin(Builtin::GridDim(axis)),
            "get_global_offset" => ExprKind::Int(0),
            "get_work_dim" => ExprKind::Int(if self.axes[2] {
                3
            } else if self.axes[1] {
                2
            } else {
                1
            }),
            "get_global_size" => ExprKind::Binary(
                BinaryOp::Mul,
                Box::new(builtin(Builtin::GridDim(axis))),
                Box::new(builtin(Builtin::BlockDim(axis))),
            ),
            "get_global_id" => {
                self.axes[axis as usize] = true;
                ExprKind::Builtin(Builtin::GlobalIdx(axis))
            }
            "get_global_linear_id" | "get_local_linear_id" => {
                let rank = self.thread_rank(site);
                if name == "get_local_linear_id" {
                    return Some(Expr {
                        ty: Type::SIZE,
                        ..rank
                    });
                }
                let block = self.block_rank(site);
                let size = self.block_size(site);
                ExprKind::Binary(
                    BinaryOp::Add,
                    Box::new(make(ExprKind::Binary(
                        BinaryOp::Mul,
                        Box::new(block),
                        Box::new(size),
                    ))),
                    Box::new(rank),
                )
            }
            "get_sub_group_size" | "get_max_sub_group_size" | "get_enqueued_sub_group_size" => {
                ExprKind::Builtin(Builtin::WarpSize)
            }
            "get_sub_group_local_id" => {
                return Some(self.lane(site));
            }
            "get_sub_group_id" => {
                let rank = self.thread_rank(site);
                ExprKind::Binary(
                    BinaryOp::Div,
                    Box::new(rank),
                    Box::new(builtin(Builtin::WarpSize)),
                )
            }
            "get_num_sub_groups" => {
                let size = self.block_size(site);
                ExprKind::Binary(
                    BinaryOp::Div,
                    Box::new(size),
                    Box::new(builtin(Builtin::WarpSize)),
                )
            }
            _ => return None,
        };
        Some(make(kind))
    }
}

/// True for a macro's name that says `unused`.
fn is_unused_marker(name: &str) -> bool {
    name.split('_').any(|word| word == "UNUSED")
}

/// `a::f` of `a::f<T>`.
fn without_last_arguments(full: &str) -> &str {
    let full = full.trim();
    if !full.ends_with('>') {
        return full;
    }
    let mut depth = 0u32;
    let open = full.rmatch_indices(['<', '>']).find(|(_, bracket)| {
        match *bracket {
            ">" => depth += 1,
            _ => depth = depth.saturating_sub(1),
        }
        depth == 0
    });
    open.map_or(full, |(at, _)| full[..at].trim())
}

/// The namespaces around the class of a value.
fn class_space(ty: &Type) -> Option<&Space> {
    match ty {
        Type::Struct(structure) => Some(&structure.space),
        Type::Pointer(of, _) | Type::Array(of, _) => class_space(of),
        _ => None,
    }
}
