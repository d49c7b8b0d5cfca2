//! What a word of a `warplens.toml` means: a GPU's profile, a rule.

use std::fmt::Write as _;
use std::ops::Range;

use ropey::Rope;
use warplens_db::{Profile, Profiles};
use warplens_report::figure::{bytes, number};

/// Where the pages of the GPUs are on the web.
const PAGES: &str = "https://github.com/warplens/warplens/blob/main/docs/gpus";

/// Bytes of the word at a byte and its page; `None` for one that is neither a GPU nor a rule.
pub fn at(rope: &Rope, byte: usize, profiles: &Profiles) -> Option<(Range<usize>, String)> {
    let byte = byte.min(rope.len_bytes());
    let line = rope.byte_to_line(byte);
    let start = rope.line_to_byte(line);
    let text = rope.line(line).to_string();
    let word = word_at(&text, byte - start)?;
    let name = &text[word.clone()];
    let key = text.split('=').next().unwrap_or_default().trim();
    let said = if let Some(rule) = warplens_advice::find(name) {
        self::rule(rule.id, rule.title, rule.severity, rule.explain)
    } else if let Some(profile) = profiles.get(name) {
        gpu(&profile)
    } else {
        // A short name is one where a GPU is asked for: `h100` may be a kernel's name elsewhere.
        let asks = matches!(key, "gpu" | "compare");
        let named = profiles.named(name).filter(|_| asks && name != key);
        gpu(&*named?)
    };
    Some((start + word.start..start + word.end, said))
}

/// The letters of ids around a place in a line; none in a comment.
fn word_at(line: &str, at: usize) -> Option<Range<usize>> {
    let of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let before = line.get(..at)?;
    let mut quoted = false;
    for letter in before.chars() {
        quoted ^= letter == '"';
        if letter == '#' && !quoted {
            return None;
        }
    }
    let start = before.trim_end_matches(of_word).len();
    let rest = &line[start..];
    let end = start + rest.find(|c| !of_word(c)).unwrap_or(rest.len());
    (start < end).then_some(start..end)
}

/// The figures that decide most, and where the others are.
fn gpu(profile: &Profile) -> String {
    let mut out = format!(
        "**{}** (`{}`), {} {}\n\n",
        profile.name,
        profile.id,
        profile.vendor.name(),
        profile.architecture
    );
    let l2 = profile.l2_bytes.map(|l2| format!("{} of L2, ", bytes(l2)));
    let _ = writeln!(
        out,
        "{} SMs at {} MHz, {} GB/s of device memory, {}{} of shared memory per SM, {} warps of {} per SM\n",
        profile.sms,
        number(profile.sm_clock_mhz),
        number(profile.dram_bandwidth_gb_s),
        l2.unwrap_or_default(),
        bytes(u64::from(profile.shared_per_sm)),
        profile.max_warps_per_sm,
        profile.warp_size,
    );
    let _ = writeln!(
        out,
        "[All figures and their sources]({PAGES}/{}.md)",
        profile.architecture
    );
    out
}

/// What a rule says of itself, shortly.
fn rule(id: &str, title: &str, severity: &str, page: &str) -> String {
    let detects = section(page, "## What it detects");
    let costs = section(page, "## Why it costs");
    format!(
        "**{id}**: {title}\n\n{detects}\n\n{costs}\n\nSeverity: {severity}. [The whole page]({})\n",
        warplens_advice::href(id)
    )
}

/// The first paragraph under a heading.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let rest = page.split_once(heading).map_or("", |(_, rest)| rest);
    rest.trim_start()
        .split("\n\n")
        .next()
        .unwrap_or_default()
        .trim_end()
}
