//! Copies into shared memory past the registers: `__pipeline_memcpy_async`, waited for before the barrier.

use std::ops::Range;

use crate::Finding;
use warplens_facts::facts::{Op, Space};
use warplens_ir::{Function, known_function};
use warplens_syntax::{Field, Kind, Language, Node, Parsed, has_word};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{declared_type, in_a_macro, indent, kernel_node, text};
use crate::fixes::wording::{counted, gain};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};

const RULE: &str = "mem/async-copy";
const BARRIER: &str = "__syncthreads";
const HEADER: &str = "cuda_pipeline.h";
/// What a file of HIP shows.
const HIP: [&str; 3] = ["hip/hip_", "hipLaunch", "hipMalloc"];
/// Whoever copies so already has an order of his own.
const PIPELINES: [&str; 4] = ["__pipeline_", "memcpy_async", "cp.async", "cuda::pipeline"];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    if request.document.language() != Language::Cuda {
        return Vec::new();
    }
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
    let own = text(parsed, function);
    // A file of HIP may have the ending of CUDA's.
    let hip = HIP.iter().any(|word| parsed.text.contains(word));
    if hip || function.has_error() || PIPELINES.iter().any(|word| own.contains(word)) {
        return None;
    }
    let places: Vec<Range<usize>> = std::iter::once(place.clone())
        .chain(finding.related.iter().map(|(site, _)| kernel.place(*site)))
        .collect();
    let copies: Vec<Copy> = places
        .iter()
        .filter_map(|place| copy(parsed, function, place))
        .collect();
    let mut barriers: Vec<Node> = Vec::new();
    let mut edits: Vec<Edit> = Vec::new();
    for copy in &copies {
        let Some(barrier) = waited_for(parsed, kernel, function, copy) else {
            continue;
        };
        if !barriers.contains(&barrier) {
            barriers.push(barrier);
        }
        let (to, from) = (text(parsed, copy.to), text(parsed, copy.from));
        edits.push((
            copy.assignment.byte_range(),
            format!("__pipeline_memcpy_async(&{to}, &{from}, sizeof({to}))"),
        ));
    }
    let made = edits.len();
    if made == 0 {
        return None;
    }
    for barrier in barriers {
        let at = barrier.start_byte();
        let margin = indent(&parsed.text, at);
        let alone = parsed.text[..at].ends_with(&format!("\n{margin}"));
        let between = if alone {
            format!("\n{margin}")
        } else {
            " ".to_owned()
        };
        edits.push((
            at..at,
            format!("__pipeline_commit();{between}__pipeline_wait_prior(0);{between}"),
        ));
    }
    if !parsed.text.contains(HEADER) {
        let at = behind_includes(parsed, kernel.start);
        edits.push((at..at, format!("#include <{HEADER}>\n")));
    }
    let edits = in_order(edits)?;
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    let after = proof.after();
    let same = |one: &Finding| one.rule == RULE && one.message == finding.message;
    if after.findings.iter().any(same) {
        return None;
    }
    Some(Fix {
        title: format!(
            "Copy past the registers: {} by `__pipeline_memcpy_async`, {}",
            counted(made as f64, "copy", "copies"),
            gain(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// `tile[i] = in[j];`
struct Copy<'t> {
    statement: Node<'t>,
    assignment: Node<'t>,
    to: Node<'t>,
    from: Node<'t>,
    /// The shared array.
    tile: &'t str,
}

fn copy<'t>(parsed: &'t Parsed, function: Node<'t>, place: &Range<usize>) -> Option<Copy<'t>> {
    let mut assignment = function.descendant_for_byte_range(place.start, place.end)?;
    while assignment.kind() != Kind::AssignmentExpression {
        assignment = assignment
            .parent()
            .filter(|parent| parent.byte_range().len() <= place.len() + 1)?;
    }
    let statement = assignment
        .parent()
        .filter(|parent| parent.kind() == Kind::ExpressionStatement)?;
    let operator = assignment.field(Field::Operator)?;
    let to = assignment.field(Field::Left)?;
    let from = assignment.field(Field::Right)?;
    let element = |node: Node| node.kind() == Kind::SubscriptExpression;
    if text(parsed, operator) != "=" || !element(to) || !element(from) {
        return None;
    }
    let mut array = to;
    while array.kind() == Kind::SubscriptExpression {
        array = array.field(Field::Argument)?;
    }
    let tile = text(parsed, array);
    if array.kind() != Kind::Identifier || in_a_macro(parsed, tile) || changes(parsed, assignment) {
        return None;
    }
    hangs_on_no_template(parsed, function, tile).then_some(Copy {
        statement,
        assignment,
        to,
        from,
        tile,
    })
}

/// True where evaluating a subscript changes something: it is written twice.
fn changes(parsed: &Parsed, assignment: Node) -> bool {
    assignment.descendants().into_iter().any(|node| {
        node != assignment
            && matches!(
                node.kind(),
                Kind::AssignmentExpression | Kind::UpdateExpression | Kind::CallExpression
            )
            && !text(parsed, node).is_empty()
    })
}

/// True where the element is the same size whatever the kernel's template is given.
fn hangs_on_no_template(parsed: &Parsed, function: Node, tile: &str) -> bool {
    let Some(template) = function
        .parent()
        .filter(|parent| parent.kind() == Kind::TemplateDeclaration)
    else {
        return true;
    };
    let parameters = template.field(Field::Parameters);
    let Some(parameters) = parameters else {
        return false;
    };
    declared_element(parsed, function, tile)
        .is_some_and(|element| !has_word(text(parsed, parameters), element))
}

/// The type of a shared array's elements as it is written.
fn declared_element<'t>(parsed: &'t Parsed, function: Node<'t>, tile: &str) -> Option<&'t str> {
    if let Some(found) = declared_type(parsed, function, tile) {
        return Some(found);
    }
    let declarations = function.descendants().into_iter();
    let mut declaring = declarations
        .filter(|node| node.kind() == Kind::Declaration && has_word(text(parsed, *node), tile));
    let ty = declaring.next()?.field(Field::Type)?;
    Some(text(parsed, ty))
}

/// The barrier behind a copy at which the block waits for it, where nothing in between needs what is copied, changes
/// what it is copied from, or leads past the barrier.
fn waited_for<'t>(
    parsed: &'t Parsed,
    kernel: &Kernel<'_>,
    function: Node<'t>,
    copy: &Copy<'t>,
) -> Option<Node<'t>> {
    let body = function.field(Field::Body)?;
    let mut at = copy.statement;
    let barrier = 'found: loop {
        let mut next = at;
        // The sides of an `if` are no list: what stands beside is another side.
        if at.parent()?.kind() == Kind::CompoundStatement {
            while let Some(sibling) = next.next_named_sibling() {
                if is_barrier(parsed, sibling) {
                    break 'found sibling;
                }
                next = sibling;
            }
        }
        at = at.parent()?;
        if at == body || at.kind() == Kind::SwitchStatement {
            return None;
        }
    };
    let stretch = at.start_byte()..barrier.start_byte();
    let meets = kernel.facts.accesses.iter().any(|access| {
        let place = kernel.place(access.site);
        // Loads of shared memory: the tile may have another name.
        (access.space == Space::Shared) == (access.op == Op::Load)
            && matches!(access.space, Space::Shared | Space::Global)
            && stretch.start <= place.start
            && place.start < stretch.end
    });
    let list = barrier.parent()?;
    let harmless = list
        .descendants()
        .into_iter()
        .filter(|node| stretch.start <= node.start_byte() && node.end_byte() <= stretch.end)
        .all(|node| harmless(parsed, node, copy.tile));
    (!meets && harmless).then_some(barrier)
}

