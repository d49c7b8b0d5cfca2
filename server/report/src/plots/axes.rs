//! The frame of a plot: two axes with ticks, and where values lie in it.

use std::fmt::Write as _;

use crate::escape::escape;
use crate::figure::number;

const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 38.0;

/// How values become lengths.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    /// From the first to the second, evenly.
    Linear(f64, f64),
    /// The same by orders of magnitude; both are above 0.
    Log(f64, f64),
    /// The same, marked at powers of 2.
    Doubling(f64, f64),
}

impl Scale {
    /// 0 at the beginning, 1 at the end; what lies outside is put on the edge.
    fn part(self, value: f64) -> f64 {
        let part = match self {
            Scale::Linear(low, high) => (value - low) / (high - low),
            Scale::Log(low, high) | Scale::Doubling(low, high) => {
                (value / low).ln() / (high / low).ln()
            }
        };
        if part.is_finite() {
            part.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Round values, some five of them.
    fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear(low, high) => {
                let rough = (high - low) / 5.0;
                if !rough.is_finite() || rough <= 0.0 {
                    return vec![low];
                }
                let unit = 10_f64.powf(rough.log10().floor());
                let factors = [1.0, 2.0, 5.0, 10.0];
                let step = factors.into_iter().find(|factor| factor * unit >= rough);
                let step = step.unwrap_or(10.0) * unit;
                let first = (low / step).ceil();
                (0..12)
                    .map(|index| (first + f64::from(index)) * step)
                    .take_while(|tick| *tick <= high * (1.0 + 1e-9))
                    .collect()
            }
            Scale::Log(low, high) => {
                let (first, last) = (low.log10().ceil() as i32, high.log10().floor() as i32);
                let decades = (last - first).max(0);
                if decades < 2 {
                    let digits = [1.0, 2.0, 5.0];
                    let all =
                        (first - 1..=last).flat_map(|power| digits.map(|d| d * 10_f64.powi(power)));
                    return all.filter(|tick| (low..=high).contains(tick)).collect();
                }
                let step = (decades / 6 + 1) as usize;
                (first..=last)
                    .step_by(step)
                    .map(|power| 10_f64.powi(power))
                    .collect()
            }
            Scale::Doubling(low, high) => {
                let (first, last) = (low.log2().ceil() as i32, high.log2().floor() as i32);
                (first..=last.min(first + 16))
                    .map(|power| 2_f64.powi(power))
                    .collect()
            }
        }
    }
}

/// A plot that is being drawn.
#[derive(Debug)]
pub(super) struct Frame {
    width: f64,
    height: f64,
    x: Scale,
    y: Scale,
    body: String,
}

/// The side of its point that a label is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The text begins there.
    Right,
    /// It ends there.
    Left,
    /// It ends there, below the point.
    Below,
    /// It begins there, below the point.
    BelowRight,
}

