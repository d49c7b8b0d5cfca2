//! Which branches of conditionals that nothing decides are read.
//!
//! In: a text, its undecided conditionals. Out: what is assumed to take the first branch of one, and the branches with kernels in them
//! that are left out.

use std::ops::Range;

use warplens_syntax::preprocess::UndecidedConditional;

use crate::kinds::may_hold_kernels;

/// Branches that nothing decided of which each is looked at.
const MOST_ALTERNATIVES: usize = 6;
/// Conditionals of one text whose name is looked for in its code.
const MOST_TESTED: usize = 16;
/// Places of such a name that are looked at.
const MOST_USES: usize = 1000;

/// What the first branch assumes of each conditional that takes none, where it has several or where the branch
/// only includes headers, of which one is there (`finds`), and defines names.
pub(crate) fn first_of_several(
    source: &str,
    undecided: &[UndecidedConditional],
    finds: &dyn Fn(&str, bool) -> bool,
) -> Vec<(String, String)> {
    let includes = |range: &Range<usize>| {
        source.get(range.clone()).is_some_and(|text| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            // What is in a header of the system is known either way.
            lines.clone().all(|line| line.starts_with(['#', '/', '*']))
                && text.contains("#include")
                && lines.clone().any(|line| {
                    spells_by_macro(line)
                        || line.starts_with("#define")
                        || included(line).is_some_and(|(spelled, system)| finds(spelled, system))
                })
        })
    };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut left = MOST_TESTED;
    for conditional in undecided {
        let [first, rest @ ..] = conditional.branches.as_slice() else {
            continue;
        };
        // `#else #error …` is no branch to take.
        let refuses = |range: &Range<usize>| {
            source.get(range.clone()).is_some_and(|text| {
                let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                text.contains("#error") && lines.all(|line| line.starts_with(['#', '/', '*']))
            })
        };
        let none = conditional
            .branches
            .iter()
            .all(|branch| !branch.taken || refuses(&branch.range));
        if !none || (rest.is_empty() && !includes(&first.range)) {
            // `#if WIDTH == 1 … #endif`, or `#else` with others in it, where the code that is left uses WIDTH: it
            // cannot do without.
            let [(name, Some(value))] = first.assume.as_slice() else {
                continue;
            };
            let read = match conditional.branches.iter().find(|branch| branch.taken) {
                Some(taken) => taken.range.clone(),
                None => 0..source.len(),
            };
            let number = value.parse::<i64>().is_ok_and(|value| value != 0);
            if !number || first.taken || refuses(&first.range) || left == 0 {
                continue;
            }
            left -= 1;
            // What uses it in a branch that is not read does without.
            let others = undecided.iter().flat_map(|other| &other.branches);
            let unread = others.filter(|branch| !branch.taken);
            let unread: Vec<&Range<usize>> = unread.map(|branch| &branch.range).collect();
            if !is_used(source, read, name, &unread) {
                continue;
            }
        }
        for (name, value) in &first.assume {
            if let Some(value) = value
                && !found.iter().any(|(known, _)| known == name)
            {
                found.push((name.clone(), value.clone()));
            }
        }
    }
    found
}

/// True for `#include NAME(…)`: only the build says which header that is.
fn spells_by_macro(line: &str) -> bool {
    let directive = line.strip_prefix('#').map(str::trim_start);
    let spelled = directive.and_then(|line| line.strip_prefix("include"));
    spelled.is_some_and(|spelled| spelled.trim_start().starts_with(char::is_alphabetic))
}

/// The header that a line includes, and whether it is spelled in angle brackets.
fn included(line: &str) -> Option<(&str, bool)> {
    let directive = line.strip_prefix('#')?.trim_start();
    let spelled = directive.strip_prefix("include")?.trim_start();
    let (close, system) = match spelled.chars().next()? {
        '<' => ('>', true),
        '"' => ('"', false),
        _ => return None,
    };
    let (name, _) = spelled[1..].split_once(close)?;
    Some((name, system))
}

/// True where a name is a word of its own on a line that is no directive, in this part of a text and outside of the others.
fn is_used(source: &str, part: Range<usize>, name: &str, but: &[&Range<usize>]) -> bool {
    let word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let bytes = source.as_bytes();
    let mut whole = source.match_indices(name).filter(|(at, _)| {
        !word(at.checked_sub(1).and_then(|before| bytes.get(before)))
            && !word(bytes.get(at + name.len()))
    });
    whole.by_ref().take(MOST_USES).any(|(at, _)| {
        if !part.contains(&at) || but.iter().any(|unread| unread.contains(&at)) {
            return false;
        }
        let line = source[..at].rfind('\n').map_or(0, |end| end + 1);
        let begins = source[line..at].trim_start();
        !begins.starts_with('#') && !begins.starts_with("//") && !begins.starts_with('*')
    })
}

/// Definitions to take a branch: name and value, `None` to leave the name undefined.
pub(crate) type Assumption = Vec<(String, Option<String>)>;

/// Branches that nothing decided and that are left out with kernels in them: their bytes, and what takes them.
pub(crate) fn kernels_left_out(
    source: &str,
    undecided: &[UndecidedConditional],
) -> Vec<(Range<usize>, Assumption)> {
    undecided
        .iter()
        .flat_map(|conditional| &conditional.branches)
        .filter(|branch| !branch.taken && !branch.assume.is_empty())
        .filter(|branch| {
            source
                .get(branch.range.clone())
                .is_some_and(|text| may_hold_kernels(text) || text.contains("kernel "))
        })
        .take(MOST_ALTERNATIVES)
        .map(|branch| (branch.range.clone(), branch.assume.clone()))
        .collect()
}
