//! What a real compiler made of a kernel, read from the text of its tools: instructions, registers, spills.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::{process, repository};

/// One machine instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its name with what is behind the dots: `LDG.E.CONSTANT`.
    pub opcode: String,
    pub operands: String,
}

impl Instruction {
    /// Its name: `LDG`.
    pub fn name(&self) -> &str {
        self.opcode.split('.').next().unwrap_or_default()
    }

    /// Its class, named as `warplens_compile::Class` names them. The class says what is done: a compiler moves and adds
    /// also on the pipes that multiply, as these are free, and what is free is no property of a function.
    pub fn class(&self) -> &'static str {
        let has = |part: &str| self.opcode.split('.').skip(1).any(|found| found == part);
        match self.name() {
            "IMAD" if has("MOV") => "mov",
            "IMAD" if has("IADD") => "iadd3",
            "IMAD" if has("SHL") => "shf",
            "HFMA2" if self.operands.contains("-RZ, RZ,") => "mov",
            "HADD2" if has("F32") => "f2f",
            "MOV" => "mov",
            "MUFU" => "mufu",
            "FFMA" => "ffma",
            "FADD" => "fadd",
            "FMUL" => "fmul",
            "DFMA" => "dfma",
            "DADD" => "dadd",
            "DMUL" => "dmul",
            "HFMA2" | "HADD2" | "HMUL2" => "hfma2",
            "HMMA" => "hmma",
            "IMAD" => "imad",
            "IADD3" => "iadd3",
            "LEA" => "lea",
            "LOP3" => "lop3",
            "SHF" => "shf",
            "ISETP" => "isetp",
            "FSETP" => "fsetp",
            "SEL" | "FSEL" => "sel",
            "I2F" | "I2FP" => "i2f",
            "F2I" | "F2IP" => "f2i",
            "F2F" | "F2FP" => "f2f",
            "BRA" => "bra",
            "LDG" => "ldg",
            "STG" => "stg",
            "LDS" => "lds",
            "STS" => "sts",
            "LDL" => "ldl",
            "STL" => "stl",
            "LDC" => "ldc",
            "ATOM" | "ATOMG" | "ATOMS" => "atom",
            "RED" => "red",
            "BAR" => "bar",
            "SHFL" => "shfl",
            "VOTE" => "vote",
            "TEX" | "TLD" | "TLD4" => "tex",
            _ => "other",
        }
    }
}

/// A compiled kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    pub registers: u64,
    /// Bytes that did not find a register, stores and loads.
    pub spills: u64,
    pub instructions: Vec<Instruction>,
}

/// The instructions of each function in what `cuobjdump -sass` prints, without what fills up the end: `NOP` and the
/// branch to itself.
pub fn instructions(text: &str) -> BTreeMap<String, Vec<Instruction>> {
    let mut found: BTreeMap<String, Vec<Instruction>> = BTreeMap::new();
    let mut current: Option<&mut Vec<Instruction>> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Function : ") {
            current = Some(found.entry(name.trim().to_owned()).or_default());
            continue;
        }
        let Some(current) = current.as_deref_mut() else {
            continue;
        };
        // `/*0010*/  @!P0 BRA 0x150 ;  /* the bits */`; the line behind it has bits only.
        let Some((address, rest)) = line
            .strip_prefix("/*")
            .and_then(|rest| rest.split_once("*/"))
        else {
            continue;
        };
        let (Ok(address), Some((words, _))) =
            (u64::from_str_radix(address, 16), rest.split_once(';'))
        else {
            continue;
        };
        let mut words = words.trim();
        if words.starts_with('@') {
            words = words
                .split_once(char::is_whitespace)
                .map_or("", |(_, rest)| rest.trim_start());
        }
        let (opcode, operands) = words
            .split_once(char::is_whitespace)
            .map_or((words, ""), |(opcode, operands)| (opcode, operands.trim()));
        let itself = opcode == "BRA" && operands == format!("{address:#x}");
        if opcode.is_empty() || opcode == "NOP" || itself {
            continue;
        }
        current.push(Instruction {
            opcode: opcode.to_owned(),
            operands: operands.to_owned(),
        });
    }
    found
}

