//! The same launch on other GPUs: a bar each, the fastest first.

use std::fmt::Write as _;

use warplens_db::pictures::Elsewhere;

use super::bar;
use crate::escape::escape;
use crate::figure::{speedup, time, words};

/// GPUs that are shown at once; the others are folded.
const MOST_SHOWN: usize = 12;

/// A row for each GPU.
pub(crate) fn draw(elsewhere: &[Elsewhere]) -> String {
    let Some(target) = elsewhere.iter().find(|one| one.target) else {
        return String::new();
    };
    if elsewhere.len() < 2 {
        return String::new();
    }
    let mut out = String::from("<figure>\n<h3>Other GPUs</h3>\n");
    let at = elsewhere.iter().position(|one| one.target).unwrap_or(0);
    if elsewhere.len() <= MOST_SHOWN + 2 {
        table(&mut out, elsewhere, elsewhere, target);
    } else {
        // The fastest, and the target with its neighbours.
        let near = |index: usize| index < 5 || index.abs_diff(at) <= 3;
        let shown = elsewhere
            .iter()
            .enumerate()
            .filter(|(index, _)| near(*index));
        let shown: Vec<Elsewhere> = shown.map(|(_, one)| one.clone()).collect();
        table(&mut out, &shown, elsewhere, target);
        let _ = writeln!(
            out,
            "<details><summary>All {} GPUs</summary>",
            elsewhere.len()
        );
        table(&mut out, elsewhere, elsewhere, target);
        out.push_str("</details>\n");
    }
    out.push_str(
        "<figcaption>The launch is the same on all; an assumed grid is the target's. Shorter is faster.</figcaption>\n</figure>\n",
    );
    out
}

fn table(out: &mut String, shown: &[Elsewhere], all: &[Elsewhere], target: &Elsewhere) {
    let slowest = shown
        .iter()
        .filter_map(|one| one.time_ms)
        .fold(0.0, f64::max);
    out.push_str(
        "<div class=\"wide\"><table>\n<thead><tr><th class=\"n\"></th><th>GPU</th><th class=\"n\">time</th><th class=\"n\">of the target's speed</th>\
         <th>bound by</th><th></th></tr></thead>\n<tbody>\n",
    );
    for one in shown {
        let place = all
            .iter()
            .position(|other| other.gpu == one.gpu)
            .map_or(0, |at| at + 1);
        let (class, bar_class) = if one.target {
            (" class=\"strong\"", "target")
        } else {
            ("", "")
        };
        let faster = match (target.time_ms, one.time_ms) {
            (Some(target), Some(own)) if own > 0.0 => speedup(target / own),
            _ => String::new(),
        };
        let (bound, drawn) = match (one.time_ms, &one.why) {
            (Some(own), _) => (
                one.bottleneck.map(words).unwrap_or_default(),
                bar(own / slowest, bar_class),
            ),
            (None, why) => (
                why.clone().unwrap_or_else(|| "no prediction".to_owned()),
                String::new(),
            ),
        };
        let _ = writeln!(
            out,
            "<tr{class}><td class=\"n quiet\">{place}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{faster}</td><td>{}</td><td>{drawn}</td></tr>",
            escape(&one.gpu),
            one.time_ms.map_or_else(|| "?".to_owned(), time),
            escape(&bound)
        );
    }
    out.push_str("</tbody></table></div>\n");
}
