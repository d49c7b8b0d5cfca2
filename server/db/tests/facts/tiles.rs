//! Tiles of shared memory as kernels with matrix units spell them, held against bank addresses worked out here.
//!
//! A kernel is put together from parts that a number chooses: how the tile is declared, how its rows are padded or
//! swizzled, how an address becomes a number, how a stage is chosen, how the tile is filled, which instructions read it. Each
//! part is written twice, as CUDA and as a function of thread and iteration; the second shares no code with the analysis.
//!
//! The actions that pad or swizzle such a tile are held against the same kernel written with that padding or swizzle.
//!
//! `WARPLENS_CASES=5000` runs more of them, `WARPLENS_FIRST=1234` begins elsewhere: a failure names its number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use std::path::Path;

use warplens_db::settings::Settings;
use warplens_db::wire::KernelResult;
use warplens_db::{LaunchValues, Overrides, PlacedFix};
use warplens_syntax::{Document, Language};

use crate::tensor::{ENGINE, launched};

const HELPERS: &str = r#"
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <cstdint>
#define VECTOR(value) (reinterpret_cast<float4 *>(&(value))[0])
#define LDMATRIX_X1(R0, R1, R2, R3, addr) \
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\n" : "=r"(R0) : "r"(addr))
#define LDMATRIX_X2(R0, R1, R2, R3, addr) \
  asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%0, %1}, [%2];\n" : "=r"(R0), "=r"(R1) : "r"(addr))
#define LDMATRIX_X4(R0, R1, R2, R3, addr) \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
               : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3) : "r"(addr))
#define CP_ASYNC(kind, to, from) \
  asm volatile("cp.async." #kind ".shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(to), "l"(from), "n"(16))
__device__ __forceinline__ uint32_t shared_address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ inline unsigned in_assembly(void const *p) {
  unsigned at;
  asm("{ .reg .u64 q; cvta.to.shared.u64 q, %1; cvt.u32.u64 %0, q; }\n" : "=r"(at) : "l"(p));
  return at;
}
template <int B, int M, int S> struct Swizzle {
  static constexpr int mask = ((1 << B) - 1) << (M + S);
  __host__ __device__ static constexpr uint32_t apply(uint32_t x) { return x ^ ((x & mask) >> S); }
};
template <int X, bool Trans> __device__ __forceinline__ void load(uint32_t (&r)[4], uint32_t at) {
  if constexpr (X == 1 && !Trans) { LDMATRIX_X1(r[0], r[1], r[2], r[3], at); }
  else if constexpr (X == 2 && !Trans) { LDMATRIX_X2(r[0], r[1], r[2], r[3], at); }
  else if constexpr (X == 4 && !Trans) { LDMATRIX_X4(r[0], r[1], r[2], r[3], at); }
  else if constexpr (X == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(at));
  } else if constexpr (X == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  }
}
__device__ __forceinline__ void copy_16(void *to, const void *from, bool pred = true) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = pred ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void copy_where(uint32_t at, const void *from, int p) {
  asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %0, 0;\n @p cp.async.cg.shared.global [%1], [%2], 16;\n}\n"
               ::"r"(p), "r"(at), "l"(from));
}
"#;

/// Numbers that choose.
struct Chooser(u64);

impl Chooser {
    fn next(&mut self, below: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % below as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len())]
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Swizzle {
    None,
    /// Pieces of padding.
    Pad(usize),
    /// piece ^ (row & 7)
    Row,
    /// piece ^ (row / 2 & 3)
    HalfRow,
    /// piece ^ (row / 4 & 1)
    QuarterRow,
    /// (piece + row) % pieces
    Turned,
    /// Bits of the byte address.
    Address,
}

/// Where a tile is and how it is laid out.
#[derive(Debug, Clone, Copy)]
struct Tile {
    /// Bytes of an element.
    element: usize,
    /// Pieces of 16 bytes in a row.
    pieces: usize,
    rows: usize,
    swizzle: Swizzle,
    stages: usize,
    /// Bytes before it, and from a stage to the next.
    start: usize,
    stage: usize,
}

