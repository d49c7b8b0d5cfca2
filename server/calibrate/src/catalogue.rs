//! The benchmarks: which program measures what, and the programs' text.

use std::fmt;
use std::path::Path;

use warplens_syntax::Language;

use crate::Failure;
use crate::measurements::replace;

/// How programs reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// CUDA, compiled by nvcc.
    Cuda,
    /// HIP, the same sources compiled by hipcc.
    Hip,
    /// OpenCL: a host program in C, whose kernels the driver compiles.
    OpenCl,
}

impl Interface {
    /// All, in the order in which they are looked for.
    pub const ALL: [Interface; 3] = [Interface::Cuda, Interface::Hip, Interface::OpenCl];

    /// The name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            Interface::Cuda => "cuda",
            Interface::Hip => "hip",
            Interface::OpenCl => "opencl",
        }
    }

    /// The one of a name, as measurements files have it.
    pub fn named(name: &str) -> Option<Interface> {
        Interface::ALL.into_iter().find(|of| of.name() == name)
    }

    /// The measurement kernels of the linear model and their language: the text whose operations the model counts is the
    /// text that runs.
    pub fn linear_kernels(self) -> (&'static str, Language) {
        match self {
            Interface::Cuda | Interface::Hip => (LINEAR_KERNELS, Language::Cuda),
            Interface::OpenCl => (OPENCL_LINEAR_KERNELS, Language::OpenCl),
        }
    }

    /// The default compiler.
    pub fn compiler(self) -> &'static str {
        match self {
            Interface::Cuda => "nvcc",
            Interface::Hip => "hipcc",
            Interface::OpenCl => "cc",
        }
    }

    /// The files that its programs are made of, with their text.
    pub fn sources(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Interface::Cuda | Interface::Hip => CUDA_SOURCES,
            Interface::OpenCl => OPENCL_SOURCES,
        }
    }

    /// The benchmarks that it has, in the order in which they are run.
    pub fn benches(self) -> impl Iterator<Item = &'static Bench> {
        // OpenCL tells the clock that the device may have, which no load changes.
        BENCHES
            .iter()
            .filter(move |bench| self != Interface::OpenCl || bench.name != CLOCK_AFTER)
    }

    /// The program that runs a benchmark, without ending.
    pub fn program(self, bench: &Bench) -> &'static str {
        match self {
            Interface::Cuda | Interface::Hip => bench.program,
            Interface::OpenCl => "opencl",
        }
    }

    /// The source file of a program.
    pub fn source(self, program: &str) -> String {
        match self {
            Interface::Cuda | Interface::Hip => format!("{program}.cu"),
            Interface::OpenCl => format!("{program}.c"),
        }
    }

    /// What a compiler is told to make `source` a program for an architecture (empty: not known yet).
    pub fn arguments(self, source: &str, program: &str, architecture: &str) -> Vec<String> {
        let mut arguments: Vec<String> = match self {
            Interface::Cuda => vec!["-O3", "-std=c++17"],
            // Neighbouring operations stay apart: CDNA has instructions for pairs of them.
            Interface::Hip => vec!["-O3", "-std=c++17", "-fno-slp-vectorize", "-x", "hip"],
            Interface::OpenCl => vec!["-O2", "-std=c99"],
        }
        .into_iter()
        .map(str::to_owned)
        .collect();
        match self {
            _ if architecture.is_empty() => {}
            Interface::Cuda => arguments.push(format!("-arch={architecture}")),
            Interface::Hip => arguments.push(format!("--offload-arch={architecture}")),
            Interface::OpenCl => {}
        }
        arguments.extend([source.to_owned(), "-o".to_owned(), program.to_owned()]);
        if self == Interface::OpenCl && cfg!(target_os = "linux") {
            // The driver is opened when the program runs.
            arguments.push("-ldl".to_owned());
        }
        arguments
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One benchmark: a sweep over its configurations by one run of a program.
#[derive(Debug)]
pub struct Bench {
    /// Its name, which is that of its samples.
    pub name: &'static str,
    /// The CUDA and HIP program that runs it.
    pub program: &'static str,
    /// How long it takes on a GPU of today, in seconds, roughly: for the time that is left.
    pub seconds: f64,
    /// What it measures, in a few words.
    pub about: &'static str,
}

/// The benchmark of the clock, which is also measured at the end: a GPU that throttles shows there.
pub const CLOCK: &str = "clock";

/// The same benchmark, when everything else is measured.
pub const CLOCK_AFTER: &str = "clock_after";

static BENCHES: &[Bench] = &[
    bench(CLOCK, "device", 1.0, "the clock under load"),
    bench(
        "latency_global",
        "latency",
        8.0,
        "latency of device memory by footprint",
    ),
    bench("latency_shared", "latency", 1.0, "latency of shared memory"),
    bench(
        "latency_constant",
        "latency",
        1.0,
        "latency of constant memory",
    ),
    bench(
        "instruction",
        "instructions",
        4.0,
        "latency and issue rate of instructions",
    ),
    bench(
        "shared_conflict",
        "onchip",
        1.0,
        "shared memory by degree of conflict",
    ),
    bench("barrier", "onchip", 1.0, "barriers by warps"),
    bench("atomic", "onchip", 2.0, "atomics on few addresses and many"),
    bench("launch", "onchip", 3.0, "launches by blocks"),
    bench("bandwidth_l1", "bandwidth", 1.0, "bandwidth of L1"),
    bench("bandwidth_l2", "bandwidth", 3.0, "bandwidth of L2"),
    bench(
        "bandwidth_dram",
        "bandwidth",
        3.0,
        "bandwidth of DRAM, reading",
    ),
    bench(
        "bandwidth_copy",
        "bandwidth",
        3.0,
        "bandwidth of DRAM, copying",
    ),
    bench("coalescing", "bandwidth", 2.0, "strides and offsets"),
    bench("departure", "departure", 6.0, "departure delays (MWP-CWP)"),
    bench(
        "linear",
        "linear",
        8.0,
        "measurement kernels of the linear model",
    ),
    bench(CLOCK_AFTER, "device", 1.0, "the clock after all that"),
];

const fn bench(
    name: &'static str,
    program: &'static str,
    seconds: f64,
    about: &'static str,
) -> Bench {
    Bench {
        name,
        program,
        seconds,
        about,
    }
}

const LINEAR_KERNELS: &str = include_str!("../programs/linear_kernels.h");
const OPENCL_LINEAR_KERNELS: &str = include_str!("../programs/linear_kernels.cl");

static CUDA_SOURCES: &[(&str, &str)] = &[
    ("bench.cuh", include_str!("../programs/bench.cuh")),
    ("linear_kernels.h", LINEAR_KERNELS),
    ("device.cu", include_str!("../programs/device.cu")),
    ("latency.cu", include_str!("../programs/latency.cu")),
    (
        "instructions.cu",
        include_str!("../programs/instructions.cu"),
    ),
    ("onchip.cu", include_str!("../programs/onchip.cu")),
    ("bandwidth.cu", include_str!("../programs/bandwidth.cu")),
    ("departure.cu", include_str!("../programs/departure.cu")),
    ("linear.cu", include_str!("../programs/linear.cu")),
];

static OPENCL_SOURCES: &[(&str, &str)] = &[
    ("opencl.c", include_str!("../programs/opencl.c")),
    ("kernels.cl", include_str!("../programs/kernels.cl")),
    ("linear_kernels.cl", OPENCL_LINEAR_KERNELS),
];

/// Writes an interface's sources into a folder, which is made where it is missing.
pub fn write_sources(interface: Interface, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::Unwritable {
        file: folder.to_owned(),
        problem: error.to_string(),
    })?;
    for (name, text) in interface.sources() {
        replace(&folder.join(name), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_has_a_program_and_is_printed_by_it() {
        for interface in Interface::ALL {
            for bench in interface.benches() {
                let file = interface.source(interface.program(bench));
                let source = interface.sources().iter().find(|(name, _)| *name == file);
                let (_, text) = source.expect("a source");
                let printed = text.contains(&format!("\"{}\"", bench.name));
                // The clock's program prints the name that it is given.
                assert!(
                    printed || bench.name == CLOCK_AFTER,
                    "{interface}: {}",
                    bench.name
                );
            }
        }
    }
}