impl Frame {
    /// An empty one; `tick` writes the numbers of an axis.
    pub(super) fn new(
        (width, height): (f64, f64),
        (x, x_name, x_tick): (Scale, &str, &dyn Fn(f64) -> String),
        (y, y_name, y_tick): (Scale, &str, &dyn Fn(f64) -> String),
    ) -> Frame {
        let mut frame = Frame {
            width,
            height,
            x,
            y,
            body: String::new(),
        };
        let (right, bottom) = (width - RIGHT, height - BOTTOM);
        let mut last = f64::NEG_INFINITY;
        for tick in x.ticks() {
            let at = frame.x(tick);
            let _ = write!(
                frame.body,
                "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/>"
            );
            let text = x_tick(tick);
            // Numbers that would touch are left out.
            let half = text.chars().count() as f64 * 3.4;
            if at - half > last + 6.0 && at + half < width {
                last = at + half;
                let _ = write!(
                    frame.body,
                    "<text class=\"tick\" x=\"{at:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                    bottom + 14.0,
                    escape(&text)
                );
            }
        }
        for tick in y.ticks() {
            let at = frame.y(tick);
            let _ = write!(
                frame.body,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>\
                 <text class=\"tick\" x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                escape(&y_tick(tick))
            );
        }
        let _ = writeln!(
            frame.body,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\
             <text class=\"name\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>\
             <text class=\"name\" transform=\"translate(12 {:.0}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            height - 6.0,
            escape(x_name),
            f64::midpoint(TOP, bottom),
            escape(y_name)
        );
        frame
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.part(value) * (self.width - RIGHT - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        let bottom = self.height - BOTTOM;
        bottom - self.y.part(value) * (bottom - TOP)
    }

    /// A line through points.
    pub(super) fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", self.x(x), self.y(y));
        }
        if !points.is_empty() {
            let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// A line that keeps each value until the next one, and the last until `end`.
    pub(super) fn steps(&mut self, class: &str, points: &[(f64, f64)], end: f64) {
        let mut corners = Vec::with_capacity(points.len() * 2);
        for (index, &(x, y)) in points.iter().enumerate() {
            let next = points.get(index + 1).map_or(end, |(x, _)| *x);
            corners.push((x, y));
            corners.push((next, y));
        }
        self.line(class, &corners);
    }

    /// A dot, and what a pointer that rests on it is told.
    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64), told: &str) {
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"><title>{}</title></circle>",
            self.x(x),
            self.y(y),
            escape(told)
        );
    }

    /// Text beside a point, kept inside the frame.
    pub(super) fn label(&mut self, class: &str, (x, y): (f64, f64), side: Side, text: &str) {
        let long = text.chars().count() as f64 * 6.4;
        let at = self.x(x);
        let below = matches!(side, Side::Below | Side::BelowRight);
        let left = matches!(side, Side::Left | Side::Below) || at + 9.0 + long > self.width - RIGHT;
        let (at, anchor) = if left && at - 9.0 - long > LEFT {
            (at - 9.0, "end")
        } else if left {
            (self.width - RIGHT - 2.0, "end")
        } else {
            (at + 9.0, "start")
        };
        let down = if below { 18.0 } else { -8.0 };
        let down = (self.y(y) + down).clamp(TOP + 10.0, self.height - BOTTOM - 5.0);
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{at:.1}\" y=\"{down:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        );
    }

    /// The whole picture; `told` says what it shows to who cannot see it.
    pub(super) fn finish(self, told: &str) -> String {
        format!(
            "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            self.width,
            self.height,
            escape(told),
            self.body
        )
    }
}

/// A large number in a few letters: `19.5 T`.
pub(super) fn short(value: f64) -> String {
    for (unit, name) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= unit {
            let value = value / unit;
            let places = usize::from(value < 99.95);
            let text = format!("{value:.places$}");
            return format!("{} {name}", text.strip_suffix(".0").unwrap_or(&text));
        }
    }
    number(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(
            Scale::Linear(0.0, 1.0).ticks(),
            [0.0, 0.2, 0.4, 0.600_000_000_000_000_1, 0.8, 1.0]
        );
        assert_eq!(
            Scale::Log(0.5, 20_000.0).ticks(),
            [1.0, 10.0, 100.0, 1000.0, 10_000.0]
        );
        assert_eq!(
            Scale::Doubling(1.0, 64.0).ticks(),
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
        );
        for scale in [
            Scale::Linear(0.0, 0.0),
            Scale::Linear(0.0, f64::INFINITY),
            Scale::Linear(f64::NAN, 1.0),
            Scale::Log(1e-300, 1e300),
            Scale::Log(1.0, 1.0),
            Scale::Doubling(1.0, 1.0),
            Scale::Doubling(1e-300, 1e300),
        ] {
            assert!(scale.ticks().len() < 20, "{scale:?}");
            assert!((0.0..=1.0).contains(&scale.part(0.3)), "{scale:?}");
        }
    }
}
