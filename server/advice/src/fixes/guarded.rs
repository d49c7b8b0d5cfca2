//! Kernels that any number of threads may run: each works on the element of its global index alone, behind a bound.

use warplens_hir::Semantics;
use warplens_hir::semantics::{bare, children};
use warplens_ir::known_function;
use warplens_syntax::nodes::BinaryExpression;
use warplens_syntax::{BinaryOperator, Field, Kind, Node, has_word};

use crate::fixes::source::squeezed;
use crate::fixes::ways::{condition, leaves};

/// Words of what depends on the launch's shape, or on other threads.
const SHAPE: [&str; 24] = [
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "hipThreadIdx_x",
    "hipBlockIdx_x",
    "hipBlockDim_x",
    "get_local_id",
    "get_group_id",
    "get_global_id",
    "get_local_size",
    "get_global_size",
    "get_num_groups",
    "get_sub_group_local_id",
    "__shared__",
    "__local",
    "local",
    "cooperative_groups",
    "cg",
    "barrier",
    "asm",
    "goto",
    "__trap",
];

/// Beginnings of functions that threads call together.
const TOGETHER: [&str; 10] = [
    "__sync",
    "__shfl",
    "__ballot",
    "__any",
    "__all",
    "__activemask",
    "__match",
    "__reduce",
    "work_group_",
    "sub_group_",
];

/// One axis: the variable that holds the global index, and what it stays below, both as written without spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The index's name.
    pub index: String,
    /// Its bound.
    pub bound: String,
}

/// The axes that a kernel's index is computed along, each bounded; `None` for any other kernel.
pub(crate) fn axes(code: Semantics, definition: Node) -> Option<[Option<Axis>; 3]> {
    let body = definition.field(Field::Body)?;
    if body.has_error() {
        return None;
    }
    let mut indices: [Option<String>; 3] = [None, None, None];
    let statements = children(body);
    let mut rest = statements.iter();
    let guard = loop {
        let statement = *rest.next()?;
        match statement.kind() {
            Kind::Declaration => declared(code, statement, &mut indices)?,
            Kind::IfStatement => break statement,
            _ => return None,
        }
    };
    if guard.field(Field::Alternative).is_some() {
        return None;
    }
    let condition = condition(code, guard)?;
    let then = guard.field(Field::Consequence)?;
    let leaves = leaves(code, then);
    let behind: Vec<Node> = rest.copied().collect();
    let (joined, compared, inside) = if leaves {
        (BinaryOperator::Or, BinaryOperator::GreaterEqual, behind)
    } else if behind.is_empty() {
        (BinaryOperator::And, BinaryOperator::Less, vec![then])
    } else {
        return None;
    };
    let mut found = [None, None, None];
    for part in operands(condition, joined) {
        let comparison = BinaryExpression::cast(part).filter(|one| one.op() == Some(compared))?;
        let index = code.text(comparison.left()?);
        let bound = squeezed(code.text(comparison.right()?));
        let bound = bound.as_str();
        let axis = indices
            .iter()
            .position(|one| one.as_deref() == Some(index))?;
        let plain = bound
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '*' | '+' | '-'));
        let moves = indices.iter().flatten().any(|one| has_word(bound, one));
        if !plain || bound.is_empty() || moves || found[axis].is_some() {
            return None;
        }
        found[axis] = Some(Axis {
            index: index.to_owned(),
            bound: bound.to_owned(),
        });
    }
    let all = (0..3).all(|axis| indices[axis].is_some() == found[axis].is_some());
    let alone = inside.iter().all(|node| alone(code, *node));
    (all && alone && found.iter().any(Option::is_some)).then_some(found)
}

/// Reads a declaration in front of the guard: of an index, or of something computed from indices and numbers alone.
fn declared(code: Semantics, statement: Node, indices: &mut [Option<String>; 3]) -> Option<()> {
    for declarator in statement.fields(Field::Declarator) {
        if declarator.kind() != Kind::InitDeclarator {
            return None;
        }
        let name = declarator.field(Field::Declarator)?;
        let value = squeezed(code.text(declarator.field(Field::Value)?));
        if name.kind() != Kind::Identifier {
            return None;
        }
        if let Some(axis) = (0..3).find(|axis| is_global_index(&value, *axis)) {
            if indices[axis].is_some() {
                return None;
            }
            indices[axis] = Some(code.text(name).to_owned());
        } else {
            // No memory is read, nothing is called.
            let plain = value
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '*' | '+' | '-'));
            let shape = SHAPE.iter().any(|word| has_word(&value, word));
            if !plain || shape || value.starts_with(['*', '-', '+']) || value.contains("*-") {
                return None;
            }
        }
    }
    Some(())
}

/// True for `blockIdx.x * blockDim.x + threadIdx.x` in any order, and for `get_global_id(0)`.
fn is_global_index(value: &str, axis: usize) -> bool {
    let letter = ["x", "y", "z"][axis];
    let (block, size, thread) = (
        format!("blockIdx.{letter}"),
        format!("blockDim.{letter}"),
        format!("threadIdx.{letter}"),
    );
    if value == format!("get_global_id({axis})") {
        return true;
    }
    [format!("{block}*{size}"), format!("{size}*{block}")]
        .iter()
        .any(|start| {
            [
                format!("{start}+{thread}"),
                format!("{thread}+{start}"),
                format!("({start})+{thread}"),
                format!("{thread}+({start})"),
            ]
            .iter()
            .any(|form| form == value)
        })
}

/// True where a thread does this by itself, however many others there are.
fn alone(code: Semantics, node: Node) -> bool {
    let written = code.text(node);
    if SHAPE.iter().any(|word| has_word(written, word)) {
        return false;
    }
    let opencl = code.is_opencl();
    node.descendants().into_iter().all(|node| {
        if node.kind() != Kind::CallExpression {
            return true;
        }
        let Some(callee) = node.field(Field::Function) else {
            return false;
        };
        let name = code.text(callee);
        if TOGETHER.iter().any(|start| name.starts_with(start)) {
            return false;
        }
        known_function(name, opencl).is_some() || callee.kind() == Kind::PrimitiveType || {
            code.function(name).is_some_and(|function| {
                let written = code.text(function);
                !SHAPE.iter().any(|word| has_word(written, word))
                    && !TOGETHER.iter().any(|start| written.contains(start))
                    && function.descendants().iter().all(|inner| {
                        inner.kind() != Kind::CallExpression
                            || inner.field(Field::Function).is_some_and(|callee| {
                                known_function(code.text(callee), opencl).is_some()
                            })
                    })
            })
        }
    })
}

/// What an operator joins, in order.
fn operands(expression: Node, joined: BinaryOperator) -> Vec<Node> {
    let node = bare(expression);
    match BinaryExpression::cast(node).filter(|one| one.op() == Some(joined)) {
        Some(one) => {
            let sides = [one.left(), one.right()].into_iter().flatten();
            sides.flat_map(|side| operands(side, joined)).collect()
        }
        None => vec![node],
    }
}
