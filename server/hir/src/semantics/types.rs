//! The types of expressions, as far as the file says them.

use std::sync::Arc;

use warplens_ir::{AddressSpace, Type, known_function};
use warplens_syntax::nodes::{
    ArrayDeclarator, BinaryExpression, CallExpression, CastExpression, ConditionalExpression,
    PointerExpression, SubscriptExpression, TypeDescriptor, UnaryExpression,
};
use warplens_syntax::{Field, Kind, Node, PointerOperator, UnaryOperator, words_in};

use super::names::Declaration;
use super::{Semantics, bare, children};
use crate::lower::typing;

/// Expressions and types that are given by others are followed so deep.
const DEEPEST: usize = 24;

impl<'t> Semantics<'t> {
    /// The type of an expression; `None` where the file does not say. Arrays that it reads stay arrays.
    pub fn type_of(self, expression: Node<'t>) -> Option<Type> {
        self.typed(expression, 0)
    }

    fn typed(self, expression: Node<'t>, depth: usize) -> Option<Type> {
        if depth > DEEPEST {
            return None;
        }
        let of = |node: Option<Node<'t>>| self.typed(node?, depth + 1);
        let node = bare(expression);
        match node.kind() {
            Kind::NumberLiteral => Some(typing::number(self.text(node), self.is_opencl())),
            Kind::CharLiteral => Some(Type::CHAR),
            Kind::True | Kind::False => Some(Type::BOOL),
            Kind::Identifier => self.type_declared(&self.declaration(node)?, depth + 1),
            Kind::SubscriptExpression => {
                let array = of(SubscriptExpression::cast(node)?.argument())?;
                array.element().cloned()
            }
            Kind::PointerExpression => {
                let pointer = PointerExpression::cast(node)?;
                let inner = of(pointer.argument())?;
                match pointer.op()? {
                    PointerOperator::Dereference => inner.element().cloned(),
                    PointerOperator::AddressOf => {
                        Some(Type::Pointer(Arc::new(inner), AddressSpace::Global))
                    }
                }
            }
            Kind::UnaryExpression => {
                let unary = UnaryExpression::cast(node)?;
                let inner = of(unary.argument())?;
                match unary.op()? {
                    UnaryOperator::Not => Some(Type::INT),
                    _ => Some(inner.common(&Type::INT)),
                }
            }
            Kind::BinaryExpression => {
                let binary = BinaryExpression::cast(node)?;
                let sides = (of(binary.left())?, of(binary.right())?);
                Some(typing::operation_on(binary.op()?, sides.0, sides.1))
            }
            Kind::AssignmentExpression => of(node.field(Field::Left)),
            Kind::UpdateExpression => of(node.field(Field::Argument)),
            Kind::ConditionalExpression => {
                let either = ConditionalExpression::cast(node)?;
                Some(of(either.consequence())?.common(&of(either.alternative())?))
            }
            Kind::CastExpression => self.type_named(CastExpression::cast(node)?.ty()?, depth + 1),
            Kind::CallExpression => self.type_of_call(CallExpression::cast(node)?, depth + 1),
            Kind::FieldExpression => {
                let of = node.field(Field::Argument)?;
                if self.is_coordinate(of) {
                    return Some(Type::UINT);
                }
                match self.typed(of, depth + 1)? {
                    Type::Vector(element, lanes) => {
                        let lane = self.text(node.field(Field::Field)?);
                        let (_, many) = typing::lanes(lane, lanes)?;
                        (many == 1).then(|| (*element).clone())
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// True for `threadIdx` and its like.
    pub fn is_coordinate(self, node: Node) -> bool {
        matches!(
            self.text(node),
            "threadIdx" | "blockIdx" | "blockDim" | "gridDim"
        )
    }

    fn type_of_call(self, call: CallExpression<'t>, depth: usize) -> Option<Type> {
        let callee = call.function()?;
        if callee.kind() == Kind::PrimitiveType {
            return self.type_named(callee, depth);
        }
        let name = self.text(callee);
        let name = name.strip_prefix("std::").unwrap_or(name);
        let arguments: Option<Vec<Type>> = children(call.arguments()?)
            .into_iter()
            .map(|argument| self.typed(argument, depth))
            .collect();
        // The file's own function of that name is another one.
        if self.function(name).is_some() {
            return None;
        }
        match arguments {
            Some(arguments) => {
                let function = known_function(name, self.is_opencl())?;
                Some(typing::call(function, name, arguments))
            }
            // What those for float give depends on nothing.
            None => typing::gives_float(name, self.is_opencl()).then_some(Type::FLOAT),
        }
    }

    /// The type that a variable or parameter is declared with; a reference has the type of what it refers to.
    pub fn declared_type(self, declaration: &Declaration<'t>) -> Option<Type> {
        self.type_declared(declaration, 0)
    }

    fn type_declared(self, declaration: &Declaration<'t>, depth: usize) -> Option<Type> {
        if depth > DEEPEST {
            return None;
        }
        let written = declaration.ty()?;
        let base = if matches!(written.kind(), Kind::PlaceholderTypeSpecifier | Kind::Auto) {
            self.typed(declaration.value()?, depth + 1)?
        } else {
            self.type_named(written, depth + 1)?
        };
        self.behind(declaration.declarator, base)
    }

    /// The type of what a declarator declares, which may be abstract.
    fn behind(self, declarator: Node<'t>, base: Type) -> Option<Type> {
        let inner = || {
            let field = declarator.field(Field::Declarator);
            field.or_else(|| declarator.named_children().find(|one| is_declarator(*one)))
        };
        let further = |ty: Type| match inner() {
            Some(inner) => self.behind(inner, ty),
            None => Some(ty),
        };
        match declarator.kind() {
            Kind::PointerDeclarator | Kind::AbstractPointerDeclarator => {
                further(Type::Pointer(Arc::new(base), AddressSpace::Global))
            }
            Kind::ArrayDeclarator | Kind::AbstractArrayDeclarator => {
                let extent = ArrayDeclarator::cast(declarator)
                    .and_then(ArrayDeclarator::size)
                    .and_then(|size| self.number(size))
                    .and_then(|extent| u64::try_from(extent).ok());
                further(Type::Array(Arc::new(base), extent))
            }
            Kind::InitDeclarator
            | Kind::ReferenceDeclarator
            | Kind::AbstractReferenceDeclarator
            | Kind::ParenthesizedDeclarator
            | Kind::AttributedDeclarator => further(base),
            Kind::Identifier | Kind::FieldIdentifier | Kind::TypeIdentifier => Some(base),
            _ => None,
        }
    }

    /// A type as written, without qualifiers; typedefs of the file are followed.
    fn type_named(self, ty: Node<'t>, depth: usize) -> Option<Type> {
        if depth > DEEPEST {
            return None;
        }
        if let Some(descriptor) = TypeDescriptor::cast(ty) {
            let base = self.type_named(descriptor.ty()?, depth + 1)?;
            return match descriptor.declarator() {
                Some(declarator) => self.behind(declarator, base),
                None => Some(base),
            };
        }
        let words: Vec<&str> = words_in(self.text(ty))
            .filter(|w| !is_qualifier(w))
            .collect();
        let known = typing::named(&words.join(" "), self.is_opencl());
        if known.is_some() || ty.kind() != Kind::TypeIdentifier {
            return known;
        }
        let name = self.text(ty);
        let mut aliases = self.top_level().into_iter().filter_map(|node| {
            let base = node.field(Field::Type)?;
            match node.kind() {
                Kind::AliasDeclaration => {
                    (self.text(node.field(Field::Name)?) == name).then_some((base, None))
                }
                Kind::TypeDefinition => {
                    let mut all = node.fields(Field::Declarator);
                    let named = |one: &Node| {
                        super::declared_name(*one).is_some_and(|of| self.text(of) == name)
                    };
                    Some((base, Some(all.find(named)?)))
                }
                _ => None,
            }
        });
        let (Some((base, declarator)), None) = (aliases.next(), aliases.next()) else {
            return None;
        };
        let base = self.type_named(base, depth + 1)?;
        match declarator {
            Some(declarator) => self.behind(declarator, base),
            None => Some(base),
        }
    }

    /// The type of a written type node.
    pub fn named_type(self, ty: Node<'t>) -> Option<Type> {
        self.type_named(ty, 0)
    }

    /// The type of the elements of a pointer or an array of one dimension that a function declares once, as written
    /// without qualifiers.
    pub fn written_element(self, function: Node<'t>, name: &str) -> Option<&'t str> {
        let declaration = self.declared(function, name)?;
        // One level of indirection: what it leads to is what is declared.
        let levels = self
            .text(declaration.declarator)
            .matches(['*', '['])
            .count();
        let ty = declaration.ty()?;
        (levels == 1).then(|| self.text(ty))
    }

    /// True for a name that the file says is one number: a macro, a constant, a parameter of the template.
    pub fn is_constant(self, function: Node<'t>, name: &str) -> bool {
        if self.is_macro_of_a_number(name) {
            return true;
        }
        let named = |one: Node| {
            let declared = one.field(Field::Declarator).and_then(super::declared_name);
            declared.is_some_and(|declared| self.text(declared) == name)
        };
        let template = function
            .parent()
            .and_then(|one| one.field(Field::Parameters));
        let of_template = template.is_some_and(|list| {
            let all = children(list).into_iter();
            let mut values = all.filter(|one| one.kind().is_parameter_declaration());
            values.any(named)
        });
        of_template
            || self.top_level().into_iter().any(|node| {
                node.kind() == Kind::Declaration
                    && crate::function_declarator(node).is_none()
                    && named(node)
                    && words_in(self.text(node)).any(|word| matches!(word, "const" | "constexpr"))
            })
    }

    /// The number that a literal is, or a macro that expands to one.
    pub fn number(self, node: Node) -> Option<i64> {
        let node = bare(node);
        match node.kind() {
            Kind::NumberLiteral => decimal(self.text(node)),
            Kind::Identifier => self.macro_value(self.text(node)),
            _ => None,
        }
    }
}

/// A decimal literal's value.
pub(super) fn decimal(written: &str) -> Option<i64> {
    let digits = written.trim_end_matches(['u', 'U', 'l', 'L']);
    let octal = digits.len() > 1 && digits.starts_with('0');
    (!octal).then(|| digits.parse().ok())?
}

fn is_declarator(node: Node) -> bool {
    node.kind().is_declarator() || node.kind().is_identifier()
}

fn is_qualifier(word: &str) -> bool {
    let plain = word.trim_matches('_');
    matches!(
        plain,
        "const"
            | "volatile"
            | "restrict"
            | "global"
            | "local"
            | "private"
            | "constant"
            | "shared"
            | "static"
            | "register"
            | "extern"
            | "std"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use warplens_ir::spell_type;
    use warplens_syntax::{Document, Language};

    /// The type of what is given to `x` in a kernel.
    fn of(expression: &str) -> Option<String> {
        let text = format!(
            "typedef float real; using whole = unsigned int;
            template <class T> __global__ void k(float *a, const double b, int n, T t, real r, float4 v) {{
                __shared__ float tile[32][33]; auto s = a[n]; half h; whole w; float (&alias)[4] = p;
                {{ int x = {expression}; }}
            }}"
        );
        let document = Document::new(&text, Language::Cuda);
        let code = Semantics::new(&document);
        let given = code
            .root
            .descendants()
            .into_iter()
            .filter(|node| node.kind() == Kind::InitDeclarator)
            .find(|node| code.text(*node).starts_with("x ="))
            .and_then(|node| node.field(Field::Value))
            .expect("an expression");
        code.type_of(given).as_ref().map(spell_type)
    }

    #[test]
    fn types_follow_declarations_and_conversions() {
        for (expression, ty) in [
            ("a[n]", "f32"),
            ("a[n] * b", "f64"),
            ("n / 2u", "u32"),
            ("tile[1][2] + 1", "f32"),
            ("s", "f32"),
            ("r * 2", "f32"),
            ("w + n", "u32"),
            ("h", "f16"),
            ("v.x", "f32"),
            ("1.0f + 1.0", "f64"),
            ("(float)b", "f32"),
            ("float(b)", "f32"),
            ("sqrt(n)", "f64"),
            ("sqrtf(q)", "f32"),
            ("a[0] < b", "i32"),
            ("threadIdx.x * 2", "u32"),
            ("n > 0 ? a[0] : n", "f32"),
            ("-h", "f16"),
        ] {
            assert_eq!(of(expression).as_deref(), Some(ty), "{expression}");
        }
        for unknown in ["t", "t * 2.0f", "q", "f(a)", "a.b"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }
}
