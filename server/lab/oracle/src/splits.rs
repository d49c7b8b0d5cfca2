//! What branches waste: issues that fewer warps would need if the active lanes filled them.

#[derive(Debug)]
struct Split {
    /// The part of each issue that is in vain.
    share: f64,
    wasted: f64,
}

/// The branches being executed, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Splits(Vec<Split>);

impl Splits {
    /// Some of the lanes of a block that came to a branch go one way.
    pub(crate) fn open(&mut self, came: &[bool], lanes: &[bool], warp: usize) {
        // What those that came waste already is another branch's.
        let share = (filled(came, warp) - filled(lanes, warp)).max(0.0);
        self.0.push(Split { share, wasted: 0.0 });
    }

    /// Counts an operation issued by `warps` warps.
    pub(crate) fn issue(&mut self, warps: f64) {
        for split in &mut self.0 {
            split.wasted += split.share * warps;
        }
    }

    /// What the innermost wasted.
    pub(crate) fn close(&mut self) -> f64 {
        self.0.pop().map_or(0.0, |split| split.wasted)
    }
}

/// Warps that lanes would fill, to those that they are in; 1 without lanes.
fn filled(lanes: &[bool], warp: usize) -> f64 {
    let there = lanes.iter().filter(|&&here| here).count();
    let warps = lanes
        .chunks(warp)
        .filter(|lanes| lanes.contains(&true))
        .count();
    there.div_ceil(warp) as f64 / warps.max(1) as f64 + f64::from(u8::from(warps == 0))
}
