//! Where the bytes of a generated text came from.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::OnceLock;

/// Maps byte offsets of a generated text (the output) to those of the text it was made from (the source), and
/// back. Where nothing was changed it is one segment, and every question is answered at once; otherwise by
/// binary search.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    /// Cover the output without gaps, in its order.
    segments: Vec<Segment>,
    /// What was overwritten with spaces, in bytes of the output, in order.
    blanks: Vec<Range<usize>>,
    output_length: usize,
    source_length: usize,
    /// Made at the first question where a source byte went.
    landings: OnceLock<Vec<Landing>>,
}

/// One stretch of the output, as a constructor of [`SourceMap`] takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the output.
    pub output: Range<usize>,
    /// Bytes of the source that they came from.
    pub source: Range<usize>,
    /// Whether byte for byte (the two ranges are then equally long), or as a whole.
    pub verbatim: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    output: usize,
    output_end: usize,
    source: usize,
    source_end: usize,
    verbatim: bool,
}

/// A stretch of the source of which every byte went to the same place of the output, or to one beside the other.
#[derive(Debug, Clone, Copy)]
struct Landing {
    source: usize,
    source_end: usize,
    output: usize,
    verbatim: bool,
}

impl SourceMap {
    /// The map of a text of `length` bytes that was left as it is.
    pub fn identity(length: usize) -> Self {
        let mut builder = Builder::default();
        builder.verbatim(0, 0);
        builder.finish(length, length)
    }

    /// A map made of `pieces` in the order of the output. What lies between two pieces maps to the end of what
    /// the first came from. `source_length` is in bytes.
    pub fn from_pieces(pieces: &[Piece], source_length: usize) -> Self {
        let mut builder = Builder::default();
        let (mut output, mut source) = (0, 0);
        for piece in pieces {
            if output < piece.output.start {
                builder.collapsed(output, source..source);
            }
            if piece.output.is_empty() {
                continue;
            }
            if piece.verbatim && piece.output.len() == piece.source.len() {
                builder.verbatim(piece.output.start, piece.source.start);
            } else {
                builder.collapsed(piece.output.start, piece.source.clone());
            }
            output = piece.output.end;
            source = piece.source.end;
        }
        builder.finish(output, source_length)
    }

    /// The source offset that an output offset came from: exact where the text was copied, the beginning of what
    /// it comes from (a macro's name at its use, an `#include` line) elsewhere. The end maps to the end.
    pub fn to_source(&self, output: usize) -> usize {
        match self.segment_at(output) {
            Some(segment) if segment.verbatim => segment.source + (output - segment.output),
            Some(segment) => segment.source,
            None => self.source_length,
        }
    }

    /// The smallest range of the source that covers everything that the output range came from.
    pub fn source_range(&self, output: Range<usize>) -> Range<usize> {
        if output.is_empty() {
            let at = self.to_source(output.start);
            return at..at;
        }
        let first = self.first_segment_after(output.start);
        let mut covered: Option<Range<usize>> = None;
        for segment in &self.segments[first..] {
            if segment.output >= output.end {
                break;
            }
            let part = segment.source_of(&output);
            covered = Some(match covered {
                Some(range) => range.start.min(part.start)..range.end.max(part.end),
                None => part,
            });
        }
        covered.unwrap_or(self.source_length..self.source_length)
    }

    /// Whether the output range is one uninterrupted copy of the source: no macro was used in it, no directive
    /// and no inactive branch is in it. Words that the grammar lacks may have been overwritten in it.
    pub fn is_verbatim(&self, output: Range<usize>) -> bool {
        if output.end > self.output_length {
            return false;
        }
        if output.is_empty() {
            return true;
        }
        let within = self
            .segment_at(output.start)
            .is_some_and(|segment| segment.verbatim && output.end <= segment.output_end);
        let blank = self
            .blanks
            .partition_point(|blank| blank.end <= output.start);
        within
            && self
                .blanks
                .get(blank)
                .is_none_or(|blank| blank.start >= output.end)
    }

