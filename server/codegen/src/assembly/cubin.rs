//! Compiled code as bytes: an ELF whose sections say what the kernels need. Its instructions are not read here.

use std::collections::BTreeMap;

use super::{AssembledKernel, declared_shared};

/// Most sections that are looked at.
const MOST_SECTIONS: usize = 65_536;
/// `EM_CUDA`.
const MACHINE: u16 = 190;
/// Attributes of `.nv.info` whose value is a symbol and a number.
const REGCOUNT: u8 = 0x2f;
const FRAME_SIZE: u8 = 0x11;
/// Attributes whose value has a length; the values of the others have two bytes.
const SIZED: u8 = 4;

/// True for the beginning of an ELF.
pub fn is_cubin(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// Reads the resources of a cubin's kernels, in the order of its sections. `None`: not a cubin.
pub fn cubin(bytes: &[u8]) -> Option<Vec<AssembledKernel>> {
    let elf = Elf::of(bytes)?;
    let architecture = elf.architecture();
    let mut kernels = Vec::new();
    let mut shared: BTreeMap<&str, u64> = BTreeMap::new();
    for section in &elf.sections {
        if let Some(kernel) = section.name.strip_prefix(".text.") {
            let mut kernel = AssembledKernel::named(kernel, &architecture);
            // Since Blackwell the count is in `.nv.info` alone.
            kernel.registers = Some(section.info >> 24).filter(|registers| *registers > 0);
            kernel.shared_bytes = Some(0);
            kernels.push(kernel);
        } else if let Some(kernel) = section.name.strip_prefix(".nv.shared.") {
            shared.insert(kernel, section.size);
        }
    }
    for (attribute, symbol, number) in elf.attributes() {
        let Some(kernel) = kernels.iter_mut().find(|kernel| kernel.mangled == symbol) else {
            continue;
        };
        match attribute {
            REGCOUNT => kernel.registers = Some(number),
            FRAME_SIZE => kernel.stack_bytes = Some(u64::from(number)),
            _ => {}
        }
    }
    for kernel in &mut kernels {
        kernel.allotted = kernel.registers.is_some();
        if let Some(bytes) = shared.get(kernel.mangled.as_str()) {
            kernel.shared_bytes = Some(declared_shared(&architecture, *bytes));
        }
    }
    Some(kernels)
}

struct Section<'a> {
    name: &'a str,
    size: u64,
    info: u32,
    /// Empty where the file holds nothing of it.
    bytes: &'a [u8],
    link: u32,
}

struct Elf<'a> {
    flags: u32,
    abi_version: u8,
    sections: Vec<Section<'a>>,
}

impl<'a> Elf<'a> {
    /// Little-endian, 64 bits: all that there is.
    fn of(bytes: &'a [u8]) -> Option<Elf<'a>> {
        if !is_cubin(bytes) || bytes.get(4..6) != Some(&[2, 1]) || u16_at(bytes, 18)? != MACHINE {
            return None;
        }
        let table = usize::try_from(u64_at(bytes, 40)?).ok()?;
        let size = usize::from(u16_at(bytes, 58)?);
        let number = usize::from(u16_at(bytes, 60)?).min(MOST_SECTIONS);
        let names = usize::from(u16_at(bytes, 62)?);
        let header = |index: usize| {
            let start = table.checked_add(index.checked_mul(size)?)?;
            bytes.get(start..start.checked_add(64)?)
        };
        let contents = |header: &[u8]| {
            let start = usize::try_from(u64_at(header, 24)?).ok()?;
            let length = usize::try_from(u64_at(header, 32)?).ok()?;
            bytes.get(start..start.checked_add(length)?)
        };
        let names = contents(header(names)?)?;
        let mut sections = Vec::new();
        for index in 0..number {
            let header = header(index)?;
            sections.push(Section {
                name: text_at(names, u32_at(header, 0)?).unwrap_or_default(),
                size: u64_at(header, 32)?,
                info: u32_at(header, 44)?,
                bytes: contents(header).unwrap_or_default(),
                link: u32_at(header, 40)?,
            });
        }
        Some(Elf {
            flags: u32_at(bytes, 48)?,
            abi_version: *bytes.get(8)?,
            sections,
        })
    }

    fn architecture(&self) -> String {
        // The number moved up when the version of the ABI became 8.
        let number = if self.abi_version >= 8 {
            self.flags >> 8 & 0xff
        } else {
            self.flags & 0xff
        };
        format!("sm_{number}")
    }

    /// Attribute, name of its symbol, number.
    fn attributes(&self) -> Vec<(u8, &'a str, u32)> {
        let mut found = Vec::new();
        let Some(info) = self
            .sections
            .iter()
            .find(|section| section.name == ".nv.info")
        else {
            return found;
        };
        let Some(symbols) = self.sections.get(info.link as usize) else {
            return found;
        };
        let strings = self
            .sections
            .get(symbols.link as usize)
            .map_or(&[][..], |strings| strings.bytes);
        let mut rest = info.bytes;
        while let Some(&[format, attribute, low, high]) = rest.first_chunk() {
            let length = match format {
                SIZED => usize::from(u16::from_le_bytes([low, high])),
                _ => 0,
            };
            let Some(value) = rest.get(4..4 + length) else {
                break;
            };
            rest = &rest[4 + length..];
            let (Some(symbol), Some(number)) = (u32_at(value, 0), u32_at(value, 4)) else {
                continue;
            };
            let name = u32_at(symbols.bytes, (symbol as usize).saturating_mul(24))
                .and_then(|name| text_at(strings, name));
            if let Some(name) = name {
                found.push((attribute, name, number));
            }
        }
        found
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn text_at(bytes: &[u8], at: u32) -> Option<&str> {
    let rest = bytes.get(at as usize..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}
