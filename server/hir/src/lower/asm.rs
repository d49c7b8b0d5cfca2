//! Inline PTX: what its instructions do to memory, and what they cost by their names.

use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node};

use super::library::asynchronous;
use super::split::deref;
use super::{Lowering, Source, parts, text_of};
use warplens_ir::functions::{self, Function, MathClass};
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{Expr, ExprKind, Opaque};

impl Lowering<'_> {
    pub(super) fn inline_assembly(&mut self, node: Node, source: Source, site: Site) -> Expr {
        let code = node
            .field(Field::AssemblyCode)
            .map_or("", |code| text_of(code, source));
        let code = unquoted(code);
        let mut operands: Vec<(Option<Expr>, bool)> = Vec::new();
        for (field, output) in [(Field::OutputOperands, true), (Field::InputOperands, false)] {
            let Some(list) = node.field(field) else {
                continue;
            };
            for operand in parts(list) {
                let value = operand
                    .field(Field::Value)
                    .or_else(|| {
                        parts(operand)
                            .into_iter()
                            .rfind(|part| part.kind() != Kind::StringLiteral)
                    })
                    .map(|value| self.expr(value, source));
                operands.push((value, output));
            }
        }
        let mut all: Vec<Expr> = operands
            .iter()
            .filter(|(_, output)| !output)
            .filter_map(|(value, _)| value.clone())
            .collect();
        for instruction in code.split(';') {
            if let Some(expression) = instruction_of(instruction, &operands, site) {
                all.push(expression);
            }
        }
        // What comes out is not followed.
        for (value, output) in &operands {
            if let (Some(place), true) = (value, *output)
                && super::shapes::is_place(place)
            {
                let unknown = Expr {
                    kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
                    ty: place.ty.clone(),
                    site,
                };
                all.push(Expr {
                    kind: ExprKind::Assign(None, Box::new(place.clone()), Box::new(unknown)),
                    ty: place.ty.clone(),
                    site,
                });
            }
        }
        Expr {
            kind: ExprKind::List(all),
            ty: Type::Void,
            site,
        }
    }
}

/// The text of one or more string literals.
fn unquoted(code: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    let mut chars = code.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => inside = !inside,
            '\\' if inside => {
                chars.next();
                out.push(' ');
            }
            c if inside => out.push(c),
            _ => {}
        }
    }
    out
}

fn instruction_of(text: &str, operands: &[(Option<Expr>, bool)], site: Site) -> Option<Expr> {
    let text = text.trim().trim_start_matches('{').trim();
    let text = match text.strip_prefix('@') {
        // Under a predicate.
        Some(rest) => rest.split_once(char::is_whitespace)?.1.trim(),
        None => text,
    };
    let (opcode, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if opcode.is_empty() || opcode.starts_with('.') || opcode.ends_with(':') || opcode == "}" {
        return None;
    }
    let operand = |at: usize| operands.get(at).and_then(|(value, _)| value.clone());
    let numbers = |text: &str| -> Vec<usize> {
        text.split('%')
            .skip(1)
            .filter_map(|part| {
                let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
                digits.parse().ok()
            })
            .collect()
    };
    let addresses: Vec<usize> = rest
        .split('[')
        .skip(1)
        .filter_map(|part| numbers(part.split(']').next()?).first().copied())
        .collect();
    let call = |function: Function, arguments: Vec<Expr>, ty: Type| Expr {
        kind: ExprKind::Call(function, arguments),
        ty,
        site,
    };
    let mut words = opcode.split('.');
    let base = words.next()?;
    let suffixes: Vec<&str> = words.collect();
    let has = |suffix: &str| suffixes.contains(&suffix);
    let space = if suffixes.iter().any(|s| s.starts_with("shared")) {
        AddressSpace::Shared
    } else if has("const") {
        AddressSpace::Constant
    } else {
        AddressSpace::Global
    };
    let scalar = match suffixes.last().copied().unwrap_or("") {
        "f64" => Type::DOUBLE,
        "f32" => Type::FLOAT,
        "f16" | "bf16" => Type::Float { bits: 16 },
        "u64" | "s64" | "b64" => Type::LONG,
        "u16" | "s16" | "b16" => Type::Int {
            bits: 16,
            signed: false,
        },
        "u8" | "s8" | "b8" => Type::BYTE,
        _ => Type::UINT,
    };
    let lanes = if has("v4") || has("x4") {
        4
    } else if has("v2") || has("x2") {
        2
    } else {
        1
    };
    let ty = if lanes > 1 {
        Type::Vector(Arc::new(scalar.clone()), lanes)
    } else {
        scalar.clone()
    };
    let pointer = |at: usize, to: &Type| {
        let value = operand(at)?;
        Some(Expr {
            kind: ExprKind::Cast(true, Box::new(value)),
            ty: Type::Pointer(Arc::new(to.clone()), space),
            site,
        })
    };
    match base {
        "ld" | "ldu" | "ldmatrix" => {
            let at = pointer(*addresses.first()?, &ty)?;
            Some(call(Function::Load, vec![at], ty))
        }
        "st" | "stmatrix" => {
            let at = pointer(*addresses.first()?, &ty)?;
            let value = Expr {
                kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
                ty,
                site,
            };
            Some(call(Function::Store, vec![at, value], Type::Void))
        }
        "atom" | "red" => {
            let at = pointer(*addresses.first()?, &scalar)?;
            Some(call(functions::of_ptx(base)?, vec![at], scalar))
        }
        "cp" if has("async") && addresses.len() >= 2 => {
            let bytes: u8 = rest
                .rsplit(',')
                .map(str::trim)
                .find_map(|word| word.parse().ok())
                .unwrap_or(16);
            let piece = Type::Vector(Arc::new(Type::UINT), (bytes / 4).max(1));
            let from = Expr {
                kind: ExprKind::Cast(true, Box::new(operand(addresses[1])?)),
                ty: Type::Pointer(Arc::new(piece.clone()), AddressSpace::Global),
                site,
            };
            let to = Expr {
                kind: ExprKind::Cast(true, Box::new(operand(addresses[0])?)),
                ty: Type::Pointer(Arc::new(piece.clone()), AddressSpace::Shared),
                site,
            };
            Some(asynchronous(Expr {
                kind: ExprKind::Assign(
                    None,
                    Box::new(deref(to, site)),
                    Box::new(deref(from, site)),
                ),
                ty: piece,
                site,
            }))
        }
        _ if let Some(function) = functions::of_ptx(base)
            && (scalar.is_float()
                || !matches!(function, Function::Math(MathClass::Float(_), _))) =>
        {
            let nothing = matches!(
                function,
                Function::Ignored(..) | Function::Math(MathClass::Tensor, _)
            );
            let gives = if nothing { Type::Void } else { scalar };
            Some(call(function, Vec::new(), gives))
        }
        _ => Some(call(
            Function::Math(MathClass::Int(1), base.into()),
            Vec::new(),
            Type::UINT,
        )),
    }
}
