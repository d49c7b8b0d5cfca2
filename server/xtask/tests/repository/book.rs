//! The documentation holds together: every page has its place in the book, and every link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// What represents a file of the repository where a page of the book names one outside of docs/.
const HERE: [&str; 2] = [
    "https://github.com/warplens/warplens/blob/main/",
    "https://github.com/warplens/warplens/tree/main/",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages_under(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of the repository");
    for entry in entries.map(|entry| entry.expect("readable").path()) {
        let hidden = entry
            .file_name()
            .is_some_and(|name| name == "node_modules" || name == "out");
        if entry.is_dir() && !hidden {
            pages_under(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "md") {
            found.push(entry);
        }
    }
}

/// Pages by their path from the top of the repository.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = root();
    let mut found = Vec::new();
    for folder in ["docs", "editors", "hw-profiles", ".github", "tests/kernels"] {
        pages_under(&root.join(folder), &mut found);
    }
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ] {
        found.push(root.join(page));
    }
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a page");
            let path = path.strip_prefix(&root).expect("inside").to_owned();
            (path, text)
        })
        .collect()
}

/// The lines of a page outside of code, without code spans.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            let outside = line.split('`').step_by(2);
            prose.extend(outside);
        }
        prose.push('\n');
    }
    prose
}

/// What the links of a page name.
fn links(text: &str) -> Vec<String> {
    prose(text)
        .split("](")
        .skip(1)
        .filter_map(|rest| {
            let target = rest.split(')').next()?;
            target.split_whitespace().next().map(str::to_owned)
        })
        .collect()
}

/// The names by which headings are linked to.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let title = line.trim_start_matches('#');
        if fenced || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        // A link in a heading is called by its words.
        let mut words = String::new();
        let mut rest = title.trim();
        while let Some((before, after)) = rest.split_once("](") {
            words.push_str(before);
            rest = after.split_once(')').map_or("", |(_, rest)| rest);
        }
        words.push_str(rest);
        let name: String = words
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                c if c.is_alphanumeric() => Some(c),
                _ => None,
            })
            .collect();
        let before = seen.entry(name.clone()).or_default();
        anchors.insert(match *before {
            0 => name,
            times => format!("{name}-{times}"),
        });
        *before += 1;
    }
    anchors
}

fn normal(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

/// What is wrong with a link of a page, where something is.
fn wrong(page: &Path, link: &str, pages: &BTreeMap<PathBuf, String>) -> Option<String> {
    let absolute = HERE.iter().find_map(|here| link.strip_prefix(here));
    let (file, anchor) = match absolute.unwrap_or(link).split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (absolute.unwrap_or(link), None),
    };
    let target = match absolute {
        Some(_) => normal(Path::new(file)),
        None if link.contains("://") || link.starts_with("mailto:") => return None,
        None if file.is_empty() => page.to_owned(),
        None => normal(&page.parent().unwrap_or(page).join(file)),
    };
    if absolute.is_none() && page.starts_with("docs") && !target.starts_with("docs") {
        return Some("leads out of the book: name it by the repository's address".to_owned());
    }
    let place = root().join(&target);
    if !pages.contains_key(&target) && !place.exists() {
        return Some("leads nowhere".to_owned());
    }
    let anchor = anchor?;
    let text = pages.get(&target).cloned();
    let text = text.or_else(|| fs::read_to_string(place).ok())?;
    (!anchors(&text).contains(anchor)).then(|| "leads to no heading".to_owned())
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut problems = Vec::new();
    for (page, text) in &pages {
        for link in links(text) {
            if let Some(why) = wrong(page, &link, &pages) {
                problems.push(format!("{}: {link} {why}", page.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_page_has_one_place_in_the_book() {
    let pages = pages();
    let summary = &pages[Path::new("docs/SUMMARY.md")];
    let mut places: Vec<PathBuf> = links(summary)
        .iter()
        .map(|link| Path::new("docs").join(link))
        .collect();
    places.push("docs/SUMMARY.md".into());
    places.sort();
    let written: Vec<PathBuf> = pages
        .keys()
        .filter(|page| page.starts_with("docs"))
        .cloned()
        .collect();
    let missing: Vec<_> = written
        .iter()
        .filter(|page| !places.contains(page))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    assert_eq!(
        places, written,
        "a page of docs/SUMMARY.md is not there, or is listed twice"
    );
}

#[test]
fn a_link_that_is_wrong_is_found() {
    let pages = BTreeMap::from([
        (
            "docs/a.md".into(),
            "# A page\n\n## Two `words`: one\n".to_owned(),
        ),
        ("README.md".into(), "# Top\n".to_owned()),
    ]);
    let of = |link: &str| wrong(Path::new("docs/a.md"), link, &pages);
    assert_eq!(of("#two-words-one"), None);
    assert_eq!(of("https://example.org/x"), None);
    assert_eq!(
        of("https://github.com/warplens/warplens/blob/main/README.md#top"),
        None
    );
    assert!(of("#three").is_some());
    assert!(of("no-such-page.md").is_some());
    assert!(of("../README.md").is_some());
    assert!(of("https://github.com/warplens/warplens/blob/main/no-such-file").is_some());
    assert_eq!(
        links("a [b](c.md \"d\") `[e](f)`\n```\n[g](h)\n```\n"),
        ["c.md"]
    );
}
