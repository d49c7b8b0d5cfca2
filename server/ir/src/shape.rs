//! What a compiler sees of a kernel, apart from the values of its constants of floating point: `x * 0.299f` and
//! `x * 0.3f` become the same instructions.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::kernel::{Kernel, Real};

impl Hash for Real {
    /// By its bits, in a call of its own, so that [`Kernel::shape`] can tell numbers from all else.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(u128::from(self.value().to_bits()));
    }
}

impl Kernel {
    /// A hash of what is compiled, in which a constant of floating point counts by what could change instructions:
    /// whether it is a number that arithmetic treats in its own way (0, 1, powers of two, halves up to 32, what is not
    /// finite), whether its lower half is empty, as doubles in an instruction must be, and which others it equals.
    pub fn shape(&self) -> u64 {
        let mut hasher = ShapeHasher::default();
        self.language.hash(&mut hasher);
        (&self.vars, self.params, &self.body, &self.routines).hash(&mut hasher);
        (&self.name, self.name_site, self.required_block).hash(&mut hasher);
        self.not_understood.hash(&mut hasher);
        hasher.finish()
    }
}

#[derive(Default)]
struct ShapeHasher {
    hasher: FxHasher,
    /// Numbers that are nothing special, by first appearance.
    seen: Vec<u64>,
}

impl Hasher for ShapeHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
    }

    fn write_u8(&mut self, number: u8) {
        self.hasher.write_u8(number);
    }

    fn write_u32(&mut self, number: u32) {
        self.hasher.write_u32(number);
    }

    fn write_u64(&mut self, number: u64) {
        self.hasher.write_u64(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.hasher.write_usize(number);
    }

    /// A number: see [`Real`].
    fn write_u128(&mut self, number: u128) {
        let bits = number as u64;
        if is_special(f64::from_bits(bits)) {
            self.hasher.write_u64(bits);
            return;
        }
        let known = self.seen.iter().position(|seen| *seen == bits);
        let at = known.unwrap_or_else(|| {
            self.seen.push(bits);
            self.seen.len() - 1
        });
        // No number of bits that is special looks like this: it would be none.
        self.hasher.write_u64(u64::MAX);
        self.hasher.write_usize(at);
        self.hasher.write_u8(u8::from(bits.trailing_zeros() >= 32));
    }

    fn finish(&self) -> u64 {
        self.hasher.finish()
    }
}

fn is_special(value: f64) -> bool {
    let power_of_two = value.to_bits().trailing_zeros() >= 52;
    let half = (value * 2.0).fract() == 0.0 && value.abs() <= 32.0;
    !value.is_finite() || power_of_two || half
}
