//! How many of the bytes that warps move come from L1, from L2 and from DRAM.
//!
//! An access's index, where it is a sum of products of thread and block coordinates, loop counters and
//! parameters, says which elements a block and the whole launch touch: coordinates with commensurate
//! factors fill a run of neighbours or step over it, the others multiply. The distinct bytes of a block
//! are what L2 must deliver to its SM, the distinct bytes of the launch what DRAM must deliver, provided
//! the caches hold what is live in between; where they do not, every request goes to the next level. An
//! index that cannot be read so is taken to have no reuse: an upper bound.

use warplens_analysis::facts::{Access, KernelFacts, Launch, Op, Pattern, Space};
use warplens_hardware::Profile;

use crate::work::{Request, Residency};

/// Bytes of one request at each level of the memory system.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Traffic {
    /// Between L2 and the SM.
    pub l2: f64,
    /// Between DRAM and L2.
    pub dram: f64,
}

/// The traffic of each access; `executions` are the requests of each over the launch.
pub(crate) fn traffic(
    profile: &Profile,
    facts: &KernelFacts,
    requests: &[Request],
    executions: &[f64],
    residency: &Residency,
) -> Vec<Traffic> {
    let KernelFacts {
        launch, accesses, ..
    } = facts;
    let mut all: Vec<Traffic> = requests
        .iter()
        .map(|request| Traffic {
            l2: request.moved_bytes,
            dram: request.moved_bytes,
        })
        .collect();
    if profile.l2_bytes.is_none() {
        return all;
    }
    let live: f64 = accesses
        .iter()
        .zip(requests)
        .filter(|(access, _)| off_chip(access) && access.op == Op::Load)
        .map(|(_, request)| request.moved_bytes)
        .sum();
    let resident = residency.caching_blocks * residency.warps_per_block;
    let l1 = profile
        .l1_bytes
        .filter(|_| profile.l1_latency.is_some())
        .unwrap_or(0) as f64;
    let l2 = profile.l2_bytes.unwrap_or(0) as f64;
    let fits_l1 = live * resident <= l1;
    let fits_l2 = live * resident * residency.active_sms <= l2;

    let indices: Vec<Option<Polynomial>> = accesses
        .iter()
        .map(|access| {
            off_chip(access)
                .then(|| Polynomial::read(&access.index, launch))
                .flatten()
        })
        .collect();
    let parameters = parameters(facts, &indices);
    let mut done = vec![false; accesses.len()];
    for (first, index) in indices.iter().enumerate() {
        let Some(index) = index.as_ref().filter(|_| !done[first]) else {
            continue;
        };
        let mut group = Group {
            members: vec![first],
            shifts: Vec::new(),
        };
        for (other, twin) in indices.iter().enumerate().skip(first + 1) {
            if let Some(twin) = twin
                && !done[other]
                && alike(&accesses[first], &accesses[other])
                && let Some(shift) = twin.shift_from(index)
            {
                group.members.push(other);
                group.shifts.push(shift);
            }
        }
        for member in &group.members {
            done[*member] = true;
        }
        group.fill(
            &mut all,
            index,
            &Setting {
                profile,
                launch,
                accesses,
                parameters: &parameters,
                requests,
                executions,
                residency,
                fits_l1,
                fits_l2,
                l2,
            },
        );
    }
    all
}

/// Names that no loop moves: those that the user was asked for, and those that multiply a coordinate.
fn parameters(facts: &KernelFacts, indices: &[Option<Polynomial>]) -> Vec<String> {
    let mut names: Vec<String> = facts
        .assumptions
        .iter()
        .map(|assumption| assumption.symbol.clone())
        .collect();
    for (monomial, _) in indices.iter().flatten().flat_map(|index| &index.terms) {
        if monomial
            .iter()
            .all(|symbol| matches!(symbol, Symbol::Named(_)))
        {
            continue;
        }
        for symbol in monomial {
            if let Symbol::Named(name) = symbol
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
    }
    names
}

fn off_chip(access: &Access) -> bool {
    matches!(access.space, Space::Global | Space::Texture)
        && !matches!(access.pattern, Pattern::DataDependent | Pattern::Unknown)
}

/// Accesses that may touch the same bytes and share their fate in the caches.
fn alike(one: &Access, other: &Access) -> bool {
    off_chip(other)
        && one.array == other.array
        && one.space == other.space
        && (one.op == Op::Load) == (other.op == Op::Load)
        && one.field.as_ref().map(|f| f.size) == other.field.as_ref().map(|f| f.size)
}

/// Accesses of one array whose indices differ by constants.
struct Group {
    members: Vec<usize>,
    shifts: Vec<(Monomial, i64)>,
}

struct Setting<'a> {
    profile: &'a Profile,
    launch: &'a Launch,
    accesses: &'a [Access],
    parameters: &'a [String],
    requests: &'a [Request],
    executions: &'a [f64],
    residency: &'a Residency,
    fits_l1: bool,
    fits_l2: bool,
    l2: f64,
}

