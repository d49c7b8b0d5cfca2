//! Half-typed functions, kept to themselves.
//!
//! A parser that meets `x =` or `for (int i = 0; i < 4)` may take all that follows for a part of it, and then the figures of
//! all functions behind it are gone. Where each function ends can be told from its brackets. A function that does not end
//! there for the parser has the line taken away that is to blame, and one whose brackets stay open is closed before the next
//! one; what is put there is as long as what was there.
//!
//! What is done about a function depends on its own text and how the next one begins: it is kept, and while the user types the
//! broken text as a whole need not be parsed.
//!
//! What is half-typed above a function, a type or a declaration that is whole by itself (`heads`) is blank before all that, and so is
//! a bracket that is open where something at the top level begins.
//!
//! The tree depends on the text alone, though it is made from an earlier one. A parser that goes on from an earlier tree may
//! read broken text in another way than one that begins anew, but sound text it reads alike. So the tree of a broken text is
//! made from the tree of the same text with the broken parts blank, which is sound. The broken parts are functions, by their
//! verdicts, and stretches between functions, by the tree of the text without functions (the *skeleton*), which is short and
//! which typing in a function leaves as it is.

mod brackets;
mod heads;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::{Field, Kind, Language, Node, Tree, parser};
use brackets::{Bodies, Function, HalfTyped, functions, functions_and_half_typed};

/// What replaces a line that was taken away: no statement of the language.
const LOST: &str = "@;";
/// What replaces a line of one letter.
const NOTHING: &str = ";";
/// Bytes of the next function that are enough to tell whether it is kept apart.
const ENOUGH: usize = 256;
/// Functions that are mended, and functions that are looked at between one text and the next: the user types in one of them.
const MOST: usize = 4;
/// Bytes that are parsed to find the line to blame: the user waits. Beyond them all lines of the function are.
const BYTES: usize = 1 << 15;
/// Namespaces and broken code nest this deep at most.
const DEEPEST: u32 = 64;

/// A text with each of its functions kept to itself, and its tree.
#[derive(Debug, Clone)]
pub(crate) struct Mended {
    pub(crate) text: String,
    pub(crate) tree: Tree,
    pub(crate) known: Known,
}

/// An earlier text as it was mended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierMend<'a> {
    pub(crate) text: &'a str,
    pub(crate) tree: &'a Tree,
    pub(crate) known: &'a Known,
}

/// What is known of the functions of a text before anything was done about them.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// The parser finds nothing wrong with any; `text` is what it was given.
    Sound,
    /// Verdicts by what each depends on: see [`own_key`] and [`both_key`].
    Judged {
        verdicts: FxHashMap<u64, Verdict>,
        /// The bodies of those that are as they were written.
        bodies: Vec<Range<usize>>,
        last: Option<Looked>,
        /// What the tree was made from, where the text is broken.
        made_from: Option<MadeFrom>,
    },
}

/// A text and its tree, which depends on that text alone.
#[derive(Debug, Clone)]
struct Parsed {
    text: String,
    tree: Tree,
}

/// What the tree of a broken text is made from.
#[derive(Debug, Clone)]
pub(crate) struct MadeFrom {
    /// The text with its broken parts blank.
    hollow: Parsed,
    /// The text without functions.
    skeleton: Parsed,
}

/// The first function that was looked at, with how the next one begins: most likely the user types in it.
#[derive(Debug, Clone)]
pub(crate) struct Looked {
    text: String,
    tree: Tree,
}

/// What is wrong with a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Sound,
    /// Something, but it takes nothing else with it.
    Kept,
    /// Its brackets are put where they are missing, and these bytes from its start are taken away.
    Mended(Option<Range<usize>>),
    /// These bytes from its start are half a statement, without which it is sound; they are taken away.
    HalfTyped(Range<usize>),
    /// Nothing helps.
    Hopeless,
    /// It was not looked at: others before it are broken.
    Unasked,
}

/// Texts that were parsed last, and their bytes in all: one text is read in several roles, by itself and as a part of a program.
const MOST_RECENT: usize = 8;
const MOST_RECENT_BYTES: usize = 1 << 20;

/// A text that was parsed.
#[derive(Debug)]
struct Recent {
    given: String,
    language: Language,
    mended: Mended,
}

/// What was parsed last, the latest first.
static RECENT: Mutex<VecDeque<Arc<Recent>>> = Mutex::new(VecDeque::new());

