//! From the syntax tree to the IR.

use std::collections::HashMap;
use std::sync::Arc;

use warplens_syntax::{Document, Language, Node, Parsed, word_argument};

use crate::functions::{self, Function};
use crate::kernel::{
    BinaryOp, Builtin, Expr, ExprKind, Kernel, LoopKind, Stmt, StmtKind, Storage, UnaryOp, Var,
    VarId,
};
use crate::outline::function_declarator;
use crate::types::Struct;
use crate::{AddressSpace, Item, ItemKind, NotUnderstood, Site, Span, Type, Unit};

/// A node's text.
fn text_of<'t>(node: Node, source: Source<'t>) -> &'t str {
    source.parsed.text.get(node.byte_range()).unwrap_or("")
}

/// Macros and device functions nest this deep at most.
const DEEPEST: u32 = 24;
/// A kernel that expands to more expressions than this is cut off, and says so.
const MOST_EXPRESSIONS: u32 = 200_000;

/// Lowers one kernel of a file. `template_args` bind its template parameters by name.
pub fn lower(
    parsed: &Parsed,
    items: &[Item],
    item: &Item,
    unit: &Unit,
    template_args: &[(String, String)],
) -> Option<Kernel> {
    let ItemKind::Kernel(name) = &item.kind else {
        return None;
    };
    let mut unit = unit.clone();
    unit.functions = functions(items);
    let node = definition(parsed, item.range.start..item.range.end)?;
    let mut lowering = Lowering::new(&mut unit, parsed, item.range.start);
    lowering.base_line = item.line;
    lowering.bind_template(node, template_args);
    lowering.kernel(node, name, item)
}

/// Where the functions of a file stand now.
fn functions(items: &[Item]) -> rustc_hash::FxHashMap<String, std::ops::Range<usize>> {
    items
        .iter()
        .filter_map(|item| match &item.kind {
            ItemKind::Function(name) => Some((name.clone(), item.range.clone())),
            _ => None,
        })
        .collect()
}

/// The function definition that ends where the item ends.
fn definition(parsed: &Parsed, range: std::ops::Range<usize>) -> Option<Node<'_>> {
    let root = parsed.tree.root_node();
    let mut node = root.descendant_for_byte_range(range.end - 1, range.end)?;
    loop {
        if node.kind() == "function_definition" && node.end_byte() == range.end {
            return Some(node);
        }
        node = node.parent()?;
    }
}

/// A text being lowered: the file itself, or the expansion of a macro at one place of it.
#[derive(Clone, Copy)]
struct Source<'a> {
    parsed: &'a Parsed,
    /// Where everything of an expansion stands.
    at: Option<Site>,
}

