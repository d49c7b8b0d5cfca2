//! The options themselves.

use std::hash::Hash;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use super::driver::Driver;
use super::words::{split_list, split_posix};
use super::{Command, CommandLanguage, Define};
use crate::paths::absolute;

/// There are not as many GPUs; a file of nothing but options might name more.
const MAX_ARCHITECTURES: usize = 200;

/// Gathers what the options say, in lists as the compilers keep them.
#[derive(Debug, Default)]
pub(super) struct Reader {
    directory: PathBuf,
    defines: Vec<Define>,
    dirs: Vec<PathBuf>,
    system_dirs: Vec<PathBuf>,
    after_dirs: Vec<PathBuf>,
    quote_dirs: Vec<PathBuf>,
    forced_includes: Vec<PathBuf>,
    /// The `-x` in force: None as long as there is none and after `-x none`.
    language: Option<CommandLanguage>,
    /// `language` at the first source that it applied to.
    language_of_source: Option<CommandLanguage>,
    /// Whether an option was seen that only OpenCL has.
    opencl_options: bool,
    architectures: Vec<String>,
    /// nvcc's `-arch`, which `-code` overrides.
    arch: Vec<String>,
    code: Vec<String>,
    /// By an option that is for device code only; nothing takes it back.
    device_fast_math: bool,
    fast_math: bool,
    /// Whether `fast_math` is the work of `-Ofast`, which another level takes back.
    fast_by_level: bool,
    max_registers: Option<u32>,
    /// What ptxas was told directly: nvcc's own bound comes after it, and the last counts.
    ptxas_registers: Option<u32>,
    relocatable: bool,
    opencl_std: Option<String>,
    cxx_std: Option<String>,
    sources: Vec<PathBuf>,
    /// What `-Xcompiler` carried.
    host_options: Vec<Word>,
}

/// A word of the command line.
#[derive(Clone, Debug)]
struct Word {
    text: String,
    /// Handed through another option (`-Xclang WORD`): never a source.
    handed: bool,
}

/// How an option that has a value spells it.
enum Value {
    /// `-name=value` or `-name value`.
    Either,
    /// `-name=anything value`: what is after the sign is not the value.
    Next,
}

impl Reader {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn read(&mut self, words: &[String], driver: Driver) {
        self.words(&unwrap(words), driver);
    }

    /// Puts what was read into `command`.
    pub(super) fn finish(mut self, driver: Driver, command: &mut Command) {
        if !self.host_options.is_empty() {
            let mut host = Self::new(&self.directory);
            let slashed = self.host_options.iter().any(|word| is_slashed(&word.text));
            host.words(
                &self.host_options,
                if slashed {
                    Driver::Cl
                } else {
                    Driver::Gnu(None)
                },
            );
            put_first(&mut self.defines, host.defines);
            put_first(&mut self.dirs, host.dirs);
            put_first(&mut self.system_dirs, host.system_dirs);
            put_first(&mut self.after_dirs, host.after_dirs);
            put_first(&mut self.quote_dirs, host.quote_dirs);
            put_first(&mut self.forced_includes, host.forced_includes);
        }
        let named = self
            .language_of_source
            .or(self.language)
            .or(driver.language());
        command.language = named.or(self.opencl_options.then_some(CommandLanguage::OpenCl));
        command.defines = self.defines;
        let dirs = self
            .dirs
            .into_iter()
            .chain(self.system_dirs)
            .chain(self.after_dirs);
        command.include_dirs = without_repetition(dirs);
        command.quote_dirs = without_repetition(self.quote_dirs);
        command.forced_includes = self.forced_includes;
        let named = if self.code.is_empty() {
            self.arch
        } else {
            self.code
        };
        command.architectures = without_repetition(self.architectures.into_iter().chain(named));
        command.fast_math = self.fast_math || self.device_fast_math;
        command.max_registers = self.max_registers.or(self.ptxas_registers);
        command.relocatable = self.relocatable;
        command.opencl_std = self.opencl_std;
        command.cxx_std = self.cxx_std;
        command.sources = self.sources;
    }

