//! OpenCL's blocks, `^(local int *p) { … }`, and the launches that kernels make of them.
//!
//! What a block does happens in another launch: its accesses are listed with the kernel that enqueues it, and
//! how often they run and what they cost is not known there.

use warplens_syntax::Field;
use warplens_syntax::Kind;

use super::Lowering;
use super::construct::asked;
use super::split::list;
use std::sync::Arc;
use warplens_ir::functions::Function;
use warplens_ir::{Expr, ExprKind, Opaque, Storage};

use crate::types::{Callable, callable_of};
use warplens_ir::{AddressSpace, Site, Type, walk};

/// Accesses of one block that are listed.
const MOST_ACCESSES: usize = 256;

impl Lowering<'_> {
    /// A function of OpenCL's device-side queues.
    pub(super) fn queue_call(
        &mut self,
        name: &str,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let object = |of: &str| list(&Type::Library(of.into()), Vec::new(), site);
        let operands: Vec<Expr> = arguments
            .iter()
            .filter(|argument| match &argument.ty {
                Type::Callable(_) => false,
                // A range that is made where it is given reads what it is made of.
                Type::Library(_) => matches!(argument.kind, ExprKind::Call(..)),
                _ => true,
            })
            .cloned()
            .collect();
        match name {
            "get_default_queue" => Some(object("queue_t")),
            "ndrange_1D" | "ndrange_2D" | "ndrange_3D" => {
                Some(asked(operands, Type::Library("ndrange_t".into()), site))
            }
            "create_user_event" => Some(object("clk_event_t")),
            "retain_event"
            | "release_event"
            | "set_user_event_status"
            | "capture_event_profiling_info" => Some(list(
                &Type::Void,
                vec![asked(operands, Type::INT, site)],
                site,
            )),
            "is_valid_event" | "enqueue_marker" => Some(asked(operands, Type::INT, site)),
            "get_kernel_work_group_size"
            | "get_kernel_preferred_work_group_size_multiple"
            | "get_kernel_sub_group_count_for_ndrange"
            | "get_kernel_max_sub_group_size_for_ndrange" => {
                Some(asked(operands, Type::UINT, site))
            }
            "enqueue_kernel" => {
                let mut all = operands;
                for argument in arguments {
                    if let Some(block) = callable_of(&argument.ty) {
                        all.extend(self.launched_block(&block, site));
                    }
                }
                Some(asked(all, Type::INT, site))
            }
            _ => None,
        }
    }

    /// The accesses of a block that another launch runs.
    fn launched_block(&mut self, block: &Arc<Callable>, site: Site) -> Vec<Expr> {
        let definition = block.definition.clone();
        let count = definition
            .node(&[Kind::BlockLiteral])
            .and_then(|literal| literal.field(Field::Parameters))
            .map_or(0, |list| super::parts(list).len());
        // Each parameter is local memory of that launch.
        let local = Expr {
            kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
            ty: Type::Pointer(std::sync::Arc::new(Type::Void), AddressSpace::Shared),
            site,
        };
        let first = self.vars.len();
        let body = self.call_lambda(block, &[], &vec![local; count], site);
        let ExprKind::Inline(statements, _) = &body.kind else {
            return Vec::new();
        };
        let mut stored: Vec<Expr> = Vec::new();
        let mut loaded: Vec<Expr> = Vec::new();
        walk::expressions(statements, &mut |part| match &part.kind {
            ExprKind::Assign(_, target, _) | ExprKind::Step(_, _, target) => {
                stored.push((**target).clone());
            }
            ExprKind::Call(Function::Atomic(..) | Function::Store, operands) => {
                stored.extend(
                    operands
                        .first()
                        .map(|pointer| super::split::deref(pointer.clone(), part.site)),
                );
            }
            ExprKind::Index(..) | ExprKind::Deref(_)
                if !matches!(part.ty, Type::Array(..)) && !stored.contains(part) =>
            {
                loaded.push(part.clone());
            }
            _ => {}
        });
        let places = stored
            .into_iter()
            .map(|place| (place, true))
            .chain(loaded.into_iter().map(|place| (place, false)));
        places
            .filter(|(place, _)| self.is_memory(place, first))
            .take(MOST_ACCESSES)
            .map(|(place, store)| {
                let site = place.site;
                let ty = place.ty.clone();
                Expr {
                    kind: ExprKind::Call(Function::Launched { store }, vec![place]),
                    ty,
                    site,
                }
            })
            .collect()
    }

    /// True for a place that is no variable of the block's own; its own begin at `first`.
    fn is_memory(&self, place: &Expr, first: usize) -> bool {
        let mut at = place;
        let mut through_pointer = false;
        loop {
            through_pointer |= match &at.kind {
                ExprKind::Deref(_) => true,
                ExprKind::Index(base, _) => matches!(base.ty, Type::Pointer(..)),
                _ => false,
            };
            at = match &at.kind {
                ExprKind::Index(base, _)
                | ExprKind::Deref(base)
                | ExprKind::Field(base, _)
                | ExprKind::Cast(_, base)
                | ExprKind::AddressOf(base)
                | ExprKind::Binary(_, base, _) => base,
                ExprKind::Var(id) => {
                    let own = id.0 as usize >= first
                        || matches!(self.vars[id.0 as usize].storage, Storage::Local);
                    return through_pointer || !own;
                }
                _ => return through_pointer,
            };
        }
    }
}
