//! Command lines of real builds, and what must be read from them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use warplens_base::{Command, CommandLanguage, Define, Files, NoFiles, OpenFiles, split_command};

/// Reads a line as if run in `/w`.
fn read(line: &str) -> Command {
    Command::read(&split_command(line), Path::new("/w"), &NoFiles)
}

/// All that is not as in an empty command, in one line.
fn summary(command: &Command) -> String {
    let mut out = String::new();
    let mut add = |name: &str, value: &dyn std::fmt::Display| {
        let gap = if out.is_empty() { "" } else { " " };
        write!(out, "{gap}{name}{value}").unwrap();
    };
    if let Some(language) = command.language {
        add(
            "",
            match language {
                CommandLanguage::Cuda => &"cuda",
                CommandLanguage::Hip => &"hip",
                CommandLanguage::OpenCl => &"opencl",
                CommandLanguage::Host => &"host",
            },
        );
    }
    for define in &command.defines {
        match define {
            Define::Set { name, value } => add("D:", &format!("{name}={value}")),
            Define::Unset(name) => add("U:", name),
        }
    }
    for dir in &command.include_dirs {
        add("I:", &dir.display());
    }
    for dir in &command.quote_dirs {
        add("Q:", &dir.display());
    }
    for file in &command.forced_includes {
        add("include:", &file.display());
    }
    for architecture in &command.architectures {
        add("", architecture);
    }
    if command.fast_math {
        add("", &"fast");
    }
    if let Some(registers) = command.max_registers {
        add("registers:", &registers);
    }
    if command.relocatable {
        add("", &"relocatable");
    }
    if let Some(standard) = &command.opencl_std {
        add("", standard);
    }
    if let Some(standard) = &command.cxx_std {
        add("", standard);
    }
    for source in &command.sources {
        add("<", &source.display());
    }
    for file in &command.response_files {
        add("@", &file.display());
    }
    for file in &command.unread_response_files {
        add("unread:", &file.display());
    }
    out
}

