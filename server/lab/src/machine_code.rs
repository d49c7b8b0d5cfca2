//! What a real compiler made of a kernel: it is run, and the text of its tools read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use warplens_codegen::Class;
use warplens_codegen::assembly::{ptxas_verbose, sass};

use xtask::{process, repository};

/// A compiled kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    pub registers: u64,
    /// Bytes that did not find a register, stores and loads.
    pub spills: u64,
    /// Instructions by class.
    pub instructions: BTreeMap<Class, u64>,
}

/// The kernels in what `ptxas -v` and `cuobjdump -sass` print.
pub fn functions(verbose: &str, disassembly: &str) -> BTreeMap<String, Function> {
    let mut code: BTreeMap<String, BTreeMap<Class, u64>> = sass(disassembly)
        .into_iter()
        .map(|kernel| (kernel.mangled, kernel.instructions))
        .collect();
    ptxas_verbose(verbose)
        .into_iter()
        .filter_map(|usage| {
            let function = Function {
                registers: u64::from(usage.registers),
                spills: usage.spill_store_bytes + usage.spill_load_bytes,
                instructions: code.remove(&usage.mangled)?,
            };
            Some((usage.mangled, function))
        })
        .collect()
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
        let mut dump = Command::new(self.nvcc.with_file_name("cuobjdump"));
        let told = process::captured(dump.arg("-sass").arg(scratch), limit)?;
        if !told.success {
            bail!("cuobjdump -sass failed: {}", told.errors.trim());
        }
        Ok(Ok(functions(&compiled.errors, &told.out)))
    }

    /// Compiles a source of the host.
    pub fn object(&self, source: &Path, object: &Path, limit: Duration) -> anyhow::Result<()> {
        let mut compile = Command::new(&self.nvcc);
        compile.args(["-c", "-w", "-std=c++17", "-O1", "-o"]);
        let told = process::captured(compile.arg(object).arg(source), limit)?;
        if !told.success {
            bail!("{} does not compile: {}", source.display(), told.errors);
        }
        Ok(())
    }

    /// Sources and the runtime that they are linked with as a program; the compiler's errors where there is none.
    pub fn program(
        &self,
        sources: &[PathBuf],
        runtime: &Path,
        binary: &Path,
        limit: Duration,
    ) -> anyhow::Result<Result<(), String>> {
        let mut compile = Command::new(&self.nvcc);
        compile
            .args(["-w", "-std=c++17", "-O1", "-cudart", "none"])
            // What the runtime lacks is an error where the program calls it: the loader refuses such a program where its code
            // may lie anywhere.
            .args(["-Xlinker", "--unresolved-symbols=ignore-all"])
            .args(["-Xcompiler", "-no-pie"])
            .arg(format!("-arch={}", self.arch))
            .arg("-o")
            .arg(binary)
            .args(sources)
            .arg(runtime);
        let told = process::captured(&mut compile, limit)?;
        Ok(if told.success {
            Ok(())
        } else {
            Err(told.errors)
        })
    }
}

/// The architecture that a program of ours says it needs: it is compiled for no other.
pub fn needed(source: &Path) -> Option<String> {
    let text = std::fs::read_to_string(source).ok()?;
    let needed = text
        .lines()
        .find_map(|line| line.strip_prefix("// architecture: "));
    needed.map(str::to_owned)
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
    fn a_kernel_has_its_code_its_registers_and_its_spills() {
        let verbose =
            "ptxas info    : Compiling entry function '_Z14reduce_shufflePKfPfm' for 'sm_80'
ptxas info    : Function properties for _Z14reduce_shufflePKfPfm
    48 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 14 registers, 352 bytes cmem[0]
ptxas info    : Compiling entry function 'without_code' for 'sm_80'
ptxas info    : Function properties for without_code
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 352 bytes cmem[0]
";
        let found = functions(verbose, CODE);
        assert_eq!(found.len(), 1);
        let kernel = &found["_Z14reduce_shufflePKfPfm"];
        assert_eq!((kernel.registers, kernel.spills), (14, 24));
        // Without what fills up the end.
        let classes = [
            (Class::Ldg, 1),
            (Class::Bra, 1),
            (Class::Imad, 1),
            (Class::Mov, 3),
            (Class::Other, 1),
        ];
        assert_eq!(kernel.instructions, BTreeMap::from(classes));
    }
}