/// Parses a text.
pub(crate) fn parse(text: String, language: Language, earlier: Option<EarlierMend>) -> Mended {
    let recent = || RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |one: &&Arc<Recent>| one.language == language && one.given == text;
    let known = recent().iter().find(same).map(Arc::clone);
    if let Some(known) = known {
        return known.mended.clone();
    }
    let given = text.clone();
    let mended = parse_new(text, language, earlier);
    if given.len() <= MOST_RECENT_BYTES {
        let mut recent = recent();
        recent.push_front(Arc::new(Recent {
            given,
            language,
            mended: mended.clone(),
        }));
        let mut bytes = 0;
        let mut kept = 0;
        for one in recent.iter().take(MOST_RECENT) {
            bytes += one.given.len();
            if bytes > MOST_RECENT_BYTES {
                break;
            }
            kept += 1;
        }
        recent.truncate(kept);
    }
    mended
}

fn parse_new(mut text: String, language: Language, earlier: Option<EarlierMend>) -> Mended {
    let Some(earlier) = earlier else {
        return afresh(text, language, None);
    };
    if matches!(earlier.known, Known::Sound) && earlier.text == text {
        let (tree, known) = (earlier.tree.clone(), Known::Sound);
        return Mended { text, tree, known };
    }
    let (judged, bodies, last) = earlier.known.of(earlier.text);
    let before = Some((earlier.text, earlier.tree));
    let (mut functions, half) = functions_and_half_typed(&text, Some(&bodies));
    if let Some(kept) = kept_apart(&text, &half) {
        text = kept;
        functions = brackets::functions(&text, Some(&bodies));
    }
    let verdicts: Vec<(u64, Option<Verdict>)> = (0..functions.len())
        .map(|at| {
            let own = own_key(&text, &functions[at]);
            let both = || both_key(&text, &functions[at..]);
            let verdict = judged.get(&own).or_else(|| judged.get(&both()));
            (own, verdict.cloned())
        })
        .collect();
    // Much is new: the parser is asked about all of it at once.
    let new = verdicts.iter().filter(|(_, verdict)| verdict.is_none());
    if new.count() > MOST {
        return afresh(text, language, before);
    }
    let made_from = match earlier.known {
        Known::Judged { made_from, .. } => made_from.as_ref(),
        Known::Sound => None,
    };
    judge(
        text, &functions, verdicts, last, language, before, made_from,
    )
}

/// Without anything known about the functions.
fn afresh(mut text: String, language: Language, old: Option<(&str, &Tree)>) -> Mended {
    let (_, half) = functions_and_half_typed(&text, None);
    if let Some(kept) = kept_apart(&text, &half) {
        text = kept;
    }
    let tree = sound_or_anew(&text, language, old);
    if !tree.root_node().has_error() {
        let known = Known::Sound;
        return Mended { text, tree, known };
    }
    let functions = functions(&text, None);
    let mut wrong = Vec::new();
    errors(tree.root_node(), 0, &mut wrong);
    let ends: FxHashSet<Range<usize>> = bodies(&tree).into_iter().collect();
    let sound = |function: &Function| {
        ends.contains(&function.body) && is_clear(&wrong, function.start..function.body.end)
    };
    let verdicts = functions
        .iter()
        .map(|one| (own_key(&text, one), sound(one).then_some(Verdict::Sound)))
        .collect();
    // What is sound of the text is read from this tree again.
    let whole = text.clone();
    let old = Some((whole.as_str(), &tree));
    judge(text, &functions, verdicts, None, language, old, None)
}

/// The tree of a text: from an earlier one's where nothing is broken in it, else from nothing.
fn sound_or_anew(text: &str, language: Language, old: Option<(&str, &Tree)>) -> Tree {
    let tree = parser::parse(text, language, old);
    if old.is_some() && tree.root_node().has_error() {
        return parser::parse(text, language, None);
    }
    tree
}

/// The same, from what was parsed last of texts like this one.
fn parsed(
    text: String,
    language: Language,
    last: Option<&Parsed>,
    old: Option<(&str, &Tree)>,
) -> Parsed {
    let tree = match last {
        Some(last) if last.text == text => last.tree.clone(),
        Some(last) => sound_or_anew(&text, language, Some((&last.text, &last.tree))),
        None => sound_or_anew(&text, language, old),
    };
    Parsed { text, tree }
}