impl Group {
    fn fill(&self, all: &mut [Traffic], index: &Polynomial, setting: &Setting) {
        let moved: f64 = self
            .members
            .iter()
            .map(|&member| setting.requests[member].moved_bytes * setting.executions[member])
            .sum();
        if moved <= 0.0 {
            return;
        }
        let launch = setting.launch;
        let access = &setting.accesses[self.members[0]];
        let unit = f64::from(access.transaction_bytes.max(1));
        let element = match &access.field {
            // A structure's fields share its sectors.
            Some(field) => {
                let touched = unit * self.members.len() as f64;
                f64::from(field.size).min(touched.max(f64::from(field.touched)))
            }
            None => f64::from(access.bytes_per_lane),
        };
        let extents = Extents::of(self, index, setting);
        let grid = launch.grid.map(|n| n as f64);
        let whole = index.distinct_bytes(&self.shifts, &extents, grid, element, unit);
        let one = index.distinct_bytes(&self.shifts, &extents, [1.0; 3], element, unit);
        let blocks = setting.residency.blocks;
        let load = access.op == Op::Load;

        // What leaves L2 for the SMs: each block's distinct bytes, where L1 keeps what is live.
        let l2 = if load && setting.fits_l1 {
            (one * blocks).min(moved)
        } else {
            moved
        };
        // What leaves DRAM: the launch's distinct bytes if L2 holds them, else each wave's.
        let dram = if !setting.fits_l2 {
            l2
        } else if whole <= setting.l2 {
            whole
        } else {
            let wave = setting.residency.caching_blocks * f64::from(setting.profile.sms);
            let extent = wave_extents(grid, wave);
            let waves = (blocks / extent.iter().product::<f64>()).max(1.0);
            let each = index.distinct_bytes(&self.shifts, &extents, extent, element, unit);
            (each * waves).max(whole)
        };
        let dram = dram.min(moved);
        for &member in &self.members {
            let request = setting.requests[member].moved_bytes;
            all[member] = Traffic {
                l2: request * l2 / moved,
                dram: request * (dram / moved),
            };
        }
    }
}

/// The blocks that run together: x first, then y, then z.
fn wave_extents(grid: [f64; 3], wave: f64) -> [f64; 3] {
    let x = grid[0].min(wave.max(1.0));
    let y = grid[1].min((wave / grid[0]).max(1.0));
    let z = grid[2].min((wave / (grid[0] * grid[1])).max(1.0));
    [x, y, z]
}

/// Something an index is made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Symbol {
    Thread(usize),
    Block(usize),
    /// A loop counter or a parameter.
    Named(String),
}

type Monomial = Vec<Symbol>;

/// A sum of products with integer factors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Polynomial {
    terms: Vec<(Monomial, i64)>,
}

/// How many values the free names of an index take.
struct Extents<'p> {
    block: [f64; 3],
    /// Names that a loop around the access moves.
    walks: Vec<&'p String>,
    /// Values of each of them, as far as the number of executions tells.
    each: f64,
}

impl<'p> Extents<'p> {
    fn of(group: &Group, index: &'p Polynomial, setting: &Setting) -> Extents<'p> {
        let first = group.members[0];
        let mut walks = Vec::new();
        if setting.accesses[first].loop_depth > 0 {
            for symbol in index.terms.iter().flat_map(|(monomial, _)| monomial) {
                if let Symbol::Named(name) = symbol
                    && !walks.contains(&name)
                    && !setting.parameters.contains(name)
                {
                    walks.push(name);
                }
            }
        }
        let per_warp = setting.executions[first] / setting.residency.warps().max(1.0);
        let each = per_warp.max(1.0).powf(1.0 / walks.len().max(1) as f64);
        Extents {
            block: setting.launch.block.map(|n| n as f64),
            walks,
            each,
        }
    }
}

impl Polynomial {
    fn read(text: &str, launch: &Launch) -> Option<Polynomial> {
        let mut reader = Reader {
            rest: text.trim(),
            launch,
            depth: 0,
        };
        let polynomial = reader.sum()?;
        reader.rest.trim_start().is_empty().then_some(polynomial)
    }

