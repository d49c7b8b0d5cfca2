//! Where the cycles go, by part.

use std::fmt::Write as _;

use warplens_db::wire::Estimate;

use super::length;
use crate::escape::escape;
use crate::estimate::{part_cycles, parts, whole};
use crate::figure::{percent, time, words};

/// Where the cycles go: all parts as one bar, then each with its figures.
pub(crate) fn draw(estimate: &Estimate) -> String {
    let mut out = String::new();
    let Some(whole) = whole(estimate) else {
        return out;
    };
    let parts = parts(&estimate.breakdown);
    let parts: Vec<_> = parts.into_iter().filter(|(_, part)| *part > 0.0).collect();
    let said: Vec<String> = parts
        .iter()
        .map(|(name, part)| escape(&format!("{} {}", words(name), percent(part / whole))))
        .collect();
    let _ = write!(
        out,
        "<h3>Where the cycles go</h3>\n<svg class=\"stack\" viewBox=\"0 0 100 10\" \
         preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        said.join(", ")
    );
    let mut at = 0.0;
    for ((name, part), said) in parts.iter().zip(&said) {
        let width = length(part / whole);
        let _ = write!(
            out,
            "<rect class=\"p-{name}\" x=\"{at:.2}\" width=\"{width:.2}\" height=\"10\"><title>{said}</title></rect>"
        );
        at += width;
    }
    out.push_str(
        "</svg>\n<div class=\"wide\"><table>\n<thead><tr><th>part</th><th class=\"n\">cycles</th>\
         <th class=\"n\">share</th></tr></thead>\n<tbody>\n",
    );
    for (name, part) in &parts {
        let _ = writeln!(
            out,
            "<tr><td><svg class=\"key\" viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect class=\"p-{name}\" width=\"1\" \
             height=\"1\"/></svg> {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            words(name),
            part_cycles(estimate, *part),
            escape(&percent(part / whole))
        );
    }
    out.push_str("</tbody></table></div>\n");
    if estimate.launch_overhead_ms > 0.0 {
        let _ = writeln!(
            out,
            "<p class=\"quiet\">Launch overhead, beside this: about {}.</p>",
            escape(&time(estimate.launch_overhead_ms))
        );
    }
    out
}
