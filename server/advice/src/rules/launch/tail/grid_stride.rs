//! Lets each thread take further elements, as many threads on: any number of blocks does the work then, whole waves of
//! them too.

use warplens_hir::Semantics;
use warplens_hir::semantics::{children, declared_name};
use warplens_syntax::{Field, Kind, Language, Node, has_word};

use crate::fixes::guarded::axes;
use crate::fixes::proof::{of_kernels, prove};
use crate::fixes::source::{indent, writes};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};

const RULE: &str = "launch/tail";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_kernels(request, RULE, fix)
}

fn fix(request: &Request<'_>, kernel: &Kernel) -> Option<Fix> {
    let document = request.document;
    let code = Semantics::new(document);
    let definition = code.kernel(kernel.start..kernel.end)?;
    // One axis: each thread works on one element, behind its bound, and meets no other.
    let [Some(axis), None, None] = axes(code, definition)? else {
        return None;
    };
    let [_, 1, 1] = kernel.facts.launch.block else {
        return None;
    };
    let statements = children(definition.field(Field::Body)?);
    let guard_at = statements
        .iter()
        .position(|one| one.kind() == Kind::IfStatement)?;
    let (before, rest) = statements.split_at(guard_at);
    let (guard, behind) = rest.split_first()?;
    let index = before
        .iter()
        .find(|one| declares(code, **one, &axis.index))?;
    let others: Vec<&Node> = before.iter().filter(|one| *one != index).collect();
    // What is computed from the index would have to move along.
    let hang = others
        .iter()
        .any(|one| has_word(code.text(**one), &axis.index));
    let mut names: Vec<&str> = vec![&axis.index];
    for statement in &others {
        let declarators = children(**statement).into_iter();
        let declarators = declarators.filter(|one| one.kind() == Kind::InitDeclarator);
        names.extend(
            declarators
                .filter_map(declared_name)
                .map(|name| code.text(name)),
        );
    }
    let then = guard.field(Field::Consequence)?;
    let inside = if behind.is_empty() {
        std::slice::from_ref(&then)
    } else {
        behind
    };
    let all: Vec<Node> = inside.iter().flat_map(Node::descendants).collect();
    let ends = all.iter().any(|one| one.kind() == Kind::ReturnStatement);
    let changed = all.iter().any(|one| {
        let name = code.text(*one);
        (names.contains(&name) || has_word(&axis.bound, name) && one.kind() == Kind::Identifier)
            && writes(*one)
    });
    let directives = definition
        .descendants()
        .iter()
        .any(|one| one.kind().is_directive());
    if hang || ends || changed || directives || code.in_a_macro(&axis.index) {
        return None;
    }
    let edits = in_order(edits(request, index, guard, behind)?)?;
    let proof = prove(request, kernel, &edits)?;
    // The launch is as before, and so is the time: what a loop costs must not show.
    let speedup = proof.speedup(kernel)?;
    Some(Fix {
        title: "Loop over the grid: any number of blocks may be launched then, whole waves too; that is left to do by \
                hand, no predicted gain until then"
            .to_owned(),
        rule: RULE,
        edits,
        gain: speedup,
        complete: false,
    })
}

/// True for a declaration of this name alone.
fn declares(code: Semantics, statement: Node, name: &str) -> bool {
    let declarators: Vec<Node> = children(statement)
        .into_iter()
        .filter(|one| one.kind() == Kind::InitDeclarator)
        .collect();
    let [declarator] = declarators[..] else {
        return false;
    };
    declared_name(declarator).is_some_and(|found| code.text(found) == name)
}

/// The declaration of the index and the guard become the head of a loop.
fn edits(request: &Request<'_>, index: &Node, guard: &Node, behind: &[Node]) -> Option<Vec<Edit>> {
    let code = request.code();
    let declarator = children(*index)
        .into_iter()
        .find(|one| one.kind() == Kind::InitDeclarator)?;
    let ty = code.text(index.field(Field::Type)?);
    let name = code.text(declared_name(declarator)?);
    let stride = match request.document.language() {
        Language::OpenCl => "get_global_size(0)",
        Language::Cuda | Language::Hip => "gridDim.x * blockDim.x",
    };
    let condition = guard.field(Field::Condition)?;
    let test = code.text(condition);
    let test = test.strip_prefix('(')?.strip_suffix(')')?.trim();
    let head = |test: &str| {
        format!(
            "for ({ty} {}; {test}; {name} += {stride})",
            code.text(declarator)
        )
    };
    // The declaration goes with its line, where it has one of its own.
    let text_of = code.source;
    let line = text_of[..index.start_byte()]
        .rfind('\n')
        .map_or(0, |at| at + 1);
    let end = text_of[index.end_byte()..].find('\n')? + index.end_byte() + 1;
    let alone = text_of[line..index.start_byte()].trim().is_empty()
        && text_of[index.end_byte()..end].trim().is_empty();
    let mut edits = vec![if alone {
        (line..end, String::new())
    } else {
        return None;
    }];
    if behind.is_empty() {
        edits.push((guard.start_byte()..condition.end_byte(), head(test)));
        return Some(edits);
    }
    // `if (i >= n) return;`: what is behind it becomes the loop's body.
    let (left, right) = test.split_once(">=")?;
    let test = format!("{} < {}", left.trim(), right.trim());
    edits.push((guard.byte_range(), format!("{} {{", head(&test))));
    let last = behind.last()?;
    let margin = indent(text_of, guard.start_byte());
    let deeper = if margin.contains('\t') { "\t" } else { "    " };
    let newline = if text_of[..end].ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let mut at = guard.end_byte();
    // Every line behind the guard, blank ones aside.
    while let Some(next) = text_of[at..last.end_byte()].find('\n') {
        at += next + 1;
        let line = text_of[at..].lines().next().unwrap_or_default();
        if !line.trim().is_empty() {
            edits.push((at..at, deeper.to_owned()));
        }
    }
    let stop = last.end_byte();
    edits.push((stop..stop, format!("{newline}{margin}}}")));
    Some(edits)
}
