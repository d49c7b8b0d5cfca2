//! Loads a structure of 8 or 16 bytes whole, where a kernel takes it field by field.
//!
//! The structure's alignment becomes its size, so that the compiler may load it at once. Nothing else moves: its size is a
//! multiple of that already, and it is a part of no other structure.

use std::ops::Range;

use warplens_facts::facts::{Op, Site};
use warplens_hir::semantics::{KernelSource, children, declared_name};
use warplens_hir::{Semantics, function_declarator};
use warplens_syntax::nodes::FieldExpression;
use warplens_syntax::{Field, Kind, Language, Node, has_word};

use crate::fixes::lanes::Lanes;
use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::{indent, is_always_evaluated, is_target, new_name, only_subscript};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::rules::mem::narrow_access::widen::{changes_nothing, vector_of};
use crate::wording::{faster, occupancy};

const RULE: &str = "mem/aos";

/// Less than this is not worth another alignment.
const WORTH: f64 = 1.02;

/// What gives memory that any structure may begin in.
const ALLOCATE: [&str; 4] = ["malloc", "calloc", "aligned_alloc", "std::malloc"];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    // The hosts of OpenCL programs declare their structures themselves.
    if request.document.language() == Language::OpenCl {
        return Vec::new();
    }
    of_findings(request, RULE, |_, kernel, finding, site| {
        let access = kernel.facts.accesses.get(finding.access?)?;
        (access.op == Op::Load).then(|| fix(request, kernel, site))?
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, site: Site) -> Option<Fix> {
    let code = request.code();
    let plan = Plan::new(kernel.source(code)?, site)?;
    let definition = Definition::new(code, plan.structure)?;
    let mut edits = plan.edits();
    edits.push(definition.edit(request.document.language() == Language::Cuda));
    let edits = in_order(edits)?;
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel).filter(|speedup| *speedup >= WORTH)?;
    let after = proof.after();
    if after.count(RULE) >= kernel.count(RULE)
        || after.facts.accesses.len() >= kernel.facts.accesses.len()
    {
        return None;
    }
    let seen = code.launches(&kernel.facts.name);
    let complete = seen.elsewhere.is_empty() && !seen.seen.is_empty();
    let condition = if complete {
        String::new()
    } else {
        format!(
            " (callers must align `{}` to {} bytes)",
            plan.array, definition.bytes
        )
    };
    Some(Fix {
        title: format!(
            "Load `{}` whole and align `{}` to {} bytes: {} loads → 1{}, {}{condition}",
            plan.element,
            plan.structure,
            definition.bytes,
            plan.fields,
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup),
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete,
    })
}

/// What there is to edit in the kernel.
struct Plan<'t> {
    code: Semantics<'t>,
    function: Node<'t>,
    array: &'t str,
    structure: &'t str,
    /// The structure as the kernel writes it: `p[i]`.
    element: &'t str,
    /// Different fields that are taken.
    fields: usize,
    /// The statement in front of which it is loaded.
    first: Node<'t>,
    /// The bytes of `p[i]` in every `p[i].x` behind.
    uses: Vec<Range<usize>>,
}

