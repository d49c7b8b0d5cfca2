//! Occupancy over block size, registers and shared memory, with the kernel's own point.

use std::fmt::Write as _;

use warplens_db::pictures::{OccupancyCurve, Residence};

use super::axes::{Frame, Scale, Side};
use super::figure;
use crate::figure::{number, percent};

/// Three plots side by side.
pub(crate) fn draw(residence: &Residence) -> String {
    let plain = |value: f64| number(value.round());
    let memory = |value: f64| format!("{} KiB", number(value));
    let plots = [
        (
            "threads per block",
            &residence.block,
            1.0,
            &plain as &dyn Fn(f64) -> String,
        ),
        ("registers per thread", &residence.registers, 1.0, &plain),
        (
            "shared memory per block",
            &residence.shared,
            1024.0,
            &memory,
        ),
    ];
    let mut out = String::from("<div class=\"three\">\n");
    for (name, curve, unit, tick) in plots {
        out.push_str(&plot((name, unit, tick), curve, residence.now));
    }
    out.push_str("</div>\n");
    let caption = format!(
        "{} of the warps that an SM holds, limited by {}. Each curve varies one quantity and keeps the others; 0 %: the launch fails.",
        percent(residence.now),
        residence.limiter
    );
    figure("Occupancy", &out, &caption)
}

/// One curve; `unit` is how many of what it counts the axis counts as one.
fn plot(
    (name, unit, tick): (&str, f64, &dyn Fn(f64) -> String),
    curve: &OccupancyCurve,
    now: f64,
) -> String {
    let at = |value: u64| value as f64 / unit;
    let end = at(curve.end.max(1));
    let whole = |value: f64| format!("{:.0} %", value * 100.0);
    let mut frame = Frame::new(
        (360.0, 220.0),
        (Scale::Linear(0.0, end), name, tick),
        (Scale::Linear(0.0, 1.0), "occupancy", &whole),
    );
    let steps: Vec<(f64, f64)> = curve
        .steps
        .iter()
        .map(|(from, part)| (at(*from), *part))
        .collect();
    frame.steps("curve", &steps, end);
    let mut told = String::new();
    if let Some(own) = curve.now.map(at) {
        let _ = write!(told, "{name}: {} gives {}", tick(own), percent(now));
        frame.dot("point", (own, now), &told);
        frame.label("strong", (own, now), Side::BelowRight, &tick(own));
    } else {
        let _ = write!(told, "{name}: unknown for this kernel");
    }
    frame.finish(&told)
}
