//! The pictures of a report, one a file: data of the engine in, inline SVG or a table with bars out.
//!
//! Colours are variables of the page's sheet (`sheet.rs`), so that a picture is light or dark as the page is. All text that is
//! not ours is escaped; what is not known is said in place of the picture.

mod axes;
pub(crate) mod breakdown;
pub(crate) mod gpus;
pub(crate) mod heat;
pub(crate) mod lanes;
pub(crate) mod lanes_text;
pub(crate) mod models;
pub(crate) mod occupancy;
pub(crate) mod roofline;
pub(crate) mod scaling;

use std::fmt::Write as _;

use crate::escape::escape;

/// A picture with its title and what it rests on; `caption` is text, not markup.
pub(crate) fn figure(title: &str, picture: &str, caption: &str) -> String {
    let mut out = format!("<figure>\n<h3>{}</h3>\n{picture}", escape(title));
    if !caption.is_empty() {
        let _ = writeln!(out, "<figcaption>{}</figcaption>", escape(caption));
    }
    out.push_str("</figure>\n");
    out
}

/// A title and why there is no picture.
pub(crate) fn missing(title: &str, why: &str) -> String {
    figure(title, "", &format!("Not drawn: {why}."))
}

/// A share of the whole as a length of 100; what is not a number has none.
pub(crate) fn length(share: f64) -> f64 {
    if share.is_finite() {
        (share * 100.0).clamp(0.0, 100.0)
    } else {
        0.0
    }
}

/// A bar for a cell of a table.
pub(crate) fn bar(share: f64, class: &str) -> String {
    format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"{class}\" width=\"{:.2}\" height=\"10\"/></svg>",
        length(share)
    )
}
