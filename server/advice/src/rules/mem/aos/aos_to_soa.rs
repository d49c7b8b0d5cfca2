//! Turns an array of structures into a structure of arrays: `p[i].x` becomes `p.x[i]`, and neighbouring
//! threads read neighbouring words.
//!
//! The structure itself stays for the host. Beside it comes a structure of pointers, one for each field, and
//! every kernel of the file that takes a pointer to the structure takes that instead. Host code is changed
//! where all of it is seen (see [`crate::rules::mem::aos::aos_host`]); elsewhere the title says that it remains to be done.

use warplens_facts::facts::{Access, Space};
use warplens_hir::Semantics;
use warplens_hir::semantics::{ElementUse, children, declared_name, parameters};
use warplens_syntax::{Document, Field, Kind, Language, Node, has_word};

use crate::fixes::{Edit, Fix, Kernel, Request, edited, in_order, touch};
use crate::rules::mem::aos::aos_host::{self, Host};
use crate::rules::mem::aos::structure::{Converted, Definition};
use crate::subjects::access::unit;
use crate::wording::{TITLE, counted, faster, number, occupancy, short};

const RULE: &str = "mem/aos";

/// Averages closer to the ideal than this are a stray warp.
const COSTLY: f64 = 1.05;

/// A kernel that is predicted slower by more than this is.
const SLOWER: f64 = 1.01;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    // OpenCL passes no structure with pointers to a kernel.
    if request.document.language() == Language::OpenCl {
        return Vec::new();
    }
    let mut found: Vec<Fix> = Vec::new();
    let mut done: Vec<String> = Vec::new();
    for kernel in request.analysis.kernels() {
        if !touch(request.range, &(kernel.start..kernel.end)) {
            continue;
        }
        let mut targets: Vec<(usize, &Access)> = kernel
            .facts
            .accesses
            .iter()
            .enumerate()
            .filter(|(_, access)| claims(request, &kernel, access))
            .collect();
        // The worst of those that the range touches speaks for its structure.
        targets.sort_by(|a, b| excess(b.1).total_cmp(&excess(a.1)).then(a.0.cmp(&b.0)));
        for (index, access) in targets {
            let Some(field) = &access.field else { continue };
            if done.contains(&field.structure) {
                continue;
            }
            done.push(field.structure.clone());
            found.extend(fix(request, &kernel, index));
        }
    }
    found
}

fn excess(access: &Access) -> f64 {
    match (
        access.transactions_per_request,
        access.ideal_transactions_per_request,
    ) {
        (Some(now), Some(ideal)) if ideal > 0.0 => now / ideal,
        _ => 0.0,
    }
}

fn claims(request: &Request<'_>, kernel: &Kernel, access: &Access) -> bool {
    access.space == Space::Global
        && access.field.is_some()
        && excess(access) > COSTLY
        && touch(request.range, &kernel.place(access.site))
}

fn fix(request: &Request<'_>, kernel: &Kernel, target: usize) -> Option<Fix> {
    let document = request.document;
    let code = Semantics::new(document);
    let access = &kernel.facts.accesses[target];
    let structure = structure_of(code, kernel, &access.array)?;
    let definition = Definition::find(code, structure)?;
    let mut edits = Vec::new();
    let converted = kernels(code, &definition, &mut edits)?;
    let own = code.kernel(kernel.start..kernel.end)?;
    if !converted.iter().any(|one| one.function == own) {
        return None;
    }
    let host = aos_host::follow(code, &definition, &converted);
    let mut declared = definition.arrays();
    let mut by_hand = None;
    match host {
        Host::Followed {
            helpers,
            edits: more,
        } => {
            declared.push_str(&helpers);
            edits.extend(more);
        }
        Host::ByHand(lines) => by_hand = Some(lines),
    }
    edits.push((definition.end..definition.end, declared));
    let edits = in_order(edits)?;
    let names: Vec<String> = converted.iter().map(|one| one.name.clone()).collect();
    let copy = edited(document, &edits);
    let analysis = (request.reanalyze)(&copy, &names)?;
    let proof = Proof::new(request, &analysis.kernels(), kernel, target, &names, &copy)?;
    let mut title = format!(
        "Turn `{}` into arrays: {} → {}{}, {}",
        short(definition.name),
        counted(proof.before, unit(access).0, unit(access).1),
        number(proof.after),
        occupancy(kernel.occupancy, proof.occupancy),
        faster(proof.gain),
    );
    let complete = by_hand.is_none();
    if let Some(lines) = by_hand {
        title.push_str(&left(&lines, TITLE.saturating_sub(title.chars().count())));
    }
    Some(Fix {
        title,
        rule: RULE,
        edits,
        gain: proof.gain,
        complete,
    })
}

