//! Files: which ones to read, and reading them without trusting them.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context;
use clap::{Args, ValueEnum};
use warplens_base::{DiskFiles, NotText, decode, read_regular};
use warplens_db::wire::Diagnostic;
use warplens_syntax::{Document, Language, words_in};

/// Larger files are generated, not edited by hand.
pub const LARGEST: u64 = 50 * 1024 * 1024;

/// A file that could be read.
#[derive(Debug)]
pub struct Source {
    /// Its text.
    pub text: String,
    /// The text, parsed.
    pub document: Document,
}

/// Why a file could not be read, in one line of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    message: String,
}

impl Unreadable {
    fn whole(message: String) -> Unreadable {
        Unreadable { message }
    }

    /// As a finding of `path`.
    pub fn diagnostic(&self, path: &Path) -> Diagnostic {
        Diagnostic {
            rule: "input/unreadable".to_owned(),
            severity: "error",
            file: path.display().to_string(),
            line: 1,
            column: 1,
            end_line: 1,
            end_column: 2,
            message: self.message.clone(),
            gain: 1.0,
            ..Diagnostic::default()
        }
    }

    /// As one line.
    pub fn line(&self, path: &Path) -> String {
        format!("{}: {}", path.display(), self.message)
    }
}

/// What standard input gave, as the file that it is called.
#[derive(Debug)]
struct Piped {
    path: PathBuf,
    bytes: Vec<u8>,
}

static PIPED: OnceLock<Piped> = OnceLock::new();

/// `-` among the paths: what is piped in, and what it is called.
#[derive(Debug, Clone, Default, Args)]
pub struct StandardInput {
    /// Language of standard input (`-`) [default: what --stdin-name says, else cuda]
    #[arg(long, value_enum)]
    language: Option<Named>,
    /// What standard input (`-`) is called: headers, launches and settings are looked for as for a file of that name
    #[arg(long, value_name = "FILE")]
    stdin_name: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Named {
    /// CUDA C++
    Cuda,
    /// OpenCL C
    Opencl,
    /// HIP
    Hip,
}

impl StandardInput {
    /// Reads standard input where a path is `-`, and puts its name there.
    pub fn read(&self, paths: &mut [PathBuf]) -> anyhow::Result<()> {
        let Some(path) = paths.iter_mut().find(|path| path.as_os_str() == "-") else {
            return Ok(());
        };
        let extension = match self.language {
            Some(Named::Opencl) => "cl",
            Some(Named::Hip) => "hip",
            Some(Named::Cuda) | None => "cu",
        };
        let name = self.stdin_name.clone();
        let mut name = name.unwrap_or_else(|| PathBuf::from(format!("stdin.{extension}")));
        if self.language.is_some()
            && language(&name) != language(&Path::new("stdin").with_extension(extension))
        {
            name.set_extension(extension);
        }
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(LARGEST)
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        path.clone_from(&name);
        let _ = PIPED.set(Piped { path: name, bytes });
        Ok(())
    }
}

/// True for what was piped in.
pub fn is_piped(path: &Path) -> bool {
    PIPED.get().is_some_and(|piped| piped.path == path)
}

/// The language that a file's extension says.
fn language(path: &Path) -> Option<Language> {
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("opencl" | "ocl" | "clh") => Some(Language::OpenCl),
        _ => Language::from_path(path),
    }
}

/// Reads one file as it is.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Unreadable> {
    if let Some(piped) = PIPED.get().filter(|piped| piped.path == path) {
        return Ok(piped.bytes.clone());
    }
    read_regular(path, LARGEST).map_err(|error| Unreadable::whole(reason(&error)))
}

/// The text of a file that the user named and that is no source: a baseline, a space, a recording.
pub fn text(path: &Path) -> std::io::Result<String> {
    let bytes = read_regular(path, LARGEST)?;
    String::from_utf8(bytes)
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads and parses one file.
pub fn read(path: &Path) -> Result<Source, Unreadable> {
    let bytes = bytes(path)?;
    let text = decode(bytes).map_err(|why| {
        Unreadable::whole(match why {
            NotText::Utf16 => "is UTF-16; save it as UTF-8".to_owned(),
            NotText::Binary => "is binary, not source text".to_owned(),
        })
    })?;
    let language = warplens_db::language_by_content(language(path), &text);
    let document = Document::new(&text, language);
    Ok(Source { text, document })
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::FileTooLarge => {
            format!("is {error}; it is not read")
        }
        _ => format!("cannot be read: {error}"),
    }
}

