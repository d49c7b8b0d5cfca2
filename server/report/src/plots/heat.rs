//! The kernel's source with what each line costs beside it.

use std::fmt::Write as _;

use warplens_db::pictures::KernelPictures;

use super::bar;
use crate::escape::escape;
use crate::figure::{counted, percent};

/// Degrees of heat, beside none.
const DEGREES: f64 = 5.0;
/// Longest piece of a line.
const LONGEST: usize = 160;

/// A row for each line of source.
pub(crate) fn draw(pictures: &KernelPictures) -> String {
    if pictures.source.is_empty() {
        return String::new();
    }
    let hottest = pictures.hottest();
    let mut out = String::from(
        "<figure>\n<h3>Cost by line</h3>\n<div class=\"wide\"><table class=\"heat\">\n<tbody>\n",
    );
    for line in &pictures.source {
        let share = line.share.filter(|share| *share >= 0.0005);
        let degree = share.map_or(0, |share| degree(share, hottest));
        let mut text: String = line.text.chars().take(LONGEST).collect();
        if text.len() < line.text.len() {
            text.push('…');
        }
        let _ = writeln!(
            out,
            "<tr class=\"h{degree}\"><td class=\"n quiet\">{}</td><td class=\"n\">{}</td><td>{}</td><td><code>{}</code></td></tr>",
            line.number,
            share
                .map(|share| escape(&percent(share)))
                .unwrap_or_default(),
            share
                .map(|share| bar(share, &format!("heat{degree}")))
                .unwrap_or_default(),
            escape(&text.replace('\t', "    "))
        );
    }
    out.push_str("</tbody></table></div>\n");
    if pictures.more_lines > 0 {
        let _ = writeln!(
            out,
            "<p class=\"quiet\">{} more are not shown.</p>",
            counted(pictures.more_lines as u64, "line")
        );
    }
    out.push_str("</figure>\n");
    out
}

/// 1 to 5: how a line's share compares with the largest one.
pub(crate) fn degree(share: f64, hottest: f64) -> usize {
    let part = (share / hottest * DEGREES).ceil();
    if part.is_finite() {
        part.clamp(1.0, DEGREES) as usize
    } else {
        1
    }
}