const TABLE: &[(&str, &str)] = &[
    // nvcc, by hand.
    ("nvcc a.cu", "cuda </w/a.cu"),
    ("nvcc -o a a.cu", "cuda </w/a.cu"),
    (
        "/usr/local/cuda-12.4/bin/nvcc -O3 -arch=sm_80 -o build/a src/a.cu",
        "cuda sm_80 </w/src/a.cu",
    ),
    (
        "nvcc -arch sm_90a --use_fast_math a.cu",
        "cuda sm_90a fast </w/a.cu",
    ),
    (
        "nvcc --gpu-architecture=sm_86 -use_fast_math a.cu",
        "cuda sm_86 fast </w/a.cu",
    ),
    (
        "nvcc --gpu-architecture sm_86 a.cu b.cu",
        "cuda sm_86 </w/a.cu </w/b.cu",
    ),
    ("nvcc -arch=native a.cu", "cuda </w/a.cu"),
    ("nvcc -arch=all-major a.cu", "cuda </w/a.cu"),
    ("nvcc -arch=all a.cu", "cuda </w/a.cu"),
    (
        "nvcc -arch=compute_70 -code=sm_70,sm_75 a.cu",
        "cuda sm_70 sm_75 </w/a.cu",
    ),
    (
        "nvcc -code=sm_75 -arch=compute_70 a.cu",
        "cuda sm_75 </w/a.cu",
    ),
    ("nvcc -arch=compute_80 a.cu", "cuda sm_80 </w/a.cu"),
    (
        "nvcc -gencode arch=compute_70,code=sm_70 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_80,code=compute_80 a.cu",
        "cuda sm_70 sm_80 </w/a.cu",
    ),
    (
        r#"nvcc -gencode=arch=compute_80,code=\"sm_80,compute_80\" -c a.cu"#,
        "cuda sm_80 </w/a.cu",
    ),
    (
        "nvcc --generate-code=arch=compute_90a,code=[compute_90a,sm_90a] -c a.cu",
        "cuda sm_90a </w/a.cu",
    ),
    (
        "nvcc --generate-code arch=compute_75,code=lto_75 -dlto a.cu",
        "cuda sm_75 </w/a.cu",
    ),
    (
        "nvcc -gencode arch=compute_100f,code=sm_100f a.cu",
        "cuda sm_100f </w/a.cu",
    ),
    // nvcc, definitions. A comma parts two of them, unless that makes no sense.
    (
        "nvcc -DN=32 -D M -DK= -D'F(x)=x*2' a.cu",
        "cuda D:N=32 D:M=1 D:K= D:F(x)=x*2 </w/a.cu",
    ),
    ("nvcc -DX,Y=2 a.cu", "cuda D:X=1 D:Y=2 </w/a.cu"),
    ("nvcc -DDIMS=4,8,16 a.cu", "cuda D:DIMS=4,8,16 </w/a.cu"),
    (
        "nvcc '-DMAX(a,b)=((a)>(b)?(a):(b))' a.cu",
        "cuda D:MAX(a,b)=((a)>(b)?(a):(b)) </w/a.cu",
    ),
    (
        "nvcc '-DCALL=f(a,b,c),NEXT' a.cu",
        "cuda D:CALL=f(a,b,c) D:NEXT=1 </w/a.cu",
    ),
    (r"nvcc '-DX=1\,Y' a.cu", "cuda D:X=1,Y </w/a.cu"),
    (
        r#"nvcc '-DNAME="a,b"' a.cu"#,
        r#"cuda D:NAME="a,b" </w/a.cu"#,
    ),
    (
        "nvcc --define-macro=A=1 --define-macro B --undefine-macro=A a.cu",
        "cuda D:A=1 D:B=1 U:A </w/a.cu",
    ),
    (
        "nvcc -UX -U Y,Z -DX a.cu",
        "cuda U:X U:Y U:Z D:X=1 </w/a.cu",
    ),
    ("nvcc -D=X a.cu", "cuda D:X=1 </w/a.cu"),
    // nvcc, folders and files.
    (
        "nvcc -Iinc -I ../common -I=third a.cu",
        "cuda I:/w/inc I:/common I:/w/third </w/a.cu",
    ),
    (
        "nvcc -I a,b --include-path=c -isystem=d,e a.cu",
        "cuda I:/w/a I:/w/b I:/w/c I:/w/d I:/w/e </w/a.cu",
    ),
    (
        "nvcc -include pre.h --pre-include=a.h,b.h a.cu",
        "cuda include:pre.h include:a.h include:b.h </w/a.cu",
    ),
    (
        "nvcc -Xlinker -rpath,/opt/lib -L /opt/lib -L/usr/lib -l cudart -lcublas a.cu b.o libx.a",
        "cuda </w/a.cu",
    ),
    (
        "nvcc -ccbin g++-12 -odir obj -t 4 --threads 8 -m 64 -O 3 -std c++17 a.cu",
        "cuda c++17 </w/a.cu",
    ),
    (
        "nvcc --compiler-bindir /usr/bin/gcc -cudart shared -MD -MT a.o -MF a.d -c a.cu -o a.o",
        "cuda </w/a.cu",
    ),
    ("nvcc -x cu -c kernel.cpp", "cuda </w/kernel.cpp"),
    ("nvcc -x=cu kernel.inl", "cuda </w/kernel.inl"),
    ("nvcc -x c++ main.cpp", "host </w/main.cpp"),
    // nvcc, code generation.
    ("nvcc -rdc=true a.cu", "cuda relocatable </w/a.cu"),
    ("nvcc -rdc true a.cu", "cuda relocatable </w/a.cu"),
    (
        "nvcc --relocatable-device-code=true a.cu",
        "cuda relocatable </w/a.cu",
    ),
    ("nvcc -dc a.cu -o a.o", "cuda relocatable </w/a.cu"),
    ("nvcc -rdc=true -rdc=false a.cu", "cuda </w/a.cu"),
    ("nvcc -maxrregcount=64 a.cu", "cuda registers:64 </w/a.cu"),
    ("nvcc --maxrregcount 32 a.cu", "cuda registers:32 </w/a.cu"),
    (
        "nvcc -Xptxas -v,-maxrregcount=40 a.cu",
        "cuda registers:40 </w/a.cu",
    ),
    (
        "nvcc -Xptxas -maxrregcount,48,-v a.cu",
        "cuda registers:48 </w/a.cu",
    ),
    (
        r#"nvcc --ptxas-options="-v -maxrregcount 24" a.cu"#,
        "cuda registers:24 </w/a.cu",
    ),
    (
        "nvcc -maxrregcount=32 -Xptxas=-maxrregcount=40 a.cu",
        "cuda registers:32 </w/a.cu",
    ),
    (
        "nvcc -Xptxas -maxrregcount=40 -Xptxas -maxrregcount=56 a.cu",
        "cuda registers:56 </w/a.cu",
    ),
    ("nvcc -maxrregcount=0 a.cu", "cuda </w/a.cu"),
    ("nvcc -Xptxas -dlcm=cg -Xptxas=-O3 a.cu", "cuda </w/a.cu"),
    (
        "nvcc -ftz=true -prec-div=false -fmad true a.cu",
        "cuda </w/a.cu",
    ),
    // nvcc, the host compiler's options: they come first, and their fast mathematics are the host's.
    (
        "nvcc -DX=1 -Xcompiler -DH,-O3 a.cu",
        "cuda D:H=1 D:X=1 </w/a.cu",
    ),
    (
        r#"nvcc -Xcompiler "-DA -fPIC -UB" -Xcompiler=-fopenmp a.cu"#,
        "cuda D:A=1 U:B </w/a.cu",
    ),
    (
        r#"nvcc --compiler-options '"-DS=a b",-DT' a.cu"#,
        "cuda D:S=a b D:T=1 </w/a.cu",
    ),
    (
        "nvcc -Xcompiler -ffast-math,-march=native a.cu",
        "cuda </w/a.cu",
    ),
    (
        "nvcc -forward-unknown-opts -ffast-math -march=native a.cu",
        "cuda </w/a.cu",
    ),
    (
        r#"nvcc -Xcompiler "/EHsc /DWINH" a.cu"#,
        "cuda D:WINH=1 </w/a.cu",
    ),
    // nvcc, as CMake, Kokkos, PyTorch and Windows call it.
    (
        r#"/usr/local/cuda/bin/nvcc -forward-unknown-to-host-compiler -DGGML_CUDA_F16 -Dggml_EXPORTS --options-file CMakeFiles/g.dir/includes_CUDA.rsp -O3 -DNDEBUG -std=c++17 "--generate-code=arch=compute_80,code=[compute_80,sm_80]" -Xcompiler=-fPIC -use_fast_math -x cu -c /w/g/src/ggml-cuda.cu -o CMakeFiles/g.dir/ggml-cuda.cu.o"#,
        "cuda D:GGML_CUDA_F16=1 D:ggml_EXPORTS=1 D:NDEBUG=1 sm_80 fast c++17 </w/g/src/ggml-cuda.cu unread:/w/CMakeFiles/g.dir/includes_CUDA.rsp",
    ),
    (
        "/opt/kokkos/bin/nvcc_wrapper -expt-extended-lambda -arch=sm_70 -DKOKKOS -O3 -c k.cpp -o k.o",
        "cuda D:KOKKOS=1 sm_70 </w/k.cpp",
    ),
    (
        r#"/usr/local/cuda/bin/nvcc --generate-dependencies-with-compile --dependency-output /b/k.o.d -DTORCH_EXTENSION_NAME=ext '-DPYBIND11_COMPILER_TYPE="_gcc"' -I/venv/torch/include -isystem /venv/python -D_GLIBCXX_USE_CXX11_ABI=0 -D__CUDA_NO_HALF_OPERATORS__ --expt-relaxed-constexpr --compiler-options ''"'"'-fPIC'"'"'' -std=c++17 -c /b/k.cu -o /b/k.cuda.o"#,
        r#"cuda D:TORCH_EXTENSION_NAME=ext D:PYBIND11_COMPILER_TYPE="_gcc" D:_GLIBCXX_USE_CXX11_ABI=0 D:__CUDA_NO_HALF_OPERATORS__=1 I:/venv/torch/include I:/venv/python c++17 </b/k.cu"#,
    ),
    (
        "ccache /usr/local/cuda/bin/nvcc -DX -c a.cu",
        "cuda D:X=1 </w/a.cu",
    ),
    ("/usr/bin/env CUDA=1 sccache nvcc -c a.cu", "cuda </w/a.cu"),
    (
        "cmake -E env CCACHE_DIR=/x nvcc -DQ a.cu",
        "cuda D:Q=1 </w/a.cu",
    ),
    (
        r#"C:\CUDA\bin\nvcc.exe -DDIR=\"x\" -c a.cu"#,
        r#"cuda D:DIR="x" </w/a.cu"#,
    ),
    (
        r#""C:\Program Files\CUDA\bin\nvcc.exe" -arch=sm_75 "a b.cu""#,
        "cuda sm_75 </w/a b.cu",
    ),
    // clang and its relatives.
    (
        "clang++ -x cuda --cuda-gpu-arch=sm_70 --cuda-path=/usr/local/cuda a.cu -o a",
        "cuda sm_70 </w/a.cu",
    ),
    ("clang++ a.cu", "</w/a.cu"),
    (
        "clang++-17 -xcuda --offload-arch=sm_80 --offload-arch=sm_90 -ffast-math a.cu",
        "cuda sm_80 sm_90 fast </w/a.cu",
    ),
    (
        "clang++ -x cuda --offload-arch=native a.cu",
        "cuda </w/a.cu",
    ),
    (
        "clang++ --offload-arch=sm_60,sm_70 --no-offload-arch=sm_60 -fgpu-rdc a.cu",
        "sm_70 relocatable </w/a.cu",
    ),
    (
        "clang++ -x cuda -Xcuda-ptxas --maxrregcount=80 -Xarch_device -DDEV -Xarch_host -DHOST a.cu",
        "cuda D:DEV=1 registers:80 </w/a.cu",
    ),
    (
        "clang++ -x cuda -fcuda-approx-transcendentals a.cu",
        "cuda fast </w/a.cu",
    ),
    (
        "clang++ -ffast-math -fno-fast-math -x cuda a.cu",
        "cuda </w/a.cu",
    ),
    (
        "clang -x cl -cl-std=CL2.0 -cl-mad-enable -Xclang -finclude-default-header k.cl",
        "opencl CL2.0 </w/k.cl",
    ),
    (
        "clang -Xclang -cl-std=cl1.2 -target amdgcn-amd-amdhsa -mcpu=gfx900 -nogpulib -c k.cl -o k.o",
        "opencl gfx900 CL1.2 </w/k.cl",
    ),
    (
        "clang -x cl -std=clc++2021 -cl-fast-relaxed-math -DT=float4 k.cl",
        "opencl D:T=float4 fast CLC++2021 </w/k.cl",
    ),
    (
        "clang -Xclang -target-feature -Xclang +avx -Xclang -include -Xclang p.h a.c",
        "include:p.h </w/a.c",
    ),
    (
        "clang++ -std=c++20 -isystem sys -idirafter last -iquote q -Ifirst -isystem first -include pre.h a.cpp",
        "I:/w/first I:/w/sys I:/w/last Q:/w/q include:pre.h c++20 </w/a.cpp",
    ),
    (
        "clang++ -include=pre.h --include-directory=inc -isystem/usr/x -- -odd.cpp",
        "I:/w/inc I:/usr/x include:pre.h </w/-odd.cpp",
    ),
    // HIP.
    (
        "hipcc --offload-arch=gfx90a,gfx942 -O3 a.hip",
        "hip gfx90a gfx942 </w/a.hip",
    ),
    (
        "/opt/rocm/bin/hipcc --amdgpu-target=gfx908:xnack- -munsafe-fp-atomics -DUSE_HIP a.cpp",
        "hip D:USE_HIP=1 gfx908 </w/a.cpp",
    ),
    (
        "/opt/rocm/llvm/bin/amdclang++ -x hip --offload-arch=gfx1100 -fgpu-rdc -std=gnu++17 -o a.o -c a.hip",
        "hip gfx1100 relocatable gnu++17 </w/a.hip",
    ),
    (
        "clang++ -D__HIP_PLATFORM_AMD__=1 -isystem /opt/rocm/include --offload-arch=gfx90a:sramecc+:xnack- -mllvm=-x -mllvm -amdgpu-early-inline-all=true -x hip -c a.hip",
        "hip D:__HIP_PLATFORM_AMD__=1 I:/opt/rocm/include gfx90a </w/a.hip",
    ),
    // Host compilers.
    (
        "gcc -c -DX='\"s t\"' -MF d -MT t -MQ q -o a.o a.c",
        "host D:X=\"s t\" </w/a.c",
    ),
    (
        "/usr/bin/c++ -DA=1 -UA -Wall -Werror -O2 -g -std=gnu++17 -fPIC -o x.o -c ../src/x.cpp",
        "host D:A=1 U:A gnu++17 </src/x.cpp",
    ),
    (
        "x86_64-linux-gnu-g++-13 -Wp,-DFORTIFY=2,-MD,deps -Xlinker -z -Xlinker now x.cc",
        "host D:FORTIFY=2 </w/x.cc",
    ),
    ("mpicxx -I. -I.. -Ofast x.cc", "host I:/w I:/ fast </w/x.cc"),
    ("g++ -x cuda-ish -x none x.cc", "host </w/x.cc"),
    (
        "g++ -D 2bad -D '' -Dok -D 'F(' -U 7 x.cc",
        "host D:ok=1 </w/x.cc",
    ),
    ("g++ -D", "host"),
    // Windows.
    (
        r"cl /nologo /DX /D Y=2 /IX /I inc /Foobj\ /MD /MT /std:c++17 /FIpre.h /c a.cpp",
        "D:X=1 D:Y=2 I:/w/X I:/w/inc include:pre.h c++17 </w/a.cpp",
    ),
    (
        "clang-cl -DX /UY -imsvc sys /external:I ext --cuda-gpu-arch=sm_52 /clang:-DZ /w/src/a.cu /link x.lib",
        "D:X=1 U:Y D:Z=1 I:/w/sys I:/w/ext sm_52 </w/src/a.cu",
    ),
    ("g++ /DX /IX", "host </DX </IX"),
    // OpenCL off line.
    (
        r#"ioc64 -cmd=build -input=k.cl -device=gpu -bo="-DX=1 -I dir -cl-fast-relaxed-math" -ir=k.ir"#,
        "opencl D:X=1 I:/w/dir fast </w/k.cl",
    ),
    (
        "ioc64 -input k.cl -bo '-cl-std=CL3.0 -D N'",
        "opencl D:N=1 CL3.0 </w/k.cl",
    ),
    (
        r#"ocloc compile -file k.cl -device dg2 -options "-DTILE=16 -cl-std=CL3.0" -output k -out_dir bin"#,
        "opencl D:TILE=16 CL3.0 </w/k.cl",
    ),
    (
        "aoc -march=emulator -board=a10 -I inc -DX=1 -o bin/k.aocx device/k.cl",
        "opencl D:X=1 I:/w/inc </w/device/k.cl",
    ),
    (
        "poclcc -d 0 -b '-DX -cl-std=CL2.0' -o k.poclbin k.cl",
        "opencl D:X=1 CL2.0 </w/k.cl",
    ),
    // Options alone, as clBuildProgram takes them.
    (
        "-cl-std=CL2.0 -D X=1 -I kernels -cl-mad-enable",
        "opencl D:X=1 I:/w/kernels CL2.0",
    ),
    (
        "-cl-nv-verbose -cl-nv-maxrregcount=64 -cl-nv-arch sm_80",
        "opencl sm_80 registers:64",
    ),
    ("", ""),
];

