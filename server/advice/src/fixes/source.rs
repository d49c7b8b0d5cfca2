//! Reading the syntax tree for what an action must be sure of: where a name is used, and how.

use std::ops::Range;

use warplens_ir::{Function, known_function};
use warplens_syntax::{Document, Field, Kind, Language, Node, Parsed, has_word};

use crate::fixes::Edit;

/// The text of a node as the user wrote it.
pub(crate) fn text<'t>(parsed: &'t Parsed, node: Node) -> &'t str {
    parsed.text.get(node.byte_range()).unwrap_or("")
}

/// The children that are no comments.
pub(crate) fn children(node: Node) -> Vec<Node> {
    node.named_children()
        .filter(|child| child.kind() != Kind::Comment)
        .collect()
}

/// The definition of the kernel that ends at a byte.
pub(crate) fn kernel_node(parsed: &Parsed, range: Range<usize>) -> Option<Node<'_>> {
    let end = range.end.min(parsed.text.len());
    let mut node = parsed
        .tree
        .root_node()
        .descendant_for_byte_range(end.checked_sub(1)?, end)?;
    while node.kind() != Kind::FunctionDefinition || node.end_byte() != end {
        node = node.parent()?;
    }
    Some(node)
}

/// The declarator of a function with its parameters.
pub(crate) fn function_declarator(definition: Node) -> Option<Node> {
    let mut at = definition.field(Field::Declarator)?;
    while at.kind() != Kind::FunctionDeclarator {
        at = at.field(Field::Declarator).or_else(|| at.named_child(0))?;
    }
    Some(at)
}

/// The innermost name that declares something: through pointers, arrays, references, initialisers.
pub(crate) fn declared_name(declarator: Node) -> Option<Node> {
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

/// True where some macro of the file puts this name into the text where it is used: not by an argument.
pub(crate) fn in_a_macro(parsed: &Parsed, name: &str) -> bool {
    macro_naming(parsed, name).is_some()
}

/// Where the first such macro is defined.
pub(crate) fn macro_naming(parsed: &Parsed, name: &str) -> Option<usize> {
    let mut rest = &*parsed.text;
    while let Some(at) = rest.find("define") {
        let before = rest[..at].trim_end_matches([' ', '\t']);
        let defined = parsed.text.len() - rest.len() + at;
        rest = &rest[at + "define".len()..];
        if !before.ends_with('#') {
            continue;
        }
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            end += line.len();
            if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
                break;
            }
        }
        let definition = &rest[..end];
        let body = definition.trim_start();
        let head = body
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(body.len());
        let (params, body) = match body[head..].strip_prefix('(') {
            Some(after) => after.split_once(')').unwrap_or((after, "")),
            None => ("", &body[head..]),
        };
        if has_word(body, name) && !has_word(params, name) {
            return Some(defined);
        }
    }
    None
}

/// Every use of a name as a value in a function, its declaration aside. `None` where some use cannot be
/// judged: inside a macro's definition, inside text that did not parse, or where the name is declared again.
pub(crate) fn uses<'t>(
    parsed: &'t Parsed,
    function: Node<'t>,
    name: &str,
    declaration: Node,
) -> Option<Vec<Node<'t>>> {
    let mut found = Vec::new();
    for node in function.descendants() {
        if node.is_error() && has_word(text(parsed, node), name) {
            return None;
        }
        if node.child_count() > 0 || node == declaration || !has_word(text(parsed, node), name) {
            continue;
        }
        match node.kind() {
            Kind::Comment
            | Kind::StringContent
            | Kind::RawStringContent
            | Kind::FieldIdentifier => {}
            Kind::Identifier => {
                if declares(node) {
                    return None;
                }
                found.push(node);
            }
            _ => return None,
        }
    }
    Some(found)
}

/// True where a name is declared, not used.
fn declares(name: Node) -> bool {
    let mut child = name;
    while let Some(parent) = child.parent() {
        if !parent.kind().is_declarator() {
            // `int a, tile;` has two children in the same field.
            return parent.fields(Field::Declarator).any(|one| one == child);
        }
        let fields = [Field::Size, Field::Value, Field::Parameters];
        if fields
            .iter()
            .any(|field| parent.field(*field) == Some(child))
        {
            return false;
        }
        child = parent;
    }
    false
}

/// How an element is used, where it stands as an argument of a call or behind `&`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hands {
    /// Only its value leaves.
    Value,
    /// Its address or a reference to it leaves: who gets that may reach its neighbours.
    Address,
}

