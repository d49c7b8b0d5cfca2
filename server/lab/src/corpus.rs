//! `cargo lab corpus`: the checker over other people's code, how much it understands and what it costs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;

use crate::count;
use xtask::{process, repository};

/// No folder may take longer.
const LIMIT: Duration = Duration::from_mins(30);

/// A file that takes longer by itself is listed.
const SLOW: Duration = Duration::from_secs(2);

/// Lines of each list under the table.
const LISTED: usize = 10;

/// Check folders of other people's code: how much is understood, how fast, a row a folder
///
/// `found` is held against a count of kernel definitions by their words. Each file that holds one is also
/// checked alone, for its time. Fails where a file was lost to an internal error or a limit was passed.
#[derive(Debug, Args)]
pub struct Corpus {
    /// The folders
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// This binary, instead of building one
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// Also the N most frequent texts of each reason
    #[arg(long, value_name = "N", default_value_t = 0)]
    worst: usize,
}

impl Corpus {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        for folder in &self.folders {
            if !folder.is_dir() {
                bail!("{} is not a folder", folder.display());
            }
        }
        let bin = match &self.bin {
            Some(bin) => std::path::absolute(bin)?,
            None => build()?,
        };
        let mut rows = Vec::new();
        for folder in &self.folders {
            eprintln!("{}", folder.display());
            rows.push(Row::of(&bin, &std::path::absolute(folder)?)?);
        }
        print_table(&rows);
        for row in &rows {
            row.print_lists(self.worst);
        }
        let lost: usize = rows.iter().map(|row| row.complaints.len()).sum();
        println!("\n{lost} internal errors");
        Ok(if lost == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// The release build.
pub fn build() -> anyhow::Result<PathBuf> {
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked", "--package", "warplens"]);
    if !process::run(&mut build, Duration::from_mins(15))?.success {
        bail!("the release build failed");
    }
    Ok(repository::built("release", "warplens"))
}

/// What came of one folder.
struct Row {
    folder: PathBuf,
    stats: Value,
    /// Findings of each rule.
    rules: BTreeMap<String, u64>,
    took: Duration,
    /// The most memory the checker held, in bytes; none where the system does not say.
    peak: Option<u64>,
    /// Files lost to internal errors.
    complaints: Vec<String>,
    /// What was said of them.
    messages: BTreeSet<String>,
    files: Vec<File>,
}

/// One file, checked alone.
struct File {
    path: PathBuf,
    definitions: Vec<count::Definition>,
    /// Kernels that the checker found.
    kernels: u64,
    /// Definitions that it has no result for, where it found too few.
    missing: Vec<count::Definition>,
    took: Duration,
}

impl Row {
    fn of(bin: &Path, folder: &Path) -> anyhow::Result<Row> {
        let started = Instant::now();
        let answer = Answer::of(check(bin).args(["--losses"]).arg(folder), LIMIT)?;
        let took = started.elapsed();
        let document = answer.document.with_context(|| {
            format!(
                "no document after {:.0} s: {}",
                took.as_secs_f64(),
                answer.complaints
            )
        })?;
        let mut rules = BTreeMap::new();
        for finding in document["diagnostics"].as_array().into_iter().flatten() {
            let rule = finding["rule"].as_str().unwrap_or("?");
            *rules.entry(rule.to_owned()).or_insert(0) += 1;
        }
        let mut complaints: Vec<String> = document["diagnostics"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|finding| finding["rule"] == "internal/lost-kernel")
            .map(|finding| finding["file"].as_str().unwrap_or("?").to_owned())
            .collect();
        let words = answer.complaints.lines();
        let messages: BTreeSet<String> = words
            .filter(|line| line.contains("internal error"))
            .map(str::to_owned)
            .collect();
        // One that no file was named for is still one.
        if complaints.is_empty() {
            complaints.extend(messages.iter().cloned());
        }
        let files = Mutex::new(Vec::new());
        let queue = Mutex::new(sources(folder)?.into_iter());
        let lost = Mutex::new(Vec::new());
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some((path, definitions)) = lock(&queue).next() {
                        match File::of(bin, path.clone(), definitions) {
                            Ok(file) => lock(&files).push(file),
                            Err(error) => {
                                lock(&lost).push(format!("{}: {error:#}", path.display()));
                            }
                        }
                    }
                });
            }
        });
        complaints.append(&mut lock(&lost));
        let mut files = std::mem::take(&mut *lock(&files));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Row {
            folder: folder.to_owned(),
            stats: document["stats"].clone(),
            rules,
            took,
            peak: answer.peak,
            complaints,
            messages,
            files,
        })
    }

    fn stat(&self, key: &str) -> u64 {
        self.stats[key].as_u64().unwrap_or(0)
    }

    /// Percent of the kernels that were found.
    fn share(&self, key: &str) -> String {
        percent(self.stat(key), self.stat("kernels"))
    }

    fn name(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.folder).unwrap_or(path);
        path.display().to_string()
    }

    fn cells(&self) -> Vec<String> {
        let defined: u64 = self
            .files
            .iter()
            .map(|file| file.definitions.len() as u64)
            .sum();
        let found: u64 = self.files.iter().map(File::found).sum();
        let slowest = self.files.iter().max_by_key(|file| file.took);
        let seconds = self.took.as_secs_f64();
        vec![
            self.folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            self.stat("files").to_string(),
            self.stat("kernels").to_string(),
            percent(found, defined),
            self.share("clean"),
            self.share("launch_known"),
            percent(self.stat("accesses_exact"), self.stat("accesses")),
            percent(self.stat("branches_exact"), self.stat("branches")),
            self.stat("failed").to_string(),
            format!("{seconds:.1}"),
            format!("{:.0}", self.stat("files") as f64 / seconds.max(1e-3)),
            self.peak
                .map_or_else(|| "-".to_owned(), |bytes| (bytes >> 20).to_string()),
            slowest.map_or_else(
                || "-".to_owned(),
                |file| format!("{:.1} s {}", file.took.as_secs_f64(), self.name(&file.path)),
            ),
        ]
    }

    fn print_lists(&self, worst: usize) {
        println!("\n{}", self.folder.display());
        let reasons = self.reasons();
        for (reason, texts) in reasons.iter().take(LISTED) {
            println!("  {:>7}  {reason}", texts.total());
            for (text, seen) in texts.most_frequent().into_iter().take(worst) {
                println!("           {:>7}  {text}  ({})", seen.times, seen.place);
            }
        }
        let not_found: Vec<&File> = self
            .files
            .iter()
            .filter(|file| file.found() < file.definitions.len() as u64)
            .collect();
        list(
            "kernels not found",
            not_found.len(),
            not_found.iter().map(|file| {
                let names: Vec<String> = file
                    .missing
                    .iter()
                    .map(|kernel| format!("{}:{}", kernel.line, kernel.name))
                    .collect();
                let mut names = names.join(" ");
                if let Some((at, _)) = names.char_indices().nth(100) {
                    names.truncate(at);
                    names.push('…');
                }
                format!(
                    "{}: {} of {}: {names}",
                    self.name(&file.path),
                    file.found(),
                    file.definitions.len()
                )
            }),
        );
        let mut slow: Vec<&File> = self.files.iter().filter(|file| file.took > SLOW).collect();
        slow.sort_by_key(|file| std::cmp::Reverse(file.took));
        list(
            "slow",
            slow.len(),
            slow.iter()
                .map(|file| format!("{:.1} s {}", file.took.as_secs_f64(), self.name(&file.path))),
        );
        list(
            "internal errors",
            self.complaints.len(),
            self.complaints.iter().cloned(),
        );
        for message in self.messages.iter().take(LISTED) {
            println!("    {message}");
        }
        if !self.rules.is_empty() {
            let rules: Vec<String> = self
                .rules
                .iter()
                .map(|(rule, times)| format!("{rule} {times}"))
                .collect();
            println!("  findings: {}", rules.join(", "));
        }
    }

    /// The losses by what their reason says before its colon, the most frequent first.
    fn reasons(&self) -> Vec<(String, Texts)> {
        let mut reasons: BTreeMap<String, Texts> = BTreeMap::new();
        for loss in self.stats["losses"].as_array().into_iter().flatten() {
            let text = |key: &str| loss[key].as_str().unwrap_or_default();
            let (reason, what) = text("reason")
                .split_once(": ")
                .unwrap_or((text("reason"), ""));
            let what = if what.is_empty() { text("text") } else { what };
            let place = format!("{}:{}", self.name(Path::new(text("file"))), loss["line"]);
            reasons
                .entry(reason.to_owned())
                .or_default()
                .add(what, place);
        }
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, texts)| std::cmp::Reverse(texts.total()));
        reasons
    }
}

