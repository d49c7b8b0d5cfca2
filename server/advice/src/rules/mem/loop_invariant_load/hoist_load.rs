//! Loads before a loop what the loop loads in each iteration.
//!
//! The rule has seen that nothing in the loop changes the word, and that a barrier is between what wrote it and the
//! loop. What is left to see: the loop runs at least once, so that nothing is loaded that was not.

use crate::Cure;
use warplens_facts::facts::Site;
use warplens_hir::Semantics;
use warplens_hir::semantics::declared_name;
use warplens_syntax::{BinaryOperator, Field, Kind, Node, binary, has_word};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::element;
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::faster;

const RULE: &str = "mem/loop-invariant-load";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, finding, site| {
        // Where a store may reach it, only `restrict` says what the loop means.
        (finding.cure != Some(Cure::Restrict)).then(|| fix(request, kernel, site))?
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, site: Site) -> Option<Fix> {
    let code = request.code();
    let source = kernel.source(code)?;
    let function = source.function;
    let load = element(source, site)?;
    let looped = loop_around(load)?;
    if function.has_error() || !runs(code, looped) || !comes_there(load, looped) {
        return None;
    }
    let written = code.text(load);
    let array = array(load).map(|name| code.text(name))?;
    let steps = |node: &Node| node.kind() == Kind::UpdateExpression;
    if code.in_a_macro(array) || load.descendants().iter().any(steps) {
        return None;
    }
    let ty = element_type(code, function, array)?;
    let name = ["value", "kept", "before_loop"]
        .iter()
        .map(|word| format!("{array}_{word}"))
        .find(|name| !has_word(code.source, name))?;
    let mut edits: Vec<Edit> = looped
        .field(Field::Body)?
        .descendants()
        .into_iter()
        .filter(|node| node.kind() == load.kind() && same(code.text(*node), written))
        .map(|node| (node.byte_range(), name.clone()))
        .collect();
    let before = before(code, looped)?;
    let line = code.source[..before].rfind('\n').map_or(0, |at| at + 1);
    let indent = &code.source[line..before];
    if !indent.trim().is_empty() {
        return None;
    }
    let newline = if code.source.contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    edits.push((
        before..before,
        format!("const {ty} {name} = {written};{newline}{indent}"),
    ));
    let edits = in_order(edits)?;
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    (proof.after().count(RULE) < kernel.count(RULE)).then(|| Fix {
        title: format!(
            "Load `{written}` once, before the loop, {}",
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}

/// The name that its subscripts follow.
fn array(element: Node) -> Option<Node> {
    let mut at = element;
    while at.kind() == Kind::SubscriptExpression {
        at = at.field(Field::Argument)?;
    }
    (at.kind() == Kind::Identifier).then_some(at)
}

fn loop_around(node: Node) -> Option<Node> {
    let mut at = node.parent()?;
    while !matches!(
        at.kind(),
        Kind::ForStatement | Kind::WhileStatement | Kind::DoStatement
    ) {
        if at.kind() == Kind::FunctionDefinition || at.kind() == Kind::LambdaExpression {
            return None;
        }
        at = at.parent()?;
    }
    Some(at)
}

/// True where the loop's body runs at least once, whatever the arguments.
fn runs(code: Semantics, looped: Node) -> bool {
    match looped.kind() {
        Kind::DoStatement => true,
        Kind::ForStatement => {
            literal_bounds(code, looped).is_some_and(|(first, op, last)| match op {
                BinaryOperator::Less => first < last,
                BinaryOperator::LessEqual => first <= last,
                BinaryOperator::Greater => first > last,
                BinaryOperator::GreaterEqual => first >= last,
                BinaryOperator::NotEqual => first != last,
                _ => false,
            })
        }
        _ => false,
    }
}

/// 0, `<` and 8 of `for (int k = 0; k < 8; …)`.
fn literal_bounds(code: Semantics, looped: Node) -> Option<(i64, BinaryOperator, i64)> {
    let number = |node: Node| code.text(node).parse::<i64>().ok();
    let given = looped.field(Field::Initializer)?;
    let (counter, first) = match given.kind() {
        Kind::Declaration => {
            let one = given.field(Field::Declarator)?;
            (declared_name(one)?, one.field(Field::Value)?)
        }
        Kind::AssignmentExpression => (given.field(Field::Left)?, given.field(Field::Right)?),
        _ => return None,
    };
    let condition = looped.field(Field::Condition)?;
    let left = condition.field(Field::Left)?;
    let plain = condition.kind() == Kind::BinaryExpression && code.text(left) == code.text(counter);
    let operator = binary(condition)?;
    let last = number(condition.field(Field::Right)?)?;
    plain.then_some((number(first)?, operator, last))
}

/// True where each iteration evaluates the load.
fn comes_there(load: Node, looped: Node) -> bool {
    let Some(body) = looped.field(Field::Body) else {
        return false;
    };
    let leaves = body.descendants().into_iter().any(|node| {
        matches!(
            node.kind(),
            Kind::BreakStatement
                | Kind::ContinueStatement
                | Kind::ReturnStatement
                | Kind::GotoStatement
                | Kind::LambdaExpression
        )
    });
    let mut at = load;
    while at != body {
        let Some(parent) = at.parent() else {
            return false;
        };
        let always = match parent.kind() {
            Kind::BinaryExpression => parent
                .field(Field::Operator)
                .is_some_and(|operator| !matches!(operator.kind(), Kind::And | Kind::Or)),
            Kind::AssignmentExpression => parent.field(Field::Right) == Some(at),
            Kind::CompoundStatement
            | Kind::ExpressionStatement
            | Kind::Declaration
            | Kind::InitDeclarator
            | Kind::ParenthesizedExpression
            | Kind::ArgumentList
            | Kind::CallExpression
            | Kind::CastExpression
            | Kind::UnaryExpression => true,
            _ => false,
        };
        if !always {
            return false;
        }
        at = parent;
    }
    !leaves
}

/// Where a declaration can stand before the loop and its pragmas.
fn before(code: Semantics, looped: Node) -> Option<usize> {
    if looped.parent()?.kind() != Kind::CompoundStatement {
        return None;
    }
    let mut first = looped;
    while let Some(earlier) = first.prev_sibling() {
        if !code.text(earlier).trim_start().starts_with("#pragma") {
            break;
        }
        first = earlier;
    }
    Some(first.start_byte())
}

/// The type of an array's elements as it is declared.
fn element_type(code: Semantics, function: Node, array: &str) -> Option<String> {
    let declaration = code.declared(function, array)?;
    let indirect = [Kind::ArrayDeclarator, Kind::PointerDeclarator];
    let ty = declaration.ty()?;
    if !indirect.contains(&declaration.declarator.kind())
        || has_word(code.text(declaration.node), "volatile")
    {
        return None;
    }
    if ty.kind() == Kind::PrimitiveType {
        return Some(code.text(ty).to_owned());
    }
    (!code.is_opencl()).then(|| "auto".to_owned())
}
