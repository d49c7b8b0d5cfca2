//! Statements.

use crate::namespaces::Name;
use std::sync::Arc;

use warplens_syntax::{AssignOperator, Field, Kind, Node, assigned, stop};

use super::constants::constant;
use super::forms::has_word;
use super::forms::space_of;
use super::shapes::{continues, ends_here, is_place, moves_on, never_repeats};
use super::shared_copies::is_aligned_size;
use super::split::{address_of, deref, list};
use super::{
    Lowering, MOST_EXPRESSIONS, Named, Result, Source, child_of_kind, parts, pragmas, text_of,
};
use warplens_ir::Reason;
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{Expr, ExprKind, LoopKind, Stmt, StmtKind, Storage, UnaryOp, VarId};

impl Lowering<'_> {
    /// A block, or one statement where a block may stand.
    pub(super) fn block(&mut self, node: Node, source: Source) -> Vec<Stmt> {
        self.scoped(|lowering| {
            let mut out = Vec::new();
            if node.kind() == Kind::CompoundStatement {
                lowering.statements(&parts(node), source, &mut out);
            } else if pragmas::is_cut_off(node) {
                lowering.plain_statements(&pragmas::following(node), source, &mut out);
            } else {
                lowering.statement(node, source, &mut out);
            }
            out
        })
    }

    pub(super) fn statements(&mut self, nodes: &[Node], source: Source, out: &mut Vec<Stmt>) {
        if nodes
            .iter()
            .any(|node| node.kind() == Kind::LabeledStatement)
        {
            self.labelled(nodes, source, out);
        } else {
            self.plain_statements(nodes, source, out);
        }
    }

    pub(super) fn plain_statements(&mut self, nodes: &[Node], source: Source, out: &mut Vec<Stmt>) {
        let mut unroll = None;
        let mut rest = nodes.iter();
        while let Some(&node) = rest.next() {
            if node.kind() == Kind::PreprocCall {
                unroll = self.unroll(node, source).or(unroll);
                continue;
            }
            let before = out.len();
            self.statement(node, source, out);
            // What follows was its body.
            let mut last = node;
            while pragmas::lacks_body(last) {
                match rest.find(|node| node.kind() != Kind::PreprocCall) {
                    Some(body) => last = *body,
                    None => break,
                }
            }
            if let Some(factor) = unroll.take() {
                pragmas::set_unroll(&mut out[before..], factor);
            }
            // What is never reached is not read: `if constexpr (…) return a; return b;` has one value.
            if ends_here(&out[before..]) {
                break;
            }
        }
    }

    pub(super) fn statement(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        if self.expressions > MOST_EXPRESSIONS || self.depth > super::DEEPEST {
            let site = self.site(node, source);
            let lost = self.unknown_statement(site, Reason::TooMuch);
            out.push(lost);
            return;
        }
        stop::check();
        self.depth += 1;
        self.one_statement(node, source, out);
        self.depth -= 1;
    }

    fn one_statement(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        match node.kind() {
            Kind::Comment
            | Kind::StaticAssertDeclaration
            | Kind::UsingDeclaration
            | Kind::Semicolon
            | Kind::PreprocCall
            | Kind::NamespaceAliasDefinition
            | Kind::AttributeDeclaration => {}
            Kind::AttributedStatement => {
                if let Some(inner) = parts(node).into_iter().next_back() {
                    let before = out.len();
                    self.statement(inner, source, out);
                    if let Some(factor) = self.unroll_hint(node, inner, source) {
                        pragmas::set_unroll(&mut out[before..], factor);
                    }
                }
            }
            Kind::Error => self.lose_statement(node, source, Reason::SyntaxError, out),
            Kind::CompoundStatement => {
                let body = self.block(node, source);
                let site = self.site(node, source);
                out.push(Stmt {
                    kind: StmtKind::Block(body),
                    site,
                });
            }
            Kind::ExpressionStatement => self.expression_statement(node, source, out),
            Kind::Declaration => self.declaration(node, source, out),
            Kind::TypeDefinition | Kind::AliasDeclaration => {
                for (name, ty) in self.typedefs(node, source) {
                    self.bind(&name, Named::Type(ty));
                }
            }
            Kind::StructSpecifier
            | Kind::ClassSpecifier
            | Kind::UnionSpecifier
            | Kind::EnumSpecifier => {
                let ty = self.base_type(node, source);
                self.unnamed_object(node, ty, source, out);
            }
            Kind::IfStatement => self.branch(node, source, out),
            Kind::ForStatement | Kind::WhileStatement | Kind::DoStatement => {
                self.looping(node, source, out);
            }
            Kind::ForRangeLoop => self.range_loop(node, source, out),
            Kind::SwitchStatement => self.switch(node, source, out),
            Kind::ReturnStatement => self.returning(node, source, out),
            // Device code throws nothing: the host alone comes here, in a function of both.
            Kind::ThrowStatement => {}
            Kind::BreakStatement | Kind::ContinueStatement => {
                let kind = if node.kind() == Kind::BreakStatement {
                    StmtKind::Break
                } else {
                    StmtKind::Continue
                };
                let site = self.site(node, source);
                out.push(Stmt { kind, site });
            }
            Kind::LabeledStatement => {
                // A label by itself changes nothing.
                for inner in parts(node).into_iter().skip(1) {
                    self.statement(inner, source, out);
                }
            }
            Kind::GotoStatement => self.jump(node, source, out),
            Kind::GnuAsmExpression => {
                let value = self.expr(node, source);
                let site = value.site;
                out.push(Stmt {
                    kind: StmtKind::Expr(value),
                    site,
                });
            }
            _ => self.lose_statement(node, source, Reason::Statement, out),
        }
    }

    pub(super) fn lose_statement(
        &mut self,
        node: Node,
        source: Source,
        reason: Reason,
        out: &mut Vec<Stmt>,
    ) {
        let site = self.site(node, source);
        let lost = self.unknown_statement(site, reason);
        out.push(lost);
    }

    fn expression_statement(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let Some(inner) = parts(node).into_iter().next() else {
            return;
        };
        if is_broken(inner, source) {
            self.lose_statement(node, source, Reason::SyntaxError, out);
            // What can be read of it still counts.
            if inner.kind() == Kind::Error {
                return;
            }
        }
        if self.misread_declaration(inner, source, out)
            || self.misread_reference(inner, source, out)
        {
            return;
        }
        let site = self.site(inner, source);
        let kind = if self.is_barrier(inner, source) {
            StmtKind::Barrier
        } else {
            StmtKind::Expr(discarded(self.expr(inner, source)))
        };
        out.push(Stmt { kind, site });
    }

    fn returning(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        let value = parts(node).into_iter().next().map(|value| {
            let value_node = value;
            let mut read = self.expr(value, source);
            if value_node.kind() == Kind::InitializerList
                && let Result::Var(result) = self.current().result
            {
                let ty = self.vars[result.0 as usize].ty.clone();
                let ExprKind::List(all) = read.kind else {
                    unreachable!("a list was read")
                };
                read = self.constructed(&ty, all, site);
            }
            read
        });
        let leave = Stmt {
            kind: StmtKind::Return(None),
            site,
        };
        let result = match (&self.current().result, value) {
            (Result::Kernel, value) => {
                out.push(Stmt {
                    kind: StmtKind::Return(value),
                    site,
                });
                return;
            }
            (_, None) => {
                out.push(leave);
                return;
            }
            (Result::None, Some(value)) => {
                out.push(Stmt {
                    kind: StmtKind::Expr(value),
                    site,
                });
                out.push(leave);
                return;
            }
            (Result::Open, Some(value)) => {
                if matches!(value.ty, Type::Callable(_) | Type::Library(_)) {
                    self.frame().result = Result::Alias(Box::new(value));
                    out.push(leave);
                    return;
                }
                let ty = match &value.ty {
                    Type::Array(element, _) => {
                        Type::Pointer(Arc::clone(element), AddressSpace::Global)
                    }
                    ty => ty.clone(),
                };
                let id = self.temporary("result", ty, site);
                self.frame().result = Result::Var(id);
                (id, value)
            }
            (Result::Var(id), Some(value)) => (*id, value),
            (Result::Alias(_), Some(_)) => {
                out.push(leave);
                return;
            }
        };
        let (id, value) = result;
        self.assign_to(id, value, site, out);
        out.push(leave);
    }

    /// `variable = value;`
    pub(super) fn assign_to(&mut self, id: VarId, value: Expr, site: Site, out: &mut Vec<Stmt>) {
        let target = self.var(id, site);
        let expression = self.assigned(target, value, site);
        out.push(Stmt {
            kind: StmtKind::Expr(expression),
            site,
        });
    }

    // ---- branches ------------------------------------------------------------------------------

    fn branch(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let constexpr = node.children().any(|child| child.kind() == Kind::Constexpr);
        self.frame().scopes.push(super::Scope::new());
        let condition = node.field(Field::Condition);
        let Some(condition) = self.condition(condition, source, out) else {
            self.frame().scopes.pop();
            self.lose_statement(node, source, Reason::Condition, out);
            return;
        };
        let consequence = node.field(Field::Consequence);
        let alternative = node.field(Field::Alternative).and_then(|other| {
            if other.kind() == Kind::ElseClause {
                parts(other).into_iter().next()
            } else {
                Some(other)
            }
        });
        let decided = if constexpr || self.unevaluated > 0 {
            self.evaluated(&condition)
        } else {
            None
        };
        if let Some(value) = decided {
            let taken = if value != 0 { consequence } else { alternative };
            if let Some(taken) = taken {
                let body = self.block(taken, source);
                let site = condition.site;
                out.push(Stmt {
                    kind: StmtKind::Block(body),
                    site,
                });
            }
            self.frame().scopes.pop();
            return;
        }
        let mut side = |side: Option<Node>| {
            side.map(|side| self.block(side, source))
                .unwrap_or_default()
        };
        let (taken, other) = (side(consequence), side(alternative));
        self.frame().scopes.pop();
        let site = condition.site;
        out.push(Stmt {
            kind: StmtKind::If(condition, taken, other),
            site,
        });
    }

    /// `int k = n / 2;` of `if (int k = n / 2; k > 3)`.
    pub(super) fn before_condition(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let before = match node.kind() {
            Kind::InitStatement => parts(node).into_iter().next().unwrap_or(node),
            _ => node,
        };
        self.statement(before, source, out);
    }

    pub(super) fn condition(
        &mut self,
        node: Option<Node>,
        source: Source,
        init: &mut Vec<Stmt>,
    ) -> Option<Expr> {
        let node = node.filter(|node| !is_broken(*node, source))?;
        if node.kind() != Kind::ConditionClause {
            return Some(self.expr(node, source));
        }
        if let Some(before) = node.field(Field::Initializer) {
            self.before_condition(before, source, init);
        }
        let value = node
            .field(Field::Value)
            .or_else(|| parts(node).into_iter().next_back())?;
        if value.kind() == Kind::Declaration {
            // `if (T x = value)`: the variable is the condition.
            self.declaration(value, source, init);
            let declarator = value.field(Field::Declarator)?;
            let declared = self.declarator(declarator, Type::INT, AddressSpace::Global, source);
            let site = self.site(value, source);
            return Some(self.name(Name::new(&declared.name, source.space), site));
        }
        Some(self.expr(value, source))
    }

    /// The value in a variable, unless reading it twice costs nothing.
    pub(super) fn held(&mut self, value: Expr, out: &mut Vec<Stmt>) -> Expr {
        if matches!(
            value.kind,
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Builtin(_)
        ) {
            return value;
        }
        let site = value.site;
        let id = self.temporary("switch", value.ty.clone(), site);
        out.push(Stmt {
            kind: StmtKind::Declare(id, Some(value)),
            site,
        });
        self.var(id, site)
    }

    // ---- loops ---------------------------------------------------------------------------------

    fn looping(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        self.frame().scopes.push(super::Scope::new());
        let mut init = Vec::new();
        let (mut condition, mut step) = (None, None);
        let mut broken = false;
        let mut before = self.vars.len();
        if node.kind() == Kind::ForStatement {
            if let Some(initializer) = node.field(Field::Initializer) {
                if initializer.kind() == Kind::Declaration {
                    self.declaration(initializer, source, &mut init);
                } else {
                    let expression = self.expr(initializer, source);
                    let site = expression.site;
                    init.push(Stmt {
                        kind: StmtKind::Expr(expression),
                        site,
                    });
                }
            }
            before = self.vars.len();
            if let Some(test) = node.field(Field::Condition) {
                broken |= is_broken(test, source);
                condition = Some(self.expr(test, source));
            }
            step = node
                .field(Field::Update)
                .map(|update| discarded(self.expr(update, source)));
        } else {
            let test = node.field(Field::Condition);
            condition = self.condition(test, source, &mut init);
            broken |= condition.is_none();
        }
        let mut body = node
            .field(Field::Body)
            .map(|body| self.block(body, source))
            .unwrap_or_default();
        self.frame().scopes.pop();
        if broken {
            self.lost(site, Reason::LoopCondition);
        }
        let kind = if node.kind() == Kind::DoStatement {
            LoopKind::Do
        } else {
            LoopKind::For
        };
        if renews(node, source)
            && let [
                Stmt {
                    kind: StmtKind::Declare(_, first),
                    ..
                },
            ] = init.as_mut_slice()
            && let (Some(test), Some(again)) = (&condition, &step)
        {
            *first = None;
            body.splice(0..0, renewed_first(test.clone(), again.clone()));
            (condition, step) = (None, None);
        }
        let (kind, condition) = match condition {
            // What such a test changes is followed in the iteration that it begins.
            Some(test) if kind == LoopKind::For && moves_on(&test, before) => {
                body.insert(0, leaves_unless(test));
                (kind, None)
            }
            condition => test_of(kind, condition, step.is_some(), &mut body),
        };
        let head = match (&condition, node.field(Field::Body)) {
            (Some(condition), _) => condition.site,
            // Without the body: `for (;;)`.
            (None, Some(body)) if kind == LoopKind::For => {
                let text = &source.parsed.text[node.start_byte()..body.start_byte()];
                let end = node.start_byte() + text.trim_end().len();
                self.site_of(node.start_byte()..end, source)
            }
            (None, _) => site,
        };
        if never_repeats(&body) {
            // `for (int i = id; i < n; i += threads) { …; return; }` is `if (id < n) { …; return; }`.
            let mut once = init;
            body.pop_if(|last| last.kind == StmtKind::Break);
            match condition.filter(|_| kind == LoopKind::For) {
                Some(condition) => once.push(Stmt {
                    kind: StmtKind::If(condition, body, Vec::new()),
                    site: head,
                }),
                None => once.append(&mut body),
            }
            out.push(Stmt {
                kind: StmtKind::Block(once),
                site,
            });
            return;
        }
        out.push(Stmt {
            kind: StmtKind::Loop {
                kind,
                init,
                condition,
                step,
                body,
                unroll: None,
            },
            site: head,
        });
    }

    // ---- declarations --------------------------------------------------------------------------

    /// The members of `union { … };` in a function are names of the block.
    fn unnamed_object(&mut self, node: Node, ty: Type, source: Source, out: &mut Vec<Stmt>) {
        let Type::Struct(structure) = &ty else {
            return;
        };
        if node.kind() != Kind::UnionSpecifier || node.field(Field::Name).is_some() {
            return;
        }
        let structure = Arc::clone(structure);
        let site = self.site(node, source);
        let id = self.fresh("", ty, Storage::Local, site);
        out.push(Stmt {
            kind: StmtKind::Declare(id, None),
            site,
        });
        let object = self.var(id, site);
        for field in &structure.fields {
            if let Some(member) = self.member(&object, &field.name, site) {
                self.bind(&field.name, Named::Alias(Box::new(member)));
            }
        }
    }

    fn declaration(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        if is_broken(node, source) {
            self.lose_statement(node, source, Reason::SyntaxError, out);
        }
        let Some(type_node) = node.field(Field::Type) else {
            return;
        };
        let base = self.base_type(type_node, source);
        let space = space_of(node, source);
        let shared = has_word(node, source, "__shared__");
        let external = has_word(node, source, "extern");
        let volatile = has_word(node, source, "volatile");
        let constexpr = has_word(node, source, "constexpr");
        let fixed = constexpr || has_word(node, source, "const");
        let declarators: Vec<Node> = node.fields(Field::Declarator).collect();
        for declarator in declarators {
            let to = space.unwrap_or(self.default_space());
            if bound_names(declarator).is_some() {
                self.structured_binding(declarator, source, out);
                continue;
            }
            // `T x(a, b)` may read as the declaration of a function.
            let prototype = Some(declarator).filter(|declarator| {
                declarator.kind() == Kind::FunctionDeclarator
                    && !super::forms::points_to_function(*declarator)
            });
            let inner = prototype
                .and_then(|prototype| prototype.field(Field::Declarator))
                .unwrap_or(declarator);
            let declared = self.declarator(inner, base.clone(), to, source);
            let mut ty = declared.ty;
            let name_node = match declarator.kind() {
                Kind::InitDeclarator => declarator.field(Field::Declarator),
                _ => Some(inner),
            };
            let site = self.site(name_node.unwrap_or(declarator), source);
            // A local array in OpenCL; a pointer to local memory is not one, but `T *__local p` lies there.
            let local_array = match ty {
                Type::Pointer(..) => {
                    super::forms::pointer_space(inner, source) == Some(AddressSpace::Shared)
                }
                _ => space == Some(AddressSpace::Shared),
            };
            let storage = if (shared || local_array) && external {
                Storage::DynamicShared
            } else if shared || local_array {
                Storage::Shared
            } else {
                Storage::Local
            };
            let value = declarator.field(Field::Value);
            let mut arguments: Option<Vec<Expr>> = None;
            let mut init = None;
            match value {
                Some(value) if value.kind() == Kind::ArgumentList => {
                    arguments = Some(self.arguments(value, source));
                }
                Some(value) if value.kind() == Kind::InitializerList => {
                    let all = self.initializers(value, source);
                    if let Type::Array(element, None) = &ty {
                        ty = Type::Array(Arc::clone(element), Some(all.len() as u64));
                    }
                    if let Type::Array(..) = ty {
                        init = Some(list(&ty, all, site));
                    } else {
                        arguments = Some(all);
                    }
                }
                Some(value) => {
                    let (value, mut before) = self.with_captures_before(value, source);
                    out.append(&mut before);
                    init = Some(value);
                }
                None => {
                    if let Some(list) =
                        prototype.and_then(|prototype| prototype.field(Field::Parameters))
                    {
                        let given = parts(list).into_iter();
                        let given = given.filter_map(|part| self.misread_argument(part, source));
                        arguments = Some(given.collect());
                    }
                }
            }
            if let Type::Unknown(_) = ty {
                let given = arguments
                    .as_deref()
                    .or_else(|| init.as_ref().map(std::slice::from_ref));
                let written = text_of(type_node, source);
                if let Some(given) = given
                    && let Some(deduced) = self.deduced_class(written, given, source)
                {
                    ty = deduced;
                }
            }
            if let Some([bound]) = arguments.as_deref().filter(|_| declared.reference) {
                // `T &name(value);`
                init = Some(bound.clone());
            } else if let Some(all) = arguments {
                init = Some(self.constructed(&ty, all, site));
            } else if init.is_none()
                && storage == Storage::Local
                && let Type::Struct(_) = ty
            {
                init = self.default_constructed(&ty, site);
            }
            if matches!(&ty, Type::Unknown(name) if name == "auto")
                && let Some(init) = &init
            {
                ty = match (&init.ty, declared.reference) {
                    (Type::Array(element, _), false) => {
                        Type::Pointer(Arc::clone(element), AddressSpace::Global)
                    }
                    (ty, _) => ty.clone(),
                };
            } else if let Type::Pointer(inner, space) = &ty
                && matches!(&**inner, Type::Unknown(name) if name == "auto")
                && let Some(init) = &init
                && let Some(element) = init.ty.element()
            {
                ty = Type::Pointer(Arc::new(element.clone()), *space);
            }
            let name = declared.name.as_str();
            if let Some(known) = self.known_targets(&ty, name, init.as_ref(), node, source) {
                // Given one function once: it is that function.
                if !matches!(known, Type::Array(..))
                    && let Some(init) = &init
                    && init.ty.element().unwrap_or(&init.ty) == known.element().unwrap_or(&known)
                    && matches!(&init.kind, ExprKind::List(all) if all.is_empty())
                {
                    self.bind(name, Named::Alias(Box::new(init.clone())));
                    continue;
                }
                ty = known;
            }
            // `void (^name)(int) = ^(int n) { … };`
            if self.opencl()
                && let Some(init) = &init
                && let Type::Callable(_) = init.ty
            {
                ty = init.ty.clone();
            }
            // Objects of the toolkit and lambdas are what they are: nothing is stored.
            if let Type::Callable(_) | Type::Library(_) = ty {
                if let Some(init) = &init
                    && matches!(init.kind, ExprKind::Inline(..) | ExprKind::Call(..))
                {
                    out.push(Stmt {
                        kind: StmtKind::Expr(init.clone()),
                        site,
                    });
                }
                let meaning = match init {
                    Some(init) if matches!(init.ty, Type::Callable(_) | Type::Library(_)) => Expr {
                        kind: ExprKind::List(Vec::new()),
                        ..init
                    },
                    _ => list(&ty, Vec::new(), site),
                };
                self.bind(&declared.name, Named::Alias(Box::new(meaning)));
                continue;
            }
            if declared.reference && init.as_ref().is_some_and(|init| init.ty == ty) {
                init = init.map(|init| self.given_back(init, out));
            }
            if declared.reference
                && let Some(init) = &init
                && is_place(init)
            {
                let place = self.frozen(init.clone(), out);
                self.bind(&declared.name, Named::Alias(Box::new(place)));
                continue;
            }
            init = init.map(|init| self.converted_to(init, &ty));
            if ty.is_int()
                && let Some(number) = init.as_ref().filter(|init| init.ty.is_float())
                && super::constants::real(number).is_some()
            {
                init = init.map(|init| self.cast(init, ty.clone(), site));
            }
            // A number of bytes that says what they are aligned to keeps saying it.
            if let Some(init) = init.as_ref().filter(|init| is_aligned_size(init)) {
                self.bind(&declared.name, Named::Alias(Box::new(init.clone())));
                continue;
            }
            if fixed
                && storage == Storage::Local
                && let Type::Int { bits, signed } = ty
                && let Some(value) = init.as_ref().and_then(|init| {
                    if constexpr {
                        self.evaluated(init)
                    } else {
                        constant(init)
                    }
                })
            {
                let value = warplens_ir::wrapped(value, bits, signed);
                self.bind_constant(&declared.name, value, ty);
                continue;
            }
            // A constant of a structure's type: its fields are numbers.
            if constexpr
                && storage == Storage::Local
                && let Some(init) = &init
                && let (Type::Struct(_), ExprKind::List(values)) = (&ty, &init.kind)
                && !values.is_empty()
                && values.iter().all(|value| constant(value).is_some())
            {
                self.bind(&declared.name, Named::Alias(Box::new(init.clone())));
                continue;
            }
            let function = self.current().function;
            let shared = storage != Storage::Local && function != 0;
            let known = self
                .shared_in_functions
                .get(&(function, declared.name.clone()));
            if let (true, Some(&known)) = (shared, known)
                && self.vars[known.0 as usize].ty == ty
            {
                // A function's shared array is one array, however often the function is called.
                self.bind(&declared.name, Named::Var(known));
                continue;
            }
            let id = self.new_var(&declared.name, ty, storage, site);
            if shared {
                self.shared_in_functions
                    .insert((function, declared.name.clone()), id);
            }
            self.vars[id.0 as usize].extent_sites = declared.extents;
            self.vars[id.0 as usize].volatile = volatile;
            if storage == Storage::Local {
                self.split_variable(id);
            }
            if self.split.contains_key(&id) {
                match init {
                    Some(init) => self.assign_to(id, init, site, out),
                    None => out.extend(self.split[&id].scalars().iter().map(|&(_, leaf)| Stmt {
                        kind: StmtKind::Declare(leaf, None),
                        site,
                    })),
                }
                continue;
            }
            out.push(Stmt {
                kind: StmtKind::Declare(id, init),
                site,
            });
        }
    }

    /// `T (&rows)[4] = tile;`, `T (*row)[4] = …` read as assignments to what a call gives.
    fn misread_reference(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) -> bool {
        let declared = || {
            let mut at = node.field(Field::Left)?;
            while at.kind() == Kind::SubscriptExpression {
                at = at.field(Field::Argument)?;
            }
            let arguments = parts(at.field(Field::Arguments)?);
            let [only] = arguments.as_slice() else {
                return None;
            };
            let named = only.field(Field::Argument)?;
            (at.kind() == Kind::CallExpression
                && only.kind() == Kind::PointerExpression
                && named.kind() == Kind::Identifier)
                .then(|| at.field(Field::Function))
                .flatten()
        };
        // `T &name(value);` as the bits of both.
        let bound = || {
            let (left, right) = (node.field(Field::Left)?, node.field(Field::Right)?);
            let named = right.field(Field::Function)?.kind() == Kind::Identifier;
            let one = parts(right.field(Field::Arguments)?).len() == 1;
            let is_type = matches!(left.kind(), Kind::Identifier | Kind::TemplateFunction);
            let operator = warplens_syntax::binary(node)?.as_str();
            (named && one && is_type && operator == "&").then_some(left)
        };
        let function = match node.kind() {
            Kind::AssignmentExpression => declared(),
            Kind::BinaryExpression => bound(),
            _ => None,
        };
        let Some(function) = function else {
            return false;
        };
        // Which it is, a type or a function, the name in front says.
        let ty = self.unevaluated(|lowering| lowering.base_type(function, source));
        if matches!(ty, Type::Unknown(_)) {
            return false;
        }
        let fragment = crate::misread::declared(text_of(node, source), self.unit.language);
        let range = 0..fragment.text.len();
        let Some(declaration) =
            crate::definition::node_ending(&fragment, &range, &[Kind::Declaration])
        else {
            return false;
        };
        self.declaration(declaration, source.again(&fragment, node.start_byte()), out);
        true
    }

    /// `Type<32> name = value;` reads as comparisons where the argument could be a value.
    fn misread_declaration(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) -> bool {
        if !matches!(
            node.kind(),
            Kind::AssignmentExpression | Kind::BinaryExpression | Kind::CommaExpression
        ) {
            return false;
        }
        let text = text_of(node, source);
        let Some(open) = text.find('<') else {
            return false;
        };
        let name = text[..open].trim();
        let plain = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        if name.is_empty() || !name.chars().all(plain) {
            return false;
        }
        let last = name.rsplit("::").next().unwrap_or(name);
        if self.named(last).is_some() {
            return false;
        }
        let mut depth = 0;
        let Some(close) = text[open..].char_indices().find_map(|(at, c)| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(open + at)
        }) else {
            return false;
        };
        let rest = text[close + 1..].trim_start();
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (variable, tail) = rest.split_at(end);
        if variable.is_empty()
            || !tail.trim_start().starts_with(['=', '(', '{']) && !tail.is_empty()
        {
            return false;
        }
        // What is in front must be a type.
        let fragment = warplens_syntax::Expanded::fragment(
            &format!("using w = {};", &text[..=close]),
            self.unit.language,
        );
        let alias = crate::definition::node_ending(
            &fragment,
            &(0..fragment.text.len()),
            &[Kind::AliasDeclaration],
        );
        let Some(ty) = alias.and_then(|alias| alias.field(Field::Type)) else {
            return false;
        };
        let inner = Source {
            parsed: &fragment,
            space: source.space,
            header: false,
            at: None,
            fixed: None,
            copied: None,
            of: None,
        };
        let ty = self.unevaluated(|lowering| lowering.base_type(ty, inner));
        if matches!(ty, Type::Unknown(_)) {
            return false;
        }
        let mut value = None;
        let mut at = Some(node);
        while let Some(node) = at {
            match node.kind() {
                Kind::CommaExpression => at = node.field(Field::Right),
                Kind::AssignmentExpression => {
                    value = node.field(Field::Right);
                    break;
                }
                Kind::BinaryExpression => at = node.field(Field::Right),
                Kind::CallExpression => {
                    value = node.field(Field::Arguments);
                    break;
                }
                _ => break,
            }
        }
        let site = self.site(node, source);
        let variable = variable.to_owned();
        let init = match value {
            Some(list) if list.kind() == Kind::ArgumentList => {
                let arguments = self.arguments(list, source);
                Some(self.constructed(&ty, arguments, site))
            }
            Some(value) => Some(self.expr(value, source)),
            None => self.default_constructed(&ty, site),
        };
        if let Type::Callable(_) | Type::Library(_) = ty {
            let meaning = match init {
                Some(init) if matches!(init.ty, Type::Callable(_) | Type::Library(_)) => init,
                _ => list(&ty, Vec::new(), site),
            };
            self.bind(&variable, Named::Alias(Box::new(meaning)));
            return true;
        }
        let id = self.new_var(&variable, ty, Storage::Local, site);
        self.split_variable(id);
        match init {
            Some(init) => self.assign_to(id, init, site, out),
            None => out.push(Stmt {
                kind: StmtKind::Declare(id, None),
                site,
            }),
        }
        true
    }

    /// `auto [a, b] = value;`
    fn structured_binding(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        let names = bound_names(node);
        let value = node.field(Field::Value);
        let (Some(names), Some(value)) = (names, value) else {
            self.lose_statement(node, source, Reason::StructuredBinding, out);
            return;
        };
        let value = self.expr(value, source);
        let names: Vec<String> = parts(names)
            .into_iter()
            .map(|name| text_of(name, source).to_owned())
            .collect();
        let referred = child_of_kind(node, Kind::ReferenceDeclarator).is_some();
        // `auto &[rows, columns] = shape.extents`: each name is an element; without the reference a copy of one.
        if is_place(&value)
            && let Type::Array(element, Some(length)) = value.ty.clone()
            && u64::try_from(names.len()) == Ok(length)
        {
            let whole = self.frozen(value, out);
            for (name, at) in names.iter().zip(0..) {
                let index = Expr {
                    kind: ExprKind::Int(at),
                    ty: Type::INT,
                    site,
                };
                let part = Expr {
                    kind: ExprKind::Index(Box::new(whole.clone()), Box::new(index)),
                    ty: (*element).clone(),
                    site,
                };
                let part = if referred {
                    part
                } else {
                    let id = self.temporary("binding", part.ty.clone(), site);
                    self.assign_to(id, part, site, out);
                    self.var(id, site)
                };
                self.bind(name, Named::Alias(Box::new(part)));
            }
            return;
        }
        let fields: Vec<String> = match &value.ty {
            Type::Struct(structure) => structure.fields.iter().map(|f| f.name.clone()).collect(),
            Type::Vector(..) => ["x", "y", "z", "w"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        if names.len() > fields.len() {
            self.lose_statement(node, source, Reason::StructuredBinding, out);
            return;
        }
        let whole = if referred && is_place(&value) {
            self.frozen(value, out)
        } else {
            let id = self.temporary("binding", value.ty.clone(), site);
            self.assign_to(id, value, site, out);
            self.var(id, site)
        };
        for (name, field) in names.iter().zip(&fields) {
            if let Some(part) = self.member(&whole, field, site) {
                self.bind(name, Named::Alias(Box::new(part)));
            }
        }
    }

    /// A place whose address does not change any more: what its subscripts depend on is kept.
    pub(super) fn frozen(&mut self, place: Expr, out: &mut Vec<Stmt>) -> Expr {
        let Expr { kind, ty, site } = place;
        let kind = match kind {
            ExprKind::Index(base, index) => {
                let base = if matches!(base.ty, Type::Array(..) | Type::Vector(..)) {
                    self.frozen(*base, out)
                } else {
                    self.kept(*base, out)
                };
                let index = self.kept(*index, out);
                ExprKind::Index(Box::new(base), Box::new(index))
            }
            ExprKind::Field(base, offset) => {
                ExprKind::Field(Box::new(self.frozen(*base, out)), offset)
            }
            ExprKind::Deref(pointer) => {
                let pointer = self.kept(*pointer, out);
                return Expr {
                    ty,
                    ..deref(pointer, site)
                };
            }
            ExprKind::Cast(written, inner) => {
                ExprKind::Cast(written, Box::new(self.frozen(*inner, out)))
            }
            kind => kind,
        };
        Expr { kind, ty, site }
    }

    /// A value that later changes of its variables do not reach.
    fn kept(&mut self, value: Expr, out: &mut Vec<Stmt>) -> Expr {
        match &value.kind {
            ExprKind::Int(_) | ExprKind::Builtin(_) | ExprKind::Float(_) => return value,
            // Parameters are seldom written; where one is, its value is taken now.
            ExprKind::Var(id) if matches!(self.vars[id.0 as usize].ty, Type::Array(..)) => {
                return value;
            }
            ExprKind::AddressOf(place) => {
                let place = self.frozen((**place).clone(), out);
                let site = value.site;
                return Expr {
                    ty: value.ty,
                    ..address_of(place, AddressSpace::Global, site)
                };
            }
            _ => {}
        }
        let site = value.site;
        let ty = match &value.ty {
            Type::Array(element, _) => Type::Pointer(Arc::clone(element), AddressSpace::Global),
            ty => ty.clone(),
        };
        let id = self.fresh("at", ty, Storage::Local, site);
        out.push(Stmt {
            kind: StmtKind::Declare(id, Some(value)),
            site,
        });
        self.var(id, site)
    }
}

/// The list of names of `[a, b] = …`, `&[a, b] = …`.
fn bound_names(declarator: Node) -> Option<Node> {
    if declarator.kind() == Kind::StructuredBindingDeclarator {
        return Some(declarator);
    }
    let referred = child_of_kind(declarator, Kind::ReferenceDeclarator).unwrap_or(declarator);
    child_of_kind(referred, Kind::StructuredBindingDeclarator)
}

/// An expression whose value nothing takes: a reference that a call returns is not read.
pub(super) fn discarded(mut value: Expr) -> Expr {
    let site = value.site;
    if let ExprKind::Deref(pointer) = value.kind {
        return match pointer.kind {
            ExprKind::Inline(..) => discarded(*pointer),
            _ => Expr {
                kind: ExprKind::Deref(pointer),
                ..value
            },
        };
    }
    if let ExprKind::List(parts) = &mut value.kind
        && let [
            Expr {
                kind: ExprKind::Inline(..),
                ..
            },
            last,
        ] = parts.as_slice()
        && is_place(last)
    {
        parts.pop();
        return list(&Type::Void, std::mem::take(parts), site);
    }
    value
}

/// True where the grammar could not read a part: anything but the execution space of a lambda
/// (`[=] __device__ (int i) { … }`), which changes nothing.
fn is_broken(node: Node, source: Source) -> bool {
    if !node.has_error() {
        return false;
    }
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if node.is_missing() {
            return true;
        }
        if node.is_error() {
            let plain = node.parent().is_some_and(|parent| {
                matches!(parent.kind(), Kind::LambdaExpression | Kind::BlockLiteral)
            }) && text_of(node, source)
                .split_whitespace()
                .all(|word| matches!(word, "__device__" | "__host__" | "__forceinline__"));
            if !plain {
                return true;
            }
            continue;
        }
        open.extend(node.children().filter(Node::has_error));
    }
    false
}

