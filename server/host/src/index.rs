//! What a file defines: functions, classes, variables.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_syntax::{Expanded, Field, Kind, Node, words_in};

use super::HeaderNames;
use warplens_hir::function_declarator;
use warplens_hir::{Item, ItemKind, Space};

/// One of these is in every function that launches: the public interfaces of the toolkits, and nothing of a program's own.
pub const WORDS: &[&str] = &[
    // CUDA C++ and HIP.
    "<<<",
    "<< <",
    // cudaLaunchKernel, cuLaunchKernel, hipLaunchKernelGGL, hipModuleLaunchKernel and their like.
    "LaunchKernel",
    "LaunchCooperativeKernel",
    // clEnqueueNDRangeKernel, cl::CommandQueue::enqueueNDRangeKernel.
    "NDRangeKernel",
    // clEnqueueTask, cl::CommandQueue::enqueueTask.
    "nqueueTask",
    // cl::EnqueueArgs of OpenCL's C++ bindings.
    "EnqueueArgs",
    // cudaGraphAddKernelNode, hipGraphAddKernelNode.
    "GraphAdd",
    // cudaGraphLaunch, hipGraphLaunch.
    "GraphLaunch",
];
/// The name of functions that convert an object to what is no class: `operator int()`.
pub(super) const CONVERSION: &str = "operator type";
/// Namespaces, classes and broken code nest this deep at most.
const DEEPEST: u32 = 40;

/// A function with a body.
#[derive(Debug)]
pub(super) struct Function<'p> {
    /// Plain name.
    pub(super) name: String,
    /// The namespaces around it.
    pub(super) space: &'p str,
    /// The class it is a member of.
    pub(super) class: Option<String>,
    /// The text that it is in.
    pub(super) text: &'p Arc<Expanded>,
    pub(super) node: Node<'p>,
    /// The template declaration around it.
    pub(super) template: Option<Node<'p>>,
    pub(super) kernel: bool,
    /// A launch is in it, or what else is looked for.
    pub(super) launches: bool,
    /// A launch is in it or in what it calls.
    pub(super) leads_to_launch: bool,
    /// Another such function calls it, by name.
    pub(super) called: bool,
}

/// Where the index walks.
struct Around<'p, 'k> {
    parsed: &'p Arc<Expanded>,
    /// The items of the text, by their last bytes.
    items: &'k FxHashMap<usize, &'p Item>,
    /// The namespaces around the class.
    space: &'p str,
    /// Those around variables, by their number.
    variables: usize,
    depth: u32,
}

impl<'p, 'k> Around<'p, 'k> {
    fn deeper(&self) -> Around<'p, 'k> {
        Around {
            depth: self.depth + 1,
            ..*self
        }
    }

    /// In the class or the function that ends there.
    fn inside(&self, node: Node) -> Around<'p, 'k> {
        Around {
            space: self.at(node),
            ..self.deeper()
        }
    }

    /// The namespaces around what ends where this does.
    fn at(&self, node: Node) -> &'p str {
        let item = self.items.get(&node.end_byte());
        item.map_or(self.space, |item| &item.space)
    }

    fn is_kernel(&self, end: usize) -> bool {
        let item = self.items.get(&end);
        item.is_some_and(|item| matches!(item.kind, ItemKind::Kernel(_)))
    }
}

/// A class with a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class<'p> {
    pub(super) text: &'p Arc<Expanded>,
    pub(super) body: Node<'p>,
    /// The list of the classes that it is derived from.
    pub(super) bases: Option<Node<'p>>,
    /// The declaration of its template parameters.
    pub(super) template: Option<Node<'p>>,
}

/// `typedef type name;`, `using name = type;`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alias<'p> {
    pub(super) text: &'p Arc<Expanded>,
    pub(super) ty: Node<'p>,
}

/// A variable at file scope, or a static member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variable<'p> {
    /// The namespaces around it, by their number among [`Index::spaces`].
    pub(super) space: usize,
    pub(super) text: &'p Arc<Expanded>,
    pub(super) declaration: Node<'p>,
    pub(super) declarator: Node<'p>,
}

#[derive(Debug, Default)]
pub(super) struct Index<'p> {
    pub(super) functions: Vec<Function<'p>>,
    /// Functions by name.
    pub(super) by_name: FxHashMap<String, Vec<usize>>,
    pub(super) classes: FxHashMap<String, Class<'p>>,
    /// Specialisations of classes that are templates, by their names, with their arguments.
    pub(super) specialised: FxHashMap<String, Vec<(Node<'p>, Class<'p>)>>,
    /// What other names of types mean, outside of functions; `None` where one means several.
    pub(super) aliases: FxHashMap<String, Option<Alias<'p>>>,
    /// Names of classes in functions.
    local: FxHashSet<String>,
    pub(super) variables: FxHashMap<String, Vec<Variable<'p>>>,
    /// The namespaces in which variables are: none, and each that the texts have.
    pub(super) spaces: Vec<Space>,
    /// Names of kernels, declared or defined.
    pub(super) kernels: FxHashSet<String>,
    pub(super) instantiations: Vec<Node<'p>>,
}

