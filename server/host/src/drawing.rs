//! Random numbers in a run: the C library's functions, the C++ library's generators and distributions.

use super::arguments::Argument;
use super::kinds::Number;
use super::numbers::value_of;
use super::random::{Distribution, Family, Generator, shuffled};
use super::state::Host;
use super::value::{Place, Record, Value};
use warplens_ir::Type;

/// `drand48` before it is seeded.
const FIRST_48: u64 = 0x1234_ABCD_330E;

impl Host<'_> {
    /// The C library's generators, not seeded yet.
    pub(super) fn begin_generators(&mut self) {
        let unseeded = Generator {
            family: Family::Rand48,
            seed: FIRST_48 >> 16,
            taken: 0,
        };
        for generator in [Generator::new(Family::Rand, 1), unseeded] {
            let unknown = Type::Unknown(String::new());
            let slot = self.slot(unknown, Value::Generator(generator), false);
            if let Some(running) = &mut self.running {
                running.generators.push(slot);
            }
        }
    }

    /// The variable that is the C library's generator of that family.
    pub(super) fn c_generator(&self, family: Family) -> Option<usize> {
        let at = usize::from(family == Family::Rand48);
        self.running.as_ref()?.generators.get(at).copied()
    }

    /// Where all generators are.
    pub(super) fn generators_now(&self) -> Vec<Option<Generator>> {
        let slots = self.running.iter().flat_map(|running| &running.generators);
        slots
            .map(|slot| match self.slots[*slot].value {
                Value::Generator(generator) => Some(generator),
                _ => None,
            })
            .collect()
    }

    /// Behind a loop whose last iteration that was walked began and ended with the generators there, and of which `turns` are left.
    pub(super) fn finish_generators(
        &mut self,
        began: &[Option<Generator>],
        ended: &[Option<Generator>],
        turns: u64,
    ) {
        let slots = self.running.as_ref();
        let slots = slots.map_or_else(Vec::new, |running| running.generators.clone());
        for (at, slot) in slots.into_iter().enumerate() {
            let (Some(Some(began)), Some(Some(ended))) = (began.get(at), ended.get(at)) else {
                continue;
            };
            if began.family != ended.family || began.seed != ended.seed {
                continue;
            }
            let step = ended.taken.checked_sub(began.taken);
            let taken = step
                .and_then(|step| step.checked_mul(turns))
                .and_then(|more| ended.taken.checked_add(more));
            let there = taken.map(|taken| Generator { taken, ..*ended });
            if step != Some(0) {
                self.set_generator(slot, there);
            }
        }
    }

    /// The next number of a generator that a variable is.
    fn next_of(&mut self, slot: usize) -> Option<(u64, Family)> {
        let Value::Generator(mut generator) = self.slots.get(slot)?.value else {
            return None;
        };
        let drawn = self.running.as_mut()?.sequences.next(&mut generator);
        self.set_generator(slot, drawn.map(|_| generator));
        Some((drawn?, generator.family))
    }

    /// `generator()`.
    pub(super) fn drawn_from(&mut self, place: &Place) -> Option<Value> {
        self.running.as_ref()?;
        let (word, _) = self.next_of(place.slot)?;
        // The word of the generators is `uint_fast32_t`.
        Some(Value::Int(word as i64, 64, false))
    }

    /// A function of the C library that draws, or seeds.
    pub(super) fn drawing_call(&mut self, name: &str, arguments: &[Argument]) -> Option<Value> {
        self.running.as_ref()?;
        let family = match name {
            "rand" | "random" | "srand" | "srandom" => Family::Rand,
            "drand48" | "lrand48" | "srand48" => Family::Rand48,
            _ => return None,
        };
        let slot = self.c_generator(family)?;
        if name.starts_with('s') {
            let seed = arguments.first()?.value.as_int();
            let seeded = seed.map(|seed| Generator::new(family, seed as u64));
            self.set_generator(slot, seeded);
            return Some(Value::int(0));
        }
        let drawn = self.next_of(slot);
        let Some((word, _)) = drawn else {
            return Some(Value::Unknown);
        };
        Some(match name {
            "drand48" => Value::Float(word as f64 / (1u64 << 48) as f64, 64),
            "lrand48" => Value::Int((word >> 17) as i64, 64, true),
            "random" => Value::Int(word as i64, 64, true),
            _ => Value::int(word as i64),
        })
    }

    /// A generator or a distribution of the C++ library; `None` for another class.
    pub(super) fn generator_object(
        &mut self,
        class: &str,
        values: &[Value],
        slot: usize,
    ) -> Option<Value> {
        self.running.as_ref()?;
        if let Some(family) = Family::named(class) {
            let seed = match values {
                [] => Some(family.default_seed()),
                [seed] => seed.as_int().map(|seed| seed as u64),
                _ => None,
            };
            let known = self.slots.get(slot)?.ty.clone();
            if matches!(known, Type::Pointer(..) | Type::Array(..)) {
                return None;
            }
            if let Some(running) = &mut self.running
                && !running.generators.contains(&slot)
            {
                running.generators.push(slot);
            }
            return Some(seed.map_or(Value::Unknown, |seed| {
                Value::Generator(Generator::new(family, seed))
            }));
        }
        if class == "bernoulli_distribution" {
            let probable = values.first().cloned().unwrap_or(Value::Float(0.5, 64));
            let fields = vec![
                ("low".to_owned(), Value::Float(0.0, 64)),
                ("high".to_owned(), probable.converted(&Type::DOUBLE)),
            ];
            return Some(Value::record(TRUTHS, fields));
        }
        let integers = class.starts_with("uniform_int_distribution");
        if !integers && !class.starts_with("uniform_real_distribution") {
            return None;
        }
        let of = match &self.slots.get(slot)?.ty {
            Type::Unknown(name) => name.clone(),
            _ => String::new(),
        };
        let of = of
            .split_once('<')
            .map(|(_, of)| of.trim_end_matches(['>', ' ']).trim().to_owned())
            .unwrap_or_default();
        let number = Type::named(&of, false).and_then(|ty| Number::of(&ty));
        let number = number.unwrap_or(if integers {
            Number::Int {
                bits: 32,
                signed: true,
            }
        } else {
            Number::F64
        });
        let bound = |at: usize, default: Value| {
            let given = values.get(at).cloned().unwrap_or(default);
            given.converted(&number.ty())
        };
        let last = match number {
            Number::Int { bits, signed } => {
                let used = u32::from(bits) - u32::from(signed);
                Value::Int((u64::MAX >> (64 - used)) as i64, bits, signed)
            }
            _ => Value::Float(1.0, 64),
        };
        let fields = vec![
            ("low".to_owned(), bound(0, Value::int(0))),
            ("high".to_owned(), bound(1, last)),
        ];
        Some(Value::record(
            if integers { INTEGERS } else { REALS },
            fields,
        ))
    }

    /// `distribution(generator)`.
    pub(super) fn drawn_by(&mut self, record: &Record, arguments: &[Argument]) -> Option<Value> {
        if ![INTEGERS, REALS, TRUTHS].contains(&record.class.as_str()) {
            return None;
        }
        let generator = match arguments {
            [only] => self.generator_given(only),
            _ => None,
        };
        let Some((slot, family)) = generator else {
            return Some(Value::Unknown);
        };
        let distribution = distribution_of(record);
        let mut draw = || self.next_of(slot).map(|(word, _)| word);
        let drawn = distribution.and_then(|by| by.drawn(family, &mut draw));
        let number = distribution.map(Distribution::number);
        if drawn.is_none() {
            self.set_generator(slot, None);
        }
        let value = drawn.zip(number);
        Some(value.map_or(Value::Unknown, |(bits, number)| value_of(bits, number)))
    }

    /// The generator that a call is given: the variable, and which sequence it gives.
    fn generator_given(&self, argument: &Argument) -> Option<(usize, Family)> {
        let place = argument.place.as_ref()?;
        let slot = match self.read(place) {
            Value::Address(pointed) => pointed.slot,
            _ => place.slot,
        };
        match self.slots.get(slot)?.value {
            Value::Generator(generator) => Some((slot, generator.family)),
            _ => None,
        }
    }

    /// Which elements `std::shuffle` exchanges that is given this generator, of that many; `None` where that is not known.
    pub(super) fn shuffled_by(
        &mut self,
        generator: &Argument,
        count: usize,
    ) -> Option<Vec<(usize, usize)>> {
        let (slot, family) = self.generator_given(generator)?;
        let mut draw = || self.next_of(slot).map(|(word, _)| word);
        let pairs = shuffled(&mut draw, family, count as u64);
        if pairs.is_none() {
            self.set_generator(slot, None);
        }
        pairs
    }

    /// A method of a generator: `seed`, `discard`, `min`, `max`.
    pub(super) fn generator_call(
        &mut self,
        slot: usize,
        name: &str,
        arguments: &[Argument],
    ) -> Option<Value> {
        let Value::Generator(generator) = self.slots.get(slot)?.value else {
            return None;
        };
        let given = arguments.first().map(|given| given.value.as_int());
        let now = match (name, given) {
            ("seed", None) => Some(Generator::new(
                generator.family,
                generator.family.default_seed(),
            )),
            ("seed", Some(seed)) if arguments.len() == 1 => {
                seed.map(|seed| Generator::new(generator.family, seed as u64))
            }
            ("discard", Some(count)) => count
                .and_then(|count| generator.taken.checked_add(u64::try_from(count).ok()?))
                .map(|taken| Generator { taken, ..generator }),
            _ => return None,
        };
        self.set_generator(slot, now);
        Some(Value::Unknown)
    }
}

/// What a distribution of a run draws; `None` where that is not known, or it is none.
pub(super) fn distribution_of(record: &Record) -> Option<Distribution> {
    let field = |name: &str| {
        let mut fields = record.fields.iter();
        fields.find(|(of, _)| of == name).map(|(_, value)| value)
    };
    Some(match (field("low")?, field("high")?) {
        (Value::Int(low, bits, signed), Value::Int(high, ..)) => {
            Distribution::Integers(*bits, *signed, [*low, *high])
        }
        (Value::Float(low, bits), Value::Float(high, _)) if record.class == REALS => {
            Distribution::Reals(*bits, [*low, *high])
        }
        (_, Value::Float(probable, _)) if record.class == TRUTHS => Distribution::Truths(*probable),
        _ => return None,
    })
}

/// The classes of distributions in a run.
const INTEGERS: &str = "uniform integers";
const REALS: &str = "uniform reals";
const TRUTHS: &str = "truths";
