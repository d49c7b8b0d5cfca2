//! The roofline: what the GPU could do at a kernel's intensity, and what it is predicted to do.

use warplens_db::pictures::Roofline;

use super::axes::{Frame, Scale, Side, short};
use super::figure;
use crate::figure::{number, percent};

/// Orders of magnitude beside the outermost point or corner.
const MARGIN: f64 = 3.0;

/// The roofs and the kernel's point under them.
pub(crate) fn draw(roofline: &Roofline) -> String {
    let Roofline {
        work,
        peaks,
        bandwidths,
        intensity,
        ideal_intensity,
        achieved,
    } = roofline;
    let highest = peaks.iter().map(|peak| peak.per_second).fold(0.0, f64::max);
    let slowest = bandwidths
        .iter()
        .map(|roof| roof.per_second)
        .fold(f64::INFINITY, f64::min);
    if !(highest > 0.0 && slowest.is_finite() && *intensity > 0.0) {
        return super::missing("Roofline", "the GPU's profile lacks the roofs");
    }
    let ridge = highest / slowest;
    let (left, right) = (
        intensity.min(*ideal_intensity).min(ridge) / MARGIN,
        intensity.max(*ideal_intensity).max(ridge) * MARGIN,
    );
    let lowest = peaks
        .iter()
        .map(|peak| peak.per_second)
        .fold(highest, f64::min);
    let low = achieved.unwrap_or(lowest).min(slowest * left).min(lowest) / 2.0;
    let per_byte = format!("{work} per byte that requests move");
    let per_second = format!("{work} per second");
    let mut frame = Frame::new(
        (560.0, 320.0),
        (Scale::Log(left, right), &per_byte, &number),
        (Scale::Log(low, highest * 2.0), &per_second, &short),
    );
    for (index, roof) in bandwidths.iter().enumerate() {
        let class = if index == 0 { "roof" } else { "roof second" };
        let corner = highest / roof.per_second;
        let start = left.max(low / roof.per_second);
        frame.line(
            class,
            &[(start, start * roof.per_second), (corner, highest)],
        );
        let name = format!("{} {}B/s", roof.name, short(roof.per_second));
        // The name of the lower roof goes below it, that of the upper one above.
        let (part, side) = if index == 0 {
            (0.7, Side::BelowRight)
        } else {
            (0.85, Side::Left)
        };
        let at = start * (corner / start).powf(part);
        frame.label("tick", (at, at * roof.per_second), side, &name);
    }
    let fastest = bandwidths
        .iter()
        .map(|roof| roof.per_second)
        .fold(0.0, f64::max);
    for peak in peaks {
        let from = peak.per_second / fastest;
        frame.line("roof", &[(from, peak.per_second), (right, peak.per_second)]);
        let name = format!("{} {}{}/s", peak.name, short(peak.per_second), unit(work));
        frame.label("tick", (right, peak.per_second), Side::Left, &name);
    }
    let roof = |at: f64| (at * slowest).min(highest);
    let mut said = format!("{} {work} per byte", number(*intensity));
    if let Some(achieved) = achieved {
        let told = format!("{} {work} per second at {said}", short(*achieved));
        if ideal_intensity / intensity > 1.02 {
            frame.line(
                "ideal",
                &[(*intensity, *achieved), (*ideal_intensity, *achieved)],
            );
            let ideal = format!(
                "if no request moved more than it needs: {} {work} per byte",
                number(*ideal_intensity)
            );
            frame.dot("hollow", (*ideal_intensity, *achieved), &ideal);
        }
        frame.line(
            "drop",
            &[(*intensity, *achieved), (*intensity, roof(*intensity))],
        );
        frame.dot("point", (*intensity, *achieved), &told);
        frame.label(
            "strong",
            (*intensity, *achieved),
            Side::Right,
            &format!("{}{}/s", short(*achieved), unit(work)),
        );
        let alone = roof(*intensity);
        said = if *achieved > alone * 1.005 {
            format!(
                "{told}; the device memory alone would let {} through, so caches must serve some of the requests",
                short(alone)
            )
        } else {
            format!(
                "{told}: {} of what the roofs allow there",
                percent(achieved / alone)
            )
        };
    } else {
        frame.line("drop", &[(*intensity, low), (*intensity, roof(*intensity))]);
        said.push_str("; no time is predicted, so its height is not known");
    }
    let picture = frame.finish(&said);
    let hollow = if ideal_intensity / intensity > 1.02 {
        " The circle: the same with every request as small as it could be."
    } else {
        ""
    };
    let caption = format!("{said}. Bytes are those that requests move, before any cache.{hollow}");
    figure("Roofline", &picture, &caption)
}

fn unit(work: &str) -> &'static str {
    if work == "FLOP" { "FLOP" } else { "instr" }
}
