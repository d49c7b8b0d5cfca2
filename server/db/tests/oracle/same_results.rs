//! Kernels that a code action has edited leave the same bytes as before: each is run thread by thread on random
//! contents, with sizes that do not fill the last blocks.

use std::collections::BTreeMap;
use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::{Engine, Overrides};
use warplens_machine::Profiles;
use warplens_oracle::{Argument, Dialect, Launch, Program, same_result};
use warplens_syntax::{Document, Language};

/// Random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // Knuth's MMIX.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn floats(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .flat_map(|_| (self.next() as f32 / 1e6 - 1000.0).to_le_bytes())
            .collect()
    }

    fn doubles(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .flat_map(|_| (self.next() as f64 / 1e6 - 1000.0).to_le_bytes())
            .collect()
    }
}

/// The text after each fix that is offered for a rule anywhere in it.
fn edited(text: &str, path: &str, rule: &str) -> Vec<String> {
    let path = Path::new(path);
    let engine = Engine::new(Profiles::builtin());
    let document = Document::new(text, Language::from_path(path).expect("a known extension"));
    let all = 0..document.len();
    let fixes = engine.fixes(
        &document,
        path,
        &Settings::default(),
        &Overrides::default(),
        all,
    );
    fixes
        .iter()
        .filter(|fix| fix.rule == rule)
        .map(|fix| {
            let mut document = document.clone();
            for (range, text) in fix.edits.iter().rev() {
                document.edit(range.clone(), text);
            }
            document.rope().to_string()
        })
        .collect()
}

/// Runs a kernel before and after every padding that is offered.
#[track_caller]
fn padded(text: &str, dialect: Dialect, launch: &Launch, arguments: &[Argument]) {
    let path = match dialect {
        Dialect::Cuda => "k.cu",
        Dialect::OpenCl => "k.cl",
    };
    let offered = edited(text, path, "smem/bank-conflict");
    assert!(!offered.is_empty(), "nothing is offered for\n{text}");
    let read = |text: &str| {
        let program = Program::read(text, dialect).expect("readable");
        assert_eq!(program.unread(), []);
        program
    };
    let before = read(text);
    let run = before.run("k", launch, arguments).expect("it runs");
    let Argument::Buffer(out) = &arguments[1] else {
        panic!("the second argument is what is written")
    };
    assert!(
        run.buffers.contains(&run.buffers[1]) && run.buffers[1] != *out,
        "it writes"
    );
    for after in offered {
        same_result((&before, "k"), (&read(&after), "k"), launch, arguments)
            .unwrap_or_else(|difference| panic!("{difference} in\n{after}"));
    }
}

fn blocks(size: u32, of: u32) -> u32 {
    size.div_ceil(of)
}

#[test]
fn a_padded_transpose_moves_the_same_numbers() {
    let cuda = "// warplens: block=(32,8) grid=(64,64) n=2048\n\
        __global__ void k(const float *in, float *out, int n) {\n\
        \x20 __shared__ float tile[32][32];\n\
        \x20 int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;\n\
        \x20 for (int j = 0; j < 32; j += 8)\n\
        \x20   if (x < n && y + j < n) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];\n\
        \x20 __syncthreads();\n\
        \x20 x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;\n\
        \x20 for (int j = 0; j < 32; j += 8)\n\
        \x20   if (x < n && y + j < n) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];\n\
        }\n";
    let opencl = "// warplens: block=(32,8) grid=(64,64) n=2048\n\
        __kernel void k(__global const float *in, __global float *out, int n) {\n\
        \x20 __local float tile[32][32];\n\
        \x20 int u = get_local_id(0), v = get_local_id(1);\n\
        \x20 int x = get_group_id(0) * 32 + u, y = get_group_id(1) * 32 + v;\n\
        \x20 for (int j = 0; j < 32; j += 8) if (x < n && y + j < n) tile[v + j][u] = in[(y + j) * n + x];\n\
        \x20 barrier(CLK_LOCAL_MEM_FENCE);\n\
        \x20 x = get_group_id(1) * 32 + u; y = get_group_id(0) * 32 + v;\n\
        \x20 for (int j = 0; j < 32; j += 8) if (x < n && y + j < n) out[(y + j) * n + x] = tile[u][v + j];\n\
        }\n";
    let mut random = Random(15);
    for n in [1, 31, 33, 70] {
        let launch = Launch {
            grid: [blocks(n, 32), blocks(n, 32), 1],
            block: [32, 8, 1],
            ..Launch::default()
        };
        let count = (n * n) as usize;
        let arguments = [
            Argument::Buffer(random.floats(count)),
            Argument::Buffer(vec![0; 4 * count]),
            Argument::Int(i64::from(n)),
        ];
        padded(cuda, Dialect::Cuda, &launch, &arguments);
        padded(opencl, Dialect::OpenCl, &launch, &arguments);
    }
}

