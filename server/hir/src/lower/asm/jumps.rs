//! Jumps of inline PTX, as branches.
//!
//! In go the statements in their order; out come steps. A jump over statements to a label behind them is a branch, a jump
//! back over statements that do not jump is a loop, and a loop that does nothing but wait is its waits, once. Where any other jump is among them, no step is what is executed: then
//! these jumps come out instead.

use rustc_hash::FxHashMap;

use super::text::{Instruction, Operand, Statement};

/// Branches inside of branches, at most.
const MOST_NESTED: u32 = 16;

/// Statements of a loop that waits, at most.
const MOST_WAITING: usize = 16;

/// What is executed, in its order.
pub(super) enum Step<'s, 't> {
    Plain(&'s Statement<'t>),
    /// A jump with the predicate's register and the value at which it is taken; what is executed where it is, and where not.
    Branch {
        predicate: &'s (bool, Operand<'t>),
        taken: Vec<Step<'s, 't>>,
        passed: Vec<Step<'s, 't>>,
    },
    /// What is done again while the predicate's register holds that value behind it.
    Loop {
        predicate: &'s (bool, Operand<'t>),
        body: &'s [Statement<'t>],
    },
}

/// A jump that is not followed.
pub(super) struct Lost<'s, 't> {
    pub(super) instruction: &'s Instruction<'t>,
    /// It goes to what was executed before.
    pub(super) back: bool,
}

/// The steps of all statements, or the jumps that keep them from being known.
pub(super) fn followed<'s, 't>(
    statements: &'s [Statement<'t>],
) -> Result<Vec<Step<'s, 't>>, Vec<Lost<'s, 't>>> {
    let mut labels = FxHashMap::default();
    for statement in statements {
        if let Statement::Label(label) = statement {
            *labels.entry(*label).or_default() += 1;
        }
    }
    let mut reader = Reader {
        labels,
        lost: Vec::new(),
    };
    let steps = reader.steps(statements, 0);
    if reader.lost.is_empty() {
        return Ok(steps);
    }
    Err(reader.lost)
}

/// An instruction after which another than the next may be executed.
pub(super) fn jump<'s, 't>(statement: &'s Statement<'t>) -> Option<&'s Instruction<'t>> {
    match statement {
        Statement::Instruction(instruction) => {
            matches!(instruction.base(), "bra" | "brx" | "ret" | "exit").then_some(instruction)
        }
        _ => None,
    }
}

fn is_brace(statement: &Statement) -> bool {
    matches!(statement, Statement::Opened | Statement::Closed)
}

fn target<'t>(jump: &Instruction<'t>) -> Option<&'t str> {
    match jump.operands.as_slice() {
        [Operand::Name(label)] if jump.base() == "bra" => Some(label),
        _ => None,
    }
}

fn position(statements: &[Statement], label: &str) -> Option<usize> {
    statements
        .iter()
        .position(|statement| matches!(statement, Statement::Label(name) if *name == label))
}

struct Reader<'s, 't> {
    /// How often a label is there: scopes may each have one of the same name.
    labels: FxHashMap<&'t str, u32>,
    lost: Vec<Lost<'s, 't>>,
}