impl Tile {
    fn pitch(&self) -> usize {
        let pad = match self.swizzle {
            Swizzle::Pad(pad) => pad,
            _ => 0,
        };
        (self.pieces + pad) * 16
    }

    /// The byte of a piece.
    fn at(&self, stage: usize, row: usize, piece: usize) -> usize {
        let placed = match self.swizzle {
            Swizzle::None | Swizzle::Pad(_) | Swizzle::Address => piece,
            Swizzle::Row => piece ^ (row & 7),
            Swizzle::HalfRow => piece ^ ((row >> 1) & 3),
            Swizzle::QuarterRow => piece ^ ((row >> 2) & 1),
            Swizzle::Turned => (piece + row) % self.pieces,
        };
        let mut byte = row * self.pitch() + placed * 16;
        if self.swizzle == Swizzle::Address {
            let bits = if self.pieces == 8 { 0x380 } else { 0x180 };
            byte ^= (byte & bits) >> 3;
        }
        self.start + stage * self.stage + byte
    }
}

/// The first byte of a thread: in a tile, in a stage, in an iteration of two loops.
type ByteOf = dyn Fn(&Tile, usize, usize, [usize; 2]) -> usize;

/// An instruction of the kernel: what the analysis must say of it.
struct Site {
    operation: &'static str,
    instruction: &'static str,
    /// Bytes of a request, of a lane in a phase, and the lanes of each phase.
    bytes: usize,
    lane: usize,
    phases: Vec<Vec<usize>>,
    /// How often loops around it execute it in an iteration.
    counts: [usize; 2],
    /// The first byte of a thread: in the tile, in a stage, in an iteration of the loops.
    byte: Box<ByteOf>,
}

/// Operation, instruction, bytes, requests, passes and ideal passes of all.
type Figures = (String, String, u64, u64, u64, u64);

impl Site {
    /// The first byte of each thread, one list an execution.
    fn executions(&self, tile: &Tile, threads: usize, iterations: usize) -> Vec<Vec<usize>> {
        let mut executions = Vec::new();
        for iteration in 0..iterations {
            let stage = iteration % tile.stages;
            for a in 0..self.counts[0] {
                for b in 0..self.counts[1] {
                    let threads = 0..threads;
                    executions.push(
                        threads
                            .map(|t| (self.byte)(tile, stage, t, [a, b]))
                            .collect(),
                    );
                }
            }
        }
        executions
    }

    fn figures(&self, case: &Case, tile: &Tile) -> Figures {
        let blocks = case.blocks as u64;
        let (mut requests, mut passes, mut ideal) = (0, 0, 0);
        for threads in &self.executions(tile, case.threads, case.iterations) {
            for warp in threads.chunks(32) {
                requests += 1;
                for lanes in &self.phases {
                    let mut banks: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
                    for lane in lanes {
                        let start = warp[*lane];
                        for word in start / 4..(start + self.lane).div_ceil(4) {
                            banks.entry(word % 32).or_default().insert(word);
                        }
                    }
                    passes += banks.values().map(BTreeSet::len).max().unwrap_or(0) as u64;
                    ideal += 1;
                }
            }
        }
        (
            self.operation.to_owned(),
            self.instruction.to_owned(),
            self.bytes as u64,
            requests * blocks,
            passes * blocks,
            ideal * blocks,
        )
    }
}

/// A kernel.
struct Case {
    text: String,
    tile: Tile,
    /// It is a member of a structure.
    member: bool,
    sites: Vec<Site>,
    threads: usize,
    blocks: usize,
    iterations: usize,
    dynamic: usize,
    products: usize,
}

/// Row and piece of a lane.
type OfLane = fn(usize) -> (usize, usize);

/// A kernel while it is put together.
struct Maker {
    choose: Chooser,
    tile: Tile,
    ty: &'static str,
    declared: usize,
    address: usize,
    threads: usize,
    sites: Vec<Site>,
    body: String,
}

const DECLARATIONS: usize = 8;

