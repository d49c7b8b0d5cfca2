//! Hands what a block moves down a column through a tile of shared memory: the thread at (y, x) stores, or loads, what the
//! one at (x, y) would have, and both sides of device memory go along rows.
//!
//! The block is square, so the threads of a block do between them what they did, one for another: whatever the subscripts
//! are, as long as they depend on coordinates and arguments alone. Only a barrier comes between the kernel's loads and its
//! stores, and no thread of a program without races reads what another one writes there.

use std::fmt::Write as _;
use std::ops::Range;

use warplens_facts::facts::{Op, Pattern, Site, Source, Space};
use warplens_hir::semantics::{Declaration, KernelSource, children, declared_name};
use warplens_hir::{Semantics, function_declarator};
use warplens_syntax::{
    AssignOperator, BinaryOperator, Field, Kind, Node, assigned, binary, has_word,
};

use crate::fixes::lanes::{Lanes, Local, is_integer};
use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{element, indent, is_always_evaluated, only_subscript};
use crate::fixes::ways::{Way, exits, is_own_line, is_plain, is_store, way_to};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::subjects::access::unit;
use crate::wording::{counted, faster, number, occupancy};

const RULE: &str = "mem/column-walk";

/// Less than this is not worth a tile.
const WORTH: f64 = 1.02;
/// Sides of blocks that are staged.
const SIDES: [u64; 3] = [8, 16, 32];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, finding, site| {
        fix(request, kernel, finding.access?, site)
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, index: usize, site: Site) -> Option<Fix> {
    let code = request.code();
    let access = kernel.facts.accesses.get(index)?;
    let side = square(kernel)?;
    let rows = |of: &&warplens_facts::facts::Access| {
        of.space == Space::Global && of.pattern == Pattern::Coalesced
    };
    if access.space != Space::Global || !kernel.facts.accesses.iter().any(|of| rows(&of)) {
        return None;
    }
    let plan = Plan::new(kernel.source(code)?, site, side)?;
    let edits = in_order(match access.op {
        Op::Store => plan.store()?,
        Op::Load => plan.load()?,
        Op::Atomic => return None,
    })?;
    let seen = code.launches(&kernel.facts.name);
    if !seen.elsewhere.is_empty() {
        return None;
    }
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel).filter(|speedup| *speedup >= WORTH)?;
    let after = proof.after();
    let same = |of: &&warplens_facts::facts::Access| {
        of.array == access.array && of.op == access.op && of.space == Space::Global
    };
    let (before, now) = (
        access.transactions_per_request?,
        after
            .facts
            .accesses
            .iter()
            .filter(same)
            .filter_map(|of| of.transactions_per_request)
            .fold(0.0, f64::max),
    );
    if after.count(RULE) >= kernel.count(RULE) || now >= before {
        return None;
    }
    let said = kernel.facts.launch.block_source == Source::Attribute || !seen.seen.is_empty();
    let unseen = if said {
        String::new()
    } else {
        format!(" (launch not seen: blocks must be {side}x{side})")
    };
    Some(Fix {
        title: format!(
            "Stage `{}` through a shared tile of {side}x{side}: {} → {}{}, {}{unseen}",
            code.text(plan.element),
            counted(before, unit(access).0, unit(access).1),
            number(now),
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup),
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: said,
    })
}

/// The side of the kernel's blocks, where all that were seen are the same square.
fn square(kernel: &Kernel<'_>) -> Option<u64> {
    let launch = &kernel.facts.launch;
    let [width, height, depth] = launch.block;
    let same = kernel
        .blocks
        .iter()
        .all(|block| *block == Some(launch.block));
    let square = width == height && depth == 1 && SIDES.contains(&width);
    (same && square && !launch.block_source.is_assumption()).then_some(width)
}

/// Variables and what they are called as the mirror image has them.
type Names<'t> = Vec<(&'t str, String)>;

/// What there is to edit.
struct Plan<'t> {
    code: Semantics<'t>,
    lanes: Lanes<'t>,
    body: Node<'t>,
    /// The element that is staged, `out[x * h + y]`.
    element: Node<'t>,
    /// Its array and subscript.
    array: &'t str,
    index: Node<'t>,
    /// The statement that it is in, and the one of the kernel's own that this is a part of.
    statement: Node<'t>,
    top: Node<'t>,
    /// Statements that end threads, in front of it: the statement and what it depends on.
    exits: Vec<(Node<'t>, Node<'t>)>,
    /// What has to hold for the statement within `top`.
    guards: Vec<Node<'t>>,
    tile: String,
    ty: &'t str,
    side: u64,
    newline: &'static str,
}

