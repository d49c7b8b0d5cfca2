//! Redacts a client's messages: a recording without the contents of files, which can be published.
//!
//! What remains: which messages came when, at which position, with how many characters. Texts keep their lines, their
//! lengths in every encoding, their punctuation and the keywords of the languages; every other name is replaced by one of
//! the same length, consistently, so that kernels stay kernels. Typed text, comments and strings keep only their shape.
//! Paths keep their relation to each other and their extensions.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Keys whose values belong to the protocol or to warplens, never to the user.
const PUBLIC: [&str; 17] = [
    "jsonrpc",
    "method",
    "id",
    "token",
    "languageId",
    "kind",
    "trace",
    "value",
    "gpu",
    "compare",
    "model",
    "locale",
    "version",
    "code",
    "source",
    "resultId",
    "previousResultId",
];

/// Those of them that are settings.
const PUBLIC_SETTINGS: [&str; 3] = ["gpu", "compare", "model"];

/// Severity levels of rules.
const LEVELS: [&str; 4] = ["off", "hint", "information", "warning"];

/// Keys whose values hold nothing of a file.
const PUBLIC_PARTS: [&str; 2] = ["capabilities", "clientInfo"];

/// Settings of the user, or parameters of a command: keys in them are names as well.
const SETTINGS: [&str; 4] = ["settings", "initializationOptions", "result", "arguments"];

/// The keys in those that are ours.
const OUR_KEYS: &[&str] = &[
    "warplens",
    "uri",
    "kernel",
    "gpu",
    "grid",
    "block",
    "args",
    "compare",
    "model",
    "defines",
    "includePaths",
    "kernelMacros",
    "sharedBankBytes",
    "clock",
    "powerLimit",
    "assume",
    "kernels",
    "rules",
    "preview",
    "inlayHints",
    "codeLens",
    "enable",
    "memory",
    "shared",
    "divergence",
    "share",
    "instructions",
    "dynamicShared",
    "compiler",
    "compilerTimeout",
    "position",
    "range",
    "start",
    "end",
    "line",
    "character",
];

/// Under these keys every key is a name of the user's.
const BY_NAME: [&str; 4] = ["args", "assume", "defines", "kernels"];

/// Extensions that are kept.
const EXTENSIONS: [&str; 21] = [
    "cu", "cuh", "cl", "clh", "opencl", "hip", "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx",
    "inc", "inl", "ipp", "tcc", "toml", "json", "txt",
];

/// Words of the languages: they say what a text does, and nothing of whose it is.
const LANGUAGE: &[&str] = &[
    "__constant",
    "__constant__",
    "__device__",
    "__global",
    "__global__",
    "__host__",
    "__kernel",
    "__launch_bounds__",
    "__local",
    "__private",
    "__restrict__",
    "__shared__",
    "__syncthreads",
    "atomicAdd",
    "auto",
    "barrier",
    "blockDim",
    "blockIdx",
    "bool",
    "break",
    "case",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "define",
    "do",
    "double",
    "elif",
    "else",
    "endif",
    "extern",
    "float",
    "float2",
    "float4",
    "for",
    "get_global_id",
    "get_group_id",
    "get_local_id",
    "goto",
    "gridDim",
    "half",
    "if",
    "ifdef",
    "ifndef",
    "include",
    "inline",
    "int",
    "kernel",
    "long",
    "namespace",
    "once",
    "operator",
    "pragma",
    "restrict",
    "return",
    "short",
    "signed",
    "size_t",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "threadIdx",
    "typedef",
    "typename",
    "undef",
    "union",
    "unroll",
    "unsigned",
    "using",
    "void",
    "volatile",
    "w",
    "warpSize",
    "while",
    "x",
    "y",
    "z",
];

/// Redacts messages; a name gets the same replacement in all of them.
#[derive(Debug, Default)]
pub struct Redaction {
    names: HashMap<String, String>,
    /// How many names of each length there are.
    given: HashMap<usize, usize>,
    folders: HashMap<String, usize>,
}

impl Redaction {
    /// The redacted message; `None` for invalid JSON.
    pub fn message(&mut self, body: &[u8]) -> Value {
        match serde_json::from_slice(body) {
            Ok(message) => self.value("", message, false),
            Err(_) => Value::Null,
        }
    }

