//! Where the members of a class lie: the rules of the Itanium C++ ABI (2.4), by which nvcc and hipcc lay out on Linux.
//!
//! In: the members in their order, bases first. Out: the structure with their offsets. What holds: a bit-field is as wide as what it is
//! declared with, since that is what is read and written; an object with virtual functions begins with a pointer that has no name.

use warplens_ir::{Field, Struct, Type};
use warplens_syntax::{Field as Role, Kind, Node};

use super::forms::CLASSES;
use super::{Source, parts, text_of};
use crate::types::{Class, class_of};

/// Bases of bases are looked at this deep.
const DEEPEST_BASE: u32 = 16;

/// `#pragma pack` is looked for in this many bytes before a class.
const NEAR: usize = 4096;

/// A member of a class as it is declared.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) ty: Type,
    /// Of a bit-field its width.
    pub(super) bits: Option<u64>,
    /// What `alignas` in front of it says; 1 where nothing does.
    pub(super) align: u64,
    /// The bytes behind which the next member may lie.
    pub(super) taken: u64,
}

impl Member {
    pub(super) fn new(name: &str, ty: Type) -> Member {
        Member {
            name: name.to_owned(),
            taken: ty.size(),
            ty,
            bits: None,
            align: 1,
        }
    }

    /// A base: what follows it may lie in the padding at its end, unless C would lay it out alike.
    pub(super) fn base(ty: Type) -> Member {
        let taken = match &ty {
            Type::Struct(structure) if !class_of(structure).is_none_or(|of| is_like_c(&of)) => {
                let ends = structure.fields.iter();
                let ends = ends.map(|field| field.offset.saturating_add(field.ty.size()));
                let least = if is_polymorphic(&ty, 0) { 8 } else { 0 };
                ends.fold(least, u64::max)
            }
            ty => ty.size(),
        };
        Member {
            taken,
            ..Member::new("", ty)
        }
    }
}

/// What a class says of its layout.
pub(super) struct Said {
    pub(super) union: bool,
    /// Its `alignas`; 1 where it has none.
    pub(super) align: u64,
    /// No member is aligned to more, by `#pragma pack` or `packed`.
    pub(super) pack: Option<u64>,
}

/// The structure, with members that have no name among its fields.
pub(super) fn laid_out(name: &str, members: Vec<Member>, said: &Said) -> Struct {
    let mut align = said.align.max(1);
    let (mut bit, mut end) = (0_u128, 0_u128);
    let mut fields = Vec::with_capacity(members.len());
    for member in members {
        let natural = member.ty.align();
        let own = natural.min(said.pack.unwrap_or(natural)).max(member.align);
        let own = own.max(1);
        if said.union {
            bit = 0;
        }
        let offset = if let Some(width) = member.bits {
            let unit = u128::from(member.ty.size().max(1)) * 8;
            let fits = said.pack.is_some() || bit % unit + u128::from(width) <= unit;
            // `int : 0;` only ends the unit.
            if width == 0 || !fits {
                bit = bit.next_multiple_of(unit);
            }
            let offset = match said.pack {
                Some(_) => bit / 8,
                None => (bit - bit % unit) / 8,
            };
            bit += u128::from(width);
            end = end.max(bit.div_ceil(8));
            if width == 0 {
                continue;
            }
            offset
        } else {
            let offset = bit.div_ceil(8).next_multiple_of(u128::from(own));
            let behind = offset + u128::from(member.taken);
            bit = behind * 8;
            end = end.max(behind);
            offset
        };
        align = align.max(own);
        fields.push(Field {
            name: member.name,
            ty: member.ty,
            offset: u64::try_from(offset).unwrap_or(u64::MAX),
        });
    }
    let end = u64::try_from(end).unwrap_or(u64::MAX);
    Struct::placed(name, fields, end, align)
}