impl<'t> Plan<'t> {
    fn new(source: KernelSource<'t>, site: Site, side: u64) -> Option<Plan<'t>> {
        let KernelSource { code, function, .. } = source;
        let lanes = Lanes::new(code, function)?;
        let body = function.field(Field::Body)?;
        let element = element(source, site)?;
        let base = element.field(Field::Argument)?;
        let array = code.text(base);
        let index = only_subscript(element)?;
        if base.kind() != Kind::Identifier || code.in_a_macro(array) {
            return None;
        }
        let mut parameters =
            children(function_declarator(function)?.field(Field::Parameters)?).into_iter();
        let parameter = parameters.find(|one| {
            let declarator = one.field(Field::Declarator);
            declarator
                .and_then(declared_name)
                .is_some_and(|name| code.text(name) == array)
        })?;
        let ty = code.written_element(function, array)?;
        if has_word(code.text(parameter), "volatile") {
            return None;
        }
        let Way {
            statement,
            top,
            guards,
        } = way_to(code, body, element, |_| None)?;
        if statement.kind() == Kind::ReturnStatement {
            return None;
        }
        let exits = exits(code, body, top)?;
        if !is_plain(code, body, &exits) {
            return None;
        }
        let tile = ["tile", "staged", "block_tile"]
            .into_iter()
            .find(|name| !has_word(code.source, name))?;
        Some(Plan {
            code,
            lanes,
            body,
            element,
            array,
            index,
            statement,
            top,
            exits,
            guards,
            tile: tile.to_owned(),
            ty,
            side,
            newline: if code.source.contains("\r\n") {
                "\r\n"
            } else {
                "\n"
            },
        })
    }

    /// Each thread puts its value into the tile; behind a barrier it stores the one of its mirror image.
    fn store(&self) -> Option<Vec<Edit>> {
        let code = self.code;
        let assignment = self.statement.named_child(0)?;
        let stores = self.statement.kind() == Kind::ExpressionStatement
            && assignment.field(Field::Left) == Some(self.element)
            && assigned(assignment) == Some(AssignOperator::Plain);
        // What comes behind it would see its word.
        let last =
            children(self.body).last() == Some(&self.top) && is_last(self.statement, self.body);
        // Two stores, and the order of theirs may matter.
        let others = self
            .body
            .descendants()
            .into_iter()
            .filter(|node| is_store(*node) && *node != assignment)
            .count();
        if !stores || !last || others > 0 || !is_own_line(code, self.body, self.top) {
            return None;
        }
        let margin = indent(code.source, self.top.start_byte());
        let unit = if margin.contains('\t') { "\t" } else { "    " };
        let [x, y] = self.lanes.own();
        let (_, barrier) = self.lanes.shared();
        let (names, declared) = self.mirrored("out")?;
        let mut edits = vec![
            self.declaration()?,
            (
                self.element.byte_range(),
                format!("{}[{y}][{x}]", self.tile),
            ),
        ];
        // What ends a thread becomes a condition: all of them come to the barrier.
        let mut closing = String::new();
        for (depth, (exit, condition)) in self.exits.iter().enumerate().rev() {
            edits.push((
                exit.byte_range(),
                format!("if ({}) {{", self.negated(*condition)),
            ));
            let end = self
                .exits
                .get(depth + 1)
                .map_or(self.top.end_byte(), |(next, _)| next.start_byte());
            edits.extend(indented(code, exit.end_byte()..end, unit, depth + 1));
        }
        for depth in (0..self.exits.len()).rev() {
            write!(closing, "{}{margin}{}}}", self.newline, unit.repeat(depth)).ok()?;
        }
        let newline = self.newline;
        let mut behind = format!("{closing}{newline}{margin}{barrier};{newline}");
        for line in declared {
            write!(behind, "{margin}{line}{newline}").ok()?;
        }
        let store = format!(
            "{}[{}] = {}[{x}][{y}];",
            self.array,
            self.mirror(self.index, &names)?,
            self.tile
        );
        match self.condition(&names)?.join(" && ") {
            condition if !condition.is_empty() => write!(
                behind,
                "{margin}if ({condition}) {{{newline}{margin}{unit}{store}{newline}{margin}}}"
            )
            .ok()?,
            _ => write!(behind, "{margin}{store}").ok()?,
        }
        edits.push((self.top.end_byte()..self.top.end_byte(), behind));
        Some(edits)
    }

    /// Each thread loads for its mirror image, and behind a barrier takes its own value from the tile.
    fn load(&self) -> Option<Vec<Edit>> {
        let code = self.code;
        let first = self.first();
        let stored_before = self
            .body
            .descendants()
            .into_iter()
            .any(|node| is_store(node) && node.end_byte() <= self.element.start_byte());
        let once = self
            .body
            .descendants()
            .into_iter()
            .filter(|node| is_store(*node))
            .all(|store| {
                // The element is what is read, not what is written.
                store
                    .field(Field::Left)
                    .or_else(|| store.field(Field::Argument))
                    .is_none_or(|left| !contains(left, self.element))
            });
        if stored_before || !once || !is_always_evaluated(self.element, self.statement) {
            return None;
        }
        if !is_own_line(code, self.body, first) {
            return None;
        }
        let margin = indent(code.source, first.start_byte());
        let unit = if margin.contains('\t') { "\t" } else { "    " };
        let newline = self.newline;
        let [x, y] = self.lanes.own();
        let (_, barrier) = self.lanes.shared();
        let (names, declared) = self.mirrored("in")?;
        let mut before = String::new();
        for line in declared {
            write!(before, "{line}{newline}{margin}").ok()?;
        }
        let load = format!(
            "{}[{y}][{x}] = {}[{}];",
            self.tile,
            self.array,
            self.mirror(self.index, &names)?
        );
        match self.condition(&names)?.join(" && ") {
            condition if !condition.is_empty() => write!(
                before,
                "if ({condition}) {{{newline}{margin}{unit}{load}{newline}{margin}}}{newline}{margin}"
            )
            .ok()?,
            _ => write!(before, "{load}{newline}{margin}").ok()?,
        }
        write!(before, "{barrier};{newline}{margin}").ok()?;
        Some(vec![
            self.declaration()?,
            (first.start_byte()..first.start_byte(), before),
            (
                self.element.byte_range(),
                format!("{}[{x}][{y}]", self.tile),
            ),
        ])
    }

    /// `__shared__ float tile[16][17];` at the head of the kernel.
    fn declaration(&self) -> Option<Edit> {
        let first = children(self.body).into_iter().next()?;
        let at = self.body.start_byte() + 1;
        let (word, _) = self.lanes.shared();
        let margin = indent(self.code.source, first.start_byte());
        Some((
            at..at,
            format!(
                "{}{margin}{word} {} {}[{}][{}];",
                self.newline,
                self.ty,
                self.tile,
                self.side,
                self.side + 1
            ),
        ))
    }

    /// Every variable that the subscript and the conditions are made of.
    fn variables(&self) -> Option<Vec<Local<'t>>> {
        let mut all: Vec<Local<'t>> = Vec::new();
        let conditions = self.exits.iter().map(|(_, condition)| *condition);
        for expression in conditions
            .chain(self.guards.iter().copied())
            .chain([self.index])
        {
            for local in self.lanes.locals(expression)? {
                if all.iter().all(|known| known.name != local.name) {
                    all.push(local);
                }
            }
        }
        Some(all)
    }

