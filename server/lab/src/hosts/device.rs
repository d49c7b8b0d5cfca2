//! The GPU of a program that runs: what its runtime (`runtime.cpp`) asks on a socket is done by the oracle.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use anyhow::{Context, bail};
use warplens_oracle::{Device, Launch, Parameter, Program, Scalar, Word};

/// What a message asks for, as `runtime.cpp` numbers it.
mod operation {
    pub const ALLOCATE: u64 = 1;
    pub const FREE: u64 = 2;
    pub const WRITE: u64 = 3;
    pub const READ: u64 = 4;
    pub const FILL: u64 = 5;
    pub const COPY: u64 = 6;
    pub const VARIABLE: u64 = 7;
    pub const LAUNCH: u64 = 8;
    pub const ARGUMENTS: u64 = 9;
    pub const PROPERTIES: u64 = 10;
}

/// Bytes of all arrays that a program has at one time.
const ROOM: u64 = 1 << 31;
/// Bytes of arrays that are kept as launches found them.
const MOST_KEPT: usize = 1 << 29;
/// Addresses that the runtime cannot mistake for those of the program.
const HIGHEST: u64 = 80 << 40;

/// A launch that a program made.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// Without namespaces and arguments.
    pub kernel: String,
    /// Template arguments as the linker's name has them.
    pub template: Vec<String>,
    pub grid: [u64; 3],
    pub block: [u64; 3],
    pub dynamic_shared_bytes: u64,
    /// By position; none where the kernel's parameters are not known.
    pub arguments: Vec<Passed>,
    /// A kernel before it was not run: what memory holds is not what it should.
    pub is_after_unrun: bool,
}

/// An argument of a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Passed {
    /// By their places in it: one with an empty place, or those of a structure.
    Words(Vec<(String, Number)>),
    /// What it points to; `None` where that is nothing.
    Pointer(Option<Array>),
    /// A structure that was not read.
    Unknown,
}

/// What a pointer points to.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// From there to its end, in bytes.
    pub bytes: u64,
    /// What these hold; `None` where it was not kept.
    pub contents: Option<Arc<[u8]>>,
    /// All that it holds is the host's, which has written it as a whole, and no kernel has changed it.
    pub is_of_host: bool,
    /// What its elements are, where the kernel says they are scalars.
    pub element: Option<Scalar>,
}

/// Who wrote an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    Neither,
    Host,
    Kernel,
}

/// A number that was passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Whole(i64),
    Real(f64, Scalar),
}

/// What a program did.
#[derive(Debug, Default)]
pub struct Seen {
    pub launches: Vec<Made>,
    /// Kernels that were not run, and why.
    pub not_run: BTreeMap<String, String>,
    /// What the program asked for and did not get.
    pub refused: Vec<String>,
}

/// Answers a program until it ends. `program`: its kernels. `properties`: what it is told of the GPU, in the runtime's order.
/// `steps`: as of a [`Launch`].
pub fn serve(
    mut socket: UnixStream,
    program: &Program,
    properties: &[u64],
    steps: u64,
) -> anyhow::Result<Seen> {
    let mut served = Served {
        device: Device::new(program)?,
        program,
        steps,
        seen: Seen::default(),
        kept: 0,
        room: ROOM,
        writers: BTreeMap::new(),
        open: None,
    };
    loop {
        let mut head = [0u8; 32];
        match socket.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error).context("the program does not go on"),
        }
        let [what, a, b, length] = numbers(&head)[..] else {
            bail!("a message without a head");
        };
        if length > ROOM {
            bail!("a message of {length} bytes");
        }
        let mut payload = vec![0; length as usize];
        socket.read_exact(&mut payload).context("half a message")?;
        let (number, bytes) = match what {
            operation::PROPERTIES => (0, properties.iter().flat_map(|n| n.to_le_bytes()).collect()),
            _ => served.answer(what, a, b, &payload)?,
        };
        let mut answer = number.to_le_bytes().to_vec();
        answer.extend((bytes.len() as u64).to_le_bytes());
        answer.extend(bytes);
        if socket.write_all(&answer).is_err() {
            break;
        }
    }
    Ok(served.seen)
}

struct Served<'p> {
    device: Device<'p>,
    program: &'p Program,
    steps: u64,
    seen: Seen,
    /// Bytes of arrays that were kept.
    kept: usize,
    /// Bytes of arrays that may still be made.
    room: u64,
    /// By array: who wrote it last; the variables of the program are the host's.
    writers: BTreeMap<u64, Writer>,
    /// A launch whose arguments are to come.
    open: Option<Open>,
}

