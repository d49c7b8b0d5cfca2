//! The host's side of a structure of arrays: allocation, copies, launches.
//!
//! Host code is changed only where all of it is seen: a local `Particle *d` that is allocated, copied, passed
//! to the kernels and freed by plain runtime calls, and nothing else. Anything more is left to its author, and
//! the lines concerned are told.

use std::fmt::Write as _;

use warplens_hir::Semantics;
use warplens_hir::semantics::{self, children};
use warplens_syntax::{BinaryOperator, Field, Kind, Language, Node, binary, has_word};

use crate::fixes::Edit;
use crate::rules::mem::aos::structure::{Converted, Definition, lines};

/// What becomes of the host code.
pub(crate) enum Host {
    /// All of it is changed.
    Followed {
        /// Functions that allocate, copy and free, to stand behind the structure of arrays.
        helpers: String,
        /// The changes.
        edits: Vec<Edit>,
    },
    /// It remains to be changed: these lines (1-based), where the file has them.
    ByHand(Vec<usize>),
}

pub(crate) fn follow(code: Semantics, definition: &Definition, converted: &[Converted]) -> Host {
    let mut launches = Vec::new();
    let mut elsewhere = Vec::new();
    for one in converted {
        let found = code.launches(&one.name);
        elsewhere.extend(found.elsewhere);
        launches.extend(found.seen.into_iter().map(|launch| Launch {
            launch,
            positions: &one.positions,
        }));
    }
    if elsewhere.is_empty()
        && !launches.is_empty()
        && let Some(followed) = Follow::all(code, definition, &launches)
    {
        return followed;
    }
    let mut bytes = elsewhere;
    for launch in &launches {
        bytes.push(launch.launch.call.start_byte());
        for argument in launch.arguments() {
            let parts = argument.descendants().into_iter();
            let mut names = parts.filter(|node| node.kind() == Kind::Identifier);
            let declared = names.next().and_then(|name| code.declaration(name));
            let Some(declared) = declared else { continue };
            let uses = code.uses(&declared).unwrap_or_default();
            bytes.push(declared.name.start_byte());
            bytes.extend(uses.iter().map(Node::start_byte));
        }
    }
    Host::ByHand(lines(code, bytes))
}

/// A launch of a kernel that changes.
struct Launch<'t> {
    launch: semantics::Launch<'t>,
    positions: &'t [usize],
}

impl<'t> Launch<'t> {
    /// The arguments that change.
    fn arguments(&self) -> Vec<Node<'t>> {
        let all = &self.launch.arguments;
        let positions = self.positions.iter();
        positions
            .filter_map(|&position| all.get(position).copied())
            .collect()
    }
}

/// Which of the helpers are called.
#[derive(Default)]
struct Needed {
    allocate: bool,
    upload: bool,
    download: bool,
    release: bool,
}

/// Changes to host code as far as they have come.
struct Follow<'a> {
    code: Semantics<'a>,
    definition: &'a Definition<'a>,
    /// `cuda` or `hip`.
    runtime: &'static str,
    needed: Needed,
    edits: Vec<Edit>,
}

