//! Pads or swizzles a tile whose addresses are handed on: to `ldmatrix` and `stmatrix`, to copies past the registers, to loads
//! and stores of 16 bytes, to fragments.
//!
//! Rows are moved by whole pieces of 16 bytes, so that what is read or written together stays together. What follows the
//! address after it was taken is not read here: the edited kernel is analysed, and each access must find its bytes where they
//! moved to ([`only_moved`]).

use std::cell::RefCell;
use std::ops::Range;

use warplens_facts::facts::{Access, Form, SharedArray, SourceFacts};
use warplens_hir::Semantics;
use warplens_hir::semantics::{Declaration, bare, children, declared_name};
use warplens_syntax::nodes::ArrayDeclarator;
use warplens_syntax::{BinaryOperator, Field, Kind, Node, binary};

use super::pad_shared::{Plan, conflicting, padded, simple, subscript, target, total_passes};
use crate::fixes::layout::only_moved;
use crate::fixes::proof::{Proof, prove};
use crate::fixes::source::squeezed;
use crate::fixes::{Edit, Fix, Kernel, Request, in_order, touch};
use crate::wording::{counted, extents, faster, number, occupancy};

const RULE: &str = "smem/bank-conflict";

/// Bytes that matrix instructions and wide copies move together.
const PIECE: u64 = 16;
/// Bytes of all banks together, in pieces: rows this far apart begin at the same bank.
const PERIOD: u64 = 128 / PIECE;
/// Variables that addresses of one tile are kept in, at most.
const MOST_NAMES: usize = 16;
/// Widths of rows tried for a tile whose declaration does not say them.
const MOST_WIDTHS: usize = 4;
/// Constants that constants are made of, one behind the other, at most.
const DEEPEST: u32 = 12;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let mut found = Vec::new();
    for kernel in request.analysis.kernels() {
        if !touch(request.range, &(kernel.start..kernel.end)) {
            continue;
        }
        for index in 0..kernel.facts.shared_arrays.len() {
            if let Some(target) = target(request, &kernel, index)
                && let Some(tile) = Tile::new(request, &kernel, index, target)
            {
                found.extend(tile.pad());
                found.extend(tile.swizzle());
            }
        }
    }
    found
}

/// A tile, and everything that its address goes through.
struct Tile<'a, 't> {
    request: &'a Request<'t>,
    kernel: &'a Kernel<'t>,
    code: Semantics<'t>,
    index: usize,
    target: usize,
    array: &'a SharedArray,
    /// Extents as written, outermost first; none of dynamic shared memory.
    sizes: Vec<Node<'t>>,
    /// Where the array's name or a variable with an address in it is used.
    uses: Vec<Node<'t>>,
}

/// A sum that an address is made of: which row, and how far along it.
struct Sum<'t> {
    row: Node<'t>,
    /// The width of a row as it is written.
    pitch: Node<'t>,
    /// The product of both.
    product: Node<'t>,
    /// The terms behind it, with what is between them.
    along: Option<Range<usize>>,
    plain: bool,
}

impl<'a, 't> Tile<'a, 't> {
    /// `None` where the older actions answer, or some use cannot be judged.
    fn new(
        request: &'a Request<'t>,
        kernel: &'a Kernel<'t>,
        index: usize,
        target: usize,
    ) -> Option<Tile<'a, 't>> {
        let array = &kernel.facts.shared_arrays[index];
        let is_wide = |access: &Access| {
            let wide =
                matches!(access.form, Form::Rows(_)) || u64::from(access.bytes_per_lane) == PIECE;
            wide && access.shared_array == Some(index)
        };
        let written = request.code().source;
        // Layouts that the hardware knows are read through descriptors, which are no accesses of the program.
        let described = ["wgmma", "tcgen05"]
            .iter()
            .any(|word| written.contains(word));
        if array.element_bytes == 0
            || !PIECE.is_multiple_of(u64::from(array.element_bytes))
            || !kernel.facts.accesses.iter().any(is_wide)
            || !kernel.facts.not_understood.is_empty()
            || described
            || Plan::new(request.document, kernel, array).is_some()
        {
            return None;
        }
        let code = request.code();
        let source = kernel.source(code)?;
        let declarator = source.source_of::<ArrayDeclarator>(array.site)?.node();
        let mut sizes = Vec::new();
        let mut at = declarator;
        while at.kind() == Kind::ArrayDeclarator {
            sizes.extend(at.field(Field::Size));
            at = at.field(Field::Declarator)?;
        }
        sizes.reverse();
        let name = declared_name(at).filter(|name| *name == at)?;
        let known = if array.dynamic {
            sizes.is_empty()
        } else {
            sizes.len() == array.extents.len()
        };
        if code.text(name) != array.name || code.in_a_macro(&array.name) || !known {
            return None;
        }
        let uses = with_addresses(code, code.declaration(name)?)?;
        Some(Tile {
            request,
            kernel,
            code,
            index,
            target,
            array,
            sizes,
            uses,
        })
    }

