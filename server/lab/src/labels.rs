//! `cargo lab labels`: what nvcc makes of the labelled kernels (`tests/labels/compiler.tsv`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use warplens_codegen::Class;

use crate::machine_code::{Compiler, Function, Scratch};
use xtask::repository;

/// Compile the labelled kernels as they are and with each advice taken: writes tests/labels/compiler.tsv
#[derive(Debug, Args)]
pub struct Labels {
    /// The nvcc
    #[arg(long, value_name = "PATH")]
    nvcc: Option<PathBuf>,
}

/// Of the default GPU.
const ARCH: &str = "sm_80";
const LIMIT: Duration = Duration::from_mins(5);
/// What is before an advice, which is `RULE: OLD => NEW`.
const MARK: &str = "// @instead: ";

impl Labels {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let compiler = Compiler::of(self.nvcc.as_deref(), ARCH)?;
        let folder = repository::root().join("tests/labels");
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|kind| kind == "cu"));
        paths.sort();
        let mut rows = format!("# nvcc {}, {ARCH}\n", compiler.version()?);
        for path in &paths {
            let text = std::fs::read_to_string(path)?;
            let name = path.file_name().context("a name")?.to_string_lossy();
            for (kernel, code) in compiled(&compiler, &text)? {
                row(&mut rows, &format!("labels/{name}\t{kernel}\t-"), &code);
            }
            // One advice a kernel at a time; those of all kernels together.
            let (edited, advice) = taken(&text)?;
            if advice.is_empty() {
                continue;
            }
            let mut found = compiled(&compiler, &edited)?;
            for (kernel, edit) in advice {
                let code = found
                    .remove(&kernel)
                    .with_context(|| format!("{name}: no kernel {kernel}"))?;
                row(
                    &mut rows,
                    &format!("labels/{name}\t{kernel}\t{edit}"),
                    &code,
                );
            }
        }
        std::fs::write(folder.join("compiler.tsv"), rows)?;
        println!("wrote tests/labels/compiler.tsv");
        Ok(ExitCode::SUCCESS)
    }
}

fn row(rows: &mut String, begin: &str, code: &Function) {
    let count = |class| code.instructions.get(&class).copied().unwrap_or(0);
    let all: u64 = code.instructions.values().sum();
    let local = count(Class::Ldl) + count(Class::Stl);
    let _ = writeln!(
        rows,
        "{begin}\t{all}\t{local}\t{}\t{}",
        code.spills, code.registers
    );
}

/// The kernels of a text by their names.
fn compiled(compiler: &Compiler, text: &str) -> anyhow::Result<BTreeMap<String, Function>> {
    let scratch = Scratch::new("labels")?;
    let source = scratch.file("labels.cu");
    std::fs::write(&source, text)?;
    match compiler.kernels(&source, &[], &scratch.file("labels.cubin"), LIMIT)? {
        Ok(found) => found
            .into_iter()
            .map(|(mangled, code)| Ok((plain(&mangled)?, code)))
            .collect(),
        Err(errors) => bail!("it does not compile:\n{errors}"),
    }
}

/// `square` of `_Z6squarePKfPfi`.
fn plain(mangled: &str) -> anyhow::Result<String> {
    let rest = mangled.strip_prefix("_Z").context("a mangled name")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length: usize = rest[..digits].parse()?;
    let name = rest.get(digits..digits + length).context("a name")?;
    Ok(name.to_owned())
}

/// A text with the advice above each kernel taken in it, and which advice that is, by kernel.
fn taken(text: &str) -> anyhow::Result<(String, Vec<(String, String)>)> {
    let mut edited = text.to_owned();
    let mut advice = Vec::new();
    for (at, _) in text
        .match_indices(MARK)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        let line = text[at + MARK.len()..].lines().next().unwrap_or_default();
        let (old, new) = line
            .split_once(": ")
            .and_then(|(_, edit)| edit.split_once(" => "))
            .with_context(|| format!("`{line}` is no RULE: OLD => NEW"))?;
        let begin = text[at..].find("__global__").map(|from| at + from);
        let begin = begin.with_context(|| format!("`{line}` is above no kernel"))?;
        let name = text[begin..]
            .split('(')
            .next()
            .and_then(|head| head.split_whitespace().last());
        let kernel = name.context("a kernel's name")?.to_owned();
        let end = text[begin..]
            .find("\n}")
            .map_or(text.len(), |to| begin + to);
        if !text[begin..end].contains(old) {
            bail!("{kernel} has no `{old}`");
        }
        let body = text[begin..end].replace(old, new);
        edited.replace_range(begin..end, &body);
        advice.push((kernel, line.to_owned()));
    }
    advice.reverse();
    Ok((edited, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_its_own_advice() {
        let text = "// @instead: arith/pow: powf(v, 2.0f) => v * v\n\
            __global__ void a(float *x) {\n  x[0] = powf(v, 2.0f);\n}\n\
            __global__ void b(float *x) {\n  x[0] = powf(v, 2.0f);\n}\n";
        let (edited, advice) = taken(text).expect("it is there");
        assert_eq!(edited.matches("v * v;").count(), 1);
        assert_eq!(
            advice,
            [(
                "a".to_owned(),
                "arith/pow: powf(v, 2.0f) => v * v".to_owned()
            )]
        );
    }

    #[test]
    fn a_name_is_read_out_of_a_mangled_one() {
        assert_eq!(plain("_Z6squarePKfPfi").expect("a name"), "square");
    }
}