pub(crate) struct Lowering<'a> {
    unit: &'a mut Unit,
    parsed: &'a Parsed,
    base: usize,
    base_line: u32,
    scopes: Vec<HashMap<String, VarId>>,
    vars: Vec<Var>,
    not_understood: Vec<NotUnderstood>,
    template_args: Vec<(String, String)>,
    axes: [bool; 3],
    depth: u32,
    expressions: u32,
    /// Of the device function being inlined: where `return` leaves its value.
    results: Vec<Option<VarId>>,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(unit: &'a mut Unit, parsed: &'a Parsed, base: usize) -> Lowering<'a> {
        Lowering {
            unit,
            parsed,
            base,
            base_line: 0,
            scopes: vec![HashMap::new()],
            vars: Vec::new(),
            not_understood: Vec::new(),
            template_args: Vec::new(),
            axes: [false; 3],
            depth: 0,
            expressions: 0,
            results: Vec::new(),
        }
    }

    fn opencl(&self) -> bool {
        self.unit.language == Language::OpenCl
    }

    fn source(&self) -> Source<'a> {
        Source {
            parsed: self.parsed,
            at: None,
        }
    }

    fn site(&self, node: Node, source: Source) -> Site {
        if let Some(site) = source.at {
            return site;
        }
        let start = node.start_byte().saturating_sub(self.base) as u32;
        let end = node.end_byte().saturating_sub(self.base) as u32;
        Site {
            span: Span { start, end },
            line: (node.start_position().row as u32).saturating_sub(self.base_line),
            column: node.start_position().column as u32,
        }
    }

    fn lost(&mut self, site: Site, reason: &str) {
        self.not_understood.push(NotUnderstood {
            site,
            reason: reason.to_owned(),
        });
    }

    fn new_var(&mut self, name: &str, ty: Type, storage: Storage, site: Site) -> VarId {
        let id = VarId(self.vars.len() as u32);
        self.vars.push(Var {
            name: name.to_owned(),
            ty,
            storage,
            site,
            extent_sites: Vec::new(),
        });
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), id);
        }
        id
    }

    // ---- kernels -------------------------------------------------------------------------------

    fn bind_template(&mut self, node: Node, template_args: &[(String, String)]) {
        let Some(template) = node
            .parent()
            .filter(|parent| parent.kind() == "template_declaration")
        else {
            return;
        };
        let source = self.source();
        let Some(params) = template.child_by_field_name("parameters") else {
            return;
        };
        let mut cursor = params.walk();
        for (position, param) in params.named_children(&mut cursor).enumerate() {
            let Some(name) = last_identifier(param) else {
                continue;
            };
            let name = text_of(name, source).to_owned();
            let given = template_args
                .iter()
                .find(|(of, _)| *of == name || *of == position.to_string())
                .map(|(_, value)| value.clone())
                .or_else(|| {
                    let default = param
                        .child_by_field_name("default_value")
                        .or_else(|| param.child_by_field_name("default_type"))?;
                    Some(text_of(default, source).to_owned())
                });
            let Some(value) = given else { continue };
            if param.kind().contains("type_parameter") {
                if let Some(ty) = self.type_named(value.trim()) {
                    self.unit.types.insert(name.clone(), ty);
                }
            } else if let Some(number) = self.constant_text(&value) {
                self.unit.constants.insert(name.clone(), number);
            }
            self.template_args.push((name, value));
        }
    }

    fn kernel(mut self, node: Node, name: &str, item: &Item) -> Option<Kernel> {
        let source = self.source();
        let declarator = function_declarator(node)?;
        let name_node = declarator.child_by_field_name("declarator")?;
        let name_site = self.site(name_node, source);
        if let Some(params) = declarator.child_by_field_name("parameters") {
            self.parameters(params, source, true);
        }
        let params = self.vars.len() as u32;
        let body_node = node.child_by_field_name("body")?;
        let body = self.block(body_node, source);
        let head = item.range.start..body_node.start_byte();
        let mut max_threads = None;
        let mut required_block = None;
        let words: Vec<_> = self
            .parsed
            .words
            .iter()
            .filter(|w| head.contains(&w.range.start))
            .collect();
        for word in words {
            let argument = word_argument(&self.parsed.text, word);
            if word.name == "launch_bounds" {
                max_threads = argument
                    .split(',')
                    .next()
                    .and_then(|first| self.constant_text(first))
                    .and_then(|value| u64::try_from(value).ok());
            } else if let Some(at) = argument.find("reqd_work_group_size") {
                let inner = argument[at..].split_once('(').map_or("", |(_, rest)| rest);
                let inner = inner.split_once(')').map_or("", |(inside, _)| inside);
                let mut extents = [1u64; 3];
                for (axis, extent) in inner.split(',').take(3).enumerate() {
                    extents[axis] = self
                        .constant_text(extent)
                        .and_then(|value| u64::try_from(value).ok())
                        .unwrap_or(1);
                }
                required_block = Some(extents);
            }
        }
        Some(Kernel {
            name: name.to_owned(),
            name_site,
            language: self.unit.language,
            vars: self.vars,
            params,
            body,
            max_threads,
            required_block,
            template_args: self.template_args,
            axes: self.axes,
            not_understood: self.not_understood,
        })
    }

    /// Declares parameters in the current scope; their ids in order.
    fn parameters(&mut self, params: Node, source: Source, kernel: bool) -> Vec<VarId> {
        let mut ids = Vec::new();
        let mut cursor = params.walk();
        let mut previous_end = params.start_byte() + 1;
        for param in params.children(&mut cursor) {
            let gap = previous_end..param.end_byte();
            if !param.is_named() {
                previous_end = param.end_byte();
                continue;
            }
            if !matches!(
                param.kind(),
                "parameter_declaration" | "optional_parameter_declaration"
            ) {
                continue;
            }
            let space = space_words(source, gap).unwrap_or(if self.opencl() {
                AddressSpace::Private
            } else {
                AddressSpace::Global
            });
            let Some(base) = param
                .child_by_field_name("type")
                .map(|ty| self.base_type(ty, source))
            else {
                continue;
            };
            let (name, ty, site) = match param.child_by_field_name("declarator") {
                Some(declarator) => {
                    let (name, ty, _) = self.declarator(declarator, base, space, source);
                    (name, ty, self.site(declarator, source))
                }
                None => (String::new(), base, self.site(param, source)),
            };
            // An array parameter is a pointer.
            let ty = match ty {
                Type::Array(element, _) => Type::Pointer(element, space),
                ty => ty,
            };
            if matches!(ty, Type::Void) {
                continue;
            }
            let storage = match (&ty, kernel) {
                (Type::Pointer(_, AddressSpace::Shared), true) => Storage::DynamicShared,
                (_, true) => Storage::Param(ids.len() as u32),
                _ => Storage::Local,
            };
            ids.push(self.new_var(&name, ty, storage, site));
        }
        ids
    }

    // ---- types ---------------------------------------------------------------------------------

    fn type_named(&self, name: &str) -> Option<Type> {
        let name = name.trim_start_matches("const ").trim();
        let name = name.strip_prefix("std::").unwrap_or(name);
        if let Some(ty) = self.unit.types.get(name) {
            return Some(ty.clone());
        }
        if let Some(ty) = Type::named(name, self.opencl()) {
            return Some(ty);
        }
        sized(name)
    }

    fn base_type(&mut self, node: Node, source: Source) -> Type {
        match node.kind() {
            "struct_specifier" | "class_specifier" | "union_specifier" => {
                if node.child_by_field_name("body").is_some()
                    && let Some(ty) = self.structure(node, source)
                {
                    return ty;
                }
                let name = node
                    .child_by_field_name("name")
                    .map_or("", |name| text_of(name, source));
                self.type_named(name)
                    .unwrap_or_else(|| Type::Unknown(name.to_owned()))
            }
            "enum_specifier" => Type::INT,
            "type_descriptor" => {
                let base = node
                    .child_by_field_name("type")
                    .map_or(Type::Unknown(String::new()), |ty| {
                        self.base_type(ty, source)
                    });
                match node.child_by_field_name("declarator") {
                    Some(declarator) => {
                        self.declarator(declarator, base, AddressSpace::Global, source)
                            .1
                    }
                    None => base,
                }
            }
            "qualified_identifier" | "scoped_type_identifier" => {
                let name = text_of(node, source);
                let last = name.rsplit("::").next().unwrap_or(name);
                self.type_named(last)
                    .unwrap_or_else(|| Type::Unknown(name.to_owned()))
            }
            _ => {
                let name = text_of(node, source);
                if let Some(text) = self.unit.macros.get(name).map(|m| m.body.clone())
                    && let Some(ty) = self.type_named(&text)
                {
                    return ty;
                }
                self.type_named(name)
                    .unwrap_or_else(|| Type::Unknown(name.to_owned()))
            }
        }
    }

    /// The declared name, its type and the sites of array extents.
    fn declarator(
        &mut self,
        node: Node,
        base: Type,
        space: AddressSpace,
        source: Source,
    ) -> (String, Type, Vec<Site>) {
        match node.kind() {
            "pointer_declarator" | "abstract_pointer_declarator" => {
                let ty = Type::Pointer(Arc::new(base), space);
                match node.child_by_field_name("declarator") {
                    Some(inner) => self.declarator(inner, ty, AddressSpace::Global, source),
                    None => (String::new(), ty, Vec::new()),
                }
            }
            "array_declarator" | "abstract_array_declarator" => {
                let size = node.child_by_field_name("size");
                let extent = size
                    .and_then(|size| {
                        let size = self.expr(size, source);
                        constant(&size)
                    })
                    .and_then(|extent| u64::try_from(extent).ok());
                let site = size.map(|size| self.site(size, source));
                let ty = Type::Array(Arc::new(base), extent);
                // The inner declarator is the outer dimension: a[2][3] is (a[2])[3].
                let (name, ty, mut sites) = match node.child_by_field_name("declarator") {
                    Some(inner) => self.declarator(inner, ty, space, source),
                    None => (String::new(), ty, Vec::new()),
                };
                sites.extend(site);
                (name, ty, sites)
            }
            "reference_declarator"
            | "parenthesized_declarator"
            | "abstract_reference_declarator"
            | "attributed_declarator" => match node.named_child(0) {
                Some(inner) => self.declarator(inner, base, space, source),
                None => (String::new(), base, Vec::new()),
            },
            "init_declarator" => match node.child_by_field_name("declarator") {
                Some(inner) => self.declarator(inner, base, space, source),
                None => (String::new(), base, Vec::new()),
            },
            _ => (text_of(node, source).to_owned(), base, Vec::new()),
        }
    }

    fn structure(&mut self, node: Node, source: Source) -> Option<Type> {
        let body = node.child_by_field_name("body")?;
        let name = node
            .child_by_field_name("name")
            .map(|name| text_of(name, source).to_owned())
            .unwrap_or_default();
        let head = node.start_byte()..body.start_byte();
        let align = source
            .parsed
            .words
            .iter()
            .filter(|word| head.contains(&word.range.start) && word.name.contains("align"))
            .filter_map(|word| self.constant_text(word_argument(&source.parsed.text, word)))
            .max()
            .unwrap_or(1);
        let mut fields = Vec::new();
        let mut cursor = body.walk();
        for child in body.named_children(&mut cursor) {
            if child.kind() != "field_declaration" {
                continue;
            }
            let Some(base) = child
                .child_by_field_name("type")
                .map(|ty| self.base_type(ty, source))
            else {
                continue;
            };
            let mut inner = child.walk();
            let declarators: Vec<Node> = child
                .children_by_field_name("declarator", &mut inner)
                .collect();
            for declarator in declarators {
                if declarator.kind() == "function_declarator" {
                    continue;
                }
                let (name, ty, _) =
                    self.declarator(declarator, base.clone(), AddressSpace::Global, source);
                fields.push((name, ty));
            }
        }
        let union = node.kind() == "union_specifier";
        let structure = Struct::new(&name, fields, union, align.max(1) as u64);
        if !name.is_empty() {
            self.unit.add_struct(structure.clone());
        }
        Some(Type::Struct(Arc::new(structure)))
    }

    /// A structure or enumeration at file scope.
    pub(crate) fn declare_type(&mut self, node: Node) {
        let source = self.source();
        if node.kind() == "enum_specifier" {
            self.enumeration(node, source);
        } else {
            self.structure(node, source);
        }
        if let Some(name) = node.child_by_field_name("name")
            && node.kind() == "enum_specifier"
        {
            let name = text_of(name, source).to_owned();
            self.unit.types.insert(name, Type::INT);
        }
    }

    fn enumeration(&mut self, node: Node, source: Source) {
        let Some(body) = node.child_by_field_name("body") else {
            return;
        };
        let mut next = 0;
        let mut cursor = body.walk();
        let children: Vec<Node> = body.named_children(&mut cursor).collect();
        for child in children {
            if child.kind() != "enumerator" {
                continue;
            }
            if let Some(value) = child.child_by_field_name("value") {
                let value = self.expr(value, source);
                next = constant(&value).unwrap_or(next);
            }
            if let Some(name) = child.child_by_field_name("name") {
                let name = text_of(name, source).to_owned();
                self.unit.constants.insert(name, next);
            }
            next += 1;
        }
    }

    /// `typedef … name;` and `using name = …;`.
    pub(crate) fn typedefs(&mut self, node: Node) -> Vec<(String, Type)> {
        let source = self.source();
        let Some(ty) = node.child_by_field_name("type") else {
            return Vec::new();
        };
        if ty.kind() == "enum_specifier" {
            self.enumeration(ty, source);
        }
        let base = self.base_type(ty, source);
        if node.kind() == "alias_declaration" {
            let name = node
                .child_by_field_name("name")
                .map_or("", |name| text_of(name, source));
            return vec![(name.to_owned(), base)];
        }
        let mut cursor = node.walk();
        let declarators: Vec<Node> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        declarators
            .into_iter()
            .map(|declarator| {
                let (name, ty, _) =
                    self.declarator(declarator, base.clone(), AddressSpace::Global, source);
                let ty = match ty {
                    Type::Struct(structure) if structure.name.is_empty() => {
                        Type::Struct(Arc::new(Struct {
                            name: name.clone(),
                            ..(*structure).clone()
                        }))
                    }
                    ty => ty,
                };
                (name, ty)
            })
            .collect()
    }

    /// Integer constants and device variables of a declaration at file scope.
    #[allow(clippy::type_complexity, reason = "two lists, used once")]
    pub(crate) fn file_variables(
        &mut self,
        node: Node,
    ) -> (Vec<(String, i64)>, Vec<(String, (Type, AddressSpace))>) {
        let source = self.source();
        let (mut constants, mut globals) = (Vec::new(), Vec::new());
        let Some(base) = node
            .child_by_field_name("type")
            .map(|ty| self.base_type(ty, source))
        else {
            return (constants, globals);
        };
        let words = space_words(
            source,
            node.start_byte().saturating_sub(16)..node.start_byte() + 1,
        );
        let head = text_of(node, source);
        let head = &head[..head.find(['=', ';', '[']).unwrap_or(head.len())];
        let space = if head.contains("__constant__") || words == Some(AddressSpace::Constant) {
            Some(AddressSpace::Constant)
        } else if head.contains("__device__") || head.contains("__managed__") {
            Some(AddressSpace::Global)
        } else {
            None
        };
        let is_constant = head.contains("const");
        let mut cursor = node.walk();
        let declarators: Vec<Node> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        for declarator in declarators {
            let (name, ty, _) =
                self.declarator(declarator, base.clone(), AddressSpace::Global, source);
            if let Some(space) = space {
                globals.push((name, (ty, space)));
            } else if is_constant && ty.is_int() {
                let Some(value) = declarator.child_by_field_name("value") else {
                    continue;
                };
                let value = self.expr(value, source);
                if let Some(value) = constant(&value) {
                    constants.push((name.clone(), value));
                    self.unit.constants.insert(name, value);
                }
            }
        }
        (constants, globals)
    }

    // ---- constants -----------------------------------------------------------------------------

    /// The value of an integer expression written as text.
    pub(crate) fn constant_text(&mut self, text: &str) -> Option<i64> {
        let expression = self.expansion(text, Site::default())?;
        constant(&expression)
    }

    /// The value of an expression of the file.
    pub(crate) fn constant_node(&mut self, node: Node) -> Option<i64> {
        let source = self.source();
        let expression = self.expr(node, source);
        constant(&expression)
    }

    /// Lowers a text that is not in the file, as if all of it stood at one place.
    fn expansion(&mut self, text: &str, at: Site) -> Option<Expr> {
        let text = text.trim();
        if text.is_empty() || self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let document = Document::new(&format!("int w=({text});"), self.unit.language);
        let parsed = Arc::clone(document.parsed());
        let result = find_kind(parsed.tree.root_node(), "init_declarator")
            .and_then(|init| init.child_by_field_name("value"))
            .filter(|value| !value.has_error())
            .map(|value| {
                self.expr(
                    value,
                    Source {
                        parsed: &parsed,
                        at: Some(at),
                    },
                )
            });
        self.depth -= 1;
        result
    }

    // ---- statements ----------------------------------------------------------------------------

    fn block(&mut self, node: Node, source: Source) -> Vec<Stmt> {
        self.scopes.push(HashMap::new());
        let mut out = Vec::new();
        if node.kind() == "compound_statement" {
            let mut cursor = node.walk();
            let children: Vec<Node> = node.named_children(&mut cursor).collect();
            for child in children {
                self.statement(child, source, &mut out);
            }
        } else {
            self.statement(node, source, &mut out);
        }
        self.scopes.pop();
        out
    }

    fn statement(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        let unknown = |lowering: &mut Self, reason: &str| {
            lowering.lost(site, reason);
            Stmt {
                kind: StmtKind::Unknown(reason.to_owned()),
                site,
            }
        };
        if self.expressions > MOST_EXPRESSIONS || self.depth > DEEPEST {
            let lost = unknown(self, "expands to too much");
            out.push(lost);
            return;
        }
        match node.kind() {
            "comment"
            | "preproc_call"
            | "preproc_include"
            | "static_assert_declaration"
            | "using_declaration"
            | ";"
            | "attributed_statement" => {
                if node.kind() == "attributed_statement"
                    && let Some(inner) =
                        node.named_child(node.named_child_count().saturating_sub(1) as u32)
                {
                    self.statement(inner, source, out);
                }
            }
            "preproc_def" | "preproc_function_def" => {}
            "ERROR" => {
                let lost = unknown(self, "syntax error");
                out.push(lost);
            }
            "compound_statement" => {
                let body = self.block(node, source);
                out.push(Stmt {
                    kind: StmtKind::Block(body),
                    site,
                });
            }
            "expression_statement" => {
                let Some(inner) = node.named_child(0) else {
                    return;
                };
                if node.has_error() {
                    let lost = unknown(self, "syntax error");
                    out.push(lost);
                    return;
                }
                let kind = if Self::barrier(inner, source) {
                    StmtKind::Barrier
                } else {
                    StmtKind::Expr(self.expr(inner, source))
                };
                out.push(Stmt {
                    kind,
                    site: self.site(inner, source),
                });
            }
            "declaration" => self.declaration(node, source, out),
            "type_definition" | "alias_declaration" => {
                let found = self.typedefs(node);
                self.unit.types.extend(found);
            }
            "struct_specifier" | "enum_specifier" | "union_specifier" => self.declare_type(node),
            "if_statement" => {
                let mut init = Vec::new();
                self.scopes.push(HashMap::new());
                let condition = node.child_by_field_name("condition");
                let Some(condition) = self.condition(condition, source, &mut init) else {
                    self.scopes.pop();
                    let lost = unknown(self, "condition not understood");
                    out.push(lost);
                    return;
                };
                let taken = node
                    .child_by_field_name("consequence")
                    .map(|taken| self.block(taken, source))
                    .unwrap_or_default();
                let other = node
                    .child_by_field_name("alternative")
                    .and_then(|other| {
                        if other.kind() == "else_clause" {
                            other.named_child(0)
                        } else {
                            Some(other)
                        }
                    })
                    .map(|other| self.block(other, source))
                    .unwrap_or_default();
                self.scopes.pop();
                out.extend(init);
                let condition_site = condition.site;
                out.push(Stmt {
                    kind: StmtKind::If(condition, taken, other),
                    site: condition_site,
                });
            }
            "for_statement" | "while_statement" | "do_statement" => self.looping(node, source, out),
            "for_range_loop" => {
                let lost = unknown(self, "range-based for");
                out.push(lost);
            }
            "switch_statement" => self.switch(node, source, out),
            "return_statement" => {
                let value = node.named_child(0).map(|value| self.expr(value, source));
                match self.results.last().copied() {
                    Some(Some(result)) => {
                        if let Some(value) = value {
                            let ty = self.vars[result.0 as usize].ty.clone();
                            let target = Expr {
                                kind: ExprKind::Var(result),
                                ty: ty.clone(),
                                site,
                            };
                            let kind = ExprKind::Assign(None, Box::new(target), Box::new(value));
                            out.push(Stmt {
                                kind: StmtKind::Expr(Expr { kind, ty, site }),
                                site,
                            });
                        }
                        out.push(Stmt {
                            kind: StmtKind::Return(None),
                            site,
                        });
                    }
                    _ => out.push(Stmt {
                        kind: StmtKind::Return(value),
                        site,
                    }),
                }
            }
            "break_statement" => out.push(Stmt {
                kind: StmtKind::Break,
                site,
            }),
            "continue_statement" => out.push(Stmt {
                kind: StmtKind::Continue,
                site,
            }),
            "labeled_statement" | "goto_statement" => {
                let lost = unknown(self, "goto");
                out.push(lost);
            }
            "asm_statement" | "gnu_asm_expression" => {
                let lost = unknown(self, "inline assembly");
                out.push(lost);
            }
            kind if kind.starts_with("preproc_if") => {
                let lost = unknown(self, "conditional compilation inside a kernel");
                out.push(lost);
            }
            _ => {
                let lost = unknown(self, "statement not understood");
                out.push(lost);
            }
        }
    }

    /// `__syncthreads()` and its like; `block.sync()` of cooperative groups among them.
    fn barrier(node: Node, source: Source) -> bool {
        if node.kind() != "call_expression" {
            return false;
        }
        let Some(function) = node.child_by_field_name("function") else {
            return false;
        };
        let name = text_of(function, source);
        functions::is_barrier(name)
            || name == "cg::sync"
            || name == "cooperative_groups::sync"
            || (function.kind() == "field_expression"
                && function
                    .child_by_field_name("field")
                    .is_some_and(|field| text_of(field, source) == "sync")
                && function
                    .child_by_field_name("argument")
                    .is_some_and(|argument| {
                        let argument = text_of(argument, source);
                        argument.contains("block") || argument == "cta" || argument == "tb"
                    }))
    }

    fn condition(
        &mut self,
        node: Option<Node>,
        source: Source,
        init: &mut Vec<Stmt>,
    ) -> Option<Expr> {
        let node = node.filter(|node| !node.has_error())?;
        if node.kind() == "condition_clause" {
            if let Some(before) = node.child_by_field_name("initializer") {
                self.statement(before, source, init);
            }
            let value = node.child_by_field_name("value")?;
            if value.kind() == "declaration" {
                return None;
            }
            return Some(self.expr(value, source));
        }
        Some(self.expr(node, source))
    }

    fn looping(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        self.scopes.push(HashMap::new());
        let mut init = Vec::new();
        let (mut condition, mut step) = (None, None);
        let mut broken = false;
        if node.kind() == "for_statement" {
            if let Some(initializer) = node.child_by_field_name("initializer") {
                if initializer.kind() == "declaration" {
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
            if let Some(test) = node.child_by_field_name("condition") {
                broken |= test.has_error();
                condition = Some(self.expr(test, source));
            }
            step = node
                .child_by_field_name("update")
                .map(|update| self.expr(update, source));
        } else {
            let test = node.child_by_field_name("condition");
            condition = self.condition(test, source, &mut init);
            broken |= condition.is_none();
        }
        let body = node
            .child_by_field_name("body")
            .map(|body| self.block(body, source))
            .unwrap_or_default();
        self.scopes.pop();
        if broken {
            self.lost(site, "loop condition not understood");
        }
        let kind = if node.kind() == "do_statement" {
            LoopKind::Do
        } else {
            LoopKind::For
        };
        let head = condition.as_ref().map_or(site, |condition| condition.site);
        out.push(Stmt {
            kind: StmtKind::Loop {
                kind,
                init,
                condition,
                step,
                body,
            },
            site: head,
        });
    }

    /// A switch whose cases end in `break` or `return` becomes a chain of ifs.
    fn switch(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        let site = self.site(node, source);
        let mut init = Vec::new();
        let value = self.condition(node.child_by_field_name("condition"), source, &mut init);
        let (Some(value), Some(body)) = (value, node.child_by_field_name("body")) else {
            self.lost(site, "switch not understood");
            out.push(Stmt {
                kind: StmtKind::Unknown("switch not understood".to_owned()),
                site,
            });
            return;
        };
        out.extend(init);
        let mut cursor = body.walk();
        let cases: Vec<Node> = body
            .named_children(&mut cursor)
            .filter(|child| child.kind() == "case_statement")
            .collect();
        let mut arms: Vec<(Option<Expr>, Vec<Stmt>)> = Vec::new();
        let mut pending: Vec<Expr> = Vec::new();
        let mut pending_default = false;
        for case in cases {
            let label = case.child_by_field_name("value");
            match label {
                Some(label) => {
                    let label = self.expr(label, source);
                    pending.push(Expr {
                        site: value.site,
                        ty: Type::INT,
                        kind: ExprKind::Binary(
                            BinaryOp::Eq,
                            Box::new(value.clone()),
                            Box::new(label),
                        ),
                    });
                }
                None => pending_default = true,
            }
            let mut statements = Vec::new();
            self.scopes.push(HashMap::new());
            let mut cursor = case.walk();
            let children: Vec<Node> = case
                .named_children(&mut cursor)
                .filter(|child| Some(child.id()) != label.map(|label| label.id()))
                .collect();
            for child in children {
                self.statement(child, source, &mut statements);
            }
            self.scopes.pop();
            if statements.is_empty() {
                continue;
            }
            match statements.last().map(|last| &last.kind) {
                Some(StmtKind::Break) => {
                    statements.pop();
                }
                Some(StmtKind::Return(_) | StmtKind::Continue) => {}
                _ if case.next_named_sibling().is_none() => {}
                _ => {
                    self.lost(site, "switch falls through");
                    out.push(Stmt {
                        kind: StmtKind::Unknown("switch falls through".to_owned()),
                        site,
                    });
                    return;
                }
            }
            let test = if pending_default {
                pending.clear();
                None
            } else {
                std::mem::take(&mut pending)
                    .into_iter()
                    .reduce(|a, b| Expr {
                        site: a.site,
                        ty: Type::INT,
                        kind: ExprKind::Binary(BinaryOp::LogicalOr, Box::new(a), Box::new(b)),
                    })
            };
            pending_default = false;
            arms.push((test, statements));
        }
        let mut chain: Vec<Stmt> = Vec::new();
        let default = arms
            .iter()
            .position(|(test, _)| test.is_none())
            .map(|at| arms.remove(at));
        if let Some((_, statements)) = default {
            chain = statements;
        }
        for (test, statements) in arms.into_iter().rev() {
            let Some(test) = test else { continue };
            let site = test.site;
            chain = vec![Stmt {
                kind: StmtKind::If(test, statements, chain),
                site,
            }];
        }
        out.extend(chain);
    }

    fn declaration(&mut self, node: Node, source: Source, out: &mut Vec<Stmt>) {
        if node.has_error() {
            let site = self.site(node, source);
            self.lost(site, "syntax error");
            out.push(Stmt {
                kind: StmtKind::Unknown("syntax error".to_owned()),
                site,
            });
        }
        let Some(type_node) = node.child_by_field_name("type") else {
            return;
        };
        let base = self.base_type(type_node, source);
        let before = source.parsed.text[..node.start_byte()]
            .rfind([';', '{', '}', '('])
            .map_or(node.start_byte(), |at| at + 1);
        let words = space_words(source, before..node.end_byte());
        let head = text_of(node, source);
        let head = &head[..head.find(['=', ';', '[']).unwrap_or(head.len())];
        let shared = head.contains("__shared__");
        let external = head.contains("extern");
        let mut cursor = node.walk();
        let declarators: Vec<Node> = node
            .children_by_field_name("declarator", &mut cursor)
            .collect();
        for declarator in declarators {
            let site = self.site(declarator, source);
            let value = declarator.child_by_field_name("value");
            let space = words.unwrap_or(AddressSpace::Global);
            let (name, mut ty, extent_sites) =
                self.declarator(declarator, base.clone(), space, source);
            // A local array in OpenCL; a pointer to local memory is not one.
            let local_array =
                words == Some(AddressSpace::Shared) && !matches!(ty, Type::Pointer(..));
            let storage = if (shared || local_array) && external {
                Storage::DynamicShared
            } else if shared || local_array {
                Storage::Shared
            } else {
                Storage::Local
            };
            let init = match value {
                Some(value) if value.kind() == "argument_list" => {
                    let mut arguments = self.arguments(value, source);
                    match (arguments.len(), &ty) {
                        (1, _) => arguments.pop(),
                        _ => Some(Expr {
                            kind: ExprKind::List(arguments),
                            ty: ty.clone(),
                            site,
                        }),
                    }
                }
                Some(value) => Some(self.expr(value, source)),
                None => None,
            };
            if matches!(&ty, Type::Unknown(name) if name == "auto")
                && let Some(init) = &init
            {
                ty = init.ty.clone();
            }
            let declared = match declarator.kind() {
                "init_declarator" => declarator.child_by_field_name("declarator"),
                _ => Some(declarator),
            };
            let site = declared.map_or(site, |declared| self.site(declared, source));
            let id = self.new_var(&name, ty, storage, site);
            self.vars[id.0 as usize].extent_sites = extent_sites;
            out.push(Stmt {
                kind: StmtKind::Declare(id, init),
                site,
            });
        }
    }

    // ---- expressions ---------------------------------------------------------------------------

    fn arguments(&mut self, node: Node, source: Source) -> Vec<Expr> {
        let mut cursor = node.walk();
        let children: Vec<Node> = node
            .named_children(&mut cursor)
            .filter(|child| child.kind() != "comment")
            .collect();
        children
            .into_iter()
            .map(|child| self.expr(child, source))
            .collect()
    }

    fn opaque(&mut self, node: Node, source: Source, reason: &str, parts: Vec<Expr>) -> Expr {
        let site = self.site(node, source);
        self.lost(site, reason);
        Expr {
            kind: ExprKind::Opaque(reason.to_owned(), parts),
            ty: Type::Unknown(String::new()),
            site,
        }
    }

    fn expr(&mut self, node: Node, source: Source) -> Expr {
        self.expressions += 1;
        let site = self.site(node, source);
        let make = |kind, ty| Expr { kind, ty, site };
        if self.expressions > MOST_EXPRESSIONS {
            return make(
                ExprKind::Opaque("expands to too much".to_owned(), Vec::new()),
                Type::INT,
            );
        }
        let field = |name: &str| node.child_by_field_name(name);
        match node.kind() {
            "number_literal" => {
                let (kind, ty) = number(text_of(node, source), self.opencl());
                make(kind, ty)
            }
            "true" => make(
                ExprKind::Int(1),
                Type::Int {
                    bits: 8,
                    signed: false,
                },
            ),
            "false" | "null" | "nullptr" | "NULL" => make(ExprKind::Int(0), Type::INT),
            "char_literal" => {
                let text = text_of(node, source).trim_matches('\'');
                let value = text.chars().next().map_or(0, |c| c as i64);
                make(
                    ExprKind::Int(value),
                    Type::Int {
                        bits: 8,
                        signed: true,
                    },
                )
            }
            "string_literal" | "concatenated_string" | "raw_string_literal" => make(
                ExprKind::List(Vec::new()),
                Type::Unknown("string".to_owned()),
            ),
            "identifier" | "type_identifier" | "qualified_identifier" => {
                let name = text_of(node, source);
                self.name(name, node, source)
            }
            "parenthesized_expression" => match node.named_child(0) {
                Some(inner) => {
                    let inner = self.expr(inner, source);
                    Expr { site, ..inner }
                }
                None => self.opaque(node, source, "syntax error", Vec::new()),
            },
            "binary_expression" => self.binary(node, source),
            "unary_expression" => {
                let Some(argument) = field("argument") else {
                    return self.opaque(node, source, "syntax error", Vec::new());
                };
                let operator = field("operator").map_or("", |op| text_of(op, source));
                let argument = self.expr(argument, source);
                let ty = argument.ty.common(&Type::INT);
                match operator {
                    "-" => match argument.kind {
                        ExprKind::Int(value) => make(ExprKind::Int(value.wrapping_neg()), ty),
                        _ => make(ExprKind::Unary(UnaryOp::Neg, Box::new(argument)), ty),
                    },
                    "+" => argument,
                    "!" => make(ExprKind::Unary(UnaryOp::Not, Box::new(argument)), Type::INT),
                    _ => make(ExprKind::Unary(UnaryOp::BitNot, Box::new(argument)), ty),
                }
            }
            "pointer_expression" => {
                let Some(argument) = field("argument") else {
                    return self.opaque(node, source, "syntax error", Vec::new());
                };
                let operator = field("operator").map_or("", |op| text_of(op, source));
                let argument = self.expr(argument, source);
                if operator == "&" {
                    let ty = Type::Pointer(Arc::new(argument.ty.clone()), AddressSpace::Global);
                    return make(ExprKind::AddressOf(Box::new(argument)), ty);
                }
                let ty = argument
                    .ty
                    .element()
                    .cloned()
                    .unwrap_or(Type::Unknown(String::new()));
                make(ExprKind::Deref(Box::new(argument)), ty)
            }
            "subscript_expression" => {
                let (Some(base), Some(indices)) = (field("argument"), field("indices")) else {
                    return self.opaque(node, source, "syntax error", Vec::new());
                };
                let mut result = self.expr(base, source);
                for index in self.arguments(indices, source) {
                    let ty = match &result.ty {
                        Type::Vector(element, _) => (**element).clone(),
                        ty => ty
                            .element()
                            .cloned()
                            .unwrap_or(Type::Unknown(String::new())),
                    };
                    result = Expr {
                        kind: ExprKind::Index(Box::new(result), Box::new(index)),
                        ty,
                        site,
                    };
                }
                result
            }
            "field_expression" => self.field(node, source),
            "assignment_expression" => {
                let (Some(left), Some(right)) = (field("left"), field("right")) else {
                    return self.opaque(node, source, "syntax error", Vec::new());
                };
                let operator = field("operator").map_or("=", |op| text_of(op, source));
                let left = self.expr(left, source);
                let right = self.expr(right, source);
                let op = binary_op(operator.trim_end_matches('='));
                let ty = left.ty.clone();
                let op = if operator == "=" { None } else { op };
                make(ExprKind::Assign(op, Box::new(left), Box::new(right)), ty)
            }
            "update_expression" => {
                let Some(argument) = field("argument") else {
                    return self.opaque(node, source, "syntax error", Vec::new());
                };
                let by = if text_of(node, source).contains("++") {
                    1
                } else {
                    -1
                };
                let postfix = argument.start_byte() == node.start_byte();
                let argument = self.expr(argument, source);
                let ty = argument.ty.clone();
                make(ExprKind::Step(by, postfix, Box::new(argument)), ty)
            }
            "conditional_expression" => {
                let (Some(c), Some(a), Some(b)) = (
                    field("condition"),
                    field("consequence"),
                    field("alternative"),
                ) else {
                    return self.opaque(node, source, "syntax error", Vec::new());
                };
                let (c, a, b) = (
                    self.expr(c, source),
                    self.expr(a, source),
                    self.expr(b, source),
                );
                let ty = a.ty.common(&b.ty);
                make(ExprKind::Select(Box::new(c), Box::new(a), Box::new(b)), ty)
            }
            "cast_expression" => {
                let (Some(ty), Some(value)) = (field("type"), field("value")) else {
                    return self.opaque(node, source, "syntax error", Vec::new());
                };
                let ty = self.base_type(ty, source);
                let value = self.expr(value, source);
                // OpenCL's vector literal: (float4)(a, b, c, d).
                if matches!(ty, Type::Vector(..)) {
                    return make(ExprKind::List(vec![value]), ty);
                }
                make(ExprKind::Cast(true, Box::new(value)), ty)
            }
            "comma_expression" => {
                let mut parts = Vec::new();
                if let Some(left) = field("left") {
                    parts.push(self.expr(left, source));
                }
                if let Some(right) = field("right") {
                    parts.push(self.expr(right, source));
                }
                let ty = parts.last().map_or(Type::Void, |last| last.ty.clone());
                make(ExprKind::List(parts), ty)
            }
            "sizeof_expression" => {
                let size = if let Some(ty) = field("type") {
                    self.base_type(ty, source).size()
                } else if let Some(value) = field("value") {
                    // Nothing of it is executed.
                    let (lost, vars) = (self.not_understood.len(), self.vars.len());
                    let size = self.expr(value, source).ty.size();
                    self.not_understood.truncate(lost);
                    self.vars.truncate(vars);
                    size
                } else {
                    0
                };
                make(ExprKind::Int(size as i64), Type::SIZE)
            }
            "initializer_list" | "compound_literal_expression" => {
                let list = field("value").unwrap_or(node);
                let parts = self.arguments(list, source);
                make(ExprKind::List(parts), Type::Unknown("list".to_owned()))
            }
            "call_expression" => self.call(node, source),
            "comment" => make(ExprKind::List(Vec::new()), Type::Void),
            kind => {
                let reason = match kind {
                    "lambda_expression" => "lambda",
                    "ERROR" => "syntax error",
                    "new_expression" | "delete_expression" => "new or delete in a kernel",
                    _ => "expression not understood",
                };
                self.opaque(node, source, reason, Vec::new())
            }
        }
    }

    fn name(&mut self, name: &str, node: Node, source: Source) -> Expr {
        let site = self.site(node, source);
        let make = |kind, ty| Expr { kind, ty, site };
        if let Some(&id) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            let ty = self.vars[id.0 as usize].ty.clone();
            return make(ExprKind::Var(id), ty);
        }
        if let Some(found) = self.unit.macros.get(name)
            && found.params.is_none()
        {
            let body = found.body.clone();
            if let Some(expression) = self.expansion(&body, source.at.unwrap_or(site)) {
                return Expr { site, ..expression };
            }
        }
        let last = name.rsplit("::").next().unwrap_or(name);
        if let Some(&value) = self.unit.constants.get(last) {
            return make(ExprKind::Int(value), Type::INT);
        }
        if let Some((ty, space)) = self.unit.globals.get(last).cloned() {
            let storage = match space {
                AddressSpace::Constant => Storage::Constant,
                _ => Storage::Global,
            };
            // Declared once for the kernel, in its outermost scope.
            let id = VarId(self.vars.len() as u32);
            self.vars.push(Var {
                name: last.to_owned(),
                ty: ty.clone(),
                storage,
                site,
                extent_sites: Vec::new(),
            });
            self.scopes[0].insert(last.to_owned(), id);
            return make(ExprKind::Var(id), ty);
        }
        let known = match name {
            "warpSize" => Some(ExprKind::Builtin(Builtin::WarpSize)),
            "INT_MAX" => Some(ExprKind::Int(i64::from(i32::MAX))),
            "FLT_MAX" | "INFINITY" | "M_PI" | "DBL_MAX" | "FLT_EPSILON" | "HUGE_VALF"
            | "FLT_MIN" => {
                return make(ExprKind::Float, Type::FLOAT);
            }
            "CLK_LOCAL_MEM_FENCE" | "CLK_GLOBAL_MEM_FENCE" => Some(ExprKind::Int(1)),
            "hipThreadIdx_x" => Some(self.thread(0)),
            "hipThreadIdx_y" => Some(self.thread(1)),
            "hipThreadIdx_z" => Some(self.thread(2)),
            "hipBlockIdx_x" => Some(ExprKind::Builtin(Builtin::BlockIdx(0))),
            "hipBlockIdx_y" => Some(ExprKind::Builtin(Builtin::BlockIdx(1))),
            "hipBlockIdx_z" => Some(ExprKind::Builtin(Builtin::BlockIdx(2))),
            "hipBlockDim_x" => Some(ExprKind::Builtin(Builtin::BlockDim(0))),
            "hipBlockDim_y" => Some(ExprKind::Builtin(Builtin::BlockDim(1))),
            "hipBlockDim_z" => Some(ExprKind::Builtin(Builtin::BlockDim(2))),
            "hipGridDim_x" => Some(ExprKind::Builtin(Builtin::GridDim(0))),
            _ => None,
        };
        match known {
            Some(kind) => make(kind, Type::INT),
            None => self.opaque(
                node,
                source,
                "name not declared in what was read",
                Vec::new(),
            ),
        }
    }

    fn thread(&mut self, axis: u8) -> ExprKind {
        self.axes[axis as usize] = true;
        ExprKind::Builtin(Builtin::ThreadIdx(axis))
    }

    fn binary(&mut self, node: Node, source: Source) -> Expr {
        let site = self.site(node, source);
        let (Some(left), Some(right)) = (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        ) else {
            return self.opaque(node, source, "syntax error", Vec::new());
        };
        let operator = node
            .child_by_field_name("operator")
            .map_or("", |op| text_of(op, source));
        let (left, right) = (self.expr(left, source), self.expr(right, source));
        let Some(op) = binary_op(operator) else {
            return self.opaque(node, source, "operator not understood", vec![left, right]);
        };
        let ty = match op {
            BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::LogicalAnd
            | BinaryOp::LogicalOr => Type::INT,
            BinaryOp::Shl | BinaryOp::Shr => left.ty.common(&Type::INT),
            _ => left.ty.common(&right.ty),
        };
        let whole = Expr {
            kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
            ty: ty.clone(),
            site,
        };
        match constant(&whole) {
            Some(value) if ty.is_int() => Expr {
                kind: ExprKind::Int(value),
                ty,
                site,
            },
            _ => whole,
        }
    }

    fn field(&mut self, node: Node, source: Source) -> Expr {
        let site = self.site(node, source);
        let (Some(base), Some(name)) = (
            node.child_by_field_name("argument"),
            node.child_by_field_name("field"),
        ) else {
            return self.opaque(node, source, "syntax error", Vec::new());
        };
        let name = text_of(name, source).to_owned();
        let base_text = text_of(base, source);
        let axis = match name.as_str() {
            "x" => Some(0u8),
            "y" => Some(1),
            "z" => Some(2),
            _ => None,
        };
        let declared = self
            .scopes
            .iter()
            .any(|scope| scope.contains_key(base_text));
        if let (Some(axis), false) = (axis, declared) {
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
        let arrow = node
            .child_by_field_name("operator")
            .is_some_and(|operator| text_of(operator, source) == "->");
        let mut base = self.expr(base, source);
        if arrow {
            let ty = base
                .ty
                .element()
                .cloned()
                .unwrap_or(Type::Unknown(String::new()));
            let inner = base.site;
            base = Expr {
                kind: ExprKind::Deref(Box::new(base)),
                ty,
                site: inner,
            };
        }
        match &base.ty {
            Type::Struct(structure) => {
                if let Some(found) = structure.fields.iter().find(|field| field.name == name) {
                    let (ty, offset) = (found.ty.clone(), found.offset);
                    return Expr {
                        kind: ExprKind::Field(Box::new(base), offset),
                        ty,
                        site,
                    };
                }
            }
            Type::Vector(element, lanes) => {
                if let Some((first, count)) = swizzle(&name, *lanes) {
                    let offset = u64::from(first) * element.size();
                    let ty = if count == 1 {
                        (**element).clone()
                    } else {
                        Type::Vector(Arc::clone(element), count)
                    };
                    return Expr {
                        kind: ExprKind::Field(Box::new(base), offset),
                        ty,
                        site,
                    };
                }
            }
            _ => {}
        }
        self.opaque(
            node,
            source,
            "field of a type not declared in what was read",
            vec![base],
        )
    }

    fn call(&mut self, node: Node, source: Source) -> Expr {
        let site = self.site(node, source);
        let make = |kind, ty| Expr { kind, ty, site };
        let (Some(function), Some(list)) = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        ) else {
            return self.opaque(node, source, "syntax error", Vec::new());
        };
        let name = text_of(function, source).to_owned();
        if function.kind() == "template_function" {
            let base = function
                .child_by_field_name("name")
                .map_or("", |n| text_of(n, source));
            if matches!(base, "reinterpret_cast" | "static_cast" | "const_cast") {
                let ty = function
                    .child_by_field_name("arguments")
                    .and_then(|arguments| arguments.named_child(0))
                    .map_or(Type::Unknown(String::new()), |ty| {
                        self.base_type(ty, source)
                    });
                let mut arguments = self.arguments(list, source);
                let Some(value) = arguments.pop() else {
                    return self.opaque(node, source, "syntax error", Vec::new());
                };
                return make(ExprKind::Cast(true, Box::new(value)), ty);
            }
        }
        let plain = name.split('<').next().unwrap_or(&name).trim().to_owned();
        if let Some(found) = self.unit.macros.get(&plain)
            && let Some(params) = found.params.clone()
        {
            let body = found.body.clone();
            let mut cursor = list.walk();
            let arguments: Vec<String> = list
                .named_children(&mut cursor)
                .map(|argument| text_of(argument, source).to_owned())
                .collect();
            let expanded = substitute(&body, &params, &arguments);
            if let Some(expression) = self.expansion(&expanded, source.at.unwrap_or(site)) {
                return Expr { site, ..expression };
            }
        }
        if let Some(expression) = self.work_item(&plain, list, source, site) {
            return expression;
        }
        if let Some(ty) = self.type_named(&plain).or_else(|| {
            plain
                .strip_prefix("make_")
                .and_then(|vector| Type::named(vector, false))
        }) {
            let mut arguments = self.arguments(list, source);
            if arguments.len() == 1 && !matches!(ty, Type::Vector(..) | Type::Struct(_)) {
                let value = arguments.remove(0);
                return make(ExprKind::Cast(true, Box::new(value)), ty);
            }
            return make(ExprKind::List(arguments), ty);
        }
        if let Some(range) = self.unit.functions.get(&plain).cloned() {
            return self.inline(&plain, range, list, source, site);
        }
        let arguments = self.arguments(list, source);
        let Some(function) = functions::known(&plain, self.opencl()) else {
            return self.opaque(
                node,
                source,
                "call to a function that was not read",
                arguments,
            );
        };
        let first = arguments
            .first()
            .map_or(Type::Void, |first| first.ty.clone());
        let common = arguments
            .iter()
            .skip(1)
            .fold(first.clone(), |ty, next| ty.common(&next.ty));
        let (function, ty) = match function {
            Function::Min | Function::Max | Function::Abs if common.is_float() => {
                (Function::Math(functions::MathClass::Float(1)), common)
            }
            Function::Min | Function::Max | Function::Abs => (function, common),
            Function::Mul24 => (function, first),
            Function::Load | Function::Atomic => {
                let ty = first.element().cloned().unwrap_or(Type::INT);
                (function, ty)
            }
            Function::Store | Function::Ignored => (function, Type::Void),
            Function::WarpExchange => {
                let value = usize::from(plain.ends_with("_sync") && arguments.len() > 1);
                let ty = arguments
                    .get(value)
                    .map_or(Type::INT, |value| value.ty.clone());
                (function, ty)
            }
            Function::Math(class) => {
                let ty = match class {
                    functions::MathClass::Int(_) => Type::INT,
                    functions::MathClass::Convert if plain.contains("int") => Type::INT,
                    _ if plain.ends_with('f') || plain.starts_with("__") => match &common {
                        Type::Float { .. } | Type::Vector(..) => common,
                        _ => Type::FLOAT,
                    },
                    _ if common.is_float() || matches!(common, Type::Vector(..)) => common,
                    _ => Type::DOUBLE,
                };
                (function, ty)
            }
        };
        make(ExprKind::Call(function, arguments), ty)
    }

    /// OpenCL's work-item functions.
    fn work_item(&mut self, name: &str, list: Node, source: Source, site: Site) -> Option<Expr> {
        if !name.starts_with("get_") {
            return None;
        }
        let axis = list
            .named_child(0)
            .map(|axis| self.expr(axis, source))
            .and_then(|axis| constant(&axis))
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
                let thread = self.thread(axis);
                ExprKind::Binary(
                    BinaryOp::Add,
                    Box::new(make(ExprKind::Binary(
                        BinaryOp::Mul,
                        Box::new(builtin(Builtin::BlockIdx(axis))),
                        Box::new(builtin(Builtin::BlockDim(axis))),
                    ))),
                    Box::new(make(thread)),
                )
            }
            _ => return None,
        };
        Some(make(kind))
    }

    /// A device function of the same file, in place of its call.
    fn inline(
        &mut self,
        name: &str,
        range: std::ops::Range<usize>,
        list: Node,
        source: Source,
        site: Site,
    ) -> Expr {
        let arguments = self.arguments(list, source);
        let unknown = Expr {
            kind: ExprKind::Opaque(format!("call to {name}"), Vec::new()),
            ty: Type::Unknown(String::new()),
            site,
        };
        let parsed = self.parsed;
        let found = definition(parsed, range);
        let (Some(node), true) = (found, self.depth < 8) else {
            self.lost(site, "recursive or unreadable device function");
            return unknown;
        };
        let (Some(declarator), Some(body), Some(ty)) = (
            function_declarator(node),
            node.child_by_field_name("body"),
            node.child_by_field_name("type"),
        ) else {
            self.lost(site, "recursive or unreadable device function");
            return unknown;
        };
        self.depth += 1;
        let here = Source {
            parsed,
            at: Some(source.at.unwrap_or(site)),
        };
        // The callee sees the file's scope, not its caller's.
        let scopes = std::mem::replace(&mut self.scopes, vec![HashMap::new()]);
        let base = self.base_type(ty, here);
        let ty = match node.child_by_field_name("declarator") {
            Some(outer) if outer.kind() == "pointer_declarator" => {
                Type::Pointer(Arc::new(base), AddressSpace::Global)
            }
            _ => base,
        };
        let params = declarator
            .child_by_field_name("parameters")
            .map(|params| self.parameters(params, here, false))
            .unwrap_or_default();
        let mut statements: Vec<Stmt> = params
            .iter()
            .zip(arguments)
            .map(|(&param, argument)| Stmt {
                kind: StmtKind::Declare(param, Some(argument)),
                site,
            })
            .collect();
        let result = (ty != Type::Void)
            .then(|| self.new_var(&format!("{name}()"), ty.clone(), Storage::Local, site));
        self.results.push(result);
        let mut inner = self.block(body, here);
        self.results.pop();
        statements.append(&mut inner);
        self.scopes = scopes;
        self.depth -= 1;
        Expr {
            kind: ExprKind::Inline(statements, result),
            ty,
            site,
        }
    }
}