#[test]
fn padded_rows_keep_their_sums_and_their_size() {
    // A row per thread, with a `sizeof` that counts elements, through a macro and in doubles.
    let text = "#define ROWS 32\n\
        // warplens: block=32 grid=64 n=2048\n\
        __global__ void k(const double *in, double *out, int n) {\n\
        \x20 __shared__ double rows[ROWS][16];\n\
        \x20 const int width = sizeof(rows[0]) / sizeof(double);\n\
        \x20 for (int j = threadIdx.x; j < ROWS * 16; j += blockDim.x) {\n\
        \x20   int at = blockIdx.x * ROWS * 16 + j;\n\
        \x20   rows[j / 16][j % 16] = at < n * 16 ? in[at] : 0.0;\n\
        \x20 }\n\
        \x20 __syncthreads();\n\
        \x20 double sum = 0;\n\
        \x20 for (int j = 0; j < 16; j++) sum += rows[threadIdx.x][j];\n\
        \x20 int i = blockIdx.x * ROWS + threadIdx.x;\n\
        \x20 if (i < n) out[i] = sum;\n\
        }\n";
    let mut random = Random(4);
    for text in [
        text.to_owned(),
        text.replace(
            "\x20 const int width = sizeof(rows[0]) / sizeof(double);\n",
            "",
        ),
    ] {
        if edited(&text, "k.cu", "smem/bank-conflict").is_empty() {
            // The size of a row is asked for: nothing is offered, nothing can go wrong.
            assert!(text.contains("sizeof(rows[0])"));
            continue;
        }
        for n in [1, 32, 45] {
            let launch = Launch {
                grid: [blocks(n, 32), 1, 1],
                ..Launch::default()
            };
            let arguments = [
                Argument::Buffer(random.doubles(16 * n as usize)),
                Argument::Buffer(vec![0; 8 * n as usize]),
                Argument::Int(i64::from(n)),
            ];
            padded(&text, Dialect::Cuda, &launch, &arguments);
        }
    }
}

/// Bytes of a `Particle`, and its fields: name, first byte, bytes.
const SIZE: usize = 24;
const FIELDS: [(&str, usize, usize); 4] =
    [("x", 0, 4), ("y", 4, 4), ("mass", 8, 8), ("kind", 16, 4)];

fn field(structures: &[u8], name: &str) -> Vec<u8> {
    let (_, at, size) = FIELDS
        .into_iter()
        .find(|(of, ..)| *of == name)
        .unwrap_or_else(|| panic!("no field {name}"));
    let each = structures.chunks(SIZE);
    each.flat_map(|one| one[at..at + size].to_vec()).collect()
}

#[test]
fn a_structure_of_arrays_holds_what_the_array_of_structures_held() {
    let mut random = Random(9);
    for body in [
        "p[i].x += p[i].y * 0.5f;",
        "p[i].kind ^= i * 3; p[i].y = p[i].x > 0 ? p[i].x : -p[i].y;",
        "float sum = p->x; for (int j = 0; j < 4; j++) sum += p[(i + j) % n].y; p[i].mass = sum;",
    ] {
        let text = format!(
            "struct Particle {{\n  float x, y;\n  double mass;\n  int kind;\n}};\n\
             // warplens: block=256 grid=1024 n=262144\n\
             __global__ void k(Particle *p, int n) {{\n\
             \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             \x20 if (i >= n) return;\n\
             \x20 {body}\n}}\n"
        );
        let offered = edited(&text, "k.cu", "mem/aos");
        assert_eq!(offered.len(), 1, "{body}");
        let after = &offered[0];
        // The arrays, in the order in which the structure lists them.
        let list = after
            .split("struct ParticleArrays {")
            .nth(1)
            .expect("the arrays");
        let list = list.split('}').next().unwrap_or_default();
        let names: Vec<&str> = list
            .split(';')
            .filter_map(|line| line.rsplit(['*', ' ']).next())
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        assert!(names.len() >= 2, "{list}");

        for n in [1_usize, 77, 300] {
            let mut structures = vec![0; SIZE * n];
            for one in structures.chunks_mut(SIZE) {
                one[0..8].copy_from_slice(&random.floats(2));
                one[8..16].copy_from_slice(&random.doubles(1));
                one[16..20].copy_from_slice(&(random.next() as i32).to_le_bytes());
            }
            let launch = Launch {
                grid: [blocks(n as u32, 64), 1, 1],
                block: [64, 1, 1],
                template: BTreeMap::new(),
                ..Launch::default()
            };
            let size = Argument::Int(n as i64);
            let run = |text: &str, first: Argument| {
                let program = Program::read(text, Dialect::Cuda).expect("readable");
                let run = program.run("k", &launch, &[first, size.clone()]);
                let run = run.unwrap_or_else(|error| panic!("{error} in\n{text}"));
                assert_eq!(run.undefined, None);
                run.buffers
            };
            let expected = run(&text, Argument::Buffer(structures.clone()));
            assert_ne!(expected[0], structures, "it writes");
            let arrays = names
                .iter()
                .map(|name| Argument::Buffer(field(&structures, name)))
                .collect();
            let found = run(after, Argument::Fields(arrays));
            for (name, found) in names.iter().zip(&found) {
                assert_eq!(*found, field(&expected[0], name), "{name}, n = {n}: {body}");
            }
        }
    }
}
