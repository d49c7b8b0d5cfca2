//! Generators of pseudo-random numbers whose seed the program gives: what they draw is as known as the seed.
//!
//! In: a generator, its seed, how many numbers it has given. Out: the next one. What holds: the sequences are those of glibc (`rand`,
//! `drand48`) and of the C++ standard (`mt19937`, `minstd_rand`), the distributions those of libstdc++; how far a sequence is computed is bounded.

use super::kinds::{Number, double};

/// Steps that a run computes at most to come to where a sequence is.
const MOST_STEPS: u64 = 4_000_000;
/// At this distance it is cheaper to compute where `rand` is than to walk there.
const WORTH_JUMPING: u64 = 50_000;

/// Which sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Family {
    /// `rand` of glibc.
    Rand,
    /// `drand48` and its family.
    Rand48,
    /// `std::mt19937`.
    Mersenne,
    /// `std::mt19937_64`.
    Mersenne64,
    /// `std::minstd_rand` with its multiplier.
    Congruential(u32),
}

impl Family {
    /// The generator of the C++ library of that name.
    pub(super) fn named(class: &str) -> Option<Family> {
        Some(match class {
            "mt19937" => Family::Mersenne,
            "mt19937_64" => Family::Mersenne64,
            "default_random_engine" | "minstd_rand0" => Family::Congruential(16807),
            "minstd_rand" => Family::Congruential(48271),
            _ => return None,
        })
    }

    /// The seed of a generator of the C++ library that is given none.
    pub(super) fn default_seed(self) -> u64 {
        match self {
            Family::Mersenne | Family::Mersenne64 => 5489,
            _ => 1,
        }
    }
}

/// Where a generator is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Generator {
    pub(super) family: Family,
    pub(super) seed: u64,
    /// Numbers given so far.
    pub(super) taken: u64,
}

/// The sequences that a run came to, each where it was asked last.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    known: Vec<(Generator, Sequence)>,
    steps: u64,
}

#[derive(Debug, Clone)]
enum Sequence {
    /// The last 31 words, the oldest at `at`.
    Additive { words: [u32; 31], at: usize },
    /// The value itself.
    Linear(u64),
    /// The state, and the next word of it.
    Mersenne { words: Box<[u32; 624]>, at: usize },
    /// The same in words of 64 bits.
    Mersenne64 { words: Box<[u64; 312]>, at: usize },
}

/// Sequences that are kept.
const MOST_KEPT: usize = 8;

const RAND48: u64 = 0x5_DEEC_E66D;
const MASK48: u64 = (1 << 48) - 1;

impl Generator {
    pub(super) fn new(family: Family, seed: u64) -> Generator {
        Generator {
            family,
            seed,
            taken: 0,
        }
    }
}

impl Sequences {
    /// The next number of a generator, which has given one more then; `None` where that is too far. `rand` gives 31 bits, `drand48` the
    /// 48 bits of its state.
    pub(super) fn next(&mut self, generator: &mut Generator) -> Option<u64> {
        let at = self.at(generator)?;
        let (known, sequence) = &mut self.known[at];
        let value = sequence.step(known.family);
        known.taken += 1;
        generator.taken += 1;
        Some(value)
    }

    /// The sequence where the generator is.
    fn at(&mut self, generator: &Generator) -> Option<usize> {
        let same = |(known, _): &(Generator, Sequence)| {
            known.family == generator.family
                && known.seed == generator.seed
                && known.taken <= generator.taken
        };
        let at = match self.known.iter().position(same) {
            Some(at) => at,
            None => {
                if self.known.len() >= MOST_KEPT {
                    self.known.remove(0);
                }
                let start = Generator::new(generator.family, generator.seed);
                let sequence = Sequence::seeded(generator.family, generator.seed);
                self.known.push((start, sequence));
                self.known.len() - 1
            }
        };
        let (known, sequence) = &mut self.known[at];
        let behind = generator.taken - known.taken;
        if let Some(jumped) = sequence.jumped(known.family, behind) {
            *sequence = jumped;
        } else {
            self.steps = self.steps.saturating_add(behind);
            if self.steps > MOST_STEPS {
                return None;
            }
            for _ in 0..behind {
                sequence.step(known.family);
            }
        }
        known.taken = generator.taken;
        Some(at)
    }
}

