//! `goto`: the statements of a block in the order in which a run comes to them.
//!
//! What holds: a jump that the run makes goes on behind its label, forwards or backwards; where a condition that is not known decides whether
//! it is made, what changed since is unknown behind the label, and what is between the label and a jump back to it is a loop whose
//! iterations are not known.

use std::rc::Rc;

use warplens_hir::{Source, lacks_body};
use warplens_syntax::{Field, Kind, Node};

use super::events::Side;
use super::leaving::{Jump, Leaving};
use super::nodes::{parts, text};
use super::regions::is_directive;
use super::state::Host;

/// Jumps that are followed one by one of a block.
const MOST_JUMPS: usize = 4_096;

impl Host<'_> {
    /// `goto label;`; true where it is not followed: into a block that the walk is not in.
    pub(super) fn jumps(&mut self, node: Node, source: Source) -> bool {
        let label = node.field(Field::Label);
        let Some(label) = label.filter(|_| self.running.is_some()) else {
            return false;
        };
        let label: Rc<str> = text(label, source).into();
        let labels = self.frames.last().map_or(&[][..], |frame| &frame.labels);
        let Some((_, around)) = labels.iter().rev().find(|(name, _)| *name == label) else {
            self.forget_everything();
            return true;
        };
        self.leaves_loops(*around);
        self.leaving = Some(Leaving::Jump(label));
        false
    }

    /// A jump that the walk is making is made by some runs only: others went another way since.
    pub(super) fn jumps_perhaps(&mut self, touched: usize) {
        let is_jump = |leaving: &mut Leaving| matches!(leaving, Leaving::Jump(_));
        if let Some(Leaving::Jump(label)) = self.leaving.take_if(is_jump)
            && let Some(frame) = self.frames.last_mut()
        {
            frame.jumps.push(Jump { label, touched });
        }
    }

    /// Walks a statement with a label, to which jumps of some runs may lead; the walk comes there from before it.
    pub(super) fn labeled(&mut self, node: Node, source: Source) -> bool {
        if self.running.is_none() {
            // A jump comes here with other values.
            self.forget_everything();
        } else if let Some(label) = label_of(node, source)
            && let Some(touched) = self.take_jumps(label)
        {
            self.forget_touched(touched);
        }
        let mut inner = parts(node).into_iter();
        inner.all(|part| part.kind() == Kind::StatementIdentifier || self.statement(part, source))
    }

    /// The jumps of some runs to a label are looked after: since when they may have written something else.
    fn take_jumps(&mut self, label: &str) -> Option<usize> {
        let jumps = &mut self.frames.last_mut()?.jumps;
        let of_label = jumps.extract_if(.., |jump| *jump.label == *label);
        of_label.map(|jump| jump.touched).min()
    }

    /// Walks the statements of a block of a run; false where nothing after them is come to.
    pub(super) fn run_sequence(&mut self, all: &[Node], source: Source) -> bool {
        let labels: Vec<(usize, &str)> = all
            .iter()
            .enumerate()
            .filter_map(|(at, part)| Some((at, label_of(*part, source)?)))
            .collect();
        if labels.is_empty() {
            return self.in_order_of(all, source);
        }
        let around = self.breakables.len();
        let outer = self.frames.last_mut().map_or(0, |frame| {
            let names = labels.iter().map(|(_, name)| (Rc::from(*name), around));
            let outer = frame.labels.len();
            frame.labels.extend(names);
            outer
        });
        let goes_on = self.run_labeled(all, &labels, source);
        if let Some(frame) = self.frames.last_mut() {
            frame.labels.truncate(outer);
        }
        goes_on
    }

    /// The same where no label is among them: each with the directive before it.
    pub(super) fn in_order_of(&mut self, all: &[Node], source: Source) -> bool {
        let mut directive = None;
        let mut rest = all.iter();
        while let Some(part) = rest.next() {
            if part.kind() == Kind::PreprocCall {
                directive = directive.or(is_directive(*part, source).then_some(*part));
                continue;
            }
            let goes_on = match directive.take() {
                Some(directive) => self.directed(directive, *part, source),
                None => self.statement(*part, source),
            };
            // What follows was its body.
            let mut last = *part;
            while lacks_body(last) {
                match rest.find(|part| part.kind() != Kind::PreprocCall) {
                    Some(body) => last = *body,
                    None => break,
                }
            }
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// The same with the labels among them.
    fn run_labeled(&mut self, all: &[Node], labels: &[(usize, &str)], source: Source) -> bool {
        let mut touched = vec![self.touched_mark(); labels.len()];
        let (mut at, mut made) = (0, 0);
        while let Some(part) = all.get(at) {
            if let Some(label) = labels.iter().position(|(of, _)| *of == at) {
                touched[label] = self.touched_mark();
            }
            let goes_on = self.statement(*part, source);
            for (label, (to, name)) in labels.iter().enumerate() {
                if *to <= at && self.take_jumps(name).is_some() {
                    self.turns_between(&all[*to..=at], name, touched[label], source);
                }
            }
            if goes_on {
                at += 1;
                continue;
            }
            self.passed_labels(&all[at + 1..], source);
            let to = match &self.leaving {
                Some(Leaving::Jump(label)) => labels.iter().position(|(_, name)| **name == **label),
                _ => None,
            };
            let Some(label) = to else {
                return false;
            };
            self.leaving = None;
            let (to, name) = labels[label];
            made += 1;
            if to <= at && made > MOST_JUMPS {
                self.turns_between(&all[to..=at], name, touched[label], source);
                at += 1;
                continue;
            }
            at = to;
        }
        true
    }

    /// Statements from a label to a jump back to it that some runs make, as often as these do.
    fn turns_between(&mut self, all: &[Node], label: &str, touched: usize, source: Source) {
        let Some(first) = all.first() else { return };
        let name = parts(*first).into_iter().next();
        self.forget_touched(touched);
        self.enter(name, Side::Loop, true, source);
        self.perhaps(|host| {
            for part in all {
                if !host.statement(*part, source) {
                    break;
                }
            }
        });
        self.take_jumps(label);
        self.leave();
        self.forget_touched(touched);
    }

    /// Statements that the walk does not come to, with labels that jumps of some runs lead to.
    fn passed_labels(&mut self, rest: &[Node], source: Source) {
        let pending = rest.iter().position(|part| {
            let label = label_of(*part, source);
            let jumps = self.frames.last().map_or(&[][..], |frame| &frame.jumps);
            label.is_some_and(|label| jumps.iter().any(|jump| *jump.label == *label))
        });
        let Some(from) = pending else { return };
        let leads_here = |part: &Node, label: &Rc<str>| label_of(*part, source) == Some(label);
        let end = match &self.leaving {
            Some(Leaving::Jump(label)) => {
                let rest = rest.iter();
                let mut rest = rest.skip(from).take_while(|part| !leads_here(part, label));
                from + rest.by_ref().count()
            }
            _ => rest.len(),
        };
        let leaving = self.leaving.take();
        let mark = self.mark();
        let name = parts(rest[from]).into_iter().next();
        self.enter(name, Side::Then, true, source);
        self.perhaps(|host| host.run_sequence(&rest[from..end], source));
        self.leave();
        self.take_back(mark);
        self.leaving = leaving;
    }

    /// A function ends: a jump leads nowhere from there.
    pub(super) fn no_jump_is_left(&mut self) {
        if matches!(self.leaving, Some(Leaving::Jump(_))) {
            self.leaving = None;
            self.forget_everything();
        }
    }
}

/// The label of a statement that has one.
fn label_of<'t>(node: Node<'t>, source: Source<'t>) -> Option<&'t str> {
    if node.kind() != Kind::LabeledStatement {
        return None;
    }
    let label = node.field(Field::Label)?;
    Some(text(label, source))
}