    /// Where a byte of the source went first: itself where it was copied, else the first byte of what it became.
    /// `None` where it became nothing.
    pub fn to_output(&self, source: usize) -> Option<usize> {
        if source == self.source_length {
            return Some(self.output_length);
        }
        if let [segment] = self.segments[..]
            && segment.verbatim
        {
            return (segment.source..segment.source_end)
                .contains(&source)
                .then(|| source - segment.source + segment.output);
        }
        let landings = self.landings.get_or_init(|| self.land());
        let at = landings.partition_point(|landing| landing.source_end <= source);
        let landing = landings
            .get(at)
            .filter(|landing| landing.source <= source)?;
        Some(if landing.verbatim {
            landing.output + (source - landing.source)
        } else {
            landing.output
        })
    }

    /// The map from this map's output to the source of `outer`, whose output is this map's source.
    pub fn compose(&self, outer: &SourceMap) -> SourceMap {
        let mut builder = Builder::default();
        for segment in &self.segments {
            if !segment.verbatim {
                let source = outer.source_range(segment.source..segment.source_end);
                builder.collapsed(segment.output, source);
                continue;
            }
            let range = segment.source..segment.source_end;
            let mut at = range.start;
            for part in &outer.segments[outer.first_segment_after(range.start)..] {
                if part.output >= range.end {
                    break;
                }
                let output = segment.output + (at - segment.source);
                let source = part.source_of(&(at..range.end));
                if part.verbatim {
                    builder.verbatim(output, source.start);
                } else {
                    builder.collapsed(output, source);
                }
                at = part.output_end.min(range.end);
            }
            if at < range.end {
                let end = outer.source_length;
                builder.collapsed(segment.output + (at - segment.source), end..end);
            }
            let first = outer
                .blanks
                .partition_point(|blank| blank.end <= range.start);
            for blank in &outer.blanks[first..] {
                if blank.start >= range.end {
                    break;
                }
                let place = |at: usize| at - segment.source + segment.output;
                builder
                    .blanks
                    .push(place(blank.start.max(range.start))..place(blank.end.min(range.end)));
            }
        }
        builder.blanks.extend(self.blanks.iter().cloned());
        builder.blanks.sort_by_key(|blank| blank.start);
        builder.finish(self.output_length, outer.source_length)
    }

    /// The stretches that the map is made of, in the order of the output.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        self.segments.iter().map(|segment| Piece {
            output: segment.output..segment.output_end,
            source: segment.source..segment.source_end,
            verbatim: segment.verbatim,
        })
    }

    /// What was overwritten with spaces (directives and inactive branches), in bytes of the output, in order.
    pub fn blanks(&self) -> &[Range<usize>] {
        &self.blanks
    }

    /// These bytes of the source were overwritten with spaces before it was read.
    pub(super) fn overwritten(&mut self, source: &[Range<usize>]) {
        let places = source.iter().filter_map(|part| {
            let output = self.to_output(part.start)?;
            let output = output..output + part.len();
            self.is_verbatim(output.clone()).then_some(output)
        });
        let places: Vec<Range<usize>> = places.collect();
        self.blanks.extend(places);
        self.blanks.sort_by_key(|blank| blank.start);
    }

    fn segment_at(&self, output: usize) -> Option<&Segment> {
        self.segments.get(self.first_segment_after(output))
    }

    /// The index of the segment that `output` lies in.
    fn first_segment_after(&self, output: usize) -> usize {
        self.segments
            .partition_point(|segment| segment.output_end <= output)
    }

    /// Decides for every byte of the source where it went: to its first copy, else to the first thing that was
    /// made of it.
    fn land(&self) -> Vec<Landing> {
        let mut by_source: Vec<&Segment> = self
            .segments
            .iter()
            .filter(|segment| segment.source < segment.source_end)
            .collect();
        by_source.sort_by_key(|segment| segment.source);
        let mut bounds: Vec<usize> = by_source
            .iter()
            .flat_map(|segment| [segment.source, segment.source_end])
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut open = BinaryHeap::new();
        let mut next = by_source.iter().peekable();
        let mut landings: Vec<Landing> = Vec::with_capacity(by_source.len());
        for bound in bounds.windows(2) {
            let (from, to) = (bound[0], bound[1]);
            while let Some(segment) = next.next_if(|segment| segment.source <= from) {
                open.push(Reverse((
                    !segment.verbatim,
                    segment.output,
                    segment.source,
                    segment.source_end,
                )));
            }
            while open
                .peek()
                .is_some_and(|Reverse((_, _, _, end))| *end <= from)
            {
                open.pop();
            }
            let Some(&Reverse((made, output, source, _))) = open.peek() else {
                continue;
            };
            landings.push(Landing {
                source: from,
                source_end: to,
                output: if made {
                    output
                } else {
                    output + (from - source)
                },
                verbatim: !made,
            });
        }
        landings
    }
}

