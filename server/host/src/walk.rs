//! Statements of host functions.

use std::rc::Rc;

use warplens_syntax::nodes::SwitchStatement;
use warplens_syntax::{BinaryOperator, Field, Kind, Node, has_word, stop};

use super::arguments::Argument;
use super::containers::whole;
use super::events::{MemoryKind, Side};
use super::index::{class_name, declared_name, plain};
use super::leaving::Leaving;
use super::library_types::LibraryType;
use super::nodes::{names_fields, parts, quoted, text};
use super::objects::arguments_of_type;
use super::state::{Breakable, Host};
use super::value::{GAP, MAP, MOST_ELEMENTS, Meaning, Place, Step, Value, binary};
use warplens_hir::HostName;
use warplens_hir::{Source, default_value, following, is_cut_off};
use warplens_ir::Type;

/// Elements of an array that nothing was put into and that is gone through one by one, at most.
const MOST_BLANK: usize = 64;

/// Loops that are walked a second time nest this deep at most.
const MOST_AGAIN: u32 = 2;

impl Host<'_> {
    /// Walks a statement; false where nothing after it is come to.
    pub(super) fn statement(&mut self, node: Node, source: Source) -> bool {
        stop::check();
        if self.is_too_deep() {
            self.forget_everything();
            return true;
        }
        if self.spent() || self.leaving.is_some() {
            return false;
        }
        self.depth += 1;
        let goes_on = self.statement_inner(node, source);
        self.depth -= 1;
        goes_on && self.leaving.is_none()
    }

    fn statement_inner(&mut self, node: Node, source: Source) -> bool {
        let field = |name: Field| node.field(name);
        // A pragma between the head of a loop and its body.
        if node.byte_range().is_empty() && is_cut_off(node) {
            return self.in_order_of(&following(node), source);
        }
        match node.kind() {
            Kind::CompoundStatement => self.block(node, source),
            Kind::Declaration => {
                self.declaration(node, source);
                true
            }
            Kind::TypeDefinition | Kind::AliasDeclaration | Kind::EnumSpecifier => {
                let found = self
                    .lowered(&[node], source, |lowering| {
                        lowering.host_local_types(node, source)
                    })
                    .unwrap_or_default();
                for (name, meaning) in found {
                    let meaning = match meaning {
                        HostName::Type(ty) => Meaning::Type(ty),
                        HostName::Variable(ty, value) => {
                            let value = value.map_or(Value::Unknown, |value| Value::of(value, &ty));
                            Meaning::Slot(self.slot(ty, value, true))
                        }
                    };
                    self.bind(&name, meaning);
                }
                true
            }
            Kind::ExpressionStatement => {
                let Some(inner) = parts(node).into_iter().next() else {
                    return true;
                };
                if let Some((name, value)) = pointer_to_function(inner) {
                    let value = value.map_or(Value::Unknown, |value| self.eval(value, source));
                    let slot = self.slot(Type::Unknown(String::new()), value, false);
                    self.bind(text(name, source), Meaning::Slot(slot));
                    return true;
                }
                self.eval(inner, source);
                let ends = never_returns(inner, source);
                if ends && self.running.is_some() && self.leaving.is_none() {
                    self.leaving = Some(Leaving::Ended);
                }
                !ends
            }
            Kind::IfStatement => self.if_statement(node, source),
            Kind::ForStatement => self.scoped(|host| {
                if let Some(initializer) = field(Field::Initializer) {
                    match initializer.kind() {
                        Kind::Declaration => {
                            host.statement(initializer, source);
                        }
                        _ => {
                            host.eval(initializer, source);
                        }
                    }
                }
                host.loops(
                    field(Field::Condition),
                    field(Field::Update),
                    field(Field::Body),
                    source,
                )
            }),
            Kind::WhileStatement => {
                self.loops(field(Field::Condition), None, field(Field::Body), source)
            }
            Kind::DoStatement => self.do_loop(field(Field::Body), field(Field::Condition), source),
            Kind::ForRangeLoop => self.scoped(|host| host.range_loop(node, source)),
            Kind::SwitchStatement => self.switch(node, source),
            Kind::ReturnStatement => {
                let value = parts(node).into_iter().next();
                let value = value.map(|value| match self.container_named(value, source) {
                    Some(slot) => Value::Container(slot),
                    None => self.eval(value, source),
                });
                if self.leaving.is_none() {
                    self.returned(value);
                }
                false
            }
            Kind::BreakStatement => {
                self.broken();
                false
            }
            Kind::ContinueStatement => {
                if self.running.is_some() {
                    self.continued();
                }
                false
            }
            Kind::ThrowStatement => {
                self.leaves_loops(0);
                self.throw_statement(node, source);
                false
            }
            Kind::GotoStatement => self.jumps(node, source),
            Kind::CoReturnStatement => {
                self.leaves_loops(0);
                false
            }
            Kind::LabeledStatement => self.labeled(node, source),
            Kind::TryStatement if self.running.is_some() => self.attempt(node, source),
            Kind::TryStatement => {
                let goes_on = field(Field::Body).is_none_or(|body| self.statement(body, source));
                for clause in parts(node) {
                    if clause.kind() == Kind::CatchClause
                        && let Some(body) = clause.field(Field::Body)
                    {
                        self.aside(|host| {
                            host.statement(body, source);
                        });
                    }
                }
                goes_on
            }
            // One that no `switch` holds directly: within a loop or an `if` of its body.
            Kind::CaseStatement => {
                let label = node.field(Field::Value);
                let mut all = parts(node);
                all.retain(|part| Some(*part) != label);
                self.sequence(&all, source)
            }
            Kind::ElseClause
            | Kind::AttributedStatement
            | Kind::Error
            | Kind::NamespaceDefinition
            | Kind::DeclarationList
            | Kind::PreprocIf
            | Kind::PreprocIfdef
            | Kind::PreprocElse => {
                let mut goes_on = true;
                for part in parts(node) {
                    goes_on = self.statement(part, source);
                }
                goes_on
            }
            Kind::Comment
            | Kind::UsingDeclaration
            | Kind::StaticAssertDeclaration
            | Kind::StructSpecifier
            | Kind::ClassSpecifier
            | Kind::UnionSpecifier
            | Kind::FunctionDefinition => true,
            _ => {
                self.eval(node, source);
                true
            }
        }
    }

    pub(super) fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        if let Some(frame) = self.frames.last_mut() {
            frame.scopes.push(super::value::Scope::default());
        }
        let result = read(self);
        if let Some(frame) = self.frames.last_mut() {
            frame.scopes.pop();
        }
        result
    }

    fn block(&mut self, node: Node, source: Source) -> bool {
        self.scoped(|host| {
            let all = parts(node);
            host.sequence(&all, source)
        })
    }

    fn sequence(&mut self, all: &[Node], source: Source) -> bool {
        if self.running.is_some() {
            return self.run_sequence(all, source);
        }
        for (at, part) in all.iter().enumerate() {
            if !self.statement(*part, source) {
                let rest = &all[at + 1..];
                if rest.is_empty() || self.is_spent() {
                    return false;
                }
                // Labels are come to by jumps.
                if rest
                    .iter()
                    .any(|part| part.kind() == Kind::LabeledStatement)
                {
                    self.forget_everything();
                    return self.sequence(rest, source);
                }
                self.aside(|host| {
                    host.sequence(rest, source);
                });
                return false;
            }
        }
        true
    }

    /// Walks what the program does not come to; its effects are taken back.
    pub(super) fn aside(&mut self, walk: impl FnOnce(&mut Self)) {
        // A run comes there or it does not.
        if self.running.is_some() {
            return;
        }
        let mark = self.mark();
        self.asides += 1;
        self.beside += 1;
        walk(self);
        self.beside -= 1;
        self.take_back(mark);
    }

    /// The program leaves all loops of the function here but for the outermost, by how many loops and `switch`es these are.
    pub(super) fn leaves_loops(&mut self, outermost: usize) {
        if self.running.is_none() {
            return;
        }
        let inner = self.breakables.iter_mut().skip(outermost);
        let loops = inner.filter(|around| around.is_loop);
        let loops = loops.map(|around| around.leaves += 1).count();
        self.may_end_here(loops);
    }

    fn returned(&mut self, value: Option<Value>) {
        self.leaves_loops(0);
        let (beside, Some(frame)) = (self.beside, self.frames.last()) else {
            return;
        };
        if frame.beside != beside {
            return;
        }
        let mark = frame.mark;
        let changes = self.changes(mark);
        let value = value.unwrap_or(Value::Unknown);
        let before = self.frames.last().and_then(|frame| frame.result.clone());
        let result = match &before {
            Some(before) => {
                let result = before.join(&value);
                self.loses(before, &result);
                self.loses(&value, &result);
                result
            }
            None => value,
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.result = Some(result);
            frame.returns.push(changes);
        }
    }

    fn broken(&mut self) {
        let beside = self.beside;
        let Some(mark) = self
            .breakables
            .last()
            .filter(|breakable| breakable.beside == beside)
            .map(|breakable| breakable.mark)
        else {
            return;
        };
        let changes = self.changes(mark);
        if let Some(breakable) = self.breakables.last_mut() {
            breakable.states.push(changes);
            let loops = usize::from(breakable.is_loop);
            self.may_end_here(loops);
        }
    }

    // ---- conditions ----------------------------------------------------------------------------

    fn if_statement(&mut self, node: Node, source: Source) -> bool {
        self.scoped(|host| {
            let field = |name: Field| node.field(name);
            let Some(condition) = field(Field::Condition) else {
                return true;
            };
            let value = host.condition(condition, source);
            let (then, otherwise) = (field(Field::Consequence), field(Field::Alternative));
            host.either(
                value,
                condition,
                source,
                |host| then.is_none_or(|then| host.statement(then, source)),
                |host| {
                    otherwise.is_none_or(|otherwise| {
                        let inner = match otherwise.kind() {
                            Kind::ElseClause => parts(otherwise).into_iter().next(),
                            _ => Some(otherwise),
                        };
                        inner.is_none_or(|inner| host.statement(inner, source))
                    })
                },
            )
        })
    }

    /// The value of a condition: `(…)`, or `(int n = f(); n > 0)`.
    pub(super) fn condition(&mut self, node: Node, source: Source) -> Option<bool> {
        if node.kind() == Kind::ConditionClause {
            node.field(Field::Value)?;
        }
        let value = self.eval(node, source);
        self.truth_of(&value)
    }

    /// Walks both sides of a condition; false where neither goes on.
    pub(super) fn either(
        &mut self,
        value: Option<bool>,
        condition: Node,
        source: Source,
        then: impl FnOnce(&mut Self) -> bool,
        otherwise: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        // The condition threw.
        if self.leaving.is_some() {
            return false;
        }
        match value {
            Some(true) => {
                self.aside(|host| {
                    host.suppose(condition, false, true, source);
                    otherwise(host);
                });
                then(self)
            }
            Some(false) => {
                self.aside(|host| {
                    host.suppose(condition, true, true, source);
                    then(host);
                });
                otherwise(self)
            }
            None => {
                let mark = self.mark();
                self.enter(Some(condition), Side::Then, true, source);
                self.suppose(condition, true, false, source);
                let (first, first_left) = self.alternative(then);
                let first_changes = self.changes(mark);
                self.take_back(mark);
                self.leave();
                self.enter(Some(condition), Side::Else, true, source);
                self.suppose(condition, false, false, source);
                let (second, second_left) = self.alternative(otherwise);
                self.leave();
                if !first {
                    self.past_alternative(first_left, condition, Side::Else, source);
                    return second;
                }
                let second_changes = self.changes(mark);
                self.take_back(mark);
                if second {
                    self.join(&[first_changes, second_changes]);
                } else {
                    self.past_alternative(second_left, condition, Side::Then, source);
                    self.join(&[first_changes]);
                }
                true
            }
        }
    }

    /// What a condition's outcome says of variables: `n == 256`. `against`: it is known to come out otherwise,
    /// and what it depends on must be forgotten first.
    fn suppose(&mut self, condition: Node, outcome: bool, against: bool, source: Source) {
        if against {
            let mut open = vec![condition];
            while let Some(node) = open.pop() {
                if self.spent() {
                    return;
                }
                if node.kind() == Kind::Identifier
                    && let Some(Meaning::Slot(_) | Meaning::Place(_)) =
                        self.local(text(node, source))
                    && let Some(place) = self.place_named(text(node, source))
                {
                    self.forget_at(&place);
                }
                open.extend(parts(node));
            }
        }
        match condition.kind() {
            Kind::ConditionClause => {
                if let Some(value) = condition.field(Field::Value) {
                    self.suppose(value, outcome, false, source);
                }
            }
            Kind::ParenthesizedExpression => {
                if let Some(inner) = parts(condition).into_iter().next() {
                    self.suppose(inner, outcome, false, source);
                }
            }
            Kind::BinaryExpression => {
                let (Some(left), Some(right), Some(operator)) = (
                    condition.field(Field::Left),
                    condition.field(Field::Right),
                    warplens_syntax::binary(condition),
                ) else {
                    return;
                };
                match (operator, outcome) {
                    (BinaryOperator::And, true) | (BinaryOperator::Or, false) => {
                        self.suppose(left, outcome, false, source);
                        self.suppose(right, outcome, false, source);
                    }
                    (BinaryOperator::Equal, true) | (BinaryOperator::NotEqual, false) => {
                        for (variable, other) in [(left, right), (right, left)] {
                            if variable.kind() != Kind::Identifier {
                                continue;
                            }
                            let Some(place) = self.place_named(text(variable, source)) else {
                                continue;
                            };
                            if self.read(&place).is_open()
                                && !matches!(self.slots[place.slot].ty, Type::Pointer(..))
                                && matches!(
                                    other.kind(),
                                    Kind::NumberLiteral
                                        | Kind::Identifier
                                        | Kind::True
                                        | Kind::False
                                        | Kind::CharLiteral
                                )
                                && let value @ Value::Int(..) = self.eval(other, source)
                            {
                                self.write(&place, value);
                            }
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    // ---- loops ---------------------------------------------------------------------------------

    fn loops(
        &mut self,
        condition: Option<Node>,
        update: Option<Node>,
        body: Option<Node>,
        source: Source,
    ) -> bool {
        if self.running.is_some() {
            return self.run_loop(condition, update, body, source, false);
        }
        let value = match condition {
            Some(condition) => self.condition(condition, source),
            None => Some(true),
        };
        if value == Some(false) {
            self.aside(|host| {
                if let Some(condition) = condition {
                    host.suppose(condition, true, true, source);
                }
                if let Some(body) = body {
                    host.statement(body, source);
                }
            });
            return true;
        }
        let touched = self.touched_mark();
        let breakable = self.breakable(true);
        self.breakables.push(breakable);
        let (asides, met) = (self.asides, self.sites.len());
        let goes_on = body.is_none_or(|body| self.statement(body, source));
        if let Some(update) = update {
            self.eval(update, source);
        }
        // Once is all where the condition is known not to hold any more.
        let once = goes_on
            && value == Some(true)
            && condition.is_some_and(|condition| self.condition(condition, source) == Some(false));
        if once {
            let breaks = self
                .breakables
                .pop()
                .map(|breakable| breakable.states)
                .unwrap_or_default();
            if !breaks.is_empty() {
                self.forget_touched(touched);
            }
            return true;
        }
        if goes_on && self.sites.len() != met {
            self.second_turn(body, met, source);
        }
        // What the first time round did not come to, another may.
        let skipped = !goes_on || self.asides != asides;
        if skipped && self.sites.len() != met && self.again < MOST_AGAIN {
            self.forget_touched(touched);
            self.again += 1;
            if let Some(body) = body {
                self.statement(body, source);
            }
            self.again -= 1;
        }
        self.breakables.pop();
        self.forget_touched(touched);
        true
    }

    /// The turn behind the first: launches of the first turn, from `met` on, that have another block in it are told to.
    fn second_turn(&mut self, body: Option<Node>, met: usize, source: Source) {
        if self.again >= MOST_AGAIN {
            return;
        }
        let first = self.sites.len();
        self.again += 1;
        if let Some(body) = body {
            self.statement(body, source);
        }
        self.again -= 1;
        let second = self.sites.split_off(first);
        for other in second.into_iter().map(|met| met.site) {
            let same = |met: &&mut crate::Met| {
                met.site.kernel == other.kernel
                    && met.site.range == other.range
                    && met.site.through == other.through
            };
            for met in self.sites[met..].iter_mut().filter(same) {
                let another = other.block.is_some() && other.block != met.site.block;
                met.site.block_varies |= other.block_varies || another;
            }
        }
    }

    fn do_loop(&mut self, body: Option<Node>, condition: Option<Node>, source: Source) -> bool {
        if self.running.is_some() {
            return self.run_loop(condition, None, body, source, true);
        }
        let touched = self.touched_mark();
        let breakable = self.breakable(true);
        self.breakables.push(breakable);
        let goes_on = body.is_none_or(|body| self.statement(body, source));
        let again = condition.and_then(|condition| self.condition(condition, source));
        let breaks = self
            .breakables
            .pop()
            .map(|breakable| breakable.states)
            .unwrap_or_default();
        if goes_on && again == Some(false) {
            if !breaks.is_empty() {
                self.forget_touched(touched);
            }
            return true;
        }
        self.forget_touched(touched);
        // `do { … return; } while (0)` leads nowhere.
        goes_on || again != Some(false) || !breaks.is_empty()
    }

    fn range_loop(&mut self, node: Node, source: Source) -> bool {
        let field = |name: Field| node.field(name);
        if self.elements_on_numbers(node, source) {
            return true;
        }
        let touched = self.touched_mark();
        let range = field(Field::Right).map_or(Value::Unknown, |right| {
            match self.container_named(right, source) {
                Some(slot) => Value::Container(slot),
                None => self.eval(right, source),
            }
        });
        let over = match range {
            Value::Container(slot) => Some(whole(slot)),
            // An array by its name, which is the address of its first element.
            Value::Address(ref place)
                if place.path == [Step::Index(Some(0))] && self.slots[place.slot].decays =>
            {
                Some(whole(place.slot))
            }
            Value::Address(ref place) => Some(place.clone()),
            _ => None,
        };
        let over = match (over, field(Field::Right)) {
            (None, Some(right)) if matches!(range, Value::Record(_) | Value::Unknown) => {
                self.place(right, source)
            }
            (over, _) => over,
        };
        let mut values = match &over {
            Some(place) => self.read(place),
            None => range,
        };
        // A short array that nothing was put into has its elements all the same.
        if let (Value::Unknown, Some(place)) = (&values, &over)
            && self.running.is_some()
            && let Some(length) = self.length_of(place).and_then(|length| length.as_int())
            && let Ok(length @ 1..=MOST_BLANK) = usize::try_from(length)
        {
            values = Value::list(vec![Value::Unknown; length]);
            self.write(place, values.clone());
        }
        // A map, a set, a text: what their elements are.
        let entries = self.in_order(&values);
        let keys: Option<Vec<String>> = entries
            .as_ref()
            .map(|entries| entries.iter().map(|(key, _)| key.clone()).collect());
        let entries = entries.map(|all| all.into_iter().map(|(_, entry)| entry).collect());
        let values = match entries.or_else(|| letters(&values)) {
            Some(elements) => Value::list(elements),
            None => values,
        };
        let mut element = None;
        if let Some(declarator) = field(Field::Declarator) {
            let first = match &values {
                Value::Array(values) => values.first().cloned().unwrap_or(Value::Unknown),
                _ => Value::Unknown,
            };
            if let Some(names) = structured_binding(declarator) {
                let elements = names
                    .into_iter()
                    .map(|name| {
                        let ty = Type::Unknown(String::new());
                        let slot = self.slot(ty, Value::Unknown, false);
                        self.bind(text(name, source), Meaning::Slot(slot));
                        slot
                    })
                    .collect();
                element = Some(Element::Parts(elements));
            } else {
                let name = declared_name(declarator);
                let ty = self.declared_type(field(Field::Type), declarator, source);
                let slot = self.slot(ty, first, false);
                self.bind(text(name, source), Meaning::Slot(slot));
                element = Some(Element::Whole(slot));
            }
        }
        // What is written through a reference is written to the array.
        let head = &source.parsed.text[node.start_byte()
            ..field(Field::Right).map_or(node.end_byte(), |right| right.start_byte())];
        let written = over
            .clone()
            .filter(|_| head.contains('&') && !has_word(head, "const"));
        if self.running.is_some()
            && let Some(body) = field(Field::Body)
        {
            if let Value::Array(values) = &values {
                let written = written.as_ref().map(|place| (place, keys.as_deref()));
                return self.run_over(values, element.as_ref(), written, node, source);
            }
            let length = over.as_ref().and_then(|place| self.length_of(place));
            let length = length.and_then(|length| u64::try_from(length.as_int()?).ok());
            if let Some(length) = length {
                let (element, written) = (element.as_ref(), written.as_ref());
                return self.run_over_unknown(length, element, written, body, node, source);
            }
        }
        let breakable = self.breakable(true);
        self.breakables.push(breakable);
        self.enter(Some(node), Side::Loop, true, source);
        if let Some(body) = field(Field::Body) {
            self.perhaps(|host| host.statement(body, source));
        }
        self.leave();
        self.breakables.pop();
        self.forget_touched(touched);
        if let Some(place) = written {
            self.forget_at(&place);
        }
        true
    }

    // ---- switch --------------------------------------------------------------------------------

    fn switch(&mut self, node: Node, source: Source) -> bool {
        let Some(switch) = SwitchStatement::cast(node) else {
            return true;
        };
        let (Some(condition), Some(_)) = (switch.condition(), switch.body()) else {
            return true;
        };
        let inner = condition.field(Field::Value).unwrap_or(condition);
        let value = self.eval(condition, source);
        let variable = match inner.kind() {
            Kind::Identifier => self.place_named(text(inner, source)),
            _ => None,
        };
        let cases = switch.cases();
        let labels: Vec<Option<Value>> = cases
            .iter()
            .map(|case| Some(self.eval(case.label?, source)))
            .collect();
        if self.leaving.is_some() {
            return false;
        }
        let known = value.as_int();
        let chosen = known.and_then(|known| {
            if labels
                .iter()
                .any(|label| label.as_ref().is_some_and(|label| label.as_int().is_none()))
            {
                return None;
            }
            labels
                .iter()
                .position(|label| label.as_ref().and_then(Value::as_int) == Some(known))
                .or_else(|| labels.iter().position(Option::is_none))
                .or(Some(usize::MAX))
        });
        let mark = self.mark();
        let mut ends = Vec::new();
        let mut taken = None;
        for at in 0..cases.len() {
            if self.is_spent() {
                break;
            }
            // A case that another one runs into is walked with it as well.
            let live = chosen.is_none_or(|chosen| chosen == at);
            let run = |host: &mut Self| {
                if let (Some(place), Some(label @ Value::Int(..))) = (&variable, &labels[at])
                    && chosen != Some(at)
                {
                    host.write(place, label.clone());
                } else if let (Some(place), None, None) = (&variable, &labels[at], chosen) {
                    host.forget_at(place);
                }
                let breakable = host.breakable(false);
                host.breakables.push(Breakable { mark, ..breakable });
                if chosen.is_none() {
                    let side = cases[at].label.map_or(Side::Default, |label| {
                        Side::Case(quoted(text(label, source)))
                    });
                    host.enter(Some(condition), side, true, source);
                }
                let goes_on =
                    (cases[at..].iter()).all(|case| host.sequence(&case.statements, source));
                if chosen.is_none() {
                    host.leave();
                }
                let mut states = host
                    .breakables
                    .pop()
                    .map(|breakable| breakable.states)
                    .unwrap_or_default();
                if goes_on {
                    states.push(host.changes(mark));
                }
                states
            };
            if live {
                let mut states = if chosen.is_some() {
                    run(self)
                } else {
                    self.perhaps(run)
                };
                // It is left with what the case did.
                if self.leaving.is_some() && states.is_empty() {
                    return false;
                }
                self.take_back(mark);
                if chosen.is_some() {
                    taken = Some(states);
                } else {
                    ends.append(&mut states);
                }
            } else {
                self.aside(|host| {
                    run(host);
                });
            }
        }
        if let Some(taken) = taken {
            let goes_on = !taken.is_empty();
            if goes_on {
                self.only_perhaps();
            }
            self.join(&taken);
            return goes_on;
        }
        if chosen.is_none() {
            if labels.iter().all(Option::is_some) {
                ends.push(super::state::Changes::default());
            }
            let goes_on = !ends.is_empty();
            self.join(&ends);
            return goes_on;
        }
        true
    }

    // ---- declarations --------------------------------------------------------------------------

    fn declaration(&mut self, node: Node, source: Source) {
        let declarators: Vec<Node> = node.fields(Field::Declarator).collect();
        let head = text(node, source);
        let head = &head[..head.find(['=', ';', '{', '(']).unwrap_or(head.len())];
        let constant =
            !head.contains('*') && (has_word(head, "const") || has_word(head, "constexpr"));
        for declarator in declarators {
            let name = text(declared_name(declarator), source).to_owned();
            let inner = declarator.field(Field::Declarator).unwrap_or(declarator);
            if self.running.is_some()
                && let Some(names) = structured_binding(inner)
            {
                self.declare_parts(&names, declarator.field(Field::Value), inner, source);
                continue;
            }
            // A reference is another name.
            if declarator.kind() == Kind::InitDeclarator
                && declarator
                    .field(Field::Declarator)
                    .is_some_and(|inner| inner.kind() == Kind::ReferenceDeclarator)
                && let Some(value) = declarator.field(Field::Value)
            {
                if let Some(place) = self.place(value, source) {
                    let meaning = if place.path.is_empty() {
                        Meaning::Slot(place.slot)
                    } else {
                        Meaning::Place(place)
                    };
                    self.bind(&name, meaning);
                    continue;
                }
                // What a call gives by reference may be written through it.
                if !constant {
                    self.forget_returned(value, false, source);
                }
            }
            let stays = self.running.is_some() && !constant && has_word(head, "static");
            let key = (
                std::sync::Arc::as_ptr(source.parsed) as usize,
                declarator.start_byte(),
            );
            if let Some(&slot) = self.statics.get(&key).filter(|_| stays) {
                self.bind(&name, Meaning::Slot(slot));
                continue;
            }
            if let Some(slot) = self.declare(node, declarator, source) {
                self.slots[slot].constant = constant;
                self.bind(&name, Meaning::Slot(slot));
                if stays {
                    self.statics.insert(key, slot);
                }
            }
        }
    }

    /// `auto [a, b] = value`.
    fn declare_parts(
        &mut self,
        names: &[Node],
        value: Option<Node>,
        declarator: Node,
        source: Source,
    ) {
        let by_reference = declarator.kind() == Kind::ReferenceDeclarator;
        let place = value.filter(|_| by_reference);
        let place = place.and_then(|value| self.place(value, source));
        let whole = match (&place, value) {
            (Some(place), _) => self.read(place),
            (None, Some(value)) => match self.eval(value, source) {
                Value::Address(place) => self.read(&place),
                Value::Container(slot) => self.slots[slot].value.clone(),
                value => value,
            },
            (None, None) => Value::Unknown,
        };
        for (at, name) in names.iter().enumerate() {
            let step = match &whole {
                Value::Record(record) => match record.fields.get(at) {
                    Some((name, _)) => Step::Field(name.clone()),
                    None => Step::Index(None),
                },
                _ => Step::Index(Some(at)),
            };
            let meaning = match &place {
                Some(place) => {
                    let mut place = place.clone();
                    place.path.push(step);
                    Meaning::Place(self.resolved(place))
                }
                None => {
                    let ty = Type::Unknown(String::new());
                    match self.given_away(whole.at(&step)) {
                        Value::Container(slot) => Meaning::Slot(slot),
                        part => Meaning::Slot(self.slot(ty, part, false)),
                    }
                }
            };
            self.bind(text(*name, source), meaning);
        }
    }

    /// The type that a declarator declares.
    pub(super) fn declared_type(
        &mut self,
        ty: Option<Node>,
        declarator: Node,
        source: Source,
    ) -> Type {
        let Some(ty) = ty else {
            return Type::Unknown(String::new());
        };
        if let Some(element) = self.element_of_container(ty, source) {
            return Type::Array(std::sync::Arc::new(element), None);
        }
        self.lowered_type(&[ty, declarator], source, |lowering| {
            let base = lowering.host_type(ty, source);
            (lowering.host_declarator(declarator, base, source), None)
        })
        .map_or(Type::Unknown(String::new()), |(ty, _)| ty)
    }

    /// A list as `std::array` holds it: behind what is given there are zeros. It is as long as its type says.
    fn whole_array(
        &mut self,
        slot: usize,
        ty: Option<Node>,
        value: Value,
        source: Source,
    ) -> Value {
        let Value::Array(given) = &value else {
            return value;
        };
        let count = ty.and_then(arguments_of_type).and_then(|list| {
            let count = parts(list).into_iter().nth(1)?;
            usize::try_from(self.eval(count, source).as_int()?).ok()
        });
        match count {
            Some(count) if count == given.len() => value,
            Some(count) if count <= MOST_ELEMENTS => {
                let zero = match self.slots[slot].ty.element() {
                    Some(ty @ (Type::Int { .. } | Type::Float { .. })) => {
                        Value::int(0).converted(ty)
                    }
                    _ => Value::Unknown,
                };
                let mut all = (**given).clone();
                all.resize(count, zero);
                Value::list(all)
            }
            _ => Value::Unknown,
        }
    }

    /// `T` of `std::vector<T>`, `thrust::device_vector<T>`.
    pub(super) fn element_of_container(&mut self, ty: Node, source: Source) -> Option<Type> {
        let mut node = ty;
        for _ in 0..4 {
            if matches!(node.kind(), Kind::TemplateType | Kind::TemplateFunction) {
                break;
            }
            node = node.field(Field::Name)?;
        }
        let name = node.field(Field::Name)?;
        let name = text(name, source);
        let grows = matches!(name, "deque" | "list" | "initializer_list") && self.running.is_some();
        if !(name.ends_with("vector")
            || grows
            || matches!(name, "array" | "unique_ptr" | "shared_ptr"))
        {
            return None;
        }
        let first = parts(node.field(Field::Arguments)?).into_iter().next()?;
        // A smart pointer to one object is a pointer.
        if name.ends_with("_ptr")
            && self.running.is_some()
            && first.field(Field::Declarator).is_none()
        {
            let inner = first.field(Field::Type).unwrap_or(first);
            let class = class_name(inner, &source.parsed.text);
            if self.index.classes.contains_key(&class) || self.kept_by(inner, source).is_some() {
                return None;
            }
        }
        let ty = self.lowered(&[first], source, |lowering| {
            lowering.host_type(first, source)
        })?;
        Some(match ty {
            Type::Array(element, None) => (*element).clone(),
            ty => ty,
        })
    }

    /// A vector of the device has its memory; made of one of the host it is a copy, as is one of the host made of it.
    fn vector_declared(&mut self, slot: usize, ty: Node, declarator: Node, source: Source) {
        if class_name(ty, &source.parsed.text).ends_with("device_vector") {
            self.slots[slot].memory = Some(MemoryKind::Device);
        }
        // `d(h)` reads as a function of a type `h`.
        let value = declarator
            .field(Field::Value)
            .or_else(|| declarator.field(Field::Parameters));
        let first = value.and_then(|value| match value.kind() {
            Kind::ParameterList => parts(value).into_iter().next()?.field(Field::Type),
            Kind::ArgumentList | Kind::InitializerList => parts(value).into_iter().next(),
            _ => Some(value),
        });
        let Some(first) = first else {
            return;
        };
        let from = self.container_named(first, source).or_else(|| {
            // `h.begin(), h.end()`
            let called = first.field(Field::Function)?.field(Field::Argument)?;
            self.container_named(called, source)
        });
        if let Some(from) = from {
            self.vector_copied(slot, from, declarator, source);
        }
    }

    /// A variable with its initial value; `None` for what is not one.
    pub(super) fn declare(
        &mut self,
        node: Node,
        declarator: Node,
        source: Source,
    ) -> Option<usize> {
        let ty = node.field(Field::Type);
        if let Some(ty) = ty
            && let Some(kept) = self.kept_by(ty, source)
            && let Some(slot) = self.declare_standard(&kept, declarator, node, source)
        {
            return Some(slot);
        }
        let slot = self.declare_other(node, declarator, source)?;
        if self.running.is_some()
            && self.is_container(&whole(slot))
            && let Some(ty) = ty
        {
            self.vector_declared(slot, ty, declarator, source);
        }
        if self.running.is_some()
            && self.is_container(&whole(slot))
            && let Some(ty) = ty
            && let Some(kept) = self.kept_by_elements(ty, source)
        {
            // A list in braces has lists in braces.
            if let (LibraryType::Tuple(..), Value::Array(values)) =
                (&*kept, &self.slots[slot].value)
            {
                let values = Rc::clone(values);
                let made = values
                    .iter()
                    .map(|one| self.kept_as(&kept, one.clone(), source));
                let made = Value::list(made.collect());
                self.slots[slot].value = made;
            }
            self.slots[slot].kept = Some(kept);
        }
        Some(slot)
    }

    /// The same for an object of the standard library; `None` where the declarator says that it is none.
    fn declare_standard(
        &mut self,
        kept: &LibraryType,
        declarator: Node,
        node: Node,
        source: Source,
    ) -> Option<usize> {
        let (name, value) = match declarator.kind() {
            Kind::InitDeclarator => (
                declarator.field(Field::Declarator)?,
                declarator.field(Field::Value),
            ),
            _ => (declarator, default_value(node, declarator, source)),
        };
        if !matches!(name.kind(), Kind::Identifier | Kind::FieldIdentifier) {
            return None;
        }
        let slot = self.slot(Type::Unknown(String::new()), Value::Unknown, false);
        let made = match value.map(|value| (value, value.kind())) {
            None => self.standard_object(kept, &[], true, source),
            Some((list, kind @ (Kind::ArgumentList | Kind::InitializerList))) => {
                let given = self.arguments(list, source);
                self.standard_object(kept, &given, kind == Kind::InitializerList, source)
            }
            Some((value, _)) => {
                let value = self.eval(value, source);
                self.kept_as(kept, value, source)
            }
        };
        self.slots[slot].value = made;
        Some(slot)
    }

    fn declare_other(&mut self, node: Node, declarator: Node, source: Source) -> Option<usize> {
        let ty_node = node.field(Field::Type);
        let class = ty_node.map_or(String::new(), |ty| class_name(ty, &source.parsed.text));
        // Only where an object is made: the arguments of its template are read.
        let instance = |host: &mut Self| host.instance(ty_node, source);
        if declarator.kind() == Kind::FunctionDeclarator {
            let inner = declarator.field(Field::Declarator)?;
            if inner.kind() == Kind::ParenthesizedDeclarator {
                // A pointer to a function.
                return Some(self.slot(Type::Unknown(String::new()), Value::Unknown, false));
            }
            // `dim3 block(TILE, TILE)` reads as a function of two types.
            let list = declarator.field(Field::Parameters)?;
            let mut given = Vec::new();
            for parameter in parts(list) {
                let name = parameter.field(Field::Type)?;
                if name.kind() == Kind::PrimitiveType {
                    return None;
                }
                // `size[0]` reads as an array of them.
                let value = match parameter.field(Field::Declarator) {
                    None => self.eval(name, source),
                    Some(array) if array.kind() == Kind::AbstractArrayDeclarator => {
                        let index = array.field(Field::Size)?;
                        let index = self.eval(index, source).as_int()?;
                        let index = Step::Index(Some(usize::try_from(index).ok()?));
                        match self.eval(name, source) {
                            Value::Address(place) => self.read(&place).at(&index),
                            value => value.at(&index),
                        }
                    }
                    // `n * m` reads as a pointer to `n`.
                    Some(pointer) if pointer.kind() == Kind::PointerDeclarator => {
                        let factor = pointer.field(Field::Declarator)?;
                        if factor.kind() != Kind::Identifier {
                            return None;
                        }
                        let value = self.eval(name, source);
                        let factor = self.eval(factor, source);
                        binary(BinaryOperator::Multiply, &value, &factor)
                    }
                    Some(_) => return None,
                };
                let whole = parameter.field(Field::Declarator).is_none();
                given.push(Argument {
                    value,
                    place: if whole {
                        self.place_named(text(name, source))
                    } else {
                        None
                    },
                    node: None,
                });
            }
            if given.is_empty() {
                return None;
            }
            let ty = self.declared_type(ty_node, inner, source);
            let container = matches!(ty, Type::Array(_, None));
            let slot = self.slot(ty, Value::Unknown, false);
            if container && self.running.is_some() {
                self.slots[slot].decays = false;
                self.fill_container(slot, &given);
                return Some(slot);
            }
            let class = instance(self);
            let value = self.constructed(&class, &given, false, slot, source);
            self.slots[slot].value = value;
            return Some(slot);
        }
        let declared = match declarator.kind() {
            Kind::InitDeclarator => declarator.field(Field::Declarator).unwrap_or(declarator),
            _ => declarator,
        };
        // `int *all[3]` is an array of pointers.
        let mut inner = declared;
        while inner.kind() == Kind::PointerDeclarator
            && let Some(next) = inner.field(Field::Declarator)
        {
            inner = next;
        }
        let array = inner.kind() == Kind::ArrayDeclarator;
        let plain_pointer = !array && declared.kind() == Kind::PointerDeclarator;
        let value_node = declarator
            .field(Field::Value)
            .or_else(|| declarator.field(Field::DefaultValue))
            .or_else(|| default_value(node, declarator, source));
        let mut ty = self.declared_type(ty_node, declarator, source);
        let container = !array && matches!(ty, Type::Array(..));
        let auto = matches!(&ty, Type::Unknown(name) if name == "auto");
        let Some(value_node) = value_node else {
            let slot = self.slot(ty, Value::Unknown, false);
            self.slots[slot].decays = array;
            if container && self.running.is_some() {
                // A vector begins without elements.
                if matches!(self.slots[slot].ty, Type::Array(_, None)) && class != "array" {
                    self.slots[slot].value = Value::list(Vec::new());
                }
                return Some(slot);
            }
            let map = match &self.slots[slot].ty {
                Type::Unknown(name) => is_map(name),
                _ => false,
            };
            if map && self.running.is_some() && !plain_pointer && !array {
                self.slots[slot].value = Value::record(MAP, Vec::new());
            } else if !plain_pointer && !array {
                let class = instance(self);
                let value = self.constructed(&class, &[], false, slot, source);
                self.slots[slot].value = value;
            }
            self.slots[slot].decays = array;
            return Some(slot);
        };
        if plain_pointer || array || auto || container {
            let given = value_node.kind() == Kind::ArgumentList;
            if container && self.running.is_some() {
                let slot = self.slot(ty, Value::Unknown, false);
                self.slots[slot].decays = false;
                if value_node.kind() == Kind::InitializerList {
                    let value = self.eval(value_node, source);
                    // The array within `std::array` may have braces of its own.
                    let value = match &value {
                        Value::Array(all) if class == "array" => match &all[..] {
                            [inner @ Value::Array(_)] => inner.clone(),
                            _ => value,
                        },
                        _ => value,
                    };
                    let value = if class == "array" {
                        self.whole_array(slot, ty_node, value, source)
                    } else {
                        value
                    };
                    let element = ty_node.and_then(arguments_of_type);
                    let element = element.and_then(|list| parts(list).into_iter().next());
                    let class = self.instance(element, source);
                    let value = if self.index.classes.contains_key(&class.name) {
                        self.elements_by_position(&class, value)
                    } else {
                        value
                    };
                    self.assign(&whole(slot), value);
                } else if given {
                    let arguments = self.arguments(value_node, source);
                    self.fill_container(slot, &arguments);
                } else {
                    let value = match self.container_named(value_node, source) {
                        Some(other) => Value::Container(other),
                        None => self.eval(value_node, source),
                    };
                    self.assign(&whole(slot), value);
                }
                return Some(slot);
            }
            let mut value = if given {
                let values = parts(value_node).into_iter();
                Value::list(values.map(|value| self.eval(value, source)).collect())
            } else {
                self.eval(value_node, source)
            };
            if let (true, true, Value::Array(values)) = (plain_pointer || auto, given, &value)
                && values.len() == 1
            {
                value = values[0].clone();
            }
            if auto && let Some(other) = self.container_in(value_node, &value, source) {
                let ty = self.slots[other].ty.clone();
                let slot = self.slot(ty, Value::Unknown, false);
                self.slots[slot].decays = false;
                self.assign(&whole(slot), Value::Container(other));
                return Some(slot);
            }
            if auto {
                ty = self.type_of(value_node, &value, source);
            }
            if container && given {
                value = Value::Unknown;
            }
            if let Type::Array(element, extent @ None) = &mut ty
                && array
            {
                // It is as long as what it is initialised with.
                *extent = match &value {
                    Value::Array(values) => Some(values.len() as u64),
                    Value::Text(text) if element.size() == 1 => Some(text.len() as u64 + 1),
                    _ => None,
                };
            }
            if (array || container) && self.index.classes.contains_key(&class) {
                let class = instance(self);
                value = self.elements_by_position(&class, value);
            }
            if array && let Value::Array(values) = &value {
                // What a list leaves out is 0.
                let extent = match &ty {
                    Type::Array(_, Some(extent)) => *extent as usize,
                    _ => values.len(),
                };
                let mut values = (**values).clone();
                if values.iter().all(|value| value.as_int().is_some()) {
                    values.resize(extent.min(MOST_ELEMENTS), Value::int(0));
                }
                value = Value::list(values);
            }
            let slot = self.slot(ty, value, false);
            self.slots[slot].decays = array;
            return Some(slot);
        }
        let slot = self.slot(ty.clone(), Value::Unknown, false);
        let value = match value_node.kind() {
            Kind::ArgumentList | Kind::InitializerList => {
                let braces = value_node.kind() == Kind::InitializerList;
                let class = instance(self);
                if braces && names_fields(value_node) {
                    let value = self.eval(value_node, source);
                    self.completed(&class, value)
                } else {
                    let given = self.given(&class, value_node, source);
                    self.constructed(&class, &given, braces, slot, source)
                }
            }
            _ => {
                let value = self.eval(value_node, source);
                match value {
                    Value::Int(..)
                    | Value::Float(..)
                    | Value::Linked(_)
                    | Value::Array(_)
                    | Value::Record(_)
                        if class == "dim3" =>
                    {
                        Value::Dims(value.extents())
                    }
                    value if is_variable(value_node) => self.copy_of(value),
                    value => value,
                }
            }
        };
        let number = matches!(ty, Type::Int { .. } | Type::Float { .. });
        let value = match value {
            Value::Record(_) if number && self.running.is_some() => {
                self.as_number(&value, Some(&ty)).unwrap_or(Value::Unknown)
            }
            value => value,
        };
        let value = value.converted(&ty);
        self.slots[slot].value = value;
        Some(slot)
    }

    /// A place for the value of a function's parameter.
    pub(super) fn temporary(&mut self, ty: Type, value: Value) -> Place {
        let slot = self.slot(ty, value, false);
        Place {
            slot,
            path: Vec::new(),
        }
    }
}

/// The characters of a text that is known.
fn letters(value: &Value) -> Option<Vec<Value>> {
    let text = value.text().filter(|text| !text.contains(GAP))?;
    let letters = text
        .bytes()
        .map(|byte| Value::Int(i64::from(byte as i8), 8, true));
    Some(letters.collect())
}

/// Whether an expression names a variable or a part of one.
fn is_variable(node: Node) -> bool {
    matches!(
        node.kind(),
        Kind::Identifier | Kind::FieldExpression | Kind::SubscriptExpression
    )
}

fn is_map(ty: &str) -> bool {
    matches!(plain(ty).as_str(), "map" | "unordered_map")
}

/// The variable of a loop over elements.
#[derive(Debug)]
pub(super) enum Element {
    Whole(usize),
    /// `auto [a, b]`: one for each part of the element.
    Parts(Vec<usize>),
}

/// The names of `auto& [a, b]`.
fn structured_binding(declarator: Node<'_>) -> Option<Vec<Node<'_>>> {
    let mut at = declarator;
    while at.kind() == Kind::ReferenceDeclarator {
        at = at.named_child(0)?;
    }
    (at.kind() == Kind::StructuredBindingDeclarator).then(|| parts(at))
}

/// `void (*name)()` and `void (*name)() = value`, which read as calls.
fn pointer_to_function(node: Node<'_>) -> Option<(Node<'_>, Option<Node<'_>>)> {
    let (call, value) = match node.kind() {
        Kind::AssignmentExpression => (node.field(Field::Left)?, node.field(Field::Right)),
        _ => (node, None),
    };
    let inner = call.field(Field::Function)?;
    if inner.kind() != Kind::CallExpression
        || inner.field(Field::Function)?.kind() != Kind::PrimitiveType
    {
        return None;
    }
    let pointer = inner.field(Field::Arguments)?.named_child(0)?;
    let name = pointer.field(Field::Argument)?;
    (pointer.kind() == Kind::PointerExpression && name.kind() == Kind::Identifier)
        .then_some((name, value))
}

/// Calls of functions that end the program.
fn never_returns(node: Node, source: Source) -> bool {
    node.kind() == Kind::CallExpression
        && node.field(Field::Function).is_some_and(|function| {
            matches!(
                plain(text(function, source)).as_str(),
                "exit" | "abort" | "_exit" | "quick_exit" | "terminate" | "__builtin_unreachable"
            )
        })
}
