//! A kernel: its head, and what binds its template parameters.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_syntax::{Expanded, Field, Kind, Node, words_in};

use super::assumptions::ASSUMED_TYPE;
use super::forms::Parameter;
use super::forms::space_of;
use super::{Lowering, Named, Source, parts};
use crate::definition::{Within, node_ending};
use crate::outline::function_declarator;
use crate::types::{Callable, callable_of, type_of_callable};
use crate::{Item, ItemKind, Unit};
use warplens_ir::Reason;
use warplens_ir::{AddressSpace, Places, Site, Span, Type};
use warplens_ir::{AssumptionKind, ExprKind, Kernel, Stmt, Storage};
use warplens_ir::{Bindings, Bound};

/// What is known of a kernel's template parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TemplateArguments {
    /// By name, or by position as a number: given by the user.
    pub given: Vec<(String, String)>,
    /// By position, from a launch or an instantiation.
    pub explicit: Vec<Option<Bound>>,
    /// Types of the arguments at the launch, by position.
    pub argument_types: Vec<Option<Type>>,
}

impl TemplateArguments {
    /// A text that is equal for equal arguments.
    pub fn spelled(&self) -> String {
        format!("{self:?}")
    }
}

/// Variables, by name and place, that are read as another type.
type Reinterpreted = FxHashSet<(String, Site)>;

/// A kernel is read this often at most.
const MOST_READINGS: u32 = 3;

/// Lowers one kernel of a text.
pub fn lower(
    parsed: &Arc<Expanded>,
    item: &Item,
    unit: &Unit,
    template: &TemplateArguments,
) -> Option<Kernel> {
    let (kernel, expressions) = lower_with(parsed, item, unit, template)?;
    let read = |given: &[(String, String)]| {
        let given = given.to_vec();
        let template = TemplateArguments {
            given,
            ..template.clone()
        };
        lower_with(parsed, item, unit, &template)
    };
    Some(super::trials::best(
        kernel,
        expressions,
        &template.given,
        read,
    ))
}

/// Lowers it with these template arguments; how many expressions that took.
fn lower_with(
    parsed: &Arc<Expanded>,
    item: &Item,
    unit: &Unit,
    template: &TemplateArguments,
) -> Option<(Kernel, u32)> {
    let ItemKind::Kernel(name) = &item.kind else {
        return None;
    };
    let node = node_ending(parsed, &item.range, &[Kind::FunctionDefinition])?;
    let source = Source {
        space: &item.space,
        ..Source::new(parsed, false)
    };
    let mut last = None;
    let mut whole = FxHashSet::default();
    // What turns out to be read as another type stays whole: once more, knowing it.
    for _ in 0..MOST_READINGS {
        let mut lowering = Lowering::new(unit);
        lowering.base = item.source.start;
        lowering.within = Within::item(parsed, item);
        lowering.space = Arc::clone(&item.space);
        lowering.whole.clone_from(&whole);
        lowering.bind_template(node, source, template);
        let (kernel, reinterpreted, expressions) = lowering.kernel(node, source, name, item)?;
        let known = whole.len();
        whole.extend(reinterpreted);
        if whole.len() == known {
            return Some((kernel, expressions));
        }
        last = Some((kernel, expressions));
    }
    last
}

