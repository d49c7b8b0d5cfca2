//! What a user says to warplens in comments: `// warplens: …`.

use std::ops::Range;

use memchr::memmem;

/// One `// warplens: …` comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Bytes from `warplens:` to the end of the comment.
    pub range: Range<usize>,
    /// 0-based line.
    pub line: u32,
    /// True where only white space precedes the comment in its line.
    pub alone: bool,
    /// What it says.
    pub kind: DirectiveKind,
}

/// What a directive says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectiveKind {
    /// `block=(16,16) grid=(64,64) n=1024 dynamic_shared=4096 probability=0.1`: names and values as written.
    Values(Vec<(String, String)>),
    /// `allow(mem/uncoalesced, smem)`: rules or categories.
    Allow(Vec<String>),
    /// `ignore-file`.
    IgnoreFile,
    /// `slower(reason)`: why the kernel may be predicted slower than its version before.
    Slower(String),
    /// Anything else, with what is wrong.
    Wrong(String),
}

const MARK: &str = "warplens:";

/// Every directive of a text, in order.
pub fn directives(text: &str) -> Vec<Directive> {
    let mut found = Vec::new();
    let mut line = 0u32;
    let mut counted = 0;
    // The whole text is searched at each keystroke.
    for at in memmem::find_iter(text.as_bytes(), MARK) {
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = &text[line_start..at];
        let opener = before.trim_end();
        if !(opener.ends_with("//") || opener.ends_with("/*")) {
            continue;
        }
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..at]).count() as u32;
        counted = at;
        let end = text[at..]
            .find('\n')
            .map_or(text.len(), |newline| at + newline);
        let mut body = &text[at + MARK.len()..end];
        if let Some(close) = body.find("*/") {
            body = &body[..close];
        }
        let range = at..at + MARK.len() + body.trim_end().len();
        found.push(Directive {
            range,
            line,
            alone: opener[..opener.len() - 2].trim().is_empty(),
            kind: parse(body.trim()),
        });
    }
    found
}

fn parse(body: &str) -> DirectiveKind {
    if body == "ignore-file" {
        return DirectiveKind::IgnoreFile;
    }
    if let Some(rest) = body.strip_prefix("allow(") {
        // What follows the parenthesis is the reason.
        return match rest.split_once(')') {
            Some((rules, _reason)) => DirectiveKind::Allow(
                rules
                    .split(',')
                    .map(|rule| rule.trim().to_owned())
                    .filter(|r| !r.is_empty())
                    .collect(),
            ),
            None => DirectiveKind::Wrong("`allow(` needs a closing parenthesis".to_owned()),
        };
    }
    if let Some(rest) = body.strip_prefix("slower(") {
        let reason = rest.trim_end().strip_suffix(')').map(str::trim);
        return match reason {
            Some(reason) if !reason.is_empty() => DirectiveKind::Slower(reason.to_owned()),
            _ => DirectiveKind::Wrong(
                "`slower(` needs a reason and a closing parenthesis".to_owned(),
            ),
        };
    }
    let mut values = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let Some((name, after)) = rest.split_once('=') else {
            return DirectiveKind::Wrong(format!(
                "`{rest}` is not understood: write `block=(16,16)`, `grid=64`, `n=1024`, `allow(rule)`, `slower(reason)` or `ignore-file`"
            ));
        };
        let after = after.trim_start();
        let end = if after.starts_with('(') {
            match after.find(')') {
                Some(close) => close + 1,
                None => {
                    return DirectiveKind::Wrong(format!("`{}=(` needs `)`", name.trim()));
                }
            }
        } else {
            after.find(char::is_whitespace).unwrap_or(after.len())
        };
        values.push((name.trim().to_owned(), after[..end].trim().to_owned()));
        rest = after[end..].trim_start_matches([' ', '\t', ',', ';']);
    }
    DirectiveKind::Values(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_parentheses_and_reasons() {
        let text =
            "int a;\n  // warplens: block=(16,16) n=1024\nx; // warplens: allow(mem/aos) known\n";
        let found = directives(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].line, found[0].alone), (1, true));
        assert_eq!(
            found[0].kind,
            DirectiveKind::Values(vec![
                ("block".into(), "(16,16)".into()),
                ("n".into(), "1024".into())
            ])
        );
        assert_eq!((found[1].line, found[1].alone), (2, false));
        assert_eq!(found[1].kind, DirectiveKind::Allow(vec!["mem/aos".into()]));
    }

    #[test]
    fn what_may_be_slower_says_why() {
        let found = directives("// warplens: slower(sums (all of them) are exact now)\n");
        let reason = "sums (all of them) are exact now".to_owned();
        assert_eq!(found[0].kind, DirectiveKind::Slower(reason));
        for wrong in ["slower()", "slower( )", "slower(because"] {
            let found = directives(&format!("// warplens: {wrong}"));
            assert!(matches!(found[0].kind, DirectiveKind::Wrong(_)), "{wrong}");
        }
    }

    #[test]
    fn the_word_outside_a_comment_is_not_a_directive_and_nonsense_is_reported() {
        assert_eq!(directives("warplens: block=1"), []);
        let found = directives("// warplens: blokc");
        assert!(matches!(&found[0].kind, DirectiveKind::Wrong(why) if why.contains("blokc")));
    }
}