/// The address space that blanked words in a range name.
fn space_words(source: Source, range: std::ops::Range<usize>) -> Option<AddressSpace> {
    source
        .parsed
        .words
        .iter()
        .filter(|word| range.contains(&word.range.start))
        .find_map(|word| match word.name {
            "global" => Some(AddressSpace::Global),
            "local" => Some(AddressSpace::Shared),
            "constant" => Some(AddressSpace::Constant),
            "private" => Some(AddressSpace::Private),
            _ => None,
        })
}

/// The value of an expression made of numbers alone.
fn constant(expression: &Expr) -> Option<i64> {
    match &expression.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Cast(_, inner) if expression.ty.is_int() => constant(inner),
        ExprKind::List(parts) if parts.len() == 1 => constant(&parts[0]),
        ExprKind::Unary(op, inner) => {
            let value = constant(inner)?;
            Some(match op {
                UnaryOp::Neg => value.wrapping_neg(),
                UnaryOp::Not => i64::from(value == 0),
                UnaryOp::BitNot => !value,
            })
        }
        ExprKind::Select(c, a, b) => constant(if constant(c)? != 0 { a } else { b }),
        ExprKind::Call(Function::Min, arguments) if arguments.len() == 2 => {
            Some(constant(&arguments[0])?.min(constant(&arguments[1])?))
        }
        ExprKind::Call(Function::Max, arguments) if arguments.len() == 2 => {
            Some(constant(&arguments[0])?.max(constant(&arguments[1])?))
        }
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (constant(a)?, constant(b)?);
            Some(match op {
                BinaryOp::Add => a.wrapping_add(b),
                BinaryOp::Sub => a.wrapping_sub(b),
                BinaryOp::Mul => a.wrapping_mul(b),
                BinaryOp::Div => a.checked_div(b)?,
                BinaryOp::Rem => a.checked_rem(b)?,
                BinaryOp::Shl => a.checked_shl(u32::try_from(b).ok()?)?,
                BinaryOp::Shr => a.checked_shr(u32::try_from(b).ok()?)?,
                BinaryOp::And => a & b,
                BinaryOp::Or => a | b,
                BinaryOp::Xor => a ^ b,
                BinaryOp::Lt => i64::from(a < b),
                BinaryOp::Le => i64::from(a <= b),
                BinaryOp::Gt => i64::from(a > b),
                BinaryOp::Ge => i64::from(a >= b),
                BinaryOp::Eq => i64::from(a == b),
                BinaryOp::Ne => i64::from(a != b),
                BinaryOp::LogicalAnd => i64::from(a != 0 && b != 0),
                BinaryOp::LogicalOr => i64::from(a != 0 || b != 0),
            })
        }
        _ => None,
    }
}

