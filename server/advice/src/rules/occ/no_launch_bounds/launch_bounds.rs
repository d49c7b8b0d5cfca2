//! Promises the compiler how big the block is: `__launch_bounds__`, in OpenCL `reqd_work_group_size`.

use warplens_hir::{Semantics, function_declarator};
use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Language, Node};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::{Edit, Fix, Kernel, Request};
use crate::wording::faster;

const RULE: &str = "occ/no-launch-bounds";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, _, _| fix(request, kernel))
}

fn fix(request: &Request<'_>, kernel: &Kernel) -> Option<Fix> {
    let document = request.document;
    let code = Semantics::new(document);
    let definition = code.kernel(kernel.start..kernel.end)?;
    let declarator = function_declarator(definition)?;
    let name = declarator.field(Field::Declarator)?;
    let head = code.source.get(kernel.start..declarator.start_byte())?;
    if code.text(name) != kernel.facts.name
        || head.contains('#')
        || code.in_a_macro(&kernel.facts.name)
        || !only_launched(code, &kernel.facts.name, name)
    {
        return None;
    }
    // Every launch that is seen keeps the promise.
    let mut blocks = vec![kernel.facts.launch.block];
    for block in kernel.blocks {
        blocks.push((*block)?);
    }
    let threads = blocks.iter().map(|block| block.iter().product::<u64>());
    let threads = threads.max()?;
    let (at, promise) = if document.language() == Language::OpenCl {
        let [x, y, z] = *blocks.first()?;
        if !head.contains("kernel") || blocks.iter().any(|block| *block != [x, y, z]) {
            return None;
        }
        let ty = definition.field(Field::Type)?;
        (
            ty.start_byte(),
            format!("__attribute__((reqd_work_group_size({x}, {y}, {z})))"),
        )
    } else {
        if !head.contains("__global__") || head.contains("__launch_bounds__") {
            return None;
        }
        (name.start_byte(), format!("__launch_bounds__({threads})"))
    };
    let edits: Vec<Edit> = vec![(at..at, format!("{promise} "))];
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    let after = proof.after();
    let said = after.count(RULE) > 0;
    if said || after.facts.launch.block != kernel.facts.launch.block {
        return None;
    }
    Some(Fix {
        title: format!(
            "Add `{promise}`: {} registers per thread whatever the compiler, {}",
            after.resources.registers_per_thread,
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// True where the file names the kernel only to declare it and to launch it: who has its address may launch it otherwise.
fn only_launched(code: Semantics, name: &str, defined: Node) -> bool {
    code.root
        .descendants()
        .into_iter()
        .filter(|node| node.child_count() == 0 && *node != defined && code.text(*node) == name)
        .filter(|node| node.kind() == Kind::Identifier)
        .all(|node| {
            let mut child = node;
            while let Some(parent) = child.parent() {
                match parent.kind() {
                    Kind::TemplateFunction | Kind::ParenthesizedExpression => child = parent,
                    Kind::CallExpression => {
                        return CallExpression::cast(parent).is_some_and(|call| {
                            call.function() == Some(child) && call.launch().is_some()
                        });
                    }
                    Kind::FunctionDeclarator => {
                        return parent
                            .parent()
                            .is_some_and(|outer| outer.kind() == Kind::Declaration);
                    }
                    _ => return false,
                }
            }
            false
        })
}
