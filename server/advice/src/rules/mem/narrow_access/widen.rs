//! Makes one access of 8 or 16 bytes of two or four that a thread makes of words side by side.
//!
//! The rule has seen that every thread makes them together. What is left to see: that the first one's index is a multiple of
//! their number whatever the arguments are, that nothing between them changes what they read, and where the array begins.

use crate::Finding;
use warplens_facts::facts::{Op, Site};
use warplens_hir::semantics::{KernelSource, bare, children, declared_name};
use warplens_hir::{Semantics, function_declarator};
use warplens_ir::{Function, known_function};
use warplens_syntax::{
    AssignOperator, BinaryOperator, Field, Kind, Node, assigned, binary, has_word, is_restrict,
};

use crate::fixes::lanes::Lanes;
use crate::fixes::polynomial::{self, Polynomial};
use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{
    element, indent, is_always_evaluated, is_target, new_name, only_subscript, squeezed,
};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::faster;

const RULE: &str = "mem/narrow-access";

/// The names of a vector's elements.
const ELEMENTS: [&str; 4] = ["x", "y", "z", "w"];

/// Beginnings of the names that allocate device memory.
const ALLOCATE: [&str; 4] = ["cudaMalloc", "hipMalloc", "hipExtMalloc", "cudaMallocAsync"];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, fix)
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, finding: &Finding, site: Site) -> Option<Fix> {
    let code = request.code();
    let mut sites = vec![site];
    for (site, _) in &finding.related {
        if site.callee != 0 {
            return None;
        }
        sites.push(*site);
    }
    let access = kernel.facts.accesses.get(finding.access?)?;
    let plan = Plan::new(kernel.source(code)?, &sites)?;
    let edits = in_order(match access.op {
        Op::Load => plan.loads()?,
        Op::Store => plan.stores()?,
        Op::Atomic => return None,
    })?;
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    let after = proof.after();
    if after.count(RULE) >= kernel.count(RULE)
        || after.facts.accesses.len() >= kernel.facts.accesses.len()
    {
        return None;
    }
    let complete = plan.opencl || plan.begins_on_a_boundary(&kernel.facts.name);
    let condition = if complete {
        String::new()
    } else {
        format!(
            " (callers must align `{}` to {} bytes)",
            plan.array,
            plan.bytes()
        )
    };
    let (what, many) = match access.op {
        Op::Store => ("Store", "stores"),
        _ => ("Load", "loads"),
    };
    Some(Fix {
        title: format!(
            "{what} `{}`: {} {many} of {} bytes → one of {}, {}{condition}",
            plan.vector(),
            plan.elements.len(),
            access.bytes_per_lane,
            plan.bytes(),
            faster(speedup),
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete,
    })
}

/// What there is to edit.
struct Plan<'t> {
    code: Semantics<'t>,
    function: Node<'t>,
    opencl: bool,
    array: &'t str,
    /// The position of the array among the kernel's parameters, and the text of its declaration.
    position: usize,
    declared: &'t str,
    /// The vectors' name without their length, and an element's bytes.
    element: (&'static str, usize),
    /// The accesses in the order of their words, and their subscripts.
    elements: Vec<(Node<'t>, Polynomial)>,
}

impl<'t> Plan<'t> {
    fn new(source: KernelSource<'t>, sites: &[Site]) -> Option<Plan<'t>> {
        let KernelSource { code, function, .. } = source;
        let lanes = Lanes::new(code, function)?;
        let mut elements = Vec::new();
        let mut array = None;
        for site in sites {
            let element = element(source, *site)?;
            let base = element.field(Field::Argument)?;
            let same = *array.get_or_insert(code.text(base)) == code.text(base);
            if base.kind() != Kind::Identifier || !same {
                return None;
            }
            elements.push((element, sum_of(code, only_subscript(element)?)?));
        }
        let array = array?;
        let (_, first) = elements.first()?;
        let side_by_side = elements
            .iter()
            .zip(0..)
            .all(|((_, sum), at)| distance(sum, first) == Some(at));
        let position = children(function_declarator(function)?.field(Field::Parameters)?)
            .into_iter()
            .position(|one| {
                one.field(Field::Declarator)
                    .and_then(declared_name)
                    .is_some_and(|name| code.text(name) == array)
            })?;
        let parameter =
            children(function_declarator(function)?.field(Field::Parameters)?)[position];
        let declared = code.text(parameter);
        let element = vector_of(code.written_element(function, array)?)?;
        let width = elements.len();
        let multiple = lanes.is_multiple(only_subscript(elements[0].0)?, width as i64);
        if !side_by_side
            || !multiple
            || !matches!(width, 2 | 4)
            || has_word(declared, "volatile")
            || code.in_a_macro(array)
            || lanes.is_changed(array)
        {
            return None;
        }
        Some(Plan {
            code,
            function,
            opencl: code.is_opencl(),
            array,
            position,
            declared,
            element,
            elements,
        })
    }

    fn bytes(&self) -> usize {
        self.element.1 * self.elements.len()
    }

    fn vector(&self) -> String {
        let name = match (self.opencl, self.element.0) {
            (true, "longlong") => "long",
            (true, "ulonglong") => "ulong",
            (_, name) => name,
        };
        format!("{name}{}", self.elements.len())
    }

    /// The subscript of the first word.
    fn lowest(&self) -> Option<&'t str> {
        Some(self.code.text(only_subscript(self.elements[0].0)?))
    }

    /// The block that all elements stand in and their statements in it.
    fn statements(&self) -> Option<(Node<'t>, Vec<Node<'t>>)> {
        let mut block = None;
        let mut statements = Vec::new();
        for (element, _) in &self.elements {
            let mut statement = *element;
            while !matches!(
                statement.kind(),
                Kind::ExpressionStatement | Kind::Declaration | Kind::ReturnStatement
            ) {
                statement = statement.parent()?;
            }
            let around = statement.parent()?;
            let same = *block.get_or_insert(around) == around;
            if around.kind() != Kind::CompoundStatement
                || !same
                || !is_always_evaluated(*element, statement)
            {
                return None;
            }
            statements.push(statement);
        }
        statements.sort_by_key(Node::start_byte);
        Some((block?, statements))
    }

    /// One load in front of the first statement that has one.
    fn loads(&self) -> Option<Vec<Edit>> {
        let code = self.code;
        let (block, statements) = self.statements()?;
        let (first, last) = (*statements.first()?, *statements.last()?);
        let constant = has_word(self.declared, "const") && is_restrict(self.declared);
        let mut covered = Vec::new();
        for statement in children(block) {
            if statement.start_byte() < first.start_byte() {
                continue;
            }
            let quiet = constant || changes_nothing(code, statement, self.opencl);
            // What a statement stores at its end, it stores behind its loads.
            let at_end = statement.kind() == Kind::ExpressionStatement
                && statement.named_child(0).is_some_and(|assignment| {
                    assignment.kind() == Kind::AssignmentExpression
                        && children(assignment)
                            .into_iter()
                            .all(|part| changes_nothing(code, part, self.opencl))
                });
            if !quiet && !at_end {
                break;
            }
            covered.push(statement);
            if !quiet {
                break;
            }
        }
        if !covered.contains(&last) {
            return None;
        }
        let lowest_sum = &self.elements[0].1;
        let words = lowest_sum.products()?;
        let moved = covered.iter().any(|statement| {
            statement.descendants().into_iter().any(|node| {
                let changed = match node.kind() {
                    Kind::AssignmentExpression => node.field(Field::Left),
                    Kind::UpdateExpression => node.field(Field::Argument),
                    Kind::InitDeclarator => node.field(Field::Declarator),
                    _ => None,
                };
                changed.is_some_and(|name| {
                    name.kind() == Kind::Identifier
                        && words
                            .iter()
                            .flat_map(|(terms, _)| terms)
                            .any(|term| has_word(term, code.text(name)))
                })
            })
        });
        if moved {
            return None;
        }
        let at = first.start_byte();
        let line = code.source[..at].rfind('\n').map_or(0, |end| end + 1);
        if !code.source[line..at].trim().is_empty() {
            return None;
        }
        let name = new_name(
            code,
            self.function,
            &format!("{}_{}", self.array, self.elements.len()),
        );
        let mut edits = Vec::new();
        for statement in covered {
            for node in statement.descendants() {
                let Some(sum) = self.is_of_the_array(node) else {
                    continue;
                };
                let which =
                    distance(&sum, lowest_sum).and_then(|which| usize::try_from(which).ok());
                if let Some(which) = which.filter(|which| *which < self.elements.len())
                    && !is_target(node)
                {
                    let element = ELEMENTS[which];
                    edits.push((node.byte_range(), format!("{name}.{element}")));
                }
            }
        }
        let lowest = self.lowest()?;
        let newline = if code.source.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let vector = self.vector();
        let load = if self.opencl {
            format!("vload{}(0, &{}[{lowest}])", self.elements.len(), self.array)
        } else {
            format!(
                "*reinterpret_cast<const {vector}*>(&{}[{lowest}])",
                self.array
            )
        };
        let margin = indent(code.source, at);
        edits.push((
            at..at,
            format!("const {vector} {name} = {load};{newline}{margin}"),
        ));
        Some(edits)
    }

    /// The subscript of an element of the array.
    fn is_of_the_array(&self, node: Node<'t>) -> Option<Polynomial> {
        let base = node.field(Field::Argument)?;
        let is = node.kind() == Kind::SubscriptExpression
            && base.kind() == Kind::Identifier
            && self.code.text(base) == self.array;
        is.then(|| sum_of(self.code, only_subscript(node)?))?
    }

    /// One store in the place of statements that follow each other.
    fn stores(&self) -> Option<Vec<Edit>> {
        let code = self.code;
        let (block, statements) = self.statements()?;
        let all = children(block);
        let at = all.iter().position(|one| *one == statements[0])?;
        if all.get(at..at + statements.len()) != Some(&statements[..]) {
            return None;
        }
        let alone = is_restrict(self.declared);
        let mut values = Vec::new();
        for (element, _) in &self.elements {
            let assignment = element.parent()?;
            let plain = assignment.kind() == Kind::AssignmentExpression
                && assignment.field(Field::Left) == Some(*element)
                && assigned(assignment) == Some(AssignOperator::Plain)
                && assignment
                    .parent()
                    .is_some_and(|parent| statements.contains(&parent));
            let value = assignment.field(Field::Right)?;
            let reads = value.descendants().into_iter().any(|node| {
                matches!(
                    node.kind(),
                    Kind::SubscriptExpression | Kind::PointerExpression
                ) || code.text(node) == "->"
            });
            let own = has_word(code.text(value), self.array);
            if !plain
                || own
                || (reads && !alone)
                || !changes_nothing(code, value, self.opencl)
                || value.kind() == Kind::CommaExpression
            {
                return None;
            }
            values.push(code.text(value));
        }
        let vector = self.vector();
        let lowest = self.lowest()?;
        let values = values.join(", ");
        let store = if self.opencl {
            format!(
                "vstore{}(({vector})({values}), 0, &{}[{lowest}]);",
                self.elements.len(),
                self.array
            )
        } else {
            format!(
                "*reinterpret_cast<{vector}*>(&{}[{lowest}]) = make_{vector}({values});",
                self.array
            )
        };
        let (first, last) = (statements.first()?, statements.last()?);
        Some(vec![(first.start_byte()..last.end_byte(), store)])
    }

    /// True where every launch in the file gives the array as it was allocated.
    fn begins_on_a_boundary(&self, kernel: &str) -> bool {
        let seen = self.code.launches(kernel);
        seen.elsewhere.is_empty()
            && !seen.seen.is_empty()
            && seen.seen.iter().all(|launch| {
                launch
                    .arguments
                    .get(self.position)
                    .is_some_and(|argument| is_allocated(self.code, *argument))
            })
    }
}

/// True for a variable that its function allocates in device memory and gives nothing else.
fn is_allocated(code: Semantics, argument: Node) -> bool {
    let mut function = argument;
    while function.kind() != Kind::FunctionDefinition {
        let Some(parent) = function.parent() else {
            return false;
        };
        function = parent;
    }
    let name = code.text(argument);
    let mut allocated = false;
    for node in function.descendants() {
        match node.kind() {
            Kind::CallExpression => {
                let callee = node.field(Field::Function);
                let first = node
                    .field(Field::Arguments)
                    .and_then(|list| children(list).first().copied());
                if let (Some(callee), Some(first)) = (callee, first)
                    && ALLOCATE.contains(&code.text(callee))
                    && code.text(first).ends_with(&format!("&{name}"))
                {
                    allocated = true;
                }
            }
            Kind::AssignmentExpression | Kind::UpdateExpression => {
                let changed = node
                    .field(Field::Left)
                    .or_else(|| node.field(Field::Argument));
                if changed.is_some_and(|of| code.text(of) == name) {
                    return false;
                }
            }
            _ => {}
        }
    }
    argument.kind() == Kind::Identifier && allocated
}

/// The vectors of a type: their name without the length, and an element's bytes.
pub(crate) fn vector_of(ty: &str) -> Option<(&'static str, usize)> {
    let words: Vec<&str> = ty.split_whitespace().collect();
    Some(match words.as_slice() {
        ["float"] => ("float", 4),
        ["double"] => ("double", 8),
        ["int" | "int32_t"] => ("int", 4),
        ["unsigned" | "uint" | "uint32_t"] | ["unsigned", "int"] => ("uint", 4),
        ["short" | "int16_t"] => ("short", 2),
        ["unsigned", "short"] | ["ushort" | "uint16_t"] => ("ushort", 2),
        ["char" | "int8_t"] | ["signed", "char"] => ("char", 1),
        ["unsigned", "char"] | ["uchar" | "uint8_t"] => ("uchar", 1),
        ["long", "long"] => ("longlong", 8),
        ["unsigned", "long", "long"] => ("ulonglong", 8),
        _ => return None,
    })
}

/// How far one subscript is from another, where that is a number.
fn distance(of: &Polynomial, from: &Polynomial) -> Option<i64> {
    i64::try_from(of.sub(from)?.as_whole()?).ok()
}

/// A subscript as a sum of terms, each as written without spaces. `None` where it reads memory or changes something.
fn sum_of(code: Semantics, index: Node) -> Option<Polynomial> {
    let plain = index.descendants().into_iter().all(|node| {
        !node.is_named()
            || matches!(
                node.kind(),
                Kind::NumberLiteral
                    | Kind::Identifier
                    | Kind::FieldIdentifier
                    | Kind::FieldExpression
                    | Kind::BinaryExpression
                    | Kind::UnaryExpression
                    | Kind::ParenthesizedExpression
                    | Kind::CastExpression
                    | Kind::TypeDescriptor
                    | Kind::PrimitiveType
                    | Kind::SizedTypeSpecifier
            )
            || coordinate(code, node)
    });
    plain.then(|| terms_of(code, index))?
}

fn terms_of(code: Semantics, node: Node) -> Option<Polynomial> {
    let node = bare(node);
    let written = code.text(node);
    if node.kind() == Kind::NumberLiteral {
        let digits = written.trim_end_matches(['u', 'U', 'l', 'L']);
        return Some(Polynomial::constant(digits.parse::<i64>().ok()?.into()));
    }
    let sides = || {
        Some((
            terms_of(code, node.field(Field::Left)?)?,
            terms_of(code, node.field(Field::Right)?)?,
        ))
    };
    match binary(node) {
        Some(BinaryOperator::Add) => sides().and_then(|(left, right)| left.add(&right)),
        Some(BinaryOperator::Subtract) => sides().and_then(|(left, right)| left.sub(&right)),
        _ => Some(polynomial::name(&squeezed(written))),
    }
}

/// True for a part of `get_global_id(0)`.
fn coordinate(code: Semantics, node: Node) -> bool {
    match node.kind() {
        Kind::CallExpression => node
            .field(Field::Function)
            .is_some_and(|callee| code.text(callee).starts_with("get_")),
        Kind::ArgumentList => true,
        _ => false,
    }
}

/// True where nothing in memory is changed and no other thread is met.
pub(crate) fn changes_nothing(code: Semantics, node: Node, opencl: bool) -> bool {
    node.descendants()
        .into_iter()
        .all(|node| match node.kind() {
            Kind::AssignmentExpression => node
                .field(Field::Left)
                .is_some_and(|left| left.kind() == Kind::Identifier),
            Kind::UpdateExpression => node
                .field(Field::Argument)
                .is_some_and(|of| of.kind() == Kind::Identifier),
            Kind::CallExpression => node.field(Field::Function).is_some_and(|callee| {
                let name = code.text(callee);
                name.starts_with("get_")
                    || name.starts_with("make_")
                    || known_function(name, opencl).is_some_and(|function| is_pure(&function))
            }),
            Kind::LambdaExpression
            | Kind::ReturnStatement
            | Kind::GotoStatement
            | Kind::BreakStatement
            | Kind::ContinueStatement
            | Kind::GnuAsmExpression => false,
            _ => true,
        })
}

fn is_pure(function: &Function) -> bool {
    function.is_arithmetic() || matches!(function, Function::Load)
}