impl<'t> Plan<'t> {
    fn new(source: KernelSource<'t>, site: Site) -> Option<Plan<'t>> {
        let KernelSource { code, function, .. } = source;
        let opencl = code.is_opencl();
        let lanes = Lanes::new(code, function)?;
        let field = source.source_of::<FieldExpression>(site)?.node();
        let of = field.field(Field::Argument)?;
        let base = of.field(Field::Argument)?;
        let array = code.text(base);
        let element = code.text(of);
        let index = only_subscript(of)?;
        let plain = of.kind() == Kind::SubscriptExpression
            && base.kind() == Kind::Identifier
            && index.descendants().into_iter().all(|node| {
                !matches!(
                    node.kind(),
                    Kind::CallExpression
                        | Kind::UpdateExpression
                        | Kind::AssignmentExpression
                        | Kind::SubscriptExpression
                        | Kind::PointerExpression
                )
            });
        let parameter = children(function_declarator(function)?.field(Field::Parameters)?)
            .into_iter()
            .find(|one| {
                one.field(Field::Declarator)
                    .and_then(declared_name)
                    .is_some_and(|name| code.text(name) == array)
            })?;
        let declared = code.text(parameter);
        let structure = code.written_element(function, array)?;
        let structure = structure
            .strip_prefix("struct ")
            .unwrap_or(structure)
            .trim();
        if !plain
            || has_word(declared, "volatile")
            || code.in_a_macro(array)
            || lanes.is_changed(array)
            || code.in_a_macro(structure)
        {
            return None;
        }
        let constant = has_word(declared, "const")
            && ["__restrict__", "__restrict", "restrict"]
                .iter()
                .any(|word| has_word(declared, word));
        let mut statement = field;
        while !matches!(
            statement.kind(),
            Kind::ExpressionStatement | Kind::Declaration | Kind::ReturnStatement
        ) {
            statement = statement.parent()?;
        }
        let block = statement.parent()?;
        if block.kind() != Kind::CompoundStatement || !is_always_evaluated(field, statement) {
            return None;
        }
        let names: Vec<&str> = index
            .descendants()
            .into_iter()
            .filter(|node| node.kind() == Kind::Identifier)
            .map(|node| code.text(node))
            .collect();
        let is_element = |node: &Node<'t>| {
            node.kind() == Kind::FieldExpression
                && node.field(Field::Argument).is_some_and(|argument| {
                    argument.kind() == Kind::SubscriptExpression && code.text(argument) == element
                })
        };
        // From the first statement that takes a field for sure, until something may change the structure or its index.
        let (mut first, mut uses, mut fields) = (None, Vec::new(), Vec::new());
        for one in children(block) {
            let taken: Vec<Node> = one.descendants().into_iter().filter(is_element).collect();
            let starts = matches!(
                one.kind(),
                Kind::ExpressionStatement | Kind::Declaration | Kind::ReturnStatement
            ) && taken.iter().any(|node| is_always_evaluated(*node, one));
            if first.is_none() && !starts {
                continue;
            }
            if moves(code, one, &names) || taken.iter().any(|node| is_target(*node)) {
                if first.is_some() {
                    break;
                }
                return None;
            }
            let quiet = constant || changes_nothing(code, one, opencl);
            let at_end = one.kind() == Kind::ExpressionStatement
                && one.named_child(0).is_some_and(|assignment| {
                    assignment.kind() == Kind::AssignmentExpression
                        && children(assignment)
                            .into_iter()
                            .all(|part| changes_nothing(code, part, opencl))
                });
            let leaves = one.kind() == Kind::ReturnStatement && taken.len() == 1;
            if !quiet && !at_end && !leaves {
                break;
            }
            first.get_or_insert(one);
            for node in taken {
                fields.push(code.text(node.field(Field::Field)?));
                uses.push(node.field(Field::Argument)?.byte_range());
            }
            if !quiet {
                break;
            }
        }
        fields.sort_unstable();
        fields.dedup();
        let first = first?;
        let at = first.start_byte();
        let line = code.source[..at].rfind('\n').map_or(0, |end| end + 1);
        let own_line = code.source[line..at].trim().is_empty();
        let asked = uses.iter().any(|range| *range == of.byte_range());
        (own_line && asked && fields.len() >= 2).then_some(Plan {
            code,
            function,
            array,
            structure,
            element,
            fields: fields.len(),
            first,
            uses,
        })
    }

    fn edits(&self) -> Vec<Edit> {
        let code = self.code;
        let at = self.first.start_byte();
        let margin = indent(code.source, at);
        let newline = if code.source.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let name = new_name(code, self.function, &format!("{}_whole", self.array));
        let mut edits: Vec<Edit> = self
            .uses
            .iter()
            .map(|range| (range.clone(), name.clone()))
            .collect();
        edits.push((
            at..at,
            format!(
                "const {} {name} = {};{newline}{margin}",
                self.structure, self.element
            ),
        ));
        edits
    }
}