/// The files to check, in a stable order: files as named, folders walked (`.gitignore` honoured), none twice.
pub fn files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        if path.is_dir() {
            for file in walk(path) {
                if seen.insert(identity(&file)) {
                    files.push(file);
                }
            }
        } else if seen.insert(identity(path)) {
            files.push(path.clone());
        }
    }
    files
}

/// The C and C++ files of a folder, CUDA's and HIP's among them, that may be a program's: `.gitignore` honoured, in a stable order.
pub fn hosts(folder: &Path) -> Vec<PathBuf> {
    let host = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("cu" | "hip" | "c" | "cc" | "cpp" | "cxx"))
            && std::fs::metadata(path).is_ok_and(|meta| meta.len() <= LARGEST)
    };
    let mut files: Vec<PathBuf> = walked(folder).filter(host).collect();
    files.sort();
    files
}

/// What marks the folder of a project.
const MARKS: [&str; 4] = [".git", ".hg", crate::config::NAME, "compile_commands.json"];

/// The project that these paths lie in: headers and launches are looked for in the folders named, and for a file in
/// its project's folder.
pub fn project(paths: &[PathBuf]) -> warplens_db::Project {
    let roots = paths
        .iter()
        .map(|path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            if path.is_dir() {
                path
            } else {
                project_folder(&path)
            }
        })
        .collect();
    warplens_db::Project::new(std::sync::Arc::new(DiskFiles::new()), roots)
}

/// The folders of the projects that these paths lie in: a folder that is checked alone reads the headers of the project around it.
pub fn project_folders(paths: &[PathBuf]) -> Vec<PathBuf> {
    let folder = |path: &PathBuf| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        if path.is_dir() {
            project_folder(&path.join("_"))
        } else {
            project_folder(&path)
        }
    };
    paths.iter().map(folder).collect()
}

/// The nearest folder above a file that is marked as a project's, else the current folder where the file is in it,
/// else the file's own.
fn project_folder(file: &Path) -> PathBuf {
    let own = file.parent().map(Path::to_owned).unwrap_or_default();
    let marked = own
        .ancestors()
        .find(|folder| MARKS.iter().any(|mark| folder.join(mark).exists()));
    if let Some(marked) = marked {
        return marked.to_owned();
    }
    let current = std::env::current_dir().unwrap_or_default();
    // `/` is not a project.
    if current.parent().is_some() && own.starts_with(&current) {
        return current;
    }
    own
}

fn identity(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    // C and C++ files without a kernel's word, which may have a macro in its place.
    let mut others = Vec::new();
    let mut macros: HashSet<String> = HashSet::new();
    for path in walked(folder) {
        let own = Language::from_path(&path).is_some();
        if own && !warplens_db::is_header(&path) {
            files.push(path);
            continue;
        }
        let Some(text) = host_text(&path, own) else {
            continue;
        };
        let holds = warplens_db::may_hold_kernels(&text);
        if holds {
            macros.extend(
                warplens_db::kernel_macros(&text)
                    .into_iter()
                    .map(str::to_owned),
            );
        }
        let among = if own || holds {
            &mut files
        } else {
            &mut others
        };
        among.push(path);
    }
    if !macros.is_empty() {
        let uses = |path: &PathBuf| {
            host_text(path, false)
                .is_some_and(|text| words_in(&text).any(|word| macros.contains(word)))
        };
        files.extend(others.into_iter().filter(uses));
    }
    files.sort();
    files
}

/// The text of a C or C++ file, or of one that is a kernel's by its name.
fn host_text(path: &Path, own: bool) -> Option<String> {
    const HOST: [&str; 12] = [
        "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "tcc",
    ];
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_host = extension.is_some_and(|extension| HOST.contains(&extension));
    let bytes = (own || is_host).then(|| read_regular(path, LARGEST).ok())??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn walked(folder: &Path) -> impl Iterator<Item = PathBuf> {
    warplens_base::walk(&[folder.to_owned()], true)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path)
        .map(|path| path.strip_prefix("./").map(Path::to_owned).unwrap_or(path))
}