impl File {
    fn of(bin: &Path, path: PathBuf, definitions: Vec<count::Definition>) -> anyhow::Result<File> {
        let started = Instant::now();
        let answer = Answer::of(check(bin).arg(&path), LIMIT)?;
        let took = started.elapsed();
        // A file that cannot be read is counted as one without kernels.
        let stats = answer.document.map(|document| document["stats"].clone());
        let kernels = stats
            .and_then(|stats| stats["kernels"].as_u64())
            .unwrap_or(0);
        let mut missing = Vec::new();
        if kernels < definitions.len() as u64 {
            let mut estimate = Command::new(bin);
            estimate.args(["estimate", "--format", "json"]).arg(&path);
            let document = Answer::of(&mut estimate, LIMIT)?
                .document
                .unwrap_or_default();
            let results = document["results"].as_array().into_iter().flatten();
            // A template has a result for each set of arguments.
            let named: BTreeSet<(u64, &str)> = results
                .filter_map(|result| Some((result["line"].as_u64()?, result["kernel"].as_str()?)))
                .collect();
            let mut names: Vec<&str> = named.into_iter().map(|(_, name)| name).collect();
            for kernel in &definitions {
                match names.iter().position(|name| *name == kernel.name) {
                    Some(at) => drop(names.remove(at)),
                    None => missing.push(kernel.clone()),
                }
            }
        }
        Ok(File {
            path,
            definitions,
            kernels,
            missing,
            took,
        })
    }