impl Maker {
    /// Types before the kernel, declarations in it, dynamic shared memory.
    fn declare(&mut self) -> (String, String, usize) {
        let Tile { rows, stages, .. } = self.tile;
        let (ty, row) = (self.ty, self.tile.pitch() / self.tile.element);
        let bytes = rows * self.tile.pitch();
        self.tile.stage = bytes;
        let mut dynamic = 0;
        let (before, inside) = match self.declared {
            0 => (
                String::new(),
                format!("__shared__ __align__(1024) {ty} tile[{stages}][{rows}][{row}];"),
            ),
            1 => (
                String::new(),
                format!("__shared__ alignas(128) {ty} tile[{stages} * {rows} * {row}];"),
            ),
            2 => {
                self.tile.start = 512;
                dynamic = 512 + stages * bytes;
                (
                    String::new(),
                    format!(
                        "extern __shared__ __align__(1024) unsigned char raw[];\n\
                         {ty} *tile = reinterpret_cast<{ty} *>(raw + 512);"
                    ),
                )
            }
            3 => {
                self.tile.start = stages * bytes;
                dynamic = 2 * stages * bytes;
                (
                    String::new(),
                    format!(
                        "extern __shared__ {ty} smem[];\n{ty} *first = smem;\n{ty} *tile = first + {stages} * {rows} * {row};"
                    ),
                )
            }
            4 => {
                self.tile.start = stages * 256;
                (
                    format!(
                        "struct Shared {{ float4 first[{stages}][16]; {ty} tile[{stages}][{rows}][{row}]; }};"
                    ),
                    "__shared__ __align__(128) Shared s;".to_owned(),
                )
            }
            5 => {
                dynamic = stages * bytes + 256;
                (
                    format!(
                        "struct Shared {{ {ty} tile[{stages}][{rows}][{row}]; float row[64]; }};"
                    ),
                    "extern __shared__ char raw[];\nShared &s = *reinterpret_cast<Shared *>(raw);"
                        .to_owned(),
                )
            }
            6 => {
                self.tile.start = 128;
                self.tile.stage = bytes + 128;
                (
                    format!(
                        "struct Stage {{ float4 other[8]; {ty} tile[{rows}][{row}]; }};\nstruct Shared {{ Stage stage[{stages}]; }};"
                    ),
                    "__shared__ __align__(128) Shared s;".to_owned(),
                )
            }
            _ => (
                format!(
                    "union Shared {{ struct {{ {ty} tile[{stages}][{rows}][{row}]; }} in; float out[64]; }};"
                ),
                "__shared__ Shared s;".to_owned(),
            ),
        };
        (before, inside, dynamic)
    }

    /// An element of the tile: row and element of the row as CUDA.
    fn element(&self, row: &str, at: &str) -> String {
        let length = self.tile.pitch() / self.tile.element;
        let stage = self.tile.rows * length;
        match self.declared {
            0 => format!("tile[st][{row}][{at}]"),
            1..=3 => format!("tile[st * {stage} + ({row}) * {length} + {at}]"),
            4 | 5 => format!("s.tile[st][{row}][{at}]"),
            6 => format!("s.stage[st].tile[{row}][{at}]"),
            _ => format!("s.in.tile[st][{row}][{at}]"),
        }
    }

    /// A piece of a row as it is placed, as CUDA.
    fn placed(&mut self, row: &str, piece: &str) -> String {
        let pieces = self.tile.pieces;
        match self.tile.swizzle {
            Swizzle::None | Swizzle::Pad(_) | Swizzle::Address => format!("({piece})"),
            Swizzle::Row => match self.choose.next(3) {
                0 => format!("(({piece}) ^ (({row}) & 7))"),
                1 => format!("((({row}) % 8) ^ ({piece}))"),
                _ => format!("swizzled({row}, {piece})"),
            },
            Swizzle::QuarterRow => format!("(({piece}) ^ ((({row}) >> 2) & 1))"),
            Swizzle::HalfRow => match self.choose.next(2) {
                0 => format!("(({piece}) ^ ((({row}) >> 1) & 3))"),
                _ => format!("(({piece}) ^ ((({row}) / 2) % 4))"),
            },
            Swizzle::Turned => format!("((({piece}) + ({row})) % {pieces})"),
        }
    }

