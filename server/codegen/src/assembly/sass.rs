//! Machine code as text: what `cuobjdump -sass` and `nvdisasm` print.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{AssembledKernel, declared_shared, file_and_line, number_after};
use crate::Class;

/// Reads a disassembly. Device functions that are not kernels and are not inlined stand in it like kernels.
pub fn sass(text: &str) -> Vec<AssembledKernel> {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line.trim());
    }
    reader.end_kernel();
    reader.finish()
}

/// An instruction: `@!P0 LDG.E R2, [R4.64]` in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction<'a> {
    address: u64,
    opcode: &'a str,
    modifiers: &'a str,
    operands: &'a str,
}

#[derive(Default)]
struct Reader<'a> {
    architecture: &'a str,
    done: Vec<AssembledKernel>,
    current: Option<AssembledKernel>,
    /// Static shared memory by kernel: nvdisasm prints it in sections of its own.
    shared: BTreeMap<&'a str, u64>,
    /// The kernel whose shared memory the section at hand is.
    shared_of: Option<&'a str>,
    /// Where the instructions that follow come from: their own line, then the calls that were inlined.
    places: Vec<(Arc<str>, u32)>,
    /// True behind a place that says that it is inlined into one that follows.
    inlined: bool,
    files: BTreeMap<&'a str, Arc<str>>,
    /// The label right before.
    label: Option<&'a str>,
    highest: Option<u32>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) {
        if let Some(instruction) = instruction(line) {
            self.instruction(instruction);
            self.label = None;
        } else if let Some(rest) = line.strip_prefix("//## File") {
            self.place(rest);
        } else if let Some(name) = line.strip_prefix("Function :") {
            self.begin_kernel(name.trim());
        } else if let Some(section) = line
            .strip_prefix(".section")
            // `.sectioninfo` is of the section at hand.
            .filter(|rest| rest.starts_with([' ', '\t']))
        {
            self.section(section.trim());
        } else if let Some(size) = line.strip_prefix(".zero") {
            if let (Some(kernel), Ok(size)) = (self.shared_of, size.trim().parse::<u64>()) {
                let bytes = self.shared.entry(kernel).or_default();
                *bytes = bytes.saturating_add(size);
            }
        } else if let Some(target) = line.strip_prefix(".target") {
            self.architecture = target.trim();
        } else if let Some(target) = line.strip_prefix("code for ") {
            self.architecture = target.trim();
        } else if line.starts_with(".sectioninfo") {
            if let (Some(kernel), Some(registers)) =
                (&mut self.current, number_after(line, "SHI_REGISTERS="))
            {
                kernel.registers = Some(registers);
                kernel.allotted = true;
            }
        } else if let Some(usage) = line.strip_prefix("REG:") {
            self.usage(usage);
        } else if let Some(label) = line.strip_suffix(':') {
            self.label = Some(label);
        }
    }

    fn begin_kernel(&mut self, name: &str) {
        self.end_kernel();
        self.current = Some(AssembledKernel::named(name, self.architecture));
    }

    fn end_kernel(&mut self) {
        if let Some(mut kernel) = self.current.take() {
            kernel.registers = kernel
                .registers
                .or_else(|| self.highest.map(|highest| highest + 1));
            self.done.push(kernel);
        }
        self.highest = None;
        self.label = None;
        self.places.clear();
        self.inlined = false;
    }

    fn finish(mut self) -> Vec<AssembledKernel> {
        for kernel in &mut self.done {
            if let Some(bytes) = self.shared.get(kernel.mangled.as_str()) {
                kernel.shared_bytes = Some(declared_shared(&kernel.architecture, *bytes));
            }
        }
        // A function without one instruction is a header that lost its body.
        self.done.retain(|kernel| !kernel.instructions.is_empty());
        self.done
    }

    fn section(&mut self, text: &'a str) {
        let name = text.split([',', ' ', '\t']).next().unwrap_or(text);
        let name = name.trim_matches('"');
        self.shared_of = name.strip_prefix(".nv.shared.");
        match name.strip_prefix(".text.") {
            Some(kernel) => self.begin_kernel(kernel),
            None => self.end_kernel(),
        }
    }

    /// `cuobjdump -res-usage`, which may stand in the same text.
    fn usage(&mut self, text: &str) {
        if let Some(kernel) = &mut self.current {
            kernel.registers = number_after(text, "");
            kernel.allotted = kernel.registers.is_some();
            kernel.stack_bytes = number_after(text, "STACK:");
            kernel.shared_bytes = number_after(text, "SHARED:")
                .map(|bytes| declared_shared(&kernel.architecture, bytes));
        }
    }

    fn place(&mut self, text: &'a str) {
        if !self.inlined {
            self.places.clear();
        }
        let (own, outer) = match text.split_once("inlined at") {
            Some((own, outer)) => (own, Some(outer)),
            None => (text, None),
        };
        for part in [Some(own), outer].into_iter().flatten() {
            if let Some((file, line)) = file_and_line(part) {
                let file = self.files.entry(file).or_insert_with(|| Arc::from(file));
                let place = (Arc::clone(file), line);
                if !self.places.contains(&place) {
                    self.places.push(place);
                }
            }
        }
        self.inlined = outer.is_some();
    }

    fn instruction(&mut self, instruction: Instruction) {
        self.inlined = false;
        let Some(kernel) = &mut self.current else {
            return;
        };
        // Behind the code is a branch to itself.
        if instruction.opcode == "BRA" && goes_to_itself(&instruction, self.label) {
            return;
        }
        for register in registers(instruction.operands) {
            self.highest = self.highest.max(Some(register));
        }
        let Instruction {
            opcode,
            modifiers,
            operands,
            ..
        } = instruction;
        if let Some(class) = Class::of_machine(opcode, modifiers, operands) {
            kernel.count(class, &self.places);
        }
    }
}

fn goes_to_itself(instruction: &Instruction, label: Option<&str>) -> bool {
    let target = instruction.operands.rsplit([' ', ',']).next().unwrap_or("");
    if let Some(hex) = target.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).is_ok_and(|target| target == instruction.address);
    }
    let target = target.trim_start_matches("`(").trim_end_matches(')');
    label == Some(target)
}

/// Reads `/*0010*/  @!P0 LDG.E R2, [R4.64] ;  /* 0x… */`.
fn instruction(line: &str) -> Option<Instruction<'_>> {
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let address = u64::from_str_radix(address.trim(), 16).ok()?;
    // What ends in something else is data, or the line lost its end.
    let (code, _) = rest.split_once(';')?;
    // Two that are issued together stand in braces.
    let mut code = code.trim_matches(['{', '}', ' ', '\t']);
    if code.starts_with('@') {
        let (predicate, guarded) = code.split_once([' ', '\t'])?;
        // Never true: what holds a place before asynchronous copies does nothing.
        if predicate == "@!PT" {
            return None;
        }
        code = guarded.trim_start();
    }
    let (name, operands) = code.split_once([' ', '\t']).unwrap_or((code, ""));
    let (opcode, modifiers) = name.split_once('.').unwrap_or((name, ""));
    let letter = opcode.starts_with(|c: char| c.is_ascii_uppercase());
    (letter
        && opcode
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    .then_some(Instruction {
        address,
        opcode,
        modifiers,
        operands: operands.trim(),
    })
}

/// Numbers of the general registers among the operands.
fn registers(operands: &str) -> impl Iterator<Item = u32> + '_ {
    operands
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter_map(|word| word.strip_prefix('R')?.parse().ok())
        .filter(|register| *register < 255)
}
