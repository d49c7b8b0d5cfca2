//! A node's children by the names of the grammar's fields, which the parser's library compares one by one at each question.

use std::num::NonZeroU16;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use tree_sitter::Node;

use crate::Language;

/// Children by field.
pub trait Fields<'tree> {
    /// The first child in the field of this name, as `child_by_field_name` gives it.
    fn field(&self, name: &str) -> Option<Node<'tree>>;
}

impl<'tree> Fields<'tree> for Node<'tree> {
    fn field(&self, name: &str) -> Option<Node<'tree>> {
        let language = self.language();
        let grammar = if *language == CUDA.language {
            &*CUDA
        } else {
            &*OPENCL
        };
        let id = *grammar.fields.get(name)?;
        self.child_by_field_id(id.get())
    }
}

static CUDA: LazyLock<Grammar> = LazyLock::new(|| Grammar::of(Language::Cuda));
static OPENCL: LazyLock<Grammar> = LazyLock::new(|| Grammar::of(Language::OpenCl));

struct Grammar {
    language: tree_sitter::Language,
    fields: FxHashMap<&'static str, NonZeroU16>,
}

impl Grammar {
    fn of(language: Language) -> Grammar {
        let language: tree_sitter::Language = language.tree_sitter().into();
        let count = language.field_count() as u16;
        let fields = (1..=count)
            .filter_map(|id| Some((language.field_name_for_id(id)?, NonZeroU16::new(id)?)))
            .collect();
        Grammar { language, fields }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser;

    #[test]
    fn fields_are_those_of_each_grammar() {
        for language in [Language::Cuda, Language::OpenCl] {
            let tree = parser::parse("int f(int a) { return a; }", language, None);
            let function = tree.root_node().child(0).expect("a function");
            for name in ["type", "declarator", "body", "no such field"] {
                assert_eq!(function.field(name), function.child_by_field_name(name));
            }
            assert!(function.field("body").is_some());
        }
    }
}
