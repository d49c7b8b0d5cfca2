//! Query family: what models say of a kernel.
//!
//! In: a [`ModelInput`], what is left out of it and the warps that the user gives. Out: [`Estimates`], in which a model runs when
//! on request. What holds: which model is shown first is no part of it.

use std::sync::Arc;

use warplens_models::ModelInput;

use crate::Overrides;
use crate::contents::Contents;
use crate::estimates::Estimates;
use crate::memo::hash;

impl Contents {
    /// The estimates of an input that is known by `input_key`.
    pub(crate) fn estimates(
        &self,
        input: &Arc<ModelInput>,
        input_key: u64,
        overrides: &Overrides,
    ) -> Arc<Estimates> {
        let key = hash(&[&input_key, &overrides.without, &overrides.warps_per_sm]);
        let make = || Estimates::new(Arc::clone(input), overrides);
        self.estimates.get_or(key, make)
    }
}
