//! What a node of a tree says by itself: its words, its parameters, its address space.

use warplens_syntax::{Field, Kind, Node, is_word_part};

use super::{Source, parts, text_of};
use crate::outline::function_declarator;
use warplens_ir::AddressSpace;

/// What defines or declares a class.
pub(super) const CLASSES: &[Kind] = &[
    Kind::StructSpecifier,
    Kind::ClassSpecifier,
    Kind::UnionSpecifier,
];

/// One parameter of a template.
pub(super) struct Parameter<'t> {
    pub(super) name: String,
    pub(super) is_type: bool,
    pub(super) pack: bool,
    pub(super) default: Option<Node<'t>>,
    /// The type of one that is declared as a value is, by its name: a concept makes a type of it.
    pub(super) constraint: Option<Node<'t>>,
}

pub(super) fn parameters<'t>(template: Node<'t>, source: Source<'t>) -> Vec<Parameter<'t>> {
    parameters_of(template, Field::Parameters, source)
}

/// The parameters in the list that a field of a node is.
pub(super) fn parameters_of<'t>(
    template: Node<'t>,
    field: Field,
    source: Source<'t>,
) -> Vec<Parameter<'t>> {
    let Some(list) = template.field(field) else {
        return Vec::new();
    };
    parts(list)
        .into_iter()
        .map(|param| {
            let kind = param.kind();
            let is_type = kind.is_type_parameter();
            // `template <class> class Op`: the name is that of the class within.
            let named = match kind {
                Kind::TemplateTemplateParameterDeclaration => parts(param)
                    .into_iter()
                    .rfind(|part| part.kind().is_type_parameter())
                    .unwrap_or(param),
                _ => param,
            };
            let name = named
                .field(Field::Name)
                .or_else(|| named.field(Field::Declarator).map(innermost))
                .or_else(|| {
                    parts(named).into_iter().rfind(|part| {
                        matches!(part.kind(), Kind::TypeIdentifier | Kind::Identifier)
                    })
                })
                .map_or("", |name| text_of(name, source));
            Parameter {
                name: name.trim_start_matches(['.', ' ', '&', '*']).to_owned(),
                is_type,
                pack: kind.is_variadic() || name.starts_with("..."),
                default: named
                    .field(Field::DefaultValue)
                    .or_else(|| named.field(Field::DefaultType)),
                constraint: param.field(Field::Type).filter(|ty| {
                    matches!(
                        ty.kind(),
                        Kind::QualifiedIdentifier | Kind::TypeIdentifier | Kind::TemplateType
                    )
                }),
            }
        })
        .collect()
}