fn binary_op(text: &str) -> Option<BinaryOp> {
    Some(match text {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "*" => BinaryOp::Mul,
        "/" => BinaryOp::Div,
        "%" => BinaryOp::Rem,
        "<<" => BinaryOp::Shl,
        ">>" => BinaryOp::Shr,
        "&" | "bitand" => BinaryOp::And,
        "|" | "bitor" => BinaryOp::Or,
        "^" | "xor" => BinaryOp::Xor,
        "<" => BinaryOp::Lt,
        "<=" => BinaryOp::Le,
        ">" => BinaryOp::Gt,
        ">=" => BinaryOp::Ge,
        "==" => BinaryOp::Eq,
        "!=" | "not_eq" => BinaryOp::Ne,
        "&&" | "and" => BinaryOp::LogicalAnd,
        "||" | "or" => BinaryOp::LogicalOr,
        _ => return None,
    })
}

/// A number as written.
fn number(text: &str, opencl: bool) -> (ExprKind, Type) {
    let clean: String = text.chars().filter(|&c| c != '\'').collect();
    let lower = clean.to_ascii_lowercase();
    let hex = lower.starts_with("0x");
    let float = if hex {
        lower.contains('p') || lower.contains('.')
    } else {
        lower.contains(['.', 'e']) || (lower.ends_with('f') && !lower.starts_with("0b"))
    };
    if float {
        let ty = if lower.ends_with('f') && (!hex || lower.contains('p')) {
            Type::FLOAT
        } else if lower.ends_with('h') {
            Type::Float { bits: 16 }
        } else {
            Type::DOUBLE
        };
        return (ExprKind::Float, ty);
    }
    let digits = lower.trim_end_matches(['u', 'l', 'z']);
    let suffix = &lower[digits.len()..];
    let sign_less = digits.trim_start_matches('-');
    let value = if let Some(digits) = sign_less.strip_prefix("0x") {
        u64::from_str_radix(digits, 16).ok()
    } else if let Some(digits) = sign_less.strip_prefix("0b") {
        u64::from_str_radix(digits, 2).ok()
    } else if sign_less.len() > 1 && sign_less.starts_with('0') {
        u64::from_str_radix(&sign_less[1..], 8).ok()
    } else {
        sign_less.parse().ok()
    };
    let Some(value) = value else {
        return (
            ExprKind::Opaque("number not understood".to_owned(), Vec::new()),
            Type::INT,
        );
    };
    let long = suffix.contains("ll") || (opencl && suffix.contains('l')) || suffix.contains('l');
    let unsigned = suffix.contains('u');
    let bits =
        if long || value > u64::from(u32::MAX) || (!unsigned && !hex && value > i32::MAX as u64) {
            64
        } else {
            32
        };
    let unsigned = unsigned || (hex && bits == 32 && value > i32::MAX as u64);
    let value = value as i64;
    let value = if digits.starts_with('-') {
        -value
    } else {
        value
    };
    (
        ExprKind::Int(value),
        Type::Int {
            bits,
            signed: !unsigned,
        },
    )
}