    fn words(&mut self, words: &[Word], driver: Driver) {
        let mut rest = words;
        while let Some((word, after)) = rest.split_first() {
            rest = after;
            if word.text == "--" && !word.handed {
                for word in rest {
                    self.source(word, driver);
                }
                return;
            }
            if let Some(slashed) = windows_option(word, driver) {
                if !self.windows_option(slashed, &mut rest) && word.text.starts_with('-') {
                    self.option(word, &mut rest, driver);
                }
            } else if word.text.starts_with('-') {
                self.option(word, &mut rest, driver);
            } else {
                self.source(word, driver);
            }
        }
    }

    fn source(&mut self, word: &Word, driver: Driver) {
        // ocloc's and ioc's plain words are subcommands; they name the source by an option.
        if word.handed || matches!(driver, Driver::Ocloc | Driver::Ioc) {
            return;
        }
        self.named_source(&word.text);
    }

    fn named_source(&mut self, name: &str) {
        let path = Path::new(name);
        let linked = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| {
                matches!(
                    extension,
                    "o" | "obj" | "a" | "lib" | "so" | "dylib" | "dll"
                )
            })
            || name.contains(".so.");
        if name.is_empty() || linked {
            return;
        }
        self.language_of_source = self.language_of_source.or(self.language);
        self.sources.push(absolute(&self.directory, path));
    }

    /// An option that starts with `-`. Takes its value from `rest` where that is in the next word.
    fn option(&mut self, word: &Word, rest: &mut &[Word], driver: Driver) {
        let text = word.text.as_str();
        // Compilers differ in which names take two dashes, and none gives the two spellings two meanings.
        let bare = text.trim_start_matches('-');
        let (name, attached) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        if let Some(value) = takes_value(name, driver) {
            // Options of which nothing is kept have their value swallowed all the same.
            let value = match (value, attached) {
                (Value::Either, Some(attached)) => attached,
                (Value::Either, None) | (Value::Next, _) => match next(rest) {
                    Some(value) => value,
                    None => return,
                },
            };
            self.valued(name, value, driver);
        } else if !self.flag(name, attached, driver) {
            self.joined(bare, driver);
        }
    }

    /// An option with its value.
    fn valued(&mut self, name: &str, value: &str, driver: Driver) {
        let lists = driver == Driver::Nvcc;
        match name {
            "D" | "define-macro" => {
                let definitions = if lists {
                    definitions(value)
                } else {
                    vec![value.to_owned()]
                };
                for definition in definitions {
                    self.define(&definition);
                }
            }
            "U" | "undefine-macro" => {
                for name in pieces(value, lists) {
                    self.undefine(&name);
                }
            }
            "I" | "include-path" | "include-directory" => {
                let dirs = self.folders(value, lists);
                self.dirs.extend(dirs);
            }
            "isystem" | "system-include" | "cxx-isystem" | "imsvc" | "external:I" => {
                let dirs = self.folders(value, lists);
                self.system_dirs.extend(dirs);
            }
            "idirafter" | "include-directory-after" | "isystem-after" => {
                let dirs = self.folders(value, false);
                self.after_dirs.extend(dirs);
            }
            "iquote" => {
                let dirs = self.folders(value, false);
                self.quote_dirs.extend(dirs);
            }
            "include" | "pre-include" | "imacros" => {
                let names = pieces(value, lists)
                    .into_iter()
                    .filter(|name| !name.is_empty());
                self.forced_includes.extend(names.map(PathBuf::from));
            }
            "x" | "language" => {
                if value == "none" {
                    self.language = None;
                } else if let Some(language) = language(value) {
                    self.language = Some(language);
                }
            }
            "std" => self.standard(value),
            "cl-std" => {
                self.opencl_options = true;
                self.opencl_std = Some(value.to_uppercase());
            }
            "gencode" | "generate-code" => self.generate_code(value),
            "arch" | "gpu-architecture" if driver == Driver::Nvcc => {
                self.arch = architectures(value).collect();
            }
            "code" | "gpu-code" => self.code = architectures(value).collect(),
            "arch" | "offload-arch" | "cuda-gpu-arch" | "amdgpu-target" | "mcpu" | "march"
            | "cl-nv-arch" => self.add_architectures(architectures(value)),
            "no-offload-arch" | "no-cuda-gpu-arch" => {
                let excluded: Vec<String> = architectures(value).collect();
                self.architectures
                    .retain(|one| value != "all" && !excluded.contains(one));
            }
            "maxrregcount" | "cl-nv-maxrregcount" => self.max_registers = registers(value),
            "Xptxas" | "ptxas-options" => {
                self.assembler_options(split_list(value).iter().flat_map(|text| split_posix(text)));
            }
            "Xcuda-ptxas" => self.assembler_options(std::iter::once(value.to_owned())),
            "rdc" | "relocatable-device-code" => self.relocatable = value == "true",
            "Xcompiler" | "compiler-options" => {
                for text in split_list(value) {
                    self.host_options
                        .extend(split_posix(&text).into_iter().map(handed));
                }
            }
            "options" | "internal_options" | "bo" | "b" | "build-options" => {
                let words: Vec<Word> = split_posix(value).into_iter().map(handed).collect();
                self.words(&words, Driver::Gnu(None));
            }
            "file" | "input" => self.named_source(value),
            _ => {}
        }
    }

    /// An option without a value, or with an attached one only. False when it is not known.
    fn flag(&mut self, name: &str, attached: Option<&str>, driver: Driver) -> bool {
        // With -forward-unknown-opts nvcc takes the host compiler's flags; they leave device code alone.
        let device = driver != Driver::Nvcc;
        match name {
            "use_fast_math" | "cl-fast-relaxed-math" => self.device_fast_math = true,
            "ffast-math" if device => self.set_fast_math(true),
            "fno-fast-math" if device => self.set_fast_math(false),
            "fcuda-approx-transcendentals" | "fgpu-approx-transcendentals" => {
                self.device_fast_math = true;
            }
            "fno-cuda-approx-transcendentals" | "fno-gpu-approx-transcendentals" => {
                self.device_fast_math = false;
            }
            "Ofast" if device => {
                self.fast_by_level |= !self.fast_math;
                self.fast_math = true;
            }
            "O" | "O0" | "O1" | "O2" | "O3" | "Og" | "Os" | "Oz" => {
                if self.fast_by_level {
                    self.set_fast_math(false);
                }
            }
            "fgpu-rdc" | "fcuda-rdc" => self.relocatable = true,
            "fno-gpu-rdc" | "fno-cuda-rdc" => self.relocatable = false,
            "dc" | "device-c" if driver == Driver::Nvcc => self.relocatable = true,
            "dw" | "device-w" if driver == Driver::Nvcc => self.relocatable = false,
            _ => {
                // `-cl-mad-enable` and its like have no value and no other meaning for us.
                let opencl = name.starts_with("cl-") && attached.is_none();
                self.opencl_options |= opencl;
                return opencl;
            }
        }
        true
    }

    fn add_architectures(&mut self, names: impl Iterator<Item = String>) {
        let free = MAX_ARCHITECTURES.saturating_sub(self.architectures.len());
        self.architectures.extend(names.take(free));
    }

    fn set_fast_math(&mut self, fast: bool) {
        self.fast_math = fast;
        self.fast_by_level = false;
    }

    /// An option whose value is glued to its name: `-DX`, `-I../include`.
    fn joined(&mut self, bare: &str, driver: Driver) {
        for name in ["D", "U", "I", "isystem", "iquote", "idirafter", "x"] {
            if let Some(value) = bare.strip_prefix(name).filter(|value| !value.is_empty()) {
                self.valued(name, value, driver);
                return;
            }
        }
    }

    /// An option of cl, without its slash or dash. False when it is not known.
    fn windows_option(&mut self, text: &str, rest: &mut &[Word]) -> bool {
        if text == "link" {
            // All that follows is the linker's.
            *rest = &[];
            return true;
        }
        for name in ["D", "U", "I", "FI", "external:I", "imsvc"] {
            let Some(value) = text.strip_prefix(name) else {
                continue;
            };
            let value = if value.is_empty() {
                next(rest)
            } else {
                Some(value)
            };
            let name = if name == "FI" { "include" } else { name };
            if let Some(value) = value {
                self.valued(name, value, Driver::Cl);
            }
            return true;
        }
        if let Some(value) = text.strip_prefix("std:") {
            self.standard(value);
        } else if let Some(value) = text.strip_prefix("clang:") {
            self.words(&[handed(value.to_owned())], Driver::Gnu(None));
        } else if let Some(value) = text.strip_prefix("Tp").or_else(|| text.strip_prefix("Tc"))
            && let Some(value) = if value.is_empty() {
                next(rest)
            } else {
                Some(value)
            }
        {
            self.named_source(value);
        } else {
            return false;
        }
        true
    }

    fn define(&mut self, text: &str) {
        // Compilers cut a definition at its first line break.
        let text = text.split(['\n', '\r']).next().unwrap_or_default();
        let (name, value) = text.split_once('=').unwrap_or((text, "1"));
        let identifier = name.split('(').next().unwrap_or_default();
        let parameters = &name[identifier.len()..];
        if is_identifier(identifier) && (parameters.is_empty() || parameters.ends_with(')')) {
            self.defines.push(Define::Set {
                name: name.to_owned(),
                value: value.to_owned(),
            });
        }
    }

    fn undefine(&mut self, name: &str) {
        if is_identifier(name) {
            self.defines.push(Define::Unset(name.to_owned()));
        }
    }

    fn folders(&self, value: &str, lists: bool) -> Vec<PathBuf> {
        // `-I=dir` means a folder of the system root for gcc and just the folder for nvcc.
        pieces(value.trim_start_matches('='), lists)
            .iter()
            .filter(|name| !name.is_empty() && *name != "-")
            .map(|name| absolute(&self.directory, Path::new(name)))
            .collect()
    }

    fn standard(&mut self, value: &str) {
        let opencl = value
            .get(..2)
            .is_some_and(|start| start.eq_ignore_ascii_case("cl"));
        if opencl {
            self.opencl_std = Some(value.to_uppercase());
        } else if !value.is_empty() {
            self.cxx_std = Some(value.to_owned());
        }
    }

    /// `arch=compute_80,code=[sm_80,compute_80]`: the code says what is made, the architecture what may be
    /// used to make it.
    fn generate_code(&mut self, value: &str) {
        let (arch, code) = match value.split_once("code=") {
            Some((arch, code)) => (arch, code),
            None => (value, ""),
        };
        let mut made: Vec<String> = architectures(code).collect();
        if made.is_empty() {
            made.extend(architectures(arch.trim_start_matches("arch=")));
        }
        self.add_architectures(made.into_iter());
    }

    /// The options of ptxas: of interest is the bound on registers.
    fn assembler_options(&mut self, options: impl Iterator<Item = String>) {
        let mut options = options.peekable();
        while let Some(option) = options.next() {
            let bare = option.trim_start_matches('-');
            let Some(value) = bare.strip_prefix("maxrregcount") else {
                continue;
            };
            match value.strip_prefix('=') {
                Some(value) => self.ptxas_registers = registers(value),
                None => {
                    if let Some(value) = options.next_if(|next| !next.starts_with('-')) {
                        self.ptxas_registers = registers(&value);
                    }
                }
            }
        }
    }
}