    fn constant(value: i64) -> Polynomial {
        Polynomial {
            terms: vec![(Vec::new(), value)],
        }
    }

    fn symbol(symbol: Symbol) -> Polynomial {
        Polynomial {
            terms: vec![(vec![symbol], 1)],
        }
    }

    fn plus(mut self, other: Polynomial, sign: i64) -> Option<Polynomial> {
        for (monomial, factor) in other.terms {
            let factor = factor.checked_mul(sign)?;
            match self.terms.iter_mut().find(|term| term.0 == monomial) {
                Some(term) => term.1 = term.1.checked_add(factor)?,
                None => self.terms.push((monomial, factor)),
            }
        }
        self.terms.retain(|term| term.1 != 0);
        Some(self)
    }

    fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut product = Polynomial::default();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let mut monomial = left.clone();
                monomial.extend(right.iter().cloned());
                monomial.sort_unstable();
                let term = Polynomial {
                    terms: vec![(monomial, a.checked_mul(*b)?)],
                };
                product = product.plus(term, 1)?;
                if product.terms.len() > 64 {
                    return None;
                }
            }
        }
        Some(product)
    }

    /// The distance from `other`, where it is one constant product of parameters.
    fn shift_from(&self, other: &Polynomial) -> Option<(Monomial, i64)> {
        let mut difference = self.clone().plus(other.clone(), -1)?;
        match difference.terms.len() {
            0 => Some((Vec::new(), 0)),
            1 => {
                let (monomial, factor) = difference.terms.pop()?;
                let fixed = monomial
                    .iter()
                    .all(|symbol| matches!(symbol, Symbol::Named(_)));
                fixed.then_some((monomial, factor))
            }
            _ => None,
        }
    }

    /// Bytes of the distinct elements touched, in whole units, with this many blocks along each dimension.
    fn distinct_bytes(
        &self,
        shifts: &[(Monomial, i64)],
        extents: &Extents,
        blocks: [f64; 3],
        element: f64,
        unit: f64,
    ) -> f64 {
        // Movements by base: what multiplies the coordinate beside its integer factor.
        let mut bases: Vec<(Monomial, Vec<(f64, f64)>)> = Vec::new();
        let mut push = |base: Monomial, factor: f64, extent: f64| {
            if extent > 1.0 && factor > 0.0 {
                match bases.iter_mut().find(|known| known.0 == base) {
                    Some(known) => known.1.push((factor, extent)),
                    None => bases.push((base, vec![(factor, extent)])),
                }
            }
        };
        for (monomial, factor) in &self.terms {
            let mut base = Vec::new();
            let mut extent = 1.0;
            for symbol in monomial {
                match symbol {
                    Symbol::Thread(axis) => extent *= extents.block[*axis],
                    Symbol::Block(axis) => extent *= blocks[*axis],
                    Symbol::Named(name) if extents.walks.contains(&name) => extent *= extents.each,
                    Symbol::Named(_) => base.push(symbol.clone()),
                }
            }
            push(base, factor.unsigned_abs() as f64, extent);
        }
        let mut distinct: Vec<&(Monomial, i64)> = Vec::new();
        for shift in shifts {
            if shift.1 != 0 && !distinct.contains(&shift) {
                distinct.push(shift);
            }
        }
        while let Some(shift) = distinct.pop() {
            let (same, rest): (Vec<_>, Vec<_>) =
                distinct.into_iter().partition(|other| other.0 == shift.0);
            let least = same
                .iter()
                .map(|s| s.1.unsigned_abs())
                .chain([shift.1.unsigned_abs()]);
            let step = least.min().unwrap_or(1) as f64;
            push(shift.0.clone(), step, same.len() as f64 + 2.0);
            distinct = rest;
        }

        let mut runs = 1.0;
        let mut length = 1.0;
        for (base, mut moves) in bases {
            moves.sort_by(|a, b| a.0.total_cmp(&b.0));
            // Along a symbolic stride the first movement sets the scale; holes smaller than a unit are moved too.
            let (scale, hole) = if base.is_empty() {
                (1.0, (unit / element).max(1.0))
            } else {
                (moves[0].0, 1.0)
            };
            let mut span = 1.0;
            for (factor, extent) in moves {
                let factor = factor / scale;
                if factor <= hole.max(span) {
                    span += factor * (extent - 1.0);
                } else {
                    runs *= extent;
                }
            }
            if base.is_empty() {
                length = span;
            } else {
                runs *= span;
            }
        }
        // A run that starts anywhere touches on average half a unit more than its bytes fill.
        let bytes = length * element;
        runs * if bytes >= 4.0 * unit {
            bytes
        } else {
            (bytes / unit).ceil() * unit
        }
    }
}