/// The registers of each function in what `cuobjdump -res-usage` prints.
pub fn registers(text: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut function = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Function ") {
            function = Some(name.trim_end_matches(':').to_owned());
        } else if let Some(count) = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("REG:"))
            && let Some(function) = function.take()
            && let Ok(count) = count.parse()
        {
            found.insert(function, count);
        }
    }
    found
}

/// The bytes that each function spills, stores and loads, in what `ptxas -v` prints.
pub fn spills(text: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut function = None;
    for line in text.lines() {
        if let Some((_, name)) = line.split_once("Function properties for ") {
            function = Some(name.trim().to_owned());
        } else if line.contains("bytes spill stores")
            && let Some(function) = function.take()
        {
            let bytes = line
                .split(", ")
                .filter(|part| part.contains("spill"))
                .filter_map(|part| part.split_whitespace().next()?.parse::<u64>().ok());
            found.insert(function, bytes.sum());
        }
    }
    found
}

/// An nvcc with the disassembler beside it.
pub struct Compiler {
    nvcc: PathBuf,
    /// The target: `sm_80`.
    pub arch: String,
}

impl Compiler {
    /// The one given, else `$NVCC`, else the PATH's, else the one that `tests/kernels/compile.sh` installed.
    pub fn of(given: Option<&Path>, arch: &str) -> anyhow::Result<Compiler> {
        let nvcc = given
            .map(Path::to_owned)
            .or_else(|| std::env::var_os("NVCC").map(PathBuf::from))
            .or_else(|| repository::program("nvcc"))
            .or_else(|| packaged(&repository::tools().join("cuda"), 8))
            .context(
                "no nvcc: give --nvcc PATH, or run tests/kernels/compile.sh, which gets one",
            )?;
        let nvcc = std::path::absolute(nvcc)?;
        // A folder means the nvcc in it.
        let nvcc = if nvcc.is_dir() {
            nvcc.join("nvcc")
        } else {
            nvcc
        };
        Ok(Compiler {
            nvcc,
            arch: arch.to_owned(),
        })
    }

    /// Its version: `13.0`.
    pub fn version(&self) -> anyhow::Result<String> {
        let told = process::captured(
            Command::new(&self.nvcc).arg("--version"),
            Duration::from_secs(30),
        )?;
        let version = told
            .out
            .lines()
            .find_map(|line| Some(line.split_once("release ")?.1.split(',').next()?.to_owned()));
        version.with_context(|| format!("{} has no version", self.nvcc.display()))
    }

    /// The kernels of a source; none where it does not compile within the limit.
    pub fn kernels(
        &self,
        source: &Path,
        options: &[String],
        scratch: &Path,
        limit: Duration,
    ) -> anyhow::Result<Result<BTreeMap<String, Function>, String>> {
        let mut compile = Command::new(&self.nvcc);
        compile
            .args(["-cubin", "-w", "-std=c++17", "-Xptxas", "-v"])
            .arg(format!("-arch={}", self.arch))
            .args(options)
            .arg("-o")
            .arg(scratch)
            .arg(source);
        let compiled = process::captured(&mut compile, limit)?;
        if !compiled.success {
            return Ok(Err(compiled.errors));
        }
        let tool = |option: &str| -> anyhow::Result<String> {
            let mut dump = Command::new(self.nvcc.with_file_name("cuobjdump"));
            let told = process::captured(dump.arg(option).arg(scratch), limit)?;
            if !told.success {
                bail!("cuobjdump {option} failed: {}", told.errors.trim());
            }
            // Some versions say it as errors.
            Ok(told.out + &told.errors)
        };
        let registers = registers(&tool("-res-usage")?);
        let spills = spills(&compiled.errors);
        let code = instructions(&tool("-sass")?);
        let found = code
            .into_iter()
            .filter_map(|(name, instructions)| {
                let function = Function {
                    registers: *registers.get(&name)?,
                    spills: spills.get(&name).copied().unwrap_or(0),
                    instructions,
                };
                Some((name, function))
            })
            .collect();
        Ok(Ok(found))
    }
}

