//! Expressions as a person would write them in C.

use std::fmt::Write;

use crate::{Arena, BinaryOp, Id, Node};

const BITS: u8 = 2;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
const ATOM: u8 = 9;

impl Arena {
    /// The expression in C's notation.
    pub fn text(&self, id: Id) -> String {
        let mut out = String::new();
        self.print(id, 0, &mut out);
        out
    }

    fn print(&self, id: Id, outer: u8, out: &mut String) {
        if out.len() > 400 {
            // A longer formula is unreadable.
            if !out.ends_with('…') {
                out.push('…');
            }
            return;
        }
        let level = self.level(id);
        if level < outer {
            out.push('(');
        }
        match self.node(id) {
            Node::Const(value) => {
                let _ = write!(out, "{value}");
            }
            Node::Symbol(symbol) => out.push_str(self.symbol_name(*symbol)),
            Node::Sum(constant, terms) => self.print_sum(*constant, terms, out),
            Node::Product(factors) => {
                for (position, &factor) in factors.iter().enumerate() {
                    if position > 0 {
                        out.push_str(" * ");
                    }
                    self.print(factor, PRODUCT + 1, out);
                }
            }
            Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max | BinaryOp::MulHigh), a, b) => {
                out.push_str(spelling(*op));
                out.push('(');
                self.print(*a, 0, out);
                out.push_str(", ");
                self.print(*b, 0, out);
                out.push(')');
            }
            // The width is known from the type.
            Node::Binary(
                op @ (BinaryOp::Population | BinaryOp::LeadingZeros | BinaryOp::Reverse),
                a,
                _,
            ) => {
                out.push_str(spelling(*op));
                out.push('(');
                self.print(*a, 0, out);
                out.push(')');
            }
            Node::Binary(op, a, b) => {
                // `a | b & c` would be read otherwise than it is meant.
                let first = level + u8::from(level == BITS);
                self.print(*a, first, out);
                let _ = write!(out, " {} ", spelling(*op));
                self.print(*b, level + 1, out);
            }
            Node::Select(condition, a, b) => {
                self.print(*condition, 1, out);
                out.push_str(" ? ");
                self.print(*a, 1, out);
                out.push_str(" : ");
                self.print(*b, 0, out);
            }
            Node::Table(index, values) => {
                out.push('{');
                for (position, value) in values.iter().take(6).enumerate() {
                    let _ = write!(out, "{}{value}", if position > 0 { ", " } else { "" });
                }
                out.push_str(if values.len() > 6 { ", …}[" } else { "}[" });
                self.print(*index, 0, out);
                out.push(']');
            }
            Node::Wrap(bits, signed, a) => {
                let _ = write!(out, "({}int{bits}_t)", if *signed { "" } else { "u" });
                self.print(*a, ATOM, out);
            }
        }
        if level < outer {
            out.push(')');
        }
    }

    fn print_sum(&self, constant: i64, terms: &[(Id, i64)], out: &mut String) {
        let mut first = true;
        for (id, coefficient) in self.in_order(terms) {
            if first {
                if coefficient < 0 {
                    out.push('-');
                }
            } else {
                out.push_str(if coefficient < 0 { " - " } else { " + " });
            }
            first = false;
            self.print(
                id,
                if coefficient.abs() == 1 {
                    SUM + 1
                } else {
                    PRODUCT
                },
                out,
            );
            if coefficient.abs() != 1 {
                let _ = write!(out, " * {}", coefficient.unsigned_abs());
            }
        }
        if constant != 0 {
            let _ = write!(
                out,
                " {} {}",
                if constant < 0 { '-' } else { '+' },
                constant.unsigned_abs()
            );
        }
    }

    /// The terms of a sum as they are written: in the order that symbols were made, blocks, threads, parameters, loops.
    pub fn in_order(&self, terms: &[(Id, i64)]) -> Vec<(Id, i64)> {
        let mut ordered = terms.to_vec();
        ordered.sort_by_key(|&(id, _)| self.symbols_of(id).next());
        ordered
    }

    fn level(&self, id: Id) -> u8 {
        match self.node(id) {
            Node::Const(value) if *value < 0 => SUM,
            Node::Const(_) | Node::Symbol(_) | Node::Table(..) => ATOM,
            Node::Sum(0, terms) if terms.len() == 1 && terms[0].1 > 0 => PRODUCT,
            Node::Sum(..) => SUM,
            Node::Product(_) => PRODUCT,
            Node::Wrap(..) => ATOM - 1,
            Node::Select(..) => 0,
            Node::Binary(op, ..) => match op {
                BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::Population
                | BinaryOp::LeadingZeros
                | BinaryOp::Reverse
                | BinaryOp::MulHigh => ATOM,
                BinaryOp::Div | BinaryOp::Rem => PRODUCT,
                BinaryOp::Shl | BinaryOp::Shr => 4,
                // Below comparisons, as in C.
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => BITS,
                BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => 3,
                BinaryOp::LogicalAnd | BinaryOp::LogicalOr => 1,
            },
        }
    }
}

fn spelling(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Div => "/",
        BinaryOp::Rem => "%",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::LogicalAnd => "&&",
        BinaryOp::LogicalOr => "||",
        BinaryOp::Min => "min",
        BinaryOp::Max => "max",
        BinaryOp::Population => "popc",
        BinaryOp::LeadingZeros => "clz",
        BinaryOp::Reverse => "brev",
        BinaryOp::MulHigh => "mulhi",
    }
}
