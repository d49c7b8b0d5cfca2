//! Functions that are not read: what they may change of what they are given.

use std::sync::Arc;

use warplens_syntax::{Expanded, Field, Kind, Node, has_word};

use super::arguments::Argument;
use super::nodes::text;
use super::state::Host;
use super::value::{Extent, Place, Value};
use warplens_hir::Source;

/// Headers that are searched for the declaration of a function.
const MOST_HEADERS: usize = 200;
/// A header larger than this is not searched.
const LARGEST_HEADER: usize = 400_000;

impl Host<'_> {
    /// A function that is not read changes what it is given the address of, or a reference to.
    pub(super) fn forget_arguments(&mut self, name: &str, arguments: &[Argument], source: Source) {
        // These read what the address represents.
        let reads: &[usize] = match name {
            "cudaMemcpyToSymbol"
            | "hipMemcpyToSymbol"
            | "cudaMemcpyToSymbolAsync"
            | "cudaMemcpy"
            | "hipMemcpy"
            | "cudaMemcpyAsync"
            | "hipMemcpyAsync"
            | "memcpy"
            | "cuMemcpyHtoD" => &[1],
            "fwrite" => &[0],
            "clEnqueueWriteBuffer" => &[5],
            "clCreateBuffer" | "clSetKernelArg" => &[3],
            "printf"
            | "fprintf"
            | "assert"
            | "cudaFuncSetAttribute"
            | "hipFuncSetAttribute"
            | "cudaFree"
            | "free"
            | "clEnqueueNDRangeKernel"
            | "gettimeofday" => return,
            _ => &[],
        };
        let references = if arguments.iter().any(|argument| argument.place.is_some()) {
            self.reference_parameters(name)
        } else {
            None
        };
        // Of a function from a header that was not found nothing is known. Of another library those write what they are given that
        // read options.
        let lacks = !source.parsed.missing.is_empty()
            || self.running.is_some()
                && source.parsed.lacks_a_library
                && may_read_options(name, arguments);
        let unseen = references.is_none() && !name.is_empty() && lacks && !is_library(name);
        for (at, argument) in arguments.iter().enumerate() {
            if reads.contains(&at) {
                continue;
            }
            self.forget_pointed(&argument.value, 0);
            if argument.value == Value::Unknown {
                self.written_somewhere();
            }
            // `&v` of a container: it may be as long as it wants afterwards; `v.data()` leads to its elements alone.
            if let (Value::Address(place), Some(node)) = (&argument.value, argument.node)
                && node.kind() == Kind::PointerExpression
            {
                self.forget_length(place);
            }
            let Some(place) = &argument.place else {
                continue;
            };
            let by_reference = match &references {
                Some(references) => references
                    .get(at)
                    .or(references.last())
                    .copied()
                    .unwrap_or(false),
                // Options are numbers, and a `dim3` to be filled in is made without extents.
                None => {
                    unseen
                        && match self.read(place) {
                            Value::Dims(extents) => extents == Extent::ONES,
                            _ => true,
                        }
                        || self.is_whole_object(place) && !only_reads(name, argument, source)
                }
            };
            if by_reference {
                self.forget_at(place);
                self.forget_length(place);
            }
        }
        for argument in arguments {
            // It may be called, any number of times.
            self.may_be_called(&argument.value, argument.node, source);
        }
    }

    /// Whether a container or a structure is there, which functions take by reference.
    fn is_whole_object(&self, place: &Place) -> bool {
        self.is_container(place) || matches!(self.read(place), Value::Record(_))
    }

    /// The same for a function of which only a part was read, by its parameters.
    pub(super) fn forget_passed(
        &mut self,
        parameters: &[Node],
        arguments: &[Argument],
        source: Source,
    ) {
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let declared = text(*parameter, source);
            let leads = declared.find(['*', '&', '[']);
            if leads.is_some_and(|at| has_word(&declared[..at], "const")) {
                continue;
            }
            self.forget_pointed(&argument.value, 0);
            if let Some(place) = &argument.place
                && declared.contains('&')
            {
                self.forget_at(place);
            }
        }
    }

    pub(super) fn forget_pointed(&mut self, value: &Value, depth: u32) {
        match value {
            Value::Address(place) => self.forget_at(place),
            Value::Reference(place) => {
                self.pointees.insert(place.slot);
                self.forget_at(place);
                self.forget_length(place);
            }
            Value::Array(values) if depth < 3 => {
                for value in values.iter() {
                    self.forget_pointed(value, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Which parameters of a function are references that it may write through, by its declaration in the file
    /// or a header; `None` where it is not declared there.
    fn reference_parameters(&mut self, name: &str) -> Option<Vec<bool>> {
        if name.is_empty() || is_library(name) {
            return None;
        }
        if let Some(known) = self.references.get(name) {
            return known.clone();
        }
        let headers = self
            .headers
            .get_or_insert_with(|| all_headers(self.parsed))
            .clone();
        let mut found: Option<Vec<bool>> = None;
        let texts = std::iter::once(&self.parsed.text)
            .chain(headers.iter().map(|header| &header.text))
            .filter(|text| text.len() < LARGEST_HEADER);
        'texts: for text in texts {
            for (at, _) in text.match_indices(name).take(64) {
                let Some(references) = declared_references(text, at, name) else {
                    continue;
                };
                let known = found.get_or_insert_with(Vec::new);
                known.resize(known.len().max(references.len()), false);
                for (known, reference) in known.iter_mut().zip(&references) {
                    *known |= reference;
                }
                if known.iter().all(|reference| *reference) && !known.is_empty() {
                    break 'texts;
                }
            }
        }
        self.references.insert(name.to_owned(), found.clone());
        found
    }
}

/// Whether a function of another library may be one that reads the program's options into variables: it is named so, or is given a
/// text, and does not print.
fn may_read_options(name: &str, arguments: &[Argument]) -> bool {
    let prints = matches!(
        name,
        "print"
            | "println"
            | "format"
            | "info"
            | "warn"
            | "error"
            | "debug"
            | "trace"
            | "critical"
            | "fatal"
    );
    let named = ["opt", "arg", "flag", "parse", "store", "bind"];
    let lower = name.to_ascii_lowercase();
    let given_text = || {
        let mut values = arguments.iter().map(|argument| &argument.value);
        values.any(|value| matches!(value, Value::Text(_)))
    };
    !prints && (named.iter().any(|word| lower.contains(word)) || given_text())
}

/// Whether a function is known that changes no container or structure that it is given by name.
fn only_reads(name: &str, argument: &Argument, source: Source) -> bool {
    // Of the standard library few do.
    let writes = matches!(
        name,
        "swap" | "exchange" | "erase" | "erase_if" | "getline" | "merge" | "splice"
    );
    let of_library = || {
        let call = argument.node.and_then(|node| node.parent()?.parent());
        let function = call.and_then(|call| call.field(Field::Function));
        function.is_some_and(|function| text(function, source).starts_with("std::"))
    };
    let method = matches!(
        name,
        "push_back"
            | "emplace_back"
            | "push"
            | "push_front"
            | "emplace"
            | "emplace_front"
            | "insert"
            | "append"
            | "assign"
            | "compare"
            | "find"
            | "count"
            | "contains"
            | "at"
    );
    is_library(name) || !writes && (method || of_library())
}

/// Functions of the C library and the toolkits: they take nothing by reference.
fn is_library(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "cuda",
        "hip",
        "cublas",
        "cufft",
        "curand",
        "cusparse",
        "nccl",
        "mpi",
        "MPI_",
        "omp_",
        "str",
        "mem",
        "clCreate",
        "clEnqueue",
        "clGet",
        "clSet",
        "clRelease",
        "clBuild",
        "clFinish",
        "clWait",
        "std",
        "cu",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || matches!(
            name,
            "printf"
                | "fprintf"
                | "sprintf"
                | "snprintf"
                | "puts"
                | "fputs"
                | "malloc"
                | "calloc"
                | "free"
                | "realloc"
                | "exit"
                | "assert"
                | "rand"
                | "srand"
                | "atoi"
                | "atof"
                | "atol"
                | "fopen"
                | "fclose"
                | "fread"
                | "fwrite"
                | "sizeof"
                | "sqrt"
                | "pow"
                | "exp"
                | "log"
                | "sin"
                | "cos"
                | "fabs"
                | "abs"
                | "ceil"
                | "floor"
                | "min"
                | "max"
                | "time"
                | "clock"
                | "usleep"
                | "sleep"
                | "isatty"
                | "getenv"
                | "setenv"
                | "perror"
                | "drand48"
                | "srand48"
                | "make_pair"
                | "fill"
                | "transform"
                | "copy"
                | "sort"
                | "generate"
                | "accumulate"
                | "vector"
                | "log2"
                | "round"
                | "aligned_alloc"
                | "posix_memalign"
                | "numeric_limits"
                | "to_string"
                | "now"
                | "iota"
                | "fill_n"
                | "raw_pointer_cast"
                | "device_pointer_cast"
                | "move"
                | "forward"
        )
}

fn all_headers(parsed: &Arc<Expanded>) -> Vec<Arc<Expanded>> {
    let mut found: Vec<Arc<Expanded>> = Vec::new();
    let mut open: Vec<Arc<Expanded>> = parsed.includes.clone();
    while let Some(header) = open.pop() {
        if found.len() >= MOST_HEADERS {
            break;
        }
        if found.iter().any(|known| Arc::ptr_eq(known, &header)) {
            continue;
        }
        open.extend(header.includes.iter().cloned());
        found.push(header);
    }
    found
}

/// Which parameters are references that may be written through, where `name` at a byte is being declared.
fn declared_references(text: &str, at: usize, name: &str) -> Option<Vec<bool>> {
    let before = text[..at].trim_end_matches([' ', '\t', '\n', '\r']);
    // A type is before what is declared; before a call there is an operator, a bracket, `return`.
    if before.len() == at
        || !before
            .ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '*' | '&' | '>'))
        || before.ends_with("return")
        || before.ends_with("else")
    {
        return None;
    }
    let rest = text[at + name.len()..].trim_start().strip_prefix('(')?;
    let mut references = Vec::new();
    let (mut depth, mut from) = (0i32, 0);
    for (end, c) in rest.char_indices().take(4_000) {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' | ']' | '}' => depth -= 1,
            ')' if depth > 0 => depth -= 1,
            ',' | ')' if depth == 0 => {
                let parameter = &rest[from..end];
                references.push(parameter.contains('&') && !parameter.contains("const"));
                from = end + 1;
                if c == ')' {
                    return Some(references);
                }
            }
            _ => {}
        }
    }
    None
}