impl Lowering<'_> {
    fn bind_template(&mut self, node: Node, source: Source, given: &TemplateArguments) {
        let Some(template) = node
            .parent()
            .filter(|parent| parent.kind() == Kind::TemplateDeclaration)
        else {
            return;
        };
        let own = self.parameters(template, source);
        let mut bindings: Bindings = Vec::new();
        for (position, parameter) in own.iter().enumerate() {
            let text = given
                .given
                .iter()
                .find(|(of, _)| *of == parameter.name || *of == position.to_string())
                .map(|(_, value)| value.clone());
            if let Some(text) = text {
                if let Some(bound) = self.bound_text(&text, parameter.is_type) {
                    bindings.push((parameter.name.clone(), bound));
                }
                continue;
            }
            if parameter.pack {
                let rest: Option<Vec<Bound>> = given
                    .explicit
                    .get(position..)
                    .unwrap_or(&[])
                    .iter()
                    .cloned()
                    .collect();
                bindings.push((
                    parameter.name.clone(),
                    Bound::Pack(match rest {
                        Some(rest) if !rest.is_empty() => rest,
                        _ => self.pack_of_arguments(parameter, node, source, given),
                    }),
                ));
                break;
            }
            if let Some(Some(bound)) = given.explicit.get(position) {
                let bound = match bound {
                    Bound::Type(ty) => self.of_name(ty).map(Bound::Type),
                    bound => Some(bound.clone()),
                };
                if let Some(bound) = bound {
                    let bound = self.with_assumed_arguments(&bound, &given.given);
                    bindings.push((parameter.name.clone(), bound));
                }
            }
        }
        if let Some(list) =
            function_declarator(node).and_then(|declarator| declarator.field(Field::Parameters))
        {
            for (param, ty) in parts(list).into_iter().zip(&given.argument_types) {
                if let Some(ty) = ty.as_ref().and_then(|ty| self.of_name(ty)) {
                    self.deduce(param, &ty, &own, source, &mut bindings);
                }
            }
            // `View<T>` of a launcher's own `T` that is open.
            bindings.retain(|(_, bound)| !matches!(bound, Bound::Type(Type::Unknown(_))));
        }
        for parameter in &own {
            if bindings.iter().any(|(name, _)| *name == parameter.name) || parameter.name.is_empty()
            {
                continue;
            }
            let bound = match self.default(parameter, &bindings, None, source) {
                Some(bound) => bound,
                None => self.assumed_bound(parameter, template, node, source, &given.given),
            };
            bindings.push((parameter.name.clone(), bound));
        }
        for (name, bound) in &bindings {
            if !matches!(bound, Bound::Pack(_)) && !bound.spelled().is_empty() {
                self.template_args.push((name.clone(), bound.spelled()));
            }
        }
        self.frame().bindings = bindings;
    }

    /// What the arguments of a launch make of a pack: the types of those that it takes.
    fn pack_of_arguments(
        &mut self,
        parameter: &Parameter,
        node: Node,
        source: Source,
        given: &TemplateArguments,
    ) -> Vec<Bound> {
        let list = function_declarator(node)
            .and_then(|declarator| declarator.field(Field::Parameters))
            .map(parts)
            .unwrap_or_default();
        let position = list
            .iter()
            .position(|param| param.kind() == Kind::VariadicParameterDeclaration);
        let mut taken = Vec::new();
        if let Some(position) = position {
            for ty in given.argument_types.get(position..).unwrap_or(&[]) {
                let mut bound: Bindings = Vec::new();
                let own = std::slice::from_ref(parameter);
                if let Some(ty) = ty.as_ref().and_then(|ty| self.of_name(ty)) {
                    self.deduce(list[position], &ty, own, source, &mut bound);
                }
                let told = bound.pop().map(|(_, bound)| bound);
                taken.push(match told {
                    Some(bound) if !matches!(bound, Bound::Type(Type::Unknown(_))) => bound,
                    _ => {
                        let (name, ty) = ASSUMED_TYPE;
                        self.assume(&parameter.name, name, AssumptionKind::Template);
                        Bound::Type(ty)
                    }
                });
            }
        }
        if taken.is_empty() {
            self.assume(&parameter.name, "no arguments", AssumptionKind::Template);
        }
        taken
    }

    /// What a launch in another text calls a type: classes by their names ([`crate::by_name`]). `None` where this text has no such class.
    fn of_name(&mut self, ty: &Type) -> Option<Type> {
        match ty {
            Type::Unknown(name) => {
                let found = self.type_text(name);
                found.filter(|found| !matches!(found, Type::Unknown(_)))
            }
            Type::Pointer(inner, space) => {
                Some(Type::Pointer(Arc::new(self.of_name(inner)?), *space))
            }
            Type::Array(inner, length) => {
                Some(Type::Array(Arc::new(self.of_name(inner)?), *length))
            }
            ty => Some(ty.clone()),
        }
    }

    pub(super) fn bound_text(&mut self, text: &str, is_type: bool) -> Option<Bound> {
        if is_type {
            return self.type_text(text).map(Bound::Type);
        }
        self.constant_text(text).map(Bound::Value)
    }

    /// A type written outside the file.
    pub(super) fn type_text(&mut self, text: &str) -> Option<Type> {
        let space = Arc::clone(&self.space);
        let fragment = Expanded::fragment(&format!("{text} w;"), self.unit.language);
        let node = node_ending(&fragment, &(0..fragment.text.len()), &[Kind::Declaration])?;
        let source = Source {
            space: &space,
            ..Source::new(&fragment, false)
        };
        let base = self.base_type(node.field(Field::Type)?, source);
        let declarator = node.field(Field::Declarator)?;
        let ty = self
            .declarator(declarator, base, AddressSpace::Global, source)
            .ty;
        (!matches!(ty, Type::Unknown(_))).then_some(ty)
    }

    /// The same for a text in parentheses.
    pub(super) fn constant_text_in(&mut self, text: &str) -> Option<i64> {
        self.constant_text(text.trim().strip_prefix('(')?.strip_suffix(')')?)
    }

    /// The value of an integer expression written outside the tree: in a directive, an attribute.
    pub(super) fn constant_text(&mut self, text: &str) -> Option<i64> {
        let text = text.trim();
        if let Ok(value) = text.parse() {
            return Some(value);
        }
        if text.is_empty() {
            return None;
        }
        let space = Arc::clone(&self.space);
        let fragment = Expanded::fragment(&format!("int w=({text});"), self.unit.language);
        let node = node_ending(&fragment, &(0..fragment.text.len()), &[Kind::Declaration])?;
        let value = node
            .field(Field::Declarator)?
            .field(Field::Value)
            .filter(|value| !value.has_error())?;
        let source = Source {
            space: &space,
            ..Source::new(&fragment, false)
        };
        self.constant_node(value, source)
    }

    /// The kernel, the split variables that it reads as another type, and how many expressions it took.
    fn kernel(
        mut self,
        node: Node,
        source: Source,
        name: &str,
        item: &Item,
    ) -> Option<(Kernel, Reinterpreted, u32)> {
        let declarator = function_declarator(node)?;
        let name_node = declarator.field(Field::Declarator)?;
        let name_site = self.site(name_node, source);
        if let Some(params) = declarator.field(Field::Parameters) {
            self.kernel_parameters(params, source);
        }
        let params = self.vars.len() as u32;
        for id in 0..params {
            self.split_variable(warplens_ir::VarId(id));
        }
        let body_node = node.field(Field::Body)?;
        for (name, value) in &source.parsed.assumed {
            let kind = AssumptionKind::Conditional { taken: true };
            self.assume(name, &format!("defined as {value}"), kind);
        }
        for conditional in &source.parsed.undecided {
            let inside = |range: &std::ops::Range<usize>| item.source.contains(&range.start);
            if conditional
                .branches
                .iter()
                .any(|branch| inside(&branch.range))
            {
                let name = conditional.names.join(", ");
                let kind = AssumptionKind::Conditional { taken: false };
                self.assume(&name, "not defined", kind);
            }
        }
        for id in 0..params as usize {
            if let Some(layout) = crate::standard::assumed_layout(&self.vars[id].ty, 0) {
                let name = self.vars[id].name.clone();
                // `IndexToOffset` gives offsets into any array.
                let of_all = layout == crate::standard::CONTIGUOUS;
                self.assume(&name, layout, AssumptionKind::Layout { of_all });
            }
        }
        self.has_layouts = self.is_of_layouts(body_node, source);
        let mut body = Vec::new();
        if !self.has_layouts {
            body = self.block(body_node, source);
        }
        if self.asks_strides {
            for assumed in &mut self.assumed {
                if let AssumptionKind::Layout { of_all } = &mut assumed.kind {
                    *of_all = true;
                }
            }
        }
        // It may also be a function that it calls.
        if self.has_layouts {
            body.clear();
            self.undefined.clear();
            self.not_understood.clear();
            self.lost(name_site, Reason::Layouts);
        }
        self.mark_escapes(&body);
        self.drop_unread_members(&body);
        let reinterpreted = self.reinterpreted(&body);
        let head = item.range.start..body_node.start_byte();
        let [max_threads, min_blocks] = self.attribute("launch_bounds", &head, source);
        let [max_registers] = self.attribute("maxnreg", &head, source);
        let cluster: [Option<u64>; 3] = self.attribute("cluster_dims", &head, source);
        let cluster = cluster[0].map(|x| [x, cluster[1].unwrap_or(1), cluster[2].unwrap_or(1)]);
        for problem in &source.parsed.problems {
            if item.source.contains(&problem.range.start) {
                let (line, _) = source.parsed.position(problem.range.start);
                let site = Site {
                    span: Span {
                        start: (problem.range.start - self.base) as u32,
                        end: problem.range.end.saturating_sub(self.base) as u32,
                    },
                    line: line.saturating_sub(self.within.line),
                    callee: 0,
                };
                self.lost(site, Reason::Preprocessor(problem.message.as_str().into()));
            }
        }
        let required_block = self.required_block(head, source);
        for assumption in self.unit.assumed() {
            if !self.assumed.contains(assumption) {
                self.assumed.push(assumption.clone());
            }
        }
        let mut kernel = Kernel {
            name: name.to_owned(),
            name_site,
            language: self.unit.language,
            vars: self.vars,
            params,
            body,
            max_threads,
            min_blocks,
            max_registers,
            required_block,
            cluster,
            template_args: self.template_args,
            routines: self.routines,
            axes: self.axes,
            not_understood: self.not_understood,
            places: Arc::default(),
            assumed: self.assumed,
            undefined: self.undefined,
            calls: self.calls,
        };
        let text = source.parsed.source.get(item.source.clone()).unwrap_or("");
        Places::number(&mut kernel, text, self.callees);
        Some((kernel, reinterpreted, self.expressions))
    }

    /// The first arguments of an attribute in a kernel's head that is none of the grammar's: `__launch_bounds__`.
    fn attribute<const MOST: usize>(
        &mut self,
        name: &str,
        head: &Range<usize>,
        source: Source,
    ) -> [Option<u64>; MOST] {
        let mut words = source.parsed.words.iter();
        let last = words.rfind(|word| head.contains(&word.range.start) && word.name == name);
        let arguments = last.map_or_else(Vec::new, |word| arguments(&word.argument));
        std::array::from_fn(|number| {
            let value = self.constant_text(arguments.get(number)?)?;
            u64::try_from(value).ok().filter(|value| *value > 0)
        })
    }

    /// Marks the variables whose address goes where it is not followed.
    fn mark_escapes(&mut self, body: &[Stmt]) {
        let mut places = Vec::new();
        let mut look = |expression: &warplens_ir::Expr| {
            if let ExprKind::AddressOf(place) = &expression.kind {
                let mut at = &**place;
                while let ExprKind::Field(base, _) | ExprKind::Cast(_, base) = &at.kind {
                    at = base;
                }
                if let ExprKind::Var(id) = at.kind
                    && !matches!(at.ty, Type::Array(..))
                {
                    places.push(id);
                }
            }
        };
        warplens_ir::walk::expressions(body, &mut look);
        for routine in &self.routines {
            warplens_ir::walk::expressions(&routine.body, &mut look);
        }
        for id in places {
            self.escape(id);
        }
    }

    /// `reqd_work_group_size(x, y, z)` in the head of a kernel.
    fn required_block(&mut self, head: Range<usize>, source: Source) -> Option<[u64; 3]> {
        let text = source.parsed.text.get(head.clone()).unwrap_or("");
        let words: Vec<String> = source
            .parsed
            .words
            .iter()
            .filter(|word| head.contains(&word.range.start))
            .map(|word| word.argument.clone())
            .collect();
        let found = words
            .iter()
            .map(String::as_str)
            .chain([text])
            .find_map(|text| {
                let at = text.find("reqd_work_group_size")?;
                let inner = text[at..].split_once('(')?.1.split_once(')')?.0;
                Some(inner.to_owned())
            })?;
        let mut extents = [1u64; 3];
        for (extent, text) in extents.iter_mut().zip(found.split(',')) {
            *extent = self
                .constant_text(text)
                .and_then(|value| u64::try_from(value).ok())?;
        }
        Some(extents)
    }

    fn kernel_parameters(&mut self, params: Node, source: Source) {
        let mut position = 0;
        for param in parts(params) {
            if !param.kind().is_parameter_declaration() {
                continue;
            }
            if param.kind() == Kind::VariadicParameterDeclaration
                && let Some(ty) = param.field(Field::Type)
            {
                let mut name = String::new();
                let mut elements = Vec::new();
                self.expanded(ty, source, |lowering| {
                    lowering.frame().scopes.push(super::Scope::new());
                    lowering.kernel_parameter(param, &mut position, source);
                    for (of, meaning) in lowering.frame().scopes.pop().unwrap_or_default() {
                        name = of;
                        elements.push(meaning);
                    }
                });
                if !name.is_empty() {
                    self.bind(&name, Named::Pack(elements));
                }
                continue;
            }
            self.kernel_parameter(param, &mut position, source);
        }
    }

    /// A lambda that the host passes: what it captures are parameters of the kernel.
    fn with_captures(&mut self, ty: Type, position: u32, site: Site) -> Type {
        let Some(callable) = callable_of(&ty) else {
            return ty;
        };
        let definition = &callable.definition;
        let text = definition.text.text.get(definition.range.clone());
        let words: FxHashSet<&str> = words_in(text.unwrap_or("")).collect();
        let mut captured: Vec<(usize, String, Type)> = Vec::new();
        for (depth, scope) in callable.scopes.iter().enumerate() {
            for (name, meaning) in scope {
                if let Named::Alias(meaning) = meaning
                    && let ExprKind::Opaque(_, parts) = &meaning.kind
                    && parts.is_empty()
                    && words.contains(name.as_str())
                    && meaning.ty.size() > 0
                {
                    captured.push((depth, name.clone(), meaning.ty.clone()));
                }
            }
        }
        if captured.is_empty() {
            return ty;
        }
        captured.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let mut scopes = callable.scopes.clone();
        for (depth, name, ty) in captured {
            let ty = match ty {
                Type::Array(element, _) => Type::Pointer(element, AddressSpace::Global),
                ty => ty,
            };
            let id = self.fresh(&name, ty, Storage::Param(position), site);
            scopes[depth].insert(name, Named::Var(id));
        }
        type_of_callable(Callable {
            definition: callable.definition.clone(),
            scopes,
            bindings: callable.bindings.clone(),
            this: callable.this.clone(),
        })
    }

    fn kernel_parameter(&mut self, param: Node, position: &mut u32, source: Source) {
        let space = space_of(param, source).unwrap_or(self.default_space());
        let Some(base) = param.field(Field::Type) else {
            return;
        };
        let base = self.base_type(base, source);
        let (name, ty, site) = match param.field(Field::Declarator) {
            Some(declarator) => {
                let declared = self.declarator(declarator, base, space, source);
                (declared.name, declared.ty, self.site(declarator, source))
            }
            None => (String::new(), base, self.site(param, source)),
        };
        // An array parameter is a pointer.
        let ty = match ty {
            Type::Array(element, _) => Type::Pointer(element, space),
            ty => ty,
        };
        if matches!(ty, Type::Void) {
            return;
        }
        let storage = match &ty {
            Type::Pointer(_, AddressSpace::Shared) => Storage::DynamicShared,
            _ => Storage::Param(*position),
        };
        *position += 1;
        let ty = self.with_captures(ty, *position - 1, site);
        let object = matches!(ty, Type::Callable(_) | Type::Library(_));
        let id = self.new_var(&name, ty.clone(), storage, site);
        self.vars[id.0 as usize].restrict = is_restrict(param, source);
        self.vars[id.0 as usize].volatile = super::forms::has_word(param, source, "volatile");
        if object {
            let meaning = super::split::list(&ty, Vec::new(), site);
            self.bind(&name, Named::Alias(Box::new(meaning)));
        } else if name.is_empty() {
            let _ = id;
        }
    }
}

/// The arguments of a call as texts: commas in parentheses part none.
fn arguments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found
}

/// True for a parameter that the source calls `restrict`, in whichever spelling.
fn is_restrict(param: Node, source: Source) -> bool {
    let range = param.byte_range();
    let text = source.parsed.text.get(range.clone()).unwrap_or("");
    let written = warplens_syntax::is_restrict(text);
    // The grammar of CUDA does not know all of them: those are blank in the text.
    let blanked = source
        .parsed
        .words
        .iter()
        .any(|word| word.name == "restrict" && range.contains(&word.range.start));
    written || blanked
}
