//! Lets the compiler put a function in place of its calls: `__forceinline__` for `__noinline__`.

use std::ops::Range;

use crate::Finding;
use warplens_syntax::{Field, Kind, Language, Node, Parsed, has_word};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{
    descendants_at_top, function_declarator, in_a_macro, kernel_node, text,
};
use crate::fixes::wording::gain;
use crate::fixes::{Edit, Fix, Kernel, Request};

const RULE: &str = "call/not-inlined";

/// How a function is said not to be inlined, longest first.
const SPELLED: [&str; 4] = [
    "__attribute__((noinline))",
    "__attribute__((__noinline__))",
    "[[gnu::noinline]]",
    "__noinline__",
];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |kernel, finding, place| {
        fix(request, kernel, finding, place)
    })
}

fn fix(
    request: &Request<'_>,
    kernel: &Kernel<'_>,
    finding: &Finding,
    place: &Range<usize>,
) -> Option<Fix> {
    let parsed = request.document.parsed();
    let function = kernel_node(parsed, kernel.start..kernel.end)?;
    let mut call = function.descendant_for_byte_range(place.start, place.end)?;
    while call.kind() != Kind::CallExpression {
        call = call
            .parent()
            .filter(|parent| parent.byte_range().len() <= place.len())?;
    }
    let callee = call.field(Field::Function)?;
    let name = text(parsed, callee).split('<').next()?.trim();
    if in_a_macro(parsed, name) || SPELLED.iter().any(|word| in_a_macro(parsed, word)) {
        return None;
    }
    // Another declaration would say the opposite.
    if !only_declared_once(parsed, name) {
        return None;
    }
    let definition = definition(parsed, name)?;
    let told = told(parsed, definition)?;
    let edit: Edit = if request.document.language() == Language::OpenCl {
        // What its compilers put in place of its calls unasked.
        let rest = &parsed.text[told.end..];
        let gap = rest.len() - rest.trim_start_matches(' ').len();
        (told.start..told.end + gap, String::new())
    } else {
        (told, "__forceinline__".to_owned())
    };
    let edits = vec![edit];
    let proof = prove(request, kernel, &edits)?;
    proof.speedup(kernel)?;
    let left = |kernel: &Kernel<'_>| {
        let mut of_rule = kernel.findings.iter();
        of_rule.any(|one| one.rule == RULE && one.message == finding.message)
    };
    if left(&proof.after()) {
        return None;
    }
    Some(Fix {
        title: format!("Put `{name}` in place of its calls, {}", gain(finding.gain)),
        rule: RULE,
        edits,
        gain: finding.gain,
        complete: true,
    })
}

/// The only definition of a function in the file.
fn definition<'t>(parsed: &'t Parsed, name: &str) -> Option<Node<'t>> {
    let mut definitions = descendants_at_top(parsed.tree.root_node())
        .into_iter()
        .filter(|node| node.kind() == Kind::FunctionDefinition)
        .filter(|node| declares(parsed, *node, name));
    let (Some(definition), None) = (definitions.next(), definitions.next()) else {
        return None;
    };
    Some(definition)
}

fn declares(parsed: &Parsed, node: Node, name: &str) -> bool {
    function_declarator(node)
        .and_then(|declarator| declarator.field(Field::Declarator))
        .is_some_and(|of| text(parsed, of) == name)
}

/// True where nothing but its definition declares the function.
fn only_declared_once(parsed: &Parsed, name: &str) -> bool {
    !descendants_at_top(parsed.tree.root_node())
        .into_iter()
        .filter(|node| node.kind() == Kind::Declaration)
        .any(|node| has_word(text(parsed, node), name))
}

/// Where a definition says that it is not to be inlined. Words that the grammar lacks may stand in front of it.
fn told(parsed: &Parsed, definition: Node) -> Option<Range<usize>> {
    let body = definition.field(Field::Body)?;
    let from = definition
        .prev_sibling()
        .map_or(0, |before| before.end_byte());
    let head = parsed.text.get(from..body.start_byte())?;
    let mut found = SPELLED.iter().filter_map(|word| {
        let at = head.find(word)?;
        let more = head[at + word.len()..].contains(word);
        (!more).then_some(from + at..from + at + word.len())
    });
    // A comment that names the word is none.
    let told = found.next()?;
    let commented = head[..told.start - from]
        .rfind("//")
        .is_some_and(|at| !head[at..told.start - from].contains('\n'))
        || head[..told.start - from].matches("/*").count()
            != head[..told.start - from].matches("*/").count();
    (!commented).then_some(told)
}