/// A launch whose arguments are to come.
struct Open {
    made: Made,
    launch: Launch,
    parameters: Vec<Parameter>,
    /// Why its kernel was not read.
    unread: Option<String>,
}

impl Served<'_> {
    fn answer(
        &mut self,
        what: u64,
        a: u64,
        b: u64,
        payload: &[u8],
    ) -> anyhow::Result<(u64, Vec<u8>)> {
        let done = |done: bool| (u64::from(!done), Vec::new());
        Ok(match what {
            operation::ALLOCATE if a <= self.room => match self.device.allocate(a as usize) {
                address if address < HIGHEST => {
                    self.room -= a;
                    self.writers.insert(array_of(address), Writer::Neither);
                    (address, Vec::new())
                }
                _ => bail!("more arrays than there are addresses for"),
            },
            operation::ALLOCATE => {
                self.seen.refused.push(format!("an array of {a} bytes"));
                (0, Vec::new())
            }
            operation::FREE => {
                self.room += self.device.bytes(a).map_or(0, |array| array.len() as u64);
                self.device.free(a);
                done(true)
            }
            operation::WRITE => {
                // Managed memory comes before each launch, written or not.
                let same = self
                    .device
                    .bytes(a)
                    .is_some_and(|array| array.starts_with(payload));
                if !same || self.writer(a) == Writer::Neither {
                    self.written(a, payload.len());
                }
                let array = self.device.bytes(a);
                let place = array.and_then(|array| array.get_mut(..payload.len()));
                done(place.map(|place| place.copy_from_slice(payload)).is_some())
            }
            operation::READ => match self
                .device
                .bytes(a)
                .and_then(|array| array.get(..b as usize))
            {
                Some(bytes) => (0, bytes.to_vec()),
                None => done(false),
            },
            operation::FILL => {
                self.written(a, b as usize);
                let array = self.device.bytes(a);
                let place = array.and_then(|array| array.get_mut(..b as usize));
                let byte = payload.first().copied().unwrap_or_default();
                done(place.map(|place| place.fill(byte)).is_some())
            }
            operation::COPY => {
                let length = numbers(payload).first().copied().unwrap_or_default() as usize;
                self.written(a, length);
                if self.writer(b) != Writer::Host {
                    self.writers.insert(array_of(a), self.writer(b));
                }
                let from = self.device.bytes(b);
                let from = from
                    .and_then(|array| array.get(..length))
                    .map(<[u8]>::to_vec);
                let to = self.device.bytes(a);
                let to = to.and_then(|array| array.get_mut(..length));
                done(match (to, from) {
                    (Some(to), Some(from)) => {
                        to.copy_from_slice(&from);
                        true
                    }
                    _ => false,
                })
            }
            operation::VARIABLE => {
                let name = String::from_utf8_lossy(payload);
                let plain = name.rsplit("::").next().unwrap_or(&name);
                (self.device.variable(plain).unwrap_or(0), Vec::new())
            }
            operation::LAUNCH => {
                let (shape, name) = payload.split_at_checked(56).context("half a launch")?;
                let sizes = self.begin(&numbers(shape), &String::from_utf8_lossy(name));
                (
                    0,
                    sizes.iter().flat_map(|size| size.to_le_bytes()).collect(),
                )
            }
            operation::ARGUMENTS => {
                self.launch(payload);
                done(true)
            }
            _ => bail!("a message of an unknown kind: {what}"),
        })
    }

    fn writer(&self, address: u64) -> Writer {
        let known = self.writers.get(&array_of(address)).copied();
        known.unwrap_or(Writer::Host)
    }

    /// The host writes that many bytes: it has written all of an array where that is the whole of it.
    fn written(&mut self, address: u64, bytes: usize) {
        let whole = self
            .device
            .bytes(address)
            .is_some_and(|array| array.len() == bytes);
        if whole {
            self.writers.insert(array_of(address), Writer::Host);
        }
    }

    /// A launch, without its arguments; the sizes of these.
    fn begin(&mut self, shape: &[u64], name: &str) -> Vec<u64> {
        let (kernel, template) = split_name(name);
        let names = self.program.template(&kernel);
        let launch = Launch {
            grid: [0, 1, 2].map(|axis| shape[axis] as u32),
            block: [3, 4, 5].map(|axis| shape[axis] as u32),
            dynamic_shared_bytes: shape[6],
            template: names.into_iter().zip(template.iter().cloned()).collect(),
            steps: self.steps,
            ..Launch::default()
        };
        let read = self.device.parameters(&kernel, &launch);
        let (parameters, unread) = match read {
            Ok(parameters) => (parameters, None),
            Err(error) => (named_parameters(name), Some(error.to_string())),
        };
        let sizes = parameters.iter().map(|one| one.size).collect();
        let made = Made {
            kernel,
            template,
            grid: [shape[0], shape[1], shape[2]],
            block: [shape[3], shape[4], shape[5]],
            dynamic_shared_bytes: shape[6],
            arguments: Vec::new(),
            is_after_unrun: !self.seen.not_run.is_empty(),
        };
        self.open = Some(Open {
            made,
            launch,
            parameters,
            unread,
        });
        sizes
    }

    fn launch(&mut self, mut bytes: &[u8]) {
        let Some(open) = self.open.take() else {
            return;
        };
        let (mut made, launch) = (open.made, open.launch);
        let kernel = made.kernel.clone();
        let mut arrays: Vec<(u64, Arc<[u8]>)> = Vec::new();
        let mut given = Vec::new();
        for parameter in &open.parameters {
            let Some((own, rest)) = bytes.split_at_checked(parameter.size as usize) else {
                return;
            };
            bytes = rest;
            let passed = self.passed(parameter, own);
            if let Passed::Pointer(Some(Array {
                contents: Some(contents),
                ..
            })) = &passed
            {
                let address = numbers(own).first().copied().unwrap_or_default();
                arrays.push((address, Arc::clone(contents)));
            }
            made.arguments.push(passed);
            given.push(own.to_vec());
        }
        let result = match open.unread {
            Some(why) => Err(why),
            None => match self.device.launch(&kernel, &launch, &given) {
                Err(error) => Err(error.to_string()),
                Ok(run) => run.undefined.map_or(Ok(()), |what| Err(what.to_string())),
            },
        };
        if let Err(why) = result {
            self.seen.not_run.entry(kernel).or_insert(why);
        }
        for (address, before) in arrays {
            if self.device.bytes(address).is_none_or(|now| *now != *before) {
                self.writers.insert(array_of(address), Writer::Kernel);
            }
        }
        self.seen.launches.push(made);
    }

    fn passed(&mut self, parameter: &Parameter, bytes: &[u8]) -> Passed {
        let word = |offset: u64, size: u64| {
            let own = &bytes[offset as usize..(offset + size) as usize];
            let mut word = [0; 8];
            word[..own.len()].copy_from_slice(own);
            u64::from_le_bytes(word)
        };
        if let [only] = &parameter.words[..]
            && only.scalar.is_none()
            && only.path.is_empty()
        {
            let address = word(0, 8);
            let is_of_host = self.writer(address) == Writer::Host;
            let Some(array) = self.device.bytes(address) else {
                return Passed::Pointer(None);
            };
            let keeps = self.kept + array.len() <= MOST_KEPT;
            self.kept += if keeps { array.len() } else { 0 };
            return Passed::Pointer(Some(Array {
                bytes: array.len() as u64,
                contents: keeps.then(|| Arc::from(&*array)),
                is_of_host,
                element: only.element,
            }));
        }
        if parameter.words.is_empty() {
            return Passed::Unknown;
        }
        let mut words = Vec::new();
        for found in &parameter.words {
            let Some(scalar) = found.scalar else { continue };
            let word = word(found.offset, scalar.size());
            words.push((found.path.clone(), number(scalar, word)));
        }
        Passed::Words(words)
    }
}