/// The tree of a text whose functions have these verdicts, and what it was made from; see the module.
fn stable(
    text: &str,
    functions: &[Function],
    verdicts: &[(u64, Option<Verdict>)],
    language: Language,
    old: Option<(&str, &Tree)>,
    last: Option<&MadeFrom>,
) -> (Tree, Option<MadeFrom>) {
    let both = functions.iter().zip(verdicts);
    let broken = both.filter(|(_, (_, verdict))| !matches!(verdict, Some(Verdict::Sound)));
    let mut broken: Vec<Range<usize>> = broken
        .map(|(function, _)| function.start..function.body.end)
        .collect();
    if broken.is_empty() && last.is_none() {
        let tree = parser::parse(text, language, old);
        if !tree.root_node().has_error() {
            return (tree, None);
        }
    }
    let between = gaps(text, functions);
    let skeleton = between.iter().map(|gap| &text[gap.clone()]).collect();
    let skeleton = parsed(skeleton, language, last.map(|last| &last.skeleton), None);
    broken.extend(broken_gaps(&between, &skeleton.tree));
    broken.sort_unstable_by_key(|range| range.start);
    let hollow = blank(text, &broken);
    let last = last.map(|last| &last.hollow);
    let spaced = last.and_then(|last| parser::spaced(&hollow, (&last.text, &last.tree), language));
    let hollow = match spaced {
        Some(tree) if !broken.is_empty() => Parsed { text: hollow, tree },
        _ => parsed(hollow, language, last, old),
    };
    let tree = if broken.is_empty() {
        hollow.tree.clone()
    } else {
        parser::parse_filled(text, language, &hollow.tree, broken)
    };
    let is_broken = tree.root_node().has_error();
    (tree, is_broken.then_some(MadeFrom { hollow, skeleton }))
}

/// What is before, between and behind the functions: one more than there are of them.
fn gaps(text: &str, functions: &[Function]) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut found = Vec::with_capacity(functions.len() + 1);
    for function in functions {
        found.push(start..function.start.max(start));
        start = function.body.end.max(start);
    }
    found.push(start..text.len());
    found
}

/// Those of the stretches, which in their order make up a text with this tree, in which it has errors.
fn broken_gaps(gaps: &[Range<usize>], tree: &Tree) -> Vec<Range<usize>> {
    let mut wrong = Vec::new();
    errors(tree.root_node(), 0, &mut wrong);
    let mut end = 0;
    let mut broken = Vec::new();
    for gap in gaps {
        let start = end;
        end += gap.len();
        // What is missing has no length: it may be missing at an end.
        if !gap.is_empty() && wrong.iter().any(|one| one.start <= end && start <= one.end) {
            broken.push(gap.clone());
        }
    }
    broken
}

/// The text without what is half-typed at its top level, if anything is.
fn kept_apart(text: &str, half: &HalfTyped) -> Option<String> {
    if half.lost.is_empty() && half.ended.is_empty() {
        return None;
    }
    let mut kept = blank(text, &half.lost);
    for at in &half.ended {
        kept.replace_range(at..&(at + 1), ";");
    }
    Some(kept)
}

