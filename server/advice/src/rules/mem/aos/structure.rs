//! The structure that becomes a structure of arrays, and the kernels that take it.

use std::fmt::Write as _;

use warplens_hir::Semantics;
use warplens_hir::semantics::children;
use warplens_syntax::{Field, Kind, Node, has_word};

/// Kernel arguments are at most 4 KiB: a structure of more pointers than this is no argument.
const MOST_FIELDS: usize = 128;

/// A structure of plain fields, defined in this file.
pub(crate) struct Definition<'t> {
    /// Its name.
    pub(crate) name: &'t str,
    /// The name of the structure of arrays.
    pub(crate) arrays_name: String,
    /// Fields in order: type and name as written.
    pub(crate) fields: Vec<(&'t str, &'t str)>,
    /// One past its semicolon.
    pub(crate) end: usize,
    /// Of its fields.
    indent: &'t str,
    /// How the file writes a pointer: `float* x` or `float *x`.
    star: &'static str,
    /// How the file breaks lines.
    pub(crate) newline: &'static str,
}

impl<'t> Definition<'t> {
    /// `None` where it is not in the file, defined twice, or more than plain fields of scalar types.
    pub(crate) fn find(code: Semantics<'t>, name: &'t str) -> Option<Definition<'t>> {
        let mut found = code.top_level().into_iter().filter_map(|node| {
            let of = |node: Option<Node>| node.is_some_and(|node| code.text(node) == name);
            let structure = match node.kind() {
                Kind::StructSpecifier if of(node.field(Field::Name)) => node,
                Kind::TypeDefinition => {
                    let structure = node.field(Field::Type)?;
                    let aliased =
                        of(node.field(Field::Declarator)) || of(structure.field(Field::Name));
                    (aliased && structure.kind() == Kind::StructSpecifier).then_some(structure)?
                }
                _ => return None,
            };
            structure
                .field(Field::Body)
                .map(|body| (node, structure, body))
        });
        let (node, structure, body) = found.next()?;
        let template = node
            .parent()
            .is_some_and(|parent| parent.kind() == Kind::TemplateDeclaration);
        let derived = children(structure)
            .iter()
            .any(|child| child.kind() == Kind::BaseClassClause);
        if found.next().is_some()
            || template
            || derived
            || node.has_error()
            || code.in_a_macro(name)
        {
            return None;
        }
        let mut fields = Vec::new();
        for field in children(body) {
            let ty = field
                .field(Field::Type)
                .filter(|_| field.kind() == Kind::FieldDeclaration)?;
            let ty_text = code.text(ty);
            if !is_scalar(ty, ty_text) {
                return None;
            }
            for child in children(field) {
                if child != ty && child.kind() != Kind::FieldIdentifier {
                    return None;
                }
                if child.kind() == Kind::FieldIdentifier {
                    fields.push((ty_text, code.text(child)));
                }
            }
        }
        if fields.is_empty() || fields.len() > MOST_FIELDS {
            return None;
        }
        let mut end = node.end_byte();
        if node.kind() == Kind::StructSpecifier {
            let rest = &code.source[end..];
            let gap = rest.len() - rest.trim_start().len();
            rest.trim_start().starts_with(';').then_some(())?;
            end += gap + 1;
        }
        let first = children(body).first()?.start_byte();
        let line = &code.source[..first];
        let indent = line
            .rsplit('\n')
            .next()
            .filter(|indent| indent.trim().is_empty())
            .unwrap_or("  ");
        let arrays_name = ["Arrays", "Soa", "Fields"]
            .iter()
            .map(|suffix| format!("{name}{suffix}"))
            .find(|free| !has_word(code.source, free))?;
        let newline = if code.source.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        };
        let star = if code.source.contains(&format!("{name}* ")) {
            "* "
        } else {
            " *"
        };
        Some(Definition {
            name,
            arrays_name,
            fields,
            end,
            indent,
            star,
            newline,
        })
    }

    /// The structure of arrays, as it is behind the structure.
    pub(crate) fn arrays(&self) -> String {
        let newline = self.newline;
        let mut written = format!("{newline}{newline}struct {} {{", self.arrays_name);
        for (ty, name) in &self.fields {
            let _ = write!(written, "{newline}{}{ty}{}{name};", self.indent, self.star);
        }
        let _ = write!(written, "{newline}}};");
        written
    }
}

/// Types that lie in memory as one element: an array of them is what a structure of arrays has.
fn is_scalar(ty: Node, written: &str) -> bool {
    match ty.kind() {
        Kind::PrimitiveType => written != "void",
        Kind::SizedTypeSpecifier => true,
        Kind::TypeIdentifier => matches!(
            written,
            "uint"
                | "ushort"
                | "uchar"
                | "ulong"
                | "half"
                | "__half"
                | "size_t"
                | "ptrdiff_t"
                | "int8_t"
                | "int16_t"
                | "int32_t"
                | "int64_t"
                | "uint8_t"
                | "uint16_t"
                | "uint32_t"
                | "uint64_t"
        ),
        _ => false,
    }
}

/// A kernel that takes the structure of arrays from now on.
pub(crate) struct Converted<'t> {
    /// Its name.
    pub(crate) name: String,
    /// Its definition.
    pub(crate) function: Node<'t>,
    /// Positions of the parameters that change.
    pub(crate) positions: Vec<usize>,
}

/// 1-based lines of bytes, each once, in order.
pub(crate) fn lines(code: Semantics, bytes: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut lines: Vec<usize> = bytes
        .into_iter()
        .map(|byte| code.source[..byte].matches('\n').count() + 1)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