    /// The first element of a piece.
    fn first(&mut self, row: &str, piece: &str) -> String {
        let elements = 16 / self.tile.element;
        let placed = self.placed(row, piece);
        let at = match self.choose.next(2) {
            0 if elements.is_power_of_two() => {
                format!("({placed} << {})", elements.trailing_zeros())
            }
            _ => format!("{placed} * {elements}"),
        };
        self.element(row, &at)
    }

    /// Statements that give a piece's address a name.
    fn named(&mut self, name: &str, row: &str, piece: &str) -> String {
        let pitch = self.tile.pitch();
        let base = self.element("0", "0");
        if self.tile.swizzle == Swizzle::Address {
            let (bits, count) = if self.tile.pieces == 8 {
                ("0x380", 3)
            } else {
                ("0x180", 2)
            };
            let swizzled = match self.choose.next(3) {
                0 => format!("(o_{name} ^ ((o_{name} & {bits}) >> 3))"),
                1 => format!("Swizzle<{count}, 4, 3>::apply(o_{name})"),
                _ => format!("(o_{name} ^ (({bits} & o_{name}) / 8))"),
            };
            return format!(
                "uint32_t o_{name} = ({row}) * {pitch} + ({piece}) * 16; \
                 uint32_t {name} = shared_address(&{base}) + {swizzled};"
            );
        }
        let (ty, length) = (self.ty, pitch / self.tile.element);
        let placed = self.placed(row, piece);
        let elements = 16 / self.tile.element;
        match self.address {
            0 => {
                let first = self.first(row, piece);
                format!("uint32_t {name} = (uint32_t)__cvta_generic_to_shared(&{first});")
            }
            1 => format!(
                "uint32_t b_{name} = static_cast<uint32_t>(__cvta_generic_to_shared(&{base})); \
                 uint32_t {name} = b_{name} + ({row}) * {pitch} + {placed} * 16;"
            ),
            2 => {
                let first = self.first(row, piece);
                format!("const uint32_t {name} = shared_address(&{first});")
            }
            3 => {
                let first = self.first(row, piece);
                format!("unsigned {name} = in_assembly(&{first});")
            }
            4 => format!(
                "{ty} *p_{name} = ({ty} *)(&{base}) + ({row}) * {length} + {placed} * {elements}; \
                 uint32_t {name} = shared_address(p_{name});"
            ),
            5 => format!(
                "size_t z_{name} = __cvta_generic_to_shared(&{base}); unsigned int {name} = \
                 (unsigned int)(z_{name} + (({row}) * {length} + {placed} * {elements}) * sizeof({ty}));"
            ),
            // Bytes are added, whatever the pointer points to.
            _ => format!(
                "uint32_t {name} = __cvta_generic_to_shared(&{base}) + sizeof({ty}) * (({row}) * {length} + {placed} * {elements});"
            ),
        }
    }

    fn site(
        &mut self,
        (operation, instruction): (&'static str, &'static str),
        matrices: Option<usize>,
        counts: [usize; 2],
        byte: impl Fn(&Tile, usize, usize, [usize; 2]) -> usize + 'static,
    ) {
        let phases = matrices.unwrap_or(4);
        self.sites.push(Site {
            operation,
            instruction,
            bytes: 128 * phases,
            lane: 16,
            phases: (0..phases)
                .map(|phase| (8 * phase..8 * phase + 8).collect())
                .collect(),
            counts,
            byte: Box::new(byte),
        });
    }

