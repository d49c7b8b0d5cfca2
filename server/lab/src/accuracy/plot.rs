//! The plots of the page as SVG files that need nothing beside them.

use std::fmt::Write as _;

use super::set::{Kind, Point, Set};

/// Width and height of a panel's square, in pixels, and what lies around it.
const SIDE: f64 = 220.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const ABOVE: f64 = 30.0;
const BELOW: f64 = 42.0;
/// Panels beside each other.
const ACROSS: usize = 3;

/// Colours of series, told apart also without colour vision.
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];

/// The plots: file name, SVG, what it shows.
pub fn plots(sets: &[Set]) -> Vec<(&'static str, String, &'static str)> {
    let mut plots = Vec::new();
    let times: Vec<String> = sets.iter().filter_map(times).collect();
    if !times.is_empty() {
        let what = "Predicted against measured times, a panel a table";
        plots.push(("times.svg", sheet(&times), what));
    }
    let streams: Vec<String> = sets.iter().flat_map(streams).collect();
    if !streams.is_empty() {
        let what = "Bandwidth against occupancy, measured as dots and predicted as lines";
        plots.push(("bandwidth.svg", sheet(&streams), what));
    }
    plots
}

/// Panels beside and below each other.
fn sheet(panels: &[String]) -> String {
    let (width, height) = (LEFT + SIDE + RIGHT, ABOVE + SIDE + BELOW);
    let across = panels.len().clamp(1, ACROSS);
    let down = panels.len().div_ceil(across);
    let (whole, high) = (width * across as f64, height * down as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"{high}\" \
         viewBox=\"0 0 {whole} {high}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"{whole}\" height=\"{high}\" fill=\"#ffffff\"/>\n"
    );
    for (at, panel) in panels.iter().enumerate() {
        let x = (at % across) as f64 * width + LEFT;
        let y = (at / across) as f64 * height + ABOVE;
        let _ = writeln!(svg, "<g transform=\"translate({x},{y})\">\n{panel}</g>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// One axis: from a value to another one, and how they are spaced.
#[derive(Debug, Clone, Copy)]
struct Axis {
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Axis {
    /// Around values above zero, with some room; as wide as a factor of two where they are all the same.
    fn around(values: impl Iterator<Item = f64>) -> Option<Axis> {
        let usable = values.filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) = usable.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        (most > 0.0).then(|| Axis {
            from: least / 1.4,
            to: most * 1.4,
            logarithmic: true,
        })
    }

    /// Where a value lies, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        let place = if self.logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        place.clamp(0.0, 1.0)
    }

    /// Values to write beside the axis.
    fn ticks(self) -> Vec<f64> {
        if !self.logarithmic {
            return (0..=4)
                .map(|step| self.from + (self.to - self.from) * f64::from(step) / 4.0)
                .collect();
        }
        // As many of these steps a decade as do not crowd.
        for steps in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
            let decades = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
            let all =
                decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
            let ticks: Vec<f64> = all
                .filter(|tick| (self.from..=self.to).contains(tick))
                .collect();
            if ticks.len() <= 7 {
                return ticks;
            }
        }
        Vec::new()
    }
}

/// The square with its axes and their names.
fn frame(title: &str, x: Axis, y: Axis, names: [&str; 2]) -> String {
    let mut text = format!(
        "<text x=\"0\" y=\"-10\" font-size=\"12\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    for tick in x.ticks() {
        let at = x.place(tick) * SIDE;
        let _ = writeln!(
            text,
            "<line x1=\"{at:.1}\" y1=\"0\" x2=\"{at:.1}\" y2=\"{SIDE}\" stroke=\"#e4e4e4\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            SIDE + 14.0,
            short(tick)
        );
    }
    for tick in y.ticks() {
        let at = SIDE - y.place(tick) * SIDE;
        let _ = writeln!(
            text,
            "<line x1=\"0\" y1=\"{at:.1}\" x2=\"{SIDE}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\"/>\
             <text x=\"-5\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            at + 3.5,
            short(tick)
        );
    }
    let middle = SIDE / 2.0;
    let _ = writeln!(
        text,
        "<rect width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#666666\"/>\n\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(-40,{middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        SIDE + 30.0,
        escaped(names[0]),
        escaped(names[1])
    );
    text
}

/// Predicted against measured times of a table, on logarithmic axes of one length.
fn times(set: &Set) -> Option<String> {
    if set.kind == Kind::Streams {
        return None;
    }
    let both = set
        .points
        .iter()
        .flat_map(|point| [point.predicted, point.measured]);
    let axis = Axis::around(both)?;
    let mut panel = frame(&set.id, axis, axis, ["measured, ms", "predicted, ms"]);
    let _ = writeln!(
        panel,
        "<line x1=\"0\" y1=\"{SIDE}\" x2=\"{SIDE}\" y2=\"0\" stroke=\"#999999\" stroke-dasharray=\"4 3\"/>"
    );
    let _ = writeln!(panel, "<g fill=\"{}\" fill-opacity=\"0.5\">", COLOURS[0]);
    for point in &set.points {
        let _ = writeln!(
            panel,
            "<circle cx=\"{:.0}\" cy=\"{:.0}\" r=\"2\"/>",
            axis.place(point.measured) * SIDE,
            SIDE - axis.place(point.predicted) * SIDE
        );
    }
    panel.push_str("</g>\n");
    if let Some(rho) = set.rho {
        let _ = writeln!(
            panel,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">rho {rho:.2}</text>",
            SIDE - 6.0,
            SIDE - 8.0
        );
    }
    Some(panel)
}

/// Bandwidth against occupancy, a panel a GPU and a colour a kernel: measured as dots, predicted as lines. Of tables that
/// hold an occupancy.
fn streams(set: &Set) -> Vec<String> {
    if set.kind != Kind::Streams {
        return Vec::new();
    }
    let mut gpus: Vec<&str> = set.points.iter().map(|point| point.gpu.as_str()).collect();
    gpus.sort_unstable();
    gpus.dedup();
    gpus.iter().filter_map(|gpu| stream(set, gpu)).collect()
}

fn stream(set: &Set, gpu: &str) -> Option<String> {
    let of_gpu = || {
        set.points
            .iter()
            .filter(|point| point.gpu == gpu && point.occupancy.is_some())
    };
    let both = of_gpu().flat_map(|point| [point.gb_s, point.predicted_gb_s()]);
    let y = Axis::around(both.flatten())?;
    let x = Axis {
        from: 0.0,
        to: 100.0,
        logarithmic: false,
    };
    let mut panel = frame(gpu, x, y, ["occupancy, %", "GB/s"]);
    let mut kernels: Vec<&str> = of_gpu().map(|point| point.kernel.as_str()).collect();
    kernels.sort_unstable();
    kernels.dedup();
    for ((at, kernel), colour) in kernels.iter().enumerate().zip(COLOURS.iter().cycle()) {
        let mut points: Vec<&Point> = of_gpu().filter(|point| point.kernel == *kernel).collect();
        points.sort_by(|a, b| {
            let key = |point: &Point| point.occupancy.unwrap_or(0.0);
            key(a).total_cmp(&key(b))
        });
        let place = |point: &Point, gb_s: Option<f64>| {
            let across = x.place(point.occupancy.unwrap_or(0.0) * 100.0) * SIDE;
            Some((across, SIDE - y.place(gb_s?) * SIDE))
        };
        let line: Vec<String> = points
            .iter()
            .filter_map(|point| place(point, point.predicted_gb_s()))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            panel,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>",
            line.join(" ")
        );
        let _ = writeln!(panel, "<g fill=\"{colour}\">");
        for (x, y) in points.iter().filter_map(|point| place(point, point.gb_s)) {
            let _ = writeln!(panel, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.6\"/>");
        }
        panel.push_str("</g>\n");
        let _ = writeln!(
            panel,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{colour}\">{}</text>",
            SIDE - 6.0,
            SIDE - 6.0 - 12.0 * (kernels.len() - 1 - at) as f64,
            escaped(kernel)
        );
    }
    Some(panel)
}

