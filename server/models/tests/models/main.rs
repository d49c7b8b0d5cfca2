//! Every model on code whose answer is known: from its paper, or worked out by hand.

mod auto;
mod auto_parts;
mod common;
mod linear;
mod mwp_cwp;
mod odd_input;
mod timing;
mod trace;
mod wfg;
