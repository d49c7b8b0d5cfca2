//! Predicted cycles by how many warps an SM runs at a time.

use warplens_db::pictures::Scaling;

use super::axes::{Frame, Scale, Side, short};
use super::{figure, missing};
use crate::figure::{counted, number};

const TITLE: &str = "Warp scaling";

/// The curve, and the launch's own point at its end.
pub(crate) fn draw(scaling: &Scaling) -> String {
    let (Some(&(first, slowest)), Some(&(last, cycles))) =
        (scaling.points.first(), scaling.points.last())
    else {
        return missing(TITLE, "no model predicts a time");
    };
    let values = || scaling.points.iter().map(|(_, cycles)| *cycles);
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    if low <= 0.0 {
        return missing(TITLE, "no cycles are predicted");
    }
    let end = f64::from(last.max(first + 1));
    let mut frame = Frame::new(
        (560.0, 320.0),
        (
            Scale::Doubling(f64::from(first), end),
            "warps that run on an SM at a time",
            &number,
        ),
        (Scale::Log(low / 1.6, high * 1.3), "cycles", &short),
    );
    let proportional = scaling.points.iter().map(|(warps, _)| {
        let warps = f64::from(*warps);
        (warps, slowest * f64::from(first) / warps)
    });
    let proportional: Vec<(f64, f64)> = proportional
        .filter(|(_, cycles)| *cycles >= low / 1.6)
        .collect();
    frame.line("ideal", &proportional);
    let curve: Vec<(f64, f64)> = scaling
        .points
        .iter()
        .map(|(warps, cycles)| (f64::from(*warps), *cycles))
        .collect();
    frame.line("curve", &curve);
    let now = format!(
        "{}: {} cycles",
        counted(u64::from(last), "warp"),
        number(cycles.round())
    );
    frame.dot("point", (f64::from(last), cycles), &now);
    frame.label("strong", (f64::from(last), cycles), Side::Below, &now);
    // Where more warps stop helping: the fewest that come within a twentieth of the best.
    let enough = scaling
        .points
        .iter()
        .find(|(_, cycles)| *cycles <= low * 1.05);
    let enough = enough.map_or(last, |(warps, _)| *warps);
    let said = if enough < last {
        format!(
            "{} come within 5 % of the fastest; this launch runs {}",
            counted(u64::from(enough), "warp"),
            number(f64::from(last))
        )
    } else {
        format!(
            "more warps would still help: this launch runs {}",
            counted(u64::from(last), "warp")
        )
    };
    let caption = format!(
        "{said}. Model {}, the launch unchanged; dashed: each warp as good as the first.",
        scaling.model
    );
    figure(TITLE, &frame.finish(&said), &caption)
}
