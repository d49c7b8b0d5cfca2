//! Pads a shared array: one more element in a row, and a column no longer lies in one bank.

use std::ops::Range;

use warplens_facts::facts::{Access, SharedArray, Space};
use warplens_hir::Semantics;
use warplens_hir::semantics::{ElementUse, children, declared_name};
use warplens_syntax::nodes::ArrayDeclarator;
use warplens_syntax::{BinaryOperator, Document, Field, Kind, Node, binary};

use crate::fixes::{Edit, Fix, Kernel, Request, edited, in_order, touch};
use crate::wording::{counted, faster, number, occupancy};

const RULE: &str = "smem/bank-conflict";

/// Averages over the launch closer to 1 than this are a stray warp, not a pattern (as the rule has it).
const CONFLICT: f64 = 1.05;

/// Paddings tried, in elements, smallest first. Four words separate any two rows that fewer do not.
const PADDINGS: [u64; 4] = [1, 2, 3, 4];

/// A kernel that is predicted slower by more than this is.
const SLOWER: f64 = 1.0005;

/// Times closer than this are the same: the least padding and the fewest passes count.
const ALIKE: f64 = 1.005;

/// Arrays looked at for one selection: each costs analyses.
const MOST_ARRAYS: usize = 4;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let mut found = Vec::new();
    for kernel in request.analysis.kernels() {
        if !touch(request.range, &(kernel.start..kernel.end)) {
            continue;
        }
        for index in 0..kernel.facts.shared_arrays.len() {
            if found.len() < MOST_ARRAYS
                && let Some(target) = target(request, &kernel, index)
            {
                found.extend(fix(request, &kernel, index, target));
            }
        }
    }
    found
}

/// The access whose conflict is to go: the one that the range touches, or the worst where the range touches
/// the declaration.
pub(crate) fn target(request: &Request<'_>, kernel: &Kernel, array: usize) -> Option<usize> {
    let conflicts = || {
        let accesses = kernel.facts.accesses.iter().enumerate();
        accesses.filter(move |(_, access)| conflicting(access, array))
    };
    let place = |access: &Access| kernel.place(access.site);
    let passes =
        |access: &Access| access.requests.unwrap_or(1.0) * access.passes_per_request.unwrap_or(0.0);
    let worst = |a: &(usize, &Access), b: &(usize, &Access)| passes(a.1).total_cmp(&passes(b.1));
    let touched = conflicts().filter(|(_, access)| touch(request.range, &place(access)));
    if let Some((index, _)) = touched.max_by(worst) {
        return Some(index);
    }
    let declared = kernel.place(kernel.facts.shared_arrays[array].site);
    let (index, _) = conflicts()
        .max_by(worst)
        .filter(|_| touch(request.range, &declared))?;
    Some(index)
}

pub(crate) fn conflicting(access: &Access, array: usize) -> bool {
    access.space == Space::Shared
        && access.shared_array == Some(array)
        && access
            .bank_conflict_degree
            .is_some_and(|degree| degree > CONFLICT)
}

fn fix(request: &Request<'_>, kernel: &Kernel, index: usize, target: usize) -> Option<Fix> {
    let array = &kernel.facts.shared_arrays[index];
    let before = total_passes(kernel, index)?;
    let cost = kernel.cost()?;
    let plan = Plan::new(request.document, kernel, array)?;
    // The compiler loads several elements at once where rows stay aligned: the fewest passes are not always the least time.
    let mut best: Option<(f64, f64, Fix)> = None;
    for padding in PADDINGS {
        let extents = plan.extents(padding)?;
        let edits = in_order(plan.edits(&extents)?)?;
        let copy = edited(request.document, &edits);
        let analysis = (request.reanalyze)(&copy, std::slice::from_ref(&kernel.facts.name))?;
        let kernels = analysis.kernels();
        let Some(after) = kernels
            .iter()
            .find(|after| after.start == kernel.start && after.facts.name == kernel.facts.name)
        else {
            continue;
        };
        let Some(passes) = proof(kernel, after, index, target, padding) else {
            continue;
        };
        let Some(after_cost) = after.cost().filter(|after| *after <= cost * SLOWER) else {
            continue;
        };
        let is_better = |(least, cost, _): &(f64, f64, Fix)| {
            after_cost * ALIKE < *cost || (after_cost < cost * ALIKE && passes < *least)
        };
        if passes >= before || !best.as_ref().is_none_or(is_better) {
            continue;
        }
        let speedup = (cost / after_cost).max(1.0);
        let passes_of = |kernel: &Kernel| {
            kernel.facts.accesses[target]
                .passes_per_request
                .unwrap_or(0.0)
        };
        let title = format!(
            "Pad `{}` to {}: {} → {}{}, {}",
            array.name,
            format_args!("[{}]", extents.join("][")),
            counted(passes_of(kernel), "pass", "passes"),
            number(passes_of(after)),
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup),
        );
        best = Some((
            passes,
            after_cost,
            Fix {
                title,
                rule: RULE,
                edits,
                gain: speedup,
                complete: true,
            },
        ));
    }
    best.map(|(_, _, fix)| fix)
}

