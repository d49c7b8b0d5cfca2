//! The macros that a text defines, and what they name.

use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Kind, Node, has_word, is_word_part};

use super::Semantics;

/// `#define name(parameters) body`.
struct Define<'t> {
    name: &'t str,
    /// The text between the parentheses; nothing for a macro that is no function.
    parameters: Option<&'t str>,
    /// To the end of the line, continued lines among it.
    body: &'t str,
    /// Where `define` is.
    at: usize,
}

/// The definitions of a text in order, inactive ones too.
fn defines(text: &str) -> impl Iterator<Item = Define<'_>> {
    text.match_indices("define").filter_map(|(at, word)| {
        if !text[..at].trim_end_matches([' ', '\t']).ends_with('#') {
            return None;
        }
        let rest = &text[at + word.len()..];
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            end += line.len();
            if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
                break;
            }
        }
        let definition = rest[..end].trim_start();
        let head = definition
            .find(|letter| !is_word_part(letter))
            .unwrap_or(definition.len());
        let (parameters, body) = match definition[head..].strip_prefix('(') {
            Some(after) => {
                let (parameters, body) = after.split_once(')').unwrap_or((after, ""));
                (Some(parameters), body)
            }
            None => (None, &definition[head..]),
        };
        Some(Define {
            name: &definition[..head],
            parameters,
            body,
            at,
        })
    })
}

impl<'t> Semantics<'t> {
    /// True where some macro of the file puts this name into the text where it is used: not by an argument.
    pub fn in_a_macro(self, name: &str) -> bool {
        self.macro_naming(name).is_some()
    }

    /// Where the first such macro is defined.
    pub fn macro_naming(self, name: &str) -> Option<usize> {
        defines(self.source)
            .find(|one| {
                has_word(one.body, name)
                    && one
                        .parameters
                        .is_none_or(|parameters| !has_word(parameters, name))
            })
            .map(|one| one.at)
    }

    /// True where the file defines a macro of that name.
    fn defines(self, name: &str) -> bool {
        defines(self.source).any(|one| one.name == name)
    }

    /// True inside the definition of a macro, or inside what is handed to one of the file: what becomes of it there is
    /// not seen.
    pub fn is_inside_a_macro(self, node: Node) -> bool {
        let mut at = Some(node);
        while let Some(one) = at {
            match one.kind() {
                Kind::PreprocDef | Kind::PreprocFunctionDef | Kind::PreprocDefined => return true,
                Kind::PreprocIfdef | Kind::PreprocElifdef => return false,
                _ => {}
            }
            let called = CallExpression::cast(one);
            if let Some(function) = called.and_then(CallExpression::function)
                && self.defines(self.text(function))
            {
                return true;
            }
            at = one.parent();
        }
        false
    }

    /// What the macros of that name that are no functions stand for.
    fn macros(self, name: &str) -> Vec<&'t str> {
        defines(self.source)
            .filter(|one| one.name == name && one.parameters.is_none())
            .map(|one| one.body.split("//").next().unwrap_or(one.body).trim())
            .collect()
    }

    /// True where each macro of that name in the file is a number, and there is one.
    pub(super) fn is_macro_of_a_number(self, name: &str) -> bool {
        let bodies = self.macros(name);
        let number = |body: &&str| {
            !body.is_empty()
                && body.chars().all(|c| {
                    c.is_ascii_digit()
                        || matches!(c, ' ' | '(' | ')' | '*' | '+' | '-' | '<' | 'u' | 'U')
                })
        };
        !bodies.is_empty() && bodies.iter().all(number)
    }

    /// The number that a macro of the file is, where one definition of it is a literal.
    pub fn macro_value(self, name: &str) -> Option<i64> {
        let bodies = self.macros(name);
        let [one] = bodies[..] else { return None };
        super::types::decimal(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_syntax::{Document, Language};

    #[test]
    fn a_macro_that_names_the_array_is_seen_and_its_own_parameter_is_not() {
        let check = |text: &str| {
            let document = Document::new(text, Language::Cuda);
            Semantics::new(&document).in_a_macro("tile")
        };
        assert!(check("#define AT(i, j) \\\n  tile[i][j]\n"));
        assert!(check("# define T tile\n"));
        assert!(!check("#define AT(tile, i) tile[i]\nint tile;\n"));
        assert!(!check("// define tile\n#define TILE 32\n"));
    }

    #[test]
    fn a_macro_is_a_number_where_its_one_definition_is() {
        let text = "#define TILE 32u // wide\n#define ROW(n) (n)\n#define BOTH 1\n#define BOTH 2\n";
        let document = Document::new(text, Language::Cuda);
        let code = Semantics::new(&document);
        assert_eq!(code.macro_value("TILE"), Some(32));
        assert_eq!(code.macro_value("ROW"), None);
        assert_eq!(code.macro_value("BOTH"), None);
        assert!(code.is_macro_of_a_number("BOTH") && !code.is_macro_of_a_number("ROW"));
    }
}
