//! An answer comes soon, whatever is typed, and its computation stops once nothing waits for it.

mod calls;
mod cancelling;
mod robust;
mod scaling;