#[test]
fn command_lines() {
    let mut wrong = String::new();
    for (line, expected) in TABLE {
        let summary = summary(&read(line));
        if summary != *expected {
            writeln!(wrong, "{line}\n  is   {summary}\n  not  {expected}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(TABLE.len() >= 60);
}

fn buffers(files: &[(&str, &str)]) -> OpenFiles<NoFiles> {
    let buffers = OpenFiles::new(NoFiles);
    for (path, text) in files {
        buffers.set(Path::new(path), *text);
    }
    buffers
}

fn read_with(line: &str, files: &[(&str, &str)]) -> String {
    summary(&Command::read(
        &split_command(line),
        Path::new("/w"),
        &buffers(files),
    ))
}

#[test]
fn response_files_stand_for_their_words() {
    let includes = "-I/w/inc -isystem \"/opt/my cuda/include\"\r\n-DQ=\\\"q\\\"\r\n";
    assert_eq!(
        read_with(
            "nvcc --options-file f.rsp -DX a.cu",
            &[("/w/f.rsp", includes)]
        ),
        "cuda D:Q=\"q\" D:X=1 I:/w/inc I:/opt/my cuda/include </w/a.cu @/w/f.rsp"
    );
    for line in [
        "nvcc -optf f.rsp a.cu",
        "nvcc --options-file=f.rsp a.cu",
        "g++ @f.rsp a.cu",
    ] {
        let read = read_with(line, &[("/w/f.rsp", "-DX")]);
        assert!(read.contains("D:X=1 </w/a.cu @/w/f.rsp"), "{line}: {read}");
    }
    assert_eq!(
        read_with(
            "nvcc -optf=a.rsp,b.rsp",
            &[("/w/a.rsp", "-DA"), ("/w/b.rsp", "-DB")]
        ),
        "cuda D:A=1 D:B=1 @/w/a.rsp @/w/b.rsp"
    );
}

#[test]
fn nested_response_files_count_from_the_working_directory() {
    let files = [
        ("/w/sub/one", "-DONE @sub/two"),
        ("/w/sub/two", "-DTWO x.cc"),
    ];
    assert_eq!(
        read_with("g++ @sub/one", &files),
        "host D:ONE=1 D:TWO=1 </w/x.cc @/w/sub/one @/w/sub/two"
    );
}

#[test]
fn response_files_that_contain_themselves_or_are_missing_are_listed() {
    let files = [("/w/one", "-DONE @two"), ("/w/two", "-DTWO @./one @none")];
    assert_eq!(
        read_with("g++ @one x.cc", &files),
        "host D:ONE=1 D:TWO=1 </w/x.cc @/w/one @/w/two unread:/w/one unread:/w/none"
    );
}

#[test]
fn response_files_that_multiply_are_bounded() {
    let names: Vec<String> = (0..20).map(|at| format!("/w/r{at}")).collect();
    let texts: Vec<String> = (0..20)
        .map(|at| format!("-DX{at} @r{0} @r{0} @r{0}", at + 1))
        .collect();
    let files: Vec<_> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| (&**name, &**text))
        .collect();
    let command = Command::read(&split_command("g++ @r0"), Path::new("/w"), &buffers(&files));
    assert!(
        (19..2_000).contains(&command.defines.len()),
        "{}",
        command.defines.len()
    );
}

/// The macros as gcc lists them after `-D` and `-U`.
fn macros_of_gcc(arguments: &[&str]) -> Option<BTreeMap<String, String>> {
    let output = process::Command::new("gcc")
        .args([
            "-undef",
            "-nostdinc",
            "-dM",
            "-E",
            "-P",
            "-x",
            "c",
            "/dev/null",
        ])
        .args(arguments)
        .output()
        .ok()?;
    assert!(output.status.success(), "{arguments:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let macros = text.lines().filter_map(|line| {
        let definition = line.strip_prefix("#define ")?;
        let name = match definition.find('(') {
            Some(open) if !definition[..open].contains(' ') => definition.find(')')? + 1,
            _ => definition.find(' ').unwrap_or(definition.len()),
        };
        let (name, value) = definition.split_at(name);
        (!name.starts_with("__STDC")).then(|| (name.to_owned(), value.trim().to_owned()))
    });
    Some(macros.collect())
}

#[test]
fn definitions_are_those_of_gcc() {
    let table: &[&[&str]] = &[
        &["-DX", "-DY=", "-DZ=1 + 2", "-D", "W=a=b"],
        &["-DX=1", "-UX", "-DX=2", "-DY", "-U", "Y"],
        &[
            "-DF(x)=x*x",
            "-DG(a,b)=a + b",
            "-DH(...)=f(__VA_ARGS__)",
            "-DE()",
        ],
        &["-DS=\"a b\"", "-DT='c'", "-DU_=\\"],
        &["-DCUT=one\ntwo"],
        &["-Wp,-DA=1,-DB=2", "-Xpreprocessor", "-DC=3", "-Wp,-UA"],
        &[
            "--define-macro=LONG=1",
            "--define-macro",
            "LONGER",
            "--undefine-macro=LONG",
        ],
        &["-D_=1", "-D$x=2"],
    ];
    for arguments in table {
        let Some(expected) = macros_of_gcc(arguments) else {
            eprintln!("skipped: gcc does not run here");
            return;
        };
        let words: Vec<String> = std::iter::once(&"gcc")
            .chain(*arguments)
            .map(ToString::to_string)
            .collect();
        let mut macros = BTreeMap::new();
        for define in Command::read(&words, Path::new("/w"), &NoFiles).defines {
            match define {
                Define::Set { name, value } => macros.insert(name, value),
                Define::Unset(name) => macros.remove(&name),
            };
        }
        assert_eq!(macros, expected, "{arguments:?}");
    }
}

#[test]
fn long_command_lines_are_read_in_linear_time() {
    let mut text = String::from("x.cu ");
    for at in 0..60_000 {
        write!(
            text,
            "-I/d{at} --offload-arch=sm_{at} --no-offload-arch=sm_9999 -D X{at} "
        )
        .unwrap();
    }
    text.push_str("-DLIST(");
    text.push_str(&"a,".repeat(400_000));
    let start = Instant::now();
    for compiler in ["nvcc", "clang++"] {
        let words = [compiler.to_owned(), "@f".to_owned()];
        let command = Command::read(&words, Path::new("/w"), &buffers(&[("/w/f", &text)]));
        assert_eq!(command.include_dirs.len(), 60_000);
        assert!(command.defines.len() >= 60_000);
        assert_eq!(command.sources, [Path::new("/w/x.cu")]);
    }
    // Well below a second; what is quadratic takes minutes.
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
}

/// Macro names and values that every compiler takes.
fn definitions() -> impl Strategy<Value = Vec<Define>> {
    let name = "[A-Za-z_][A-Za-z0-9_]{0,8}(\\([a-z]\\))?";
    let set = (name, "[ -~äß→]{0,12}").prop_map(|(name, value)| Define::Set { name, value });
    let unset = "[A-Za-z_][A-Za-z0-9_]{0,8}".prop_map(Define::Unset);
    proptest::collection::vec(prop_oneof![3 => set, 1 => unset], 0..12)
}

fn spell(define: &Define, joined: bool, escape: bool) -> Vec<String> {
    let (flag, text) = match define {
        Define::Set { name, value } => {
            let value = if escape {
                value.replace(',', "\\,")
            } else {
                value.clone()
            };
            ("-D", format!("{name}={value}"))
        }
        Define::Unset(name) => ("-U", name.clone()),
    };
    if joined {
        vec![format!("{flag}{text}")]
    } else {
        vec![flag.to_owned(), text]
    }
}

fn quote(word: &str, double: bool) -> String {
    if double {
        let mut out = String::from("\"");
        for c in word.chars() {
            if matches!(c, '"' | '\\' | '$' | '`') {
                out.push('\\');
            }
            out.push(c);
        }
        out + "\""
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn definitions_survive_the_command_line(
        defines in definitions(),
        compiler in prop::sample::select(vec!["clang++", "g++", "hipcc", "nvcc", "-DFIRST"]),
        joined in any::<bool>(),
        double in any::<bool>(),
    ) {
        // What nvcc does with quotes and backslashes in its lists is in the table.
        prop_assume!(compiler != "nvcc" || defines.iter().all(|define| {
            !matches!(define, Define::Set { value, .. } if value.contains(['\\', '"', '\'']))
        }));
        let mut words = vec![compiler.to_owned()];
        words.extend(defines.iter().flat_map(|define| spell(define, joined, compiler == "nvcc")));
        words.push("x.cu".to_owned());
        let line: Vec<String> = words.iter().map(|word| quote(word, double)).collect();
        let split = split_command(&line.join(" "));
        prop_assert_eq!(&split, &words);
        let command = Command::read(&split, Path::new("/w"), &NoFiles);
        let first = usize::from(compiler.starts_with('-'));
        prop_assert_eq!(&command.defines[first..], &defines[..]);
        prop_assert_eq!(command.sources, [Path::new("/w/x.cu")]);
    }

    #[test]
    fn any_words_are_read(
        words in proptest::collection::vec(any_word(), 0..16),
        file in "\\PC{0,40}",
    ) {
        let files = buffers(&[("/w/f", &file), ("/w/g", "@f @g -optf f")]);
        let command = Command::read(&words, Path::new("/w"), &files);
        prop_assert!(command.sources.iter().all(|source| source.is_absolute()));
        prop_assert!(command.include_dirs.iter().all(|dir| dir.is_absolute()));
        prop_assert!(command.max_registers != Some(0));
        prop_assert!(files.exists(Path::new("/w/f")));
    }

    #[test]
    fn any_text_is_split(text in "[\\\\\"' ,\n\ra-c:$]{0,60}") {
        let words = split_command(&text);
        prop_assert!(words.iter().map(String::len).sum::<usize>() <= text.len());
    }
}

/// Words made of what options are made of, and junk.
fn any_word() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "nvcc",
        "clang-cl",
        "cl",
        "ioc64",
        "ocloc",
        "poclcc",
        "ccache",
        "-D",
        "-U",
        "-I",
        "-gencode",
        "--generate-code",
        "-arch",
        "-code",
        "-Xcompiler",
        "-Xptxas",
        "-Xclang",
        "-Wp,",
        "-x",
        "-std",
        "-cl-std",
        "-optf",
        "@f",
        "@g",
        "/D",
        "/I",
        "/link",
        "/clang:",
        "--",
        "-bo",
        "-options",
        "-b",
        "-input",
        "-maxrregcount",
        "-isystem",
        "-include",
        "--offload-arch",
        "--no-offload-arch",
        "-",
    ]);
    let tail = prop_oneof!["", "=", "[=,\\[\\]\"'(\\\\):/@a-z0-9_-]{0,10}", "\\PC{0,6}"];
    prop_oneof![
        (names, tail).prop_map(|(name, tail)| format!("{name}{tail}")),
        "\\PC{0,12}"
    ]
}
