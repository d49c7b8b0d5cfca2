//! How often a sum of steps meets each residue, without running over the sum.
//!
//! Where a variable moves an address by one step, whatever the lane and the other variables, only the
//! address modulo a memory segment matters: the sum of several such variables is a convolution of the
//! residues of each.

use crate::shift::gcd;

/// A variable whose values lie evenly apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    /// How far one step moves.
    pub(crate) by: i64,
    /// How many values there are, the first at 0.
    pub(crate) values: i64,
    /// How often all of them occur.
    pub(crate) times: i64,
    /// How often all of them and one more value occur.
    pub(crate) longer: i64,
}

/// Residues, each with how often it occurs.
#[derive(Debug)]
pub(crate) struct Residues(pub(crate) Vec<(i64, f64)>);

/// The residues that occur modulo `modulus`, which is more than 0.
pub(crate) fn residues(modulus: i64, variables: &[Steps]) -> Residues {
    let unit = variables
        .iter()
        .fold(modulus, |unit, steps| gcd(unit, steps.by));
    let count = (modulus / unit) as usize;
    let mut all = vec![0.0; count];
    all[0] = 1.0;
    for steps in variables {
        let cycle = modulus / gcd(modulus, steps.by);
        let stride = (steps.by.rem_euclid(modulus) / unit) as usize;
        let mut next = vec![0.0; count];
        for value in 0..cycle.min(steps.values + i64::from(steps.longer > 0)) {
            // Values that leave this residue: each `cycle` behind the one before.
            let among = |values: i64| (values - value + cycle - 1).div_euclid(cycle).max(0);
            let weight = steps.times as f64 * among(steps.values) as f64
                + steps.longer as f64 * among(steps.values + 1) as f64;
            let shift = value as usize * stride % count;
            for (at, &before) in all.iter().enumerate() {
                next[(at + shift) % count] += before * weight;
            }
        }
        all = next;
    }
    let occurring = all
        .into_iter()
        .enumerate()
        .filter(|&(_, often)| often > 0.0)
        .map(|(at, often)| (at as i64 * unit, often));
    Residues(occurring.collect())
}

/// An upper bound on the number of residues.
pub(crate) fn most_residues(modulus: i64, variables: impl Iterator<Item = (i64, i64)>) -> i64 {
    let (mut unit, mut values) = (modulus, 1i64);
    for (by, count) in variables {
        unit = gcd(unit, by);
        values = values.saturating_mul(count.min(modulus / gcd(modulus, by)).max(1));
    }
    values.min(modulus / unit)
}
