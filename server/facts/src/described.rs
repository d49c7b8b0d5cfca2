//! What matrix units read of shared memory by themselves: factors of a product of which the instruction gets a descriptor, 64 bits
//! with where the factor begins and how its rows lie (PTX ISA, "Matrix descriptor format").
//!
//! In: the product's mnemonic and the values of its operands. Out: a load of each such factor, its bytes whole. What holds: in each of
//! the layouts that a descriptor can say, eight rows of 16 bytes lie in all banks, so that the bytes alone decide the passes.

use warplens_ir::{Expr, Type};
use warplens_symbolic::{BinaryOp, Id, Node};

use crate::draft::Unseen;
use crate::executor::Executor;
use crate::facts::{Form, Op, Site, Space};
use crate::value::{ArrayId, Kind, Value, Variation};

/// Bytes of a row of a factor, as one product takes it, whatever its type.
const ROW: u32 = 32;
/// Rows of the left factor of `wgmma`.
const GROUP_ROWS: u32 = 64;
/// Warps that do it together.
const GROUP: u8 = 4;
/// Bytes that a descriptor counts in.
const UNIT: i64 = 16;
/// The first field: where the factor begins, in 16 bytes.
const START_BITS: u32 = 14;
/// Bits that no field has, of `wgmma` and of `tcgen05`.
const RESERVED: [u64; 2] = [
    0xc000 | 0xc000 << 16 | 0b111 << 46 | 0x3ff << 52,
    0xc000 | 0xc000 << 16 | 0xff << 53,
];
/// Terms of a descriptor that are looked at.
const MOST_TERMS: usize = 64;

/// A product whose factors are described.
struct Product {
    left: u32,
    right: u32,
    warps: u8,
    reserved: u64,
}

impl Product {
    /// `None` for products of registers, and where nothing says the shape.
    fn of(mnemonic: &str, shape: Option<i64>) -> Option<Product> {
        let mut words = mnemonic.split('.');
        let base = words.next()?;
        let has = |word: &str| mnemonic.split('.').any(|part| part.starts_with(word));
        // Of a sparse factor every other element is there: the other one's rows are twice as long.
        let depth = if has("sp") { 2 } else { 1 };
        match base {
            "wgmma" if has("mma_async") => {
                let columns = mnemonic
                    .split('.')
                    .find_map(|word| word.strip_prefix("m64n")?.split_once('k')?.0.parse().ok())?;
                Some(Product {
                    left: GROUP_ROWS * ROW,
                    right: u32::checked_mul(columns, ROW * depth)?,
                    warps: GROUP,
                    reserved: RESERVED[0],
                })
            }
            "tcgen05" if has("mma") => {
                let [rows, columns] = instruction_shape(shape?)?;
                // Where two blocks have a half each, one of them issues it for both.
                Some(Product {
                    left: rows * ROW,
                    right: columns * ROW * depth,
                    warps: 1,
                    reserved: RESERVED[1],
                })
            }
            _ => None,
        }
    }
}

/// Rows and columns of the sum, as an instruction descriptor says them (PTX ISA, "Instruction descriptor").
fn instruction_shape(bits: i64) -> Option<[u32; 2]> {
    let field = |from: u32, count: u32| (bits >> from & ((1 << count) - 1)) as u32;
    let (rows, columns) = (field(24, 5) * 16, field(17, 6) * 8);
    (rows > 0 && columns > 0).then_some([rows, columns])
}