impl Sequence {
    fn seeded(family: Family, seed: u64) -> Sequence {
        match family {
            Family::Rand => {
                let seed = if seed as u32 == 0 { 1 } else { seed as u32 };
                let mut words = [0u32; 31];
                words[0] = seed;
                let mut word = i64::from(seed as i32);
                for next in &mut words[1..] {
                    let (high, low) = (word / 127_773, word % 127_773);
                    word = 16_807 * low - 2_836 * high;
                    if word < 0 {
                        word += 2_147_483_647;
                    }
                    *next = word as u32;
                }
                // The first sum is that of the fourth word and the first.
                let mut sequence = Sequence::Additive { words, at: 3 };
                for _ in 0..310 {
                    sequence.step(family);
                }
                sequence
            }
            Family::Rand48 => Sequence::Linear((u64::from(seed as u32) << 16) | 0x330E),
            Family::Congruential(_) => {
                let state = seed % 2_147_483_647;
                Sequence::Linear(if state == 0 { 1 } else { state })
            }
            Family::Mersenne => {
                let mut words = Box::new([0u32; 624]);
                words[0] = seed as u32;
                for at in 1..624 {
                    let before = words[at - 1];
                    words[at] = 1_812_433_253u32
                        .wrapping_mul(before ^ (before >> 30))
                        .wrapping_add(at as u32);
                }
                Sequence::Mersenne { words, at: 624 }
            }
            Family::Mersenne64 => {
                let mut words = Box::new([0u64; 312]);
                words[0] = seed;
                for at in 1..312 {
                    let before = words[at - 1];
                    words[at] = 6_364_136_223_846_793_005u64
                        .wrapping_mul(before ^ (before >> 62))
                        .wrapping_add(at as u64);
                }
                Sequence::Mersenne64 { words, at: 312 }
            }
        }
    }

    /// The same that many numbers on, where that needs no walk through them.
    fn jumped(&self, family: Family, by: u64) -> Option<Sequence> {
        let state = match self {
            Sequence::Linear(state) => state,
            Sequence::Additive { words, at } if by >= WORTH_JUMPING => {
                return Some(Sequence::Additive {
                    words: additive_jumped(words, *at, by),
                    at: 0,
                });
            }
            _ => return None,
        };
        let (mut multiplier, mut add, modulus) = match family {
            Family::Rand48 => (RAND48, 0xB, 1u64 << 48),
            Family::Congruential(multiplier) => (u64::from(multiplier), 0, 2_147_483_647),
            Family::Rand | Family::Mersenne | Family::Mersenne64 => return None,
        };
        let modulus = u128::from(modulus);
        let product = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) % modulus) as u64;
        let sum = |a: u64, b: u64| ((u128::from(a) + u128::from(b)) % modulus) as u64;
        let (mut state, mut left) = (*state, by);
        while left > 0 {
            if left & 1 == 1 {
                state = sum(product(state, multiplier), add);
            }
            add = sum(product(add, multiplier), add);
            multiplier = product(multiplier, multiplier);
            left >>= 1;
        }
        Some(Sequence::Linear(state))
    }

    fn step(&mut self, family: Family) -> u64 {
        match self {
            Sequence::Additive { words, at } => {
                let word = words[*at].wrapping_add(words[(*at + 28) % 31]);
                words[*at] = word;
                *at = (*at + 1) % 31;
                u64::from(word >> 1)
            }
            Sequence::Linear(state) => {
                *state = match family {
                    Family::Congruential(multiplier) => {
                        *state * u64::from(multiplier) % 2_147_483_647
                    }
                    _ => state.wrapping_mul(RAND48).wrapping_add(0xB) & MASK48,
                };
                *state
            }
            Sequence::Mersenne { words, at } => {
                if *at >= 624 {
                    twist(words);
                    *at = 0;
                }
                let mut word = words[*at];
                *at += 1;
                word ^= word >> 11;
                word ^= (word << 7) & 0x9D2C_5680;
                word ^= (word << 15) & 0xEFC6_0000;
                u64::from(word ^ (word >> 18))
            }
            Sequence::Mersenne64 { words, at } => {
                if *at >= 312 {
                    twist64(words);
                    *at = 0;
                }
                let mut word = words[*at];
                *at += 1;
                word ^= (word >> 29) & 0x5555_5555_5555_5555;
                word ^= (word << 17) & 0x71D6_7FFF_EDA6_0000;
                word ^= (word << 37) & 0xFFF7_EEE0_0000_0000;
                word ^ (word >> 43)
            }
        }
    }
}

