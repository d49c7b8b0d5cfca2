//! How bytes become what the targets try: a text, and a script of what happens to it.

pub mod client;

use warplens_syntax::Language;

/// What is between the text and its script. Seeds are made in this form by `cargo xtask fuzz`.
const SEPARATOR: u8 = 0;

/// A file and what happens to it.
#[derive(Debug)]
pub struct Case {
    /// Its language.
    pub language: Language,
    /// Its text.
    pub text: String,
    /// Choices.
    pub script: Vec<u8>,
}

impl Case {
    /// Reads an input: the text, a separator, the language's number, the script.
    pub fn read(bytes: &[u8]) -> Case {
        let end = bytes.iter().rposition(|byte| *byte == SEPARATOR);
        let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        let rest = rest.get(1..).unwrap_or_default();
        let (language, script) = rest.split_first().unwrap_or((&0, &[]));
        Case {
            language: match language % 3 {
                0 => Language::Cuda,
                1 => Language::OpenCl,
                _ => Language::Hip,
            },
            text: String::from_utf8_lossy(text).into_owned(),
            script: script.to_vec(),
        }
    }

    /// A file name that means its language.
    pub fn name(&self) -> &'static str {
        match self.language {
            Language::OpenCl => "k.cl",
            Language::Hip => "k.hip",
            _ => "k.cu",
        }
    }
}

/// One change of a text.
#[derive(Debug)]
pub struct Edit {
    /// Bytes that go, on character boundaries.
    pub start: usize,
    /// Their end.
    pub end: usize,
    /// What comes.
    pub piece: String,
}

/// What is typed and pasted.
const PIECES: [&str; 24] = [
    "",
    "{",
    "}",
    "(",
    ")",
    ";",
    "\n",
    "\r\n",
    "/*",
    "*/",
    "\"",
    "#define n 4\n",
    "#if n\n",
    "#endif\n",
    "__syncthreads();",
    "threadIdx.x",
    "for (int i = 0; i < n; i++) ",
    "if (threadIdx.x % 2) ",
    "a[i * 2]",
    "__global__ void q(float *a) { a[threadIdx.x * 3] = 1; }\n",
    "// é🚀\n",
    "<<<1, 32>>>",
    "template <int n> ",
    "\\\n",
];

/// The edits that a script describes, five bytes each, for texts as they become.
pub fn edit(text: &str, script: &[u8]) -> Edit {
    let [kind, high, low, length, piece] =
        [0, 1, 2, 3, 4].map(|at| script.get(at).copied().unwrap_or(0));
    let position = usize::from(high) << 8 | usize::from(low);
    let start = floor(text, position % (text.len() + 1));
    let length = if kind % 4 == 0 {
        usize::from(length)
    } else {
        usize::from(length % 4)
    };
    let end = floor(text, (start + length).min(text.len())).max(start);
    let piece = match kind % 8 {
        // A paste of what is elsewhere.
        7 => {
            let from = floor(text, (position * 7) % (text.len() + 1));
            let to = floor(text, (from + 16 * usize::from(piece)).min(text.len())).max(from);
            text[from..to].to_owned()
        }
        6 => char::from(piece % 0x5f + 0x20).to_string(),
        _ => PIECES[usize::from(piece) % PIECES.len()].to_owned(),
    };
    Edit { start, end, piece }
}

/// The nearest place before `at` where an editor can have its cursor: not within a character, not between CR and LF.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) || (text[..at].ends_with('\r') && text[at..].starts_with('\n'))
    {
        at -= 1;
    }
    at
}
