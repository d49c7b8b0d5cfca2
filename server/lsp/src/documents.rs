//! The open documents: text, version, and the newest analysis of each.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ropey::Rope;
use tokio::sync::watch;
use tower_lsp_server::ls_types::{TextDocumentContentChangeEvent, Uri};
use warplens_base::read_regular;
use warplens_db::is_header;
use warplens_db::{Cancel, FileAnalysis};
use warplens_models::ModelId;
use warplens_syntax::{Document, Language};

use crate::configuration::{self, Effective};
use crate::earlier::TimesByName;
use crate::position::Encoding;

/// What a document is to us.
#[derive(Debug, Clone)]
pub enum Content {
    /// Source with kernels.
    Source(Document),
    /// A `warplens.toml`.
    Config(Rope),
    /// C or C++ that holds no kernel: the next edit may write one.
    Plain(Rope),
}

impl Content {
    /// The text.
    pub fn rope(&self) -> &Rope {
        match self {
            Content::Source(document) => document.rope(),
            Content::Config(rope) | Content::Plain(rope) => rope,
        }
    }
}

/// A document the client has open.
#[derive(Debug)]
pub struct OpenDocument {
    /// The client's URI.
    pub uri: Uri,
    /// Its path; for schemes other than `file`, a relative path that no disk has.
    pub path: PathBuf,
    /// The client's version of the text.
    pub version: i32,
    /// Text; the tree may be older.
    pub content: Content,
    /// Neither its language id nor its name says that it is ours: its text decides, at each edit.
    by_text: bool,
    /// Grows with each change of anything an analysis depends on.
    pub revision: u64,
    /// The newest analysis that was completed, perhaps of an older revision.
    pub last: Option<Arc<Analysed>>,
    /// The newest analysis that the client was told of: none came between it and the text that it is of.
    pub told: Option<Arc<Analysed>>,
    /// Line changes since `last`.
    pub moved: Vec<LineShift>,
    /// The client's version of the text that was opened or saved last.
    pub saved_version: i32,
    /// What its kernels take, as soon as a lens was made of it.
    pub saved_times: Arc<TimesByName>,
    /// The next analysis does not follow an edit of the client, so the client must be told to refresh.
    pub unasked: bool,
    /// Trips the analysis that is running.
    pub cancel: Cancel,
    /// True while a worker analyses this document or is scheduled to.
    pub scheduled: bool,
    /// The newest revision whose analysis ended.
    pub done: watch::Sender<u64>,
}

/// One document at one revision, analysed.
#[derive(Debug)]
pub struct Analysed {
    /// The revision.
    pub revision: u64,
    /// The client's version.
    pub version: i32,
    /// The client's name of the document.
    pub uri: Uri,
    /// The path.
    pub path: PathBuf,
    /// The parsed document.
    pub document: Document,
    /// The results.
    pub file: FileAnalysis,
    /// The settings they were computed with.
    pub effective: Arc<Effective>,
    /// [`crate::shown::fingerprint`] of all that, computed on first use.
    pub shown: OnceLock<u64>,
}

impl Analysed {
    /// Whether its file says what the document says.
    pub fn is_on_disk(&self) -> bool {
        self.path.is_absolute()
            && read_regular(&self.path, self.document.rope().len_bytes() as u64).is_ok_and(
                |bytes| {
                    let mut rest = &bytes[..];
                    self.document.rope().chunks().all(|chunk| {
                        let same = rest.strip_prefix(chunk.as_bytes());
                        rest = same.unwrap_or_default();
                        same.is_some()
                    }) && rest.is_empty()
                },
            )
    }

    /// Runs the simulating models among `models` for the kernels of that name, or for all, and stores their estimates.
    /// Stops soon after it is cancelled.
    pub fn simulate(&self, kernel: Option<&str>, models: &[ModelId], cancel: &Cancel) {
        let models = || models.iter().filter(|model| model.simulates());
        for placed in &self.file.kernels {
            if kernel.is_some_and(|name| name != placed.analysis.facts.name) {
                continue;
            }
            for &model in models() {
                if cancel.is_cancelled() {
                    return;
                }
                placed.analysis.estimate_by(model, cancel);
            }
        }
    }
}

/// One edit as lines see it.
#[derive(Debug, Clone, Copy)]
pub struct LineShift {
    /// The revision that the edit made.
    pub revision: u64,
    start: u32,
    old_end: u32,
    new_end: u32,
}

