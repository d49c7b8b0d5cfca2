//! Exceptions and the end of the program: the ways out of functions and loops that are no `return`.
//!
//! What holds: behind a `throw` that the program comes to nothing happens until the clause that catches it; where a condition
//! that is not known decides whether it comes to one, what the `try` changed is unknown in its clauses.

use warplens_hir::Source;
use warplens_ir::Type;
use warplens_syntax::{Field, Kind, Node};

use super::containers::whole;
use super::events::Side;
use super::index::plain;
use super::leaving::{Leaving, Thrown};
use super::nodes::{parts, text};
use super::state::{Changes, Host};
use super::value::{Meaning, Value};

/// Classes that one exception is derived from.
const MOST_KINDS: usize = 16;

impl Host<'_> {
    /// The program throws: until something catches that, nothing else happens.
    pub(super) fn throw(&mut self, thrown: Thrown) {
        if self.running.is_some() {
            self.leaving = Some(Leaving::Thrown(thrown));
        }
    }

    /// `throw value;`, and `throw;` of what was caught.
    pub(super) fn throw_statement(&mut self, node: Node, source: Source) {
        let Some(operand) = parts(node).into_iter().next() else {
            self.throw(Thrown::of_library(""));
            return;
        };
        let value = self.eval(operand, source);
        if self.leaving.is_some() {
            return;
        }
        let made = match operand.kind() {
            Kind::CallExpression => operand.field(Field::Function),
            Kind::CompoundLiteralExpression => operand.field(Field::Type),
            _ => None,
        };
        let class = match (&value, made) {
            (Value::Record(record), _) => record.class.clone(),
            (_, Some(made)) => plain(text(made, source)),
            _ => String::new(),
        };
        let is_class = self.index.classes.contains_key(&class) || is_of_library(&class);
        self.throw(Thrown {
            value,
            class: if is_class { class } else { String::new() },
        });
    }

    /// Walks what some runs come to: an exception, or the end of the program, is only theirs.
    pub(super) fn perhaps<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let touched = self.touched_mark();
        let result = walk(self);
        self.jumps_perhaps(touched);
        self.only_perhaps();
        result
    }

    /// What the program is leaving for is so in some runs only: others went another way before.
    pub(super) fn only_perhaps(&mut self) {
        self.jumps_perhaps(0);
        if let Some(Leaving::Thrown(_)) = self.leaving.take()
            && let Some(doubtful) = self.attempts.last_mut()
        {
            *doubtful = true;
        }
    }

    /// `try` and its clauses; false where nothing after it is come to.
    pub(super) fn attempt(&mut self, node: Node, source: Source) -> bool {
        let touched = self.touched_mark();
        self.attempts.push(false);
        let body = node.field(Field::Body);
        let goes_on = body.is_none_or(|body| self.statement(body, source));
        let doubtful = self.attempts.pop().unwrap_or(false);
        let clauses: Vec<Node> = parts(node)
            .into_iter()
            .filter(|part| part.kind() == Kind::CatchClause)
            .collect();
        if doubtful {
            self.leaving = None;
            return self.perhaps_caught(&clauses, goes_on, touched, source);
        }
        let Some(Leaving::Thrown(thrown)) = self.leaving.take_if(|one| one.is_exception()) else {
            return goes_on;
        };
        for clause in &clauses {
            match self.catches(*clause, &thrown, source) {
                Some(true) => return self.caught(*clause, &thrown.value, source),
                Some(false) => {}
                None => return self.perhaps_caught(&clauses, goes_on, touched, source),
            }
        }
        self.throw(thrown);
        false
    }

    /// Walks each clause as one that some runs come to; what the `try` changed since `touched` is unknown in it.
    fn perhaps_caught(
        &mut self,
        clauses: &[Node],
        goes_on: bool,
        touched: usize,
        source: Source,
    ) -> bool {
        let mark = self.mark();
        let mut ends: Vec<Changes> = Vec::new();
        for clause in clauses {
            self.forget_touched(touched);
            self.enter(clause.field(Field::Parameters), Side::Then, true, source);
            if self.perhaps(|host| host.caught(*clause, &Value::Unknown, source)) {
                ends.push(self.changes(mark));
            }
            self.leave();
            self.take_back(mark);
        }
        if ends.is_empty() {
            return goes_on;
        }
        if goes_on {
            ends.push(Changes::default());
        }
        self.join(&ends);
        true
    }

    /// Walks a clause that catches that value.
    fn caught(&mut self, clause: Node, value: &Value, source: Source) -> bool {
        let parameter = clause
            .field(Field::Parameters)
            .and_then(|list| parts(list).into_iter().next());
        self.scoped(|host| {
            if let Some(declarator) =
                parameter.and_then(|parameter| parameter.field(Field::Declarator))
            {
                let name = text(super::index::declared_name(declarator), source);
                let slot = host.slot(Type::Unknown(String::new()), value.clone(), false);
                host.bind(name, Meaning::Slot(whole(slot).slot));
            }
            let body = clause.field(Field::Body);
            body.is_none_or(|body| host.statement(body, source))
        })
    }

    /// Whether a clause catches an exception; `None` where that is not known.
    fn catches(&mut self, clause: Node, thrown: &Thrown, source: Source) -> Option<bool> {
        let list = clause.field(Field::Parameters)?;
        if text(list, source).contains("...") {
            return Some(true);
        }
        let parameter = parts(list).into_iter().next()?;
        let ty = parameter.field(Field::Type)?;
        let name = plain(text(ty, source));
        let is_class = self.index.classes.contains_key(&name) || is_of_library(&name);
        if !thrown.class.is_empty() {
            let kinds = self.kinds_of(&thrown.class);
            return match (kinds.contains(&name), is_class) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => Type::named(&name, false).map(|_| false),
            };
        }
        let thrown = match &thrown.value {
            Value::Int(_, bits, signed) => Type::Int {
                bits: *bits,
                signed: *signed,
            },
            Value::Float(_, bits) => Type::float(*bits),
            _ => return None,
        };
        if is_class {
            return Some(false);
        }
        let pointer = parameter
            .field(Field::Declarator)
            .is_some_and(|declarator| text(declarator, source).contains('*'));
        // A number of an enumeration is one of its own type.
        let caught = Type::named(&name, false)?;
        Some(!pointer && caught == thrown)
    }

    /// The plain names of a class of exceptions and of those that it is derived from, whether these were read or not.
    fn kinds_of(&self, class: &str) -> Vec<String> {
        let mut all = vec![class.to_owned()];
        let mut at = 0;
        while let Some(class) = all.get(at).filter(|_| all.len() < MOST_KINDS) {
            let mut bases: Vec<String> = Vec::new();
            if let Some(known) = self.index.classes.get(class) {
                let source = self.source_of(known.text);
                let list = known.bases.map(parts).unwrap_or_default();
                bases.extend(list.into_iter().map(|base| plain(text(base, source))));
            } else if let Some(base) = base_in_library(class) {
                bases.push(base.to_owned());
            }
            bases.retain(|base| !all.contains(base));
            all.extend(bases);
            at += 1;
        }
        all
    }
}

/// Whether the standard library has a class of exceptions of that name.
fn is_of_library(class: &str) -> bool {
    class == "exception" || base_in_library(class).is_some()
}

/// What a class of exceptions of the standard library is derived from.
fn base_in_library(class: &str) -> Option<&'static str> {
    Some(match class {
        "invalid_argument" | "domain_error" | "length_error" | "out_of_range" => "logic_error",
        "range_error" | "overflow_error" | "underflow_error" | "system_error" => "runtime_error",
        "logic_error"
        | "runtime_error"
        | "bad_alloc"
        | "bad_cast"
        | "bad_function_call"
        | "bad_optional_access"
        | "bad_variant_access" => "exception",
        _ => return None,
    })
}