/// Reads sums of products in parentheses.
struct Reader<'t> {
    rest: &'t str,
    launch: &'t Launch,
    depth: usize,
}

impl Reader<'_> {
    fn take(&mut self, symbol: char) -> bool {
        let rest = self.rest.trim_start();
        let found = rest.strip_prefix(symbol);
        self.rest = found.unwrap_or(rest);
        found.is_some()
    }

    /// A conversion of width does not move an element.
    fn skip_cast(&mut self) {
        let rest = self.rest.trim_start();
        if (rest.starts_with("(int") || rest.starts_with("(uint"))
            && let Some((_, after)) = rest.split_once("_t)")
            && rest.find(')') == rest.find("_t)").map(|at| at + 2)
        {
            self.rest = after;
        }
    }

    fn sum(&mut self) -> Option<Polynomial> {
        let negative = self.take('-');
        let first = self.product()?;
        let mut sum = Polynomial::default().plus(first, if negative { -1 } else { 1 })?;
        loop {
            let sign = if self.take('+') {
                1
            } else if self.take('-') {
                -1
            } else {
                return Some(sum);
            };
            sum = sum.plus(self.product()?, sign)?;
        }
    }

    fn product(&mut self) -> Option<Polynomial> {
        let mut product = self.factor()?;
        while self.take('*') {
            product = product.times(&self.factor()?)?;
        }
        Some(product)
    }

    fn factor(&mut self) -> Option<Polynomial> {
        self.skip_cast();
        if self.take('(') {
            self.depth += 1;
            let inner = if self.depth < 32 { self.sum() } else { None };
            self.depth -= 1;
            return inner.filter(|_| self.take(')'));
        }
        let rest = self.rest.trim_start();
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = rest.find(|c: char| !word(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        self.rest = after;
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = token.trim_end_matches(['u', 'U', 'l', 'L']);
            return digits.parse().ok().map(Polynomial::constant);
        }
        if token.is_empty() {
            return None;
        }
        if let Some((name, axis)) = token.split_once('.')
            && let Some(axis) = ["x", "y", "z"].iter().position(|known| *known == axis)
        {
            return Some(match name {
                "threadIdx" => Polynomial::symbol(Symbol::Thread(axis)),
                "blockIdx" => Polynomial::symbol(Symbol::Block(axis)),
                "blockDim" => Polynomial::constant(i64::try_from(self.launch.block[axis]).ok()?),
                "gridDim" => Polynomial::constant(i64::try_from(self.launch.grid[axis]).ok()?),
                _ => Polynomial::symbol(Symbol::Named(token.to_owned())),
            });
        }
        if self.take('(') {
            let axis: usize = self.factor()?.as_axis()?;
            if !self.take(')') {
                return None;
            }
            return self.work_item(token, axis);
        }
        Some(Polynomial::symbol(Symbol::Named(token.to_owned())))
    }

    /// The work-item functions of `OpenCL`.
    fn work_item(&self, name: &str, axis: usize) -> Option<Polynomial> {
        let size = i64::try_from(*self.launch.block.get(axis)?).ok()?;
        let count = i64::try_from(*self.launch.grid.get(axis)?).ok()?;
        match name {
            "get_local_id" => Some(Polynomial::symbol(Symbol::Thread(axis))),
            "get_group_id" => Some(Polynomial::symbol(Symbol::Block(axis))),
            "get_local_size" => Some(Polynomial::constant(size)),
            "get_num_groups" => Some(Polynomial::constant(count)),
            "get_global_size" => Some(Polynomial::constant(size.checked_mul(count)?)),
            "get_global_id" => Polynomial::symbol(Symbol::Block(axis))
                .times(&Polynomial::constant(size))?
                .plus(Polynomial::symbol(Symbol::Thread(axis)), 1),
            _ => None,
        }
    }
}

impl Polynomial {
    fn as_axis(&self) -> Option<usize> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(monomial, axis)] if monomial.is_empty() => usize::try_from(*axis).ok(),
            _ => None,
        }
    }
}
