//! One request of an access: which lane goes to which piece of device memory, or to which bank.

use std::fmt::Write as _;

use warplens_db::pictures::{LanePicture, Touched};

use crate::escape::escape;
use crate::figure::{number, percent};

/// Height of a lane's row.
const ROW: usize = 13;
const TOP: usize = 26;
/// Where the lanes' boxes end and those of the memory begin.
const LANE: (usize, usize) = (86, 300);
const WIDTH: usize = 560;

/// The picture with its caption: the access, what it costs, and how typical the request is.
pub(crate) fn draw(picture: &LanePicture) -> String {
    let access = &picture.access;
    let title = format!(
        "<code>{}</code> <span class=\"quiet\">line {}, {}</span>",
        escape(&access.text),
        picture.line + 1,
        what(picture)
    );
    let drawn = match &picture.touched {
        Touched::Units { bytes, units } => to_units(picture, *bytes, units),
        Touched::Banks { words, first } => to_banks(picture, words, first),
        Touched::Words(_) => String::new(),
    };
    format!(
        "<figure class=\"lanes\">\n<h4>{title}</h4>\n{drawn}<figcaption>{}</figcaption>\n</figure>\n",
        escape(&caption(picture))
    )
}

/// What the request costs, and how typical it is.
pub(super) fn caption(picture: &LanePicture) -> String {
    let cost = match &picture.touched {
        Touched::Units { bytes, units } => units_cost(picture, *bytes, units),
        Touched::Banks { words, .. } => banks_cost(words),
        Touched::Words(words) => format!(
            "{} distinct words of constant memory, serialized",
            number(*words as f64)
        ),
    };
    let alike = if picture.alike >= 0.9995 {
        "All its requests cost the same".to_owned()
    } else {
        format!(
            "{} of its requests cost the same; the average takes {}",
            percent(picture.alike),
            average(picture)
        )
    };
    format!("{cost}. {alike}.")
}

/// The kind of access.
pub(super) fn what(picture: &LanePicture) -> String {
    use warplens_facts::facts::{Op, Space};
    let space = match picture.access.space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Constant => "constant",
        Space::Texture => "texture",
    };
    let op = match picture.access.op {
        Op::Load => "load",
        Op::Store => "store",
        Op::Atomic => "atomic",
    };
    format!(
        "{space} {op} of {} B per lane",
        picture.access.bytes_per_lane
    )
}

fn average(picture: &LanePicture) -> String {
    let access = &picture.access;
    match (access.transactions_per_request, access.passes_per_request) {
        (Some(units), _) => format!("{} transactions", number(units)),
        (None, Some(passes)) => format!("{} passes", number(passes)),
        (None, None) => "an unknown number of transactions".to_owned(),
    }
}

fn units_cost(picture: &LanePicture, bytes: u32, units: &[(i64, u32)]) -> String {
    let requested: u64 = units.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
    let moved = units.len() as u64 * u64::from(bytes);
    let lanes = picture.lanes.iter().flatten().count();
    let least = requested.div_ceil(u64::from(bytes.max(1)));
    format!(
        "{} lanes touch {} segments of {bytes} B, {} would hold the bytes requested: {} of {} B used",
        lanes,
        number(units.len() as f64),
        number(least as f64),
        number(requested as f64),
        number(moved as f64)
    )
}

fn banks_cost(words: &[u32]) -> String {
    let most = words.iter().copied().max().unwrap_or(0);
    let used = words.iter().filter(|words| **words > 0).count();
    if most <= 1 {
        format!(
            "{used} of {} banks accessed, one word each: no conflict",
            words.len()
        )
    } else {
        format!(
            "{used} of {} banks accessed, up to {most} different words in one",
            words.len()
        )
    }
}

fn begin(rows: usize, right: &str, told: &str) -> String {
    let height = TOP + rows * ROW + 6;
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n\
         <text class=\"name\" x=\"{}\" y=\"14\" text-anchor=\"end\">lane: byte</text>\
         <text class=\"name\" x=\"{}\" y=\"14\">{}</text>\n",
        escape(told),
        LANE.0,
        LANE.1,
        escape(right)
    )
}

