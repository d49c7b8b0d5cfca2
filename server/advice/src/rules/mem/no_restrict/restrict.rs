//! Says of every pointer parameter of a kernel that what it points to is reached through it alone.
//!
//! The compiler then keeps in registers what it would load again. `const` comes with it where the kernel only reads and
//! the file shows every declaration.

use crate::Cure;
use warplens_hir::semantics::{ElementUse, Launches, declared_name, parameters};
use warplens_hir::{Semantics, function_declarator};
use warplens_syntax::{Field, Kind, Language, Node, has_word, is_restrict};

use super::distinct::are_distinct;
use crate::fixes::proof::{of_findings, prove};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::{faster, occupancy};

const RULES: [&str; 2] = ["mem/loop-invariant-load", "mem/no-restrict"];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let of_rule = |rule| {
        of_findings(request, rule, |_, kernel, finding, _| {
            (finding.cure == Some(Cure::Restrict)).then(|| fix(request, kernel, rule))?
        })
    };
    RULES.into_iter().flat_map(of_rule).collect()
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, rule: &'static str) -> Option<Fix> {
    let code = request.code();
    let name = kernel.facts.name.as_str();
    let function = code.kernel(kernel.start..kernel.end)?;
    if function.has_error() || code.in_a_macro(name) {
        return None;
    }
    let pointers = pointers(code, function)?;
    let launches = code.launches(name);
    if !distinct(code, &launches, &pointers) {
        return None;
    }
    let all = declarations(code, name, function);
    let constant = may_be_const(code, &all);
    let mut edits = Vec::new();
    for declared in &all {
        let parameters = parameters(*declared)?;
        for pointer in &pointers {
            let parameter = *parameters.get(pointer.position)?;
            let only_read = constant && pointer.only_read(request);
            edits.extend(edit(request, parameter, only_read)?);
        }
    }
    if edits.is_empty() {
        return None;
    }
    let edits = in_order(edits)?;
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    if proof.after().count(rule) >= kernel.count(rule) {
        return None;
    }
    let word = word(request);
    let mut title = format!(
        "Make the pointers of `{name}` {word}{}, {}",
        occupancy(kernel.occupancy, proof.after().occupancy),
        faster(speedup),
    );
    let complete = launches.elsewhere.is_empty() && !launches.seen.is_empty();
    if !complete {
        title.push_str(" (callers not seen: arrays must not overlap)");
    }
    Some(Fix {
        title,
        rule,
        edits,
        gain: speedup,
        complete,
    })
}

fn word(request: &Request<'_>) -> &'static str {
    if request.document.language() == Language::OpenCl {
        "restrict"
    } else {
        "__restrict__"
    }
}

/// A pointer parameter.
struct Pointer<'t> {
    position: usize,
    name: Node<'t>,
}

impl Pointer<'_> {
    /// True where each use reads an element.
    fn only_read(&self, request: &Request<'_>) -> bool {
        let code = request.code();
        let name = code.text(self.name);
        if code.in_a_macro(name) {
            return false;
        }
        let declared = code.declaration(self.name);
        let Some(uses) = declared.and_then(|declared| code.uses(&declared)) else {
            return false;
        };
        uses.into_iter().all(|used| {
            used.parent().is_some_and(|element| {
                let subscript = element.kind() == Kind::SubscriptExpression
                    && element.field(Field::Argument) == Some(used);
                subscript && !is_written(element) && code.hands(element) == ElementUse::Value
            })
        })
    }
}

/// True where an element, or a part of it, is what an assignment or a step changes.
fn is_written(element: Node) -> bool {
    let mut at = element;
    while let Some(parent) = at.parent() {
        match parent.kind() {
            Kind::FieldExpression | Kind::SubscriptExpression
                if parent.field(Field::Argument) == Some(at) => {}
            Kind::ParenthesizedExpression => {}
            Kind::AssignmentExpression => return parent.field(Field::Left) == Some(at),
            Kind::UpdateExpression | Kind::PointerExpression => return true,
            Kind::InitDeclarator | Kind::ArgumentList | Kind::ReturnStatement => return false,
            _ => return false,
        }
        at = parent;
    }
    false
}

