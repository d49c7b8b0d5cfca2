//! Copies into shared memory past the registers: `__pipeline_memcpy_async`, waited for before the barrier.

use crate::Finding;
use warplens_facts::facts::{Op, Site, Space};
use warplens_hir::Semantics;
use warplens_hir::semantics::{Declaration, KernelSource};
use warplens_ir::{Function, known_function};
use warplens_syntax::nodes::AssignmentExpression;
use warplens_syntax::{AssignOperator, Field, Kind, Language, Node, assigned, has_word};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::indent;
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::{counted, faster};

const RULE: &str = "mem/async-copy";
const BARRIER: &str = "__syncthreads";
const HEADER: &str = "cuda_pipeline.h";
/// What a file of HIP shows.
const HIP: [&str; 3] = ["hip/hip_", "hipLaunch", "hipMalloc"];
/// A kernel that copies so already has an order of its own.
const PIPELINES: [&str; 4] = ["__pipeline_", "memcpy_async", "cp.async", "cuda::pipeline"];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    if request.document.language() != Language::Cuda {
        return Vec::new();
    }
    of_findings(request, RULE, fix)
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, finding: &Finding, site: Site) -> Option<Fix> {
    let code = request.code();
    let source = kernel.source(code)?;
    let function = source.function;
    let own = code.text(function);
    // A file of HIP may have the ending of CUDA's.
    let hip = HIP.iter().any(|word| code.source.contains(word));
    if hip || function.has_error() || PIPELINES.iter().any(|word| own.contains(word)) {
        return None;
    }
    let related = finding.related.iter().map(|(site, _)| *site);
    let copies: Vec<Copy> = std::iter::once(site)
        .chain(related)
        .filter_map(|site| copy(source, site))
        .collect();
    let mut barriers: Vec<Node> = Vec::new();
    let mut edits: Vec<Edit> = Vec::new();
    for copy in &copies {
        let Some(barrier) = waited_for(code, kernel, function, copy) else {
            continue;
        };
        if !barriers.contains(&barrier) {
            barriers.push(barrier);
        }
        let (to, from) = (code.text(copy.to), code.text(copy.from));
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
        let margin = indent(code.source, at);
        let alone = code.source[..at].ends_with(&format!("\n{margin}"));
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
    if !code.source.contains(HEADER) {
        let at = behind_includes(code, kernel.start);
        edits.push((at..at, format!("#include <{HEADER}>\n")));
    }
    let edits = in_order(edits)?;
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    if proof.after().has_finding(finding) {
        return None;
    }
    Some(Fix {
        title: format!(
            "Copy past the registers: {} by `__pipeline_memcpy_async`, {}",
            counted(made as f64, "copy", "copies"),
            faster(speedup)
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

fn copy(source: KernelSource<'_>, site: Site) -> Option<Copy<'_>> {
    let KernelSource { code, function, .. } = source;
    let assignment = source.source_of::<AssignmentExpression>(site)?.node();
    let statement = assignment
        .parent()
        .filter(|parent| parent.kind() == Kind::ExpressionStatement)?;
    let to = assignment.field(Field::Left)?;
    let from = assignment.field(Field::Right)?;
    let element = |node: Node| node.kind() == Kind::SubscriptExpression;
    if assigned(assignment) != Some(AssignOperator::Plain) || !element(to) || !element(from) {
        return None;
    }
    let mut array = to;
    while array.kind() == Kind::SubscriptExpression {
        array = array.field(Field::Argument)?;
    }
    let tile = code.text(array);
    if array.kind() != Kind::Identifier || code.in_a_macro(tile) || changes(code, assignment) {
        return None;
    }
    depends_on_no_template(code, function, tile).then_some(Copy {
        statement,
        assignment,
        to,
        from,
        tile,
    })
}

/// True where evaluating a subscript changes something: it is written twice.
fn changes(code: Semantics, assignment: Node) -> bool {
    assignment.descendants().into_iter().any(|node| {
        node != assignment
            && matches!(
                node.kind(),
                Kind::AssignmentExpression | Kind::UpdateExpression | Kind::CallExpression
            )
            && !code.text(node).is_empty()
    })
}

/// True where the element is the same size whatever the kernel's template is given.
fn depends_on_no_template(code: Semantics, function: Node, tile: &str) -> bool {
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
    let declared = code.declared(function, tile);
    let element = declared.and_then(Declaration::ty);
    element.is_some_and(|element| !has_word(code.text(parameters), code.text(element)))
}

/// The barrier behind a copy at which the block waits for it, where nothing in between needs what is copied, changes
/// what it is copied from, or leads past the barrier.
fn waited_for<'t>(
    code: Semantics<'t>,
    kernel: &Kernel<'_>,
    function: Node<'t>,
    copy: &Copy<'t>,
) -> Option<Node<'t>> {
    let body = function.field(Field::Body)?;
    let mut at = copy.statement;
    let barrier = 'found: loop {
        let mut next = at;
        // The sides of an `if` are no list: what is beside it is another side.
        if at.parent()?.kind() == Kind::CompoundStatement {
            while let Some(sibling) = next.next_named_sibling() {
                if is_barrier(code, sibling) {
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
        .all(|node| harmless(code, node, copy.tile));
    (!meets && harmless).then_some(barrier)
}

fn is_barrier(code: Semantics, statement: Node) -> bool {
    statement.kind() == Kind::ExpressionStatement
        && code.text(statement).split_whitespace().collect::<String>() == format!("{BARRIER}();")
}

/// True for what may stand between a copy into `tile` and the barrier.
fn harmless(code: Semantics, node: Node, tile: &str) -> bool {
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
            let name = name.map_or("", |name| code.text(name));
            matches!(known_function(name, false), Some(Function::Math(..)))
        }
        Kind::Identifier if code.text(node) == tile => {
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
                    && assigned(parent) == Some(AssignOperator::Plain)
            })
        }
        _ => true,
    }
}

/// Behind the last header that the file includes in front of the kernel, else its beginning.
fn behind_includes(code: Semantics, kernel: usize) -> usize {
    let root = code.root;
    let last = root
        .children()
        .filter(|node| node.kind() == Kind::PreprocInclude && node.end_byte() <= kernel)
        .last();
    let Some(last) = last else {
        return 0;
    };
    let line = &code.source[last.start_byte()..];
    last.start_byte() + line.find('\n').map_or(line.len(), |end| end + 1)
}