/// The nvcc somewhere in a folder.
fn packaged(folder: &Path, depth: u32) -> Option<PathBuf> {
    let here = folder.join("bin/nvcc");
    if here.is_file() {
        return Some(here);
    }
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| depth > 0 && path.is_dir() && !path.is_symlink())
        .find_map(|path| packaged(&path, depth - 1))
}

/// A folder for what a task compiles; gone with this.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> anyhow::Result<Scratch> {
        let folder = std::env::temp_dir().join(format!("warplens-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Scratch(folder))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `reduce_shuffle` in tests/kernels/reduction.cu.
    const CODE: &str = r#"
	code for sm_80
		Function : _Z14reduce_shufflePKfPfm
	.headerflags	@"EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
        /*0000*/                   MOV R1, c[0x0][0x28] ;                                   /* 0x00000a0000017a02 */
                                                                                            /* 0x000fe40000000f00 */
        /*0020*/                   HFMA2.MMA R3, -RZ, RZ, 0, 0 ;                            /* 0x00000000ff037435 */
                                                                                            /* 0x000fe200000001ff */
        /*0060*/                   IMAD.MOV.U32 R4, RZ, RZ, RZ ;                            /* 0x000000ffff047224 */
                                                                                            /* 0x000fcc00078e00ff */
        /*0070*/                   IMAD.WIDE.U32 R6, R5, 0x100, R2 ;                        /* 0x0000010005067825 */
                                                                                            /* 0x001fca00078e0002 */
        /*00a0*/               @P0 BRA 0x150 ;                                              /* 0x000000a000000947 */
                                                                                            /* 0x000fea0003800000 */
        /*00e0*/                   LDG.E.CONSTANT R9, [R8.64] ;                             /* 0x0000000408097981 */
                                                                                            /* 0x000ea2000c1e9900 */
        /*03c0*/                   EXIT ;                                                   /* 0x000000000000794d */
                                                                                            /* 0x000fea0003800000 */
        /*03d0*/                   BRA 0x3d0;                                               /* 0xfffffff000007947 */
                                                                                            /* 0x000fc0000383ffff */
        /*03e0*/                   NOP;                                                     /* 0x0000000000007918 */
                                                                                            /* 0x000fc00000000000 */
		..........
"#;

    #[test]
    fn instructions_are_read_without_what_fills_up_the_end() {
        let found = instructions(CODE);
        let code = &found["_Z14reduce_shufflePKfPfm"];
        let classes: Vec<_> = code.iter().map(Instruction::class).collect();
        assert_eq!(
            classes,
            ["mov", "mov", "mov", "imad", "bra", "ldg", "other"]
        );
        assert_eq!(code[4].operands, "0x150");
        assert_eq!(
            (code[5].name(), code[5].opcode.as_str()),
            ("LDG", "LDG.E.CONSTANT")
        );
    }

    #[test]
    fn registers_are_read_by_function() {
        let text = "
Resource usage:
 Common:
  GLOBAL:0
 Function _Z14reduce_shufflePKfPfm:
  REG:14 STACK:0 SHARED:32 LOCAL:0 CONSTANT[0]:376 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function scan:
  REG:9 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:372 TEXTURE:0 SURFACE:0 SAMPLER:0
";
        let found = registers(text);
        assert_eq!(found["_Z14reduce_shufflePKfPfm"], 14);
        assert_eq!((found["scan"], found.len()), (9, 2));
    }

    #[test]
    fn spills_are_read_by_function() {
        let text = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'wide' for 'sm_80'
ptxas info    : Function properties for wide
    48 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 32 registers, 352 bytes cmem[0]
ptxas info    : Function properties for narrow
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";
        let found = spills(text);
        assert_eq!((found["wide"], found["narrow"]), (24, 0));
    }
}