    /// Copies or stores that fill the tile.
    fn fill(&mut self) {
        let pieces = self.tile.pieces;
        let rows = self.threads / pieces;
        if rows == 0 || rows > self.tile.rows {
            return;
        }
        let times = (self.tile.rows / rows).min(8);
        let elements = 16 / self.tile.element;
        let from = format!(
            "in + blockIdx.x * 65536 + (i * {} + tid) * {elements} + kt * 8192",
            self.threads
        );
        let row = format!("tid / {pieces} + i * {rows}");
        let spelled = self.choose.next(6);
        let spelled = if self.tile.swizzle == Swizzle::Address {
            spelled % 3
        } else {
            spelled
        };
        let (statements, instruction) = match spelled {
            0..=2 => {
                let address = self.named("to", "fr", "fc");
                let copy = match spelled {
                    0 => format!("CP_ASYNC(cg, to, {from});"),
                    1 => format!("CP_ASYNC(ca, to, {from});"),
                    _ => format!("copy_where(to, {from}, 1);"),
                };
                (format!("{address} {copy}"), "cp.async")
            }
            3 => {
                let first = self.first("fr", "fc");
                (format!("copy_16(&{first}, {from});"), "cp.async")
            }
            4 => {
                let first = self.first("fr", "fc");
                (
                    format!("__pipeline_memcpy_async(&{first}, {from}, 16);"),
                    "",
                )
            }
            _ => {
                let first = self.first("fr", "fc");
                let store = match self.choose.next(3) {
                    0 => format!(
                        "*reinterpret_cast<int4 *>(&{first}) = *reinterpret_cast<const int4 *>({from});"
                    ),
                    1 => format!("*(float4 *)&{first} = *(const float4 *)({from});"),
                    _ => format!("VECTOR({first}) = *(const float4 *)({from});"),
                };
                (store, "")
            }
        };
        let unroll = self.choose.of(&["", "#pragma unroll\n"]);
        let _ = writeln!(
            self.body,
            "{unroll}for (int i = 0; i < {times}; ++i) {{ int fr = {row}, fc = tid % {pieces}; {statements} }}"
        );
        self.site(
            ("store", instruction),
            None,
            [times, 1],
            move |tile, stage, t, [i, _]| tile.at(stage, t / pieces + i * rows, t % pieces),
        );
    }

    /// `ldmatrix` in loops over fragments.
    fn load(&mut self, number: usize) {
        let matrices = self.choose.of(&[1, 2, 4, 4, 4]);
        let down = self.choose.of(&[1, 2, 4]);
        let down = if self.tile.rows < 16 * down { 1 } else { down };
        let along = if self.tile.pieces >= 4 {
            self.choose.of(&[1, 2])
        } else {
            1
        };
        let (row, piece, of): (&str, &str, OfLane) = match self.choose.next(3) {
            0 => ("lane % 16", "lane / 16", |l| (l % 16, l / 16)),
            1 => (
                "((lane & 7) + ((lane >> 4) << 3))",
                "((lane >> 3) & 1)",
                |l| ((l & 7) + ((l >> 4) << 3), (l >> 3) & 1),
            ),
            _ => (
                "((lane & 0x7) | (((lane >> 3) & 1) << 3))",
                "(lane / 16)",
                |l| (l % 8 + l / 8 % 2 * 8, l / 16),
            ),
        };
        let groups = self.tile.rows / (16 * down);
        let groups = if self.choose.next(2) == 0 { 1 } else { groups };
        let address = self.named(&format!("a{number}"), "r", "c");
        let instruction = match self.choose.next(3) {
            0 => format!("LDMATRIX_X{matrices}(r4[0], r4[1], r4[2], r4[3], a{number});"),
            1 => format!(
                "load<{matrices}, {}>(r4, a{number});",
                self.choose.of(&["true", "false"])
            ),
            _ => {
                let names: Vec<String> = (0..matrices).map(|at| format!("%[d{at}]")).collect();
                let bound: Vec<String> = (0..matrices)
                    .map(|at| format!("[d{at}] \"=r\"(r4[{at}])"))
                    .collect();
                format!(
                    "asm volatile(\"ldmatrix.sync.aligned.m8n8.x{matrices}.shared::cta.b16 {{{}}}, [%[at]];\" : {} : [at] \"r\"(a{number}) : \"memory\");",
                    names.join(", "),
                    bound.join(", ")
                )
            }
        };
        let _ = writeln!(
            self.body,
            "for (int m = 0; m < {down}; ++m) for (int q = 0; q < {along}; q++) {{ \
             int r = (warp % {groups}) * {} + {row} + m * 16; int c = {piece} + q * 2; {address} {instruction} acc += r4[0]; }}",
            16 * down
        );
        self.site(
            ("load", "ldmatrix"),
            Some(matrices),
            [down, along],
            move |tile, stage, t, [m, q]| {
                let (row, piece) = of(t % 32);
                tile.at(
                    stage,
                    t / 32 % groups * 16 * down + row + m * 16,
                    piece + q * 2,
                )
            },
        );
    }