impl Executor<'_> {
    /// The loads of a product's factors that its operands describe.
    pub(crate) fn described(
        &mut self,
        mnemonic: &str,
        arguments: &[Expr],
        values: &[Value],
        whole: &Expr,
    ) {
        if !mnemonic.starts_with("wgmma") && !mnemonic.starts_with("tcgen05") {
            return;
        }
        let is = |number: usize, bits: u8| matches!(arguments[number].ty, Type::Int { bits: has, .. } if has == bits);
        let described: Vec<usize> = (0..arguments.len()).filter(|at| is(*at, 64)).collect();
        let (Some(&last), true) = (described.last(), described.len() <= 2) else {
            return;
        };
        // The instruction's own descriptor comes behind those of the factors.
        let shape = (last + 1..arguments.len())
            .find(|at| is(*at, 32))
            .and_then(|at| {
                let shape = self.as_int(&values[at]);
                self.arena.as_const(shape)
            });
        let Some(product) = Product::of(mnemonic, shape) else {
            return;
        };
        let outer = self.context;
        if product.warps > 1 {
            let group = self.is_first_of_a_group(i64::from(product.warps));
            self.enter(group, true, usize::MAX, false);
        }
        for (number, &at) in described.iter().enumerate() {
            let bytes = if number + 1 < described.len() {
                product.left
            } else {
                product.right
            };
            let form = Form::Described {
                bytes,
                warps: product.warps,
            };
            let site = arguments[at].site;
            let draft = self.read_described(values[at].kind, product.reserved, form, site, whole);
            if let Some(draft) = draft.and_then(|draft| self.accesses.get_mut(draft)) {
                draft.instruction = Some(mnemonic.into());
            }
        }
        self.context = outer;
    }

    fn read_described(
        &mut self,
        descriptor: Kind,
        reserved: u64,
        form: Form,
        site: Site,
        whole: &Expr,
    ) -> Option<usize> {
        let mut unseen = None;
        let place = match descriptor {
            // An address as it is, with other fields beside it.
            Kind::Pointer(array, _) => {
                unseen = Some(Unseen::DescribedInBytes);
                Some((array, self.arena.constant(0)))
            }
            Kind::Int(id) => {
                let fields = self.fields(id);
                if fields.constant as u64 & reserved != 0 {
                    unseen = Some(Unseen::Reserved);
                }
                self.beginning(&fields)
            }
            Kind::Data => None,
        };
        let (array, address) = match place {
            Some(place) => place,
            None => {
                let array = self.array("", Space::Shared);
                (array, self.unknown(false, Variation::unknown(true)))
            }
        };
        let draft = self.record(array, address, 1, 1, Op::Load, whole, &[]);
        self.shape_of(draft, form);
        if self.dry > 0 || self.counting_only {
            return None;
        }
        let text = self.quote(site);
        if let Some(known) = self.accesses.get_mut(draft) {
            known.text = text;
            known.unseen = unseen;
            // Of the second generation a barrier in memory says when a product is done.
            let by_barrier = matches!(form, Form::Described { warps: 1, .. });
            known.ahead = Some(u32::from(by_barrier));
            // A run on numbers does not read descriptors.
            known.origin = None;
        }
        if !matches!(form, Form::Described { warps: 1, .. }) {
            self.products.issue(draft);
        }
        Some(draft)
    }

    /// True in the first thread of a group of warps.
    fn is_first_of_a_group(&mut self, warps: i64) -> Id {
        let plane = self.arena.mul(self.thread[2], self.block_dim[1]);
        let rows = self.arena.add(plane, self.thread[1]);
        let before = self.arena.mul(rows, self.block_dim[0]);
        let rank = self.arena.add(before, self.thread[0]);
        let size = self.arena.constant(warps * self.domain.warp_size() as i64);
        let place = self.arena.binary(BinaryOp::Rem, rank, size);
        let zero = self.arena.constant(0);
        self.arena.binary(BinaryOp::Eq, place, zero)
    }

    /// The fields of a descriptor: what is constant of it, and what is added to its first field.
    fn fields(&mut self, descriptor: Id) -> Fields {
        let mut found = Fields::default();
        let mut left = vec![(descriptor, 1i64)];
        while let Some((id, factor)) = left.pop() {
            if left.len() + found.start.len() > MOST_TERMS {
                found.followed = false;
                break;
            }
            match self.arena.node(id).clone() {
                Node::Const(value) => {
                    found.constant = found.constant.wrapping_add(value.wrapping_mul(factor));
                }
                Node::Sum(constant, terms) => {
                    let constant = constant.wrapping_mul(factor);
                    found.constant = found.constant.wrapping_add(constant);
                    left.extend(
                        terms
                            .iter()
                            .map(|&(term, by)| (term, factor.wrapping_mul(by))),
                    );
                }
                Node::Wrap(64, _, inner) => left.push((inner, factor)),
                // Fields side by side.
                Node::Binary(BinaryOp::Or, a, b) => left.extend([(a, factor), (b, factor)]),
                _ if factor != 0 && factor.trailing_zeros() >= 16 => {}
                _ => found.start.push((id, factor)),
            }
        }
        found
    }

    /// The array into which a descriptor's first field leads, and the bytes into it.
    fn beginning(&mut self, fields: &Fields) -> Option<(ArrayId, Id)> {
        if !fields.followed {
            return None;
        }
        let first = fields.constant & ((1 << START_BITS) - 1);
        let mut address = self.arena.constant(first.wrapping_mul(UNIT));
        for &(term, factor) in &fields.start {
            let bytes = self.arena.scale(term, factor.checked_mul(UNIT)?);
            address = self.arena.add(address, bytes);
        }
        let mut bases = self
            .bases
            .iter()
            .map(|(array, base)| (*array, *base))
            .filter(|(array, base)| {
                self.arrays[array.0 as usize].space == Space::Shared
                    && self
                        .arena
                        .as_symbol(*base)
                        .is_some_and(|base| self.arena.depends_on(address, base))
            });
        match (bases.next(), bases.next()) {
            (Some((array, base)), None) => {
                let symbol = self.arena.as_symbol(base)?;
                let zero = self.arena.constant(0);
                Some((array, self.arena.substitute(address, symbol, zero)))
            }
            (None, None) => Some((self.only_shared_array()?, address)),
            _ => None,
        }
    }

    /// The one array in shared memory, whose addresses are offsets into it.
    fn only_shared_array(&mut self) -> Option<ArrayId> {
        let shared = self.arrays.iter().enumerate();
        let mut shared = shared.filter(|(_, array)| {
            array.space == Space::Shared && !array.remote && !array.name.is_empty()
        });
        match (shared.next(), shared.next()) {
            (Some((at, _)), None) => Some(ArrayId(at as u32)),
            _ => None,
        }
    }

    /// Groups of products end, and are waited for but for the last ones.
    pub(crate) fn wait_for_products(&mut self, name: &str, left: Option<Id>) {
        if self.dry > 0 || self.counting_only {
            return;
        }
        if name.starts_with("wgmma.commit_group") {
            self.products.commit();
        } else if name.starts_with("wgmma.wait_group") {
            let left = left.and_then(|id| self.arena.as_const(id)).unwrap_or(0);
            self.products.wait(usize::try_from(left).unwrap_or(0));
        }
    }

    /// Products that a later iteration of the loop that ends here waits for.
    pub(crate) fn leave_products(&mut self) {
        for (draft, ahead) in self.products.leave_loop() {
            if let Some(product) = self.accesses.get_mut(draft) {
                product.ahead = Some(ahead);
            }
        }
    }
}