/// Fields of bases and of anonymous members are found in the structure itself.
pub(super) fn flatten(structure: &mut Struct) {
    let mut more = Vec::new();
    for field in &structure.fields {
        if field.name.is_empty()
            && let Type::Struct(inner) = &field.ty
        {
            more.extend(inner.fields.iter().cloned().map(|mut inner| {
                inner.offset = inner.offset.saturating_add(field.offset);
                inner
            }));
        }
    }
    structure.fields.retain(|field| !field.name.is_empty());
    structure.fields.extend(more);
}

/// What `#pragma pack` says in front of a class, or `packed` in it.
pub(super) fn pack_said(node: Node, source: Source) -> Option<u64> {
    let text = &source.parsed.text;
    let behind = text.get(node.end_byte()..).unwrap_or("");
    let end = node.end_byte() + behind.find(';').unwrap_or(0);
    let words = &source.parsed.words;
    let first = words.partition_point(|word| word.range.start < node.start_byte());
    let own = words[first..].iter();
    let own = own.take_while(|word| word.range.start < end);
    let body = node.field(Role::Body).map(|body| body.byte_range());
    let is_packed = own
        .filter(|word| {
            let within = body.as_ref();
            !within.is_some_and(|body| body.contains(&word.range.start))
        })
        .any(|word| word.argument.contains("packed"));
    if is_packed {
        return Some(1);
    }
    let mut from = node.start_byte().saturating_sub(NEAR);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let near = text.get(from..node.start_byte())?;
    let (_, said) = near.rsplit_once("pragma pack")?;
    let (_, inner) = said.split_once('(')?;
    let (inner, _) = inner.split_once(')')?;
    let last = inner.rsplit(',').next()?.trim();
    last.parse().ok().filter(|pack| *pack > 0)
}

/// True of a class that has, or inherits, virtual functions.
pub(super) fn is_polymorphic(ty: &Type, depth: u32) -> bool {
    let Type::Struct(structure) = ty else {
        return false;
    };
    let Some(class) = class_of(structure).filter(|_| depth < DEEPEST_BASE) else {
        return false;
    };
    let definition = &class.definition;
    let body = definition
        .node(CLASSES)
        .and_then(|node| node.field(Role::Body));
    body.is_some_and(|body| declares_virtual(body, Source::of(definition)))
        || class
            .bases
            .iter()
            .any(|(base, _)| is_polymorphic(base, depth + 1))
}

/// True of the body of a class that declares a function as virtual.
pub(super) fn declares_virtual(body: Node, source: Source) -> bool {
    parts(body).into_iter().any(|member| {
        let is_function = match member.kind() {
            Kind::FunctionDefinition => true,
            Kind::FieldDeclaration | Kind::Declaration => {
                crate::outline::function_declarator(member).is_some()
            }
            _ => false,
        };
        let head = member
            .field(Role::Body)
            .map_or(member.end_byte(), |body| body.start_byte());
        let text = &source.parsed.text[member.start_byte()..head];
        is_function && warplens_syntax::words_in(text).any(|word| word == "virtual")
    })
}

/// True of a class that C would lay out alike: no bases, no constructors, assignment or destructor of its own, no virtual functions, and
/// all members public.
fn is_like_c(class: &Class) -> bool {
    let definition = &class.definition;
    let Some(node) = definition.node(CLASSES) else {
        return true;
    };
    let Some(body) = node.field(Role::Body) else {
        return true;
    };
    let source = Source::of(definition);
    let mut public = node.kind() != Kind::ClassSpecifier;
    let like_c = parts(body).into_iter().all(|member| {
        if member.kind() == Kind::AccessSpecifier {
            public = text_of(member, source).starts_with("public");
            return true;
        }
        let Some(function) = crate::outline::function_declarator(member) else {
            return public || member.kind() != Kind::FieldDeclaration;
        };
        let name = function.field(Role::Declarator);
        let name = name.map_or("", |name| text_of(name, source));
        let name: String = name.split_whitespace().collect();
        let of_objects = name == class.name || name.starts_with('~') || name == "operator=";
        !of_objects || super::child_of_kind(member, Kind::DefaultMethodClause).is_some()
    });
    like_c && class.bases.is_empty() && !declares_virtual(body, source)
}