impl<'p> Index<'p> {
    /// What texts define, each with its items. `words`: one of them is in every function that is looked for, or it names one of the
    /// launchers of `headers`.
    pub(super) fn new(
        texts: &[(&'p Arc<Expanded>, &'p [Item])],
        words: &[&str],
        headers: &HeaderNames,
    ) -> Index<'p> {
        let mut index = Index {
            kernels: headers.kernels.iter().cloned().collect(),
            spaces: vec![Space::from("")],
            ..Index::default()
        };
        for (text, items) in texts {
            let mut ends: FxHashMap<usize, &Item> = FxHashMap::default();
            for item in *items {
                ends.insert(item.range.end, item);
                if let ItemKind::Kernel(name) = &item.kind {
                    index.kernels.insert(name.clone());
                }
            }
            let around = Around {
                parsed: text,
                items: &ends,
                space: "",
                variables: 0,
                depth: 0,
            };
            index.walk(text.tree.root_node(), None, None, &around);
        }
        for function in &mut index.functions {
            let text = &function.text.text[function.node.byte_range()];
            function.launches =
                words.iter().any(|word| text.contains(word)) || headers.names_launcher(text);
        }
        for (at, function) in index.functions.iter().enumerate() {
            index
                .by_name
                .entry(function.name.clone())
                .or_default()
                .push(at);
        }
        index.follow();
        index
    }

    fn walk(
        &mut self,
        node: Node<'p>,
        template: Option<Node<'p>>,
        class: Option<&str>,
        around: &Around<'p, '_>,
    ) {
        if around.depth > DEEPEST {
            return;
        }
        let parsed = around.parsed;
        let text = |node: Node| &parsed.text[node.byte_range()];
        for child in node.named_children() {
            match child.kind() {
                Kind::FunctionDefinition => {
                    self.function(child, template, class, around);
                }
                Kind::TemplateDeclaration => {
                    self.walk(child, Some(child), class, &around.deeper());
                }
                // What is written in a class and is no member of it.
                Kind::FriendDeclaration => self.walk(child, None, None, &around.deeper()),
                Kind::NamespaceDefinition => {
                    let body = child.field(Field::Body);
                    let inside = body.map_or_else(
                        || Space::from(""),
                        |body| warplens_hir::namespaces_around(body, &parsed.text),
                    );
                    let known = self.spaces.iter().position(|space| *space == inside);
                    let number = known.unwrap_or_else(|| {
                        self.spaces.push(inside);
                        self.spaces.len() - 1
                    });
                    let around = Around {
                        variables: number,
                        ..around.deeper()
                    };
                    self.walk(child, None, class, &around);
                }
                Kind::DeclarationList
                | Kind::LinkageSpecification
                | Kind::Error
                | Kind::FieldDeclarationList => {
                    self.walk(child, None, class, &around.deeper());
                }
                Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier => {
                    self.class(child, template, around);
                }
                Kind::TypeDefinition | Kind::Declaration | Kind::FieldDeclaration => {
                    let ty = child.field(Field::Type);
                    if let Some(ty) = ty
                        && ty.field(Field::Body).is_some()
                    {
                        self.class(ty, template, around);
                    }
                    if child.kind() == Kind::TypeDefinition {
                        // The usual C spelling names it behind the braces.
                        if let (Some(ty), Some(name)) = (ty, child.field(Field::Declarator))
                            && let Some(body) = ty.field(Field::Body)
                            && ty.kind() != Kind::EnumSpecifier
                        {
                            let class = Class {
                                text: parsed,
                                body,
                                bases: None,
                                template: None,
                            };
                            self.classes.insert(text(name).to_owned(), class);
                        } else if let (Some(ty), Some(name)) = (ty, child.field(Field::Declarator))
                            && name.kind() == Kind::TypeIdentifier
                        {
                            self.alias(text(name), ty, parsed);
                        }
                        continue;
                    }
                    for declarator in child.fields(Field::Declarator) {
                        let name = declared_name(declarator);
                        if declares_function(declarator) {
                            if text(child).contains("__global__") {
                                self.kernels.insert(plain(text(name)));
                            }
                            continue;
                        }
                        self.variables
                            .entry(plain(text(name)))
                            .or_default()
                            .push(Variable {
                                space: around.variables,
                                text: parsed,
                                declaration: child,
                                declarator,
                            });
                    }
                }
                Kind::AliasDeclaration if template.is_none() => {
                    if let (Some(name), Some(ty)) =
                        (child.field(Field::Name), child.field(Field::Type))
                    {
                        self.alias(text(name), ty.field(Field::Type).unwrap_or(ty), parsed);
                    }
                }
                Kind::TemplateInstantiation => self.instantiations.push(child),
                _ => {}
            }
        }
    }

    /// Notes another name of a type.
    fn alias(&mut self, name: &str, ty: Node<'p>, parsed: &'p Arc<Expanded>) {
        let written = |alias: &Alias<'p>| &alias.text.text[alias.ty.byte_range()];
        let alias = Alias { text: parsed, ty };
        let known = self.aliases.entry(name.to_owned()).or_insert(Some(alias));
        *known = known.filter(|known| written(known) == written(&alias));
    }

    fn class(&mut self, node: Node<'p>, template: Option<Node<'p>>, around: &Around<'p, '_>) {
        let parsed = around.parsed;
        let Some(body) = node.field(Field::Body) else {
            return;
        };
        let name = node
            .field(Field::Name)
            .map_or(String::new(), |name| plain(&parsed.text[name.byte_range()]));
        if !name.is_empty() {
            let bases = node
                .named_children()
                .find(|child| child.kind() == Kind::BaseClassClause);
            let class = Class {
                text: parsed,
                body,
                bases,
                template,
            };
            let list = node
                .field(Field::Name)
                .and_then(|of| of.field(Field::Arguments));
            match list {
                Some(list) => {
                    let all = self.specialised.entry(name.clone()).or_default();
                    all.push((list, class));
                    // Where there is nothing but that.
                    self.classes.entry(name.clone()).or_insert(class);
                }
                None => {
                    let special = self.specialised.get(&name);
                    let is_special = |known: &Class| {
                        let mut all = special.into_iter().flatten();
                        all.any(|(_, class)| class.body.id() == known.body.id())
                    };
                    let known = self.classes.get(&name);
                    if known.is_none_or(is_special) {
                        self.classes.insert(name.clone(), class);
                    }
                }
            }
        }
        self.walk(body, None, Some(&name), &around.inside(node));
    }

    /// The classes in the body of a function.
    fn local_classes(&mut self, body: Node<'p>, around: &Around<'p, '_>) {
        let parsed = around.parsed;
        let may_hold = |node: &Node| {
            let text = &parsed.text[node.byte_range()];
            ["struct", "class", "union"]
                .iter()
                .any(|word| text.contains(word))
        };
        let mut open: Vec<(Node<'p>, u32)> = vec![(body, 0)];
        while let Some((node, depth)) = open.pop() {
            if depth > DEEPEST || !may_hold(&node) {
                continue;
            }
            if let Some(body) = node.field(Field::Body)
                && is_class(node)
            {
                let name = class_name(node, &parsed.text);
                let class = Class {
                    text: parsed,
                    body,
                    bases: node
                        .named_children()
                        .find(|child| child.kind() == Kind::BaseClassClause),
                    template: None,
                };
                // Which of two functions' classes of one name is meant is not told apart.
                if self.local.insert(name.clone()) {
                    self.classes.entry(name.clone()).or_insert(class);
                } else {
                    self.classes.remove(&name);
                }
                for member in body.named_children() {
                    if member.kind() == Kind::FunctionDefinition {
                        self.function(member, None, Some(&name), &around.inside(node));
                    }
                }
                continue;
            }
            open.extend(node.named_children().map(|child| (child, depth + 1)));
        }
    }

    fn function(
        &mut self,
        node: Node<'p>,
        template: Option<Node<'p>>,
        class: Option<&str>,
        around: &Around<'p, '_>,
    ) {
        let parsed = around.parsed;
        let conversion = node.field(Field::Declarator);
        let conversion = conversion.filter(|one| one.kind() == Kind::OperatorCast);
        let declared =
            function_declarator(node).and_then(|declarator| declarator.field(Field::Declarator));
        let Some(name) = conversion.or(declared) else {
            return;
        };
        if let Some(body) = node.field(Field::Body)
            && !around.is_kernel(node.end_byte())
        {
            self.local_classes(body, around);
        }
        let written = &parsed.text[name.byte_range()];
        let (full, operator) = match operator_in(written) {
            _ if conversion.is_some() => (String::new(), Some(CONVERSION.to_owned())),
            Some((scope, operator)) => (without_templates(scope), Some(operator)),
            None => (without_templates(written), None),
        };
        let mut parts = full.rsplit("::");
        let last = parts.next().unwrap_or_default().trim().to_owned();
        let scope = parts
            .next()
            .map(str::trim)
            .filter(|scope| !scope.is_empty());
        let last = operator.unwrap_or(last);
        self.functions.push(Function {
            name: last,
            space: around.at(node),
            class: class.or(scope).map(str::to_owned),
            text: parsed,
            node,
            template,
            kernel: around.is_kernel(node.end_byte()),
            launches: false,
            leads_to_launch: false,
            called: false,
        });
    }

    /// Which functions lead to launches, by the names in their bodies.
    fn follow(&mut self) {
        let mut callers: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        let mut calls: Vec<Vec<usize>> = Vec::with_capacity(self.functions.len());
        for (at, function) in self.functions.iter().enumerate() {
            let mut found: FxHashSet<usize> = FxHashSet::default();
            if let Some(body) = function.node.field(Field::Body) {
                for word in words(&function.text.text[body.byte_range()]) {
                    if let Some(named) = self.by_name.get(word) {
                        found.extend(named.iter().copied().filter(|&other| other != at));
                    }
                }
            }
            for &callee in &found {
                callers.entry(callee).or_default().push(at);
            }
            calls.push(found.into_iter().collect());
        }
        let mut open: Vec<usize> = (0..self.functions.len())
            .filter(|&at| self.functions[at].launches)
            .collect();
        for &at in &open {
            self.functions[at].leads_to_launch = true;
        }
        while let Some(at) = open.pop() {
            for &caller in callers.get(&at).map_or(&[][..], Vec::as_slice) {
                if !self.functions[caller].leads_to_launch {
                    self.functions[caller].leads_to_launch = true;
                    open.push(caller);
                }
            }
        }
        for (at, callees) in calls.iter().enumerate() {
            if self.functions[at].leads_to_launch {
                for &callee in callees {
                    self.functions[callee].called = true;
                }
            }
        }
    }

    /// The bytes of the variable's own declaration.
    pub(super) fn declaration_of(&self, name: &str) -> Option<Range<usize>> {
        let variable = self.variables.get(name)?.first()?;
        Some(variable.declaration.byte_range())
    }
}

