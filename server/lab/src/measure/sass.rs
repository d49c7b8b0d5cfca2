//! What a machine instruction of NVIDIA's does to memory, by its name in SASS.

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    Global,
    Shared,
}

impl Space {
    /// What one request costs, as both sides call it.
    pub fn unit(self) -> &'static str {
        match self {
            Space::Global => "sectors",
            Space::Shared => "wavefronts",
        }
    }

    /// ncu's heading of it: what the addresses ask for, whatever the caches have.
    pub fn heading(self) -> &'static str {
        match self {
            Space::Global => "L2 Theoretical Sectors Global",
            Space::Shared => "L1 Wavefronts Shared",
        }
    }
}

/// Memory, operation and bytes a lane of what a machine instruction does: nothing where it is no access of either memory or never
/// done, two where it copies.
pub fn memory(sass: &str) -> Vec<(Space, &'static str, u64)> {
    // A predicate may stand before it.
    let mut words = sass.split_whitespace();
    if sass.trim_start().starts_with("@!PT") {
        return Vec::new();
    }
    let Some(word) = words.find(|word| !word.starts_with('@')) else {
        return Vec::new();
    };
    let mut parts = word.trim_end_matches(';').split('.');
    let accesses: &[(Space, &'static str)] = match parts.next().unwrap_or_default() {
        "LDG" => &[(Space::Global, "load")],
        "LDGSTS" => &[(Space::Global, "load"), (Space::Shared, "store")],
        "STG" => &[(Space::Global, "store")],
        "ATOMG" | "ATOM" | "RED" | "REDG" => &[(Space::Global, "atomic")],
        "LDS" | "LDSM" => &[(Space::Shared, "load")],
        "STS" | "STSM" => &[(Space::Shared, "store")],
        "ATOMS" => &[(Space::Shared, "atomic")],
        _ => return Vec::new(),
    };
    let matrix = word.contains("M88") || word.contains("MT88");
    let width = parts.rev().find_map(|part| match part {
        // Matrices of 8 by 8 halves: a word a lane each.
        "4" if matrix => Some(16),
        "2" if matrix => Some(8),
        "16" if matrix => None,
        "U8" | "S8" => Some(1),
        "U16" | "S16" => Some(2),
        "64" => Some(8),
        "128" => Some(16),
        "256" => Some(32),
        _ => None,
    });
    let width = width.unwrap_or(4);
    accesses
        .iter()
        .map(|&(space, op)| (space, op, width))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_by_their_names() {
        assert_eq!(
            memory("LDG.E.128.CONSTANT R4, [R2]"),
            [(Space::Global, "load", 16)]
        );
        assert_eq!(
            memory("@!P0 STS.64 [R1], R2 ;"),
            [(Space::Shared, "store", 8)]
        );
        assert_eq!(memory("LDG.E.U8 R4, [R2]"), [(Space::Global, "load", 1)]);
        assert_eq!(
            memory("RED.E.ADD.STRONG.GPU [R2], R5"),
            [(Space::Global, "atomic", 4)]
        );
        assert_eq!(
            memory("LDGSTS.E.BYPASS.128 desc[UR6][R2.64], [R15]"),
            [(Space::Global, "load", 16), (Space::Shared, "store", 16)]
        );
        assert_eq!(
            memory("LDSM.16.MT88.4 R56, [R2]"),
            [(Space::Shared, "load", 16)]
        );
        assert_eq!(memory("LDSM.16.M88 R5, [R2]"), [(Space::Shared, "load", 4)]);
        for none in ["FADD R1, R2, R3", "", "@P0", "@!PT LDS RZ, [RZ]"] {
            assert_eq!(memory(none), [], "{none}");
        }
    }
}
