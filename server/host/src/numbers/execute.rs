//! A compiled loop is executed: on numbers, within a bound of steps.

use std::rc::Rc;

use warplens_syntax::BinaryOperator as Op;

use super::code::{Cell, Code, Draw, Function, Memory, Register, Step, place};
use crate::data::LARGEST;
use crate::kinds::{Number, double, real, wrapped};
use crate::random::{Distribution, Family, Generator, Sequences};

/// Iterations of the outermost loop after which it is asked whether the rest is in reach.
const TRIED: u64 = 256;

/// Where execution ended before the loop did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It is too long.
    Long,
    /// A condition, an address or a size is not known, or C gives no meaning.
    Unknown,
}

/// Executes a loop; `left`: the steps that it may take, and after it those that are left.
pub(super) fn execute(
    code: &mut Code,
    sequences: &mut Sequences,
    left: &mut u64,
) -> Result<(), Ended> {
    let allowed = *left;
    let mut state = State {
        cells: &mut code.registers,
        memories: &mut code.memories,
        generators: &mut code.generators,
        sequences,
    };
    let steps = &code.steps;
    let (mut at, mut iterations) = (0usize, 0u64);
    while let Some(step) = steps.get(at) {
        if *left == 0 {
            return Err(Ended::Long);
        }
        *left -= 1;
        at += 1;
        match *step {
            Step::Jump(to) => at = to as usize,
            Step::IfFalse(condition, to) => {
                if !state.decided(condition)? {
                    at = to as usize;
                }
            }
            Step::IfTrue(condition, to) => {
                if state.decided(condition)? {
                    at = to as usize;
                }
            }
            Step::Iteration(compared) => {
                iterations += 1;
                if iterations == TRIED
                    && let Some([a, b]) = compared
                {
                    let (a, b) = (state.cells[a as usize], state.cells[b as usize]);
                    let turns = a.bits.abs_diff(b.bits);
                    let spent = (allowed - *left) / TRIED;
                    if a.known && b.known && turns.saturating_mul(spent) > *left {
                        return Err(Ended::Long);
                    }
                }
            }
            other => state.step(other)?,
        }
    }
    Ok(())
}

struct State<'s> {
    cells: &'s mut Vec<Cell>,
    memories: &'s mut Vec<Memory>,
    generators: &'s mut Vec<Option<Generator>>,
    sequences: &'s mut Sequences,
}

