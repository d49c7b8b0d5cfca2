//! Rules on their fixtures and on kernels whose sites are labelled by a run.

mod fixtures;
mod labels;
mod style;