/// The text with spaces in place of these parts, line feeds kept.
fn blank(text: &str, parts: &[Range<usize>]) -> String {
    let mut bytes = text.to_owned().into_bytes();
    for part in parts {
        for byte in &mut bytes[part.clone()] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    // Functions begin and end beside ASCII: whole characters were blanked.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Finds the verdicts that are open (each behind its function's own key), does what they say and parses the text.
fn judge(
    text: String,
    functions: &[Function],
    mut verdicts: Vec<(u64, Option<Verdict>)>,
    last: Option<Looked>,
    language: Language,
    old: Option<(&str, &Tree)>,
    made_from: Option<&MadeFrom>,
) -> Mended {
    let mut before = last.as_ref();
    let mut looked = None;
    let mut broken = 0;
    for (at, (_, verdict)) in verdicts.iter_mut().enumerate() {
        if matches!(verdict, None | Some(Verdict::Unasked)) {
            *verdict = Some(if broken == MOST {
                Verdict::Unasked
            } else {
                let (verdict, one) = verdict_of(&text, &functions[at..], language, before.take());
                looked.get_or_insert(one);
                verdict
            });
        }
        let wrong = matches!(
            verdict,
            Some(Verdict::Mended(_) | Verdict::HalfTyped(_) | Verdict::Hopeless)
        );
        broken = MOST.min(broken + usize::from(wrong));
    }
    let mended = obeyed(&text, functions, &verdicts);
    let read = mended.as_deref().unwrap_or(&text);
    let (tree, made_from) = stable(read, functions, &verdicts, language, old, made_from);
    let known = known(&text, functions, verdicts, looked.or(last), made_from);
    let text = mended.unwrap_or(text);
    Mended { text, tree, known }
}

/// The text after what the verdicts say is done about its first broken functions, if anything is.
fn obeyed(
    text: &str,
    functions: &[Function],
    verdicts: &[(u64, Option<Verdict>)],
) -> Option<String> {
    let mut mended: Option<String> = None;
    let mut broken = 0;
    for (function, (_, verdict)) in functions.iter().zip(verdicts) {
        match verdict {
            Some(Verdict::Mended(lost)) => {
                let mut now = mended.unwrap_or_else(|| text.to_owned());
                if let Some(missing) = &function.missing {
                    now = closed(&now, missing);
                }
                if let Some(lost) = lost {
                    let lost = lost.start + function.start..lost.end + function.start;
                    now = without(&now, lost);
                }
                mended = Some(now);
            }
            Some(Verdict::HalfTyped(lost)) => {
                let lost = lost.start + function.start..lost.end + function.start;
                mended = Some(without(mended.as_deref().unwrap_or(text), lost));
            }
            Some(Verdict::Hopeless) => {}
            _ => continue,
        }
        broken += 1;
        if broken == MOST {
            break;
        }
    }
    mended
}

/// Verdicts under what each depends on.
fn known(
    text: &str,
    functions: &[Function],
    verdicts: Vec<(u64, Option<Verdict>)>,
    last: Option<Looked>,
    made_from: Option<MadeFrom>,
) -> Known {
    let mut known = FxHashMap::default();
    let mut bodies = Vec::with_capacity(functions.len());
    for (at, (own, verdict)) in verdicts.into_iter().enumerate() {
        let Some(verdict) = verdict else { continue };
        let changed = matches!(verdict, Verdict::Mended(_) | Verdict::HalfTyped(_));
        if functions[at].missing.is_none() && !changed {
            bodies.push(functions[at].body.clone());
        }
        let key = match verdict {
            Verdict::Sound => own,
            _ => both_key(text, &functions[at..]),
        };
        known.insert(key, verdict);
    }
    Known::Judged {
        verdicts: known,
        bodies,
        last,
        made_from,
    }
}

impl Known {
    /// Verdicts by key, and what else is known of the text; of a sound one it is found in it.
    fn of<'a>(
        &'a self,
        text: &'a str,
    ) -> (Cow<'a, FxHashMap<u64, Verdict>>, Bodies<'a>, Option<Looked>) {
        let (verdicts, ranges, last) = match self {
            Known::Judged {
                verdicts,
                bodies,
                last,
                ..
            } => (
                Cow::Borrowed(verdicts),
                Cow::Borrowed(bodies.as_slice()),
                last.clone(),
            ),
            Known::Sound => {
                let functions = functions(text, None);
                let keys = functions.iter().map(|one| own_key(text, one));
                let verdicts = keys.map(|key| (key, Verdict::Sound)).collect();
                let bodies = functions.into_iter().map(|one| one.body).collect();
                (Cow::Owned(verdicts), Cow::Owned(bodies), None)
            }
        };
        (verdicts, Bodies { text, ranges }, last)
    }
}

/// What a sound function's verdict is kept under: its text.
fn own_key(text: &str, function: &Function) -> u64 {
    key(&text[function.start..function.body.end], 0)
}

/// What the verdict of the first of these functions is kept under where it is broken: its text, and how the next one begins.
fn both_key(text: &str, functions: &[Function]) -> u64 {
    let own = &functions[0];
    let end = functions
        .get(1)
        .map_or(own.body.end, |next| beginning(text, next));
    key(&text[own.start..end], 1 + end - own.body.end)
}

fn key(text: &str, next: usize) -> u64 {
    let mut hasher = FxHasher::default();
    (text, next).hash(&mut hasher);
    hasher.finish()
}

/// Looks at the first of these functions. `last` is an earlier text of it.
fn verdict_of(
    text: &str,
    functions: &[Function],
    language: Language,
    last: Option<&Looked>,
) -> (Verdict, Looked) {
    let function = &functions[0];
    let inner = |range: &Range<usize>| range.start - function.start..range.end - function.start;
    let body = inner(&function.body);
    let mut wanted = vec![body.clone()];
    let mut alone = text[function.start..function.body.end].to_owned();
    if let Some(next) = functions.get(1) {
        let end = beginning(text, next);
        alone.push_str(&text[function.body.end..end]);
        if end < next.body.end {
            alone.push('}');
        }
        if next.missing.is_none() {
            wanted.push(next.body.start - function.start..alone.len());
        }
    }
    let open = alone.clone();
    if let Some((place, what)) = &function.missing {
        alone = closed(&alone, &(inner(place), what.clone()));
    }
    let holds = |tree: &Tree| bodies(tree).starts_with(&wanted);
    // From a broken one a broken one is made, which is read again: most of what is typed into a line.
    let before = last.filter(|last| !last.tree.root_node().has_error());
    let before = before.map(|last| (last.text.as_str(), &last.tree));
    let mut tree = parser::parse(&alone, language, before);
    // Broken code is not always read from an earlier tree as it is read afresh.
    if before.is_some() && tree.root_node().has_error() {
        tree = parser::parse(&alone, language, None);
    }
    let sound = function.missing.is_none() && is_sound(&tree, 0..body.end);
    let verdict = if sound && holds(&tree) {
        Verdict::Sound
    } else if let Some(lost) = half_typed(&open, &alone, &body, &tree, language) {
        Verdict::HalfTyped(lost)
    } else if holds(&tree) {
        match function.missing {
            Some(_) => Verdict::Mended(None),
            None => Verdict::Kept,
        }
    } else if function.missing.is_none()
        && !parser::parse(&alone[..body.end], language, None)
            .root_node()
            .has_error()
    {
        // The next one is to blame.
        Verdict::Sound
    } else {
        match line_to_blame(&alone, &body, &tree, language, holds) {
            Some(lost) => Verdict::Mended(Some(lost)),
            None => Verdict::Hopeless,
        }
    };
    (verdict, Looked { text: alone, tree })
}

/// Behind the first statements of a function; behind all of it where these are not told easily.
fn beginning(text: &str, function: &Function) -> usize {
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    for at in function.body.clone() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' | b'\'' => break,
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => break,
            b';' if depth == 1 && at - function.body.start >= ENOUGH => return at + 1,
            _ => {}
        }
    }
    function.body.end
}