/// True for `for (T t = next(); …; t = next())`: each iteration begins with a call of the same.
fn renews(node: Node, source: Source) -> bool {
    let made = || {
        let declaration = node.field(Field::Initializer)?;
        let declarator = declaration.field(Field::Declarator)?;
        let (name, first) = (
            declarator.field(Field::Declarator)?,
            declarator.field(Field::Value)?,
        );
        let update = node.field(Field::Update)?;
        let (target, again) = (update.field(Field::Left)?, update.field(Field::Right)?);
        let plain = assigned(update) == Some(AssignOperator::Plain);
        let same = |a: Node, b: Node| text_of(a, source) == text_of(b, source);
        Some(
            plain
                && first.kind() == Kind::CallExpression
                && same(name, target)
                && same(first, again),
        )
    };
    made().unwrap_or(false)
}

/// How an iteration of such a loop begins as `T t; for (;;) { t = next(); if (!…) break; … }`, where what the call changes is followed
/// once.
fn renewed_first(test: Expr, again: Expr) -> [Stmt; 2] {
    let again = Stmt {
        site: again.site,
        kind: StmtKind::Expr(again),
    };
    [again, leaves_unless(test)]
}

/// `if (!test) break;`
fn leaves_unless(test: Expr) -> Stmt {
    let site = test.site;
    let leave = Stmt {
        kind: StmtKind::Break,
        site,
    };
    let ends = Expr {
        ty: Type::INT,
        site,
        kind: ExprKind::Unary(UnaryOp::Not, Box::new(test)),
    };
    Stmt {
        kind: StmtKind::If(ends, vec![leave], Vec::new()),
        site,
    }
}

