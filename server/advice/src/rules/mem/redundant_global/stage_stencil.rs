//! Loads what the neighbours in a block share into a tile of shared memory, once, and takes it from there.
//!
//! The subscripts are sums: of the thread's place along x (and along y times a row's length) and of small distances. The
//! words of the block and of its border are loaded under the conditions of the loads, moved by those distances: each lies
//! between words that the kernel loads. All loads come before any store of the same thread, and no thread of a program
//! without races stores what another one loads here.

use std::fmt::Write as _;
use warplens_facts::facts::{Op, Site, Source, Space};
use warplens_hir::semantics::{KernelSource, children, declared_name};
use warplens_hir::{Semantics, function_declarator};
use warplens_symbolic::Ratio;
use warplens_syntax::nodes::UnaryExpression;
use warplens_syntax::{BinaryOperator, Field, Kind, Node, UnaryOperator, binary, has_word};

use crate::fixes::lanes::Lanes;
use crate::fixes::polynomial::{self as polynomials, Polynomial, added, alone};
use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{element, indent, is_always_evaluated, is_target, only_subscript};
use crate::fixes::ways::{exits, is_own_line, is_plain, is_store, way_to};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::{faster, number, occupancy};

const RULE: &str = "mem/redundant-global";

/// Less than this is within what caches do by themselves.
const WORTH: f64 = 1.05;
/// The farthest neighbour.
const FARTHEST: i64 = 16;
/// Names of the thread's and the block's place along x and y.
const THREAD: [&str; 2] = ["#tx", "#ty"];
const BLOCK: [&str; 2] = ["#bx", "#by"];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, finding, site| {
        // A product's second array has a site of its own.
        let mut sites = std::iter::once(site).chain(finding.related.iter().map(|(site, _)| *site));
        sites.find_map(|site| fix(request, kernel, site))
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, site: Site) -> Option<Fix> {
    let code = request.code();
    let launch = &kernel.facts.launch;
    let known = kernel
        .blocks
        .iter()
        .all(|block| *block == Some(launch.block));
    if !known || launch.block_source.is_assumption() {
        return None;
    }
    let plan = Plan::new(kernel.source(code)?, site, launch.block)?;
    let edits = in_order(plan.edits()?)?;
    let seen = code.launches(&kernel.facts.name);
    if !seen.elsewhere.is_empty() {
        return None;
    }
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel).filter(|speedup| *speedup >= WORTH)?;
    let after = proof.after();
    let requests = |kernel: &Kernel<'_>| -> Option<f64> {
        let loads = kernel.facts.accesses.iter().filter(|access| {
            access.array == plan.array && access.op == Op::Load && access.space == Space::Global
        });
        loads.map(|access| access.requests).sum()
    };
    let (before, now) = (requests(kernel)?, requests(&after)?);
    if after.count(RULE) >= kernel.count(RULE) || now >= before {
        return None;
    }
    let said = launch.block_source == Source::Attribute || !seen.seen.is_empty();
    let unseen = if said {
        String::new()
    } else {
        format!(" (launch not seen: blocks must be {})", plan.shape())
    };
    Some(Fix {
        title: format!(
            "Stage `{}` in shared memory: {} of its global loads remain{}, {}{unseen}",
            plan.array,
            format_args!("{} %", number(100.0 * now / before)),
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup),
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: said,
    })
}

/// A load and how far from its thread's own word it is, along x and y: counters and numbers.
struct Load<'t> {
    element: Node<'t>,
    distance: [Polynomial; 2],
}

/// Bounds of a place along one axis: at least, below.
#[derive(Default, Clone, PartialEq)]
struct Bounds {
    least: Vec<Polynomial>,
    below: Vec<Polynomial>,
}

/// What there is to edit.
struct Plan<'t> {
    code: Semantics<'t>,
    lanes: Lanes<'t>,
    array: &'t str,
    ty: &'t str,
    body: Node<'t>,
    first: Node<'t>,
    loads: Vec<Load<'t>>,
    /// A row's length, where the block works on rows.
    row: Option<String>,
    /// The nearest and the farthest neighbour along x and y.
    reach: [(i64, i64); 2],
    bounds: [Bounds; 2],
    /// True where no load goes along both axes at once.
    cross: bool,
    block: [i64; 2],
    tile: &'static str,
    opencl: bool,
}

