//! tensor/serialised: what makes ptxas wait after every `wgmma`.

use warplens_facts::facts::Site;
use warplens_ir::{Expr, ExprKind, Function, Opaque, Stmt, StmtKind, VarId};

use crate::rule::{Look, Rule, State, When};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "tensor/serialised",
    title: "sums of `wgmma` are used, or a function is called, before `wgmma.wait_group`",
    severity: "warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Findings of one kernel, at most: the first is enough for ptxas.
const MOST: usize = 4;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut reader = Reader {
        ctx,
        pending: Vec::new(),
        closed: 0,
        found: Vec::new(),
    };
    reader.block(&ctx.kernel.body);
    let findings = reader.found.into_iter().map(|(site, met)| {
        let (headline, cause) = match met {
            Met::Sum(name) => (
                format!("wait for the group before `{name}` is used: ptxas serialises its `wgmma`s"),
                format!(
                    "`{name}` is a sum of a `wgmma` that no `wgmma.wait_group` before this has waited for: ptxas then \
                     waits after each `wgmma` (C7514, C7515)"
                ),
            ),
            Met::Call(name) => (
                format!("call `{name}` before or behind the group: ptxas serialises its `wgmma`s"),
                format!(
                    "`{name}` is called between a `wgmma` and the `wgmma.wait_group` that waits for it: ptxas then waits \
                     after each `wgmma` (C7510)"
                ),
            ),
        };
        Finding {
            rule: RULE.id,
            severity: Severity::Warning,
            place: Place::Site(site),
            message: format!("{headline}\n{cause}"),
            gain: 1.0,
            related: Vec::new(),
            access: None,
            shared_array: None,
            cure: None,
        }
    });
    findings.take(MOST).collect()
}

/// A variable, or an element of it: the subscripts from the outside in.
#[derive(Debug, Clone, PartialEq)]
struct Element {
    variable: VarId,
    subscripts: Vec<Subscript>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Subscript {
    Number(i64),
    /// A loop that is under way chooses it.
    Open,
    /// A loop that is over has chosen all of them.
    Each,
}

impl Element {
    fn of(place: &Expr) -> Option<Element> {
        let mut subscripts = Vec::new();
        let mut at = place;
        loop {
            match &at.kind {
                ExprKind::Var(variable) => {
                    subscripts.reverse();
                    return Some(Element {
                        variable: *variable,
                        subscripts,
                    });
                }
                ExprKind::Index(base, index) => {
                    subscripts.push(match index.without_casts().kind {
                        ExprKind::Int(number) => Subscript::Number(number),
                        _ => Subscript::Open,
                    });
                    at = base;
                }
                ExprKind::Field(base, offset) => {
                    subscripts.push(Subscript::Number(i64::try_from(*offset).ok()?));
                    at = base;
                }
                ExprKind::Cast(_, inner) => at = inner,
                _ => return None,
            }
        }
    }

    /// True where a use of this element is one of a sum: what the use leaves open may be any element, what the sum leaves open
    /// is another for all that is known.
    fn uses(&self, sum: &Element) -> bool {
        let mut both = self.subscripts.iter().zip(&sum.subscripts);
        self.variable == sum.variable
            && both.all(|(own, sum)| match (own, sum) {
                (Subscript::Number(own), Subscript::Number(sum)) => own == sum,
                (_, Subscript::Each | Subscript::Number(_)) => true,
                (_, Subscript::Open) => false,
            })
    }
}

enum Met {
    Sum(String),
    Call(String),
}

/// The kernel in its order, and which sums are not there yet.
struct Reader<'a, 'c> {
    ctx: &'a Context<'c>,
    /// Sums, with the group that they are part of.
    pending: Vec<(u32, Element)>,
    /// Groups that were committed.
    closed: u32,
    found: Vec<(Site, Met)>,
}

impl Reader<'_, '_> {
    fn block(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Declare(_, Some(value))
            | StmtKind::Expr(value)
            | StmtKind::Return(Some(value)) => self.value(value),
            StmtKind::If(condition, then, other) => {
                self.value(condition);
                let before = self.pending.clone();
                self.block(then);
                let after = std::mem::replace(&mut self.pending, before);
                self.block(other);
                // What is pending on both sides surely is.
                self.pending.retain(|sum| after.contains(sum));
            }
            StmtKind::Loop {
                init,
                condition,
                step,
                body,
                ..
            } => {
                self.block(init);
                // The second iteration finds what the first left pending.
                for _ in 0..2 {
                    if let Some(condition) = condition {
                        self.value(condition);
                    }
                    self.block(body);
                    if let Some(step) = step {
                        self.value(step);
                    }
                }
                for subscript in self
                    .pending
                    .iter_mut()
                    .flat_map(|(_, sum)| &mut sum.subscripts)
                {
                    if *subscript == Subscript::Open {
                        *subscript = Subscript::Each;
                    }
                }
            }
            StmtKind::Block(inner) => self.block(inner),
            StmtKind::Switch(value, inner) => {
                self.value(value);
                self.block(inner);
            }
            // Nothing is read or written.
            _ => {}
        }
    }

