//! PTX: the virtual machine code that NVIDIA's compilers make before the machine's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::AssembledKernel;
use crate::Class;

/// Registers that every thread has besides what the text names.
const FRAME: u32 = 5;
/// Loops that are followed when registers are counted; the time goes with their number.
const MOST_LOOPS: usize = 2048;

/// What lies before the first of these marks, the mark, and what lies behind it.
fn at_mark<'t>(text: &'t str, marks: &[char]) -> Option<(&'t str, char, &'t str)> {
    let (before, rest) = text.split_at_checked(text.find(marks)?)?;
    let mut rest = rest.chars();
    let mark = rest.next()?;
    Some((before, mark, rest.as_str()))
}

/// Reads the kernels of a PTX text. PTX has as many registers as it likes: `registers` is an estimate.
pub fn ptx(text: &str) -> Vec<AssembledKernel> {
    let text = without_comments(text);
    let mut reader = Reader::default();
    let mut rest = text.as_str();
    while let Some((statement, mark, behind)) = at_mark(rest, &[';', '{', '}', '\n']) {
        // A brace inside a statement is a vector.
        if mark == '{' && in_instruction(statement) {
            let Some((whole, behind)) = rest.split_once(';') else {
                break;
            };
            reader.statement(whole.trim());
            rest = behind;
            continue;
        }
        match mark {
            ';' => reader.statement(statement.trim()),
            '{' => reader.open(statement.trim()),
            '}' => reader.close(),
            _ => {
                // `.loc`, `.target` and labels end with their line; what does not goes on.
                let line = statement.trim();
                let alone = line.is_empty()
                    || line.ends_with(':')
                    || [
                        ".loc",
                        ".file",
                        ".target",
                        ".version",
                        ".address_size",
                        ".section",
                    ]
                    .iter()
                    .any(|directive| line.starts_with(directive));
                if alone {
                    reader.line(line);
                } else {
                    // Joined with what follows up to its mark.
                    let Some((more, mark, behind)) = at_mark(behind, &[';', '{', '}']) else {
                        break;
                    };
                    let joined = format!("{statement}\n{more}");
                    if mark == '{' && in_instruction(&joined) {
                        let Some((whole, behind)) = rest.split_once(';') else {
                            break;
                        };
                        reader.statement(whole.trim());
                        rest = behind;
                        continue;
                    }
                    match mark {
                        '{' => reader.open(joined.trim()),
                        '}' => reader.close(),
                        _ => reader.statement(joined.trim()),
                    }
                    rest = behind;
                    continue;
                }
            }
        }
        rest = behind;
    }
    reader.end_kernel();
    reader.done
}

/// True where a brace behind this begins a list of registers, not a body.
fn in_instruction(statement: &str) -> bool {
    let statement = statement.trim_start();
    statement.starts_with(|c: char| c.is_ascii_lowercase() || c == '@')
}

#[derive(Default)]
struct Reader {
    architecture: String,
    files: FxHashMap<u32, Arc<str>>,
    /// Static shared memory of the module by name.
    shared: BTreeMap<String, u64>,
    done: Vec<AssembledKernel>,
    current: Option<Body>,
    /// Braces that are open inside a body, or inside something that is not a kernel.
    depth: usize,
    places: Vec<(Arc<str>, u32)>,
}

#[derive(Default)]
struct Body {
    kernel: AssembledKernel,
    code: Vec<Step>,
    labels: FxHashMap<String, usize>,
    /// Words of 32 bits by the name of a register, or of a family of them.
    widths: FxHashMap<String, u32>,
    numbers: FxHashMap<String, u32>,
    weights: Vec<u32>,
}