    /// Kernels found, no more than the words say there are: macros make others.
    fn found(&self) -> u64 {
        self.kernels.min(self.definitions.len() as u64)
    }
}

/// Texts and how often each was seen.
#[derive(Default)]
struct Texts(BTreeMap<String, Seen>);

struct Seen {
    times: usize,
    /// Where it was seen first.
    place: String,
}

impl Texts {
    fn add(&mut self, text: &str, place: String) {
        let seen = self
            .0
            .entry(text.to_owned())
            .or_insert(Seen { times: 0, place });
        seen.times += 1;
    }

    fn total(&self) -> usize {
        self.0.values().map(|seen| seen.times).sum()
    }

    fn most_frequent(&self) -> Vec<(&String, &Seen)> {
        let mut texts: Vec<_> = self.0.iter().collect();
        texts.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.times));
        texts
    }
}

/// What one run of the checker said.
struct Answer {
    document: Option<Value>,
    complaints: String,
    peak: Option<u64>,
}

impl Answer {
    fn of(command: &mut Command, limit: Duration) -> anyhow::Result<Answer> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run the checker")?;
        let out = read(child.stdout.take());
        let errors = read(child.stderr.take());
        let peak = wait(&mut child, limit)?;
        let out = out.join().unwrap_or_default();
        let complaints = errors.join().unwrap_or_default();
        Ok(Answer {
            document: serde_json::from_slice(&out).ok(),
            complaints: String::from_utf8_lossy(&complaints).trim().to_owned(),
            peak,
        })
    }
}

fn check(bin: &Path) -> Command {
    let mut command = Command::new(bin);
    command.args(["check", "--format", "json", "--stats"]);
    command
}