impl State<'_> {
    fn decided(&self, condition: Register) -> Result<bool, Ended> {
        let cell = self.cells[condition as usize];
        if cell.known {
            Ok(cell.bits != 0)
        } else {
            Err(Ended::Unknown)
        }
    }

    fn put(&mut self, to: Register, cell: Cell) {
        self.cells[to as usize] = cell;
    }

    fn of(&self, register: Register) -> Cell {
        self.cells[register as usize]
    }

    fn number(&self, register: Register) -> Option<i64> {
        let cell = self.of(register);
        cell.known.then_some(cell.bits)
    }

    /// Where a pointer leads that is followed.
    fn target(&self, pointer: Register) -> Result<(usize, i64), Ended> {
        let bits = self.number(pointer).ok_or(Ended::Unknown)?;
        place(bits).ok_or(Ended::Unknown)
    }

    fn step(&mut self, step: Step) -> Result<(), Ended> {
        match step {
            Step::Unknown(to) => self.put(to, Cell::UNKNOWN),
            Step::Move(to, from) => self.put(to, self.of(from)),
            Step::Integer(operator, bits, signed, to, [a, b]) => {
                let (a, b) = (self.of(a), self.of(b));
                let cell = if a.known && b.known {
                    match integer(operator, a.bits, b.bits, bits, signed) {
                        Some(bits) => Cell::known(bits),
                        None => return Err(Ended::Unknown),
                    }
                } else {
                    Cell::UNKNOWN
                };
                self.put(to, cell);
            }
            Step::Real(operator, kind, to, [a, b]) => {
                let (a, b) = (self.of(a), self.of(b));
                let cell = if a.known && b.known {
                    Cell::known(floating(operator, kind, real(a.bits), real(b.bits)))
                } else {
                    Cell::UNKNOWN
                };
                self.put(to, cell);
            }
            Step::Convert(from, into, to, register) => {
                let cell = self.of(register);
                let converted = if cell.known {
                    converted(cell.bits, from, into)
                } else {
                    None
                };
                self.put(to, converted.map_or(Cell::UNKNOWN, Cell::known));
            }
            Step::Element(to, pointer, index, size) => {
                let cell = match (self.number(pointer), self.number(index)) {
                    (Some(pointer), Some(index)) => {
                        let bytes = index.checked_mul(i64::from(size));
                        let near = bytes.filter(|bytes| bytes.unsigned_abs() < 1 << 40);
                        Cell::known(pointer + near.ok_or(Ended::Unknown)?)
                    }
                    _ => Cell::UNKNOWN,
                };
                self.put(to, cell);
            }
            Step::Load(kind, to, pointer) => {
                let cell = match self.number(pointer) {
                    None => Cell::UNKNOWN,
                    Some(bits) => {
                        let (memory, offset) = place(bits).ok_or(Ended::Unknown)?;
                        match &self.memories[memory].data {
                            None => Cell::UNKNOWN,
                            Some(data) => {
                                let offset = usize::try_from(offset).map_err(|_| Ended::Unknown)?;
                                let (bits, known) =
                                    data.load(offset, kind).ok_or(Ended::Unknown)?;
                                Cell { bits, known }
                            }
                        }
                    }
                };
                self.put(to, cell);
            }
            Step::Store(kind, pointer, value) => {
                let value = self.number(value);
                let (memory, offset) = self.target(pointer)?;
                let memory = &mut self.memories[memory];
                memory.written = true;
                if let Some(data) = &mut memory.data {
                    let offset = usize::try_from(offset).map_err(|_| Ended::Unknown)?;
                    if !Rc::make_mut(data).store(offset, kind, value) {
                        return Err(Ended::Unknown);
                    }
                }
            }
            Step::Copy(to, from, bytes) => {
                let (to, at) = self.target(to)?;
                let (from, start) = self.target(from)?;
                let source = self.memories[from].data.clone();
                let memory = &mut self.memories[to];
                memory.written = true;
                let near = |offset: i64| usize::try_from(offset).map_err(|_| Ended::Unknown);
                let (at, start, bytes) = (near(at)?, near(start)?, bytes as usize);
                if let Some(data) = &mut memory.data {
                    let data = Rc::make_mut(data);
                    let done = match source {
                        Some(source) => data.copy(at, &source, start, bytes),
                        None => data.fill(at, bytes, None),
                    };
                    if !done {
                        return Err(Ended::Unknown);
                    }
                }
            }
            Step::Clear(pointer, bytes, zero) => {
                let (memory, at) = self.target(pointer)?;
                let at = usize::try_from(at).map_err(|_| Ended::Unknown)?;
                if let Some(data) = &mut self.memories[memory].data
                    && !Rc::make_mut(data).fill(at, bytes as usize, zero.then_some(0))
                {
                    return Err(Ended::Unknown);
                }
            }
            Step::Call(function, kind, to, [a, b]) => {
                let (a, b) = (self.of(a), self.of(b));
                let cell = if a.known && b.known {
                    Cell::known(called(function, kind, a.bits, b.bits))
                } else {
                    Cell::UNKNOWN
                };
                self.put(to, cell);
            }
            Step::Draw(Draw::By(distribution), generator, to) => {
                let bits = self.draw_by(distribution, generator as usize)?;
                self.put(to, bits.map_or(Cell::UNKNOWN, Cell::known));
            }
            Step::Draw(draw, generator, to) => {
                let drawn = self.draw(generator as usize)?;
                let cell = drawn.map_or(Cell::UNKNOWN, |word| {
                    Cell::known(match draw {
                        Draw::Word => word as i64,
                        Draw::Unit48 => double(word as f64 / (1u64 << 48) as f64),
                        Draw::Long48 => (word >> 17) as i64,
                        Draw::By(_) => 0,
                    })
                });
                self.put(to, cell);
            }
            Step::Seed(generator, value) => {
                let seed = self.number(value);
                let generator = &mut self.generators[generator as usize];
                let family = generator.map_or(Family::Rand, |generator| generator.family);
                *generator = seed.map(|seed| Generator::new(family, seed as u64));
            }
            Step::Length(to, memory, size) => {
                let cell = match &self.memories[memory as usize].data {
                    Some(data) => Cell::known(data.len() as i64 / i64::from(size.max(1))),
                    None => Cell::UNKNOWN,
                };
                self.put(to, cell);
            }
            Step::Push(memory, kind, value) => {
                let value = self.number(value);
                let memory = &mut self.memories[memory as usize];
                memory.written = true;
                let data = memory.data.as_mut().ok_or(Ended::Unknown)?;
                let data = Rc::make_mut(data);
                let end = data.len();
                if end as u64 >= LARGEST {
                    return Err(Ended::Long);
                }
                data.resize(end + kind.size());
                data.store(end, kind, value);
            }
            Step::Resize(memory, count, size) => {
                let count = self.number(count).ok_or(Ended::Unknown)?;
                let bytes = u64::try_from(count)
                    .ok()
                    .and_then(|count| count.checked_mul(u64::from(size)))
                    .filter(|bytes| *bytes <= LARGEST)
                    .ok_or(Ended::Long)?;
                let memory = &mut self.memories[memory as usize];
                memory.written = true;
                let data = memory.data.as_mut().ok_or(Ended::Unknown)?;
                Rc::make_mut(data).resize(bytes as usize);
            }
            Step::Jump(_) | Step::IfFalse(..) | Step::IfTrue(..) | Step::Iteration(_) => {}
        }
        Ok(())
    }

    fn draw(&mut self, generator: usize) -> Result<Option<u64>, Ended> {
        match &mut self.generators[generator] {
            None => Ok(None),
            Some(generator) => match self.sequences.next(generator) {
                Some(word) => Ok(Some(word)),
                None => Err(Ended::Long),
            },
        }
    }
}