struct Step {
    defined: Vec<u32>,
    used: Vec<u32>,
    target: Option<String>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if let Some(label) = line.strip_suffix(':') {
            if let Some(body) = &mut self.current {
                body.labels.insert(label.trim().to_owned(), body.code.len());
            }
        } else if let Some(rest) = line.strip_prefix(".loc") {
            self.place(rest);
        } else if let Some(rest) = line.strip_prefix(".file") {
            let number = rest.split_whitespace().next().and_then(|n| n.parse().ok());
            if let (Some(number), Some(path)) = (number, rest.split('"').nth(1)) {
                self.files.insert(number, Arc::from(path));
            }
        } else if let Some(target) = line.strip_prefix(".target") {
            let target = target.split(',').next().unwrap_or_default();
            target.trim().clone_into(&mut self.architecture);
        }
    }

    /// `1 8 0`, or `1 8 0, function_name …, inlined_at 1 20 3`.
    fn place(&mut self, text: &str) {
        self.places.clear();
        let inlined = text.split_once("inlined_at").map(|(_, outer)| outer);
        for part in [Some(text), inlined].into_iter().flatten() {
            let mut numbers = part
                .split([' ', '\t', ','])
                .filter(|word| !word.is_empty())
                .map_while(|word| word.parse::<u32>().ok());
            if let (Some(file), Some(line)) = (numbers.next(), numbers.next())
                && line > 0
                && let Some(file) = self.files.get(&file)
            {
                let place = (Arc::clone(file), line);
                if !self.places.contains(&place) {
                    self.places.push(place);
                }
            }
        }
    }

    fn open(&mut self, head: &str) {
        if self.current.is_none()
            && self.depth == 0
            && let Some((_, rest)) = head.split_once(".entry")
        {
            let name = rest
                .split(['(', ' ', '\t', '\n'])
                .find(|word| !word.is_empty());
            let mut kernel = AssembledKernel::named(name.unwrap_or_default(), &self.architecture);
            kernel.shared_bytes = Some(0);
            kernel.stack_bytes = Some(0);
            self.places.clear();
            self.current = Some(Body {
                kernel,
                ..Body::default()
            });
            return;
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        if self.depth > 0 {
            self.depth -= 1;
        } else {
            self.end_kernel();
        }
    }

    fn end_kernel(&mut self) {
        if let Some(body) = self.current.take() {
            self.done.push(body.finish());
        }
        self.depth = 0;
    }

    fn statement(&mut self, mut statement: &str) {
        // Labels may stand on the same line.
        while let Some((label, rest)) = statement.split_once(':') {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
            // `::` belongs to a modifier.
            if rest.starts_with(':') || !label.trim().chars().all(plain) {
                break;
            }
            self.line(&format!("{label}:"));
            statement = rest.trim_start();
        }
        let memory = statement.starts_with('.') && statement.contains(".shared");
        let external = statement.contains(".extern");
        let Some(body) = &mut self.current else {
            if memory
                && !external
                && self.depth == 0
                && let Some((name, bytes)) = declared(statement)
            {
                self.shared.insert(name.to_owned(), bytes);
            }
            return;
        };
        if statement.starts_with(".reg") {
            body.declare(statement);
        } else if memory {
            if let Some((_, bytes)) = declared(statement) {
                let all = body.kernel.shared_bytes.get_or_insert(0);
                *all = all.saturating_add(bytes);
            }
        } else if statement.starts_with(".local") {
            if let Some((_, bytes)) = declared(statement) {
                let all = body.kernel.stack_bytes.get_or_insert(0);
                *all = all.saturating_add(bytes);
            }
        } else if !statement.starts_with('.') && !statement.is_empty() {
            for word in statement.split(|c: char| !is_name(c)).skip(1) {
                // Counted once, by the kernel that names it.
                if let Some(bytes) = self.shared.get(word)
                    && body
                        .numbers
                        .insert(format!("shared {word}"), u32::MAX)
                        .is_none()
                {
                    let all = body.kernel.shared_bytes.get_or_insert(0);
                    *all = all.saturating_add(*bytes);
                }
            }
            body.instruction(statement, &self.places);
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// Name and bytes of `.shared .align 4 .b8 tile[1024]`.
fn declared(statement: &str) -> Option<(&str, u64)> {
    let element = statement
        .split_whitespace()
        .find_map(|word| bits(word.strip_prefix('.')?))?
        / 8;
    let last = statement.split(['=', '\n']).next()?.trim();
    let last = last.rsplit([' ', '\t']).next()?;
    let (name, sizes) = last.split_once('[').unwrap_or((last, ""));
    let mut bytes = element;
    for size in sizes.split(['[', ']']).filter(|size| !size.is_empty()) {
        bytes = bytes.saturating_mul(size.trim().parse().ok()?);
    }
    Some((name, bytes))
}

/// Bits of a type: `f32`, `b64`.
fn bits(ty: &str) -> Option<u64> {
    match ty.trim_start_matches(|c: char| c.is_ascii_lowercase()) {
        "8" => Some(8),
        "16" => Some(16),
        "32" | "16x2" => Some(32),
        "64" | "32x2" => Some(64),
        "128" => Some(128),
        _ => None,
    }
}

impl Body {
    /// `.reg .b32 %r<30>` or `.reg .f64 %a, %b`.
    fn declare(&mut self, statement: &str) {
        let mut words = statement
            .split([' ', '\t', ',', '\n'])
            .filter(|word| !word.is_empty());
        words.next();
        let Some(ty) = words.next() else { return };
        let words_wide =
            bits(ty.trim_start_matches('.')).map_or(0, |bits| bits.div_ceil(32) as u32);
        for word in words {
            let name = word.split('<').next().unwrap_or(word);
            self.widths.insert(name.to_owned(), words_wide);
        }
    }

    fn register(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(name) {
            return (*number != u32::MAX).then_some(*number);
        }
        let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let weight = *self.widths.get(name).or_else(|| self.widths.get(family))?;
        let number = self.weights.len() as u32;
        self.weights.push(weight);
        self.numbers.insert(name.to_owned(), number);
        Some(number)
    }

    fn registers(&mut self, text: &str) -> Vec<u32> {
        text.split(|c: char| !is_name(c))
            .filter(|word| word.starts_with('%'))
            .filter_map(|word| self.register(word))
            .collect()
    }

    fn instruction(&mut self, statement: &str, places: &[(Arc<str>, u32)]) {
        let mut code = statement;
        if code.starts_with('@') {
            let Some((_, rest)) = code.split_once([' ', '\t']) else {
                return;
            };
            code = rest.trim_start();
        }
        let (name, operands) = code.split_once([' ', '\t', '\n']).unwrap_or((code, ""));
        let (opcode, modifiers) = name.split_once('.').unwrap_or((name, ""));
        if !opcode.starts_with(|c: char| c.is_ascii_lowercase()) {
            return;
        }
        let operands = operands.trim();
        let (target, sources) = split_target(opcode, operands);
        let defined = self.registers(target);
        let used = self.registers(sources);
        // A parameter or a constant is an operand of what uses it.
        let free = match opcode {
            "ld" => modifiers.starts_with("param"),
            "cvta" => used
                .iter()
                .all(|register| self.weights[*register as usize] == 0),
            "mov" => used.is_empty() && !sources.contains('%'),
            _ => false,
        };
        if free {
            for register in &defined {
                self.weights[*register as usize] = 0;
            }
        } else if let Some(class) = Class::of_virtual(opcode, modifiers) {
            self.kernel.count(class, places);
        }
        let target = (opcode == "bra").then(|| operands.to_owned());
        self.code.push(Step {
            defined,
            used,
            target,
        });
    }

    fn finish(mut self) -> AssembledKernel {
        let most = self.live() + FRAME;
        self.kernel.registers = Some(most.clamp(8, 255));
        self.kernel
    }

    /// The most words that are alive at one place. Each register lives from its first mention to its last, and
    /// to the end of a loop that it is needed in and does not begin in.
    fn live(&self) -> u32 {
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; self.weights.len()];
        for (at, step) in self.code.iter().enumerate() {
            for register in step.defined.iter().chain(&step.used) {
                let span = spans[*register as usize].get_or_insert((at, at));
                span.1 = at;
            }
        }
        let mut loops: Vec<(usize, usize)> = self
            .code
            .iter()
            .enumerate()
            .filter_map(|(at, step)| {
                let start = *self.labels.get(step.target.as_deref()?)?;
                (start <= at).then_some((start, at))
            })
            .take(MOST_LOOPS)
            .collect();
        // Inner ones first, so that what they lengthen reaches the outer ones.
        loops.sort_by_key(|(start, end)| end - start);
        for (start, end) in loops {
            for (first, last) in spans.iter_mut().flatten() {
                if *first < start && (start..end).contains(last) {
                    *last = end;
                }
            }
        }
        let mut changes = vec![0_i64; self.code.len() + 1];
        for (span, weight) in spans.iter().zip(&self.weights) {
            if let Some((first, last)) = span {
                // Read and written in one instruction: the target may take the source's place.
                changes[*first] += i64::from(*weight);
                changes[*last] -= i64::from(*weight);
            }
        }
        let mut alive = 0;
        let mut most = 0;
        for change in changes {
            alive += change;
            most = most.max(alive);
        }
        u32::try_from(most).unwrap_or(u32::MAX - FRAME)
    }
}

/// What an instruction writes and what it reads.
fn split_target<'a>(opcode: &str, operands: &'a str) -> (&'a str, &'a str) {
    let none = matches!(
        opcode,
        "st" | "red" | "bar" | "bra" | "barrier" | "cp" | "prefetch"
    );
    if none || operands.starts_with('[') {
        return ("", operands);
    }
    let end = match operands.strip_prefix('{') {
        Some(vector) => vector.find('}').map(|end| end + 2),
        None => operands.find(','),
    };
    end.and_then(|end| operands.split_at_checked(end))
        .unwrap_or((operands, ""))
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('/') {
        kept.push_str(before);
        if behind.starts_with('/') {
            rest = behind
                .find('\n')
                .and_then(|end| behind.get(end..))
                .unwrap_or_default();
        } else if let Some(inner) = behind.strip_prefix('*') {
            rest = inner.split_once("*/").map_or("", |(_, behind)| behind);
            kept.push(' ');
        } else {
            kept.push('/');
            rest = behind;
        }
    }
    kept.push_str(rest);
    kept
}
