//! `shutdown`

use std::sync::atomic::Ordering;

use crate::session::Session;

/// From here on `exit` is a clean end.
pub fn handle(session: &Session) {
    session.shut_down.store(true, Ordering::Release);
}
