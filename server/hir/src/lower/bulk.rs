//! Copies that one thread starts, as functions of the toolkit: `cuda::ptx`, `cuda::device`, `cuda::device::experimental`.

use warplens_ir::{AddressSpace, Effect, Expr, ExprKind, Function, Site, Type};

use super::Lowering;
use super::construct::element;

/// Dimensions of a tensor that a map describes, at most.
const MOST_DIMENSIONS: u64 = 5;

impl Lowering<'_> {
    /// A call of one of these; `None` for other names.
    pub(super) fn bulk_call(&self, name: &str, arguments: &[Expr], site: Site) -> Option<Expr> {
        let call = |function, arguments, ty| Expr {
            kind: ExprKind::Call(function, arguments),
            ty,
            site,
        };
        let copy = |of, arguments| {
            let function = Function::Instruction(name.into(), Box::new(of));
            Some(call(function, arguments, Type::Void))
        };
        let pointers: Vec<&Expr> = arguments
            .iter()
            .filter(|argument| matches!(argument.ty, Type::Pointer(..) | Type::Array(..)))
            .collect();
        if let Some(rest) = name.strip_prefix("cp_async_bulk") {
            if rest.contains("commit") || rest.contains("wait") || rest.contains("prefetch") {
                let function = Function::Ignored(Effect::Unknown, name.into());
                return Some(call(function, Vec::new(), Type::Void));
            }
            if rest.starts_with("_tensor") {
                // A tensor map and a tile; the barrier comes last.
                let to_global = rest.ends_with("shared_to_global");
                let [first, second, ..] = pointers.as_slice() else {
                    return Some(call(
                        Function::Ignored(Effect::Unknown, name.into()),
                        arguments.to_vec(),
                        Type::Void,
                    ));
                };
                let shared = |tile: &Expr| to_space(tile, AddressSpace::Shared);
                let mut all = if to_global {
                    let tile = pointers.last().copied()?;
                    vec![(*first).clone(), shared(tile)]
                } else {
                    vec![shared(first), (*second).clone()]
                };
                all.extend(corner(arguments));
                if let Some(blocks) = receivers(arguments) {
                    all.push(blocks.clone());
                    return copy(Function::BulkBox { multicast: true }, all);
                }
                return copy(Function::BulkBox { multicast: false }, all);
            }
            let size = arguments
                .iter()
                .find(|argument| argument.ty.is_int())?
                .clone();
            let [to, from, ..] = pointers.as_slice() else {
                return None;
            };
            let mut all = vec![(*to).clone(), (*from).clone(), size];
            let multicast = rest.contains("multicast");
            if multicast {
                all.push(arguments.last()?.clone());
            }
            return copy(Function::Bulk { multicast }, all);
        }
        let waits = [
            "barrier_arrive_tx",
            "barrier_expect_tx",
            "fence_proxy_async",
            "fence_proxy_async_shared_cta",
            "fence_mbarrier_init",
            "mbarrier_init",
            "mbarrier_arrive",
            "mbarrier_arrive_expect_tx",
            "mbarrier_expect_tx",
            "mbarrier_try_wait",
            "mbarrier_try_wait_parity",
            "mbarrier_test_wait",
            "mbarrier_test_wait_parity",
            "tensormap_replace",
        ];
        waits.contains(&name).then(|| {
            let function = Function::Ignored(Effect::Unknown, name.into());
            call(function, Vec::new(), Type::INT)
        })
    }
}

/// Where a box begins: each number by itself, or all of them as an array.
fn corner(arguments: &[Expr]) -> Vec<Expr> {
    let array = arguments.iter().find_map(|argument| match &argument.ty {
        Type::Array(of, Some(extent)) if of.is_int() && *extent <= MOST_DIMENSIONS => {
            Some((argument, *extent))
        }
        _ => None,
    });
    let Some((array, extent)) = array else {
        let numbers = arguments.iter().filter(|argument| argument.ty.is_int());
        return numbers.cloned().collect();
    };
    (0..extent)
        .map(|number| {
            let number = Expr {
                kind: ExprKind::Int(number as i64),
                ty: Type::INT,
                site: array.site,
            };
            element(array.clone(), number, array.site)
        })
        .collect()
}

/// The blocks of the cluster that get a box, by a bit each: behind its corner, where that is an array.
fn receivers(arguments: &[Expr]) -> Option<&Expr> {
    let is_corner = |argument: &Expr| matches!(&argument.ty, Type::Array(of, _) if of.is_int());
    let corner = arguments.iter().position(is_corner)?;
    let last = arguments.get(corner + 1..)?.last()?;
    matches!(last.ty, Type::Int { bits: 16, .. }).then_some(last)
}

/// An address in a memory that the function names.
fn to_space(pointer: &Expr, space: AddressSpace) -> Expr {
    let to = pointer.ty.element().cloned().unwrap_or(Type::BYTE);
    Expr {
        kind: ExprKind::Cast(false, Box::new(pointer.clone())),
        ty: Type::Pointer(std::sync::Arc::new(to), space),
        site: pointer.site,
    }
}