    fn element(&self) -> u64 {
        u64::from(self.array.element_bytes)
    }

    /// Rows become longer by a piece.
    fn pad(&self) -> Option<Fix> {
        let last = *self.sizes.last()?;
        let more = PIECE / self.element();
        if let Some(zero) = self.padding_of_zero(last) {
            let name = self.code.text(zero.0);
            let edits = vec![(zero.1.byte_range(), more.to_string())];
            let title = format!("Pad `{}` by `{name} = {more}`", self.array.name);
            if let Some((edits, proof)) = self.proved(edits) {
                let also = occupancy(self.kernel.occupancy, proof.after().occupancy);
                return self.fix(&title, &also, edits, &proof);
            }
        }
        let mut edits = Vec::new();
        let shown = if self.sizes.len() > 1 {
            let wider = padded(self.code, last, more)?;
            edits.push((last.byte_range(), wider.clone()));
            let before = self.sizes[..self.sizes.len() - 1].iter();
            let mut shown: Vec<String> = before
                .map(|size| self.code.text(*size).to_owned())
                .collect();
            shown.push(wider);
            shown
        } else {
            // `tile[ROWS * WIDTH]`: the last factor is the width.
            let pitch = last_factor(last)?;
            let wider = format!("({})", padded(self.code, bare(pitch), more)?);
            edits.push((pitch.byte_range(), wider.clone()));
            let start = last.start_byte();
            let mut shown = self.code.text(last).to_owned();
            shown.replace_range(pitch.start_byte() - start..pitch.end_byte() - start, &wider);
            vec![shown]
        };
        let pitch = if self.sizes.len() > 1 {
            last
        } else {
            last_factor(last)?
        };
        for used in &self.uses {
            for sum in self.sums(*used, &|other| self.same(other, pitch)) {
                let wider = padded(self.code, bare(sum.pitch), more)?;
                edits.push((sum.pitch.byte_range(), format!("({wider})")));
            }
            edits.extend(self.distance(*used, pitch, more));
        }
        let (edits, proof) = self.proved(edits)?;
        let title = format!("Pad `{}` to [{}]", self.array.name, shown.join("]["));
        let also = occupancy(self.kernel.occupancy, proof.after().occupancy);
        self.fix(&title, &also, edits, &proof)
    }

    /// A name in the width of a row whose value is a literal 0: a padding that is provided for and not made use of.
    fn padding_of_zero(&self, width: Node<'t>) -> Option<(Node<'t>, Node<'t>)> {
        let names = width.descendants().into_iter();
        let mut names = names.filter(|node| node.kind() == Kind::Identifier);
        names.find_map(|name| {
            let zero = value_of(self.code, name)?;
            (self.code.text(zero) == "0").then_some((name, zero))
        })
    }

    /// The distance of rows that a fragment is loaded or stored with, where it is the width of the tile's rows.
    fn distance(&self, used: Node<'t>, pitch: Node<'t>, more: u64) -> Option<Edit> {
        let mut at = used;
        let list = loop {
            at = at.parent()?;
            match at.kind() {
                Kind::ArgumentList => break at,
                Kind::ExpressionStatement | Kind::InitDeclarator => return None,
                _ => {}
            }
        };
        let callee = list.parent()?.field(Field::Function)?;
        if !self.code.text(callee).contains("_matrix_sync") {
            return None;
        }
        let distance = *children(list).get(2)?;
        if !self.same(distance, pitch) {
            return None;
        }
        Some((distance.byte_range(), padded(self.code, distance, more)?))
    }