/// The line of a function that is half a statement and without which nothing is wrong with it: the one where the parser stumbles, or
/// the one before, whose statement goes on into it; where brackets are missing, one that has them. `read` is the text with its
/// brackets put, which `tree` is of.
fn half_typed(
    text: &str,
    read: &str,
    body: &Range<usize>,
    tree: &Tree,
    language: Language,
) -> Option<Range<usize>> {
    let mut wrong = Vec::new();
    errors(tree.root_node(), 0, &mut wrong);
    let inside = body.start + 1..body.end.saturating_sub(1).max(body.start + 1);
    let first = wrong.iter().find(|at| at.start < inside.end);
    let first = first.map_or(inside.end, |at| at.start.max(inside.start));
    let mut lines: Vec<Range<usize>> = Vec::new();
    let mut stumbles = 0;
    let mut at = inside.start;
    for line in text.get(inside)?.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        if line.trim().is_empty() {
            continue;
        }
        if range.start <= first {
            stumbles = lines.len();
        }
        let start = range.start + (line.len() - line.trim_start().len());
        lines.push(start..start + line.trim().len());
    }
    let near = stumbles.saturating_sub(1)..=stumbles;
    let told = lines.into_iter().enumerate().filter_map(|(at, line)| {
        let statement = &text[line.clone()];
        if statement.contains(['{', '}']) || statement.starts_with(['#', '/', '*']) {
            return None;
        }
        let open = count(statement, b"([") != count(statement, b")]");
        if !open && is_head(last_statement(statement)) {
            return None;
        }
        let half = !statement.ends_with(';') || open;
        (half && (near.contains(&at) || open)).then_some(line)
    });
    let helps = |lost: &Range<usize>| {
        let tried = without(text, lost.clone());
        let tree = parser::parse(&tried, language, Some((read, tree)));
        let mut wrong = Vec::new();
        errors(tree.root_node(), 0, &mut wrong);
        let own = |at: &Range<usize>| lost.start <= at.start && at.end <= lost.end;
        wrong.iter().all(own) && bodies(&tree).first() == Some(body)
    };
    told.take(MOST).find(helps)
}

