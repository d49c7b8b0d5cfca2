//! Values that depend on a thread's coordinates, on arguments and on constants alone: another thread can work them out.

use warplens_syntax::{Document, Field, Kind, Language, Node, Parsed, has_word, words_in};

use crate::fixes::source::{
    Hands, children, declared_name, descendants_at_top, function_declarator, hands, in_a_macro,
    text, uses,
};
use crate::fixes::{Edit, in_order};

/// Expressions nested deeper than this are not followed.
const DEEPEST: usize = 10;

/// Where threads find their coordinates.
const COORDINATES: [&str; 9] = [
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "get_local_id",
    "get_group_id",
    "get_global_id",
    "get_local_size",
    "get_global_size",
];

/// Words that a scalar's type is made of.
const INTEGERS: [&str; 17] = [
    "auto",
    "int",
    "unsigned",
    "signed",
    "long",
    "short",
    "char",
    "uint",
    "ulong",
    "ushort",
    "uchar",
    "size_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "ptrdiff_t",
];

/// A variable of a kernel that is given one such value, where it is declared, and never another.
pub(crate) struct Local<'t> {
    /// Its name.
    pub name: &'t str,
    /// Its type without qualifiers.
    pub ty: &'t str,
    /// What it is given.
    pub value: Node<'t>,
    /// True where it is not the same for all threads of a block.
    pub varies: bool,
}

/// What the values of one kernel are made of.
pub(crate) struct Lanes<'t> {
    document: &'t Document,
    function: Node<'t>,
    opencl: bool,
}