/// Whether an element's address leaves the expression. An atomic's address is its own business; a call to a
/// function that takes references, or that may be a macro, is not understood and counts as an address.
pub(crate) fn hands(document: &Document, element: Node) -> Hands {
    let parsed = document.parsed();
    let opencl = document.language() == Language::OpenCl;
    let mut child = element;
    let mut addressed = false;
    while let Some(parent) = child.parent() {
        match parent.kind() {
            Kind::ParenthesizedExpression => {}
            // A part of the element is as near to its neighbours as the whole.
            Kind::FieldExpression | Kind::SubscriptExpression
                if !addressed && parent.field(Field::Argument) == Some(child) => {}
            Kind::PointerExpression => {
                let operator = parent.field(Field::Operator);
                if addressed || operator.is_none_or(|operator| text(parsed, operator) != "&") {
                    return Hands::Address;
                }
                addressed = true;
            }
            Kind::ArgumentList => {
                let call = parent
                    .parent()
                    .filter(|call| call.kind() == Kind::CallExpression);
                let callee = call.and_then(|call| call.field(Field::Function));
                let Some(callee) = callee else {
                    return Hands::Address;
                };
                let name = text(parsed, callee);
                return match known_function(name, opencl) {
                    Some(Function::Atomic(..)) if children(parent).first() == Some(&child) => {
                        Hands::Value
                    }
                    _ if addressed => Hands::Address,
                    Some(_) => Hands::Value,
                    None if callee.kind() == Kind::PrimitiveType => Hands::Value,
                    None => {
                        let position = children(parent).iter().position(|one| *one == child);
                        if takes_value(parsed, name, position.unwrap_or(0)) {
                            Hands::Value
                        } else {
                            Hands::Address
                        }
                    }
                };
            }
            Kind::InitDeclarator => {
                let reference = parent
                    .field(Field::Declarator)
                    .is_some_and(|declarator| declarator.kind() == Kind::ReferenceDeclarator);
                return if addressed || reference {
                    Hands::Address
                } else {
                    Hands::Value
                };
            }
            _ => {
                return if addressed {
                    Hands::Address
                } else {
                    Hands::Value
                };
            }
        }
        child = parent;
    }
    Hands::Address
}

/// True where the file defines this function, once, and it takes this argument by value.
fn takes_value(parsed: &Parsed, name: &str, position: usize) -> bool {
    let mut definitions = descendants_at_top(parsed.tree.root_node())
        .into_iter()
        .filter(|node| node.kind() == Kind::FunctionDefinition)
        .filter_map(function_declarator)
        .filter(|declarator| {
            declarator
                .field(Field::Declarator)
                .is_some_and(|of| text(parsed, of) == name)
        });
    let (Some(declarator), None) = (definitions.next(), definitions.next()) else {
        return false;
    };
    let Some(params) = declarator.field(Field::Parameters) else {
        return false;
    };
    children(params).get(position).is_some_and(|param| {
        param.kind() == Kind::ParameterDeclaration && !text(parsed, *param).contains(['&', '*'])
    })
}

/// What stands at the top level, namespaces, linkage blocks, templates and conditionals looked through.
pub(crate) fn descendants_at_top(root: Node) -> Vec<Node> {
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        match node.kind() {
            Kind::TranslationUnit
            | Kind::NamespaceDefinition
            | Kind::DeclarationList
            | Kind::LinkageSpecification
            | Kind::PreprocIf
            | Kind::PreprocIfdef
            | Kind::PreprocElse
            | Kind::PreprocElif
            | Kind::TemplateDeclaration => waiting.extend(children(node).into_iter().rev()),
            _ => found.push(node),
        }
    }
    found
}

/// A call of an atomic that is a statement of its own.
pub(crate) struct AtomicCall<'t> {
    /// The statement.
    pub statement: Node<'t>,
    /// The call.
    pub call: Node<'t>,
    /// Its name.
    pub callee: Node<'t>,
    /// The address as written.
    pub address: &'t str,
    /// What is combined with it, as written.
    pub value: &'t str,
}

/// The call of an addition that stands at these bytes, with two arguments, no macro in sight.
pub(crate) fn atomic_call<'t>(
    parsed: &'t Parsed,
    function: Node<'t>,
    place: &Range<usize>,
) -> Option<AtomicCall<'t>> {
    let mut call = function.descendant_for_byte_range(place.start, place.end)?;
    while call.kind() != Kind::CallExpression {
        call = call
            .parent()
            .filter(|parent| parent.byte_range().len() <= place.len() + 1)?;
    }
    let statement = call
        .parent()
        .filter(|parent| parent.kind() == Kind::ExpressionStatement && !parent.has_error())?;
    let callee = call
        .field(Field::Function)
        .filter(|callee| callee.kind() == Kind::Identifier)?;
    let arguments = children(call.field(Field::Arguments)?);
    let [address, value] = arguments.as_slice() else {
        return None;
    };
    let name = text(parsed, callee);
    let adds = name.ends_with("Add") || name.ends_with("_add");
    (adds && !in_a_macro(parsed, name)).then(|| AtomicCall {
        statement,
        call,
        callee,
        address: text(parsed, *address),
        value: text(parsed, *value),
    })
}