/// Passes of all requests to an array.
pub(crate) fn total_passes(kernel: &Kernel, array: usize) -> Option<f64> {
    let accesses = kernel
        .facts
        .accesses
        .iter()
        .filter(|access| access.shared_array == Some(array));
    accesses
        .map(|access| Some(access.requests? * access.passes_per_request?))
        .sum()
}

/// Checks that the edit did what it should and nothing else; the passes of all requests to the array.
fn proof(
    before: &Kernel,
    after: &Kernel,
    index: usize,
    target: usize,
    padding: u64,
) -> Option<f64> {
    let (old, new) = (&before.facts, &after.facts);
    let array = old.shared_arrays.get(index)?;
    let padded = new.shared_arrays.get(index)?;
    let rows_same = array.extents.len() == padded.extents.len()
        && array
            .extents
            .iter()
            .zip(&padded.extents)
            .rev()
            .skip(1)
            .all(|(a, b)| a.0 == b.0);
    let grown = padded.extents.last()?.0 == array.extents.last()?.0 + padding;
    let accesses_same = old.accesses.len() == new.accesses.len()
        && old.accesses.iter().zip(&new.accesses).all(|(a, b)| {
            a.array == b.array && a.op == b.op && a.bytes_per_lane == b.bytes_per_lane
        });
    let fewer =
        new.accesses.get(target)?.passes_per_request? < old.accesses[target].passes_per_request?;
    (rows_same && grown && accesses_same && fewer && after.launchable)
        .then(|| total_passes(after, index))?
}

/// What there is to edit.
pub(crate) struct Plan<'t> {
    code: Semantics<'t>,
    /// Extent expressions, outermost first.
    pub(crate) sizes: Vec<Node<'t>>,
    /// The element type as written.
    element: &'t str,
    /// `sizeof` operands' expressions and how many of the array's dimensions they leave.
    pub(crate) sizeofs: Vec<(Range<usize>, usize)>,
    /// The array's name wherever it is used.
    pub(crate) uses: Vec<Node<'t>>,
}

impl<'t> Plan<'t> {
    /// `None` where not every use of the array is known to stay right.
    pub(crate) fn new(
        document: &'t Document,
        kernel: &Kernel<'t>,
        array: &SharedArray,
    ) -> Option<Plan<'t>> {
        if array.dynamic
            || array.extents.len() < 2
            || array.extents.iter().any(|(extent, _)| *extent == 0)
        {
            return None;
        }
        let code = Semantics::new(document);
        let source = kernel.source(code)?;
        let declarator = source.source_of::<ArrayDeclarator>(array.site)?.node();
        let declaration = declarator
            .parent()
            .filter(|parent| parent.kind() == Kind::Declaration)?;
        let stored_elsewhere = children(declaration).iter().any(|child| {
            child.kind() == Kind::StorageClassSpecifier && code.text(*child) == "extern"
        });
        let ty = declaration.field(Field::Type)?;
        if stored_elsewhere || declaration.has_error() || ty.field(Field::Body).is_some() {
            return None;
        }
        let mut sizes = Vec::new();
        let mut at = declarator;
        while at.kind() == Kind::ArrayDeclarator {
            sizes.push(at.field(Field::Size)?);
            at = at.field(Field::Declarator)?;
        }
        sizes.reverse();
        let name = declared_name(at).filter(|name| *name == at)?;
        if code.text(name) != array.name
            || sizes.len() != array.extents.len()
            || code.in_a_macro(&array.name)
        {
            return None;
        }
        let mut sizeofs = Vec::new();
        let uses = code.uses(&code.declaration(name)?)?;
        for name in &uses {
            if !kept_right(document, kernel, array, *name, &mut sizeofs) {
                return None;
            }
        }
        Some(Plan {
            code,
            sizes,
            element: code.text(ty),
            sizeofs,
            uses,
        })
    }

    /// The extents' texts as they will stand.
    fn extents(&self, padding: u64) -> Option<Vec<String>> {
        let mut texts: Vec<String> = self
            .sizes
            .iter()
            .map(|size| self.code.text(*size).to_owned())
            .collect();
        let last = self.sizes.last()?;
        *texts.last_mut()? = padded(self.code, *last, padding)?;
        Some(texts)
    }

    /// The extent that grows, and every `sizeof` that would grow with it: it keeps its value.
    fn edits(&self, extents: &[String]) -> Option<Vec<Edit>> {
        let last = self.sizes.last()?;
        let mut edits = vec![(last.byte_range(), extents.last()?.clone())];
        for (range, left) in &self.sizeofs {
            let factors = self.sizes[self.sizes.len() - left..].iter().map(|size| {
                let factor = self.code.text(*size);
                if simple(*size) {
                    format!(" * {factor}")
                } else {
                    format!(" * ({factor})")
                }
            });
            edits.push((
                range.clone(),
                format!("(sizeof({}){})", self.element, factors.collect::<String>()),
            ));
        }
        Some(edits)
    }
}