/// What remains to be done by hand, in `room` letters: the lines that have room there, and how many more.
fn left(lines: &[usize], room: usize) -> String {
    // Lines that follow each other, as first and last.
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *line => *last = *line,
            _ => runs.push((*line, *line)),
        }
    }
    let plural = if lines.len() == 1 { "line" } else { "lines" };
    let of_runs = |shown: usize| {
        let told = runs[..shown]
            .iter()
            .map(|(first, last)| match last - first {
                0 => first.to_string(),
                _ => format!("{first}-{last}"),
            });
        let told = told.collect::<Vec<_>>().join(", ");
        let rest = runs[shown..].iter().map(|(first, last)| last - first + 1);
        let more = match rest.sum::<usize>() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(" (by hand: {plural} {told}{more})")
    };
    if runs.is_empty() {
        return " (host code remains to be changed by hand)".to_owned();
    }
    let fits = |shown: &usize| of_runs(*shown).chars().count() <= room;
    of_runs((1..=runs.len()).rev().find(fits).unwrap_or(1))
}

/// What the analysis of the edited copy says.
struct Proof {
    before: f64,
    after: f64,
    gain: f64,
    occupancy: f64,
}

impl Proof {
    /// `None` where the access does not get better, some kernel gets slower, or something else changed.
    fn new(
        request: &Request<'_>,
        after: &[Kernel],
        kernel: &Kernel,
        target: usize,
        names: &[String],
        copy: &Document,
    ) -> Option<Proof> {
        let mut proof = None;
        let named = |kernel: &&Kernel| names.contains(&kernel.facts.name);
        let all = request.analysis.kernels();
        let before: Vec<&Kernel> = all.iter().filter(named).collect();
        let after: Vec<&Kernel> = after.iter().filter(named).collect();
        if before.len() != after.len() {
            return None;
        }
        for (old, new) in before.into_iter().zip(after) {
            let accesses_same = old.facts.name == new.facts.name
                && old.facts.accesses.len() == new.facts.accesses.len()
                && old
                    .facts
                    .accesses
                    .iter()
                    .zip(&new.facts.accesses)
                    .all(|(a, b)| {
                        a.op == b.op && a.space == b.space && a.bytes_per_lane == b.bytes_per_lane
                    });
            let sound = !Semantics::new(copy).kernel(new.start..new.end)?.has_error();
            let (cost, new_cost) = (old.cost()?, new.cost()?);
            if !accesses_same || !sound || !new.launchable || new_cost > cost * SLOWER {
                return None;
            }
            if old.start == kernel.start {
                let transactions =
                    |kernel: &Kernel| kernel.facts.accesses.get(target)?.transactions_per_request;
                let (before, after) = (transactions(old)?, transactions(new)?);
                if after >= before {
                    return None;
                }
                let gain = (cost / new_cost).max(1.0);
                proof = Some(Proof {
                    before,
                    after,
                    gain,
                    occupancy: new.occupancy,
                });
            }
        }
        proof
    }
}

/// The structure that a kernel's parameter points to, as its declaration names it.
fn structure_of<'t>(code: Semantics<'t>, kernel: &Kernel, param: &str) -> Option<&'t str> {
    let function = code.kernel(kernel.start..kernel.end)?;
    parameters(function)?
        .into_iter()
        .find(|one| name_of(*one).is_some_and(|name| code.text(name) == param))
        .and_then(|one| type_name(code, one))
}

/// `Particle` of `const struct Particle *p`.
fn type_name<'t>(code: Semantics<'t>, param: Node) -> Option<&'t str> {
    let ty = param.field(Field::Type)?;
    let name = if ty.kind() == Kind::StructSpecifier {
        ty.field(Field::Name)?
    } else {
        ty
    };
    (name.kind() == Kind::TypeIdentifier).then(|| code.text(name))
}

/// The name a parameter declares; a prototype may leave it out.
fn name_of(param: Node) -> Option<Node> {
    let name = declared_name(param.field(Field::Declarator)?)?;
    (name.kind() == Kind::Identifier).then_some(name)
}