/// First lane and number of lanes that a vector field names.
fn swizzle(name: &str, lanes: u8) -> Option<(u8, u8)> {
    let lane = |c: char| match c {
        'x' | 'r' => Some(0),
        'y' | 'g' => Some(1),
        'z' | 'b' => Some(2),
        'w' | 'a' => Some(3),
        _ => None,
    };
    match name {
        "lo" => return Some((0, lanes / 2)),
        "hi" => return Some((lanes / 2, lanes / 2)),
        _ => {}
    }
    if let Some(digits) = name.strip_prefix(['s', 'S'])
        && !digits.is_empty()
        && digits.chars().all(|c| c.is_ascii_hexdigit())
    {
        let first = digits.chars().next()?.to_digit(16)? as u8;
        return (first < lanes).then_some((first, digits.len() as u8));
    }
    let mut first = None;
    for c in name.chars() {
        let at = lane(c).filter(|&at| at < lanes)?;
        first = Some(first.map_or(at, |first: u8| first.min(at)));
    }
    Some((first?, name.len() as u8))
}

/// `unsigned long long` and its like.
fn sized(name: &str) -> Option<Type> {
    let mut words: Vec<&str> = name.split_whitespace().collect();
    words.retain(|word| !matches!(*word, "const" | "volatile" | "static" | "register"));
    let has = |word: &str| words.contains(&word);
    if words.is_empty()
        || !words.iter().all(|word| {
            matches!(
                *word,
                "unsigned" | "signed" | "long" | "short" | "int" | "char" | "double"
            )
        })
    {
        return None;
    }
    if has("double") {
        return Some(Type::DOUBLE);
    }
    let bits = if has("char") {
        8
    } else if has("short") {
        16
    } else if has("long") {
        64
    } else {
        32
    };
    Some(Type::Int {
        bits,
        signed: !has("unsigned"),
    })
}

