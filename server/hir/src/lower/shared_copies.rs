//! `memcpy_async` of cooperative groups and of libcu++, and the wait for it.

use std::sync::Arc;

use warplens_ir::functions::Function;
use warplens_ir::{AddressSpace, Bound, Expr, ExprKind, Site, Stmt, StmtKind, Type};

use super::Lowering;
use super::candidate::Callee;
use super::constants::constant;
use super::split::list;
use crate::copies::{BY_GROUP, BY_THREAD};

/// The most bytes that a thread copies at a time.
const WIDEST: u64 = 16;

/// A copy by one thread of more bytes than this is a loop.
const MOST_AT_ONCE: i64 = 256;

impl Lowering<'_> {
    /// `memcpy_async(group, to, from, bytes, …)`, or without a group by the calling thread.
    pub(super) fn copy_async(&mut self, arguments: &[Expr], site: Site) -> Option<Expr> {
        let grouped = matches!(arguments.first()?.ty, Type::Library(_));
        let (group, rest) = arguments.split_at(usize::from(grouped));
        let [to, from, size, others @ ..] = rest else {
            return None;
        };
        let (said, bytes) = aligned_size(size);
        let width = said.unwrap_or_else(|| element_align(to).min(element_align(from)));
        let width = width.min(WIDEST);
        if !grouped {
            if constant(&bytes).is_some_and(|bytes| bytes <= MOST_AT_ONCE) {
                let copy = self.copied(to, from, &bytes, site);
                return Some(asynchronous(copy));
            }
            // Which engine copies large aligned blocks, the architecture decides.
            if width == WIDEST && !others.is_empty() {
                return Some(self.copied(to, from, &bytes, site));
            }
        }
        // `memcpy_async(group, to, to_count, from, from_count)` of cooperative groups counts elements.
        if size.ty.element().is_some() {
            return None;
        }
        let bytewise = Type::Pointer(Arc::new(Type::BYTE), AddressSpace::Global);
        let [to, from] = [to, from].map(|end| self.cast(end.clone(), bytewise.clone(), site));
        let name = if grouped { BY_GROUP } else { BY_THREAD };
        let mut given = group.to_vec();
        given.extend([to, from, bytes]);
        let width = Bound::Value(i64::try_from(width).ok()?);
        let copied = self.call_by_name(Callee::of(name), &[width], given, site);
        let of_groups = grouped && others.is_empty();
        if !of_groups {
            return Some(copied);
        }
        // Without an object to wait with the group's own wait ends it.
        let commit = Callee::of("__pipeline_commit");
        let commit = self.call_by_name(commit, &[], Vec::new(), site);
        Some(list(&Type::Void, vec![copied, commit], site))
    }

    /// `wait(group)`, `wait_prior<n>(group)`: for the copies, then for the group.
    pub(super) fn wait_of_group(&mut self, of: &str, left: i64, site: Site) -> Expr {
        let left = Expr {
            kind: ExprKind::Int(left),
            ty: Type::INT,
            site,
        };
        let wait = Callee::of("__pipeline_wait_prior");
        let waited = self.call_by_name(wait, &[], vec![left], site);
        let mut statements = vec![Stmt {
            kind: StmtKind::Expr(waited),
            site,
        }];
        if of == "thread_block" {
            statements.push(Stmt {
                kind: StmtKind::Barrier,
                site,
            });
        }
        Expr {
            kind: ExprKind::Inline(statements, None),
            ty: Type::Void,
            site,
        }
    }
}

/// A copy into shared memory of 4, 8 or 16 bytes, which passes the registers by.
pub(super) fn asynchronous(copy: Expr) -> Expr {
    if !matches!(copy.kind, ExprKind::Assign(None, ..)) || !matches!(copy.ty.size(), 4 | 8 | 16) {
        return copy;
    }
    let site = copy.site;
    Expr {
        kind: ExprKind::Call(Function::CopyPastRegisters, vec![copy]),
        ty: Type::Void,
        site,
    }
}

/// `aligned_size_t<n>(bytes)`: a number of bytes with what they are aligned to.
pub(super) fn with_alignment(bytes: &Expr, alignment: Option<&Bound>, site: Site) -> Expr {
    let Some(Bound::Value(alignment)) = alignment else {
        return bytes.clone();
    };
    let said = Expr {
        kind: ExprKind::Int(*alignment),
        ty: Type::SIZE,
        site,
    };
    // A list of two is the second.
    list(&Type::SIZE, vec![said, bytes.clone()], site)
}

/// The two of [`with_alignment`].
fn aligned_size(size: &Expr) -> (Option<u64>, Expr) {
    if let ExprKind::List(parts) = &size.kind
        && let [said, bytes] = parts.as_slice()
        && let Some(said) = constant(said).and_then(|said| u64::try_from(said).ok())
    {
        return (Some(said), bytes.clone());
    }
    (None, size.clone())
}

/// True for [`with_alignment`]'s two where both are numbers.
pub(super) fn is_aligned_size(size: &Expr) -> bool {
    let (said, bytes) = aligned_size(size);
    size.ty == Type::SIZE && said.is_some() && constant(&bytes).is_some()
}

/// What the elements behind a pointer are aligned to.
fn element_align(pointer: &Expr) -> u64 {
    pointer.ty.element().map_or(1, |element| {
        let innermost = std::iter::successors(Some(element), |ty| match ty {
            Type::Array(inner, _) => Some(inner),
            _ => None,
        });
        innermost.last().map_or(1, Type::align).max(1)
    })
}