    fn store(&mut self) {
        let matrices = self.choose.of(&[1usize, 2, 4]);
        let address = self.named("sa", "lane % 16", "lane / 16");
        let names: Vec<String> = (1..=matrices).map(|at| format!("%{at}")).collect();
        let bound: Vec<String> = (0..matrices).map(|at| format!("\"r\"(r4[{at}])")).collect();
        let _ = writeln!(
            self.body,
            "{{ {address} asm volatile(\"stmatrix.sync.aligned.m8n8.x{matrices}{}.shared.b16 [%0], {{{}}};\\n\" :: \"r\"(sa), {}); }}",
            self.choose.of(&["", ".trans"]),
            names.join(", "),
            bound.join(", ")
        );
        self.site(
            ("store", "stmatrix"),
            Some(matrices),
            [1, 1],
            |tile, stage, t, _| tile.at(stage, t % 32 % 16, t % 32 / 16),
        );
    }

    /// A read of 16 bytes, each thread another row.
    fn vector(&mut self) {
        let step = self.choose.of(&[1usize, 2, 4]);
        let (rows, pieces) = (self.tile.rows, self.tile.pieces);
        let first = self.first(
            &format!("((tid * {step}) % {rows})"),
            &format!("tid / 32 % {pieces}"),
        );
        let _ = writeln!(
            self.body,
            "{{ int4 v = *reinterpret_cast<const int4 *>(&{first}); acc += v.x + v.y + v.z + v.w; }}"
        );
        self.site(("load", ""), None, [1, 1], move |tile, stage, t, _| {
            tile.at(stage, t * step % rows, t / 32 % pieces)
        });
    }
}

fn case(number: u64) -> Case {
    let mut choose = Chooser(number);
    let (ty, element) = choose.of(&[
        ("half", 2),
        ("__nv_bfloat16", 2),
        ("int8_t", 1),
        ("float", 4),
        ("uint8_t", 1),
    ]);
    let swizzle = match choose.next(9) {
        0 | 1 => Swizzle::None,
        2 | 3 => Swizzle::Pad(choose.of(&[1, 1, 2, 3])),
        4 | 5 => Swizzle::Row,
        6 => Swizzle::HalfRow,
        7 => Swizzle::Turned,
        _ => Swizzle::Address,
    };
    let pieces = match swizzle {
        Swizzle::Row | Swizzle::Turned => choose.of(&[8, 16]),
        Swizzle::Address => choose.of(&[4, 8]),
        Swizzle::HalfRow => choose.of(&[4, 8]),
        _ => choose.of(&[2, 4, 8, 16]),
    };
    let mut tile = Tile {
        element,
        pieces,
        rows: choose.of(&[32, 64, 128]),
        swizzle,
        stages: choose.of(&[1, 2, 3, 4]),
        start: 0,
        stage: 0,
    };
    while tile.stages * tile.rows * tile.pitch() > 20 * 1024 && tile.stages > 1 {
        tile.stages -= 1;
    }
    while tile.rows * tile.pitch() * tile.stages > 20 * 1024 {
        tile.rows /= 2;
    }
    let threads = 32 * choose.of(&[1, 2, 4, 8]);
    let iterations = choose.of(&[1, 2, 3, 4, 6]);
    let (declared, address) = (choose.next(DECLARATIONS), choose.next(7));
    let mut maker = Maker {
        choose,
        tile,
        ty,
        declared,
        address,
        threads,
        sites: Vec::new(),
        body: String::new(),
    };
    let (before, inside, dynamic) = maker.declare();
    let stages = maker.tile.stages;
    let way = maker.choose.next(if stages == 2 { 6 } else { 4 });
    let (first, chosen, moved) = match (stages, way) {
        (1, _) => ("const int st = 0;".to_owned(), String::new(), String::new()),
        (_, 0) => (
            String::new(),
            format!("int st = kt % {stages};"),
            String::new(),
        ),
        (_, 1) => (
            "int st = 0;".to_owned(),
            String::new(),
            format!("st = (st + 1) % {stages};"),
        ),
        (_, 2) => (
            "int st = 0;".to_owned(),
            String::new(),
            format!("if (++st == {stages}) st = 0;"),
        ),
        (_, 3) => (
            "int st = 0;".to_owned(),
            String::new(),
            format!("st = st + 1 == {stages} ? 0 : st + 1;"),
        ),
        (_, 4) => (
            "int st = 0;".to_owned(),
            String::new(),
            "st ^= 1;".to_owned(),
        ),
        _ => (
            "int st = 0;".to_owned(),
            String::new(),
            "st = 1 - st;".to_owned(),
        ),
    };
    if maker.choose.next(6) > 0 {
        maker.fill();
    }
    maker.body.push_str("asm volatile(\"cp.async.commit_group;\\n\" ::); asm volatile(\"cp.async.wait_group %0;\\n\" ::\"n\"(0)); __syncthreads();\n");
    for number in 0..maker.choose.of(&[1, 1, 2]) {
        maker.load(number);
    }
    if maker.choose.next(3) == 0 {
        maker.store();
    }
    if maker.choose.next(3) == 0 && swizzle != Swizzle::Address {
        maker.vector();
    }
    let products = maker.choose.of(&[0usize, 1, 2, 4]);
    if products > 0 {
        let _ = writeln!(
            maker.body,
            "for (int j = 0; j < {products}; j++) asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \
             {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};\\n\" \
             : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) \
             : \"r\"(r4[0]), \"r\"(r4[1]), \"r\"(r4[2]), \"r\"(r4[3]), \"r\"(r4[0]), \"r\"(r4[1]));"
        );
    }
    let blocks = maker.choose.of(&[1usize, 2, 5]);
    let text = format!(
        "{HELPERS}__device__ __forceinline__ int swizzled(int r, int c) {{ return c ^ (r & 7); }}\n{before}\n\
         __global__ void k(const {ty} *in, uint32_t *out, int KT) {{\n{inside}\n\
         const int tid = threadIdx.x; const int lane = tid % 32, warp = tid / 32;\n\
         uint32_t r4[4] = {{0, 0, 0, 0}}; uint32_t acc = 0; float d[4] = {{0.f}};\n{first}\n\
         for (int kt = 0; kt < KT; ++kt) {{\n{chosen}\n{}__syncthreads();\n{moved}\n}}\n\
         out[blockIdx.x * blockDim.x + tid] = acc + (uint32_t)d[0];\n}}\n",
        maker.body
    );
    Case {
        text,
        tile: maker.tile,
        member: declared >= 4,
        sites: maker.sites,
        threads,
        blocks,
        iterations,
        dynamic,
        products,
    }
}

