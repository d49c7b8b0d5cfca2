//! Registers that divisions and functions of the mathematical library need besides their operands, as measured.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::graph::{Graph, Op, Ty, V};
use crate::recipes;
use crate::thresholds::amdgcn;

type Table = FxHashMap<(&'static str, &'static str), [u32; 2]>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let text = include_str!("../../recipes/gfx90a.tsv");
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let mut fields = line.split('\t');
                let key = (fields.next()?, fields.next()?);
                let mut number = || fields.next()?.parse().ok();
                Some((key, [number()?, number()?]))
            })
            .collect()
    })
}

/// What a function needs that was not measured.
fn unmeasured() -> [u32; 2] {
    let limits = &amdgcn().registers;
    [limits.unmeasured_vector, limits.unmeasured_scalar]
}

/// VGPRs and SGPRs besides.
pub(super) fn words(graph: &Graph, v: V, vector: bool) -> [u32; 2] {
    let inst = graph.inst(v);
    let ty = |signed: bool| match (inst.ty, signed) {
        (Ty::F64, _) => "f64",
        (Ty::F16 | Ty::F32, _) => "f32",
        (Ty::I64, true) => "i64",
        (Ty::I64, false) => "u64",
        (_, true) => "i32",
        (_, false) => "u32",
    };
    let find = |name: &str, ty: &'static str| -> Option<[u32; 2]> {
        let key = table().keys().find(|key| **key == (name, ty))?;
        table().get(key).copied()
    };
    match inst.op {
        Op::Div(signed) | Op::Rem(signed) => {
            let rem = matches!(inst.op, Op::Rem(_));
            let by = inst.args.get(1).and_then(|by| graph.int(*by));
            let name = match (rem, by) {
                _ if inst.ty.is_float() => {
                    if rem {
                        "fmod"
                    } else {
                        "div"
                    }
                }
                (_, Some(by)) if by.unsigned_abs().is_power_of_two() => return [1, 0],
                (true, Some(_)) => "rem10",
                (false, Some(_)) => "div7",
                (true, None) => "rem",
                (false, None) => "div",
            };
            let [vgprs, sgprs] = find(name, ty(signed)).unwrap_or_else(unmeasured);
            // The scalar unit has no reciprocal: one value goes through the vector unit.
            if vector {
                [vgprs, sgprs]
            } else {
                [1, vgprs + sgprs]
            }
        }
        Op::Math(number) => {
            let (name, fast) = recipes::named(number);
            let ty = match ty(true) {
                ty @ ("f32" | "f64") => ty,
                _ => "f32",
            };
            let native = fast
                .then(|| find(&format!("native_{name}"), "f32"))
                .flatten();
            native.or_else(|| find(name, ty)).unwrap_or_else(unmeasured)
        }
        _ => unmeasured(),
    }
}