/// A number as short as it can be written beside an axis.
fn short(value: f64) -> String {
    if value >= 1e4 {
        format!("{}k", (value / 1e3).round())
    } else if value >= 1.0 {
        format!("{}", (value * 10.0).round() / 10.0)
    } else {
        format!("{}", (value * 1e4).round() / 1e4)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_ends_of_their_axis() {
        let axis = Axis::around([1.0, 100.0, f64::NAN, 0.0, -3.0].into_iter()).unwrap();
        assert!((axis.place(10.0) - 0.5).abs() < 1e-9);
        assert!(axis.place(1.0) > 0.0 && axis.place(100.0) < 1.0);
        assert_eq!((axis.place(0.0), axis.place(1e9)), (0.0, 1.0));
        assert!(axis.ticks().contains(&10.0) && axis.ticks().len() <= 7);
        let alone = Axis::around(std::iter::once(5.0)).unwrap();
        assert!((alone.place(5.0) - 0.5).abs() < 1e-9);
        assert!(Axis::around(std::iter::empty()).is_none());
        let wide = Axis::around([1e-3, 1e6].into_iter()).unwrap();
        assert!(wide.ticks().len() <= 10);
    }

    #[test]
    fn panels_lie_beside_and_below_each_other() {
        let svg = sheet(&vec!["<!-- panel -->".to_owned(); 4]);
        assert_eq!(svg.matches("<g transform").count(), 4);
        assert!(svg.contains(&format!("height=\"{}\"", 2.0 * (ABOVE + SIDE + BELOW))));
        assert_eq!(escaped("f<double> & g"), "f&lt;double&gt; &amp; g");
    }
}