/// The array that an address is in.
fn array_of(address: u64) -> u64 {
    address >> 40
}

/// The number that the bytes of a scalar encode.
fn number(scalar: Scalar, word: u64) -> Number {
    match scalar {
        Scalar::I8 => Number::Whole(i64::from(word as i8)),
        Scalar::I16 => Number::Whole(i64::from(word as i16)),
        Scalar::I32 => Number::Whole(i64::from(word as i32)),
        Scalar::F32 => Number::Real(f64::from(f32::from_bits(word as u32)), scalar),
        Scalar::F64 => Number::Real(f64::from_bits(word), scalar),
        Scalar::F16 => Number::Real(f64::NAN, scalar),
        Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::I64 | Scalar::U64 => {
            Number::Whole(word as i64)
        }
    }
}

/// The parameters that a name of the linker says, as it is shown; a structure has no words.
fn named_parameters(name: &str) -> Vec<Parameter> {
    let Some(list) = parameter_list(name) else {
        return Vec::new();
    };
    let types = list_of(list).into_iter().filter(|ty| ty != "void");
    let parameter = |ty: String| {
        let word = |scalar: Option<Scalar>, element| Parameter {
            size: scalar.map_or(8, Scalar::size),
            words: vec![Word {
                path: String::new(),
                offset: 0,
                scalar,
                element,
            }],
        };
        // A pointer to an array.
        if ty.contains("(*)") {
            return word(None, None);
        }
        if let Some(to) = ty.strip_suffix('*') {
            return word(None, scalar_named(to.trim_end_matches(" const")));
        }
        match scalar_named(&ty) {
            Some(scalar) => word(Some(scalar), None),
            None => Parameter {
                size: 0,
                words: Vec::new(),
            },
        }
    };
    types.map(parameter).collect()
}