impl Segment {
    /// What the part of this segment that lies in `output` came from.
    fn source_of(&self, output: &Range<usize>) -> Range<usize> {
        if !self.verbatim {
            return self.source..self.source_end;
        }
        let start = output.start.max(self.output) - self.output;
        let end = output.end.min(self.output_end) - self.output;
        self.source + start..self.source + end
    }
}

/// Collects segments in the order of the output; each ends where the next begins.
#[derive(Debug, Default)]
pub(super) struct Builder {
    segments: Vec<Segment>,
    pub(super) blanks: Vec<Range<usize>>,
    /// Nothing is noted: a text put in place is one segment.
    pub(super) muted: bool,
}

impl Builder {
    /// From `output` on, the output is a copy of the source from `source` on.
    pub(super) fn verbatim(&mut self, output: usize, source: usize) {
        if let Some(last) = self.segments.last()
            && last.verbatim
            && source >= last.source
            && source - last.source == output - last.output
        {
            return;
        }
        self.push(Segment {
            output,
            output_end: output,
            source,
            source_end: source,
            verbatim: true,
        });
    }

    /// From `output` on, the output comes from `source` as a whole.
    pub(super) fn collapsed(&mut self, output: usize, source: Range<usize>) {
        if let Some(last) = self.segments.last()
            && !last.verbatim
            && last.source == source.start
            && last.source_end == source.end
        {
            return;
        }
        self.push(Segment {
            output,
            output_end: output,
            source: source.start,
            source_end: source.end,
            verbatim: false,
        });
    }

    /// Sets the end of the use that the segments from `first` on stand for, or copy arguments of.
    pub(super) fn close_use(&mut self, first: usize, end: usize) {
        for segment in self.segments.iter_mut().skip(first) {
            if !segment.verbatim {
                segment.source_end = end;
            }
        }
    }

    fn push(&mut self, segment: Segment) {
        if self.muted {
            return;
        }
        // One that nothing was written for.
        if self
            .segments
            .last()
            .is_some_and(|last| last.output == segment.output)
        {
            self.segments.pop();
        }
        self.segments.push(segment);
    }

    /// How many segments there are, to go back to by [`Builder::truncate`].
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.segments.truncate(length);
    }

    pub(super) fn finish(mut self, output_length: usize, source_length: usize) -> SourceMap {
        if self
            .segments
            .last()
            .is_some_and(|last| last.output >= output_length)
        {
            self.segments.pop();
        }
        let mut end = output_length;
        for segment in self.segments.iter_mut().rev() {
            segment.output_end = end;
            if segment.verbatim {
                segment.source_end = segment.source + (end - segment.output);
            }
            end = segment.output;
        }
        SourceMap {
            segments: self.segments,
            blanks: self.blanks,
            output_length,
            source_length,
            landings: OnceLock::new(),
        }
    }
}
