//! How findings speak: the form of a headline and of what is below it. `docs/style.md` says it for people.

use warplens_db::{PlacedFinding, PlacedFix};

/// Letters of a headline, at most.
const LONGEST: usize = 100;
/// From this gain on it is told as a number.
const VISIBLE: f64 = 1.05;
/// What no finding says, and what it says in its place.
const BANNED: [(&str, &str); 12] = [
    (
        "faster (predicted)",
        "every time is a prediction; mark what is estimated otherwise",
    ),
    ("cost of ideal", "`32 sectors per request (ideal 4)`"),
    ("under 2 %", "`no visible gain`"),
    ("faster without", "`1.33x` first"),
    ("kernel time unchanged", "`no visible gain`"),
    ("please", "the imperative alone"),
    ("you should", "the imperative alone"),
    ("might want", "the imperative alone"),
    ("a thread of", "`per thread`"),
    ("maybe", "what it depends on"),
    ("very", "the figure"),
    ("->", "`32 passes instead of 1`"),
];

/// What no title of an action says besides.
const BANNED_IN_TITLES: [(&str, &str); 2] = [
    ("transaction", "`1 sector`"),
    ("transactions", "`32 sectors`"),
];

/// What is wrong with the words of a finding, each as a line.
pub(crate) fn problems(finding: &PlacedFinding) -> Vec<String> {
    let headline = finding.message.as_str();
    let mut found = Vec::new();
    let mut say = |what: String| found.push(format!("{}: {what}: {headline}", finding.rule));
    let letters = headline.chars().count();
    if letters > LONGEST {
        say(format!("{letters} letters"));
    }
    for line in std::iter::once(headline).chain(finding.details.iter().map(String::as_str)) {
        if line.contains('\n') || line.trim() != line || line.is_empty() {
            say(format!("no line of its own: {line:?}"));
        }
        if line.matches('`').count() % 2 != 0 {
            say(format!("half of a code mark: {line}"));
        }
        if percents_without_a_space(line) {
            say(format!("a percentage without a space: {line}"));
        }
    }
    for (phrase, instead) in BANNED
        .into_iter()
        .filter(|(phrase, _)| says(headline, phrase))
    {
        say(format!("`{phrase}` where {instead} belongs"));
    }
    let told = headline
        .split_once("x: ")
        .and_then(|(gain, _)| gain.parse::<f64>().ok());
    let category = finding.rule.split('/').next().unwrap_or_default();
    match told {
        Some(gain) if (gain / finding.gain - 1.0).abs() > 0.006 => {
            say(format!("says {gain} of a gain of {}", finding.gain));
        }
        Some(_) if finding.gain < VISIBLE => say("a gain that no profiler shows".to_owned()),
        None if finding.gain >= VISIBLE => say(format!("keeps a gain of {} back", finding.gain)),
        _ => {}
    }
    let first = headline
        .split_once("x: ")
        .map_or(headline, |(_, what)| what);
    if first.starts_with(char::is_uppercase) {
        say("a capital letter".to_owned());
    }
    if first.starts_with(|c: char| c.is_ascii_digit())
        && !["reg", "config", "occ"].contains(&category)
    {
        say("a figure before what to do".to_owned());
    }
    found
}

/// What is wrong with the title of an action, each as a line.
pub(crate) fn problems_of_title(fix: &PlacedFix) -> Vec<String> {
    let title = fix.title.as_str();
    let mut found = Vec::new();
    let mut say = |what: String| found.push(format!("{}: {what}: {title}", fix.rule));
    let letters = title.chars().count();
    if letters > LONGEST {
        say(format!("{letters} letters"));
    }
    if title.contains('\n') || title.trim() != title {
        say("no line of its own".to_owned());
    }
    if !title.starts_with(char::is_uppercase) {
        say("no capital letter".to_owned());
    }
    if !title.matches('`').count().is_multiple_of(2) {
        say("half of a code mark".to_owned());
    }
    if percents_without_a_space(title) {
        say("a percentage without a space".to_owned());
    }
    let banned = BANNED.into_iter().chain(BANNED_IN_TITLES);
    for (phrase, instead) in banned.filter(|(phrase, _)| says(title, phrase)) {
        say(format!("`{phrase}` where {instead} belongs"));
    }
    let told = title.split_once("x faster").and_then(|(before, _)| {
        let gain = before.rsplit(' ').next()?;
        gain.parse::<f64>().ok()
    });
    match told {
        Some(gain) if (gain / fix.gain - 1.0).abs() > 0.006 => {
            say(format!("says {gain} of a gain of {}", fix.gain));
        }
        None if fix.gain >= VISIBLE => say(format!("keeps a gain of {} back", fix.gain)),
        _ => {}
    }
    found
}

