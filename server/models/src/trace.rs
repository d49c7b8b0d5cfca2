//! Wang et al. 2019: execution traces of distinct warps through a pipeline.

use crate::Estimate;
use crate::work::Work;

pub(crate) fn estimate_work(_work: &Work) -> Estimate {
    Estimate {
        why: Some("not part of this version".to_owned()),
        ..Estimate::default()
    }
}