/// Reads subscripts and conditions.
struct Reader<'a, 't> {
    code: Semantics<'t>,
    lanes: &'a Lanes<'t>,
    block: [u64; 3],
    opencl: bool,
    /// Counters of loops with their first and last value.
    counters: Vec<(String, i64, i64)>,
}

impl<'t> Plan<'t> {
    fn new(source: KernelSource<'t>, site: Site, block: [u64; 3]) -> Option<Plan<'t>> {
        let KernelSource { code, function, .. } = source;
        let opencl = code.is_opencl();
        let lanes = Lanes::new(code, function)?;
        let body = function.field(Field::Body)?;
        let asked = element(source, site)?;
        let base = asked.field(Field::Argument)?;
        let array = code.text(base);
        if base.kind() != Kind::Identifier || block[2] != 1 {
            return None;
        }
        let parameter = children(function_declarator(function)?.field(Field::Parameters)?)
            .into_iter()
            .find(|one| {
                one.field(Field::Declarator)
                    .and_then(declared_name)
                    .is_some_and(|name| code.text(name) == array)
            })?;
        if has_word(code.text(parameter), "volatile")
            || code.in_a_macro(array)
            || lanes.is_changed(array)
        {
            return None;
        }
        let ty = code.written_element(function, array)?;
        let mut reader = Reader {
            code,
            lanes: &lanes,
            block,
            opencl,
            counters: Vec::new(),
        };
        let (mut loads, mut ranges) = (Vec::new(), Vec::new());
        let mut shared: Option<(Node, Vec<Node>)> = None;
        let mut row = None;
        for element in body.descendants() {
            let of_array = element.kind() == Kind::SubscriptExpression
                && element
                    .field(Field::Argument)
                    .is_some_and(|of| of.kind() == Kind::Identifier && code.text(of) == array);
            if !of_array {
                continue;
            }
            let (top, guards) = reader.way(body, element)?;
            match &shared {
                None => shared = Some((top, guards)),
                Some((_, known)) if *known == guards => {}
                Some(_) => return None,
            }
            let index = reader.read(only_subscript(element)?, 0)?;
            let (distance, of_row) = reader.distance(&index)?;
            if *row.get_or_insert_with(|| of_row.clone()) != of_row {
                return None;
            }
            ranges.push([reader.range(&distance[0])?, reader.range(&distance[1])?]);
            loads.push(Load { element, distance });
        }
        let (_, guards) = shared?;
        let first_load = loads.first()?.element;
        let mut top = first_load;
        while top.parent()? != body {
            top = top.parent()?;
        }
        let exits = exits(code, body, top)?;
        if !is_plain(code, body, &exits) {
            return None;
        }
        let reach = [0, 1].map(|axis| {
            let nearest = ranges.iter().map(|range| range[axis].0).min().unwrap_or(0);
            let farthest = ranges.iter().map(|range| range[axis].1).max().unwrap_or(0);
            (nearest.min(0), farthest.max(0))
        });
        let near = reach
            .iter()
            .all(|(nearest, farthest)| *nearest >= -FARTHEST && *farthest <= FARTHEST);
        let row: Option<String> = row?;
        let flat = row.is_none();
        if !near || reach == [(0, 0); 2] || (flat && block[1] != 1) {
            return None;
        }
        let mut bounds = [Bounds::default(), Bounds::default()];
        for (_, exit) in &exits {
            reader.bound(*exit, true, &mut bounds)?;
        }
        for guard in guards {
            reader.bound(guard, false, &mut bounds)?;
        }
        // Nothing of this thread's stores may be what it loads later.
        let last = loads.last()?.element.end_byte();
        let early = body.descendants().into_iter().any(|node| {
            is_store(node) && (node.end_byte() < last || in_a_loop_of(node, &loads, body))
        });
        let written = loads.iter().any(|load| is_target(load.element));
        let constant = has_word(code.text(parameter), "const")
            && ["__restrict__", "restrict", "__restrict"]
                .iter()
                .any(|word| has_word(code.text(parameter), word));
        if written || (early && !constant) {
            return None;
        }
        let cross = ranges
            .iter()
            .all(|range| range[0] == (0, 0) || range[1] == (0, 0));
        let tile = ["tile", "staged", "block_tile"]
            .into_iter()
            .find(|name| !has_word(code.source, name))?;
        let first = exits.first().map_or(top, |(exit, _)| *exit);
        let block = [i64::try_from(block[0]).ok()?, i64::try_from(block[1]).ok()?];
        is_own_line(code, body, first).then_some(())?;
        Some(Plan {
            code,
            lanes,
            array,
            ty,
            body,
            first,
            loads,
            row,
            reach,
            bounds,
            cross,
            block,
            tile,
            opencl,
        })
    }

    fn shape(&self) -> String {
        match self.row {
            Some(_) => format!("{}x{}", self.block[0], self.block[1]),
            None => self.block[0].to_string(),
        }
    }

    /// Words of the tile along an axis.
    fn extent(&self, axis: usize) -> i64 {
        self.block[axis] + self.reach[axis].1 - self.reach[axis].0
    }

    /// Where the block begins along an axis, as the language writes it.
    fn origin(&self, axis: usize) -> String {
        let size = self.block[axis];
        if self.opencl {
            format!("(int)get_group_id({axis}) * {size}")
        } else {
            format!("(int)blockIdx.{} * {size}", ["x", "y"][axis])
        }
    }

    fn edits(&self) -> Option<Vec<Edit>> {
        let code = self.code;
        let margin = indent(code.source, self.first.start_byte());
        let unit = if margin.contains('\t') { "\t" } else { "    " };
        let newline = if code.source.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let own = self.lanes.own();
        let (word, barrier) = self.lanes.shared();
        let names = ["column", "row"].map(|name| self.new_name(&format!("tile_{name}")));
        let places = ["x", "y"].map(|name| self.new_name(&format!("{name}_in")));
        let axes: &[usize] = if self.row.is_some() { &[1, 0] } else { &[0] };
        let mut extents = String::new();
        let mut subscript = String::new();
        for &axis in axes {
            write!(extents, "[{}]", self.extent(axis)).ok()?;
            write!(subscript, "[{}]", names[axis]).ok()?;
        }
        let mut before = String::new();
        for (depth, &axis) in axes.iter().enumerate() {
            write!(
                before,
                "for (int {name} = {}; {name} < {}; {name} += {}) {{{newline}{margin}{}",
                own[axis],
                self.extent(axis),
                self.block[axis],
                unit.repeat(depth + 1),
                name = names[axis],
            )
            .ok()?;
        }
        let inner = unit.repeat(axes.len());
        let mut conditions = Vec::new();
        for &axis in axes.iter().rev() {
            let (nearest, farthest) = self.reach[axis];
            let back = added(&Polynomial::constant((nearest).into()))?;
            write!(
                before,
                "const int {} = {} + {}{back};{newline}{margin}{inner}",
                places[axis],
                self.origin(axis),
                names[axis],
            )
            .ok()?;
            for least in &self.bounds[axis].least {
                let least = least.offset((nearest).into())?;
                // No place of a block's own is below 0.
                conditions.push(format!("{} >= {}", places[axis], alone(&least)?));
            }
            for below in &self.bounds[axis].below {
                let below = below.offset((farthest).into())?;
                conditions.push(format!("{} < {}", places[axis], alone(&below)?));
            }
        }
        if self.cross && self.row.is_some() && self.reach.iter().all(|reach| *reach != (0, 0)) {
            let inside = |axis: usize| {
                let from = -self.reach[axis].0;
                let name = &names[axis];
                let to = from + self.block[axis];
                match from {
                    0 => format!("{name} < {to}"),
                    _ => format!("{name} >= {from} && {name} < {to}"),
                }
            };
            conditions.push(format!("(({}) || ({}))", inside(0), inside(1)));
        }
        let index = match &self.row {
            Some(row) => format!("{} * {row} + {}", places[1], places[0]),
            None => places[0].clone(),
        };
        let load = format!("{}{subscript} = {}[{index}];", self.tile, self.array);
        if conditions.is_empty() {
            write!(before, "{load}{newline}").ok()?;
        } else {
            write!(
                before,
                "if ({}) {{{newline}{margin}{inner}{unit}{load}{newline}{margin}{inner}}}{newline}",
                conditions.join(" && ")
            )
            .ok()?;
        }
        for depth in (0..axes.len()).rev() {
            write!(before, "{margin}{}}}{newline}", unit.repeat(depth)).ok()?;
        }
        write!(before, "{margin}{barrier};{newline}{margin}").ok()?;
        let head = self.body.start_byte() + 1;
        let mut edits = vec![
            (
                head..head,
                format!(
                    "{newline}{margin}{word} {} {}{extents};",
                    self.ty, self.tile
                ),
            ),
            (self.first.start_byte()..self.first.start_byte(), before),
        ];
        for load in &self.loads {
            let mut element = self.tile.to_owned();
            for &axis in axes {
                let from = load.distance[axis].offset((-self.reach[axis].0).into())?;
                write!(element, "[{}{}]", own[axis], added(&from)?).ok()?;
            }
            edits.push((load.element.byte_range(), element));
        }
        Some(edits)
    }

    fn new_name(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while has_word(self.code.source, &name) {
            name.push('_');
        }
        name
    }
}

impl<'t> Reader<'_, 't> {
    /// The kernel's own statement that an element is in, and the conditions on the way there. Loops that run from one number
    /// to another are gone through; `None` for others.
    fn way(&mut self, body: Node<'t>, element: Node<'t>) -> Option<(Node<'t>, Vec<Node<'t>>)> {
        let way = way_to(self.code, body, element, |looped| {
            let counter = self.counter(looped)?;
            match self.counters.iter().find(|known| known.0 == counter.0) {
                Some(known) => (*known == counter).then_some(()),
                None => {
                    self.counters.push(counter);
                    Some(())
                }
            }
        })?;
        let guards = way.guards.into_iter().rev().collect();
        is_always_evaluated(element, way.statement).then_some((way.top, guards))
    }

