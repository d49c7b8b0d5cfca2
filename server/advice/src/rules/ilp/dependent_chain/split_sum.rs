//! Splits the sum of a loop into several that do not wait for one another, added up at the end.

use crate::Cure;
use warplens_facts::facts::{Branch, BranchKind, Site};
use warplens_hir::Semantics;
use warplens_hir::semantics::{KernelSource, children, declared_name};
use warplens_syntax::nodes::{AssignmentExpression, UpdateExpression};
use warplens_syntax::{
    AssignOperator, BinaryOperator, Field, Kind, Node, UpdateOperator, assigned, binary,
};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{indent, new_name, writes};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::{faster, number, occupancy};

const RULE: &str = "ilp/dependent-chain";

/// Statements of a body that is written several times.
const LONGEST: usize = 6;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, finding, site| {
        let Some(Cure::Split(sums)) = finding.cure else {
            return None;
        };
        fix(request, kernel, site, sums as usize)
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel, site: Site, sums: usize) -> Option<Fix> {
    let code = request.code();
    let source = kernel.source(code)?;
    let function = source.function;
    let adds: AssignmentExpression = source.source_of(site)?;
    let of = Loop::around(source, adds.node())?;
    let (sum, zero) = sum(source, &of, adds)?;
    let text_of = Splitting {
        code,
        function,
        of: &of,
        sum,
        zero,
        sums,
    };
    let (edits, head) = text_of.edits()?;
    let edits = in_order(edits)?;
    let proof = prove(request, kernel, &edits)?;
    let after = proof.after();
    let speedup = proof.speedup(kernel)?;
    let condition = source.ir_of(of.condition)?;
    let before = trips(kernel, |one| one.site.span == condition)?;
    let now = trips(&after, |one| one.text == head)?;
    // What is left over behind the loop of several.
    if now > before / 2.0 {
        return None;
    }
    let order = if zero == "0" {
        ""
    } else {
        " (rounded in another order)"
    };
    Some(Fix {
        title: format!(
            "Add up in {sums} sums: {} additions in a row → {}{order}{}, {}",
            number(before),
            number(now),
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// Iterations of the loop that is meant, the most where there are several.
fn trips(kernel: &Kernel, is_meant: impl Fn(&Branch) -> bool) -> Option<f64> {
    let loops = kernel.facts.branches.iter();
    let meant = loops.filter(|one| one.kind == BranchKind::Loop && is_meant(one));
    meant.filter_map(|one| one.trips).reduce(f64::max)
}

/// A loop that counts up by a number: `for (int k = …; k < n; k += 2)`.
struct Loop<'t> {
    node: Node<'t>,
    initializer: Node<'t>,
    start: Node<'t>,
    counter: &'t str,
    condition: Node<'t>,
    operator: BinaryOperator,
    bound: Node<'t>,
    step: u64,
    /// Statements of its body.
    body: Vec<Node<'t>>,
}

impl<'t> Loop<'t> {
    /// The innermost around an expression, where it can be written several times.
    fn around(source: KernelSource<'t>, inside: Node<'t>) -> Option<Loop<'t>> {
        let KernelSource { code, function, .. } = source;
        let mut node = inside;
        while node.kind() != Kind::ForStatement {
            if matches!(
                node.kind(),
                Kind::WhileStatement | Kind::DoStatement | Kind::FunctionDefinition
            ) {
                return None;
            }
            node = node.parent()?;
        }
        let initializer = node.field(Field::Initializer)?;
        let declarator = initializer.field(Field::Declarator).filter(|one| {
            one.kind() == Kind::InitDeclarator && initializer.kind() == Kind::Declaration
        })?;
        let alone = children(initializer)
            .iter()
            .filter(|one| one.kind().is_declarator())
            .count()
            == 1;
        let counter = declarator
            .field(Field::Declarator)
            .filter(|name| name.kind() == Kind::Identifier && alone)
            .map(|name| code.text(name))?;
        let condition = node
            .field(Field::Condition)
            .filter(|one| one.kind() == Kind::BinaryExpression)?;
        let side = |name| condition.field(name);
        let operator = binary(condition)?;
        let counted = side(Field::Left).is_some_and(|left| code.text(left) == counter);
        let body = node.field(Field::Body)?;
        let found = Loop {
            node,
            initializer,
            start: declarator.field(Field::Value)?,
            counter,
            condition,
            operator,
            bound: side(Field::Right)?,
            step: step(code, node.field(Field::Update)?, counter)?,
            body: match body.kind() {
                Kind::CompoundStatement => children(body),
                _ => vec![body],
            },
        };
        let block = node
            .parent()
            .is_some_and(|one| one.kind() == Kind::CompoundStatement);
        let begins_line = code.source[..node.start_byte()]
            .trim_end_matches([' ', '\t'])
            .ends_with('\n');
        let plain = counted
            && matches!(operator, BinaryOperator::Less | BinaryOperator::LessEqual)
            && block
            && begins_line;
        (plain && found.repeats(code) && found.keeps_its_counter(code, function)).then_some(found)
    }

    /// True where the body is short straight code that leaves the counter and the bound alone.
    fn repeats(&self, code: Semantics) -> bool {
        let short = !self.body.is_empty() && self.body.len() <= LONGEST;
        let plain = self.body.iter().all(|one| {
            matches!(one.kind(), Kind::ExpressionStatement | Kind::Declaration) && !one.has_error()
        });
        let above = self.node.prev_sibling();
        let asked = above.is_some_and(|one| one.kind().is_directive());
        let bound = self.bound.descendants();
        let simple = bound.iter().all(|one| {
            matches!(
                one.kind(),
                Kind::Identifier
                    | Kind::NumberLiteral
                    | Kind::BinaryExpression
                    | Kind::ParenthesizedExpression
                    | Kind::FieldExpression
                    | Kind::FieldIdentifier
            ) || !one.is_named()
        });
        let names = || bound.iter().filter(|one| one.kind() == Kind::Identifier);
        let changed = |name: &str| {
            self.body.iter().any(|statement| {
                statement
                    .descendants()
                    .into_iter()
                    .any(|one| code.text(one) == name && writes(one))
            })
        };
        short
            && plain
            && !asked
            && simple
            && !code.in_a_macro(self.counter)
            && !changed(self.counter)
            && !names().any(|name| changed(code.text(*name)))
    }

    /// True where the counter may be declared before the loop: what has its name elsewhere are counters of other loops.
    fn keeps_its_counter(&self, code: Semantics, function: Node) -> bool {
        let outside = |one: &Node| {
            one.start_byte() < self.node.start_byte() || one.start_byte() >= self.node.end_byte()
        };
        let of_another_loop = |one: Node| {
            let mut at = Some(one);
            while let Some(node) = at {
                let declared = node
                    .field(Field::Initializer)
                    .filter(|_| node.kind() == Kind::ForStatement)
                    .and_then(|initializer| initializer.field(Field::Declarator))
                    .and_then(declared_name);
                if declared.is_some_and(|name| code.text(name) == self.counter) {
                    return true;
                }
                at = node.parent().filter(|_| node != function);
            }
            false
        };
        function
            .descendants()
            .into_iter()
            .filter(|one| one.kind() == Kind::Identifier && code.text(*one) == self.counter)
            .filter(outside)
            .all(of_another_loop)
    }

    /// Its trip count, where it is constant.
    fn trips(&self, code: Semantics) -> Option<u64> {
        let number = |node: Node| code.text(node).parse::<u64>().ok();
        let (start, bound) = (number(self.start)?, number(self.bound)?);
        let end = bound + u64::from(self.operator == BinaryOperator::LessEqual);
        Some(end.saturating_sub(start).div_ceil(self.step))
    }
}

/// What a counter is moved on by, a number above 0.
fn step(code: Semantics, update: Node, counter: &str) -> Option<u64> {
    let of = |name| update.field(name);
    match update.kind() {
        Kind::UpdateExpression => (code.text(of(Field::Argument)?) == counter
            && UpdateExpression::cast(update)?.op() == Some(UpdateOperator::Increment))
        .then_some(1),
        Kind::AssignmentExpression => {
            let adds = assigned(update) == Some(AssignOperator::With(BinaryOperator::Add))
                && code.text(of(Field::Left)?) == counter;
            let by = code.text(of(Field::Right)?).parse::<u64>().ok()?;
            (adds && (1..=1024).contains(&by)).then_some(by)
        }
        _ => None,
    }
}

/// The name of the sum that a statement of the loop adds to, and its zero.
fn sum<'t>(
    source: KernelSource<'t>,
    of: &Loop<'t>,
    adds: AssignmentExpression<'t>,
) -> Option<(&'t str, &'static str)> {
    let KernelSource { code, function, .. } = source;
    adds.node()
        .parent()
        .filter(|statement| of.body.contains(statement))?;
    let left = adds.left().filter(|left| left.kind() == Kind::Identifier)?;
    let name = code.text(left);
    let declaration = code.declared(function, name)?.node;
    let before = declaration.end_byte() <= of.node.start_byte();
    let volatile = code.text(declaration).contains("volatile");
    if !before || volatile || code.in_a_macro(name) {
        return None;
    }
    let ty = code.text(declaration.field(Field::Type)?);
    let zero = match ty {
        "float" => "0.0f",
        "double" => "0.0",
        "int" | "unsigned" | "unsigned int" | "uint" | "long" | "ulong" | "long long"
        | "unsigned long long" | "unsigned long" => "0",
        _ => return None,
    };
    Some((name, zero))
}

/// The loop as it will be written.
struct Splitting<'s, 't> {
    code: Semantics<'t>,
    function: Node<'t>,
    of: &'s Loop<'t>,
    sum: &'t str,
    zero: &'static str,
    sums: usize,
}

impl Splitting<'_, '_> {
    /// The edits, and the condition of the loop over several.
    fn edits(&self) -> Option<(Vec<Edit>, String)> {
        let (code, of) = (self.code, self.of);
        let start = of.node.start_byte();
        let margin = indent(code.source, start);
        let inner = of.body.first().map(|first| {
            let own = indent(code.source, first.start_byte());
            let alone = code.source[..first.start_byte()].ends_with(&format!("\n{own}"));
            if alone && own.len() > margin.len() {
                own
            } else {
                format!("{margin}    ")
            }
        })?;
        let end = if code.source[..start]
            .trim_end_matches([' ', '\t'])
            .ends_with("\r\n")
        {
            "\r\n"
        } else {
            "\n"
        };
        let names: Vec<String> = (1..self.sums)
            .map(|at| new_name(code, self.function, &format!("{}{at}", self.sum)))
            .collect();
        let declared = code.declared(self.function, self.sum)?;
        let ty = code.text(declared.ty()?);
        let declared: Vec<String> = names
            .iter()
            .map(|name| format!("{name} = {}", self.zero))
            .collect();
        let (counter, step) = (of.counter, of.step);
        let ahead = step * (self.sums as u64 - 1);
        let bound = code.text(of.bound);
        let whole = of
            .trips(code)
            .is_some_and(|trips| trips % self.sums as u64 == 0);
        let head = if whole {
            code.text(of.condition).to_owned()
        } else {
            format!("{counter} + {ahead} {} {bound}", of.operator.as_str())
        };
        let begins = code.text(of.initializer);
        let further = format!("{counter} += {}", step * self.sums as u64);
        let mut lines = vec![format!("{ty} {};", declared.join(", "))];
        if whole {
            lines.push(format!("for ({begins} {head}; {further}) {{"));
        } else {
            lines.push(begins.to_owned());
            lines.push(format!("for (; {head}; {further}) {{"));
        }
        let mut text_of = lines.join(&format!("{end}{margin}"));
        let declares = of.body.iter().any(|one| one.kind() == Kind::Declaration);
        for at in 0..self.sums {
            let statements: Vec<String> = of
                .body
                .iter()
                .map(|one| self.statement(*one, at, &names))
                .collect();
            let all = statements.join(&if declares {
                " ".to_owned()
            } else {
                format!("{end}{inner}")
            });
            let all = if declares {
                format!("{{ {all} }}")
            } else {
                all
            };
            text_of.extend([end, &inner, &all]);
        }
        text_of.extend([end, &margin, "}", end, &margin]);
        let [second, third, fourth] = names.as_slice() else {
            return None;
        };
        let total = format!("{0} = ({0} + {second}) + ({third} + {fourth});", self.sum);
        let edits = if whole {
            vec![(of.node.byte_range(), text_of + &total)]
        } else {
            let stop = of.node.end_byte();
            vec![
                (start..start, text_of),
                (of.initializer.byte_range(), ";".to_owned()),
                (stop..stop, format!("{end}{margin}{total}")),
            ]
        };
        Some((edits, head))
    }

    /// A statement of the iteration that comes this many later.
    fn statement(&self, statement: Node, later: usize, names: &[String]) -> String {
        let mut out = String::new();
        let mut from = statement.start_byte();
        for one in statement.descendants() {
            if one.kind() != Kind::Identifier || later == 0 {
                continue;
            }
            let name = self.code.text(one);
            let instead = if name == self.sum {
                names[later - 1].clone()
            } else if name == self.of.counter {
                let moved = format!("{name} + {}", self.of.step * later as u64);
                if stands_alone(one) {
                    moved
                } else {
                    format!("({moved})")
                }
            } else {
                continue;
            };
            out += &self.code.source[from..one.start_byte()];
            out += &instead;
            from = one.end_byte();
        }
        debug_assert!(from <= statement.end_byte());
        out += &self.code.source[from..statement.end_byte()];
        out
    }
}

/// True where an operand needs no parentheses to become a sum: a whole subscript, or an argument.
fn stands_alone(operand: Node) -> bool {
    operand.parent().is_some_and(|parent| match parent.kind() {
        Kind::SubscriptArgumentList | Kind::ArgumentList | Kind::ParenthesizedExpression => true,
        Kind::SubscriptExpression => parent.field(Field::Index) == Some(operand),
        _ => false,
    })
}
