//! Which declaration a name means, and where a declaration is used.

use warplens_ir::{Function, known_function};
use warplens_syntax::nodes::{AssignmentExpression, CallExpression, PointerExpression};
use warplens_syntax::{Field, Kind, Node, PointerOperator, has_word};

use super::{Semantics, children, parameters};

/// A variable or parameter as it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declaration<'t> {
    /// Its name.
    pub name: Node<'t>,
    /// The name with the pointers, extents and initial value around it.
    pub declarator: Node<'t>,
    /// The declaration or parameter that it is a part of.
    pub node: Node<'t>,
    /// What it can be seen in, from its name on.
    scope: Node<'t>,
}

impl<'t> Declaration<'t> {
    /// The type in front of the declarators, as written.
    pub fn ty(self) -> Option<Node<'t>> {
        self.node.field(Field::Type)
    }

    /// What it is given where it is declared.
    pub fn value(self) -> Option<Node<'t>> {
        (self.declarator.kind() == Kind::InitDeclarator)
            .then(|| self.declarator.field(Field::Value))?
    }

    /// True where nothing but its name is declared: no pointer, array or reference.
    pub fn is_plain(self) -> bool {
        let inner = self.declarator.field(Field::Declarator);
        self.declarator == self.name
            || (self.declarator.kind() == Kind::InitDeclarator && inner == Some(self.name))
    }

    /// True for a parameter.
    pub fn is_parameter(self) -> bool {
        self.node.kind().is_parameter_declaration()
    }
}

/// The innermost name that a declarator declares: through pointers, arrays, references, initial values.
pub fn declared_name(declarator: Node) -> Option<Node> {
    let mut at = declarator;
    for _ in 0..16 {
        if matches!(
            at.kind(),
            Kind::Identifier | Kind::FieldIdentifier | Kind::TypeIdentifier
        ) {
            return Some(at);
        }
        at = at.field(Field::Declarator).or_else(|| at.named_child(0))?;
    }
    None
}

/// True for what names declared in it are seen in, and nowhere else.
fn opens_scope(node: Node) -> bool {
    match node.kind() {
        Kind::CompoundStatement
        | Kind::ForStatement
        | Kind::ForRangeLoop
        | Kind::IfStatement
        | Kind::WhileStatement
        | Kind::SwitchStatement
        | Kind::CatchClause
        | Kind::LambdaExpression
        | Kind::FunctionDefinition
        | Kind::TemplateDeclaration
        | Kind::FieldDeclarationList
        | Kind::TranslationUnit => true,
        // The parameters of a definition are seen in its body, those of a declaration nowhere.
        Kind::FunctionDeclarator => {
            let mut outer = node.parent();
            while let Some(parent) = outer.filter(|parent| parent.kind().is_declarator()) {
                outer = parent.parent();
            }
            outer.is_none_or(|outer| outer.kind() != Kind::FunctionDefinition)
        }
        _ => false,
    }
}

/// What is declared right in a scope, in order.
fn declared_in(scope: Node) -> Vec<Declaration> {
    let mut found = Vec::new();
    let mut waiting: Vec<Node> = scope.named_children().collect();
    waiting.reverse();
    while let Some(node) = waiting.pop() {
        found.extend(declarations_of(node, scope));
        if !opens_scope(node) {
            let at = waiting.len();
            waiting.extend(node.named_children());
            waiting[at..].reverse();
        }
    }
    if scope.kind() == Kind::ForRangeLoop {
        found.extend(declarations_of(scope, scope));
    }
    found
}

/// What a node declares, where it is a declaration.
fn declarations_of<'t>(node: Node<'t>, scope: Node<'t>) -> Vec<Declaration<'t>> {
    let declares = node.kind().is_parameter_declaration()
        || matches!(node.kind(), Kind::Declaration | Kind::ForRangeLoop);
    if !declares || (node.kind() == Kind::ForRangeLoop && node != scope) {
        return Vec::new();
    }
    node.fields(Field::Declarator)
        .filter_map(|declarator| {
            let name = declared_name(declarator)?;
            Some(Declaration {
                name,
                declarator,
                node,
                scope,
            })
        })
        .collect()
}

