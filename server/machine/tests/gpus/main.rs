//! Profiles of GPUs, and the requests and occupancy that follow from them.

mod occupancy;
mod profiles;
mod published;
mod requests;
mod tables;
mod variants;