    /// `named`: keys here may be names of the user's.
    fn value(&mut self, key: &str, value: Value, named: bool) -> Value {
        match value {
            Value::String(text) if named => Value::String(self.setting(key, &text)),
            Value::String(text) => Value::String(self.string(key, &text)),
            Value::Array(items) => {
                let items = items.into_iter().map(|item| self.value(key, item, named));
                Value::Array(items.collect())
            }
            Value::Object(_) if !named && PUBLIC_PARTS.contains(&key) => value,
            Value::Object(fields) => {
                let every = named && BY_NAME.contains(&key);
                let mut kept = Map::new();
                for (name, value) in fields {
                    let inner = named || SETTINGS.contains(&name.as_str());
                    let value = self.value(&name, value, inner);
                    let public = !name.contains(":/")
                        && (!named || (!every && OUR_KEYS.contains(&name.as_str())));
                    // Rules and categories are ours.
                    let public = public || (named && key == "rules");
                    let name = if public { name } else { self.words(&name) };
                    kept.insert(name, value);
                }
                Value::Object(kept)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn string(&mut self, key: &str, text: &str) -> String {
        let ours = key == "command" && text.starts_with("warplens.");
        if ours || PUBLIC.contains(&key) {
            text.to_owned()
        } else if key == "text" && text.contains('\n') {
            self.text(text)
        } else if key == "text" {
            text.chars().map(veiled).collect()
        } else {
            self.words(text)
        }
    }

    fn setting(&mut self, key: &str, text: &str) -> String {
        if PUBLIC_SETTINGS.contains(&key) || LEVELS.contains(&text) {
            text.to_owned()
        } else {
            self.words(text)
        }
    }

    /// A place, a name, or anything else.
    fn words(&mut self, text: &str) -> String {
        if text.contains(":/") {
            self.path(text)
        } else if !text.is_empty() && text.chars().all(is_word) {
            self.name(text)
        } else {
            text.chars().map(veiled).collect()
        }
    }

    /// A URI or path: each part by its number, the kind of the file as it is.
    fn path(&mut self, path: &str) -> String {
        let (scheme, rest) = match path.split_once(':') {
            Some((scheme, rest)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
                (Some(scheme), rest)
            }
            _ => (None, path),
        };
        let parts = rest.split('/').map(|part| {
            if part.is_empty() {
                return String::new();
            }
            let next = self.folders.len();
            let number = *self.folders.entry(part.to_owned()).or_insert(next);
            let extension = part.rsplit_once('.').map_or("", |(_, extension)| extension);
            match EXTENSIONS.iter().find(|known| **known == extension) {
                Some(known) => format!("p{number}.{known}"),
                // The project's file is found by its name.
                None => format!("p{number}"),
            }
        });
        let parts: Vec<String> = parts.collect();
        let rest = parts.join("/");
        match scheme {
            Some("file") => format!("file:{rest}"),
            Some(_) => format!("other:{rest}"),
            None => rest,
        }
    }

    /// A name of the same length, always the same one.
    fn name(&mut self, name: &str) -> String {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let made = if name.is_ascii() && !name.starts_with(|c: char| c.is_ascii_digit()) {
            let number = self.given.entry(name.len()).or_default();
            let made = spelled(*number, name.len());
            *number += 1;
            made
        } else {
            name.chars().map(veiled).collect()
        };
        self.names.insert(name.to_owned(), made.clone());
        made
    }

    /// A whole file.
    fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = if rest.starts_with("//") {
                line_end(rest)
            } else if let Some(inner) = rest.strip_prefix("/*") {
                inner.find("*/").map_or(rest.len(), |end| end + 4)
            } else if first == '"' || first == '\'' {
                literal_end(rest, first)
            } else if first == '#' && is_include(rest) {
                line_end(rest)
            } else if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (piece, after) = rest.split_at(length);
            if !is_word(first) {
                out.extend(piece.chars().map(veiled));
            } else if LANGUAGE.binary_search(&piece).is_ok() {
                out.push_str(piece);
            } else {
                out.push_str(&self.name(piece));
            }
            rest = after;
        }
        out
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn line_end(text: &str) -> usize {
    text.find(['\n', '\r']).unwrap_or(text.len())
}

/// Behind the closing quote, or at the end of the line where there is none.
fn literal_end(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' | '\r' => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_include(text: &str) -> bool {
    text[1..]
        .trim_start_matches([' ', '\t'])
        .starts_with("include")
}

/// A character that says no more than its kind and its length.
fn veiled(c: char) -> char {
    match c {
        _ if c.is_ascii_uppercase() => 'X',
        _ if c.is_ascii_lowercase() => 'x',
        _ if c.is_ascii_digit() => '1',
        _ if c.is_ascii() => c,
        // As long in UTF-8 and in UTF-16.
        _ => match c.len_utf8() {
            2 => '\u{e9}',
            3 => '\u{4e2d}',
            _ => '\u{10400}',
        },
    }
}

/// A name of `length` letters for a number; short names repeat.
fn spelled(mut number: usize, length: usize) -> String {
    let mut letters = vec![b'x'; length];
    for letter in letters.iter_mut().rev() {
        *letter = b'a' + (number % 26) as u8;
        number /= 26;
    }
    // A first letter that no keyword starts with, where the name is long enough.
    if length > 2 {
        letters[0] = b'x';
    }
    String::from_utf8_lossy(&letters).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redacted(message: &Value) -> Value {
        Redaction::default().message(message.to_string().as_bytes())
    }

    #[test]
    fn the_words_of_the_languages_are_in_order() {
        assert!(LANGUAGE.is_sorted());
    }

    #[test]
    fn a_text_keeps_its_shape_and_loses_its_names() {
        let text = "#include \"secret/plan.h\"\r\n// Hidden é🚀 for ever\n__global__ void attack(float *target, int n) {\n\
                    \x20 if (n > 256) target[threadIdx.x] = 'q'; /* if\n twice */ attack(\"pass\\\"word 12\");\n}\n";
        let made = Redaction::default().text(text);
        assert_eq!(
            made,
            "#xxxxxxx \"xxxxxx/xxxx.x\"\r\n// Xxxxxx \u{e9}\u{10400} xxx xxxx\n__global__ void xaaaaa(float *xaaaab, int a) {\n\
             \x20 if (a > 111) xaaaab[threadIdx.x] = 'x'; /* xx\n xxxxx */ xaaaaa(\"xxxx\\\"xxxx 11\");\n}\n"
        );
        for encoded in [str::len, |text: &str| text.encode_utf16().count()] {
            let lengths = |text: &str| text.split('\n').map(encoded).collect::<Vec<_>>();
            assert_eq!(lengths(&made), lengths(text));
        }
    }

    #[test]
    fn names_are_the_same_wherever_they_stand_and_numbers_stay() {
        let mut redaction = Redaction::default();
        let mut tell = |message: Value| redaction.message(message.to_string().as_bytes());
        let uri = "file:///home/alice/project/attack.cu";
        let opened = tell(
            json!({"method": "textDocument/didOpen", "params": {"textDocument": {
            "uri": uri, "languageId": "cuda-cpp", "version": 1, "text": "__global__ void attack(int count) {}\n"}}}),
        );
        let document = &opened["params"]["textDocument"];
        assert_eq!(document["uri"], "file:///p0/p1/p2/p3.cu");
        assert_eq!(document["languageId"], "cuda-cpp");
        assert_eq!(document["text"], "__global__ void xaaaaa(int xaaaa) {}\n");
        let command = tell(
            json!({"id": 4, "method": "workspace/executeCommand", "params": {
            "command": "warplens.setLaunch",
            "arguments": [{"uri": uri, "kernel": "attack", "block": [64], "args": {"count": 9}}]}}),
        );
        assert_eq!(
            command["params"],
            json!({"command": "warplens.setLaunch", "arguments": [
                {"uri": "file:///p0/p1/p2/p3.cu", "kernel": "xaaaaa", "block": [64], "args": {"xaaaa": 9}}]})
        );
    }

    #[test]
    fn what_is_typed_is_no_cipher() {
        let made = redacted(&json!({"params": {"contentChanges": [
            {"range": {"start": {"line": 1, "character": 2}}, "text": "Te"}, {"text": "q7\u{e4}"}]}}));
        let changes = &made["params"]["contentChanges"];
        assert_eq!(changes[0]["text"], "Xx");
        assert_eq!(changes[0]["range"]["start"]["character"], 2);
        assert_eq!(changes[1]["text"], "x1\u{e9}");
    }

    #[test]
    fn settings_keep_what_is_ours() {
        let made = redacted(
            &json!({"method": "workspace/didChangeConfiguration", "params": {"settings": {
            "warplens": {"gpu": "t4", "rules": {"mem": "off"}, "defines": {"SECRET": "\"x y\""},
                "kernels": {"attack": {"block": [32], "args": {"n": 1}}}, "includePaths": ["/home/alice"]},
            "mail.password": "hunter2"}}}),
        );
        let section = &made["params"]["settings"]["warplens"];
        assert_eq!(section["gpu"], "t4");
        assert!(section["rules"].get("mem").is_some());
        assert_eq!(
            section["kernels"],
            json!({"xaaaab": {"block": [32], "args": {"a": 1}}})
        );
        let text = made.to_string();
        for word in ["SECRET", "attack", "alice", "mail", "password", "hunter"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }

    #[test]
    fn what_is_no_message_leaves_nothing() {
        assert_eq!(
            Redaction::default().message(b"{\"text\": \"secret"),
            Value::Null
        );
    }
}
