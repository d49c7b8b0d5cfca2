//! Exchanges the roles of `threadIdx.x` and `threadIdx.y`, and the block's extents with them: the same threads do the same
//! work, but those that are neighbours in a warp go along the row.
//!
//! Blocks stay where they are: only `threadIdx` and `blockDim` change their axes.

use warplens_facts::facts::{Access, Source};
use warplens_hir::semantics::{Launch, children, declared_name};
use warplens_hir::{Semantics, function_declarator};
use warplens_ir::known_function;
use warplens_syntax::{Field, Kind, Language, Node, has_word};

use crate::fixes::proof::{asked, prove};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order, touch};
use crate::subjects::access::unit;
use crate::wording::{counted, faster, number};

const RULE: &str = "mem/column-walk";

/// Less than this is not worth another shape of the block.
const WORTH: f64 = 1.02;

/// Words of kernels that care which threads share a warp.
const OF_WARPS: [&str; 10] = [
    "shfl",
    "ballot",
    "warp",
    "wmma",
    "asm",
    "cooperative_groups",
    "volatile",
    "__any",
    "__all",
    "sub_group",
];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let mut found = Vec::new();
    for kernel in request.analysis.kernels() {
        if !touch(request.range, &(kernel.start..kernel.end)) {
            continue;
        }
        let worst = asked(request, &kernel, RULE)
            .into_iter()
            .max_by(|a, b| a.0.gain.total_cmp(&b.0.gain));
        if let Some(access) = worst.and_then(|(finding, _)| finding.access) {
            found.extend(fix(request, &kernel, access));
        }
    }
    found
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, access: usize) -> Option<Fix> {
    let code = request.code();
    let function = code.kernel(kernel.start..kernel.end)?;
    let body = function.field(Field::Body)?;
    let launch = &kernel.facts.launch;
    let [width, height, _] = launch.block;
    if function.has_error() || width * height <= 1 || launch.block_source.is_assumption() {
        return None;
    }
    if OF_WARPS
        .iter()
        .any(|word| code.text(function).contains(word))
    {
        return None;
    }
    let opencl = request.document.language() == Language::OpenCl;
    let mut edits = axes(code, body, opencl)?;
    let seen = code.launches(&kernel.facts.name);
    if !seen.elsewhere.is_empty() {
        return None;
    }
    if width == height {
        let mut blocks = seen
            .seen
            .iter()
            .map(|launch| launch.block.map(|node| code.text(node)));
        let first = blocks.next();
        if !blocks.all(|block| Some(block) == first) {
            return None;
        }
    } else {
        edits.extend(blocks(code, &seen.seen)?);
        edits.extend(directive(request, kernel)?);
    }
    let edits = in_order(edits)?;
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel).filter(|speedup| *speedup >= WORTH)?;
    let after = proof.after();
    let (old, new) = (
        kernel.facts.accesses.get(access)?,
        after.facts.accesses.get(access)?,
    );
    let (before, now) = (old.transactions_per_request?, new.transactions_per_request?);
    if after.count(RULE) >= kernel.count(RULE) || now >= before || !alike(kernel, &after) {
        return None;
    }
    let unseen = if seen.seen.is_empty() {
        " (launch not seen: blocks must be square)"
    } else {
        ""
    };
    let shape = if width == height {
        String::new()
    } else {
        format!(", block {width}x{height} → {height}x{width}")
    };
    let of = if opencl {
        "get_local_id(0) and (1)"
    } else {
        "threadIdx.x and .y"
    };
    Some(Fix {
        title: format!(
            "Swap {of}{shape}: {} → {}, {}{unseen}",
            counted(before, unit(old).0, unit(old).1),
            number(now),
            faster(speedup),
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: !seen.seen.is_empty(),
    })
}

/// True where the accesses are the same ones.
fn alike(before: &Kernel<'_>, after: &Kernel<'_>) -> bool {
    let (old, new) = (&before.facts.accesses, &after.facts.accesses);
    let same = |(a, b): (&Access, &Access)| {
        a.op == b.op && a.array == b.array && a.requests.is_some() == b.requests.is_some()
    };
    old.len() == new.len() && old.iter().zip(new).all(same)
}

/// The other axis in every use of a thread's coordinates and the block's extents; `None` where one is not followed.
fn axes(code: Semantics, body: Node, opencl: bool) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    if ["threadIdx", "blockDim", "get_local_id", "get_local_size"]
        .iter()
        .any(|name| code.in_a_macro(name))
    {
        return None;
    }
    for node in body.descendants() {
        match node.kind() {
            Kind::Identifier if matches!(code.text(node), "threadIdx" | "blockDim") => {
                let field = node
                    .parent()
                    .filter(|parent| parent.kind() == Kind::FieldExpression)?
                    .field(Field::Field)?;
                edits.extend(
                    other(code.text(field), "x", "y").map(|axis| (field.byte_range(), axis)),
                );
            }
            Kind::CallExpression => {
                let callee = node.field(Field::Function)?;
                let arguments = children(node.field(Field::Arguments)?);
                match code.text(callee) {
                    "get_local_id" | "get_local_size" if opencl => {
                        let axis = arguments.first()?;
                        code.text(*axis).parse::<u8>().ok()?;
                        edits.extend(
                            other(code.text(*axis), "0", "1").map(|to| (axis.byte_range(), to)),
                        );
                    }
                    name if opencl && name.starts_with("get_global") => return None,
                    name if is_indifferent(code, name, opencl) => {}
                    _ if callee.kind() == Kind::PrimitiveType => {}
                    _ => return None,
                }
            }
            Kind::LambdaExpression => return None,
            _ => {}
        }
    }
    Some(edits)
}