/// What a statement begins with whose body is on the next line: that the grammar does not take a directive in front of the body
/// does not make it half typed.
fn is_head(line: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let rest = line.trim_start_matches(is_word);
    let condition = |text: &str| {
        let mut depth = 0_usize;
        let closes = text.bytes().position(|byte| {
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        text.starts_with('(') && closes.is_some_and(|at| at + 1 == text.len())
    };
    match &line[..line.len() - rest.len()] {
        "for" | "while" | "if" | "switch" => condition(rest.trim_start()),
        "else" => {
            rest.is_empty()
                || rest
                    .strip_prefix(" if")
                    .is_some_and(|rest| condition(rest.trim_start()))
        }
        "do" => rest.is_empty(),
        _ => false,
    }
}

/// The last of the statements that begin on a line.
fn last_statement(line: &str) -> &str {
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    line[start..].trim_start()
}

/// How often one of these bytes is in a text.
fn count(text: &str, wanted: &[u8]) -> usize {
    text.bytes().filter(|byte| wanted.contains(byte)).count()
}

/// The line without which a text that begins with a function `holds` what it should; else all that the function does.
fn line_to_blame(
    text: &str,
    body: &Range<usize>,
    tree: &Tree,
    language: Language,
    holds: impl Fn(&Tree) -> bool,
) -> Option<Range<usize>> {
    let inside = body.start + 1..body.end - 1;
    // Closed right behind its brace: there is nothing in it.
    if inside.len() < LOST.len() {
        return None;
    }
    let mut lines = Vec::new();
    let mut at = inside.start;
    for line in text[inside.clone()].split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let trimmed = line.trim();
        // One with a brace is part of how the function is built.
        if trimmed.len() >= LOST.len() && !trimmed.contains(['{', '}']) {
            let start = range.start + (line.len() - line.trim_start().len());
            lines.push(start..start + trimmed.len());
        }
    }
    // What is half-typed seldom has its semicolon: those that end with one are tried last.
    lines.sort_by_key(|line| text[line.clone()].ends_with(';'));
    let helps = |range: &Range<usize>| {
        let tried = without(text, range.clone());
        holds(&parser::parse(&tried, language, Some((text, tree))))
    };
    let most = BYTES / text.len().max(1);
    lines.into_iter().take(most).chain([inside]).find(helps)
}

/// The bodies of functions at the top level, namespaces and broken code looked through.
fn bodies(tree: &Tree) -> Vec<Range<usize>> {
    fn within(node: Node, depth: u32, found: &mut Vec<Range<usize>>) {
        for child in node.children() {
            match child.kind() {
                Kind::FunctionDefinition => {
                    found.extend(child.field(Field::Body).map(|body| body.byte_range()));
                }
                Kind::TemplateDeclaration
                | Kind::NamespaceDefinition
                | Kind::DeclarationList
                | Kind::LinkageSpecification
                | Kind::Error
                    if depth < DEEPEST =>
                {
                    within(child, depth + 1, found);
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    within(tree.root_node(), 0, &mut found);
    found
}

/// Whether the parser finds nothing wrong in these bytes, nor right beside them.
fn is_sound(tree: &Tree, range: Range<usize>) -> bool {
    let mut wrong = Vec::new();
    errors(tree.root_node(), 0, &mut wrong);
    is_clear(&wrong, range)
}

/// Whether none of these places, which are in order, is in these bytes or right beside them.
fn is_clear(wrong: &[Range<usize>], range: Range<usize>) -> bool {
    let next = wrong.partition_point(|at| at.end < range.start);
    wrong.get(next).is_none_or(|at| range.end < at.start)
}

/// Where a tree has errors, in order; what is missing may stand behind the comments that follow, so that its parent counts.
fn errors(node: Node, depth: u32, found: &mut Vec<Range<usize>>) {
    let missing = node.children().any(|child| child.is_missing());
    if node.is_error() || missing || depth == DEEPEST {
        found.push(node.byte_range());
        return;
    }
    for child in node.children().filter(Node::has_error) {
        errors(child, depth + 1, found);
    }
}

/// The text with brackets put at the end of the white space where they are missing.
fn closed(text: &str, (place, what): &(Range<usize>, Vec<u8>)) -> String {
    // Braces first, if there is not place for all.
    let what = &what[what.len().saturating_sub(place.len())..];
    let mut out = text.to_owned();
    let put = String::from_utf8_lossy(what);
    out.replace_range(place.end - what.len()..place.end, &put);
    out
}

/// The text with [`LOST`] and spaces in place of a part of it; one letter is nothing to tell of.
fn without(text: &str, lost: Range<usize>) -> String {
    let kept = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..lost.start]);
    let put = if lost.len() < LOST.len() {
        NOTHING
    } else {
        LOST
    };
    out.push_str(put);
    out.extend(
        text.as_bytes()[lost.start + put.len()..lost.end]
            .iter()
            .map(|byte| kept(*byte)),
    );
    out.push_str(&text[lost.end..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &str = "// The next.\n__global__ void k(float *a) {\n  a[0] = 1;\n}\n";

    fn mended(text: &str) -> Mended {
        parse(text.to_owned(), Language::Cuda, None)
    }

    /// The function, and one behind it, are found; `expected` is what became of it.
    #[track_caller]
    fn check(function: &str, expected: &str) {
        let text = format!("{function}{NEXT}");
        let tree = parser::parse(&text, Language::Cuda, None);
        assert!(bodies(&tree).len() < 2, "the parser keeps it apart itself");
        let mended = mended(&text);
        assert_eq!(bodies(&mended.tree).len(), 2, "{}", mended.text);
        assert_eq!(mended.text, format!("{expected}{NEXT}"));
    }

    #[test]
    fn a_line_that_takes_the_rest_with_it_is_taken_away() {
        check(
            "void f(int x) {\n  int y = x;\n  out[x + y - 1] =\n}\n",
            "void f(int x) {\n  int y = x;\n  @;              \n}\n",
        );
        check(
            "void f(int *p) {\n  for (int i = 0; i < 4)\n  for (int j = 0; j < 4; ++j) {\n    p[j] = 0;\n  }\n}\n",
            "void f(int *p) {\n  @;                    \n  for (int j = 0; j < 4; ++j) {\n    p[j] = 0;\n  }\n}\n",
        );
    }

    #[test]
    fn half_a_statement_takes_no_other_with_it() {
        for (half, rest) in [
            ("float", "k<<<1, 2>>>(a);"),
            ("p", "k<<<1, 2>>>(a);"),
            ("for (int", "k<<<1, 2>>>(a);"),
            ("out[i + 1", "a[0] = a[1];"),
            ("cudaMalloc(&b, 4", "cudaFree(b);"),
        ] {
            let function = format!("void f(float *a) {{\n  int x = 1;\n  {half}\n  {rest}\n}}\n");
            let mended = mended(&format!("{function}{NEXT}"));
            let lines: Vec<&str> = mended.text.lines().map(str::trim).collect();
            let put = if half.len() == 1 { ";" } else { "@;" };
            assert_eq!(lines[1..=4], ["int x = 1;", put, rest, "}"], "{half}");
            assert_eq!(bodies(&mended.tree).len(), 2);
        }
    }

    #[test]
    fn the_head_of_a_loop_is_not_half_a_statement() {
        for head in [
            "for (int i = 0; i < 4; ++i)",
            "if (n)",
            "while (n)",
            "int x = 0; for (int i = 0; i < 4; ++i)",
            "f(a); n = 2; if (n)",
        ] {
            let function = format!(
                "void f(float *a, int n) {{\n  {head}\n    #pragma unroll\n    for (int j = 0; j < 2; ++j) a[j] = 0;\n}}\n"
            );
            let text = format!("{function}{NEXT}");
            assert_eq!(mended(&text).text, text);
        }
    }

    #[test]
    fn a_function_without_an_end_ends_before_the_next() {
        check(
            "void f(int *p) {\n  for (int j = 0; j < 4; ++j) {\n    p[j] = 0;\n\n\n\n",
            "void f(int *p) {\n  for (int j = 0; j < 4; ++j) {\n    p[j] = 0;\n;}}",
        );
    }

    /// Each text along the way is made of what it is made of when it is opened.
    #[track_caller]
    fn type_all(texts: impl IntoIterator<Item = String>) {
        let mut last: Option<Mended> = None;
        for text in texts {
            let earlier = last.as_ref().map(|last| EarlierMend {
                text: &last.text,
                tree: &last.tree,
                known: &last.known,
            });
            let typed = parse(text.clone(), Language::Cuda, earlier);
            let opened = mended(&text);
            assert_eq!(typed.text, opened.text, "typed and opened:\n{text}");
            let sexp = |mended: &Mended| mended.tree.raw().root_node().to_sexp();
            assert_eq!(sexp(&typed), sexp(&opened), "{text}");
            last = Some(typed);
        }
    }

    #[test]
    fn what_is_typed_is_mended_as_if_it_were_opened() {
        let before = "void e() {\n  g();\n}\nvoid f(int *p, int x) {\n";
        for typed in [
            "  for (int i = 0; i < 4; ++i) {\n    p[i] = x *\n      (i + 1);\n  }\n  p[0] = 1;\n",
            "  int y = x;\n  if (y) { p[1] = \"}\"[0]; } // )\n  p[x + y - 1] = 'a' ? y : x;\n",
            "  auto l = [=](int z) { return z * x; };\n  while (x < 3) x += l(1);\n",
        ] {
            for behind in ["}\n", ""] {
                let texts = (0..=typed.len())
                    .map(|end| format!("{before}{}\n{behind}{NEXT}", &typed[..end]));
                type_all(texts.clone());
                type_all(texts.rev());
            }
        }
    }

    #[test]
    fn what_is_typed_between_functions_is_read_as_if_it_were_opened() {
        let first = "namespace a {\nvoid e(int *p) {\n  p[0] = 1;\n}\n";
        for typed in [
            "}\nconst int WIDTH = 4;\n",
            "}\n}\nint x = 3;\n",
            "struct S { int a; float b[4]; };\n}\n",
            "template <class T> __device__ T f(T x, int n) { return x * n; }\n}\n",
            "}\nint t[] = {1, 2,\n  3};\nstatic int u = f(1, 2), v;\n",
            "}\nclass A : public B {\n  A(int x) {}\n  int y;\n}\n;\n",
        ] {
            let texts = (0..=typed.len()).map(|end| format!("{first}{}\n{NEXT}", &typed[..end]));
            type_all(texts.clone());
            type_all(texts.rev());
        }
        // A statement is typed in a function while something else stays broken.
        let statement = "  p[1] = p[0] * 2;\n";
        for broken in ["}\n", "int x = ;\n", "void g(\n"] {
            let texts = (0..=statement.len())
                .map(|end| format!("void e(int *p) {{\n{}}}\n{broken}{NEXT}", &statement[..end]));
            type_all(texts);
        }
    }

    #[test]
    fn white_space_is_typed_where_a_line_feed_matters() {
        // A function is broken all along: its text is white space in what is parsed of the rest.
        let broken = "void g(int *p) {\n  p[0] = ;\n}\n";
        for (before, after) in [
            ("#define A 1 + 2\n", "#define A 1 + \n2\n"),
            ("int a; // b int c;\n", "int a; // b \nint c;\n"),
            ("#define A 1 \\\n  + 2\n", "#define A 1 \\\n  \n+ 2\n"),
            ("int a;\n  int b;\n", "int a;\n\n    int b;\n"),
            ("const char *s = \" a\";\n", "const char *s = \"   a\";\n"),
        ] {
            let texts = [before, after, before].map(|text| format!("{text}{broken}{NEXT}"));
            type_all(texts);
        }
    }

    #[test]
    fn what_is_broken_between_functions_is_found_and_nothing_else() {
        let broken = |text: &str| {
            let functions = functions(text, None);
            let between = gaps(text, &functions);
            let skeleton: String = between.iter().map(|gap| &text[gap.clone()]).collect();
            let tree = parser::parse(&skeleton, Language::Cuda, None);
            let found = broken_gaps(&between, &tree).into_iter();
            found
                .map(|gap| text[gap].trim().to_owned())
                .collect::<Vec<_>>()
        };
        let sound = format!("namespace a {{\n{NEXT}}}\nconst int WIDTH = 4;\n{NEXT}");
        assert_eq!(broken(&sound), Vec::<String>::new());
        let half = format!("{NEXT}const int W = ;\n{NEXT}int x;\n");
        assert_eq!(broken(&half), ["const int W = ;"]);
    }

    #[test]
    fn many_broken_functions_are_mended_as_they_come() {
        let broken = |count: usize, sound: usize| {
            let functions = (0..count).map(|k| {
                let end = if k < sound { "1;" } else { "" };
                format!("void f{k}(int *p) {{\n  p[{k}] = {end}\n}}\n")
            });
            let text: String = functions.collect();
            text + NEXT
        };
        type_all((0..12).map(|sound| broken(12, sound)));
        type_all((0..12).rev().map(|sound| broken(12, sound)));
    }

    #[test]
    fn junk_is_survived() {
        for text in [
            "",
            "}",
            "{",
            "f() {\"",
            "f() {'",
            "/*",
            "//",
            "f(){x/*",
            "f(){x}",
            "é(){é}",
            "\\",
            "f(){\"\\",
            "f(){",
            "void f() {//",
            "void f() {//x\nx =",
        ] {
            for before in ["", "void f() {\n", "int x = {(\n"] {
                let text = format!("{before}{text}\n{NEXT}");
                assert_eq!(mended(&text).text.len(), text.len());
            }
        }
    }
}
