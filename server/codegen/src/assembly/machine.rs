//! Which class a machine instruction is of: the one place that says so.

use crate::Class;

impl Class {
    /// The class of an instruction of NVIDIA's machine code, for instance (`LDG`, `E.64`, `R2, [R4.64]`).
    /// `None` for what is not executed: padding.
    ///
    /// Operations of the uniform datapath (`UIADD3`) count as those on every lane.
    pub fn of_machine(opcode: &str, modifiers: &str, operands: &str) -> Option<Class> {
        if opcode == "NOP" {
            return None;
        }
        Some(match opcode {
            "LDG" | "LD" => Class::Ldg,
            "STG" | "ST" => Class::Stg,
            "LDS" | "LDSM" | "LDS2" => Class::Lds,
            "STS" | "STSM" => Class::Sts,
            // From device memory into shared memory, past the registers.
            "LDGSTS" => Class::Ldg,
            "LDL" => Class::Ldl,
            "STL" => Class::Stl,
            "LDC" | "ULDC" | "LDCU" => Class::Ldc,
            "ATOM" | "ATOMG" | "ATOMS" | "ATOMSW" | "UATOMG" => Class::Atom,
            "RED" | "REDG" | "REDS" => Class::Red,
            "BAR" | "UBAR" | "UCGABAR_WAIT" => Class::Bar,
            "BRA" | "BRX" | "JMP" | "JMX" | "BRXU" | "JMXU" => Class::Bra,
            "FFMA" | "FFMA2" | "FFMA32I" => Class::Ffma,
            "FADD" | "FADD2" | "FADD32I" => Class::Fadd,
            "FMUL" | "FMUL2" | "FMUL32I" => Class::Fmul,
            "DFMA" => Class::Dfma,
            "DADD" => Class::Dadd,
            "DMUL" => Class::Dmul,
            "MUFU" => Class::Mufu,
            // Compilers make constants with it: -0 · 0 + c.
            "HFMA2" if of_zeros(operands) => Class::Mov,
            // Half precision made single: 0 + x.
            "HADD2" if modifiers.split('.').any(|part| part == "F32") => Class::F2f,
            "HFMA2" | "HADD2" | "HMUL2" | "HSET2" | "HSETP2" | "HMNMX2" | "HADD2_32" | "HMUL"
            | "HADD" | "HFMA" => Class::Hfma2,
            "HMMA" | "IMMA" | "DMMA" | "BMMA" | "QMMA" | "OMMA" | "HGMMA" | "IGMMA" | "BGMMA"
            | "QGMMA" | "UTCHMMA" | "UTCIMMA" | "UTCQMMA" | "UTCOMMA" => Class::Hmma,
            "IMAD" | "UIMAD" | "IMUL" | "XMAD" | "IDP" | "IMAD32I" | "IMUL32I" => {
                match modifiers.split('.').next() {
                    Some("MOV") => Class::Mov,
                    Some("IADD") => Class::Iadd3,
                    Some("SHL") => Class::Shf,
                    _ => Class::Imad,
                }
            }
            "IADD3" | "UIADD3" | "IADD" | "UIADD" | "IADD2" | "IADD32I" | "VIADD" => Class::Iadd3,
            "LEA" | "ULEA" | "ISCADD" => Class::Lea,
            "LOP3" | "ULOP3" | "LOP" | "ULOP" | "LOP32I" => Class::Lop3,
            "SHF" | "USHF" | "SHL" | "SHR" | "USHL" | "USHR" | "BMSK" | "UBMSK" | "SGXT"
            | "USGXT" => Class::Shf,
            "ISETP" | "UISETP" | "ISET" | "ICMP" => Class::Isetp,
            "FSETP" | "FSET" | "FCMP" | "UFSETP" => Class::Fsetp,
            "SEL" | "FSEL" | "USEL" | "UFSEL" => Class::Sel,
            "I2F" | "I2FP" | "UI2F" | "UI2FP" => Class::I2f,
            "F2I" | "UF2I" => Class::F2i,
            "F2F" | "F2FP" | "FRND" => Class::F2f,
            "SHFL" => Class::Shfl,
            "VOTE" | "VOTEU" | "MATCH" | "R2UVOTE" | "REDUX" | "CREDUX" => Class::Vote,
            "TEX" | "TLD" | "TLD4" | "TXD" | "TXQ" | "TMML" | "SULD" | "SUST" | "TEXS" | "TLDS" => {
                Class::Tex
            }
            "MOV" | "UMOV" | "MOV32I" | "R2UR" | "UR2R" | "CS2R"
                if !operands.contains("SR_CLOCK") =>
            {
                Class::Mov
            }
            _ => Class::Other,
        })
    }