fn read(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Waits for its end; the most memory it held.
fn wait(child: &mut Child, limit: Duration) -> anyhow::Result<Option<u64>> {
    let started = Instant::now();
    let mut peak = None;
    loop {
        peak = peak.max(held(child.id()));
        if child.try_wait()?.is_some() {
            return Ok(peak);
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("ended after {} minutes", limit.as_secs() / 60);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The most memory a running process has held so far, in bytes, where Linux says so.
fn held(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// The sources under a folder that define a kernel by their words.
pub fn sources(folder: &Path) -> anyhow::Result<Vec<(PathBuf, Vec<count::Definition>)>> {
    let mut paths = Vec::new();
    walk(folder, &mut paths)?;
    paths.sort();
    let read = |path: &Path| -> anyhow::Result<String> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut qualifiers = BTreeSet::new();
    for (path, _) in &paths {
        qualifiers.extend(count::qualifiers(&read(path)?));
    }
    let mut found = Vec::new();
    for (path, opencl) in paths {
        let definitions = count::kernels(&read(&path)?, opencl, &qualifiers);
        if !definitions.is_empty() {
            found.push((path, definitions));
        }
    }
    Ok(found)
}

/// Adds the sources under a folder, each with whether it is OpenCL C.
pub fn walk(folder: &Path, found: &mut Vec<(PathBuf, bool)>) -> anyhow::Result<()> {
    const OPENCL: [&str; 3] = ["cl", "clh", "opencl"];
    const OTHERS: [&str; 15] = [
        "cu", "cuh", "hip", "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp",
        "tcc",
    ];
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_symlink() || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if path.is_dir() {
            walk(&path, found)?;
            continue;
        }
        let extension = path
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .to_ascii_lowercase();
        let opencl = OPENCL.contains(&extension.as_str());
        if opencl || OTHERS.contains(&extension.as_str()) {
            found.push((path, opencl));
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    // Rounded down: 100.0 is said of all of them only.
    format!("{:.1}", (1000 * part / whole) as f64 / 10.0)
}

fn list(title: &str, length: usize, lines: impl Iterator<Item = String>) {
    if length == 0 {
        return;
    }
    println!("  {title}: {length}");
    for line in lines.take(LISTED) {
        println!("    {line}");
    }
}

fn print_table(rows: &[Row]) {
    let heads = [
        "corpus",
        "files",
        "kernels",
        "found %",
        "clean %",
        "launch %",
        "exact accesses %",
        "exact branches %",
        "failed",
        "seconds",
        "files/s",
        "MiB",
        "slowest file",
    ];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(Row::cells));
    for line in &lines {
        let cells = line.iter().enumerate().map(|(column, cell)| {
            let lengths = lines.iter().map(|line| line[column].chars().count());
            let width = lengths.max().unwrap_or(0);
            // Names stand to the left, figures to the right.
            if column == 0 || column == heads.len() - 1 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let text = cells.collect::<Vec<_>>().join("  ");
        println!("{}", text.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_never_rounded_up() {
        assert_eq!(percent(9999, 10_000), "99.9");
        assert_eq!(percent(3, 3), "100.0");
        assert_eq!(percent(0, 0), "-");
    }

    #[test]
    fn losses_are_grouped_by_what_their_reason_says() {
        let loss = |reason: &str, text: &str, line: u32| serde_json::json!({"reason": reason, "text": text, "file": "/c/a.cu", "line": line});
        let row = Row {
            folder: PathBuf::from("/c"),
            stats: serde_json::json!({"losses": [
                loss("no such thing: b", "x", 1),
                loss("no such thing: a", "y", 2),
                loss("no such thing: a", "z", 3),
                loss("odd", "w", 4),
            ]}),
            rules: BTreeMap::new(),
            took: Duration::ZERO,
            peak: None,
            complaints: Vec::new(),
            messages: BTreeSet::new(),
            files: Vec::new(),
        };
        let reasons = row.reasons();
        let kinds: Vec<_> = reasons
            .iter()
            .map(|(reason, texts)| (reason.as_str(), texts.total()))
            .collect();
        assert_eq!(kinds, [("no such thing", 3), ("odd", 1)]);
        let most = reasons[0].1.most_frequent();
        assert_eq!(
            (
                most[0].0.as_str(),
                most[0].1.times,
                most[0].1.place.as_str()
            ),
            ("a", 2, "a.cu:2")
        );
        assert_eq!(reasons[1].1.most_frequent()[0].0, "w");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_and_limits_are_watched() {
        let answer = Answer::of(
            Command::new("sh").args(["-c", "sleep 0.1; echo '{\"a\":1}'; echo no >&2"]),
            SLOW,
        )
        .unwrap();
        assert_eq!(answer.document.unwrap()["a"], 1);
        assert_eq!(answer.complaints, "no");
        assert!(answer.peak.unwrap() > 100_000);
        let hung = Answer::of(Command::new("sleep").arg("60"), Duration::from_millis(50));
        assert!(hung.is_err());
    }
}