/// Whether the option has a value, which then may stand in the next word. Options of which nothing is kept
/// are known here as well: their values are no sources.
fn takes_value(name: &str, driver: Driver) -> Option<Value> {
    if name == "Xopenmp-target" {
        return Some(Value::Next);
    }
    let known = match driver {
        Driver::Ioc => matches!(name, "bo" | "input"),
        Driver::Ocloc => matches!(name, "options" | "internal_options" | "file"),
        Driver::Pocl => POCL_VALUES.contains(&name),
        Driver::Nvcc => VALUES.contains(&name) || NVCC_VALUES.contains(&name),
        Driver::Gnu(_) => VALUES.contains(&name) || GNU_VALUES.contains(&name),
        Driver::Cl => VALUES.contains(&name),
    };
    (known || name.starts_with("Xarch_")).then_some(Value::Either)
}

/// Options with a value that several compilers share.
const VALUES: &[&str] = &[
    "D",
    "I",
    "L",
    "U",
    "Xcuda-ptxas",
    "Xlinker",
    "Xptxas",
    "amdgpu-target",
    "arch",
    "cl-nv-arch",
    "cl-nv-maxrregcount",
    "cl-std",
    "cuda-gpu-arch",
    "cxx-isystem",
    "define-macro",
    "gencode",
    "generate-code",
    "gpu-architecture",
    "idirafter",
    "imacros",
    "imsvc",
    "include",
    "include-directory",
    "include-directory-after",
    "include-path",
    "iquote",
    "isystem",
    "isystem-after",
    "l",
    "language",
    "march",
    "maxrregcount",
    "mcpu",
    "mllvm",
    "no-cuda-gpu-arch",
    "no-offload-arch",
    "o",
    "offload-arch",
    "pre-include",
    "std",
    "system-include",
    "undefine-macro",
    "x",
];