/// The pointer parameters of a kernel; `None` where one of them cannot be said to be `restrict`.
fn pointers<'t>(code: Semantics<'t>, function: Node<'t>) -> Option<Vec<Pointer<'t>>> {
    let mut found = Vec::new();
    for (position, parameter) in parameters(function)?.into_iter().enumerate() {
        let Some(declarator) = parameter.field(Field::Declarator) else {
            continue;
        };
        let written = code.text(parameter);
        // Shared arrays of OpenCL, images and the like are told apart by what they are.
        if ["__local", "local", "volatile"]
            .iter()
            .any(|word| has_word(written, word))
        {
            continue;
        }
        match declarator.kind() {
            Kind::PointerDeclarator => found.push(Pointer {
                position,
                name: declared_name(declarator)?,
            }),
            Kind::ArrayDeclarator | Kind::FunctionDeclarator | Kind::ParenthesizedDeclarator => {
                return None;
            }
            _ => {}
        }
    }
    (found.len() >= 2).then_some(found)
}

/// False where a launch in the file gives two of the pointers what may be one array.
fn distinct(code: Semantics, launches: &Launches, pointers: &[Pointer]) -> bool {
    launches.seen.iter().all(|launch| {
        let arguments: Vec<Node> = pointers
            .iter()
            .filter_map(|pointer| launch.arguments.get(pointer.position).copied())
            .collect();
        are_distinct(code, &arguments)
    })
}

/// The definition and every declaration of the kernel in the file.
fn declarations<'t>(code: Semantics<'t>, name: &str, function: Node<'t>) -> Vec<Node<'t>> {
    let mut found = vec![function];
    for node in code.top_level() {
        let declares = matches!(node.kind(), Kind::Declaration | Kind::TemplateInstantiation);
        let declarator = declares.then(|| function_declarator(node)).flatten();
        let declared = declarator.and_then(|of| of.field(Field::Declarator));
        let plain = declared.map(|of| code.text(of).split('<').next().unwrap_or_default());
        if plain.is_some_and(|plain| plain.trim() == name) {
            found.push(node);
        }
    }
    found
}

/// `const` belongs to a function's type: every declaration has to say it, and an own header may hold another one.
fn may_be_const(code: Semantics, all: &[Node]) -> bool {
    let instantiated = all
        .iter()
        .any(|node| node.kind() == Kind::TemplateInstantiation);
    let own_headers = code.source.lines().any(|line| {
        line.trim_start()
            .strip_prefix('#')
            .and_then(|rest| rest.trim_start().strip_prefix("include"))
            .is_some_and(|rest| rest.trim_start().starts_with('"'))
    });
    !instantiated && !own_headers
}

/// What makes a parameter `restrict`: nothing where it is; `None` where it cannot be said.
fn edit(request: &Request<'_>, parameter: Node, constant: bool) -> Option<Vec<Edit>> {
    let code = request.code();
    let declarator = parameter.field(Field::Declarator)?;
    let written = code.text(parameter);
    let already = is_restrict(written);
    let mut edits = Vec::new();
    if !already {
        if !matches!(
            declarator.kind(),
            Kind::PointerDeclarator | Kind::AbstractPointerDeclarator
        ) {
            return None;
        }
        let word = word(request);
        match declared_name(declarator).filter(|name| name.kind() == Kind::Identifier) {
            Some(name) => {
                let at = name.start_byte();
                edits.push((at..at, format!("{word} ")));
            }
            None => edits.push((
                declarator.end_byte()..declarator.end_byte(),
                format!(" {word}"),
            )),
        }
    }
    let one_star = declarator
        .field(Field::Declarator)
        .is_none_or(|inner| inner.kind() == Kind::Identifier);
    if constant && one_star && !has_word(written, "const") && !has_word(written, "constant") {
        let at = parameter.field(Field::Type)?.start_byte();
        edits.push((at..at, "const ".to_owned()));
    }
    Some(edits)
}