/// `f()`, `*f()`, `&f()`; a pointer to a function, `(*f)()`, is a variable.
pub(super) fn declares_function(declarator: Node) -> bool {
    let mut at = declarator;
    while matches!(
        at.kind(),
        Kind::PointerDeclarator | Kind::ReferenceDeclarator
    ) {
        let inner = at.field(Field::Declarator).or_else(|| at.named_child(0));
        match inner {
            Some(inner) => at = inner,
            None => return false,
        }
    }
    let named = at.field(Field::Declarator);
    at.kind() == Kind::FunctionDeclarator
        && named.is_none_or(|named| named.kind() != Kind::ParenthesizedDeclarator)
}

/// The node that names what a declarator declares.
pub(super) fn declared_name(node: Node<'_>) -> Node<'_> {
    let mut at = node;
    for _ in 0..12 {
        let inner = at.field(Field::Declarator).or_else(|| {
            matches!(
                at.kind(),
                Kind::ReferenceDeclarator
                    | Kind::ParenthesizedDeclarator
                    | Kind::VariadicDeclarator
            )
            .then(|| at.named_child(0))
            .flatten()
        });
        match inner {
            Some(inner) => at = inner,
            None => break,
        }
    }
    at
}

/// The last part of a name without template arguments.
/// Whether a node is a class as it is declared or defined.
fn is_class(node: Node) -> bool {
    matches!(
        node.kind(),
        Kind::StructSpecifier | Kind::ClassSpecifier | Kind::UnionSpecifier
    )
}

/// The plain name of the class that a type names; one of a class without a name is made of its place.
pub(super) fn class_name(ty: Node, text: &str) -> String {
    let name = ty.field(Field::Name).filter(|_| is_class(ty));
    match (name, ty.field(Field::Body)) {
        (Some(name), _) => plain(&text[name.byte_range()]),
        (None, Some(body)) if is_class(ty) => format!("@{}", body.start_byte()),
        _ => plain(&text[ty.byte_range()]),
    }
}

pub(super) fn plain(name: &str) -> String {
    let name = without_templates(name);
    name.rsplit("::")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn without_templates(name: &str) -> String {
    let mut depth = 0u32;
    name.chars()
        .filter(|&c| {
            match c {
                '<' => depth += 1,
                '>' => {
                    depth = depth.saturating_sub(1);
                    return false;
                }
                _ => {}
            }
            depth == 0
        })
        .collect()
}

/// The scope before a function's name that is an operator, and that name without spaces.
fn operator_in(name: &str) -> Option<(&str, String)> {
    let at = name.find("operator")?;
    let (scope, operator) = name.split_at_checked(at)?;
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    let whole = !scope.ends_with(letter) && !operator["operator".len()..].starts_with(letter);
    whole.then(|| (scope, operator.split_whitespace().collect()))
}

/// The identifiers in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    words_in(text).filter(|word| !word.starts_with(|first: char| first.is_ascii_digit()))
}