    /// Pieces of a row change places by the row's number.
    fn swizzle(&self) -> Option<Fix> {
        let mut best: Option<Fix> = None;
        for width in self.widths() {
            let edits = self.swizzled(width);
            let Some((edits, proof)) = edits.and_then(|edits| self.proved(edits)) else {
                continue;
            };
            let title = format!(
                "Swizzle 16-byte pieces of `{}` by their row",
                self.array.name
            );
            let fix = self.fix(&title, " without more shared memory", edits, &proof);
            if let Some(fix) = fix
                && best.as_ref().is_none_or(|best| fix.gain > best.gain)
            {
                best = Some(fix);
            }
        }
        best
    }

    /// Bytes that rows of the tile may have.
    fn widths(&self) -> Vec<u64> {
        if self.sizes.len() > 1 {
            let last = self.array.extents.last().map(|(extent, _)| *extent);
            return last.map(|last| last * self.element()).into_iter().collect();
        }
        let mut found: Vec<u64> = Vec::new();
        for used in &self.uses {
            let met = RefCell::new(Vec::new());
            self.sums(*used, &|pitch| {
                met.borrow_mut().extend(constant(self.code, pitch, 0));
                false
            });
            for pitch in met.into_inner() {
                for width in [pitch * self.element(), pitch] {
                    if width.is_multiple_of(2 * PIECE) && !found.contains(&width) {
                        found.push(width);
                    }
                }
            }
        }
        found.truncate(MOST_WIDTHS);
        found
    }