/// What is between the last parentheses of a name.
fn parameter_list(name: &str) -> Option<&str> {
    let end = name.rfind(')')?;
    let mut depth = 0;
    for (at, c) in name[..=end].char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&name[at + 1..end]);
        }
    }
    None
}

/// A scalar by its name in a name of the linker.
pub fn scalar_named(ty: &str) -> Option<Scalar> {
    Some(match ty {
        "bool" => Scalar::Bool,
        "char" | "signed char" => Scalar::I8,
        "unsigned char" => Scalar::U8,
        "short" => Scalar::I16,
        "unsigned short" => Scalar::U16,
        "int" => Scalar::I32,
        "unsigned int" => Scalar::U32,
        "long" | "long long" => Scalar::I64,
        "unsigned long" | "unsigned long long" => Scalar::U64,
        "float" => Scalar::F32,
        "double" => Scalar::F64,
        _ => return None,
    })
}

/// The plain name and the template arguments of `void space::kernel<1, float>(float*, int)`.
pub fn split_name(name: &str) -> (String, Vec<String>) {
    let mut depth = 0;
    let mut arguments: Option<(usize, usize)> = None;
    let mut end = name.len();
    for (at, c) in name.char_indices() {
        match c {
            '<' => {
                if depth == 0 {
                    arguments = Some((at, at));
                }
                depth += 1;
            }
            '>' if !name[..at].ends_with('-') => {
                depth -= 1;
                if let (0, Some((_, end))) = (depth, &mut arguments) {
                    *end = at;
                }
            }
            '(' if depth == 0 && !name[at..].starts_with("(anonymous") => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let (plain, list) = match arguments {
        Some((from, to)) if to + 1 == end => (&name[..from], &name[from + 1..to]),
        _ => (&name[..end], ""),
    };
    let plain = plain.rsplit([':', ' ']).next().unwrap_or(plain);
    let template = list_of(list).into_iter().map(|text| {
        // `(bool)1`
        let number = text.split_once(')').filter(|_| text.starts_with('('));
        number.map_or_else(|| text.clone(), |(_, number)| number.to_owned())
    });
    (plain.to_owned(), template.collect())
}

/// What commas separate, outside of brackets.
fn list_of(list: &str) -> Vec<String> {
    let mut all = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ',' if depth == 0 => {
                let text = list[from..at].trim();
                from = at + 1;
                if !text.is_empty() {
                    all.push(text.to_owned());
                }
            }
            _ => {}
        }
    }
    all
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{named_parameters, split_name};

    #[test]
    fn names_are_split_as_the_demangler_writes_them() {
        let split = |name| {
            let (plain, template) = split_name(name);
            format!("{plain}|{}", template.join("|"))
        };
        assert_eq!(split("copy(float const*, float*, int)"), "copy|");
        assert_eq!(split("void scale_add<1, 2>(float*)"), "scale_add|1|2");
        assert_eq!(split("void a::add<float, (bool)1>(float*)"), "add|float|1");
        assert_eq!(
            split("void (anonymous namespace)::k<std::pair<int, int>, 3u>(int)"),
            "k|std::pair<int, int>|3u"
        );
        assert_eq!(split("plain"), "plain|");
    }

    #[test]
    fn a_name_says_what_a_launch_passes() {
        let sizes = |name| {
            let all = named_parameters(name).into_iter();
            all.map(|one| (one.size, one.words.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes("k()"), []);
        assert_eq!(
            sizes("void k<int, (bool)1>(float const*, unsigned char, double (*) [3], Box<int, 2>)"),
            [(8, 1), (1, 1), (8, 1), (0, 0)]
        );
    }
}
