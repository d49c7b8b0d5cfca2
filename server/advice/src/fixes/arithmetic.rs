//! What actions about arithmetic share: every place of a finding is rewritten at once, and the copy must have fewer.

use crate::Finding;
use warplens_facts::facts::Site;
use warplens_hir::Semantics;
use warplens_hir::semantics::{Whole, bare, children};
use warplens_syntax::{Field, Kind, Node};

use crate::fixes::proof;
use crate::fixes::{Edit, Fix, Kernel, Request, in_order, touch};
use crate::wording::faster;

/// Places of a finding that are looked at.
const MOST_PLACES: usize = 64;

/// What a title says of the places that are rewritten, in the kernel before and after; `None` where it must not be done.
pub(crate) type Says<'a> =
    &'a dyn Fn(Semantics, &[Node], &Kernel<'_>, &Kernel<'_>) -> Option<String>;

/// What an action does to the places of a finding.
pub(crate) struct Action<'a> {
    /// The rule.
    pub rule: &'static str,
    /// The edits of one place; `None` where it must stay.
    pub rewrite: &'a dyn Fn(Semantics, Node) -> Option<Vec<Edit>>,
    /// What the title says of this many places, before the gain.
    pub says: Says<'a>,
}

impl Action<'_> {
    /// The fixes of a request.
    pub(crate) fn fixes(&self, request: &Request<'_>) -> Vec<Fix> {
        let mut found = Vec::new();
        for kernel in request.analysis.kernels() {
            if !touch(request.range, &(kernel.start..kernel.end)) {
                continue;
            }
            let of_rule = kernel.findings.iter().filter(|one| one.rule == self.rule);
            for finding in of_rule {
                let sites = sites(finding);
                let touched = |site: &Site| touch(request.range, &kernel.place(*site));
                if sites.iter().any(touched) {
                    found.extend(self.fix(request, &kernel, &sites));
                }
            }
        }
        found
    }

    fn fix(&self, request: &Request<'_>, kernel: &Kernel<'_>, sites: &[Site]) -> Option<Fix> {
        let code = request.code();
        let source = kernel.source(code)?;
        let mut groups = Vec::new();
        for site in sites.iter().take(MOST_PLACES) {
            let Some(Whole(node)) = source
                .source_of::<Whole>(*site)
                .filter(|Whole(node)| !code.is_inside_a_macro(*node))
            else {
                continue;
            };
            if let Some(edits) = (self.rewrite)(code, node) {
                groups.push((node, edits));
            }
        }
        // Of one inside another the outer one waits for another time.
        groups.sort_by_key(|(node, _)| (node.end_byte(), std::cmp::Reverse(node.start_byte())));
        let mut kept: Vec<Edit> = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        for (node, edits) in groups {
            let overlaps = edits.iter().any(|(one, _)| {
                let other = |(range, _): &Edit| one.start < range.end && range.start < one.end;
                kept.iter().any(other)
            });
            if !overlaps {
                kept.extend(edits);
                nodes.push(node);
            }
        }
        nodes.sort_by_key(Node::start_byte);
        if nodes.is_empty() {
            return None;
        }
        let edits = in_order(kept)?;
        let proof = proof::prove(request, kernel, &edits)?;
        let after = proof.after();
        if remaining(self.rule, &after) >= remaining(self.rule, kernel) {
            return None;
        }
        let says = (self.says)(code, &nodes, kernel, &after)?;
        let speedup = proof.speedup(kernel)?;
        Some(Fix {
            title: format!("{says}, {}", faster(speedup)),
            rule: self.rule,
            edits,
            gain: speedup,
            complete: true,
        })
    }
}

/// Where a finding is, in the kernel's own text.
fn sites(finding: &Finding) -> Vec<Site> {
    let first = match finding.place {
        crate::Place::Site(site) => Some(site),
        _ => None,
    };
    let related = finding.related.iter().map(|(site, _)| *site);
    first
        .into_iter()
        .chain(related)
        .filter(|site| site.callee == 0)
        .collect()
}

/// Places of a rule that a kernel has.
fn remaining(rule: &str, kernel: &Kernel<'_>) -> usize {
    let of_rule = kernel.findings.iter().filter(|one| one.rule == rule);
    of_rule.map(|finding| 1 + finding.related.len()).sum()
}

/// True for what binds closer than any operator.
pub(crate) fn binds(node: Node) -> bool {
    matches!(
        node.kind(),
        Kind::NumberLiteral
            | Kind::Identifier
            | Kind::ParenthesizedExpression
            | Kind::CallExpression
            | Kind::SubscriptExpression
            | Kind::FieldExpression
    )
}

/// The function's name and arguments of a call.
pub(crate) fn call<'t>(code: Semantics<'t>, node: Node<'t>) -> Option<(&'t str, Vec<Node<'t>>)> {
    let node = bare(node);
    if node.kind() != Kind::CallExpression {
        return None;
    }
    let function = node.field(Field::Function)?;
    let arguments = node.field(Field::Arguments)?;
    Some((code.text(function), children(arguments)))
}