    fn swizzled(&self, width: u64) -> Option<Vec<Edit>> {
        let pieces = width / PIECE;
        if !width.is_multiple_of(PIECE) || !pieces.is_power_of_two() || pieces < 2 {
            return None;
        }
        // Rows shorter than all banks begin at the same bank again after a few of them.
        let apart = (PERIOD / pieces.min(PERIOD)).ilog2();
        let mask = pieces.min(PERIOD) - 1;
        let turned = |row: Node<'t>, unit: u64| {
            let shift = (PIECE / unit).ilog2();
            let row = self.operand(row);
            let row = if apart == 0 {
                row
            } else {
                format!("({row} >> {apart})")
            };
            if shift == 0 {
                format!("({row} & {mask})")
            } else {
                format!("(({row} & {mask}) << {shift})")
            }
        };
        let mut edits = Vec::new();
        for used in &self.uses {
            if self.code.text(*used) == self.array.name
                && self.sizes.len() > 1
                && let Some((_, indices)) = subscript(*used, self.sizes.len())
                && indices.len() == self.sizes.len()
            {
                let [.., row, column] = indices[..] else {
                    return None;
                };
                if changes(row) {
                    return None;
                }
                edits.push((
                    column.byte_range(),
                    format!("{} ^ {}", self.operand(column), turned(row, self.element())),
                ));
                continue;
            }
            // By elements, or by bytes.
            let unit_of = |pitch: Node<'t>| {
                let pitch = constant(self.code, pitch, 0)?;
                let mut units = [self.element(), 1].into_iter();
                units.find(|unit| pitch == width / unit)
            };
            for sum in self.sums(*used, &|pitch| unit_of(pitch).is_some()) {
                // Where a part of the array begins is no row.
                let start = constant(self.code, sum.row, 0).is_some();
                let unit = unit_of(sum.pitch).filter(|_| !start && !changes(sum.row));
                let Some(unit) = unit else {
                    continue;
                };
                match sum.along {
                    Some(along) => {
                        let written = self.code.source.get(along.clone())?;
                        let written = if sum.plain {
                            written.to_owned()
                        } else {
                            format!("({written})")
                        };
                        edits.push((along, format!("({written} ^ {})", turned(sum.row, unit))));
                    }
                    None => {
                        let end = sum.product.end_byte();
                        edits.push((end..end, format!(" + {}", turned(sum.row, unit))));
                    }
                }
            }
        }
        Some(edits)
    }

    /// An expression as an operand of any operator.
    fn operand(&self, node: Node<'t>) -> String {
        let written = self.code.text(node);
        let plain = simple(node)
            || matches!(
                node.kind(),
                Kind::FieldExpression | Kind::SubscriptExpression
            );
        if plain {
            written.to_owned()
        } else {
            format!("({written})")
        }
    }

    fn same(&self, one: Node<'t>, other: Node<'t>) -> bool {
        squeezed(self.code.text(bare(one))) == squeezed(self.code.text(bare(other)))
    }

    /// The sums that a use is an address for, in its subscript and around it, with a row of that width in them.
    fn sums(&self, used: Node<'t>, is_width: &dyn Fn(Node<'t>) -> bool) -> Vec<Sum<'t>> {
        let mut found = Vec::new();
        let mut at = used;
        while let Some(parent) = at.parent() {
            let sum = parent.kind() == Kind::BinaryExpression
                && binary(parent) == Some(BinaryOperator::Add);
            match parent.kind() {
                Kind::BinaryExpression if sum => {}
                Kind::SubscriptExpression if parent.field(Field::Argument) == Some(at) => {
                    let index = subscript(at, 1).and_then(|(_, indices)| indices.first().copied());
                    found.extend(
                        index
                            .into_iter()
                            .flat_map(|index| self.sums_in(index, is_width)),
                    );
                }
                Kind::CallExpression if !self.gives_address(parent) => break,
                Kind::ParenthesizedExpression
                | Kind::CastExpression
                | Kind::PointerExpression
                | Kind::ArgumentList
                | Kind::CallExpression => {}
                _ => break,
            }
            let ends = parent.parent().is_none_or(|outer| {
                outer.kind() != Kind::BinaryExpression || binary(outer) != Some(BinaryOperator::Add)
            });
            if sum && ends {
                found.extend(self.sums_in(parent, is_width));
            }
            at = parent;
        }
        found
    }

    /// True for a conversion of an address, written as a call.
    fn gives_address(&self, call: Node<'t>) -> bool {
        let callee = call.field(Field::Function);
        callee.is_some_and(|callee| is_conversion(self.code.text(callee)))
    }

    /// The sums in an address: itself, and those that its terms are multiples of.
    fn sums_in(&self, whole: Node<'t>, is_width: &dyn Fn(Node<'t>) -> bool) -> Vec<Sum<'t>> {
        let mut terms = Vec::new();
        flat(bare(whole), &mut terms);
        let products = |term: &Node<'t>| product(bare(*term));
        // Of two distances that may be the width, by elements and by bytes, the wider one is.
        let widest = (0..terms.len())
            .filter(|at| products(&terms[*at]).is_some_and(|(_, pitch)| is_width(pitch)))
            .max_by_key(|at| {
                products(&terms[*at]).and_then(|(_, pitch)| constant(self.code, pitch, 0))
            });
        if let Some(at) = widest
            && let Some((row, pitch)) = products(&terms[at])
        {
            let behind = &terms[at + 1..];
            let along = behind
                .first()
                .zip(behind.last())
                .map(|(first, last)| first.start_byte()..last.end_byte());
            let plain = matches!(behind, [one] if simple(*one));
            return vec![Sum {
                row,
                pitch,
                product: terms[at],
                along,
                plain,
            }];
        }
        // `base + (row * width + column) * sizeof(half)`.
        terms
            .into_iter()
            .filter_map(|term| product(bare(term)))
            .flat_map(|(left, right)| [left, right])
            .filter(|factor| factor.kind() == Kind::ParenthesizedExpression)
            .flat_map(|factor| self.sums_in(factor, is_width))
            .collect()
    }

    fn proved(&self, edits: Vec<Edit>) -> Option<(Vec<Edit>, Proof)> {
        let mut edits = edits;
        edits.sort_by(|a, b| (a.0.start, a.0.end, &a.1).cmp(&(b.0.start, b.0.end, &b.1)));
        edits.dedup();
        let edits = in_order(edits)?;
        if edits.is_empty() || !self.is_alike_in_all() {
            return None;
        }
        let proof = prove(self.request, self.kernel, &edits)?;
        let after = proof.after();
        let free = self.is_free(&after);
        let moved = only_moved(self.kernel.facts, after.facts, self.index);
        (free && moved).then_some((edits, proof))
    }

    /// True where the access in question has no conflict left, and no other has more passes than before.
    fn is_free(&self, after: &Kernel<'_>) -> bool {
        let of = |facts: &'_ SourceFacts, number: usize| {
            let access = facts.accesses.get(number)?;
            match access.requests {
                Some(0.0) => Some(0.0),
                _ => access.passes_per_request,
            }
        };
        let target = after.facts.accesses.get(self.target);
        target.is_some_and(|target| {
            target.bank_conflict_degree.is_some() && !conflicting(target, self.index)
        }) && (0..self.kernel.facts.accesses.len()).all(|number| {
            let access = &self.kernel.facts.accesses[number];
            access.shared_array != Some(self.index)
                || matches!(
                    (of(self.kernel.facts, number), of(after.facts, number)),
                    (Some(before), Some(after)) if after <= before
                )
        })
    }

    /// True where instances of one template have rows of one width: what is shown for one then holds for the others.
    fn is_alike_in_all(&self) -> bool {
        let kernels = self.request.analysis.kernels();
        let mut same = kernels.iter().filter(|one| one.start == self.kernel.start);
        same.all(|one| {
            let other = one.facts.shared_arrays.get(self.index);
            other.is_some_and(|other| {
                other.extents.last().map(|one| one.0) == self.array.extents.last().map(|one| one.0)
            })
        })
    }

    fn fix(&self, what: &str, also: &str, edits: Vec<Edit>, proof: &Proof) -> Option<Fix> {
        let after = proof.after();
        let before = total_passes(self.kernel, self.index)?;
        let gain = proof.speedup(self.kernel)?;
        let passes = |kernel: &Kernel| kernel.facts.accesses.get(self.target)?.passes_per_request;
        let (now, then) = (passes(self.kernel)?, passes(&after)?);
        if total_passes(&after, self.index)? >= before {
            return None;
        }
        let accesses = after.facts.accesses.iter();
        let left = accesses
            .filter(|access| conflicting(access, self.index))
            .count();
        let left = match left {
            0 => String::new(),
            1 => ", one other still conflicts".to_owned(),
            left => format!(", {left} others still conflict"),
        };
        let launch = &self.kernel.facts.launch;
        let block = if launch.block_source.is_assumption() {
            format!(", assumes block {}", extents(launch.block))
        } else {
            String::new()
        };
        Some(Fix {
            title: format!(
                "{what}: {} → {}{also}, {}{left}{block}",
                counted(now, "pass", "passes"),
                number(then),
                faster(gain)
            ),
            rule: RULE,
            edits,
            gain,
            complete: true,
        })
    }
}