fn estimate(case: &Case) -> KernelResult {
    let launch = LaunchValues {
        grid: Some([case.blocks as u64, 1, 1]),
        block: Some([case.threads as u64, 1, 1]),
        dynamic_shared_bytes: Some(case.dynamic as u64),
        args: BTreeMap::from([("KT".to_owned(), case.iterations as i64)]),
        ..LaunchValues::default()
    };
    launched(&case.text, launch)
}

/// What the analysis says of accesses to shared memory, in order.
fn shared_figures(found: &KernelResult, text: &dyn Fn() -> String) -> Vec<Figures> {
    let mut shared = Vec::new();
    for access in &found.accesses {
        assert!(access.exact, "{} {:?} {}", access.text, access.why, text());
        assert_ne!(access.space, "local", "{}", text());
        if access.space != "shared" {
            continue;
        }
        let whole = |figure: Option<f64>| figure.unwrap_or(-1.0);
        let requests = whole(access.requests);
        let all = |mean: Option<f64>| (whole(mean) * requests).round() as u64;
        let instruction = access.instruction.as_deref().unwrap_or("");
        let known = ["ldmatrix", "stmatrix", "cp.async"];
        let known = known.into_iter().find(|name| instruction.starts_with(name));
        shared.push((
            access.op.to_owned(),
            known.unwrap_or("").to_owned(),
            whole(access.bytes_per_request) as u64,
            requests as u64,
            all(access.passes_per_request),
            all(access.ideal_passes_per_request),
        ));
    }
    shared.sort();
    shared
}