    /// The counter of `for (int k = -3; k <= 3; k++)` with its first and last value.
    fn counter(&self, looped: Node<'t>) -> Option<(String, i64, i64)> {
        let given = looped.field(Field::Initializer)?;
        let one = given.field(Field::Declarator)?;
        let name = self.code.text(declared_name(one)?);
        let first = self.number(one.field(Field::Value)?)?;
        let ty = self.code.text(given.field(Field::Type)?);
        let test = looped.field(Field::Condition)?;
        let left = self.code.text(test.field(Field::Left)?);
        let bound = self.number(test.field(Field::Right)?)?;
        let last = match binary(test)? {
            BinaryOperator::Less => bound.checked_sub(1)?,
            BinaryOperator::LessEqual => bound,
            _ => return None,
        };
        let step: String = self
            .code
            .text(looped.field(Field::Update)?)
            .split_whitespace()
            .collect();
        let by_one = step == format!("{name}++") || step == format!("++{name}");
        // It is written to in its own head, and nowhere else.
        let body = looped.field(Field::Body)?;
        let kept = !body.descendants().into_iter().any(|node| {
            let changed = node
                .field(Field::Left)
                .filter(|_| node.kind() == Kind::AssignmentExpression)
                .or_else(|| {
                    node.field(Field::Argument).filter(|_| {
                        matches!(
                            node.kind(),
                            Kind::UpdateExpression | Kind::PointerExpression
                        )
                    })
                })
                .or_else(|| {
                    node.field(Field::Declarator)
                        .filter(|_| matches!(node.kind(), Kind::InitDeclarator | Kind::Declaration))
                });
            changed.is_some_and(|of| self.code.text(of) == name)
        });
        (left == name && by_one && kept && ty == "int" && first <= last)
            .then(|| (name.to_owned(), first, last))
    }