impl<'t> Lanes<'t> {
    /// `None` where a macro may hide coordinates.
    pub(crate) fn new(document: &'t Document, function: Node<'t>) -> Option<Lanes<'t>> {
        let parsed = document.parsed();
        let hidden = COORDINATES.iter().any(|name| in_a_macro(parsed, name));
        (!hidden && !function.has_error()).then_some(Lanes {
            document,
            function,
            opencl: document.language() == Language::OpenCl,
        })
    }

    fn parsed(&self) -> &'t Parsed {
        self.document.parsed()
    }

    /// The variables that an expression's value comes from, each behind those that it is made of. `None` where the
    /// expression reads memory, calls something, or is not followed.
    pub(crate) fn locals(&self, expression: Node<'t>) -> Option<Vec<Local<'t>>> {
        let mut found = Vec::new();
        self.follow(expression, &mut found, 0)?;
        Some(found)
    }

    /// Adds what an expression is made of; true where it is not the same for all threads of a block.
    fn follow(&self, node: Node<'t>, found: &mut Vec<Local<'t>>, depth: usize) -> Option<bool> {
        if depth > DEEPEST {
            return None;
        }
        let parsed = self.parsed();
        match node.kind() {
            Kind::NumberLiteral | Kind::True | Kind::False | Kind::CharLiteral => Some(false),
            Kind::Identifier => self.follow_name(node, found, depth),
            Kind::FieldExpression => {
                let of = text(parsed, node.field(Field::Argument)?);
                let known =
                    !self.opencl && matches!(of, "threadIdx" | "blockIdx" | "blockDim" | "gridDim");
                known.then_some(of == "threadIdx")
            }
            Kind::CallExpression => {
                let (name, _) = self.coordinate_call(node)?;
                Some(matches!(name, "get_local_id" | "get_global_id"))
            }
            Kind::CastExpression => {
                let ty = node.field(Field::Type)?;
                is_integer(text(parsed, ty)).then_some(())?;
                self.follow(node.field(Field::Value)?, found, depth + 1)
            }
            Kind::BinaryExpression
            | Kind::UnaryExpression
            | Kind::ParenthesizedExpression
            | Kind::ConditionalExpression => {
                let mut varies = false;
                for part in children(node) {
                    varies |= self.follow(part, found, depth + 1)?;
                }
                Some(varies)
            }
            _ => None,
        }
    }

    /// `get_local_id(0)`: the function and the axis.
    fn coordinate_call(&self, call: Node<'t>) -> Option<(&'t str, usize)> {
        let parsed = self.parsed();
        let name = text(parsed, call.field(Field::Function)?);
        let arguments = children(call.field(Field::Arguments)?);
        let [axis] = arguments[..] else { return None };
        let axis = text(parsed, axis).parse().ok().filter(|axis| *axis < 3)?;
        (self.opencl && COORDINATES.contains(&name)).then_some((name, axis))
    }

    fn follow_name(
        &self,
        node: Node<'t>,
        found: &mut Vec<Local<'t>>,
        depth: usize,
    ) -> Option<bool> {
        let parsed = self.parsed();
        let name = text(parsed, node);
        if let Some(known) = found.iter().find(|local| local.name == name) {
            return Some(known.varies);
        }
        let Some(declaration) = self.declaration(name) else {
            return is_constant(parsed, self.function, name).then_some(false);
        };
        if in_a_macro(parsed, name) || self.changes(declaration) {
            return None;
        }
        let mut outer = declaration.parent()?;
        while !matches!(outer.kind(), Kind::ParameterDeclaration | Kind::Declaration) {
            outer = outer.parent()?;
        }
        let ty = text(parsed, outer.field(Field::Type)?);
        if outer.kind() == Kind::ParameterDeclaration {
            let scalar = outer.field(Field::Declarator)? == declaration;
            return scalar.then_some(false);
        }
        let given = declaration
            .parent()
            .filter(|parent| parent.kind() == Kind::InitDeclarator)?;
        let plain = outer.parent()?.kind() == Kind::CompoundStatement
            && !children(outer)
                .iter()
                .any(|child| child.kind() == Kind::StorageClassSpecifier);
        let value = given.field(Field::Value)?;
        if !plain || given.field(Field::Declarator) != Some(declaration) || !is_integer(ty) {
            return None;
        }
        let varies = self.follow(value, found, depth + 1)?;
        if found.iter().all(|local| local.name != name) {
            found.push(Local {
                name,
                ty,
                value,
                varies,
            });
        }
        Some(varies)
    }

    /// The one place in the function where a name is declared.
    fn declaration(&self, name: &str) -> Option<Node<'t>> {
        self.function
            .descendants()
            .into_iter()
            .filter(|node| {
                matches!(
                    node.kind(),
                    Kind::ParameterDeclaration
                        | Kind::Declaration
                        | Kind::OptionalParameterDeclaration
                )
            })
            .find_map(|declaration| {
                declaration
                    .fields(Field::Declarator)
                    .filter_map(declared_name)
                    .find(|declared| text(self.parsed(), *declared) == name)
            })
    }

    /// True where a variable may be given another value, or is declared again.
    fn changes(&self, declaration: Node<'t>) -> bool {
        let parsed = self.parsed();
        let name = text(parsed, declaration);
        let Some(uses) = uses(parsed, self.function, name, declaration) else {
            return true;
        };
        uses.into_iter().any(|used| {
            let parent = used.parent();
            let written = parent.is_some_and(|parent| match parent.kind() {
                Kind::AssignmentExpression => parent.field(Field::Left) == Some(used),
                Kind::UpdateExpression | Kind::LambdaCaptureSpecifier => true,
                _ => false,
            });
            written || hands(self.document, used) == Hands::Address
        })
    }

    /// True where a parameter or a variable of the kernel may be given another value than its first.
    pub(crate) fn is_changed(&self, name: &str) -> bool {
        self.declaration(name)
            .is_none_or(|declaration| self.changes(declaration))
    }

    /// What a variable is given where it is declared, and its type, where it is given nothing else.
    pub(crate) fn value_of(&self, name: &str) -> Option<(Node<'t>, &'t str)> {
        let declaration = self.declaration(name)?;
        let given = declaration
            .parent()
            .filter(|parent| parent.kind() == Kind::InitDeclarator)?;
        let ty = text(self.parsed(), given.parent()?.field(Field::Type)?);
        let kept = is_integer(ty) && !self.changes(declaration) && !in_a_macro(self.parsed(), name);
        kept.then(|| Some((given.field(Field::Value)?, ty)))?
    }

    /// True for a whole number that the kernel is given and keeps.
    pub(crate) fn is_parameter(&self, name: &str) -> bool {
        self.declaration(name).is_some_and(|declaration| {
            declaration.parent().is_some_and(|outer| {
                let ty = outer.field(Field::Type);
                outer.kind() == Kind::ParameterDeclaration
                    && ty.is_some_and(|ty| is_integer(text(self.parsed(), ty)))
                    && !self.changes(declaration)
                    && !in_a_macro(self.parsed(), name)
            })
        })
    }

    /// True where a whole number is a multiple of a power of two, whatever the arguments are.
    pub(crate) fn is_multiple(&self, node: Node<'t>, of: i64) -> bool {
        self.multiple(node, of, 0).is_some()
    }

    fn multiple(&self, node: Node<'t>, of: i64, depth: usize) -> Option<()> {
        if of == 1 {
            return Some(());
        }
        if depth > DEEPEST {
            return None;
        }
        let parsed = self.parsed();
        let deeper = |node| self.multiple(node, of, depth + 1);
        match node.kind() {
            Kind::NumberLiteral => (literal(text(parsed, node))? % of == 0).then_some(()),
            Kind::ParenthesizedExpression => deeper(node.named_child(0)?),
            Kind::CastExpression => {
                is_integer(text(parsed, node.field(Field::Type)?)).then_some(())?;
                deeper(node.field(Field::Value)?)
            }
            Kind::BinaryExpression => {
                let left = node.field(Field::Left)?;
                let right = node.field(Field::Right)?;
                match text(parsed, node.field(Field::Operator)?) {
                    "+" | "-" => deeper(left).and_then(|()| deeper(right)),
                    // Each factor of two may come from another side.
                    "*" => deeper(left).or_else(|| deeper(right)).or_else(|| {
                        let half = self.multiple(left, 2, depth + 1);
                        half.and_then(|()| self.multiple(right, of / 2, depth + 1))
                    }),
                    "<<" => {
                        let shift = literal(text(parsed, right))?;
                        (shift < 31 && (1i64 << shift) % of == 0).then_some(())
                    }
                    _ => None,
                }
            }
            Kind::Identifier => {
                let name = text(parsed, node);
                let Some(declaration) = self.declaration(name) else {
                    return (macro_value(parsed, name)? % of == 0).then_some(());
                };
                let given = declaration
                    .parent()
                    .filter(|parent| parent.kind() == Kind::InitDeclarator)?;
                let value = given.field(Field::Value)?;
                let ty = given.parent()?.field(Field::Type)?;
                if in_a_macro(parsed, name) || !is_integer(text(parsed, ty)) {
                    return None;
                }
                let used = uses(parsed, self.function, name, declaration)?;
                let steps = used.into_iter().all(|used| {
                    self.only_steps(used, of, depth).is_some()
                        && hands(self.document, used) == Hands::Value
                });
                steps.then(|| deeper(value))?
            }
            _ => None,
        }
    }

    /// Whether a use of a variable leaves it a multiple where it was one.
    fn only_steps(&self, used: Node<'t>, of: i64, depth: usize) -> Option<()> {
        let Some(parent) = used.parent() else {
            return Some(());
        };
        match parent.kind() {
            Kind::UpdateExpression => None,
            Kind::AssignmentExpression if parent.field(Field::Left) == Some(used) => {
                let operator = text(self.parsed(), parent.field(Field::Operator)?);
                let by = parent.field(Field::Right)?;
                // What it steps by is no sum of itself.
                let own = has_word(text(self.parsed(), by), text(self.parsed(), used));
                if own || !matches!(operator, "+=" | "-=" | "=") {
                    return None;
                }
                self.multiple(by, of, depth + 1)
            }
            _ => Some(()),
        }
    }

    /// An expression as the thread with these coordinates along x and y would have it; variables that vary have other names.
    pub(crate) fn of_thread(
        &self,
        expression: Node<'t>,
        coordinates: [&str; 2],
        rename: &dyn Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let parsed = self.parsed();
        let mut edits: Vec<Edit> = Vec::new();
        for node in expression.descendants() {
            match node.kind() {
                Kind::Identifier => {
                    edits.extend(rename(text(parsed, node)).map(|name| (node.byte_range(), name)));
                }
                Kind::FieldExpression => {
                    let axis = match text(parsed, node) {
                        "threadIdx.x" => 0,
                        "threadIdx.y" => 1,
                        _ => continue,
                    };
                    edits.push((node.byte_range(), coordinates[axis].to_owned()));
                }
                Kind::CallExpression => {
                    let (name, axis) = self.coordinate_call(node)?;
                    let other = coordinates.get(axis);
                    let new = match (name, other) {
                        ("get_local_id", Some(other)) => (*other).to_owned(),
                        ("get_global_id", Some(other)) => {
                            format!("(get_global_id({axis}) - get_local_id({axis}) + {other})")
                        }
                        _ => continue,
                    };
                    edits.push((node.byte_range(), new));
                }
                _ => {}
            }
        }
        Some(with(
            text(parsed, expression),
            expression.start_byte(),
            in_order(edits)?,
        ))
    }

    /// The coordinates of a thread in its block along x and y, as the language writes them.
    pub(crate) fn own(&self) -> [&'static str; 2] {
        if self.opencl {
            ["get_local_id(0)", "get_local_id(1)"]
        } else {
            ["threadIdx.x", "threadIdx.y"]
        }
    }

    /// Shared memory and the barrier of a block, as the language writes them.
    pub(crate) fn shared(&self) -> (&'static str, &'static str) {
        if self.opencl {
            ("__local", "barrier(CLK_LOCAL_MEM_FENCE)")
        } else {
            ("__shared__", "__syncthreads()")
        }
    }
}