/// The lanes' boxes on the left; a lane that takes no part is empty.
fn lanes(out: &mut String, picture: &LanePicture) {
    for (lane, at) in picture.lanes.iter().enumerate() {
        let y = TOP + lane * ROW;
        let class = if at.is_some() { "lane" } else { "idle" };
        let text = at.map_or_else(|| format!("{lane}"), |at| format!("{lane}: {at}"));
        let _ = write!(
            out,
            "<rect class=\"{class}\" x=\"2\" y=\"{y}\" width=\"{}\" height=\"{}\"/>\
             <text class=\"cell\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{text}</text>",
            LANE.0,
            ROW - 2,
            LANE.0 - 2,
            y + ROW - 4
        );
    }
    out.push('\n');
}

/// A line from each lane to its row on the right.
fn threads(out: &mut String, ends: impl Iterator<Item = Option<f64>>) {
    let mut path = String::new();
    for (lane, end) in ends.enumerate() {
        if let Some(to) = end {
            let from = TOP as f64 + (lane as f64 + 0.5) * ROW as f64 - 1.0;
            let _ = write!(path, "M{} {from:.1}L{} {to:.1}", LANE.0 + 3, LANE.1 - 3);
        }
    }
    let _ = writeln!(out, "<path class=\"thread\" d=\"{path}\"/>");
}

/// A box on the right, partly filled, with its label.
fn box_right(out: &mut String, middle: f64, (part, class): (f64, &str), said: &str) {
    let height = (ROW - 2) as f64;
    let y = middle - height / 2.0;
    let filled = 120.0 * part;
    let _ = write!(
        out,
        "<rect class=\"unit\" x=\"{0}\" y=\"{y:.1}\" width=\"120\" height=\"{height}\"/>\
         <rect class=\"{class}\" x=\"{0}\" y=\"{y:.1}\" width=\"{filled:.1}\" height=\"{height}\"/>\
         <text class=\"cell\" x=\"{1}\" y=\"{2:.1}\">{said}</text>",
        LANE.1,
        LANE.1 + 126,
        y + height - 2.0
    );
}

fn to_units(picture: &LanePicture, bytes: u32, units: &[(i64, u32)]) -> String {
    let rows = picture.lanes.len().max(units.len());
    let told = units_cost(picture, bytes, units);
    let mut out = begin(
        rows,
        &format!("{bytes} B segments by first byte; filled: requested"),
        &told,
    );
    lanes(&mut out, picture);
    // Few pieces are spread over the height of the lanes.
    let step = rows as f64 * ROW as f64 / units.len().max(1) as f64;
    let middle = |index: usize| TOP as f64 + (index as f64 + 0.5) * step - 1.0;
    let unit = i64::from(bytes.max(1));
    threads(
        &mut out,
        picture.lanes.iter().map(|lane| {
            let first = (*lane)?.div_euclid(unit) * unit;
            let index = units
                .binary_search_by_key(&first, |(start, _)| *start)
                .ok()?;
            Some(middle(index))
        }),
    );
    for (index, (start, requested)) in units.iter().enumerate() {
        let class = if *requested * 2 < bytes {
            "poor"
        } else {
            "good-fill"
        };
        let part = f64::from(*requested) / f64::from(bytes.max(1));
        box_right(
            &mut out,
            middle(index),
            (part, class),
            &format!("{start} ({requested} B)"),
        );
    }
    out.push_str("\n</svg>\n");
    out
}

fn to_banks(picture: &LanePicture, words: &[u32], first: &[Option<u32>]) -> String {
    let rows = picture.lanes.len().max(words.len());
    let mut out = begin(
        rows,
        "banks; filled: different words accessed",
        &banks_cost(words),
    );
    lanes(&mut out, picture);
    let step = rows as f64 * ROW as f64 / words.len().max(1) as f64;
    let middle = |index: usize| TOP as f64 + (index as f64 + 0.5) * step - 1.0;
    threads(
        &mut out,
        first
            .iter()
            .map(|bank| bank.map(|bank| middle(bank as usize))),
    );
    let most = words.iter().copied().max().unwrap_or(0).max(1);
    for (bank, count) in words.iter().enumerate() {
        let class = if *count > 1 { "poor" } else { "good-fill" };
        let said = if *count > 1 {
            format!("{bank}: {count} words")
        } else {
            bank.to_string()
        };
        let part = f64::from(*count) / f64::from(most.max(4));
        box_right(&mut out, middle(bank), (part, class), &said);
    }
    out.push_str("\n</svg>\n");
    out
}