/// The type of the elements of a pointer or an array that a function declares once, as written without qualifiers.
pub(crate) fn declared_type<'t>(
    parsed: &'t Parsed,
    function: Node<'t>,
    name: &str,
) -> Option<&'t str> {
    let mut declared = function.descendants().into_iter().filter(|node| {
        matches!(node.kind(), Kind::ParameterDeclaration | Kind::Declaration) && {
            node.fields(Field::Declarator)
                .any(|one| declared_name(one).is_some_and(|found| text(parsed, found) == name))
        }
    });
    let (Some(declaration), None) = (declared.next(), declared.next()) else {
        return None;
    };
    let mut declarators = declaration.fields(Field::Declarator);
    let declarator = declarators
        .find(|one| declared_name(*one).is_some_and(|found| text(parsed, found) == name))?;
    // One level of indirection: what it leads to is what is declared.
    let levels = text(parsed, declarator).matches(['*', '[']).count();
    let ty = declaration.field(Field::Type)?;
    (levels == 1).then(|| text(parsed, ty))
}

/// The white space in front of what stands on a line.
pub(crate) fn indent(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[line..at]
        .chars()
        .take_while(|letter| matches!(letter, ' ' | '\t'))
        .collect()
}

/// The subscript of an element, where there is one.
pub(crate) fn only_subscript(element: Node) -> Option<Node> {
    let index = element
        .field(Field::Indices)
        .or_else(|| element.field(Field::Index))?;
    if index.kind() != Kind::SubscriptArgumentList {
        return Some(index);
    }
    let list = children(index);
    let [one] = list[..] else { return None };
    Some(one)
}

/// True where the value of an element is read whenever its statement is executed.
pub(crate) fn is_always_evaluated(element: Node, statement: Node) -> bool {
    let mut at = element;
    while at != statement {
        let Some(parent) = at.parent() else {
            return false;
        };
        let maybe = match parent.kind() {
            Kind::ConditionalExpression => parent.field(Field::Condition) != Some(at),
            Kind::BinaryExpression => parent
                .field(Field::Operator)
                .is_some_and(|operator| matches!(operator.kind(), Kind::And | Kind::Or)),
            Kind::PointerExpression
            | Kind::SizeofExpression
            | Kind::LambdaExpression
            | Kind::UpdateExpression => true,
            _ => false,
        };
        if maybe {
            return false;
        }
        at = parent;
    }
    true
}

/// `#pragma …` on a line above a loop, indented alike. `None` where the loop does not begin its line, or has one already.
pub(crate) fn pragma(parsed: &Parsed, of: Node, says: &str) -> Option<Edit> {
    let before = parsed.text.get(..of.start_byte())?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let indent = &before[start..];
    let above = before[..start].trim_end();
    let above = &above[above.rfind('\n').map_or(0, |at| at + 1)..];
    let free = indent.chars().all(char::is_whitespace)
        && !above.contains("pragma")
        && !above.ends_with('\\');
    // Where the loop is the body of another statement, the line belongs to the loop all the same.
    let end = if before[..start].ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let at = start..start;
    free.then(|| (at, format!("{indent}#pragma {says}{end}")))
}

/// True where a name is assigned, stepped, declared, or its address is taken.
pub(crate) fn writes(parsed: &Parsed, name: Node) -> bool {
    let Some(parent) = name.parent() else {
        return true;
    };
    match parent.kind() {
        Kind::UpdateExpression => true,
        Kind::AssignmentExpression => parent.field(Field::Left) == Some(name),
        Kind::PointerExpression => text(parsed, parent).starts_with('&'),
        Kind::InitDeclarator | Kind::Declaration => parent.field(Field::Declarator) == Some(name),
        _ => false,
    }
}

/// A name that nothing in the function has yet.
pub(crate) fn new_name(parsed: &Parsed, function: Node<'_>, wanted: &str) -> String {
    let taken = text(parsed, function);
    let mut name = wanted.to_owned();
    while has_word(taken, &name) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        assert!(has_word("a+tile[0]", "tile"));
        assert!(!has_word("tiles[0] mytile", "tile"));
        assert!(!has_word("", "tile"));
    }

    #[test]
    fn a_macro_that_names_the_array_is_seen_and_its_own_parameter_is_not() {
        let check = |text: &str| in_a_macro(Document::new(text, Language::Cuda).parsed(), "tile");
        assert!(check("#define AT(i, j) \\\n  tile[i][j]\n"));
        assert!(check("# define T tile\n"));
        assert!(!check("#define AT(tile, i) tile[i]\nint tile;\n"));
        assert!(!check("// define tile\n#define TILE 32\n"));
    }
}