/// Where an array is used, and variables that keep addresses in it, as numbers or as pointers.
fn with_addresses<'t>(code: Semantics<'t>, declaration: Declaration<'t>) -> Option<Vec<Node<'t>>> {
    let mut names = vec![declaration];
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(declaration) = names.get(next).copied() {
        next += 1;
        // Of a variable that cannot be judged nothing is edited: the proof decides whether that is enough.
        let uses = match code.uses(&declaration) {
            Some(uses) => uses,
            None if next > 1 => continue,
            None => return None,
        };
        for used in uses {
            found.push(used);
            let Some(kept) = kept_in(code, used) else {
                continue;
            };
            if !names.contains(&kept) {
                names.push(kept);
            }
        }
        if names.len() > MOST_NAMES {
            return None;
        }
    }
    Some(found)
}

/// The variable whose initial value is an address made of a name.
fn kept_in<'t>(code: Semantics<'t>, used: Node<'t>) -> Option<Declaration<'t>> {
    let mut at = used;
    let mut address = false;
    loop {
        let parent = at.parent()?;
        match parent.kind() {
            Kind::InitDeclarator => {
                let declared = declared_name(parent.field(Field::Declarator)?)?;
                let declaration = code.declaration(declared)?;
                let pointer = parent
                    .field(Field::Declarator)
                    .is_some_and(|declarator| declarator.kind() == Kind::PointerDeclarator);
                return (pointer || address).then_some(declaration);
            }
            // A helper that makes a number of an address: of whatever else is a number nothing is edited.
            Kind::CallExpression => address = true,
            Kind::ArgumentList
            | Kind::ParenthesizedExpression
            | Kind::BinaryExpression
            | Kind::CastExpression
            | Kind::PointerExpression => {}
            Kind::SubscriptExpression if parent.field(Field::Argument) == Some(at) => {}
            _ => return None,
        }
        at = parent;
    }
}