fn is_barrier(parsed: &Parsed, statement: Node) -> bool {
    statement.kind() == Kind::ExpressionStatement
        && text(parsed, statement)
            .split_whitespace()
            .collect::<String>()
            == format!("{BARRIER}();")
}

/// True for what may stand between a copy into `tile` and the barrier.
fn harmless(parsed: &Parsed, node: Node, tile: &str) -> bool {
    match node.kind() {
        Kind::ReturnStatement
        | Kind::BreakStatement
        | Kind::ContinueStatement
        | Kind::GotoStatement
        | Kind::LabeledStatement
        | Kind::GnuAsmExpression
        | Kind::LambdaExpression => false,
        Kind::CallExpression => {
            let name = node.field(Field::Function);
            let name = name.map_or("", |name| text(parsed, name));
            matches!(known_function(name, false), Some(Function::Math(..)))
        }
        Kind::Identifier if text(parsed, node) == tile => {
            let mut place = node;
            while let Some(parent) = place.parent().filter(|parent| {
                parent.kind() == Kind::SubscriptExpression
                    && parent.field(Field::Argument) == Some(place)
            }) {
                place = parent;
            }
            place.parent().is_some_and(|parent| {
                parent.kind() == Kind::AssignmentExpression
                    && parent.field(Field::Left) == Some(place)
                    && parent
                        .field(Field::Operator)
                        .is_some_and(|operator| text(parsed, operator) == "=")
            })
        }
        _ => true,
    }
}

/// Behind the last header that the file includes in front of the kernel, else its beginning.
fn behind_includes(parsed: &Parsed, kernel: usize) -> usize {
    let root = parsed.tree.root_node();
    let last = root
        .children()
        .filter(|node| node.kind() == Kind::PreprocInclude && node.end_byte() <= kernel)
        .last();
    let Some(last) = last else {
        return 0;
    };
    let line = &parsed.text[last.start_byte()..];
    last.start_byte() + line.find('\n').map_or(line.len(), |end| end + 1)
}