/// True for what binds closer than any operator.
pub(crate) fn simple(node: Node) -> bool {
    matches!(
        node.kind(),
        Kind::NumberLiteral
            | Kind::Identifier
            | Kind::ParenthesizedExpression
            | Kind::CallExpression
    )
}

/// `32` and 1 make `33`, `TILE` makes `TILE + 1`, `TILE + 1` makes `TILE + 2`, `1 << b` makes `(1 << b) + 1`.
pub(crate) fn padded(code: Semantics, size: Node, padding: u64) -> Option<String> {
    let written = code.text(size);
    if let Some(sum) = literal(written, padding) {
        return Some(sum);
    }
    if size.kind() == Kind::BinaryExpression {
        let operator = binary(size)?;
        let right = size.field(Field::Right)?;
        if operator == BinaryOperator::Add
            && let Some(sum) = literal(code.text(right), padding)
        {
            let head = code.source.get(size.start_byte()..right.start_byte())?;
            return Some(format!("{head}{sum}"));
        }
        if operator.is_arithmetic() {
            return Some(format!("{written} + {padding}"));
        }
        return Some(format!("({written}) + {padding}"));
    }
    let plain = simple(size)
        || matches!(
            size.kind(),
            Kind::SizeofExpression | Kind::QualifiedIdentifier
        );
    Some(if plain {
        format!("{written} + {padding}")
    } else {
        format!("({written}) + {padding}")
    })
}

/// A decimal literal plus a number, its suffix kept.
fn literal(written: &str, padding: u64) -> Option<String> {
    let digits = written.trim_end_matches(['u', 'U', 'l', 'L']);
    if digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    let value: u64 = digits.parse().ok()?;
    Some(format!(
        "{}{}",
        value.checked_add(padding)?,
        &written[digits.len()..]
    ))
}

/// The subscripts behind an array's name, at most this many, outermost first, and the expression that they make.
pub(crate) fn subscript(name: Node<'_>, most: usize) -> Option<(Node<'_>, Vec<Node<'_>>)> {
    let mut at = name;
    let mut indices = Vec::new();
    while indices.len() < most
        && let Some(parent) = at.parent()
        && parent.kind() == Kind::SubscriptExpression
        && parent.field(Field::Argument) == Some(at)
    {
        let index = parent
            .field(Field::Indices)
            .or_else(|| parent.field(Field::Index))?;
        let index = if index.kind() == Kind::SubscriptArgumentList {
            let list = children(index);
            let [one] = list[..] else { return None };
            one
        } else {
            index
        };
        indices.push(index);
        at = parent;
    }
    Some((at, indices))
}

/// Whether one use of the array means the same once rows are longer. A `sizeof` that would grow is noted.
fn kept_right(
    document: &Document,
    kernel: &Kernel,
    array: &SharedArray,
    name: Node,
    sizeofs: &mut Vec<(Range<usize>, usize)>,
) -> bool {
    let code = Semantics::new(document);
    let Some((at, indices)) = subscript(name, array.extents.len()) else {
        return false;
    };
    let mut outer = at.parent();
    let mut operand = at;
    while let Some(parent) = outer
        && parent.kind() == Kind::ParenthesizedExpression
    {
        operand = parent;
        outer = parent.parent();
    }
    if let Some(parent) = outer
        && parent.kind() == Kind::SizeofExpression
        && parent.field(Field::Value) == Some(operand)
    {
        if indices.len() < array.extents.len() {
            sizeofs.push((parent.byte_range(), array.extents.len() - indices.len()));
        }
        return true;
    }
    indices.len() == array.extents.len()
        && within_its_row(code, kernel, array, &indices)
        && code.hands(at) == ElementUse::Value
}

/// False where the last index may run past its row on purpose: `tile[0][threadIdx.x]` over all rows. Rows
/// chosen by literals with a last index that is not seen to stay within the row are that idiom.
fn within_its_row(code: Semantics, kernel: &Kernel, array: &SharedArray, indices: &[Node]) -> bool {
    let (Some((last, rows)), Some(&(extent, _))) = (indices.split_last(), array.extents.last())
    else {
        return false;
    };
    let number = |node: &Node| code.text(*node).parse::<u64>().ok();
    if let Some(index) = number(last) {
        return index < extent;
    }
    if !rows.iter().all(|row| number(row).is_some()) {
        return true;
    }
    let block = kernel.facts.launch.block;
    let written: String = code.text(*last).split_whitespace().collect();
    let coordinates = [
        ["threadIdx.x", "get_local_id(0)"],
        ["threadIdx.y", "get_local_id(1)"],
        ["threadIdx.z", "get_local_id(2)"],
    ];
    coordinates
        .iter()
        .zip(block)
        .any(|(names, most)| names.contains(&written.as_str()) && most <= extent)
}
