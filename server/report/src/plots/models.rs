//! What each model predicts, side by side.

use std::fmt::Write as _;

use warplens_db::wire::KernelResult;

use super::bar;
use crate::escape::escape;
use crate::figure::{number, time, words};
use crate::models::remark;

/// A row for each model, with a bar for its time; one that does not apply says why.
pub(crate) fn draw(result: &KernelResult) -> String {
    if result.estimates.is_empty() {
        return String::new();
    }
    let times = result.estimates.values();
    let times = times.filter_map(|estimate| estimate.time_ms.filter(|time| time.is_finite()));
    let slowest = times.fold(0.0, f64::max);
    let mut out = String::from(
        "<figure>\n<h3>Models side by side</h3>\n<div class=\"wide\"><table class=\"models\">\n\
         <thead><tr><th>model</th><th class=\"n\">time</th><th></th><th class=\"n\">cycles</th><th>bound by</th>\
         <th></th></tr></thead>\n<tbody>\n",
    );
    for (name, estimate) in &result.estimates {
        let own = estimate.time_ms.filter(|time| time.is_finite());
        let cycles = estimate.cycles.map(|cycles| number(cycles.round()));
        let class = if name == "auto" { "target" } else { "" };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td>\
             <td class=\"quiet\">{}</td></tr>",
            escape(name),
            own.map_or_else(|| "-".to_owned(), time),
            own.map(|own| bar(own / slowest, class)).unwrap_or_default(),
            cycles.unwrap_or_else(|| "-".to_owned()),
            estimate.bottleneck.map(words).unwrap_or_default(),
            escape(&remark(estimate))
        );
    }
    out.push_str("</tbody></table></div>\n</figure>\n");
    out
}
