//! Rounds a block up to whole warps where it is launched, and the grid that is computed from it with it.

use warplens_hir::semantics::children;
use warplens_hir::{Semantics, function_declarator};
use warplens_syntax::{Field, Kind, Node, has_word};

use crate::fixes::guarded::{Axis, axes};
use crate::fixes::proof::{of_kernels, prove};
use crate::fixes::source::squeezed;
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::faster;

const RULE: &str = "launch/not-warp-multiple";

/// No block is rounded to more threads than this along one axis.
const WIDEST: u64 = 1024;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_kernels(request, RULE, fix)
}

fn fix(request: &Request<'_>, kernel: &Kernel) -> Option<Fix> {
    let document = request.document;
    let code = Semantics::new(document);
    let definition = code.kernel(kernel.start..kernel.end)?;
    let guard = axes(code, definition)?;
    let [x_guard, ..] = &guard;
    let launch = Launch::at(code, kernel.launched_at?)?;
    let block = kernel.facts.launch.block;
    // Every axis of the block is bounded, so that more threads do nothing.
    if (0..3).any(|axis| block[axis] > 1 && guard[axis].is_none()) {
        return None;
    }
    let x_guard = x_guard.as_ref()?;
    let warp = u64::from(kernel.facts.warp_size).max(1);
    let wide = (block[0]..=WIDEST).find(|x| (x * block[1] * block[2]).is_multiple_of(warp))?;
    let asks = launch.passed(code, definition, x_guard)?;

    let width = Width::of(code, &launch, block[0])?;
    let mut edits = vec![(width.literal.clone(), wide.to_string())];
    edits.extend(grid(code, &launch, &width, block[0], wide, &asks)?);
    let edits = in_order(edits)?;
    let proof = prove(request, kernel, &edits)?;
    let after = proof.after();
    let speedup = proof.speedup(kernel)?;
    let rounded = after.facts.launch.block == [wide, block[1], block[2]];
    let said = after.count(RULE) > 0;
    let covers = after.facts.launch.grid[0] * wide
        >= (kernel.facts.launch.grid[0] * block[0]).saturating_sub(block[0] - 1);
    if !rounded || said || !covers {
        return None;
    }
    let threads: u64 = block.iter().product();
    Some(Fix {
        title: format!(
            "Round the block up to {} threads, the grid with it: {} idle lanes per block → 0, {}",
            wide * block[1] * block[2],
            threads.next_multiple_of(warp) - threads,
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// A launch as it is written.
struct Launch<'t> {
    call: Node<'t>,
    grid: Node<'t>,
    block: Node<'t>,
    /// The function that launches.
    host: Node<'t>,
}

impl<'t> Launch<'t> {
    fn at(code: Semantics<'t>, place: &std::ops::Range<usize>) -> Option<Launch<'t>> {
        let call = code.launch_at(place)?;
        let launch = call.launch()?;
        let call = call.node();
        let extents: Vec<Node> = launch.extents().collect();
        let [grid, block] = extents[..] else {
            return None;
        };
        let mut host = call;
        while host.kind() != Kind::FunctionDefinition {
            host = host.parent()?;
        }
        (!host.has_error()).then_some(Launch {
            call,
            grid,
            block,
            host,
        })
    }

    /// What the launch passes for the bound of the kernel's index.
    fn passed(&self, code: Semantics, definition: Node, guard: &Axis) -> Option<String> {
        let parameters = function_declarator(definition)?.field(Field::Parameters)?;
        let position = children(parameters).iter().position(|parameter| {
            parameter
                .field(Field::Declarator)
                .is_some_and(|name| code.text(name) == guard.bound)
        });
        let Some(position) = position else {
            // A number or a macro is the same on both sides.
            let constant = guard.bound.parse::<u64>().is_ok() || defined(code, &guard.bound)?.1;
            return constant.then(|| guard.bound.clone());
        };
        let arguments = self.call.field(Field::Arguments)?;
        let argument = *children(arguments).get(position)?;
        Some(squeezed(code.text(argument)))
    }
}

/// The place of a macro's number, and whether the file defines it once.
fn defined(code: Semantics, name: &str) -> Option<(std::ops::Range<usize>, bool)> {
    let mut all = code
        .top_level()
        .into_iter()
        .filter(|node| node.kind() == Kind::PreprocDef)
        .filter(|node| {
            node.field(Field::Name)
                .is_some_and(|of| code.text(of) == name)
        });
    let value = all.next()?.field(Field::Value)?;
    let written = code.text(value);
    let start = value.start_byte() + written.len() - written.trim_start().len();
    Some((start..start + written.trim().len(), all.next().is_none()))
}

/// How wide a block is, as it is written.
struct Width {
    /// The number to change.
    literal: std::ops::Range<usize>,
    /// What the source calls it, without spaces; empty where the launch has the number itself.
    names: Vec<String>,
}

impl Width {
    /// `None` where the width is no number, or something else depends on it.
    fn of(code: Semantics, launch: &Launch, value: u64) -> Option<Width> {
        let mut names = Vec::new();
        let mut at = launch.block;
        // A variable of extents, a number of extents, a variable, a macro: each may name the next.
        for _ in 0..4 {
            if let Some(first) = first_extent(code, at) {
                at = first;
            }
            if code.text(at).parse::<u64>() == Ok(value) {
                return Some(Width {
                    literal: at.byte_range(),
                    names,
                });
            }
            if at.kind() != Kind::Identifier {
                return None;
            }
            let name = code.text(at);
            match declaration(code, launch.host, name) {
                Some((declared, extents)) => {
                    names.push(if extents {
                        format!("{name}.x")
                    } else {
                        name.to_owned()
                    });
                    used_for_the_launch(code, launch, name)?;
                    at = declared;
                }
                None => {
                    let (literal, once) = defined(code, name)?;
                    let written = code.source.get(literal.clone())?;
                    let here = used_for_the_launch(code, launch, name).is_some()
                        && nowhere_else(code, launch, name);
                    if !once || written.parse::<u64>() != Ok(value) || !here {
                        return None;
                    }
                    names.push(name.to_owned());
                    return Some(Width { literal, names });
                }
            }
        }
        None
    }

    /// True where a squeezed text is the width.
    fn is(&self, written: &str) -> bool {
        self.names.iter().any(|name| name == written)
    }
}

/// The x of `dim3(x, y)`.
fn first_extent<'t>(code: Semantics, node: Node<'t>) -> Option<Node<'t>> {
    let list = match node.kind() {
        Kind::CallExpression => {
            let callee = node.field(Field::Function)?;
            (code.text(callee) == "dim3")
                .then(|| node.field(Field::Arguments))
                .flatten()?
        }
        Kind::ArgumentList | Kind::InitializerList => node,
        _ => return None,
    };
    children(list).into_iter().next()
}

/// The value that the one declaration of a name in a function gives it, and whether it is extents.
fn declaration<'t>(code: Semantics<'t>, host: Node<'t>, name: &str) -> Option<(Node<'t>, bool)> {
    let declared = code.declared(host, name).filter(|one| one.is_plain())?;
    let extents = code.text(declared.ty()?) == "dim3";
    Some((declared.value()?, extents))
}

/// `Some` where a name in the launching function decides the launch's block and grid, and nothing else.
fn used_for_the_launch(code: Semantics, launch: &Launch, name: &str) -> Option<()> {
    if code.in_a_macro(name) {
        return None;
    }
    let block_name = code.text(launch.block);
    let grid_name = code.text(launch.grid);
    for node in launch.host.descendants() {
        if node.child_count() > 0 || code.text(node) != name || node.kind() != Kind::Identifier {
            continue;
        }
        let mut child = node;
        let mut right = false;
        while let Some(parent) = child.parent() {
            if child == launch.grid || child == launch.block {
                right = true;
                break;
            }
            if parent.kind() == Kind::InitDeclarator {
                let declared = parent
                    .field(Field::Declarator)
                    .map_or("", |of| code.text(of));
                // Its own declaration, or that of what the launch takes.
                right = declared == name || declared == block_name || declared == grid_name;
                break;
            }
            child = parent;
        }
        if !right {
            return None;
        }
    }
    Some(())
}

/// True where no other function of the file names it.
fn nowhere_else(code: Semantics, launch: &Launch, name: &str) -> bool {
    code.top_level()
        .into_iter()
        .filter(|node| *node != launch.host && node.kind() != Kind::PreprocDef)
        .all(|node| !has_word(code.text(node), name))
}

/// The edits of a grid that is computed as the bound over the block's width, rounded up.
fn grid(
    code: Semantics,
    launch: &Launch,
    width: &Width,
    old: u64,
    new: u64,
    bound: &str,
) -> Option<Vec<Edit>> {
    let mut at = launch.grid;
    for _ in 0..3 {
        if let Some(first) = first_extent(code, at) {
            at = first;
        }
        if at.kind() != Kind::Identifier {
            break;
        }
        let name = code.text(at);
        let (declared, extents) = declaration(code, launch.host, name)?;
        // Its declaration and the launch: nothing else needs it as it was.
        if code.uses(&code.declared(launch.host, name)?)?.len() != 1 {
            return None;
        }
        at = declared;
        if extents {
            at = first_extent(code, at)?;
        }
    }
    let written = squeezed(code.text(at));
    let by_name = width.names.iter().any(|name| {
        [
            format!("({bound}+{name}-1)/{name}"),
            format!("({bound}+({name}-1))/{name}"),
            format!("({name}-1+{bound})/{name}"),
            format!("({bound}-1)/{name}+1"),
            format!("1+({bound}-1)/{name}"),
        ]
        .contains(&written)
    });
    if by_name {
        return Some(Vec::new());
    }
    let by_number = [
        (format!("({bound}+{})/{old}", old - 1), true, 2),
        (format!("({bound}+{old}-1)/{old}"), false, 2),
        (format!("({bound}-1)/{old}+1"), false, 1),
    ];
    let (_, less, numbers) = by_number.iter().find(|(form, ..)| *form == written)?;
    let mut edits = Vec::new();
    for node in at.descendants() {
        if node.kind() != Kind::NumberLiteral {
            continue;
        }
        let number = code.text(node).parse::<u64>().ok()?;
        if number == old {
            edits.push((node.byte_range(), new.to_string()));
        } else if *less && number == old - 1 {
            edits.push((node.byte_range(), (new - 1).to_string()));
        }
    }
    (edits.len() == *numbers && !width.is(bound)).then_some(edits)
}
