//! What models expect of an access whose address is not known.
//!
//! No fact is made of it: the facts say what a request takes for each alignment of its start, the model assumes that one is
//! as likely as another.

use warplens_facts::facts::{Access, AlignedRequests};

/// What a request takes on average over the alignments of a start that is unknown: lanes with one value of what data decides
/// share it, others have a place of their own each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ExpectedRequest {
    /// Distinct transaction units touched.
    pub transactions: f64,
    /// ceil(distinct bytes / unit).
    pub ideal_transactions: f64,
    /// Bytes the memory system moves.
    pub bytes_moved: f64,
    /// Lines of 128 bytes that L1 looks up, if one instruction moves 4, 8 or 16 bytes per lane.
    pub lines: [f64; 3],
}

impl ExpectedRequest {
    /// `None` where the access's figures are known, or nothing says which lanes share a start.
    pub fn of(access: &Access) -> Option<ExpectedRequest> {
        let places = &access.by_alignment;
        if places.is_empty() {
            return None;
        }
        let likely = 1.0 / places.len() as f64;
        let mut mean = ExpectedRequest::default();
        for place in places {
            mean.add(place, likely);
        }
        Some(mean)
    }

    fn add(&mut self, place: &AlignedRequests, likely: f64) {
        let share = likely / place.requests;
        self.transactions += share * place.transactions;
        self.ideal_transactions += share * place.ideal_transactions;
        self.bytes_moved += share * place.bytes_moved;
        for (mean, lines) in self.lines.iter_mut().zip(place.lines) {
            *mean += share * lines;
        }
    }
}