impl Follow<'_> {
    /// `None` where some use of some buffer is not one of those that are known.
    fn all(code: Semantics, definition: &Definition, launches: &[Launch]) -> Option<Host> {
        let runtime = match code.language {
            Language::Cuda => "cuda",
            Language::Hip => "hip",
            Language::OpenCl => return None,
        };
        let mut follow = Follow {
            code,
            definition,
            runtime,
            needed: Needed::default(),
            edits: Vec::new(),
        };
        let mut arguments: Vec<Node> = launches.iter().flat_map(Launch::arguments).collect();
        let expected: usize = launches.iter().map(|launch| launch.positions.len()).sum();
        if arguments.len() != expected {
            return None;
        }
        let mut declarations: Vec<Node> = Vec::new();
        while let Some(argument) = arguments.first().copied() {
            if argument.kind() != Kind::Identifier {
                return None;
            }
            let declared = code.declaration(argument)?;
            let in_a_block = declared.node.parent()?.kind() == Kind::CompoundStatement;
            if declarations.contains(&declared.node) || !in_a_block || declared.node.has_error() {
                return None;
            }
            declarations.push(declared.node);
            follow.declaration(declared.node, code.text(argument))?;
            for used in code.uses(&declared)? {
                match arguments.iter().position(|argument| *argument == used) {
                    Some(at) => {
                        arguments.remove(at);
                    }
                    None => follow.call(used)?,
                }
            }
            if arguments.first() == Some(&argument) {
                return None;
            }
        }
        let helpers = follow.helpers();
        Some(Host::Followed {
            helpers,
            edits: follow.edits,
        })
    }

    /// `Particle *d = nullptr;` becomes `ParticleArrays d = {};`.
    fn declaration(&mut self, declaration: Node, name: &str) -> Option<()> {
        let parts = children(declaration);
        let [ty, declarator] = parts[..] else {
            return None;
        };
        let pointer = match declarator.kind() {
            Kind::InitDeclarator => {
                let value = declarator.field(Field::Value)?;
                if !matches!(self.code.text(value), "nullptr" | "NULL" | "0") {
                    return None;
                }
                declarator.field(Field::Declarator)?
            }
            _ => declarator,
        };
        let declared = pointer.field(Field::Declarator)?;
        let plain = pointer.kind() == Kind::PointerDeclarator
            && declared.kind() == Kind::Identifier
            && children(pointer).len() == 1;
        if !plain || self.code.text(ty) != self.definition.name {
            return None;
        }
        let range = ty.start_byte()..declarator.end_byte();
        self.edits.push((
            range,
            format!("{} {name} = {{}}", self.definition.arrays_name),
        ));
        Some(())
    }

    /// One call of the runtime that a buffer is in.
    fn call(&mut self, used: Node) -> Option<()> {
        let mut argument = used;
        let mut in_size = false;
        while argument.parent()?.kind() != Kind::ArgumentList {
            argument = argument.parent()?;
            in_size |= argument.kind() == Kind::SizeofExpression;
        }
        let list = argument.parent()?;
        let call = list
            .parent()
            .filter(|call| call.kind() == Kind::CallExpression)?;
        let function = self.code.text(call.field(Field::Function)?);
        let function = function.strip_prefix(self.runtime)?;
        let arguments = children(list);
        let position = arguments.iter().position(|one| *one == argument)?;
        let name = self.code.text(used);
        if in_size {
            // Rewritten with the call, where the call is about the buffer itself.
            let own = arguments.iter().any(|one| {
                *one != argument && (self.code.text(*one) == name || self.is_address_of(*one, name))
            });
            return own.then_some(());
        }
        let plain = argument == used;
        let written = match (function, position, arguments.len()) {
            ("Malloc", 0, 2) if self.is_address_of(argument, name) => {
                self.needed.allocate = true;
                format!(
                    "allocate_arrays(&{name}, {})",
                    self.count(arguments[1], name)?
                )
            }
            ("Free", 0, 1) if plain => {
                self.needed.release = true;
                format!("release_arrays({name})")
            }
            ("Memcpy", 0 | 1, 4) if plain => {
                let kind = self.code.text(arguments[3]).strip_prefix(self.runtime)?;
                let other = arguments[1 - position];
                if !self.is_host_array(other) {
                    return None;
                }
                let other = self.code.text(other);
                let count = self.count(arguments[2], name)?;
                match (kind, position) {
                    ("MemcpyHostToDevice", 0) => {
                        self.needed.upload = true;
                        format!("upload_arrays({name}, {other}, {count})")
                    }
                    ("MemcpyDeviceToHost", 1) => {
                        self.needed.download = true;
                        format!("download_arrays({other}, {name}, {count})")
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        self.edits.push((call.byte_range(), written));
        Some(())
    }

    /// `&d`, or the same behind a cast.
    fn is_address_of(&self, argument: Node, name: &str) -> bool {
        let mut at = argument;
        if at.kind() == Kind::CastExpression {
            let Some(value) = at.field(Field::Value) else {
                return false;
            };
            at = value;
        }
        semantics::is_address(at)
            && at
                .field(Field::Argument)
                .is_some_and(|of| self.code.text(of) == name)
    }

    /// True for an array of the structure on the host: its variable's declaration names the structure.
    fn is_host_array(&self, argument: Node) -> bool {
        let root = argument
            .descendants()
            .into_iter()
            .find(|node| node.kind() == Kind::Identifier);
        let Some(root) = root else { return false };
        let name = self.code.text(root);
        let declared = self.code.declaration(root);
        let written = self.code.text(argument);
        let shape = argument == root
            || written == format!("{name}.data()")
            || written == format!("&{name}[0]");
        shape
            && declared.is_some_and(|declared| {
                has_word(self.code.text(declared.node), self.definition.name)
            })
    }

    /// The number of structures in this many bytes: `n` of `n * sizeof(Particle)`. `None` where the bytes depend
    /// on the buffer in a way that would not compile any more: it is no pointer from now on.
    fn count(&self, bytes: Node, name: &str) -> Option<String> {
        let one = format!("sizeof({})", self.definition.name);
        let same = [
            format!("sizeof(*{name})"),
            format!("sizeof(struct {})", self.definition.name),
        ];
        let is_size = |node: Node| {
            let written = self.code.text(node);
            written == one || same.iter().any(|size| size == written)
        };
        let product = || {
            let (left, right) = (bytes.field(Field::Left)?, bytes.field(Field::Right)?);
            if binary(bytes) != Some(BinaryOperator::Multiply) {
                return None;
            }
            // What is left is the count as its author computed it.
            match (is_size(left), is_size(right)) {
                (_, true) => Some(self.code.text(left).to_owned()),
                (true, _) => Some(self.code.text(right).to_owned()),
                _ => None,
            }
        };
        let count = if is_size(bytes) {
            "1".to_owned()
        } else {
            product().unwrap_or_else(|| {
                let written = self.code.text(bytes).replace(&same[0], &one);
                format!("({written}) / {one}")
            })
        };
        (!has_word(&count, name)).then_some(count)
    }

    /// The helpers that are called. The host's array keeps its layout: a copy takes every field by a stride.
    fn helpers(&self) -> String {
        let Definition {
            name,
            arrays_name,
            fields,
            newline,
            ..
        } = self.definition;
        let runtime = self.runtime;
        let mut written = String::new();
        let mut function = |comment: &str, signature: String, step: &dyn Fn(&str) -> String| {
            let _ = write!(
                written,
                "{newline}{newline}// {comment}{newline}inline {runtime}Error_t {signature} {{"
            );
            let _ = write!(
                written,
                "{newline}  {runtime}Error_t status = {runtime}Success;"
            );
            for (_, field) in fields {
                let step = step(field);
                let _ = write!(
                    written,
                    "{newline}  if (status == {runtime}Success) status = {step};"
                );
            }
            let _ = write!(written, "{newline}  return status;{newline}}}");
        };
        if self.needed.allocate {
            function(
                "Room on the device for `count` elements of every field.",
                format!("allocate_arrays({arrays_name} *arrays, size_t count)"),
                &|field| {
                    format!("{runtime}Malloc(&arrays->{field}, count * sizeof(*arrays->{field}))")
                },
            );
        }
        if self.needed.upload {
            function(
                "From an array of structures on the host.",
                format!(
                    "upload_arrays(const {arrays_name} &arrays, const {name} *from, size_t count)"
                ),
                &|field| {
                    format!(
                        "{runtime}Memcpy2D(arrays.{field}, sizeof(from->{field}), &from->{field}, sizeof(*from), \
                         sizeof(from->{field}), count, {runtime}MemcpyHostToDevice)"
                    )
                },
            );
        }
        if self.needed.download {
            function(
                "To an array of structures on the host.",
                format!("download_arrays({name} *to, const {arrays_name} &arrays, size_t count)"),
                &|field| {
                    format!(
                        "{runtime}Memcpy2D(&to->{field}, sizeof(*to), arrays.{field}, sizeof(to->{field}), \
                         sizeof(to->{field}), count, {runtime}MemcpyDeviceToHost)"
                    )
                },
            );
        }
        if self.needed.release {
            function(
                "Every field's room on the device.",
                format!("release_arrays(const {arrays_name} &arrays)"),
                &|field| format!("{runtime}Free(arrays.{field})"),
            );
        }
        written
    }
}