impl State<'_> {
    /// What a distribution draws, as a register holds it; `None`: not known, and neither is what the generator gives from then on.
    fn draw_by(
        &mut self,
        distribution: Distribution,
        generator: usize,
    ) -> Result<Option<i64>, Ended> {
        let Some(family) = self.generators[generator].map(|known| known.family) else {
            return Ok(None);
        };
        let mut ended = None;
        let drawn = distribution.drawn(family, &mut || match self.draw(generator) {
            Ok(word) => word,
            Err(why) => {
                ended = Some(why);
                None
            }
        });
        if let Some(why) = ended {
            return Err(why);
        }
        if drawn.is_none() {
            self.generators[generator] = None;
        }
        Ok(drawn)
    }
}

/// An operator on integers in a width; `None` where C gives no value.
fn integer(operator: Op, a: i64, b: i64, bits: u8, signed: bool) -> Option<i64> {
    let wide = |value: i64| {
        if signed {
            i128::from(value)
        } else {
            i128::from(value as u64)
        }
    };
    let fits = |value: Option<i64>| value.map(|value| wrapped(value, bits, signed));
    // Sums of narrow integers do not overflow 64 bits.
    let exact = |value: Option<i64>, wrapping: i64| {
        if signed {
            value.filter(|value| wrapped(*value, bits, true) == *value)
        } else {
            Some(wrapped(wrapping, bits, false))
        }
    };
    match operator {
        Op::Add => exact(a.checked_add(b), a.wrapping_add(b)),
        Op::Subtract => exact(a.checked_sub(b), a.wrapping_sub(b)),
        Op::Multiply => exact(a.checked_mul(b), a.wrapping_mul(b)),
        Op::Divide if signed => exact(a.checked_div(b), 0),
        Op::Remainder if signed => exact(a.checked_rem(b), 0),
        Op::Divide => (a as u64).checked_div(b as u64).map(|value| value as i64),
        Op::Remainder => (a as u64).checked_rem(b as u64).map(|value| value as i64),
        Op::BitAnd => Some(a & b),
        Op::BitOr => Some(a | b),
        Op::BitXor => Some(wrapped(a ^ b, bits, signed)),
        Op::ShiftLeft if (0..i64::from(bits)).contains(&b) => fits(Some(a.wrapping_shl(b as u32))),
        Op::ShiftRight if (0..i64::from(bits)).contains(&b) => Some(if signed {
            a >> b
        } else {
            ((a as u64) >> b) as i64
        }),
        Op::Less => Some(i64::from(wide(a) < wide(b))),
        Op::LessEqual => Some(i64::from(wide(a) <= wide(b))),
        Op::Greater => Some(i64::from(wide(a) > wide(b))),
        Op::GreaterEqual => Some(i64::from(wide(a) >= wide(b))),
        Op::Equal => Some(i64::from(a == b)),
        Op::NotEqual => Some(i64::from(a != b)),
        Op::And => Some(i64::from(a != 0 && b != 0)),
        Op::Or => Some(i64::from(a != 0 || b != 0)),
        Op::ShiftLeft | Op::ShiftRight => None,
    }
}