/// Changes every kernel of the file that takes a pointer to the structure; `None` where one cannot be.
fn kernels<'t>(
    code: Semantics<'t>,
    definition: &Definition,
    edits: &mut Vec<Edit>,
) -> Option<Vec<Converted<'t>>> {
    let top = code.top_level();
    let is_kernel = |node: &Node| {
        node.children()
            .any(|child| child.kind() == Kind::CudaGlobal)
    };
    let mut converted: Vec<Converted> = Vec::new();
    for function in top
        .iter()
        .filter(|node| node.kind() == Kind::FunctionDefinition && is_kernel(node))
    {
        let mut positions = Vec::new();
        for (position, param) in parameters(*function)?.into_iter().enumerate() {
            if type_name(code, param) != Some(definition.name) || by_value(param) {
                continue;
            }
            edits.push(parameter(code, param, definition)?);
            accesses(code, param, definition, edits)?;
            positions.push(position);
        }
        if positions.is_empty() {
            continue;
        }
        if function.has_error() {
            return None;
        }
        converted.push(Converted {
            name: code.function_name(*function)?.to_owned(),
            function: *function,
            positions,
        });
    }
    // What declares or instantiates them must say the same.
    for node in top {
        let declares = matches!(node.kind(), Kind::Declaration | Kind::TemplateInstantiation);
        let name = declares.then(|| code.function_name(node)).flatten();
        let Some(name) = name else {
            continue;
        };
        let plain = name.split('<').next().unwrap_or(name);
        let Some(of) = converted.iter().find(|one| one.name == plain) else {
            continue;
        };
        let params = parameters(node)?;
        for &position in &of.positions {
            let param = *params.get(position)?;
            if type_name(code, param) == Some(definition.name) {
                edits.push(parameter(code, param, definition)?);
            } else {
                return None;
            }
        }
    }
    Some(converted)
}

/// A structure passed by value is its own business.
fn by_value(param: Node) -> bool {
    param
        .field(Field::Declarator)
        .is_some_and(|declarator| declarator.kind() == Kind::Identifier)
}

/// `const Particle *__restrict__ p` becomes `const ParticleArrays p`.
fn parameter(code: Semantics, param: Node, definition: &Definition) -> Option<Edit> {
    let ty = param.field(Field::Type)?;
    let declarator = param.field(Field::Declarator)?;
    let one_star = matches!(
        declarator.kind(),
        Kind::PointerDeclarator | Kind::AbstractPointerDeclarator | Kind::ArrayDeclarator
    ) && declarator
        .field(Field::Declarator)
        .is_none_or(|inner| inner.kind() == Kind::Identifier)
        && declarator.field(Field::Size).is_none();
    let volatile = has_word(code.text(param), "volatile");
    if param.kind() != Kind::ParameterDeclaration || !one_star || volatile {
        return None;
    }
    let name = name_of(param)
        .map(|name| format!(" {}", code.text(name)))
        .unwrap_or_default();
    Some((
        ty.start_byte()..declarator.end_byte(),
        format!("{}{name}", definition.arrays_name),
    ))
}

/// Every `p[i].x` becomes `p.x[i]`; `None` where the parameter is used in any other way.
fn accesses(
    code: Semantics,
    param: Node,
    definition: &Definition,
    edits: &mut Vec<Edit>,
) -> Option<()> {
    let name = name_of(param)?;
    let name_text = code.text(name);
    if code.in_a_macro(name_text) {
        return None;
    }
    for used in code.uses(&code.declaration(name)?)? {
        let outer = used.parent()?;
        let access = match outer.kind() {
            Kind::SubscriptExpression if outer.field(Field::Argument) == Some(used) => {
                outer.parent()?
            }
            Kind::FieldExpression => outer,
            _ => return None,
        };
        let field = access.field(Field::Field)?;
        let operator = access.field(Field::Operator)?;
        let known = definition
            .fields
            .iter()
            .any(|(_, name)| *name == code.text(field));
        if access.kind() != Kind::FieldExpression
            || !known
            || code.hands(access) != ElementUse::Value
        {
            return None;
        }
        if access == outer {
            // p->x is p[0].x
            if access.field(Field::Argument) != Some(used) || code.text(operator) != "->" {
                return None;
            }
            edits.push((operator.byte_range(), ".".to_owned()));
            edits.push((access.end_byte()..access.end_byte(), "[0]".to_owned()));
            continue;
        }
        let indices = outer
            .field(Field::Indices)
            .or_else(|| outer.field(Field::Index))?;
        let one = indices.kind() != Kind::SubscriptArgumentList || children(indices).len() == 1;
        if access.field(Field::Argument) != Some(outer) || code.text(operator) != "." || !one {
            return None;
        }
        edits.push((
            used.end_byte()..used.end_byte(),
            format!(".{}", code.text(field)),
        ));
        edits.push((outer.end_byte()..access.end_byte(), String::new()));
    }
    Some(())
}