/// A text that begins at a byte with edits made.
pub(crate) fn with(written: &str, start: usize, edits: Vec<Edit>) -> String {
    let mut new = written.to_owned();
    for (range, text) in edits.into_iter().rev() {
        new.replace_range(range.start - start..range.end - start, &text);
    }
    new
}

/// True for a type of whole numbers.
pub(crate) fn is_integer(ty: &str) -> bool {
    let mut words = words_in(ty)
        .filter(|word| *word != "const" && *word != "std")
        .peekable();
    words.peek().is_some() && !ty.contains(['*', '&']) && words.all(|word| INTEGERS.contains(&word))
}

/// True for a name that the file says is one number: a macro, a constant, a parameter of the template.
fn is_constant(parsed: &Parsed, function: Node, name: &str) -> bool {
    if macro_number(parsed, name) {
        return true;
    }
    let of_template = function.parent().is_some_and(|parent| {
        let list = parent.field(Field::Parameters);
        list.is_some_and(|list| {
            children(list).into_iter().any(|one| {
                let declared = one.field(Field::Declarator).and_then(declared_name);
                one.kind().is_parameter_declaration()
                    && declared.is_some_and(|declared| text(parsed, declared) == name)
            })
        })
    });
    of_template
        || descendants_at_top(parsed.tree.root_node())
            .into_iter()
            .filter(|node| node.kind() == Kind::Declaration && function_declarator(*node).is_none())
            .any(|node| {
                let declares = node.field(Field::Declarator).is_some_and(|one| {
                    declared_name(one).is_some_and(|found| text(parsed, found) == name)
                });
                let written = text(parsed, node);
                declares && (has_word(written, "const") || has_word(written, "constexpr"))
            })
}

/// A literal's value.
fn literal(written: &str) -> Option<i64> {
    let digits = written.trim_end_matches(['u', 'U', 'l', 'L']);
    let octal = digits.len() > 1 && digits.starts_with('0');
    (!octal).then(|| digits.parse().ok())?
}

/// What the macros of that name in the file are.
fn macros<'t>(parsed: &'t Parsed, name: &str) -> Vec<&'t str> {
    parsed
        .text
        .lines()
        .filter_map(|line| {
            let rest = line.trim_start().strip_prefix('#')?.trim_start();
            let rest = rest
                .strip_prefix("define")?
                .trim_start()
                .strip_prefix(name)?;
            rest.starts_with([' ', '\t'])
                .then(|| rest.split("//").next().unwrap_or(rest).trim())
        })
        .collect()
}

/// True where each macro of that name in the file is a number, and there is one.
fn macro_number(parsed: &Parsed, name: &str) -> bool {
    let bodies = macros(parsed, name);
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
pub(crate) fn macro_value(parsed: &Parsed, name: &str) -> Option<i64> {
    let bodies = macros(parsed, name);
    let [one] = bodies[..] else { return None };
    literal(one)
}