/// An operator on floating point: a double as a register holds it, or the truth of a comparison.
fn floating(operator: Op, kind: Number, a: f64, b: f64) -> i64 {
    let number = |value: f64| {
        double(if kind == Number::F32 {
            f64::from(value as f32)
        } else {
            value
        })
    };
    match operator {
        Op::Add => number(a + b),
        Op::Subtract => number(a - b),
        Op::Multiply => number(a * b),
        Op::Divide => number(a / b),
        Op::Less => i64::from(a < b),
        Op::LessEqual => i64::from(a <= b),
        Op::Greater => i64::from(a > b),
        Op::GreaterEqual => i64::from(a >= b),
        Op::Equal => i64::from(a == b),
        Op::NotEqual => i64::from(a != b),
        Op::And => i64::from(a != 0.0 && b != 0.0),
        Op::Or => i64::from(a != 0.0 || b != 0.0),
        _ => double(f64::NAN),
    }
}

/// A number as another kind holds it; `None` where C gives no value.
pub(super) fn converted(bits: i64, from: Number, into: Number) -> Option<i64> {
    Some(match (from, into) {
        (Number::Int { .. }, Number::Int { bits: 1, .. }) => i64::from(bits != 0),
        (
            Number::Int { .. },
            Number::Int {
                bits: width,
                signed,
            },
        ) => wrapped(bits, width, signed),
        (
            Number::Int {
                bits: 64,
                signed: false,
            },
            _,
        ) => rounded(bits as u64 as f64, into),
        (Number::Int { .. }, _) => rounded(bits as f64, into),
        (_, Number::Int { bits: 1, .. }) => i64::from(real(bits) != 0.0),
        (
            _,
            Number::Int {
                bits: width,
                signed,
            },
        ) => {
            let value = real(bits);
            if !value.is_finite() || value.abs() >= 9e18 {
                return None;
            }
            wrapped(value.trunc() as i64, width, signed)
        }
        _ => rounded(real(bits), into),
    })
}

fn rounded(value: f64, kind: Number) -> i64 {
    double(if kind == Number::F32 {
        f64::from(value as f32)
    } else {
        value
    })
}

fn called(function: Function, kind: Number, a: i64, b: i64) -> i64 {
    let less = if kind.is_float() {
        real(a) < real(b)
    } else if matches!(kind, Number::Int { signed: false, .. }) {
        (a as u64) < (b as u64)
    } else {
        a < b
    };
    match function {
        Function::Absolute if kind.is_float() => double(real(a).abs()),
        Function::Absolute => a.wrapping_abs(),
        Function::Minimum => {
            if less {
                a
            } else {
                b
            }
        }
        Function::Maximum => {
            if less {
                b
            } else {
                a
            }
        }
        Function::Power => rounded(real(a).powf(real(b)), kind),
        Function::Of(function) => rounded(function(real(a)), kind),
    }
}