/// True where a text has a phrase as whole words; code that is quoted says what it likes.
fn says(text: &str, phrase: &str) -> bool {
    let words: String = text.split('`').step_by(2).collect();
    let words = format!(" {} ", words.to_lowercase());
    let letters = |c: char| c.is_alphabetic();
    words.match_indices(phrase).any(|(at, _)| {
        !words[..at].ends_with(letters) && !words[at + phrase.len()..].starts_with(letters)
    })
}

fn percents_without_a_space(line: &str) -> bool {
    let words: Vec<&str> = line.split('`').step_by(2).collect();
    let words = words.concat();
    words
        .match_indices('%')
        .any(|(at, _)| words[..at].ends_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn what_is_wrong_is_seen() {
    let mut finding = PlacedFinding {
        rule: "smem/bank-conflict",
        severity: warplens_db::Severity::Warning,
        range: 0..1,
        message: "1.33x: pad `tile` (32 passes per request, ideal 1)".to_owned(),
        details: vec!["neighbouring threads are 32 words apart".to_owned()],
        gain: 1.333,
        related: Vec::new(),
        callee: None,
        kernel: None,
    };
    assert_eq!(problems(&finding), [""; 0]);
    for wrong in [
        "pad `tile` (32 passes)",
        "1.50x: pad `tile`",
        "1.33x: Pad `tile`",
        "1.33x: pad `tile",
        "1.33x: 32 passes per request",
        "1.33x: pad `tile`: 32 -> 1",
        "1.33x: pad `tile`, saves 20%",
        &format!("1.33x: pad {}", "tile ".repeat(20).trim()),
    ] {
        wrong.clone_into(&mut finding.message);
        assert_ne!(problems(&finding), [""; 0], "{wrong}");
    }
}

#[test]
fn what_is_wrong_with_a_title_is_seen() {
    let mut fix = PlacedFix {
        title: "Pad `tile` to [32][33]: 32 passes → 1, occupancy 100 % → 88 %, 1.33x faster"
            .to_owned(),
        rule: "smem/bank-conflict",
        edits: Vec::new(),
        preferred: true,
        complete: true,
        gain: 1.333,
    };
    assert_eq!(problems_of_title(&fix), [""; 0]);
    for wrong in [
        "Pad `tile` to [32][33]: 32 passes -> 1, 1.33x faster",
        "Pad `tile` to [32][33]: 32 passes → 1",
        "Pad `tile` to [32][33]: 32 passes → 1, 1.50x faster",
        "pad `tile`, 1.33x faster",
        "Pad `tile, 1.33x faster",
        "Pad `tile`: occupancy 100% → 88%, 1.33x faster",
        "Swap threadIdx.x and .y: 32 transactions → 4, 1.33x faster",
        &format!("Pad {}, 1.33x faster", "tile ".repeat(20).trim()),
    ] {
        wrong.clone_into(&mut fix.title);
        assert_ne!(problems_of_title(&fix), [""; 0], "{wrong}");
    }
}

/// The pairs of `docs/style.md`: before, after.
fn pairs() -> Vec<(String, String)> {
    let page = include_str!("../../../../docs/style.md");
    let rows = page.lines().filter_map(|line| {
        let (before, after) = line
            .strip_prefix("| ")?
            .strip_suffix(" |")?
            .split_once(" | ")?;
        Some((before.to_owned(), after.to_owned()))
    });
    let of_headlines = |(before, _): &(String, String)| before != "before" && before != "---";
    rows.filter(of_headlines).collect()
}

#[test]
fn the_pairs_of_the_style_page_pass_and_fail_as_it_says() {
    let pairs = pairs();
    assert!(pairs.len() >= 30, "{} pairs", pairs.len());
    for (before, after) in pairs {
        let told = |headline: &str| {
            let (gain, _) = headline.split_once("x: ")?;
            gain.parse::<f64>().ok()
        };
        let gain = told(&after);
        let finding = |message: String| PlacedFinding {
            rule: "mem/strided",
            severity: warplens_db::Severity::Warning,
            range: 0..1,
            message,
            details: Vec::new(),
            gain: gain.unwrap_or(1.0),
            related: Vec::new(),
            callee: None,
            kernel: None,
        };
        assert_ne!(problems(&finding(before.clone())), [""; 0], "{before}");
        assert_eq!(problems(&finding(after)), [""; 0]);
    }
}