/// True where a statement gives one of these variables a value, or declares it.
fn moves(code: Semantics, statement: Node, names: &[&str]) -> bool {
    statement.descendants().into_iter().any(|node| {
        let changed = match node.kind() {
            Kind::AssignmentExpression => node.field(Field::Left),
            Kind::UpdateExpression | Kind::PointerExpression => node.field(Field::Argument),
            Kind::InitDeclarator => node.field(Field::Declarator).and_then(declared_name),
            _ => None,
        };
        changed.is_some_and(|of| names.contains(&code.text(of)))
    })
}

/// The definition of a structure that may be aligned to its size.
struct Definition {
    /// Where `__align__` goes.
    at: usize,
    bytes: usize,
}

impl Definition {
    /// `None` where the file does not show that nothing else depends on its alignment.
    fn new(code: Semantics, name: &str) -> Option<Definition> {
        let all = code.root.descendants();
        let mut found = all.iter().copied().filter(|node| {
            node.kind() == Kind::StructSpecifier
                && node.field(Field::Body).is_some()
                && is_called(code, *node, name)
        });
        let (Some(definition), None) = (found.next(), found.next()) else {
            return None;
        };
        let body = definition.field(Field::Body)?;
        let head = &code.source[definition.start_byte()..body.start_byte()];
        let after = definition.parent().map_or("", |parent| code.text(parent));
        let special = [":", "align", "attribute", "packed", "<"];
        if special.iter().any(|word| head.contains(word))
            || after.contains("__attribute__")
            || code.source.contains("pragma pack")
        {
            return None;
        }
        let mut types = Vec::new();
        for member in children(body) {
            let declarators: Vec<Node> = member.fields(Field::Declarator).collect();
            let plain = member.kind() == Kind::FieldDeclaration
                && !declarators.is_empty()
                && declarators
                    .iter()
                    .all(|one| one.kind() == Kind::FieldIdentifier)
                && member.field(Field::DefaultValue).is_none();
            plain.then_some(())?;
            let ty = code.text(member.field(Field::Type)?);
            types.extend(declarators.iter().map(|_| ty));
        }
        let (_, size) = vector_of(types.first()?)?;
        let bytes = size * types.len();
        let same = types.iter().all(|ty| *ty == types[0]);
        if !same || !matches!(bytes, 8 | 16) || bytes == size {
            return None;
        }
        // A part of something else, or what some bytes are taken for.
        let elsewhere = all.iter().any(|node| match node.kind() {
            Kind::FieldDeclaration => has_word(code.text(*node), name),
            Kind::BaseClassClause | Kind::AlignofExpression | Kind::OffsetofExpression => {
                has_word(code.text(*node), name)
            }
            Kind::CastExpression => {
                let ty = node.field(Field::Type).map(|ty| code.text(ty));
                ty.is_some_and(|ty| has_word(ty, name) && ty.contains('*'))
                    && !node
                        .field(Field::Value)
                        .is_some_and(|value| allocates(code, value))
            }
            Kind::TemplateArgumentList => {
                let of = node.parent().map(|parent| code.text(parent));
                let written = code.text(*node);
                has_word(written, name)
                    && written.contains('*')
                    && of.is_some_and(|of| of.contains("_cast"))
            }
            _ => false,
        });
        (!elsewhere && !code.in_a_macro(name)).then(|| Definition {
            at: definition.start_byte() + "struct".len(),
            bytes,
        })
    }

    fn edit(&self, cuda: bool) -> Edit {
        let word = if cuda { "__align__" } else { "alignas" };
        (self.at..self.at, format!(" {word}({})", self.bytes))
    }
}

/// True for `struct P {…}` and `typedef struct {…} P;`.
fn is_called(code: Semantics, definition: Node, name: &str) -> bool {
    let own = definition.field(Field::Name);
    let tagged = own.is_some_and(|own| code.text(own) == name);
    tagged
        || definition.parent().is_some_and(|parent| {
            parent.kind() == Kind::TypeDefinition
                && parent
                    .field(Field::Declarator)
                    .is_some_and(|one| code.text(one) == name)
        })
}

fn allocates(code: Semantics, value: Node) -> bool {
    value.kind() == Kind::CallExpression
        && value
            .field(Field::Function)
            .is_some_and(|callee| ALLOCATE.contains(&code.text(callee)))
}