/// The name in a declarator: `(*f)(int)` declares `f`.
pub(super) fn innermost(declarator: Node<'_>) -> Node<'_> {
    let mut at = declarator;
    while at.kind() != Kind::Identifier {
        let inner = at.field(Field::Declarator).or_else(|| {
            parts(at)
                .into_iter()
                .find(|part| part.kind() != Kind::TypeQualifier)
        });
        match inner {
            Some(inner) => at = inner,
            None => break,
        }
    }
    at
}

/// The class or alias of a template, and its name.
pub(super) fn templated(template: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let inner = parts(template).into_iter().rfind(|part| {
        matches!(
            part.kind(),
            Kind::StructSpecifier
                | Kind::ClassSpecifier
                | Kind::UnionSpecifier
                | Kind::AliasDeclaration
                | Kind::Declaration
        )
    })?;
    let inner = match inner.kind() {
        Kind::Declaration => inner.field(Field::Type)?,
        _ => inner,
    };
    Some((inner, inner.field(Field::Name)?))
}

/// The parameters of a function; empty for `(void)`.
pub(super) fn parameter_nodes<'t>(function: Node<'t>, source: Source<'t>) -> Option<Vec<Node<'t>>> {
    let declarator = function_declarator(function)?;
    let list = declarator.field(Field::Parameters)?;
    Some(plain_parameters(list, source))
}

pub(super) fn plain_parameters<'t>(list: Node<'t>, source: Source<'t>) -> Vec<Node<'t>> {
    let mut params: Vec<Node> = parts(list)
        .into_iter()
        .filter(|param| param.kind().is_parameter_declaration())
        .collect();
    if params.len() == 1 && text_of(params[0], source).trim() == "void" {
        params.clear();
    }
    params
}

/// The parameters of a block.
pub(super) fn block_parameters<'t>(literal: Node<'t>, source: Source<'t>) -> Vec<Node<'t>> {
    literal
        .field(Field::Parameters)
        .map(|list| plain_parameters(list, source))
        .unwrap_or_default()
}

pub(super) fn returns_reference(function: Node) -> bool {
    let mut at = function.field(Field::Declarator);
    while let Some(node) = at {
        match node.kind() {
            Kind::ReferenceDeclarator => return true,
            Kind::FunctionDeclarator
            | Kind::AbstractFunctionDeclarator
            | Kind::LambdaDeclarator => {
                return trails_a_reference(node);
            }
            _ => {}
        }
        at = node
            .field(Field::Declarator)
            .or_else(|| node.named_child(0));
    }
    false
}

/// The type behind `auto f(…) ->`.
pub(super) fn trailing_type(function: Node<'_>) -> Option<Node<'_>> {
    let declarator = crate::outline::function_declarator(function)?;
    let trailing = super::child_of_kind(declarator, Kind::TrailingReturnType)?;
    trailing.named_child(0)
}

/// True for `(…) -> T &`.
fn trails_a_reference(declarator: Node) -> bool {
    let trailing = super::child_of_kind(declarator, Kind::TrailingReturnType);
    let ty = trailing.and_then(|trailing| trailing.named_child(0));
    ty.is_some_and(|ty| super::child_of_kind(ty, Kind::AbstractReferenceDeclarator).is_some())
}

/// True where a declaration has that word before its declarators.
pub(super) fn has_word(node: Node, source: Source, word: &str) -> bool {
    node.children()
        .take_while(|child| !child.kind().is_declarator())
        .any(|child| text_of(child, source) == word)
}

/// The address space that a declaration names in OpenCL: by nodes of the grammar, or by blanked words.
pub(super) fn space_of(node: Node, source: Source) -> Option<AddressSpace> {
    for child in node.children() {
        if child.kind() == Kind::AddressSpaceQualifier {
            return match text_of(child, source).trim_matches('_') {
                "global" => Some(AddressSpace::Global),
                "local" => Some(AddressSpace::Shared),
                "constant" => Some(AddressSpace::Constant),
                "private" => Some(AddressSpace::Private),
                _ => None,
            };
        }
    }
    None
}

/// The address space that a pointer lies in itself: `T *__local p`.
pub(super) fn pointer_space(declarator: Node, source: Source) -> Option<AddressSpace> {
    let mut found = None;
    let mut node = Some(declarator);
    while let Some(at) = node {
        if at.kind() == Kind::PointerDeclarator {
            found = space_of(at, source)
                .or_else(|| at.children().find_map(|child| space_of(child, source)));
        }
        node = at
            .field(Field::Declarator)
            .filter(|inner| matches!(inner.kind(), Kind::PointerDeclarator | Kind::InitDeclarator));
    }
    found
}

/// True for the declarator of a pointer to a function, or of an array of them, and not of a function.
pub(super) fn points_to_function(declarator: Node) -> bool {
    declarator
        .field(Field::Declarator)
        .is_some_and(|inner| inner.kind() == Kind::ParenthesizedDeclarator)
}

/// True where something gives that name another value: an assignment, an increment.
pub(super) fn writes(node: Node, name: &str, source: Source) -> bool {
    let target = match node.kind() {
        Kind::AssignmentExpression => node.field(Field::Left),
        Kind::UpdateExpression => node.field(Field::Argument),
        _ => None,
    };
    if target.is_some_and(|target| text_of(target, source) == name) {
        return true;
    }
    node.named_children()
        .any(|child| writes(child, name, source))
}

/// True where each mention of a name is of a field of it that is read: not written, called, or pointed to.
pub(super) fn only_reads_members(node: Node, name: &str, source: Source) -> bool {
    if node.kind() == Kind::Identifier && text_of(node, source) == name {
        let mut at = node;
        let mut fields = 0;
        while let Some(parent) = at.parent() {
            let object = parent
                .field(Field::Argument)
                .is_some_and(|object| object.byte_range() == at.byte_range());
            match parent.kind() {
                Kind::FieldExpression if object => fields += 1,
                Kind::SubscriptExpression if object => {}
                Kind::AssignmentExpression => {
                    let left = parent.field(Field::Left);
                    return fields > 0
                        && left.is_none_or(|left| left.byte_range() != at.byte_range());
                }
                Kind::UpdateExpression | Kind::PointerExpression => return false,
                Kind::CallExpression => {
                    let callee = parent.field(Field::Function);
                    return fields > 0
                        && callee.is_none_or(|callee| callee.byte_range() != at.byte_range());
                }
                _ => return fields > 0,
            }
            at = parent;
        }
        return false;
    }
    node.named_children()
        .all(|child| only_reads_members(child, name, source))
}

/// True where a function's body names the function with something behind it that may be a call.
pub(super) fn calls_itself(function: Node, source: Source) -> bool {
    let name = function_declarator(function)
        .and_then(|declarator| declarator.field(Field::Declarator))
        .map(|name| text_of(name, source))
        .and_then(|name| name.split('<').next())
        .and_then(|name| name.rsplit("::").next())
        .map_or("", str::trim);
    let Some(body) = function.field(Field::Body) else {
        return false;
    };
    if name.is_empty() || name.starts_with("operator") {
        return false;
    }
    let text = text_of(body, source);
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_word_part) && {
            let rest = text[at + name.len()..].trim_start();
            rest.starts_with(['(', '<'])
        }
    })
}