    fn number(&self, node: Node<'t>) -> Option<i64> {
        i64::try_from(self.read(node, 0)?.as_whole()?).ok()
    }

    /// An expression in places, counters and parameters.
    fn read(&self, node: Node<'t>, depth: usize) -> Option<Polynomial> {
        if depth > 12 {
            return None;
        }
        let code = self.code;
        let deeper = |node| self.read(node, depth + 1);
        match node.kind() {
            Kind::NumberLiteral => {
                let digits = code.text(node).trim_end_matches(['u', 'U']);
                let octal = digits.len() > 1 && digits.starts_with('0');
                (!octal).then(|| digits.parse().ok().map(Polynomial::constant))?
            }
            Kind::ParenthesizedExpression => deeper(node.named_child(0)?),
            Kind::UnaryExpression => {
                let minus = UnaryExpression::cast(node)?.op()? == UnaryOperator::Minus;
                let of = deeper(node.field(Field::Argument)?)?;
                minus.then(|| of.neg())?
            }
            Kind::BinaryExpression => {
                let left = deeper(node.field(Field::Left)?)?;
                let right = deeper(node.field(Field::Right)?)?;
                match binary(node)? {
                    BinaryOperator::Add => left.add(&right),
                    BinaryOperator::Subtract => left.sub(&right),
                    BinaryOperator::Multiply => left.mul(&right),
                    _ => None,
                }
            }
            Kind::FieldExpression => {
                let axis = match code.text(node.field(Field::Field)?) {
                    "x" => 0,
                    "y" => 1,
                    _ => return None,
                };
                match code.text(node.field(Field::Argument)?) {
                    "threadIdx" => Some(polynomials::name(THREAD[axis])),
                    "blockIdx" => Some(polynomials::name(BLOCK[axis])),
                    "blockDim" => Some(self.size(axis)),
                    _ => None,
                }
            }
            Kind::CallExpression if self.opencl => {
                let name = code.text(node.field(Field::Function)?);
                let arguments = children(node.field(Field::Arguments)?);
                let [axis] = arguments[..] else { return None };
                let axis: usize = code.text(axis).parse().ok().filter(|axis| *axis < 2)?;
                match name {
                    "get_local_id" => Some(polynomials::name(THREAD[axis])),
                    "get_group_id" => Some(polynomials::name(BLOCK[axis])),
                    "get_local_size" => Some(self.size(axis)),
                    // Without an offset of the launch, as everywhere.
                    "get_global_id" => self
                        .size(axis)
                        .mul(&polynomials::name(BLOCK[axis]))?
                        .add(&polynomials::name(THREAD[axis])),
                    _ => None,
                }
            }
            Kind::Identifier => {
                let name = code.text(node);
                if self.counters.iter().any(|(known, ..)| known == name) {
                    return Some(polynomials::name(name));
                }
                if let Some(value) = code.macro_value(name) {
                    return Some(Polynomial::constant(value.into()));
                }
                if let Some(value) = self.lanes.value_of(name) {
                    let narrow = !matches!(value.1, "long" | "size_t" | "int64_t" | "uint64_t");
                    return narrow.then(|| deeper(value.0))?;
                }
                self.lanes
                    .is_parameter(name)
                    .then(|| polynomials::name(name))
            }
            _ => None,
        }
    }