/// Puts arguments in place of a macro's parameters, whole words only.
fn substitute(body: &str, params: &[String], arguments: &[String]) -> String {
    let mut out = String::with_capacity(body.len() + 32);
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        match params.iter().position(|param| param == word) {
            Some(at) => {
                let argument = arguments.get(at).map_or("", String::as_str);
                // `(x) + y` with a name for x would read as a cast: the space keeps it a value.
                let plain = argument.chars().all(|c| c.is_alphanumeric() || c == '_');
                if plain && out.ends_with('(') {
                    out.push_str("0+");
                }
                out.push_str(argument);
            }
            None => out.push_str(word),
        }
        word.clear();
    };
    for c in body.chars() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            flush(&mut word, &mut out);
            out.push(c);
        }
    }
    flush(&mut word, &mut out);
    out.replace("##", "")
}

fn last_identifier(node: Node) -> Option<Node> {
    let mut found = None;
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        if matches!(child.kind(), "identifier" | "type_identifier") {
            found = Some(child);
        }
        if node.field_name_for_named_child(0).is_none() && found.is_some() {
            break;
        }
    }
    if let Some(declarator) = node.child_by_field_name("declarator") {
        return Some(declarator);
    }
    if let Some(name) = node.child_by_field_name("name") {
        return Some(name);
    }
    found
}

fn find_kind<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    if node.kind() == kind {
        return Some(node);
    }
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .find_map(|child| find_kind(child, kind))
}
