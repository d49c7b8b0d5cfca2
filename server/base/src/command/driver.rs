//! Which compiler a command line calls.

use super::CommandLanguage;

/// Compilers, by how they spell their options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    Nvcc,
    /// gcc, clang and what is built on them, with the language that the program's name promises.
    Gnu(Option<CommandLanguage>),
    /// cl and clang-cl: options may start with a slash.
    Cl,
    /// Intel's `ioc64 -input=F -bo=OPTIONS`.
    Ioc,
    /// Intel's `ocloc compile -file F -options OPTIONS`.
    Ocloc,
    /// pocl's `poclcc -b OPTIONS F`.
    Pocl,
}

impl Driver {
    /// The compiler and the words after it.
    pub(super) fn find(arguments: &[String]) -> (Self, &[String]) {
        let Some((first, rest)) = arguments.split_first() else {
            return (Self::Gnu(None), arguments);
        };
        if first.starts_with('-') {
            return (Self::Gnu(None), arguments);
        }
        if LAUNCHERS.contains(&program(first).as_str()) {
            let compiler = rest.iter().enumerate().find_map(|(at, word)| {
                let driver = Self::of(&program(word))?;
                Some((driver, &rest[at + 1..]))
            });
            if let Some(found) = compiler {
                return found;
            }
        }
        (Self::of(&program(first)).unwrap_or(Self::Gnu(None)), rest)
    }

    fn of(program: &str) -> Option<Self> {
        // `x86_64-linux-gnu-g++-13` is a g++; `clang-cl` and `nvcc_wrapper` are names of their own.
        let mut name = program;
        while let Some((rest, version)) = name.rsplit_once('-')
            && version.starts_with(|c: char| c.is_ascii_digit())
            && version.chars().all(|c| c.is_ascii_digit() || c == '.')
        {
            name = rest;
        }
        if matches!(name, "cl" | "clang-cl" | "icx-cl") {
            return Some(Self::Cl);
        }
        let name = name.rsplit('-').next().unwrap_or(name);
        Some(match name {
            "nvcc" | "nvcc_wrapper" => Self::Nvcc,
            "hipcc" | "hipcc.bin" => Self::Gnu(Some(CommandLanguage::Hip)),
            "clang" | "clang++" | "amdclang" | "amdclang++" | "icx" | "icpx" | "dpcpp" => {
                Self::Gnu(None)
            }
            "gcc" | "g++" | "cc" | "c++" | "icc" | "icpc" | "mpicc" | "mpicxx" | "mpic++" => {
                Self::Gnu(Some(CommandLanguage::Host))
            }
            "ioc" | "ioc32" | "ioc64" => Self::Ioc,
            "ocloc" => Self::Ocloc,
            "poclcc" => Self::Pocl,
            "aoc" | "openclc" => Self::Gnu(Some(CommandLanguage::OpenCl)),
            _ => return None,
        })
    }

    /// The language where no `-x` names one.
    pub(super) fn language(self) -> Option<CommandLanguage> {
        match self {
            Self::Nvcc => Some(CommandLanguage::Cuda),
            Self::Gnu(language) => language,
            Self::Cl => None,
            Self::Ioc | Self::Ocloc | Self::Pocl => Some(CommandLanguage::OpenCl),
        }
    }
}

/// Programs that run the compiler named after them.
const LAUNCHERS: &[&str] = &[
    "bear",
    "buildcache",
    "ccache",
    "cmake",
    "distcc",
    "env",
    "gomacc",
    "icecc",
    "libtool",
    "nice",
    "recc",
    "sccache",
    "time",
];

/// The file name of a program; on Windows in small letters and without `.exe`.
fn program(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let lower = name.to_ascii_lowercase();
    lower.strip_suffix(".exe").unwrap_or(name).to_owned()
}