    /// The first statement that not every thread goes through whole.
    fn first(&self) -> Node<'t> {
        self.exits.first().map_or(self.top, |(exit, _)| *exit)
    }

    /// The variables as the mirror image has them: their names there and their declarations. Those that are the same for all
    /// threads stay, where they are declared before anything is asked.
    fn mirrored(&self, ending: &str) -> Option<(Names<'t>, Vec<String>)> {
        let mut names: Names = Vec::new();
        let mut declared = Vec::new();
        for local in self.variables()? {
            let declaration = local.value.parent()?.parent()?;
            let at_hand = declaration.parent() == Some(self.body)
                && declaration.end_byte() <= self.first().start_byte();
            if !local.varies && at_hand {
                continue;
            }
            let name = format!("{}_{ending}", local.name);
            if has_word(self.code.source, &name) {
                return None;
            }
            let value = self.mirror(local.value, &names)?;
            declared.push(format!("const {} {name} = {value};", local.ty));
            names.push((local.name, name));
        }
        Some((names, declared))
    }

    /// An expression as the mirror image has it.
    fn mirror(&self, expression: Node<'t>, names: &[(&str, String)]) -> Option<String> {
        let [x, y] = self.lanes.own();
        self.lanes.of_thread(expression, [y, x], &|name| {
            let renamed = names.iter().find(|(old, _)| *old == name);
            renamed.map(|(_, new)| new.clone())
        })
    }

    /// What has to hold, all of it, for the mirror image to come to the element.
    fn condition(&self, names: &[(&str, String)]) -> Option<Vec<String>> {
        let mut parts = Vec::new();
        for (_, exit) in &self.exits {
            let condition = self.mirror(*exit, names)?;
            parts.push(self.negated_text(*exit, &condition));
        }
        let alone = self.exits.len() + self.guards.len() == 1;
        for guard in &self.guards {
            let condition = self.mirror(*guard, names)?;
            let stays = alone || binds(*guard);
            parts.push(if stays {
                condition
            } else {
                format!("({condition})")
            });
        }
        Some(parts)
    }

    fn negated(&self, condition: Node<'t>) -> String {
        self.negated_text(condition, self.code.text(condition))
    }

    /// `x < w && y < h` of `x >= w || y >= h`, where all of it is whole numbers; else `!(…)`.
    fn negated_text(&self, condition: Node<'t>, written: &str) -> String {
        let whole = condition.descendants().into_iter().all(|node| {
            let declared = (node.kind() == Kind::Identifier)
                .then(|| self.code.declaration(node))
                .flatten()
                .and_then(Declaration::ty);
            declared.is_none_or(|ty| is_integer(self.code.text(ty)))
        });
        if !whole || !simple_comparisons(written) {
            return format!("!({written})");
        }
        let parts: Vec<String> = written
            .split("||")
            .map(|part| match part.trim().split_once(">=") {
                Some((left, right)) => format!("{} < {}", left.trim(), right.trim()),
                None => {
                    let (left, right) = part.trim().split_once('>').unwrap_or((part, ""));
                    format!("{} <= {}", left.trim(), right.trim())
                }
            })
            .collect();
        parts.join(" && ")
    }
}

