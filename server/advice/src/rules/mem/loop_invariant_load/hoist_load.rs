//! Loads before a loop what the loop loads in each iteration.
//!
//! The rule has seen that nothing in the loop changes the word, and that a barrier stands between what wrote it and the
//! loop. What is left to see: the loop runs at least once, so that nothing is loaded that was not.

use std::ops::Range;
use warplens_syntax::Fields as _;

use crate::Cure;
use warplens_syntax::{Language, Node, Parsed};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{
    children, declared_name, descendants, has_word, in_a_macro, kernel_node, text,
};
use crate::fixes::wording::gain;
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};

const RULE: &str = "mem/loop-invariant-load";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |kernel, finding, place| {
        // Where a store may reach it, only `restrict` says what the loop means.
        (finding.cure != Some(Cure::Restrict)).then(|| fix(request, kernel, place.clone()))?
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, place: Range<usize>) -> Option<Fix> {
    let parsed = request.document.parsed();
    let function = kernel_node(parsed, kernel.start..kernel.end)?;
    let load = element_at(function, place)?;
    let looped = loop_around(load)?;
    if function.has_error() || !runs(parsed, looped) || !comes_there(load, looped) {
        return None;
    }
    let written = text(parsed, load);
    let array = array(load).map(|name| text(parsed, name))?;
    if in_a_macro(parsed, array) || written.contains("++") || written.contains("--") {
        return None;
    }
    let ty = element_type(request, function, array)?;
    let name = ["value", "kept", "before_loop"]
        .iter()
        .map(|word| format!("{array}_{word}"))
        .find(|name| !has_word(&parsed.text, name))?;
    let mut edits: Vec<Edit> = descendants(looped.field("body")?)
        .into_iter()
        .filter(|node| node.kind() == load.kind() && same(text(parsed, *node), written))
        .map(|node| (node.byte_range(), name.clone()))
        .collect();
    let before = before(parsed, looped)?;
    let line = parsed.text[..before].rfind('\n').map_or(0, |at| at + 1);
    let indent = &parsed.text[line..before];
    if !indent.trim().is_empty() {
        return None;
    }
    let newline = if parsed.text.contains("\r\n") {
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
    let count = |kernel: &Kernel<'_>| kernel.findings.iter().filter(|of| of.rule == RULE).count();
    (count(&proof.after()) < count(kernel)).then(|| Fix {
        title: format!("Load `{written}` once, before the loop, {}", gain(speedup)),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}

/// The subscript that a finding is about.
fn element_at(function: Node<'_>, place: Range<usize>) -> Option<Node<'_>> {
    let node = function.descendant_for_byte_range(place.start, place.end)?;
    (node.kind() == "subscript_expression" && node.byte_range() == place).then_some(node)
}

/// The name that its subscripts follow.
fn array(element: Node) -> Option<Node> {
    let mut at = element;
    while at.kind() == "subscript_expression" {
        at = at.field("argument")?;
    }
    (at.kind() == "identifier").then_some(at)
}

fn loop_around(node: Node) -> Option<Node> {
    let mut at = node.parent()?;
    while !matches!(
        at.kind(),
        "for_statement" | "while_statement" | "do_statement"
    ) {
        if at.kind() == "function_definition" || at.kind() == "lambda_expression" {
            return None;
        }
        at = at.parent()?;
    }
    Some(at)
}

/// True where the loop's body runs at least once, whatever the arguments.
fn runs(parsed: &Parsed, looped: Node) -> bool {
    match looped.kind() {
        "do_statement" => true,
        "for_statement" => {
            literal_bounds(parsed, looped).is_some_and(|(first, op, last)| match op {
                "<" => first < last,
                "<=" => first <= last,
                ">" => first > last,
                ">=" => first >= last,
                "!=" => first != last,
                _ => false,
            })
        }
        _ => false,
    }
}

/// `(0, "<", 8)` of `for (int k = 0; k < 8; …)`.
fn literal_bounds<'t>(parsed: &'t Parsed, looped: Node) -> Option<(i64, &'t str, i64)> {
    let number = |node: Node| text(parsed, node).parse::<i64>().ok();
    let given = looped.field("initializer")?;
    let (counter, first) = match given.kind() {
        "declaration" => {
            let one = given.field("declarator")?;
            (declared_name(one)?, one.field("value")?)
        }
        "assignment_expression" => (given.field("left")?, given.field("right")?),
        _ => return None,
    };
    let condition = looped.field("condition")?;
    let left = condition.field("left")?;
    let plain =
        condition.kind() == "binary_expression" && text(parsed, left) == text(parsed, counter);
    let operator = text(parsed, condition.field("operator")?);
    let last = number(condition.field("right")?)?;
    plain.then_some((number(first)?, operator, last))
}

/// True where each iteration evaluates the load.
fn comes_there(load: Node, looped: Node) -> bool {
    let Some(body) = looped.field("body") else {
        return false;
    };
    let leaves = descendants(body).into_iter().any(|node| {
        matches!(
            node.kind(),
            "break_statement"
                | "continue_statement"
                | "return_statement"
                | "goto_statement"
                | "lambda_expression"
        )
    });
    let mut at = load;
    while at != body {
        let Some(parent) = at.parent() else {
            return false;
        };
        let always = match parent.kind() {
            "binary_expression" => parent
                .field("operator")
                .is_some_and(|operator| !matches!(operator.kind(), "&&" | "||")),
            "assignment_expression" => parent.field("right") == Some(at),
            "compound_statement"
            | "expression_statement"
            | "declaration"
            | "init_declarator"
            | "parenthesized_expression"
            | "argument_list"
            | "call_expression"
            | "cast_expression"
            | "unary_expression" => true,
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
fn before(parsed: &Parsed, looped: Node) -> Option<usize> {
    if looped.parent()?.kind() != "compound_statement" {
        return None;
    }
    let mut first = looped;
    while let Some(earlier) = first.prev_sibling() {
        if !text(parsed, earlier).trim_start().starts_with("#pragma") {
            break;
        }
        first = earlier;
    }
    Some(first.start_byte())
}

/// The type of an array's elements as it is declared.
fn element_type(request: &Request<'_>, function: Node, array: &str) -> Option<String> {
    let parsed = request.document.parsed();
    let mut declared = descendants(function).into_iter().filter(|node| {
        let named = |declarator: Node| {
            matches!(declarator.kind(), "array_declarator" | "pointer_declarator")
                && declared_name(declarator).is_some_and(|name| text(parsed, name) == array)
        };
        let mut cursor = node.walk();
        matches!(node.kind(), "declaration" | "parameter_declaration")
            && node
                .children_by_field_name("declarator", &mut cursor)
                .any(named)
    });
    let (one, None) = (declared.next()?, declared.next()) else {
        return None;
    };
    let ty = one.field("type")?;
    if has_word(text(parsed, one), "volatile") || children(one).is_empty() {
        return None;
    }
    if ty.kind() == "primitive_type" {
        return Some(text(parsed, ty).to_owned());
    }
    (request.document.language() != Language::OpenCl).then(|| "auto".to_owned())
}