/// The words of `rand` that many numbers on, the oldest first. Each number is r(n) = r(n - 31) + r(n - 3), so that x^31 = x^28 + 1
/// and the coefficients of x^`by` say which of the 31 words add up to the one that many on.
fn additive_jumped(words: &[u32; 31], at: usize, by: u64) -> [u32; 31] {
    let product = |a: &[u32; 31], b: &[u32; 31]| {
        let mut all = [0u32; 61];
        for (i, a) in a.iter().enumerate() {
            for (j, b) in b.iter().enumerate() {
                all[i + j] = all[i + j].wrapping_add(a.wrapping_mul(*b));
            }
        }
        for power in (31..61).rev() {
            let term = all[power];
            all[power - 3] = all[power - 3].wrapping_add(term);
            all[power - 31] = all[power - 31].wrapping_add(term);
        }
        let mut reduced = [0u32; 31];
        reduced.copy_from_slice(&all[..31]);
        reduced
    };
    let (mut power, mut result) = ([0u32; 31], [0u32; 31]);
    power[1] = 1;
    result[0] = 1;
    let mut left = by;
    while left > 0 {
        if left & 1 == 1 {
            result = product(&result, &power);
        }
        power = product(&power, &power);
        left >>= 1;
    }
    let mut ahead = [0u32; 61];
    for (n, word) in ahead[..31].iter_mut().enumerate() {
        *word = words[(at + n) % 31];
    }
    for n in 31..61 {
        ahead[n] = ahead[n - 31].wrapping_add(ahead[n - 3]);
    }
    std::array::from_fn(|n| {
        let terms = result.iter().zip(&ahead[n..]);
        terms.fold(0u32, |sum, (factor, word)| {
            sum.wrapping_add(factor.wrapping_mul(*word))
        })
    })
}

fn twist(words: &mut [u32; 624]) {
    for at in 0..624 {
        let mixed = (words[at] & 0x8000_0000) | (words[(at + 1) % 624] & 0x7FFF_FFFF);
        let odd = if mixed & 1 == 1 { 0x9908_B0DF } else { 0 };
        words[at] = words[(at + 397) % 624] ^ (mixed >> 1) ^ odd;
    }
}

fn twist64(words: &mut [u64; 312]) {
    for at in 0..312 {
        let mixed = (words[at] & !0x7FFF_FFFF) | (words[(at + 1) % 312] & 0x7FFF_FFFF);
        let odd = if mixed & 1 == 1 {
            0xB502_6F5A_A966_19E9
        } else {
            0
        };
        words[at] = words[(at + 156) % 312] ^ (mixed >> 1) ^ odd;
    }
}

/// A distribution of the C++ library that keeps nothing from one number to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Distribution {
    /// `uniform_int_distribution` of integers of a width, from a lowest to a highest.
    Integers(u8, bool, [i64; 2]),
    /// `uniform_real_distribution` of a width.
    Reals(u8, [f64; 2]),
    /// `bernoulli_distribution`: how probable true is.
    Truths(f64),
}

impl Distribution {
    /// What it draws.
    pub(super) fn number(self) -> Number {
        match self {
            Distribution::Integers(bits, signed, _) => Number::Int { bits, signed },
            Distribution::Reals(..=32, _) => Number::F32,
            Distribution::Reals(..) => Number::F64,
            Distribution::Truths(_) => Number::Int {
                bits: 1,
                signed: false,
            },
        }
    }