    fn size(&self, axis: usize) -> Polynomial {
        Polynomial::constant(self.block[axis].into())
    }

    /// How far a subscript is from `y * row + x`, and the row's length.
    fn distance(&self, index: &Polynomial) -> Option<([Polynomial; 2], Option<String>)> {
        let [width, height] = [self.block[0] as i64, self.block[1] as i64];
        let mut row = None;
        for (names, factor) in index.products()? {
            if let [place, other] = names[..]
                && place == THREAD[1]
                && factor == 1
            {
                row = Some(other.clone());
            }
        }
        let mut rest = index
            .sub(&polynomials::name(THREAD[0]))?
            .plus(&polynomials::name(BLOCK[0]), Ratio::whole((-width).into()))?;
        if let Some(row) = &row {
            let length = polynomials::name(row);
            let place = polynomials::name(THREAD[1])
                .plus(&polynomials::name(BLOCK[1]), Ratio::whole((height).into()))?;
            rest = rest.sub(&place.mul(&length)?)?;
        }
        let mut distance = [Polynomial::default(), Polynomial::default()];
        for (names, factor) in rest.products()? {
            let (axis, counter) = match names[..] {
                [] => (0, None),
                [one] if Some(one) == row.as_ref() => (1, None),
                [one] => (0, Some(one)),
                [a, b] if Some(a) == row.as_ref() => (1, Some(b)),
                [a, b] if Some(b) == row.as_ref() => (1, Some(a)),
                _ => return None,
            };
            let term = match counter {
                None => Polynomial::constant(1),
                Some(name) if self.counters.iter().any(|(known, ..)| known == name) => {
                    polynomials::name(name)
                }
                Some(_) => return None,
            };
            distance[axis] = distance[axis].plus(&term, Ratio::whole((factor).into()))?;
        }
        Some((distance, row))
    }