const POCL_VALUES: &[&str] = &["b", "build-options", "d", "o"];

const GNU_VALUES: &[&str] = &[
    "A",
    "B",
    "F",
    "G",
    "MF",
    "MJ",
    "MQ",
    "MT",
    "T",
    "Tbss",
    "Tdata",
    "Ttext",
    "Xanalyzer",
    "Xassembler",
    "Xcuda-fatbinary",
    "Xoffload-linker",
    "analyzer-output",
    "arcmt-migrate-report-output",
    "aux-info",
    "b",
    "board",
    "config",
    "current_version",
    "dependency-dot",
    "dependency-file",
    "dsym-dir",
    "dumpbase",
    "dumpbase-ext",
    "dumpdir",
    "e",
    "fdebug-compilation-dir",
    "fmodules-user-build-path",
    "framework",
    "gcc-toolchain",
    "iframework",
    "iframeworkwithsysroot",
    "imultiarch",
    "imultilib",
    "include-pch",
    "install_name",
    "iprefix",
    "isysroot",
    "ivfsoverlay",
    "iwithprefix",
    "iwithprefixbefore",
    "iwithsysroot",
    "meabi",
    "module-dependency-dir",
    "mthread-model",
    "param",
    "resource-dir",
    "rpath",
    "serialize-diagnostics",
    "stdlib++-isystem",
    "sysroot",
    "target",
    "u",
    "umbrella",
    "weak_framework",
    "working-directory",
    "wrapper",
    "z",
];