impl<'s, 't> Reader<'s, 't> {
    fn steps(&mut self, statements: &'s [Statement<'t>], depth: u32) -> Vec<Step<'s, 't>> {
        let mut steps = Vec::new();
        let mut rest = statements;
        while let Some((first, behind)) = rest.split_first() {
            if let Some(length) = waiting(rest) {
                let waits = rest[..length].iter();
                steps.extend(waits.filter(|one| jump(one).is_none()).map(Step::Plain));
                rest = &rest[length..];
                continue;
            }
            if let Some((body, predicate)) = self.repeated(first, behind) {
                steps.push(Step::Loop { predicate, body });
                rest = &behind[body.len() + 1..];
                continue;
            }
            rest = behind;
            let Some(jump) = jump(first) else {
                steps.push(Step::Plain(first));
                continue;
            };
            match self.branch(jump, behind, depth) {
                Some((branch, length)) => {
                    steps.extend(branch);
                    rest = &behind[length..];
                }
                None => self.lost.push(Lost {
                    instruction: jump,
                    back: target(jump).is_some_and(|label| {
                        self.labels.contains_key(label) && position(behind, label).is_none()
                    }),
                }),
            }
        }
        steps
    }

    /// A jump to a label behind it: the branch, and the statements that it represents. What nothing decides about is never
    /// executed.
    fn branch(
        &mut self,
        jump: &'s Instruction<'t>,
        behind: &'s [Statement<'t>],
        depth: u32,
    ) -> Option<(Option<Step<'s, 't>>, usize)> {
        let end = self.ahead(jump, behind)?;
        let Some(predicate) = &jump.predicate else {
            return Some((None, end));
        };
        if depth == MOST_NESTED {
            return None;
        }
        // A jump over the label as well, from right in front of it: there are two sides.
        let side = behind[..end].iter();
        let braces = side.rev().take_while(|one| is_brace(one)).count();
        let (side, braces) = behind[..end].split_at(end - braces);
        if let Some((Statement::Instruction(last), side)) = side.split_last()
            && last.predicate.is_none()
            && let Some(length) = self.ahead(last, &behind[end..])
        {
            let mut passed = self.steps(side, depth + 1);
            passed.extend(braces.iter().map(Step::Plain));
            let taken = self.steps(&behind[end..=end + length], depth + 1);
            let branch = Step::Branch {
                predicate,
                taken,
                passed,
            };
            return Some((Some(branch), end + length));
        }
        // With the label: jumps among what is passed over may go there too.
        let branch = Step::Branch {
            predicate,
            taken: Vec::new(),
            passed: self.steps(&behind[..=end], depth + 1),
        };
        Some((Some(branch), end))
    }

    /// A label, and behind it what a jump back to it repeats, which jumps nowhere else.
    fn repeated(
        &self,
        label: &Statement<'t>,
        behind: &'s [Statement<'t>],
    ) -> Option<(&'s [Statement<'t>], &'s (bool, Operand<'t>))> {
        let Statement::Label(label) = label else {
            return None;
        };
        let end = behind.iter().position(|one| jump(one).is_some())?;
        let back = jump(&behind[end])?;
        let unique = self.labels.get(label) == Some(&1);
        let predicate = back.predicate.as_ref()?;
        (unique && target(back) == Some(label)).then_some((&behind[..end], predicate))
    }

    /// Where among statements the label of a jump is, where it is the only one of its name.
    fn ahead(&self, jump: &Instruction<'t>, statements: &[Statement<'t>]) -> Option<usize> {
        let label = target(jump)?;
        (self.labels.get(label) == Some(&1)).then(|| position(statements, label))?
    }
}

/// How many statements from here are a loop that waits for a barrier in memory: it asks, it computes with the answer, it
/// sleeps, and it goes back or to the label right behind it.
fn waiting(statements: &[Statement]) -> Option<usize> {
    if !matches!(statements.first(), Some(Statement::Label(_))) {
        return None;
    }
    let mut answers: Vec<&Operand> = Vec::new();
    for (at, statement) in statements.iter().take(MOST_WAITING).enumerate() {
        let instruction = match statement {
            Statement::Label(_)
            | Statement::Registers(..)
            | Statement::Opened
            | Statement::Closed => continue,
            Statement::Instruction(instruction) => instruction,
            Statement::Malformed(_) => return None,
        };
        let (target, sources) = match instruction.operands.as_slice() {
            [] => (None, [].as_slice()),
            [target, sources @ ..] => (Some(target), sources),
        };
        match instruction.base() {
            "mbarrier" if instruction.has("try_wait") || instruction.has("test_wait") => {
                answers.extend(target);
            }
            "setp" | "selp" if sources.iter().any(|source| answers.contains(&source)) => {
                answers.extend(target);
            }
            "nanosleep" => {}
            "bra" if goes_round(statements, at) && !answers.is_empty() => return Some(at + 1),
            "bra" => {}
            _ => return None,
        }
    }
    None
}

/// True where the last jump of a loop goes back, and the others leave it for no other statement than the next.
fn goes_round(statements: &[Statement], last: usize) -> bool {
    let (inside, behind) = statements.split_at(last + 1);
    let labels = behind.iter();
    let labels = labels.take_while(|one| is_brace(one) || matches!(one, Statement::Label(_)));
    let behind = &behind[..labels.count()];
    let goes = |instruction: &Instruction, to: &[Statement]| {
        target(instruction).is_some_and(|label| position(to, label).is_some())
    };
    let back = jump(&statements[last]).is_some_and(|jump| goes(jump, inside));
    back && inside
        .iter()
        .filter_map(jump)
        .all(|jump| goes(jump, inside) || goes(jump, behind))
}