/// True for the name of a function that gives the address that it is given, in another type.
fn is_conversion(name: &str) -> bool {
    ["cvta", "_cast", "_ptr_to_", "addressof"]
        .iter()
        .any(|part| name.contains(part))
}

/// The terms of a sum in their order.
fn flat<'t>(node: Node<'t>, terms: &mut Vec<Node<'t>>) {
    if node.kind() == Kind::BinaryExpression
        && binary(node) == Some(BinaryOperator::Add)
        && let (Some(left), Some(right)) = (node.field(Field::Left), node.field(Field::Right))
    {
        flat(left, terms);
        terms.push(right);
        return;
    }
    terms.push(node);
}

/// The two sides of a product.
fn product(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    (binary(node) == Some(BinaryOperator::Multiply))
        .then(|| Some((node.field(Field::Left)?, node.field(Field::Right)?)))?
}

fn last_factor(node: Node<'_>) -> Option<Node<'_>> {
    product(bare(node)).map(|(_, last)| last)
}

/// True for what may not be computed twice.
fn changes(node: Node) -> bool {
    node.descendants().iter().any(|part| {
        matches!(
            part.kind(),
            Kind::AssignmentExpression
                | Kind::UpdateExpression
                | Kind::LambdaExpression
                | Kind::CallExpression
        )
    })
}

/// What a constant is declared to be: a variable that is fixed, a parameter of a template with a default.
fn value_of<'t>(code: Semantics<'t>, name: Node<'t>) -> Option<Node<'t>> {
    let declaration = code.declaration(name)?;
    let written = code.text(declaration.node);
    if declaration.is_parameter() {
        return declaration.node.field(Field::DefaultValue);
    }
    let fixed = written.starts_with("const") || written.contains("constexpr");
    fixed.then(|| declaration.value())?
}

/// The value of a constant: a literal, a name for one, sums and products of these.
fn constant(code: Semantics, node: Node, depth: u32) -> Option<u64> {
    let node = bare(node);
    if depth > DEEPEST {
        return None;
    }
    let of = |field| constant(code, node.field(field)?, depth + 1);
    match node.kind() {
        Kind::NumberLiteral => code.text(node).trim_end_matches(['u', 'U']).parse().ok(),
        Kind::Identifier => {
            let name = code.text(node);
            if let Some(value) = value_of(code, node) {
                return constant(code, value, depth + 1);
            }
            if code.declaration(node).is_some() {
                return None;
            }
            code.macro_value(name)
                .and_then(|value| value.try_into().ok())
        }
        Kind::BinaryExpression => {
            let (left, right) = (of(Field::Left)?, of(Field::Right)?);
            match binary(node)? {
                BinaryOperator::Add => left.checked_add(right),
                BinaryOperator::Subtract => left.checked_sub(right),
                BinaryOperator::Multiply => left.checked_mul(right),
                BinaryOperator::Divide => left.checked_div(right),
                _ => None,
            }
        }
        Kind::SizeofExpression => {
            let written = squeezed(code.text(node));
            match written
                .trim_start_matches("sizeof")
                .trim_matches(['(', ')'])
            {
                "half" | "__half" | "__nv_bfloat16" | "short" => Some(2),
                "float" | "int" | "unsigned" | "uint32_t" => Some(4),
                "char" | "uint8_t" => Some(1),
                _ => None,
            }
        }
        _ => None,
    }
}