    /// The least and the greatest value of a distance.
    fn range(&self, distance: &Polynomial) -> Option<(i64, i64)> {
        let (mut least, mut most) = (0i64, 0i64);
        for (names, factor) in distance.products()? {
            let (first, last) = match names[..] {
                [] => (1, 1),
                [one] => {
                    let (_, first, last) = self.counters.iter().find(|(name, ..)| name == one)?;
                    (*first, *last)
                }
                _ => return None,
            };
            let (a, b) = (factor.checked_mul(first)?, factor.checked_mul(last)?);
            least = least.checked_add(a.min(b))?;
            most = most.checked_add(a.max(b))?;
        }
        Some((least, most))
    }

    /// Notes what a condition, or its opposite, says of the places; `None` where it says something else.
    fn bound(&self, condition: Node<'t>, not: bool, bounds: &mut [Bounds; 2]) -> Option<()> {
        if condition.kind() == Kind::ParenthesizedExpression {
            return self.bound(condition.named_child(0)?, not, bounds);
        }
        if condition.kind() != Kind::BinaryExpression {
            return None;
        }
        let left = condition.field(Field::Left)?;
        let right = condition.field(Field::Right)?;
        let operator = binary(condition)?;
        if operator
            == if not {
                BinaryOperator::Or
            } else {
                BinaryOperator::And
            }
        {
            self.bound(left, not, bounds)?;
            return self.bound(right, not, bounds);
        }
        let difference = self.read(left, 0)?.sub(&self.read(right, 0)?)?;
        let operator = match (operator, not) {
            (BinaryOperator::Less, false) | (BinaryOperator::GreaterEqual, true) => {
                BinaryOperator::Less
            }
            (BinaryOperator::LessEqual, false) | (BinaryOperator::Greater, true) => {
                BinaryOperator::LessEqual
            }
            (BinaryOperator::Greater, false) | (BinaryOperator::LessEqual, true) => {
                BinaryOperator::Greater
            }
            (BinaryOperator::GreaterEqual, false) | (BinaryOperator::Less, true) => {
                BinaryOperator::GreaterEqual
            }
            _ => return None,
        };
        let axis = (0..2).find(|axis| difference.has(THREAD[*axis]))?;
        let place = polynomials::name(THREAD[axis]).plus(
            &polynomials::name(BLOCK[axis]),
            Ratio::whole((self.block[axis] as i64).into()),
        )?;
        let sign = i64::try_from(difference.coefficient_of(THREAD[axis]).as_whole()?).ok()?;
        if sign.abs() != 1 {
            return None;
        }
        // sign * place + rest, against 0.
        let rest = difference.plus(&place, Ratio::whole((-sign).into()))?;
        let foreign = THREAD.iter().chain(&BLOCK).any(|name| rest.has(*name))
            || self.counters.iter().any(|(name, ..)| rest.has(name));
        if foreign {
            return None;
        }
        let of = &mut bounds[axis];
        match (operator, sign) {
            // place < -rest
            (BinaryOperator::Less, 1) => of.below.push(rest.neg()?),
            (BinaryOperator::LessEqual, 1) => {
                of.below.push(Polynomial::constant(1).sub(&rest)?);
            }
            (BinaryOperator::Greater, 1) => of.least.push(Polynomial::constant(1).sub(&rest)?),
            (BinaryOperator::GreaterEqual, 1) => {
                of.least.push(rest.neg()?);
            }
            // rest - place < 0
            (BinaryOperator::Less, _) => of.least.push(rest.offset(1)?),
            (BinaryOperator::LessEqual, _) => of.least.push(rest),
            (BinaryOperator::Greater, _) => of.below.push(rest),
            (_, _) => of.below.push(rest.offset(1)?),
        }
        Some(())
    }
}

/// True where a store and a load share a loop.
fn in_a_loop_of(store: Node, loads: &[Load], body: Node) -> bool {
    let mut at = store;
    while at != body {
        let looped = matches!(
            at.kind(),
            Kind::ForStatement | Kind::WhileStatement | Kind::DoStatement
        );
        if looped && contains_any(at, loads) {
            return true;
        }
        let Some(parent) = at.parent() else {
            return true;
        };
        at = parent;
    }
    false
}

fn contains_any(outer: Node, loads: &[Load]) -> bool {
    loads.iter().any(|load| {
        outer.start_byte() <= load.element.start_byte()
            && load.element.end_byte() <= outer.end_byte()
    })
}