const NVCC_VALUES: &[&str] = &[
    "MF",
    "MT",
    "O",
    "Ofast-compile",
    "Ofc",
    "Werror",
    "Xarchive",
    "Xcompiler",
    "Xcudafe",
    "Xfatbin",
    "Xnvlink",
    "Xnvprune",
    "Xopencc",
    "Xtileiras",
    "apply-controls",
    "arbin",
    "archive-options",
    "archiver-binary",
    "brief-diag",
    "brief-diagnostics",
    "ccbin",
    "code",
    "compiler-bindir",
    "compiler-options",
    "cudadevrt",
    "cudart",
    "ddp",
    "default-stream",
    "dependency-drive-prefix",
    "dependency-output",
    "dependency-target-name",
    "device-entity-has-hidden-visibility",
    "diag-error",
    "diag-suppress",
    "diag-warn",
    "dopt",
    "dp",
    "drive-prefix",
    "e",
    "entries",
    "fdevice-time-trace",
    "fdevice-time-trace-granularity",
    "fmad",
    "fmax-errors",
    "ftemplate-backtrace-limit",
    "ftemplate-depth",
    "ftz",
    "gpu-code",
    "hls",
    "host-linker-script",
    "idp",
    "input-drive-prefix",
    "jtd",
    "jump-table-density",
    "keep-dir",
    "ldir",
    "libdevice-directory",
    "library",
    "library-path",
    "linker-options",
    "m",
    "machine",
    "nvlink-options",
    "nvprune-options",
    "odir",
    "opt-info",
    "optimization-info",
    "optimize",
    "output-directory",
    "output-file",
    "prec-div",
    "prec-sqrt",
    "ptxas-options",
    "rdc",
    "relocatable-device-code",
    "run-args",
    "split-compile",
    "split-compile-extended",
    "static-global-template-stub",
    "stdlib",
    "t",
    "target-dir",
    "target-directory",
    "threads",
    "tile-preview",
    "tileiras-options",
    "time",
];

/// Opens the options that only carry another one: to the device's compilation, which takes it where it
/// is, or to the preprocessor and then the frontend, which are given it last.
fn unwrap(words: &[String]) -> Vec<Word> {
    let mut out = Vec::with_capacity(words.len());
    let mut preprocessor = Vec::new();
    let mut frontend = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            // Only sources follow, and what is handed on is none: it may stand in front of them.
            break;
        }
        match word.as_str() {
            "-Xarch_device" => out.extend(words.next().cloned().map(handed)),
            "-Xpreprocessor" => preprocessor.extend(words.next().cloned().map(handed)),
            "-Xclang" => frontend.extend(words.next().cloned().map(handed)),
            _ => match word.strip_prefix("-Wp,") {
                Some(list) => {
                    preprocessor.extend(list.split(',').map(|one| handed(one.to_owned())));
                }
                None => out.push(Word {
                    text: word.clone(),
                    handed: false,
                }),
            },
        }
    }
    out.append(&mut preprocessor);
    out.append(&mut frontend);
    out.push(Word {
        text: "--".to_owned(),
        handed: false,
    });
    out.extend(words.map(|word| Word {
        text: word.clone(),
        handed: false,
    }));
    out
}