    /// The class that an instruction of PTX becomes, for instance (`fma`, `rn.f32`). `None` for what leaves
    /// nothing behind: conversions of addresses, registers that are renamed.
    pub fn of_virtual(opcode: &str, modifiers: &str) -> Option<Class> {
        let has = |part: &str| modifiers.split('.').any(|modifier| modifier == part);
        let wide = has("f64");
        let half = ["f16", "f16x2", "bf16", "bf16x2"].into_iter().any(has);
        let float = has("f32") || has("f32x2") || half || wide;
        let arithmetic = |single: Class, double: Class| match () {
            () if wide => double,
            () if half => Class::Hfma2,
            () => single,
        };
        Some(match opcode {
            "ld" | "ldu" if has("shared") => Class::Lds,
            "ld" | "ldu" if has("local") => Class::Ldl,
            // Parameters are operands of other instructions.
            "ld" if has("param") => return None,
            "ld" | "ldu" if has("const") => Class::Ldc,
            "ld" | "ldu" => Class::Ldg,
            "ldmatrix" => Class::Lds,
            "stmatrix" => Class::Sts,
            "st" if has("shared") => Class::Sts,
            "st" if has("local") => Class::Stl,
            "st" if has("param") => Class::Mov,
            "st" => Class::Stg,
            "cp" if has("async") && (has("shared") || has("bulk")) => Class::Ldg,
            "atom" => Class::Atom,
            "red" if !has("async") => Class::Red,
            "bar" | "barrier" => Class::Bar,
            "bra" | "brx" => Class::Bra,
            "fma" | "mad" if float => arithmetic(Class::Ffma, Class::Dfma),
            "add" | "sub" if float => arithmetic(Class::Fadd, Class::Dadd),
            "mul" if float => arithmetic(Class::Fmul, Class::Dmul),
            // Without a hint, a Newton iteration around a reciprocal.
            "div" if float && !wide => Class::Mufu,
            "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => Class::Mufu,
            "neg" | "abs" if float => arithmetic(Class::Fadd, Class::Dadd),
            "wmma" if has("mma") => Class::Hmma,
            "wmma" if has("load") => Class::Ldg,
            "wmma" if has("store") => Class::Stg,
            "mma" | "wgmma" | "tcgen05" => Class::Hmma,
            "mul" | "mad" | "mul24" | "mad24" | "madc" | "dp4a" | "dp2a" | "div" | "rem" => {
                Class::Imad
            }
            "add" | "sub" | "addc" | "subc" | "neg" | "abs" | "sad" => Class::Iadd3,
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" if has("pred") => Class::Other,
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" => Class::Lop3,
            "shl" | "shr" | "shf" | "bfe" | "bfi" | "szext" | "bmsk" => Class::Shf,
            "setp" | "set" if wide || half => Class::Other,
            "setp" | "set" if float => Class::Fsetp,
            "setp" | "set" => Class::Isetp,
            "selp" | "slct" => Class::Sel,
            "cvt" => return conversion(modifiers),
            "shfl" => Class::Shfl,
            "vote" | "match" | "redux" | "activemask" => Class::Vote,
            "tex" | "tld4" | "txq" | "suld" | "sust" | "sured" | "suq" => Class::Tex,
            // Registers are renamed; what reads a special register is seen by its operands.
            "mov" => Class::Mov,
            "cvta" | "pragma" | "isspacep" | "mapa" => return None,
            _ => Class::Other,
        })
    }
}

/// `-RZ, RZ, …` behind the target register.
fn of_zeros(operands: &str) -> bool {
    let mut parts = operands.split(',').skip(1).map(str::trim);
    let zero = |part: Option<&str>| part.is_some_and(|part| part.trim_start_matches('-') == "RZ");
    zero(parts.next()) && zero(parts.next())
}

/// `cvt.rn.f32.s32`: to, then from.
fn conversion(modifiers: &str) -> Option<Class> {
    let mut types = modifiers.rsplit('.').filter(|part| {
        let (kind, bits) = part.split_at(part.len().min(1));
        matches!(kind, "u" | "s" | "f" | "b") && bits.starts_with(|c: char| c.is_ascii_digit())
            || part.starts_with("bf16")
            || *part == "tf32"
    });
    let (from, to) = (types.next()?, types.next()?);
    let float = |ty: &str| ty.starts_with('f') || ty.starts_with("bf") || ty == "tf32";
    Some(match (float(to), float(from)) {
        (true, true) => Class::F2f,
        (true, false) => Class::I2f,
        (false, true) => Class::F2i,
        // To 64 bits with a sign: the sign is made; else a register is added or left out.
        (false, false) if to == "s64" => Class::Shf,
        (false, false) if matches!(to, "u64" | "b64") || matches!(from, "u64" | "s64") => {
            return None;
        }
        (false, false) => Class::Lop3,
    })
}