/// The test of a loop, where one without an end of its own has it inside: `for (;;) { if (c) break; … }` goes on while `c` does not
/// hold, and so does `do … while`, which `for (;;) { …; if (c) break; }` is.
fn test_of(
    kind: LoopKind,
    condition: Option<Expr>,
    steps: bool,
    body: &mut Vec<Stmt>,
) -> (LoopKind, Option<Expr>) {
    let endless = condition
        .as_ref()
        .is_none_or(|test| matches!(test.kind, ExprKind::Int(1..)));
    if !endless || kind == LoopKind::Do {
        return (kind, condition);
    }
    let goes_on = |test: Expr| Expr {
        ty: Type::INT,
        site: test.site,
        kind: ExprKind::Unary(UnaryOp::Not, Box::new(test)),
    };
    if body.first().is_some_and(leaves_the_loop) {
        if let StmtKind::If(test, ..) = body.remove(0).kind {
            return (kind, Some(goes_on(test)));
        }
    } else if body.last().is_some_and(leaves_the_loop)
        && !steps
        && !continues(body)
        && let Some(StmtKind::If(test, ..)) = body.pop().map(|last| last.kind)
    {
        return (LoopKind::Do, Some(goes_on(test)));
    }
    (kind, condition)
}

/// True for `if (c) break;`.
fn leaves_the_loop(statement: &Stmt) -> bool {
    fn only_breaks(statements: &[Stmt]) -> bool {
        matches!(statements, [one] if match &one.kind {
            StmtKind::Break => true,
            StmtKind::Block(inner) => only_breaks(inner),
            _ => false,
        })
    }
    matches!(&statement.kind, StmtKind::If(_, then, otherwise) if only_breaks(then) && otherwise.is_empty())
}
