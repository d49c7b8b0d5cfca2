//! Products of matrices of PTX that an architecture has no instruction for, and what nvcc writes in their place.
//!
//! Measured with `nvcc` of release 13 for `sm_75` to `sm_120`.

use crate::Class;
use crate::target::Machine;

/// What a product becomes.
pub(super) struct Emulated {
    /// What its factors are made ready by.
    pub beside: Vec<(Class, u32)>,
    /// What multiplies.
    pub product: (Class, u8),
    /// Bits of an element when it is multiplied.
    pub bits: u64,
}

/// `None` where the machine has the product. `factors`: registers that its factors are in.
pub(super) fn product(mnemonic: &str, machine: &Machine, factors: u32) -> Option<Emulated> {
    let mut words = mnemonic.split('.');
    if words.next() != Some("mma") {
        return None;
    }
    let has = |word: &str| mnemonic.split('.').any(|part| part == word);
    let each = |classes: &[(Class, u32)]| {
        let all = classes.iter();
        all.map(|(class, count)| (*class, count * factors))
            .collect()
    };
    if !machine.small_floats && (has("e4m3") || has("e5m2")) {
        // Two halves of a register of four bytes.
        return Some(Emulated {
            beside: each(&[(Class::F2f, 2)]),
            product: (Class::Hmma, 2),
            bits: 16,
        });
    }
    if !machine.nibbles && (has("s4") || has("u4")) {
        let beside = if has("s4") {
            each(&[(Class::Imad, 7), (Class::Shf, 8), (Class::Lop3, 15)])
        } else {
            each(&[(Class::Shf, 1), (Class::Lop3, 2)])
        };
        return Some(Emulated {
            beside,
            product: (Class::Hmma, 2),
            bits: 8,
        });
    }
    if !machine.single_bits && has("b1") {
        return Some(Emulated {
            beside: each(&[(Class::Shf, 3), (Class::Lop3, 4)]),
            product: (Class::Hmma, 8),
            bits: 8,
        });
    }
    if !machine.quarters && has("m8n8k4") && has("f16") {
        let beside = if has("f32") {
            vec![(Class::Shfl, 12), (Class::F2f, 24), (Class::Lop3, 3)]
        } else {
            vec![
                (Class::Shfl, 16),
                (Class::F2f, 40),
                (Class::Lop3, 1),
                (Class::Fmul, 16),
            ]
        };
        return Some(Emulated {
            beside,
            product: (Class::Ffma, if has("f32") { 32 } else { 16 }),
            bits: 16,
        });
    }
    None
}