/// What they are, were the tile laid out like this.
fn expected(case: &Case, tile: &Tile) -> Vec<Figures> {
    let sites = case.sites.iter();
    let mut expected: Vec<Figures> = sites.map(|site| site.figures(case, tile)).collect();
    expected.sort();
    expected
}

fn check(number: u64) {
    let case = case(number);
    let found = estimate(&case);
    let text = || format!("case {number}\n{}", &case.text[HELPERS.len()..]);
    assert_eq!(
        shared_figures(&found, &text),
        expected(&case, &case.tile),
        "{}",
        text()
    );
    let products = found.counts.iter().find(|count| count.class == "tensor");
    let products = products.and_then(|count| count.value).unwrap_or(0.0);
    let expected = case.products * case.iterations * case.threads * case.blocks;
    assert_eq!(products, expected as f64, "{}", text());
}

/// The tile as an action lays it out: its words say which.
fn laid_out(tile: &Tile, fix: &PlacedFix) -> Tile {
    let mut laid = *tile;
    laid.swizzle = if fix.title.starts_with("Pad") {
        Swizzle::Pad(1)
    } else {
        match tile.pieces {
            2 => Swizzle::QuarterRow,
            4 => Swizzle::HalfRow,
            _ => Swizzle::Row,
        }
    };
    laid.stage = laid.rows * laid.pitch();
    laid
}

/// What is offered for the tile of a case; how many are, where there is a conflict to be cured. Members of structures are left
/// alone.
fn check_actions(number: u64) -> Option<usize> {
    let mut case = case(number);
    let conflict = |figures: &Figures| figures.4 > figures.5;
    let before = expected(&case, &case.tile);
    if case.member || case.tile.swizzle != Swizzle::None || !before.iter().any(conflict) {
        return None;
    }
    let directive = format!(
        "// warplens: block=({}) grid=({}) dynamic_shared={} KT={}\n__global__",
        case.threads, case.blocks, case.dynamic, case.iterations
    );
    case.text = case.text.replacen("__global__", &directive, 1);
    let (settings, problems) = Settings::from_toml("gpu = 'h100-sxm5'");
    assert_eq!(problems, []);
    let document = Document::new(&case.text, Language::Cuda);
    let all = 0..document.len();
    let overrides = Overrides::default();
    let mut fixes = ENGINE.fixes(&document, Path::new("k.cu"), &settings, &overrides, all);
    fixes.retain(|fix| fix.rule == "smem/bank-conflict");
    for fix in &fixes {
        let mut edited = document.clone();
        for (range, new) in fix.edits.iter().rev() {
            edited.edit(range.clone(), new);
        }
        let edited = edited.rope().to_string();
        let text = || format!("case {number}: {}\n{}", fix.title, &edited[HELPERS.len()..]);
        let found = launched(&edited, LaunchValues::default());
        let found = shared_figures(&found, &text);
        assert_eq!(
            found,
            expected(&case, &laid_out(&case.tile, fix)),
            "{}",
            text()
        );
        // Rows of matrices are free then; what lanes load of their own may conflict in any layout.
        let of_matrices = |figures: &&Figures| figures.1.ends_with("matrix");
        assert!(
            !found.iter().filter(of_matrices).any(conflict),
            "{}",
            text()
        );
    }
    Some(fixes.len())
}

#[test]
fn tiles_that_are_padded_or_swizzled_by_an_action_lie_as_if_they_were_written_so() {
    let cases = std::env::var("WARPLENS_CASES").ok();
    let cases = cases.and_then(|given| given.parse().ok()).unwrap_or(150);
    let offered: Vec<usize> = (0..cases).filter_map(check_actions).collect();
    let cured = offered.iter().filter(|offered| **offered > 0).count();
    // Where the kernel does not become faster nothing is offered.
    assert!(2 * cured > offered.len(), "{cured} of {}", offered.len());
}

#[test]
fn tiles_in_many_spellings_have_the_passes_worked_out_lane_by_lane() {
    let number = |name: &str, otherwise: u64| {
        let given = std::env::var(name).ok();
        given
            .and_then(|given| given.parse().ok())
            .unwrap_or(otherwise)
    };
    let first = number("WARPLENS_FIRST", 0);
    for case in first..first + number("WARPLENS_CASES", 150) {
        check(case);
    }
}