/// A descriptor taken apart.
struct Fields {
    constant: i64,
    /// What else is in the first field, each with its factor.
    start: Vec<(Id, i64)>,
    followed: bool,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields {
            constant: 0,
            start: Vec::new(),
            followed: true,
        }
    }
}

/// True for the text of an access that is said by its operand, not by the instruction around it.
pub(crate) fn is_said_by_operand(form: Form) -> bool {
    matches!(form, Form::Described { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_between_the_fields_are_reserved() {
        // Start, leading and stride offset of 14 bits each at 0, 16 and 32; base offset at 49, layout at 62.
        let all = 0x3fff | 0x3fff << 16 | 0x3fff << 32 | 0b111 << 49 | 0b11 << 62;
        assert_eq!(RESERVED[0], !all);
        // The second generation has a version at 46, a mode of the leading offset at 52, a layout of three bits at 61.
        let all = 0x3fff
            | 0x3fff << 16
            | 0x3fff << 32
            | 0b111 << 46
            | 0b111 << 49
            | 1 << 52
            | 0b111 << 61;
        assert_eq!(RESERVED[1], !all);
    }

    #[test]
    fn a_product_reads_its_factors_once() {
        let bytes = |mnemonic: &str, shape| {
            let product = Product::of(mnemonic, shape)?;
            Some((product.left, product.right))
        };
        let dense = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16";
        assert_eq!(bytes(dense, None), Some((64 * 16 * 2, 256 * 16 * 2)));
        let sparse = "wgmma.mma_async.sp.sync.aligned.m64n32k64.s32.s8.s8";
        assert_eq!(bytes(sparse, None), Some((64 * 32, 32 * 64)));
        let idesc = Some((128 / 16) << 24 | (64 / 8) << 17);
        let one = "tcgen05.mma.cta_group::1.kind::f16";
        assert_eq!(bytes(one, idesc), Some((128 * 32, 64 * 32)));
        assert_eq!(bytes(one, None), None);
        assert_eq!(
            bytes("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", None),
            None
        );
    }
}
