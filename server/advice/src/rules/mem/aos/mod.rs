//! mem/aos: a field of an array of structures.

pub(crate) mod aos_host;
pub(crate) mod aos_to_soa;
mod structure;
pub(crate) mod whole_structure;

use std::sync::Arc;

use warplens_facts::facts::{Access, Op};
use warplens_ir::{Expr, Fold, Type, fold_block, fold_expression};

use crate::Context;
use crate::rule::{Look, Rule, State};
use crate::subjects::access::Costly;

pub(crate) const RULE: Rule = Rule {
    id: "mem/aos",
    title: "a field of an array of structures: neighbouring threads are a whole structure apart",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("mem/uncoalesced"),
    actions: &[aos_to_soa::fixes, whole_structure::fixes],
};

/// True where neighbouring threads take neighbouring structures (or every k-th).
pub(crate) fn claims(costly: &Costly<'_>) -> bool {
    let (Some(field), Some(distance)) = (&costly.access.field, costly.distance()) else {
        return false;
    };
    distance > 0 && field.size > 0 && distance.is_multiple_of(u64::from(field.size))
}

pub(crate) fn cause(costly: &Costly<'_>) -> String {
    let text = &costly.access.text;
    let Some(field) = &costly.access.field else {
        return format!("`{text}` is a field of an array of structures");
    };
    let touched = field.touched.min(field.size);
    let use_of_it = if touched < field.size {
        format!("the kernel touches {touched} of its {} bytes", field.size)
    } else {
        format!(
            "the kernel takes all its {} bytes, piece by piece",
            field.size
        )
    };
    format!(
        "`{text}` is one field of an array of `{}`, neighbouring threads are {} bytes apart and {use_of_it}",
        field.structure,
        costly.distance().unwrap_or_default()
    )
}

/// Sizes of a structure that one load takes.
const WIDE: [u64; 2] = [8, 16];

/// What the kernel gains where the structures of an array are aligned to their size, so that one load takes each whole; `None`
/// where that is no way: the kernel stores fields, leaves some out, or a structure is too large.
pub(crate) fn loaded_whole(ctx: &Context<'_>, access: &Access) -> Option<f64> {
    let field = access.field.as_ref()?;
    let size = u64::from(field.size);
    let all = ctx.facts.accesses.iter();
    let mut alike = all.filter(|one| one.array == access.array);
    let whole = field.touched >= field.size
        && WIDE.contains(&size)
        && alike.all(|one| one.op == Op::Load && one.bytes_per_lane < field.size);
    if !whole {
        return None;
    }
    let mut kernel = ctx.kernel.clone();
    let mut aligned = Aligned {
        name: &field.structure,
        size,
    };
    fold_block(&mut aligned, &mut kernel.body);
    for var in &mut kernel.vars {
        aligned.align(&mut var.ty);
    }
    let again = ctx.recompile(&kernel)?;
    Some(crate::believed(again.gain))
}

/// Aligns a structure to its size.
struct Aligned<'a> {
    name: &'a str,
    size: u64,
}

impl Aligned<'_> {
    fn align(&self, ty: &mut Type) {
        match ty {
            Type::Struct(structure) if structure.name == self.name => {
                Arc::make_mut(structure).align = self.size;
            }
            Type::Pointer(to, _) => self.align(Arc::make_mut(to)),
            Type::Array(of, _) => self.align(Arc::make_mut(of)),
            _ => {}
        }
    }
}

impl Fold for Aligned<'_> {
    fn expression(&mut self, expression: &mut Expr) {
        self.align(&mut expression.ty);
        fold_expression(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Kernel, access, field};

    #[test]
    fn a_field_says_how_much_of_the_structure_is_used() {
        let findings = Kernel::new().access(field(5, 32, 4)).findings(|_| 3.0);
        assert_eq!(findings[0].rule, "mem/aos");
        assert_eq!(
            findings[0].message,
            "3.00x: store each field of `p` as an array of its own (32 sectors per request, ideal 4)\n\
             32 sectors per request (ideal 4): `p[i].x` is one field of an array of `Particle`, \
             neighbouring threads are 32 bytes apart and the kernel touches 4 of its 32 bytes"
        );
        let whole = Kernel::new().access(field(5, 32, 32)).findings(|_| 1.0);
        assert!(
            whole[0].message.contains("takes all its 32 bytes"),
            "{}",
            whole[0].message
        );
    }

    #[test]
    fn an_array_inside_the_structure_is_still_the_structure() {
        let mut inner = field(5, 256, 256);
        inner.stride.as_mut().unwrap().unit_elsewhere = true;
        assert_eq!(
            Kernel::new().access(inner).findings(|_| 3.0)[0].rule,
            "mem/aos"
        );
    }

    #[test]
    fn a_structure_of_one_float_is_no_finding() {
        let mut single = access(5);
        single.field = field(5, 4, 4).field;
        assert_eq!(Kernel::new().access(single).findings(|_| 3.0), []);
    }
}