    /// Its next number as a register holds it, of a generator of that family; `None` where it is not known.
    pub(super) fn drawn(
        self,
        family: Family,
        draw: &mut dyn FnMut() -> Option<u64>,
    ) -> Option<i64> {
        match self {
            Distribution::Integers(_, signed, [low, high]) => {
                let wide = |value: i64| {
                    if signed {
                        i128::from(value)
                    } else {
                        i128::from(value as u64)
                    }
                };
                let span = u64::try_from(wide(high) - wide(low)).ok()?;
                let drawn = uniform(draw, family, span)?;
                Some((low as u64).wrapping_add(drawn) as i64)
            }
            Distribution::Reals(bits, [low, high]) => {
                let unit = canonical(draw, family, bits)?;
                Some(double(if bits <= 32 {
                    let (unit, low, high) = (unit as f32, low as f32, high as f32);
                    f64::from(unit * (high - low) + low)
                } else {
                    unit * (high - low) + low
                }))
            }
            Distribution::Truths(probable) => {
                let unit = canonical(draw, family, 64)?;
                Some(i64::from(unit < probable))
            }
        }
    }
}

/// The least number that a generator gives, and the most above that.
fn range_of(family: Family) -> (u64, u64) {
    match family {
        Family::Mersenne => (0, u64::from(u32::MAX)),
        Family::Mersenne64 => (0, u64::MAX),
        _ => (1, 2_147_483_645),
    }
}

/// A number from 0 to `span` as `std::uniform_int_distribution` of libstdc++ draws it.
pub(super) fn uniform(
    draw: &mut dyn FnMut() -> Option<u64>,
    family: Family,
    span: u64,
) -> Option<u64> {
    let (least, range) = range_of(family);
    if span >= range {
        // Of a wider one it takes several numbers.
        return if span == range {
            draw().map(|drawn| drawn - least)
        } else {
            None
        };
    }
    let count = span + 1;
    Some(match family {
        Family::Mersenne => {
            let mut product = draw()?.checked_mul(count)?;
            if (product as u32) < count as u32 {
                let threshold = (count as u32).wrapping_neg() % count as u32;
                while (product as u32) < threshold {
                    product = draw()?.checked_mul(count)?;
                }
            }
            product >> 32
        }
        Family::Mersenne64 => {
            let times = |drawn: u64| u128::from(drawn) * u128::from(count);
            let mut product = times(draw()?);
            if (product as u64) < count {
                let threshold = count.wrapping_neg() % count;
                while (product as u64) < threshold {
                    product = times(draw()?);
                }
            }
            (product >> 64) as u64
        }
        _ => {
            let scale = range / count;
            let past = count * scale;
            loop {
                let drawn = draw()? - least;
                if drawn < past {
                    break drawn / scale;
                }
            }
        }
    })
}

/// Which elements change their places, one pair after the other, where `std::shuffle` of libstdc++ shuffles that many: the second of
/// a pair with the first.
pub(super) fn shuffled(
    draw: &mut dyn FnMut() -> Option<u64>,
    family: Family,
    count: u64,
) -> Option<Vec<(usize, usize)>> {
    let mut pairs = Vec::new();
    if count < 2 {
        return Some(pairs);
    }
    let mut at = 1;
    // One number is drawn for two elements where the generator gives enough of them.
    if range_of(family).1 / count >= count {
        if count.is_multiple_of(2) {
            pairs.push((at as usize, uniform(draw, family, 1)? as usize));
            at += 1;
        }
        while at < count {
            let (first, second) = (at + 1, at + 2);
            let both = uniform(draw, family, first * second - 1)?;
            pairs.push((at as usize, (both / second) as usize));
            pairs.push((at as usize + 1, (both % second) as usize));
            at += 2;
        }
    } else {
        while at < count {
            pairs.push((at as usize, uniform(draw, family, at)? as usize));
            at += 1;
        }
    }
    Some(pairs)
}

