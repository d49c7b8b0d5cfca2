//! Text of a user put into markup: what goes in is shown as it is, in HTML, in SVG and in Markdown.

use crate::style::{printable, printable_lines};

/// Text as text: nothing in it is markup, in an element or in a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable_lines(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text of one line in Markdown as GitHub and GitLab read it: no element, no link, no other line. What is in code marks is shown
/// as it is and is left so.
pub(crate) fn escape_markdown(text: &str) -> String {
    let text = printable(text);
    let escaped = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace("](", "]\\(")
    };
    // Which of several marks side by side belong together is not followed.
    let marks = text.matches('`').count();
    if text.contains("``") || !marks.is_multiple_of(2) {
        return escaped(&text);
    }
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => escaped(part),
        _ => format!("`{part}`"),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_is_markdown() {
        let text = escape_markdown("a\n# b](http://c) <img src=x> &lt; \u{1b}[31m\u{202e}.cu");
        assert_eq!(
            text,
            "a\u{fffd}# b]\\(http://c) &lt;img src=x> &amp;lt; \u{fffd}[31m\u{fffd}.cu"
        );
        // Code is no markup, unless its marks may be read otherwise.
        assert_eq!(escape_markdown("`<<<8>>>` <b>"), "`<<<8>>>` &lt;b>");
        for marks in ["``", "``` ", ""] {
            let text = escape_markdown(&format!("{marks}<img src=x>`"));
            assert!(!text.contains('<'), "{text}");
        }
    }
}
