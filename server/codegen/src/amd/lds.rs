//! Bytes of the LDS that a block's arrays take, as LLVM lays them out.

use std::collections::BTreeSet;

use warplens_ir::{Kernel, Storage, Type, VarId};
use warplens_syntax::Language;

use crate::graph::{End, Graph, Op, V};
use crate::thresholds::amdgcn;

/// A variable to be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    bytes: u64,
    /// Bigger than its type asks for: then wide accesses do.
    align: u64,
}

/// Bytes of all arrays that something reads: what is only written goes.
pub(crate) fn bytes(graph: &Graph, kernel: &Kernel) -> u64 {
    let three = kernel.language == Language::OpenCl;
    let mut fields = Vec::new();
    let mut natural = 1;
    for id in read(graph) {
        let var = kernel.var(id);
        if var.storage == Storage::Shared {
            let (bytes, align) = layout(&var.ty, three);
            natural = natural.max(align);
            let wide = bytes.next_power_of_two().min(amdgcn().memory.lds_align);
            let align = align.max(wide);
            fields.push(Field { bytes, align });
        }
    }
    packed(fields).next_multiple_of(natural)
}

/// One behind the other: at each place the most aligned field that needs no gap, of these the largest.
fn packed(mut fields: Vec<Field>) -> u64 {
    fields.sort_by_key(|field| std::cmp::Reverse((field.align, field.bytes)));
    let mut end = 0u64;
    while !fields.is_empty() {
        let gap = |field: &Field| end.next_multiple_of(field.align) - end;
        let least = fields.iter().map(gap).min().unwrap_or(0);
        let at = fields
            .iter()
            .position(|field| gap(field) == least)
            .unwrap_or(0);
        end += least + fields.remove(at).bytes;
    }
    end
}

/// Size and alignment; `three`: a vector of three takes the place of four.
fn layout(ty: &Type, three: bool) -> (u64, u64) {
    match ty {
        Type::Vector(element, lanes) if three => {
            let lanes = u64::from(*lanes).next_power_of_two();
            let bytes = element.size() * lanes;
            (bytes, bytes)
        }
        Type::Array(element, extent) => {
            let (bytes, align) = layout(element, three);
            (bytes.saturating_mul(extent.unwrap_or(0)), align)
        }
        _ => (ty.size(), ty.align()),
    }
}

/// Arrays that something reads, or whose address goes elsewhere.
fn read(graph: &Graph) -> BTreeSet<VarId> {
    let mut found = BTreeSet::new();
    let mut seen = vec![false; graph.values.len()];
    let mut open: Vec<V> = Vec::new();
    for block in &graph.blocks {
        for &v in &block.code {
            let inst = graph.inst(v);
            match inst.op {
                Op::Store(..) => open.extend(inst.args.iter().skip(1)),
                op if passes_on(op) => {}
                _ => open.extend(inst.args.iter()),
            }
        }
        if let End::Branch(condition, ..) = block.end {
            open.push(condition);
        }
    }
    while let Some(v) = open.pop() {
        if std::mem::replace(&mut seen[v.0 as usize], true) {
            continue;
        }
        match graph.op(v) {
            Op::Base(id) => {
                found.insert(id);
            }
            op if passes_on(op) => open.extend(graph.inst(v).args.iter()),
            _ => {}
        }
    }
    found
}

/// True for what makes a pointer of a pointer.
fn passes_on(op: Op) -> bool {
    matches!(
        op,
        Op::Address(..)
            | Op::Offset(_)
            | Op::Extend(_)
            | Op::Truncate
            | Op::Bits
            | Op::Phi
            | Op::Select
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(u64, u64)]) -> u64 {
        packed(
            fields
                .iter()
                .map(|&(bytes, align)| Field { bytes, align })
                .collect(),
        )
    }

    #[test]
    fn small_fields_fill_gaps() {
        // As clang 19 laid out 17, 18 and 1 bytes, and int[5], int and short[3].
        assert_eq!(of(&[(17, 16), (18, 16), (1, 1)]), 49);
        assert_eq!(of(&[(4, 4), (20, 16), (6, 8)]), 30);
        assert_eq!(of(&[]), 0);
    }
}
