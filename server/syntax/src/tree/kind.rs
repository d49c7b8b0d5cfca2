//! The kinds of nodes and the names of fields, one enumeration for both grammars.
//!
//! In: the ids that a grammar's parser numbers kinds and fields by. Out: [`Kind`] and [`Field`], the same for a construct
//! whichever grammar read it. The lists are generated from the grammars' `node-types.json` into `generated.rs`.

use std::num::NonZeroU16;
use std::sync::LazyLock;

use crate::Language;

/// Makes [`Kind`] of variants with the grammars' names.
macro_rules! kinds {
    ($($variant:ident $name:literal)*) => {
        /// What a node is: every named kind of both grammars, and the tokens that code asks for.
        ///
        /// A named node and a token of the same text (`true`, `auto`) are of one kind; `Node::is_named` tells them apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[allow(missing_docs)]
        pub enum Kind {
            /// What the parser could not read.
            Error,
            /// A token that no code asks for.
            Token,
            $($variant,)*
        }

        const NAMES: &[&str] = &["ERROR", "token", $($name),*];
        const KINDS: &[Kind] = &[Kind::Error, Kind::Token, $(Kind::$variant),*];
    };
}

/// Makes [`Field`] of variants with the grammars' names.
macro_rules! fields {
    ($($variant:ident $name:literal)*) => {
        /// The name of a child's place in its parent.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Field {
            $($variant,)*
        }

        const FIELD_NAMES: &[&str] = &[$($name),*];
    };
}

super::generated::list_kinds!(kinds);
super::generated::list_fields!(fields);

impl Kind {
    /// The kind of this name; a name that the lists lack is a token that no code asks for.
    fn of_name(name: &str) -> Kind {
        let at = NAMES.iter().position(|known| *known == name);
        at.map_or(Kind::Token, |at| KINDS[at])
    }

    /// Every declarator: of a pointer, an array, a function, abstract or with its initial value.
    pub const fn is_declarator(self) -> bool {
        DECLARATORS[self as usize]
    }

    /// Every parameter of a function or template that a declaration declares.
    pub const fn is_parameter_declaration(self) -> bool {
        PARAMETERS[self as usize]
    }

    /// A plain name, whatever it names.
    pub const fn is_identifier(self) -> bool {
        IDENTIFIERS[self as usize]
    }

    /// A parameter or declarator of a pack.
    pub const fn is_variadic(self) -> bool {
        VARIADICS[self as usize]
    }

    /// A template's parameter that is a type or a template.
    pub const fn is_type_parameter(self) -> bool {
        matches!(
            self,
            Kind::TypeParameterDeclaration
                | Kind::OptionalTypeParameterDeclaration
                | Kind::VariadicTypeParameterDeclaration
                | Kind::TemplateTemplateParameterDeclaration
        )
    }

    /// A statement other than a declaration.
    pub const fn is_statement(self) -> bool {
        STATEMENTS[self as usize]
    }

    /// A preprocessor's directive, or a part of one.
    pub const fn is_directive(self) -> bool {
        DIRECTIVES[self as usize]
    }
}

const DECLARATORS: [bool; NAMES.len()] = named("", "declarator");
const PARAMETERS: [bool; NAMES.len()] = named("", "parameter_declaration");
const IDENTIFIERS: [bool; NAMES.len()] = named("", "identifier");
const VARIADICS: [bool; NAMES.len()] = named("variadic_", "");
const STATEMENTS: [bool; NAMES.len()] = named("", "_statement");
const DIRECTIVES: [bool; NAMES.len()] = named("preproc_", "");

/// Which kinds' names begin and end so.
const fn named(start: &str, end: &str) -> [bool; NAMES.len()] {
    let mut found = [false; NAMES.len()];
    let mut at = 0;
    while at < NAMES.len() {
        let name = NAMES[at].as_bytes();
        found[at] = name.len() >= start.len()
            && name.len() >= end.len()
            && is_at(name, start.as_bytes(), 0)
            && is_at(name, end.as_bytes(), name.len() - end.len());
        at += 1;
    }
    found
}

const fn is_at(name: &[u8], part: &[u8], at: usize) -> bool {
    let mut k = 0;
    while k < part.len() {
        if name[at + k] != part[k] {
            return false;
        }
        k += 1;
    }
    true
}

/// What the ids of one grammar's parser stand for.
pub(super) struct Grammar {
    kinds: Box<[Kind]>,
    fields: [Option<NonZeroU16>; FIELD_NAMES.len()],
}

static CUDA: LazyLock<Grammar> = LazyLock::new(|| Grammar::new(Language::Cuda));
static OPENCL: LazyLock<Grammar> = LazyLock::new(|| Grammar::new(Language::OpenCl));

impl Grammar {
    pub(super) fn of(language: Language) -> &'static Grammar {
        match language {
            Language::OpenCl => &OPENCL,
            Language::Cuda | Language::Hip => &CUDA,
        }
    }

    fn new(language: Language) -> Grammar {
        let language: tree_sitter::Language = language.tree_sitter().into();
        let kind = |id| {
            language
                .node_kind_for_id(id)
                .map_or(Kind::Token, Kind::of_name)
        };
        let kinds = (0..language.node_kind_count() as u16).map(kind).collect();
        let id = |at: usize| language.field_id_for_name(FIELD_NAMES[at]);
        let fields = std::array::from_fn(id);
        Grammar { kinds, fields }
    }

    /// What the parser calls by this id; what it could not read has one of its own.
    pub(super) fn kind(&self, id: u16) -> Kind {
        self.kinds
            .get(usize::from(id))
            .copied()
            .unwrap_or(Kind::Error)
    }

    /// The id of a field, where the grammar has it.
    pub(super) fn field(&self, field: Field) -> Option<NonZeroU16> {
        self.fields[field as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_named_kind_and_every_field_of_both_grammars_is_listed() {
        for language in [Language::Cuda, Language::OpenCl] {
            let language: tree_sitter::Language = language.tree_sitter().into();
            for id in 0..language.node_kind_count() as u16 {
                if language.node_kind_is_named(id) && language.node_kind_is_visible(id) {
                    let name = language.node_kind_for_id(id).expect("a name");
                    assert_eq!(NAMES[Kind::of_name(name) as usize], name);
                }
            }
            for id in 1..=language.field_count() as u16 {
                let name = language.field_name_for_id(id).expect("a name");
                assert!(FIELD_NAMES.contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn families_of_kinds_follow_their_names() {
        assert!(Kind::AbstractArrayDeclarator.is_declarator());
        assert!(Kind::InitDeclarator.is_declarator() && !Kind::Declaration.is_declarator());
        assert!(Kind::VariadicParameterDeclaration.is_parameter_declaration());
        assert!(Kind::VariadicParameterDeclaration.is_variadic());
        assert!(!Kind::ParameterList.is_parameter_declaration());
        assert!(Kind::FieldIdentifier.is_identifier() && !Kind::PrimitiveType.is_identifier());
        assert!(Kind::PreprocIfdef.is_directive() && !Kind::If.is_directive());
    }
}