fn other(axis: &str, first: &str, second: &str) -> Option<String> {
    match axis {
        _ if axis == first => Some(second.to_owned()),
        _ if axis == second => Some(first.to_owned()),
        _ => None,
    }
}

/// True for a function that does not look at its thread's coordinates.
fn is_indifferent(code: Semantics, name: &str, opencl: bool) -> bool {
    if known_function(name, opencl).is_some()
        || name.starts_with("get_")
        || name.starts_with("__syncthreads")
        || name == "barrier"
    {
        return true;
    }
    let mut defined = code.root.descendants().into_iter().filter(|node| {
        node.kind() == Kind::FunctionDefinition
            && function_declarator(*node)
                .and_then(|declarator| declarator.field(Field::Declarator))
                .is_some_and(|of| code.text(of) == name)
    });
    let (Some(one), None) = (defined.next(), defined.next()) else {
        return false;
    };
    let written = code.text(one);
    let looks = [
        "threadIdx",
        "blockDim",
        "get_local_id",
        "get_local_size",
        "get_global_id",
    ];
    // What it calls itself is not followed.
    let calls = one
        .descendants()
        .into_iter()
        .filter(|node| node.kind() == Kind::CallExpression)
        .filter_map(|call| call.field(Field::Function))
        .all(|callee| known_function(code.text(callee), opencl).is_some());
    calls && !looks.iter().any(|word| has_word(written, word))
}

/// The extents of every launch's block, exchanged; `None` where one is not written there, or there is none.
fn blocks(code: Semantics, launches: &[Launch]) -> Option<Vec<Edit>> {
    let mut edits: Vec<Edit> = Vec::new();
    for launch in launches {
        let (x, y) = extents(code, launches, launch.block?)?;
        for (from, to) in [(x, y), (y, x)] {
            let edit = (from.byte_range(), code.text(to).to_owned());
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
    }
    (!edits.is_empty()).then_some(edits)
}

/// The first two extents of a block: `dim3(32, 8)`, or a variable that is made of them and used for nothing else.
fn extents<'t>(
    code: Semantics<'t>,
    launches: &[Launch<'t>],
    block: Node<'t>,
) -> Option<(Node<'t>, Node<'t>)> {
    let two = |list: Node<'t>| -> Option<(Node<'t>, Node<'t>)> {
        let all = children(list);
        (all.len() >= 2).then(|| (all[0], all[1]))
    };
    if block.kind() == Kind::CallExpression {
        let callee = block.field(Field::Function)?;
        let list = block.field(Field::Arguments)?;
        return (code.text(callee) == "dim3").then(|| two(list))?;
    }
    if block.kind() != Kind::Identifier {
        return None;
    }
    let name = code.text(block);
    let mut around = block;
    while around.kind() != Kind::FunctionDefinition {
        around = around.parent()?;
    }
    let mut list = None;
    for node in around.descendants() {
        if node.kind() != Kind::Identifier || code.text(node) != name {
            continue;
        }
        let parent = node.parent()?;
        let declares = matches!(
            parent.kind(),
            Kind::InitDeclarator | Kind::FunctionDeclarator
        ) && parent.field(Field::Declarator) == Some(node)
            && declared_name(parent) == Some(node);
        if declares && list.is_none() {
            let given = parent
                .field(Field::Value)
                .or_else(|| parent.field(Field::Parameters))?;
            let given = match given.kind() {
                Kind::CallExpression => given.field(Field::Arguments)?,
                _ => given,
            };
            list = Some(given);
        } else if !launches.iter().any(|launch| launch.block == Some(node)) {
            return None;
        }
    }
    two(list?)
}

/// The same in the directive that gives the launch, where one does.
fn directive(request: &Request<'_>, kernel: &Kernel<'_>) -> Option<Vec<Edit>> {
    if kernel.facts.launch.block_source != Source::Directive {
        return Some(Vec::new());
    }
    let written = request.code().source;
    let place = kernel.launched_at?;
    let line = written[..place.start].rfind('\n').map_or(0, |at| at + 1);
    let end = written[line..]
        .find('\n')
        .map_or(written.len(), |at| line + at);
    let from = line + written[line..end].find("block=(")? + "block=(".len();
    let to = from + written[from..end].find(')')?;
    let mut parts: Vec<&str> = written[from..to].split(',').map(str::trim).collect();
    if parts.len() < 2 {
        return None;
    }
    parts.swap(0, 1);
    Some(vec![(from..to, parts.join(","))])
}