/// True for `a >= b || c > d`, with nothing else in it.
fn simple_comparisons(written: &str) -> bool {
    written.split("||").all(|part| {
        let rest = part.replacen(">=", "", 1);
        let rest = if rest.len() == part.len() {
            part.replacen('>', "", 1)
        } else {
            rest
        };
        rest.len() < part.len()
            && rest
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ' ' | '+' | '-' | '*'))
    })
}

/// True for what `&&` may stand beside.
fn binds(condition: Node) -> bool {
    binary(condition).is_some_and(|operator| operator != BinaryOperator::Or)
}

fn contains(outer: Node, inner: Node) -> bool {
    outer.start_byte() <= inner.start_byte() && inner.end_byte() <= outer.end_byte()
}

/// True where nothing comes behind a statement in any of the blocks around it.
fn is_last(statement: Node, body: Node) -> bool {
    let mut at = statement;
    while at != body {
        let Some(parent) = at.parent() else {
            return false;
        };
        if parent.kind() == Kind::CompoundStatement && children(parent).last() != Some(&at) {
            return false;
        }
        at = parent;
    }
    true
}

/// Every line that begins within a range, deeper by this many levels.
fn indented(code: Semantics, range: Range<usize>, unit: &str, levels: usize) -> Vec<Edit> {
    let written = &code.source[range.clone()];
    written
        .match_indices('\n')
        .map(|(at, _)| range.start + at + 1)
        .filter(|at| {
            let rest = &code.source[*at..];
            let line = rest.lines().next().unwrap_or_default();
            !line.trim().is_empty() && !line.trim_start().starts_with('#')
        })
        .map(|at| (at..at, unit.repeat(levels)))
        .collect()
}