fn handed(text: String) -> Word {
    Word { text, handed: true }
}

/// The text of an option of cl, without what starts it.
fn windows_option(word: &Word, driver: Driver) -> Option<&str> {
    if driver != Driver::Cl {
        return None;
    }
    match word.text.strip_prefix('-') {
        Some(text) => Some(text),
        None => is_slashed(&word.text).then(|| &word.text[1..]),
    }
}

/// Whether the word is an option with a slash rather than an absolute path.
fn is_slashed(word: &str) -> bool {
    const WITH_PATHS: &[&str] = &[
        "D",
        "F",
        "I",
        "T",
        "U",
        "clang:",
        "external:",
        "imsvc",
        "std:",
    ];
    word.strip_prefix('/').is_some_and(|text| {
        !text.contains('/') || WITH_PATHS.iter().any(|start| text.starts_with(start))
    })
}

/// The next word, taken.
fn next<'a>(rest: &mut &'a [Word]) -> Option<&'a str> {
    let (word, after) = rest.split_first()?;
    *rest = after;
    Some(&word.text)
}

/// The items of a list, for compilers that take lists.
fn pieces(value: &str, lists: bool) -> Vec<String> {
    if lists {
        split_list(value)
    } else {
        vec![value.to_owned()]
    }
}

/// The definitions of nvcc's `-D A,B=2`. A comma within parentheses, or one after which no definition
/// begins, is taken as meant: nvcc would cut there and its preprocessor would complain.
fn definitions(value: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut depth = 0;
    for piece in split_list(value) {
        let name = piece.split(['=', '(']).next().unwrap_or_default();
        let parentheses: isize = piece
            .chars()
            .map(|c| match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            })
            .sum();
        match out.last_mut() {
            Some(last) if depth > 0 || !is_identifier(name) => {
                last.push(',');
                last.push_str(&piece);
                depth += parentheses;
            }
            _ => {
                out.push(piece);
                depth = parentheses;
            }
        }
    }
    out
}

fn is_identifier(name: &str) -> bool {
    let letter = |c: char| c.is_alphabetic() || matches!(c, '_' | '$');
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_alphanumeric())
}

/// A bound on registers; 0 is none.
fn registers(value: &str) -> Option<u32> {
    value.parse().ok().filter(|&count| count > 0)
}

fn language(name: &str) -> Option<CommandLanguage> {
    Some(match name {
        "cu" | "cuda" | "cuda-cpp-output" => CommandLanguage::Cuda,
        "hip" | "hip-cpp-output" => CommandLanguage::Hip,
        "cl" | "clcpp" => CommandLanguage::OpenCl,
        "c" | "c++" | "c-header" | "c++-header" | "c++-module" | "cpp-output"
        | "c++-cpp-output" | "objective-c" | "objective-c++" | "assembler"
        | "assembler-with-cpp" | "ir" => CommandLanguage::Host,
        _ => return None,
    })
}

/// The GPUs of a list such as `sm_80,compute_90` or `[gfx90a:xnack-]`. What names none is left out.
fn architectures(list: &str) -> impl Iterator<Item = String> {
    list.split([',', ';', '[', ']', '"', '\\', ' '])
        .filter_map(|name| {
            // AMD's features follow a colon.
            let name = name.split(':').next().unwrap_or_default();
            for family in ["sm_", "compute_", "lto_"] {
                if let Some(number) = name.strip_prefix(family) {
                    let known = number.starts_with(|c: char| c.is_ascii_digit());
                    return known.then(|| format!("sm_{number}"));
                }
            }
            let amd = name.strip_prefix("gfx")?;
            amd.starts_with(|c: char| c.is_ascii_digit())
                .then(|| name.to_owned())
        })
}

fn put_first<T>(list: &mut Vec<T>, first: Vec<T>) {
    list.splice(0..0, first);
}

fn without_repetition<T: Clone + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = FxHashSet::default();
    items
        .into_iter()
        .filter(|item| seen.insert(item.clone()))
        .collect()
}