impl<'t> Semantics<'t> {
    /// The declaration that a name means where it is: the innermost before it. Names that functions, types and other
    /// files declare have none.
    pub fn declaration(self, name: Node<'t>) -> Option<Declaration<'t>> {
        let word = self.text(name);
        let mut at = name;
        while let Some(parent) = at.parent() {
            at = parent;
            if !opens_scope(at) {
                continue;
            }
            let before = |one: &Declaration| {
                one.name.start_byte() <= name.start_byte() && self.text(one.name) == word
            };
            let mut all = declared_in(at).into_iter();
            if let Some(found) = all.rfind(before) {
                return Some(found);
            }
        }
        None
    }

    /// All declarations of a name in a function, its parameters among them.
    pub fn declarations(self, function: Node<'t>, name: &str) -> Vec<Declaration<'t>> {
        let mut found = Vec::new();
        for scope in function.descendants() {
            if opens_scope(scope) {
                let all = declared_in(scope).into_iter();
                found.extend(all.filter(|one| self.text(one.name) == name));
            }
        }
        found.sort_by_key(|one| one.name.start_byte());
        found
    }

    /// The only declaration of a name in a function.
    pub fn declared(self, function: Node<'t>, name: &str) -> Option<Declaration<'t>> {
        let all = self.declarations(function, name);
        let [one] = all[..] else { return None };
        Some(one)
    }

    /// Every use of a declaration, the declared name aside. `None` where some use cannot be judged: inside a macro's
    /// definition, inside text that did not parse.
    pub fn uses(self, declaration: &Declaration<'t>) -> Option<Vec<Node<'t>>> {
        let word = self.text(declaration.name);
        let mut found = Vec::new();
        // Where nothing else of that name is declared, all behind it mean it: looking each up would look through the scope each time.
        let alone = self.declared(declaration.scope, word) == Some(*declaration);
        let means = |node: Node<'t>| {
            if alone && node.start_byte() > declaration.name.start_byte() {
                return Some(*declaration);
            }
            self.declaration(node)
        };
        for node in declaration.scope.descendants() {
            if node.is_error() && has_word(self.text(node), word) {
                return None;
            }
            if node.child_count() > 0
                || node == declaration.name
                || !has_word(self.text(node), word)
            {
                continue;
            }
            match node.kind() {
                Kind::Comment
                | Kind::StringContent
                | Kind::RawStringContent
                | Kind::FieldIdentifier => {}
                Kind::Identifier => {
                    if means(node)? == *declaration {
                        found.push(node);
                    }
                }
                _ => return None,
            }
        }
        Some(found)
    }

    /// True where a variable may be given another value than its first: assigned, stepped, captured by a lambda, or its
    /// address handed on. True too where its uses cannot be judged.
    pub fn is_changed(self, declaration: &Declaration<'t>) -> bool {
        let Some(uses) = self.uses(declaration) else {
            return true;
        };
        uses.into_iter().any(|used| {
            let captured = used
                .parent()
                .is_some_and(|parent| parent.kind() == Kind::LambdaCaptureSpecifier);
            captured || is_assigned(used) || self.hands(used) == ElementUse::Address
        })
    }

    /// Whether an element's address leaves the expression. An atomic's address is its own business; a call to a
    /// function that takes references, or that may be a macro, is not understood and counts as an address.
    pub fn hands(self, element: Node) -> ElementUse {
        let mut child = element;
        let mut addressed = false;
        while let Some(parent) = child.parent() {
            match parent.kind() {
                Kind::ParenthesizedExpression => {}
                // A part of the element is as near to its neighbours as the whole.
                Kind::FieldExpression | Kind::SubscriptExpression
                    if !addressed && parent.field(Field::Argument) == Some(child) => {}
                Kind::PointerExpression => {
                    if addressed || !is_address(parent) {
                        return ElementUse::Address;
                    }
                    addressed = true;
                }
                Kind::ArgumentList => return self.handed(parent, child, addressed),
                Kind::InitDeclarator => {
                    let reference = parent
                        .field(Field::Declarator)
                        .is_some_and(|declarator| declarator.kind() == Kind::ReferenceDeclarator);
                    return ElementUse::address_if(addressed || reference);
                }
                _ => return ElementUse::address_if(addressed),
            }
            child = parent;
        }
        ElementUse::Address
    }

    /// What a call does with an argument.
    fn handed(self, list: Node, argument: Node, addressed: bool) -> ElementUse {
        let Some(callee) = list
            .parent()
            .and_then(CallExpression::cast)
            .and_then(CallExpression::function)
        else {
            return ElementUse::Address;
        };
        let name = self.text(callee);
        match known_function(name, self.is_opencl()) {
            Some(Function::Atomic(..)) if children(list).first() == Some(&argument) => {
                ElementUse::Value
            }
            _ if addressed => ElementUse::Address,
            Some(_) => ElementUse::Value,
            None if callee.kind() == Kind::PrimitiveType => ElementUse::Value,
            None => {
                let position = children(list).iter().position(|one| *one == argument);
                ElementUse::address_if(!self.takes_value(name, position.unwrap_or(0)))
            }
        }
    }

    /// True where the file defines this function, once, and it takes this argument by value.
    fn takes_value(self, name: &str, position: usize) -> bool {
        let parameters = self.function(name).and_then(parameters);
        let parameter = parameters.and_then(|all| all.get(position).copied());
        parameter.is_some_and(|parameter| {
            parameter.kind() == Kind::ParameterDeclaration
                && !self.text(parameter).contains(['&', '*'])
        })
    }
}

/// How an element is used, where it is an argument of a call or behind `&`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementUse {
    /// Only its value leaves.
    Value,
    /// Its address or a reference to it leaves: who gets that may reach its neighbours.
    Address,
}

impl ElementUse {
    fn address_if(leaves: bool) -> ElementUse {
        if leaves {
            ElementUse::Address
        } else {
            ElementUse::Value
        }
    }
}

/// True for `&x`.
pub fn is_address(node: Node) -> bool {
    PointerExpression::cast(node).and_then(PointerExpression::op)
        == Some(PointerOperator::AddressOf)
}

/// True for the left side of an assignment, and for what is stepped.
pub fn is_assigned(place: Node) -> bool {
    place.parent().is_some_and(|parent| match parent.kind() {
        Kind::AssignmentExpression => {
            AssignmentExpression::cast(parent).and_then(AssignmentExpression::left) == Some(place)
        }
        Kind::UpdateExpression => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_syntax::{Document, Language};

    /// The lines that use what is declared in a line, by 1-based numbers.
    fn uses(text: &str, line: usize, name: &str) -> Option<Vec<usize>> {
        let document = Document::new(text, Language::Cuda);
        let code = Semantics::new(&document);
        let line_of = |node: &Node| text[..node.start_byte()].matches('\n').count() + 1;
        let declared = code
            .root
            .descendants()
            .into_iter()
            .filter(|node| node.kind() == Kind::Identifier && code.text(*node) == name)
            .find(|node| line_of(node) == line)
            .and_then(|node| code.declaration(node))?;
        Some(code.uses(&declared)?.iter().map(line_of).collect())
    }

    #[test]
    fn a_name_means_the_innermost_declaration_before_it() {
        let text = "\
int a;
void f(int b) {
    a = b;
    int a = b;
    for (int b = 0; b < a; b++) {
        int a = b;
        a += b;
    }
    a = b;
}
void g() { a = 1; }
";
        assert_eq!(uses(text, 1, "a"), Some(vec![3, 11]));
        assert_eq!(uses(text, 2, "b"), Some(vec![3, 4, 9]));
        assert_eq!(uses(text, 4, "a"), Some(vec![5, 9]));
        assert_eq!(uses(text, 5, "b"), Some(vec![5, 5, 6, 7]));
        assert_eq!(uses(text, 6, "a"), Some(vec![7]));
    }

    #[test]
    fn parameters_of_declarations_lambdas_and_templates_stay_among_themselves() {
        let text = "\
void g(int n);
template <int N> int f(int n) {
    auto h = [=](int n) { return n + N; };
    return n + h(N);
}
int N = 2;
";
        assert_eq!(uses(text, 2, "n"), Some(vec![4]));
        assert_eq!(uses(text, 3, "n"), Some(vec![3]));
        assert_eq!(uses(text, 2, "N"), Some(vec![3, 4]));
        assert_eq!(uses(text, 6, "N"), Some(vec![]));
    }

    #[test]
    fn what_changes_a_variable_is_seen_and_what_changes_its_namesake_is_not() {
        let changed = |body: &str| {
            let text = format!("void g(int *p); void f(int n) {{ {body} }}");
            let document = Document::new(&text, Language::Cuda);
            let code = Semantics::new(&document);
            let function = code.function("f").expect("a function");
            let all = code.declarations(function, "n");
            code.is_changed(&all[0])
        };
        for same in ["int a = n + 1;", "for (int n = 0; n < 2; n++) ;", "g(0);"] {
            assert!(!changed(same), "{same}");
        }
        for other in [
            "n = 1;",
            "n++;",
            "g(&n);",
            "int &r = n;",
            "auto h = [&n] {};",
        ] {
            assert!(changed(other), "{other}");
        }
    }
}
