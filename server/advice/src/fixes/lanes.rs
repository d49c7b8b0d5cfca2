//! Values that depend on a thread's coordinates, on arguments and on constants alone: another thread can work them out.

use warplens_hir::Semantics;
use warplens_hir::semantics::{Declaration, ElementUse, children};
use warplens_syntax::{
    AssignOperator, BinaryOperator, Field, Kind, Node, assigned, binary, has_word, words_in,
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
    code: Semantics<'t>,
    function: Node<'t>,
    opencl: bool,
}

impl<'t> Lanes<'t> {
    /// `None` where a macro may hide coordinates.
    pub(crate) fn new(code: Semantics<'t>, function: Node<'t>) -> Option<Lanes<'t>> {
        let hidden = COORDINATES.iter().any(|name| code.in_a_macro(name));
        (!hidden && !function.has_error()).then_some(Lanes {
            code,
            function,
            opencl: code.is_opencl(),
        })
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
        let code = self.code;
        match node.kind() {
            Kind::NumberLiteral | Kind::True | Kind::False | Kind::CharLiteral => Some(false),
            Kind::Identifier => self.follow_name(node, found, depth),
            Kind::FieldExpression => {
                let of = code.text(node.field(Field::Argument)?);
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
                is_integer(code.text(ty)).then_some(())?;
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
        let code = self.code;
        let name = code.text(call.field(Field::Function)?);
        let arguments = children(call.field(Field::Arguments)?);
        let [axis] = arguments[..] else { return None };
        let axis = code.text(axis).parse().ok().filter(|axis| *axis < 3)?;
        (self.opencl && COORDINATES.contains(&name)).then_some((name, axis))
    }

    fn follow_name(
        &self,
        node: Node<'t>,
        found: &mut Vec<Local<'t>>,
        depth: usize,
    ) -> Option<bool> {
        let code = self.code;
        let name = code.text(node);
        if let Some(known) = found.iter().find(|local| local.name == name) {
            return Some(known.varies);
        }
        let declaration = match self.code.declarations(self.function, name)[..] {
            [] => return code.is_constant(self.function, name).then_some(false),
            [one] => one,
            _ => return None,
        };
        if code.in_a_macro(name) || code.is_changed(&declaration) {
            return None;
        }
        let ty = code.text(declaration.ty()?);
        if declaration.is_parameter() {
            return declaration.is_plain().then_some(false);
        }
        let value = declaration.value()?;
        let plain = declaration.node.parent()?.kind() == Kind::CompoundStatement
            && !children(declaration.node)
                .iter()
                .any(|child| child.kind() == Kind::StorageClassSpecifier);
        if !plain || !declaration.is_plain() || !is_integer(ty) {
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

    /// The only declaration of a name in the function, where nothing gives it another value than its first.
    fn kept(&self, name: &str) -> Option<Declaration<'t>> {
        let declaration = self.code.declared(self.function, name)?;
        (!self.code.in_a_macro(name) && !self.code.is_changed(&declaration)).then_some(declaration)
    }

    /// True where a parameter or a variable of the kernel may be given another value than its first.
    pub(crate) fn is_changed(&self, name: &str) -> bool {
        let declaration = self.code.declared(self.function, name);
        declaration.is_none_or(|declaration| self.code.is_changed(&declaration))
    }

    /// What a variable is given where it is declared, and its type, where it is given nothing else.
    pub(crate) fn value_of(&self, name: &str) -> Option<(Node<'t>, &'t str)> {
        let declaration = self.kept(name)?;
        let ty = self.code.text(declaration.ty()?);
        (is_integer(ty) && declaration.is_plain())
            .then_some(declaration.value()?)
            .map(|value| (value, ty))
    }

    /// True for a whole number that the kernel is given and keeps.
    pub(crate) fn is_parameter(&self, name: &str) -> bool {
        self.kept(name).is_some_and(|declaration| {
            let ty = declaration.ty();
            declaration.is_parameter()
                && declaration.is_plain()
                && ty.is_some_and(|ty| is_integer(self.code.text(ty)))
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
        let code = self.code;
        let deeper = |node| self.multiple(node, of, depth + 1);
        match node.kind() {
            Kind::NumberLiteral => (code.number(node)? % of == 0).then_some(()),
            Kind::ParenthesizedExpression => deeper(node.named_child(0)?),
            Kind::CastExpression => {
                is_integer(code.text(node.field(Field::Type)?)).then_some(())?;
                deeper(node.field(Field::Value)?)
            }
            Kind::BinaryExpression => {
                let left = node.field(Field::Left)?;
                let right = node.field(Field::Right)?;
                match binary(node)? {
                    BinaryOperator::Add | BinaryOperator::Subtract => {
                        deeper(left).and_then(|()| deeper(right))
                    }
                    // Each factor of two may come from another side.
                    BinaryOperator::Multiply => {
                        deeper(left).or_else(|| deeper(right)).or_else(|| {
                            let half = self.multiple(left, 2, depth + 1);
                            half.and_then(|()| self.multiple(right, of / 2, depth + 1))
                        })
                    }
                    BinaryOperator::ShiftLeft => {
                        let shift = code.number(right)?;
                        (shift < 31 && (1i64 << shift) % of == 0).then_some(())
                    }
                    _ => None,
                }
            }
            Kind::Identifier => {
                let name = code.text(node);
                let declaration = match code.declarations(self.function, name)[..] {
                    [] => return (code.macro_value(name)? % of == 0).then_some(()),
                    [one] => one,
                    _ => return None,
                };
                let value = declaration.value()?;
                if code.in_a_macro(name)
                    || !declaration.is_plain()
                    || !is_integer(code.text(declaration.ty()?))
                {
                    return None;
                }
                let used = code.uses(&declaration)?;
                let steps = used.into_iter().all(|used| {
                    self.only_steps(used, of, depth).is_some()
                        && code.hands(used) == ElementUse::Value
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
                let sums = [
                    AssignOperator::Plain,
                    AssignOperator::With(BinaryOperator::Add),
                    AssignOperator::With(BinaryOperator::Subtract),
                ];
                let by = parent.field(Field::Right)?;
                // What it steps by is no sum of itself.
                let own = has_word(self.code.text(by), self.code.text(used));
                if own || !sums.contains(&assigned(parent)?) {
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
        let code = self.code;
        let mut edits: Vec<Edit> = Vec::new();
        for node in expression.descendants() {
            match node.kind() {
                Kind::Identifier => {
                    edits.extend(rename(code.text(node)).map(|name| (node.byte_range(), name)));
                }
                Kind::FieldExpression => {
                    let axis = match code.text(node) {
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
            code.text(expression),
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
