//! Lets the compiler put a function in place of its calls: `__forceinline__` for `__noinline__`.

use std::ops::Range;

use crate::Finding;
use warplens_facts::facts::Site;
use warplens_hir::Semantics;
use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Language, Node, has_word};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::{Edit, Fix, Kernel, Request};
use crate::wording::faster;

const RULE: &str = "call/not-inlined";

/// How a function is said not to be inlined, longest first.
const SPELLED: [&str; 4] = [
    "__attribute__((noinline))",
    "__attribute__((__noinline__))",
    "[[gnu::noinline]]",
    "__noinline__",
];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, fix)
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, finding: &Finding, site: Site) -> Option<Fix> {
    let code = request.code();
    let call: CallExpression = kernel.source(code)?.source_of(site)?;
    let callee = call.function()?;
    let name = code.text(callee).split('<').next()?.trim();
    if code.in_a_macro(name) || SPELLED.iter().any(|word| code.in_a_macro(word)) {
        return None;
    }
    // Another declaration would say the opposite.
    if !only_declared_once(code, name) {
        return None;
    }
    let definition = code.function(name)?;
    let told = told(code, definition)?;
    let edit: Edit = if request.document.language() == Language::OpenCl {
        // What its compilers put in place of its calls unasked.
        let rest = &code.source[told.end..];
        let gap = rest.len() - rest.trim_start_matches(' ').len();
        (told.start..told.end + gap, String::new())
    } else {
        (told, "__forceinline__".to_owned())
    };
    let edits = vec![edit];
    let proof = prove(request, kernel, &edits)?;
    proof.speedup(kernel)?;
    if proof.after().has_finding(finding) {
        return None;
    }
    Some(Fix {
        title: format!(
            "Put `{name}` in place of its calls, {}",
            faster(finding.gain)
        ),
        rule: RULE,
        edits,
        gain: finding.gain,
        complete: true,
    })
}

/// True where nothing but its definition declares the function.
fn only_declared_once(code: Semantics, name: &str) -> bool {
    !code
        .top_level()
        .into_iter()
        .filter(|node| node.kind() == Kind::Declaration)
        .any(|node| has_word(code.text(node), name))
}

/// Where a definition says that it is not to be inlined. Words that the grammar lacks may stand in front of it.
fn told(code: Semantics, definition: Node) -> Option<Range<usize>> {
    let body = definition.field(Field::Body)?;
    let from = definition
        .prev_sibling()
        .map_or(0, |before| before.end_byte());
    let head = code.source.get(from..body.start_byte())?;
    let mut found = SPELLED.iter().filter_map(|word| {
        let at = head.find(word)?;
        let more = head[at + word.len()..].contains(word);
        (!more).then_some(from + at..from + at + word.len())
    });
    // A comment that names the word is none.
    let told = found.next()?;
    let commented = head[..told.start - from]
        .rfind("//")
        .is_some_and(|at| !head[at..told.start - from].contains('\n'))
        || head[..told.start - from].matches("/*").count()
            != head[..told.start - from].matches("*/").count();
    (!commented).then_some(told)
}