impl LineShift {
    /// Where a line is after the edit; `None` for a line whose text the edit took away or cut.
    pub fn line(&self, line: u32) -> Option<u32> {
        if line < self.start {
            Some(line)
        } else if line > self.old_end {
            Some(line - self.old_end + self.new_end)
        } else if self.old_end == self.start && self.new_end == self.start {
            Some(line)
        } else {
            None
        }
    }
}

impl OpenDocument {
    /// A document as opened; `None` for one that is not ours.
    pub fn new(
        uri: Uri,
        language_id: &str,
        version: i32,
        text: &str,
        revision: u64,
    ) -> Option<OpenDocument> {
        let path = path_of(&uri);
        let text = &*line_feeds(text, None);
        let named = language(language_id, &path);
        let by_text = named.is_none() && matches!(language_id, "c" | "cpp" | "");
        let content = if path
            .file_name()
            .is_some_and(|name| name == configuration::FILE_NAME)
        {
            Content::Config(Rope::from_str(text))
        } else if by_text {
            content(language_of_text(&path, text), text)
        } else {
            content(Some(named?), text)
        };
        Some(OpenDocument {
            uri,
            path,
            version,
            content,
            by_text,
            revision,
            last: None,
            told: None,
            moved: Vec::new(),
            saved_version: version,
            saved_times: Arc::default(),
            unasked: false,
            cancel: Cancel::default(),
            scheduled: false,
            done: watch::Sender::new(0),
        })
    }

    /// Applies changes in order. Positions outside the text are clamped: a client out of step gets answers
    /// about the text we have, not a crash.
    pub fn apply(
        &mut self,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
        revision: u64,
    ) {
        for change in changes {
            let rope = self.content.rope();
            let mut bytes = match change.range {
                Some(range) => encoding.to_bytes(rope, range),
                None => 0..rope.len_bytes(),
            };
            let mut change = change;
            if let Some(range) = change.range {
                // The half that stays counts as a character: a client that edits by halves and this text stay in step.
                if encoding.splits(rope, range.start.max(range.end)) {
                    let rest = rope.byte_slice(bytes.end..);
                    bytes.end += rest.chars().next().map_or(0, char::len_utf8);
                    change.text.push(char::REPLACEMENT_CHARACTER);
                }
                if encoding.splits(rope, range.start.min(range.end)) {
                    change.text.insert(0, char::REPLACEMENT_CHARACTER);
                }
            }
            let start = rope.byte_to_line(bytes.start) as u32;
            let old_end = rope.byte_to_line(bytes.end) as u32;
            let end = bytes.start + change.text.len();
            let text = line_feeds(&change.text, rope.get_byte(bytes.end));
            match &mut self.content {
                Content::Source(document) => document.edit(bytes, &text),
                Content::Config(rope) | Content::Plain(rope) => {
                    let from = rope.byte_to_char(bytes.start);
                    rope.remove(from..rope.byte_to_char(bytes.end));
                    rope.insert(from, &text);
                }
            }
            let rope = self.content.rope();
            let new_end = rope.byte_to_line(end.min(rope.len_bytes())) as u32;
            if matches!(self.content, Content::Source(_)) {
                self.moved.push(LineShift {
                    revision,
                    start,
                    old_end,
                    new_end,
                });
            }
        }
        self.revision = revision;
        self.look_for_kernels();
    }

    /// What its text makes of a document that nothing else decides.
    fn look_for_kernels(&mut self) {
        if !self.by_text {
            return;
        }
        let (language, is_now) = match &self.content {
            Content::Plain(rope) => (language_of_text(&self.path, &rope.to_string()), None),
            Content::Source(document) => {
                let language = language_of_text(&self.path, document.source());
                (language, Some(document.language()))
            }
            Content::Config(_) => return,
        };
        if language != is_now {
            let text = self.content.rope().to_string();
            self.content = content(language, &text);
            self.last = None;
            self.moved.clear();
        }
    }
}

/// Replaces each lone CR with a LF. Both end lines in the protocol, and both are one byte and one column, so no position
/// moves and readers need to know only LF. `next` is the byte after the text.
fn line_feeds(text: &str, next: Option<u8>) -> Cow<'_, str> {
    let alone = |at: usize| text.as_bytes().get(at + 1).copied().or(next) != Some(b'\n');
    let mut bytes = text.bytes().enumerate();
    if !bytes.any(|(at, byte)| byte == b'\r' && alone(at)) {
        return Cow::Borrowed(text);
    }
    let characters = text.char_indices().map(|(at, character)| match character {
        '\r' if alone(at) => '\n',
        other => other,
    });
    Cow::Owned(characters.collect())
}

