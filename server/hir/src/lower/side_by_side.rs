//! Functions by which the lanes of a warp access memory side by side, and those that name a buffer in place of a pointer: Intel's block
//! reads and writes of a sub-group, AMD's buffer instructions and loads into LDS.

use std::sync::Arc;

use warplens_ir::functions::Function;
use warplens_ir::{AddressSpace, BinaryOp, Builtin, Expr, ExprKind, Site, Storage, Type};

use super::Lowering;
use super::constants::constant;
use super::construct::{element, operation};
use super::shared_copies::asynchronous;
use super::split::{deref, list};

impl Lowering<'_> {
    /// A call of one of these; `None` for other names.
    pub(super) fn side_by_side(
        &mut self,
        name: &str,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        if let Some(rest) = name.strip_prefix("intel_sub_group_block_") {
            return self.block_of_sub_group(rest, arguments, site);
        }
        let rest = name.strip_prefix("__builtin_amdgcn_")?;
        match rest {
            "make_buffer_rsrc" => {
                let ty = Type::Pointer(Arc::new(Type::BYTE), AddressSpace::Global);
                return Some(self.cast(arguments.first()?.clone(), ty, site));
            }
            "global_load_lds" | "load_to_lds" => {
                let [from, to, size, ..] = arguments else {
                    return None;
                };
                return self.load_into_lds(from.clone(), to, size, site);
            }
            "raw_ptr_buffer_load_lds" => {
                let [buffer, to, size, offset, scalar, ..] = arguments else {
                    return None;
                };
                let from = self.in_buffer(buffer, offset, scalar, &Type::BYTE, site)?;
                return self.load_into_lds(from, to, size, site);
            }
            _ => {}
        }
        let (axis, of) = (rest.strip_suffix(['x', 'y', 'z'])?, rest.bytes().last()?);
        let axis_number = of - b'x';
        let uint = |kind| Expr {
            kind,
            ty: Type::UINT,
            site,
        };
        match axis {
            "workitem_id_" => {
                let thread = self.thread(axis_number);
                Some(uint(thread))
            }
            "workgroup_id_" => Some(uint(ExprKind::Builtin(Builtin::BlockIdx(axis_number)))),
            "workgroup_size_" => Some(uint(ExprKind::Builtin(Builtin::BlockDim(axis_number)))),
            _ => None,
        }
    }

    /// `__builtin_amdgcn_raw_buffer_load_b128(buffer, offset, scalar offset, …)` and the stores, which have the value first.
    pub(super) fn buffer_access(
        &mut self,
        name: &str,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let rest = name.strip_prefix("__builtin_amdgcn_")?;
        let rest = rest
            .strip_prefix("raw_ptr_buffer_")
            .or(rest.strip_prefix("raw_buffer_"))?;
        let (store, bits) = match (rest.strip_prefix("load_b"), rest.strip_prefix("store_b")) {
            (Some(bits), _) => (false, bits),
            (_, Some(bits)) => (true, bits),
            _ => return None,
        };
        let ty = match bits.parse::<u8>().ok()? {
            bits @ (8 | 16 | 32) => Type::Int {
                bits,
                signed: false,
            },
            bits @ (64 | 96 | 128) => Type::Vector(Arc::new(Type::UINT), bits / 32),
            _ => return None,
        };
        let (value, rest) = match (store, arguments) {
            (true, [value, rest @ ..]) => (Some(value), rest),
            (_, rest) => (None, rest),
        };
        let [buffer, offset, scalar, ..] = rest else {
            return None;
        };
        let pointer = self.in_buffer(buffer, offset, scalar, &ty, site)?;
        let place = deref(pointer, site);
        Some(match value {
            None => place,
            Some(value) => Expr {
                ty: place.ty.clone(),
                kind: ExprKind::Assign(None, Box::new(place), Box::new(value.clone())),
                site,
            },
        })
    }

    /// An address in a buffer: bytes of the lane and bytes of the wave behind its start. A descriptor that the source makes of numbers
    /// leads to no pointer.
    fn in_buffer(
        &mut self,
        buffer: &Expr,
        offset: &Expr,
        scalar: &Expr,
        to: &Type,
        site: Site,
    ) -> Option<Expr> {
        if !matches!(buffer.ty, Type::Pointer(..)) {
            return None;
        }
        let bytes = operation(BinaryOp::Add, offset.clone(), scalar.clone(), site);
        let bytewise = Type::Pointer(Arc::new(Type::BYTE), AddressSpace::Global);
        let start = self.cast(buffer.clone(), bytewise.clone(), site);
        let moved = Expr {
            kind: ExprKind::Binary(BinaryOp::Add, Box::new(start), Box::new(bytes)),
            ty: bytewise,
            site,
        };
        let to = Type::Pointer(Arc::new(to.clone()), AddressSpace::Global);
        Some(self.cast(moved, to, site))
    }

    /// A load into LDS: the lanes' words lie there one behind the other.
    fn load_into_lds(&mut self, from: Expr, to: &Expr, size: &Expr, site: Site) -> Option<Expr> {
        let ty = match constant(size)? {
            1 => Type::BYTE,
            4 => Type::UINT,
            12 => Type::Vector(Arc::new(Type::UINT), 3),
            16 => Type::Vector(Arc::new(Type::UINT), 4),
            _ => return None,
        };
        let lane = self.lane(site);
        let shared = Type::Pointer(Arc::new(ty.clone()), AddressSpace::Shared);
        let global = Type::Pointer(Arc::new(ty.clone()), AddressSpace::Global);
        let to = self.cast(to.clone(), shared, site);
        let from = self.cast(from, global, site);
        Some(asynchronous(Expr {
            kind: ExprKind::Assign(
                None,
                Box::new(element(to, lane, site)),
                Box::new(deref(from, site)),
            ),
            ty,
            site,
        }))
    }

    /// `read4(p)`, `write_us2(p, value)`: of the elements that lie side by side each lane has one, as often as the name says. Of images it is their access.
    fn block_of_sub_group(&mut self, rest: &str, arguments: &[Expr], site: Site) -> Option<Expr> {
        let (store, rest) = match (rest.strip_prefix("read"), rest.strip_prefix("write")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return None,
        };
        let digits = rest.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let lanes: u8 = if digits.is_empty() {
            1
        } else {
            digits
                .parse()
                .ok()
                .filter(|lanes| (1..=16).contains(lanes))?
        };
        let of = match rest.strip_suffix(digits)? {
            "" | "_ui" => Type::UINT,
            "_us" => Type::Int {
                bits: 16,
                signed: false,
            },
            "_uc" => Type::BYTE,
            "_ul" => Type::SIZE,
            _ => return None,
        };
        let ty = match lanes {
            1 => of.clone(),
            lanes => Type::Vector(Arc::new(of.clone()), lanes),
        };
        let pointer = arguments.first()?;
        let Type::Pointer(_, space) = &pointer.ty else {
            let arguments = arguments.to_vec();
            return Some(Expr {
                kind: ExprKind::Call(Function::Texture { store }, arguments),
                ty: if store { Type::Void } else { ty },
                site,
            });
        };
        let space = *space;
        let start = self.cast(pointer.clone(), Type::Pointer(Arc::new(of), space), site);
        let mut done = Vec::new();
        let value = match (store, arguments.get(1)) {
            (false, _) => None,
            (true, value) => {
                let value = value?.clone();
                let kept = self.fresh("written", ty.clone(), Storage::Local, site);
                let kept = self.var(kept, site);
                done.push(self.assigned(kept.clone(), value, site));
                Some(kept)
            }
        };
        let int = |number: u8| Expr {
            kind: ExprKind::Int(i64::from(number)),
            ty: Type::INT,
            site,
        };
        let mut parts = Vec::new();
        for number in 0..lanes {
            let lane = self.lane(site);
            let size = Expr {
                kind: ExprKind::Builtin(Builtin::WarpSize),
                ty: Type::UINT,
                site,
            };
            let before = operation(BinaryOp::Mul, int(number), size, site);
            let at = operation(BinaryOp::Add, before, lane, site);
            let place = element(start.clone(), at, site);
            match &value {
                None => parts.push(place),
                Some(value) => {
                    let part = match lanes {
                        1 => value.clone(),
                        _ => element(value.clone(), int(number), site),
                    };
                    done.push(Expr {
                        ty: place.ty.clone(),
                        kind: ExprKind::Assign(None, Box::new(place), Box::new(part)),
                        site,
                    });
                }
            }
        }
        if store {
            return Some(list(&Type::Void, done, site));
        }
        Some(match lanes {
            1 => parts.remove(0),
            _ => list(&ty, parts, site),
        })
    }
}