    fn value(&mut self, value: &Expr) {
        self.called(value);
        match &value.kind {
            ExprKind::List(all) => {
                // A `wgmma` and where its sums go.
                if let Some(issue) = all.iter().position(is_issue) {
                    for one in &all[..issue] {
                        self.value(one);
                    }
                    self.issued(&all[issue..]);
                    return;
                }
                for one in all {
                    self.value(one);
                }
            }
            ExprKind::Call(Function::Ignored(_, mnemonic), arguments)
                if mnemonic.starts_with("wgmma.") =>
            {
                self.ordered(mnemonic, arguments);
            }
            ExprKind::Assign(_, target, given) => {
                // An empty statement of assembly holds the compiler back and executes nothing.
                if matches!(given.kind, ExprKind::Opaque(Opaque::Unknown, _)) {
                    return;
                }
                self.value(given);
                self.used(target);
            }
            ExprKind::Inline(statements, _) => self.block(statements),
            ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Field(..) => self.used(value),
            // What an address is taken of is not used by that.
            ExprKind::AddressOf(_) => {}
            _ => {
                for operand in value.operands() {
                    self.value(operand);
                }
            }
        }
    }

    fn used(&mut self, place: &Expr) {
        if let Some(element) = Element::of(place) {
            let sum = self.pending.iter().any(|(_, sum)| element.uses(sum));
            if sum {
                let name = self.name(element.variable);
                self.tell(place.site, Met::Sum(name));
            }
        }
        // Subscripts are values too.
        let mut at = place;
        loop {
            match &at.kind {
                ExprKind::Index(base, index) => {
                    self.value(index);
                    at = base;
                }
                ExprKind::Field(base, _) | ExprKind::Cast(_, base) => at = base,
                ExprKind::Var(_) => return,
                _ => return self.value(at),
            }
        }
    }

    /// A call that the machine makes, while something is pending.
    fn called(&mut self, value: &Expr) {
        if self.pending.is_empty()
            || !matches!(value.kind, ExprKind::Inline(..) | ExprKind::Apply(..))
        {
            return;
        }
        let calls = &self.ctx.kernel.calls;
        if let Some(call) = calls.iter().find(|call| call.site == value.site) {
            self.tell(value.site, Met::Call(call.name.clone()));
        }
    }

    fn issued(&mut self, parts: &[Expr]) {
        for part in parts {
            if let ExprKind::Assign(_, target, given) = &part.kind
                && matches!(given.kind, ExprKind::Field(..))
                && let Some(sum) = Element::of(target)
            {
                self.pending.retain(|(_, known)| *known != sum);
                self.pending.push((self.closed, sum));
            }
        }
    }

    /// `wgmma.commit_group`, `wgmma.wait_group`.
    fn ordered(&mut self, mnemonic: &str, arguments: &[Expr]) {
        if mnemonic.contains("commit_group") {
            self.closed += 1;
        } else if mnemonic.contains("wait_group") {
            let left = match arguments.first().map(|left| &left.kind) {
                Some(ExprKind::Int(left)) => u32::try_from(*left).unwrap_or(0),
                _ => 0,
            };
            // What no group was made of is waited for as well as anything.
            let done = self.closed.saturating_sub(left);
            self.pending.retain(|(group, _)| *group >= done && left > 0);
        }
    }

    fn name(&self, variable: VarId) -> String {
        let variable = self.ctx.kernel.vars.get(variable.0 as usize);
        variable.map_or_else(String::new, |variable| variable.name.clone())
    }

    fn tell(&mut self, site: Site, met: Met) {
        let known = self.found.iter().any(|(place, known)| {
            *place == site
                || match (known, &met) {
                    (Met::Sum(a), Met::Sum(b)) | (Met::Call(a), Met::Call(b)) => a == b,
                    _ => false,
                }
        });
        if !known {
            self.found.push((site, met));
        }
    }
}

/// True for an assignment of what a `wgmma` gives.
fn is_issue(part: &Expr) -> bool {
    let ExprKind::Assign(_, _, given) = &part.kind else {
        return false;
    };
    matches!(&given.kind, ExprKind::Call(Function::Math(_, mnemonic), _)
        if mnemonic.starts_with("wgmma.mma_async"))
}