/// The document's language: by its id, or by its extension where the id says only C or C++.
fn language(id: &str, path: &Path) -> Option<Language> {
    match id {
        "c" | "cpp" | "" => Language::from_path(path),
        "plaintext" => {
            Language::from_path(path).or_else(|| is_header(path).then_some(Language::Cuda))
        }
        id => Language::from_id(id).or_else(|| Language::from_path(path)),
    }
}

/// The language of C or C++, as the command line has it: what is compiled as CUDA or HIP, host code with kernels in its strings,
/// OpenCL in a `.c`. `None` where no kernel's word occurs in it, unless it is a header, which may be a kernel's.
fn language_of_text(path: &Path, text: &str) -> Option<Language> {
    let is_ours = is_header(path) || warplens_db::may_hold_kernels(text);
    is_ours.then(|| warplens_db::language_by_content(None, text))
}

/// The content of a document that is no settings file.
fn content(language: Option<Language>, text: &str) -> Content {
    let Some(language) = language else {
        return Content::Plain(Rope::from_str(text));
    };
    // Parsed by the worker, not here: documents are made between two messages.
    let mut document = Document::new("", language);
    document.edit(0..0, text);
    Content::Source(document)
}

/// A path for a URI: the file's own, or for other schemes (untitled, git, a virtual folder) the URI's path
/// made relative, so that extensions count and nothing on disk is meant.
fn path_of(uri: &Uri) -> PathBuf {
    let path = uri.to_file_path().unwrap_or_default();
    if uri.scheme().as_str().eq_ignore_ascii_case("file") {
        path.into_owned()
    } else {
        path.strip_prefix("/").unwrap_or(&path).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    fn uri(text: &str) -> Uri {
        Uri::from_str(text).expect("a URI")
    }

    #[test]
    fn languages_by_id_and_by_extension() {
        let check = |id: &str, name: &str, expected: Option<Language>| {
            let open = OpenDocument::new(uri(name), id, 1, "", 1);
            let found = open.and_then(|open| match open.content {
                Content::Source(document) => Some(document.language()),
                Content::Plain(_) => None,
                Content::Config(_) => panic!("{name} is source"),
            });
            assert_eq!(found, expected, "{id} {name}");
        };
        check("cuda-cpp", "file:///a.cu", Some(Language::Cuda));
        check("cuda", "file:///a.txt", Some(Language::Cuda));
        check("cpp", "file:///a.cuh", Some(Language::Cuda));
        check("c", "file:///a.cl", Some(Language::OpenCl));
        check("opencl", "untitled:Untitled-1", Some(Language::OpenCl));
        check("hip", "file:///a.cpp", Some(Language::Hip));
        check("cpp", "file:///a.cpp", None);
        check("python", "file:///a.py", None);
        check("cuda-cpp", "git:/a/b.cu?ref", Some(Language::Cuda));
    }

    #[test]
    fn a_cr_alone_is_a_line_feed() {
        let same = "a\r\nb\n";
        assert!(matches!(line_feeds(same, None), Cow::Borrowed(_)));
        assert_eq!(line_feeds("a\rb\r\rc\r\n\r", None), "a\nb\n\nc\r\n\n");
        assert_eq!(line_feeds("a\r", Some(b'\n')), "a\r", "half of a CR LF");
        assert_eq!(line_feeds("a\r", Some(b'b')), "a\n");
    }

    #[test]
    fn other_schemes_name_nothing_on_disk() {
        assert_eq!(path_of(&uri("file:///a%20b/c.cu")), Path::new("/a b/c.cu"));
        assert!(path_of(&uri("git:/a/b.cu?ref")).is_relative());
        assert!(path_of(&uri("untitled:Untitled-1")).is_relative());
    }

    #[test]
    fn lines_move_with_edits() {
        let moved = |start, old_end, new_end| LineShift {
            revision: 1,
            start,
            old_end,
            new_end,
        };
        assert_eq!(moved(3, 3, 3).line(3), Some(3), "typing within a line");
        assert_eq!(moved(3, 3, 4).line(2), Some(2));
        assert_eq!(moved(3, 3, 4).line(5), Some(6), "a line was added");
        assert_eq!(moved(3, 5, 3).line(6), Some(4), "two lines were taken away");
        assert_eq!(moved(3, 5, 3).line(4), None);
    }
}
