//! What an operator is, whichever way it is spelled: `&&` and `and` are one.
//!
//! In: the token of a node that has an operator. Out: a variant; nothing where the text is broken or the grammar knows
//! another one.

use super::Node;
use super::nodes::{
    AssignmentExpression, BinaryExpression, FieldExpression, FoldExpression, PointerExpression,
    UnaryExpression, UpdateExpression,
};

/// Makes an enumeration of operators with their spellings, the usual one first.
macro_rules! operators {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $usual:literal $(or $other:literal)?;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum $name {
            $($variant,)*
        }

        impl $name {
            /// The operator that is spelled so.
            pub fn spelled(text: &str) -> Option<$name> {
                match text {
                    $($usual $(| $other)? => Some($name::$variant),)*
                    _ => None,
                }
            }

            /// As it is usually spelled.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $usual,)*
                }
            }
        }
    };
}

operators! {
    /// An operator between two operands that assigns nothing.
    BinaryOperator {
        Add "+";
        Subtract "-";
        Multiply "*";
        Divide "/";
        Remainder "%";
        ShiftLeft "<<";
        ShiftRight ">>";
        BitAnd "&" or "bitand";
        BitOr "|" or "bitor";
        BitXor "^" or "xor";
        Less "<";
        LessEqual "<=";
        Greater ">";
        GreaterEqual ">=";
        Equal "==";
        NotEqual "!=" or "not_eq";
        And "&&" or "and";
        Or "||" or "or";
    }
}

impl BinaryOperator {
    /// True for sums, differences, products, quotients and remainders.
    pub fn is_arithmetic(self) -> bool {
        matches!(
            self,
            BinaryOperator::Add
                | BinaryOperator::Subtract
                | BinaryOperator::Multiply
                | BinaryOperator::Divide
                | BinaryOperator::Remainder
        )
    }
}

operators! {
    /// An operator in front of a value.
    UnaryOperator {
        Plus "+";
        Minus "-";
        Not "!" or "not";
        Complement "~" or "compl";
    }
}

operators! {
    /// `++` or `--`, in front or behind.
    UpdateOperator {
        Increment "++";
        Decrement "--";
    }
}

operators! {
    /// What leads to an address or away from one.
    PointerOperator {
        AddressOf "&" or "bitand";
        Dereference "*";
    }
}

/// What an assignment does with what was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AssignOperator {
    /// `=`: nothing.
    Plain,
    /// `+=` and its like: it is the left operand.
    With(BinaryOperator),
}

impl AssignOperator {
    /// The operator that is spelled so.
    pub fn spelled(text: &str) -> Option<AssignOperator> {
        let with = match text {
            "=" => return Some(AssignOperator::Plain),
            "and_eq" => BinaryOperator::BitAnd,
            "or_eq" => BinaryOperator::BitOr,
            "xor_eq" => BinaryOperator::BitXor,
            _ => BinaryOperator::spelled(text.strip_suffix('=')?)?,
        };
        Some(AssignOperator::With(with))
    }

    /// As it is usually spelled.
    pub fn spelling(self) -> String {
        match self {
            AssignOperator::Plain => "=".to_owned(),
            AssignOperator::With(operator) => format!("{}=", operator.as_str()),
        }
    }
}

/// The spelling of a token.
fn spelling(token: Option<Node<'_>>) -> &'static str {
    token.map_or("", |token| token.raw.kind())
}

impl BinaryExpression<'_> {
    /// What it does with its sides.
    pub fn op(self) -> Option<BinaryOperator> {
        BinaryOperator::spelled(spelling(self.operator()))
    }
}

impl FoldExpression<'_> {
    /// What is between the members of the pack.
    pub fn op(self) -> Option<BinaryOperator> {
        BinaryOperator::spelled(spelling(self.operator()))
    }

    /// True where all members are evaluated in turn.
    pub fn is_comma(self) -> bool {
        spelling(self.operator()) == ","
    }
}

impl FieldExpression<'_> {
    /// True for `->`.
    pub fn is_arrow(self) -> bool {
        spelling(self.operator()) == "->"
    }
}

impl UnaryExpression<'_> {
    /// What it does with its argument.
    pub fn op(self) -> Option<UnaryOperator> {
        UnaryOperator::spelled(spelling(self.operator()))
    }
}

impl UpdateExpression<'_> {
    /// Which way it steps.
    pub fn op(self) -> Option<UpdateOperator> {
        UpdateOperator::spelled(spelling(self.operator()))
    }
}

impl PointerExpression<'_> {
    /// Which of the two it is.
    pub fn op(self) -> Option<PointerOperator> {
        PointerOperator::spelled(spelling(self.operator()))
    }
}

impl AssignmentExpression<'_> {
    /// What it does with what was there.
    pub fn op(self) -> Option<AssignOperator> {
        AssignOperator::spelled(spelling(self.operator()))
    }
}

/// The operator of a binary expression.
pub fn binary(node: Node) -> Option<BinaryOperator> {
    BinaryExpression::cast(node)?.op()
}

/// The operator of an assignment.
pub fn assigned(node: Node) -> Option<AssignOperator> {
    AssignmentExpression::cast(node)?.op()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Language, parser};

    fn all<T>(text: &str, language: Language, of: impl Fn(Node) -> Option<T>) -> Vec<T> {
        let tree = parser::parse(&format!("void f() {{ {text} }}"), language, None);
        let nodes = tree.root_node().descendants();
        nodes.into_iter().filter_map(of).collect()
    }

    #[test]
    fn operators_are_read_from_both_grammars() {
        use BinaryOperator::{Add, And, NotEqual, ShiftLeft};
        for language in [Language::Cuda, Language::OpenCl] {
            let found = all("x = a + b << 1 && c != d;", language, binary);
            assert_eq!(found, [And, ShiftLeft, Add, NotEqual], "{language:?}");
            let found = all("x = 1; x += 2; x <<= 3;", language, assigned);
            let with = AssignOperator::With;
            assert_eq!(found, [AssignOperator::Plain, with(Add), with(ShiftLeft)]);
            let found = all("i++; --j;", language, |node| {
                UpdateExpression::cast(node)?.op()
            });
            assert_eq!(
                found,
                [UpdateOperator::Increment, UpdateOperator::Decrement]
            );
            let found = all("g(-a, !b, ~c);", language, |node| {
                UnaryExpression::cast(node)?.op()
            });
            let (minus, not) = (UnaryOperator::Minus, UnaryOperator::Not);
            assert_eq!(found, [minus, not, UnaryOperator::Complement]);
            let found = all("g(&a, *b);", language, |node| {
                PointerExpression::cast(node)?.op()
            });
            let both = [PointerOperator::AddressOf, PointerOperator::Dereference];
            assert_eq!(found, both);
        }
    }

    #[test]
    fn words_spell_operators_too() {
        let found = all("x = a and b or c;", Language::Cuda, binary);
        assert_eq!(found, [BinaryOperator::Or, BinaryOperator::And]);
        for operator in ["+", "<<", "&&", "!="] {
            let read = BinaryOperator::spelled(operator).expect("an operator");
            assert_eq!(read.as_str(), operator);
        }
        let or = AssignOperator::With(BinaryOperator::BitOr);
        assert_eq!(AssignOperator::spelled("or_eq"), Some(or));
        assert_eq!(or.spelling(), "|=");
        assert_eq!(AssignOperator::spelled("=="), None);
    }
}