/// `std::generate_canonical` in that many bits of a mantissa: from 0 up to 1.
fn canonical(draw: &mut dyn FnMut() -> Option<u64>, family: Family, bits: u8) -> Option<f64> {
    let (least, range, log) = match family {
        Family::Mersenne => (0, 4_294_967_296.0, 32),
        Family::Mersenne64 => (0, 18_446_744_073_709_551_616.0, 64),
        _ => (1, 2_147_483_646.0, 30),
    };
    let mantissa = if bits <= 32 { 24 } else { 53u32 };
    let draws = mantissa.div_ceil(log).max(1);
    let held = |value: f64| match bits {
        ..=32 => f64::from(value as f32),
        _ => value,
    };
    let (mut sum, mut scale) = (0.0f64, 1.0f64);
    for _ in 0..draws {
        let word = draw()? - least;
        let drawn = if bits <= 32 {
            f64::from(word as f32)
        } else {
            word as f64
        };
        sum = held(sum + held(drawn * scale));
        scale = held(scale * range);
    }
    let value = held(sum / scale);
    Some(match (value < 1.0, bits) {
        (true, _) => value,
        (false, ..=32) => f64::from(1.0 - f32::EPSILON / 2.0),
        (false, _) => 1.0 - f64::EPSILON / 2.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(family: Family, seed: u64, count: usize) -> Vec<u64> {
        let mut sequences = Sequences::default();
        let mut generator = Generator::new(family, seed);
        (0..count)
            .map(|_| sequences.next(&mut generator).expect("in reach"))
            .collect()
    }

    #[test]
    fn the_sequences_are_those_of_the_libraries() {
        // What glibc's `rand` gives without a seed, and the 10,000th number that the C++ standard asks of its generators.
        assert_eq!(
            first(Family::Rand, 1, 3),
            [1_804_289_383, 846_930_886, 1_681_692_777]
        );
        assert_eq!(first(Family::Mersenne, 5489, 10_000)[9_999], 4_123_659_995);
        let wide = first(Family::Mersenne64, 5489, 10_000);
        assert_eq!(wide[9_999], 9_981_545_732_273_789_042);
        let minstd = first(Family::Congruential(16807), 1, 10_000);
        assert_eq!(minstd[9_999], 1_043_618_065);
        // `srand48(0)`: 0.17082803610628972.
        let drawn = first(Family::Rand48, 0, 1)[0] as f64 / (1u64 << 48) as f64;
        assert!((drawn - 0.170_828_036_106_289_72).abs() < 1e-15, "{drawn}");
    }

    #[test]
    fn numbers_far_on_are_those_that_a_walk_comes_to() {
        let mut walked = Sequence::seeded(Family::Rand, 42);
        for skipped in 0..3u64 {
            for _ in 0..WORTH_JUMPING + 7 * skipped {
                walked.step(Family::Rand);
            }
        }
        let by = 3 * WORTH_JUMPING + 21;
        let mut jumped = Sequence::seeded(Family::Rand, 42)
            .jumped(Family::Rand, by)
            .expect("a jump");
        for _ in 0..100 {
            assert_eq!(jumped.step(Family::Rand), walked.step(Family::Rand));
        }
    }

    #[test]
    fn a_sequence_is_entered_anywhere() {
        for family in [
            Family::Rand,
            Family::Rand48,
            Family::Mersenne,
            Family::Mersenne64,
            Family::Congruential(48271),
        ] {
            let all = first(family, 7, 1_000);
            let mut sequences = Sequences::default();
            for at in [900, 3, 4, 700, 999] {
                let mut generator = Generator {
                    taken: at as u64,
                    ..Generator::new(family, 7)
                };
                let drawn = sequences.next(&mut generator);
                assert_eq!(drawn, Some(all[at]), "{family:?} {at}");
            }
        }
    }

    #[test]
    fn too_far_is_not_known() {
        let mut sequences = Sequences::default();
        let mut generator = Generator {
            taken: u64::MAX / 2,
            ..Generator::new(Family::Mersenne, 7)
        };
        assert_eq!(sequences.next(&mut generator), None);
    }
}
