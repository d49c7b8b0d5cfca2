//! Ends the session with the client's process, for clients that die without closing the pipe.

use std::time::Duration;

use tokio::sync::watch;

const EVERY: Duration = Duration::from_secs(3);

/// Returns when the process named in `initialize` is gone. A process that cannot be seen from the start
/// (the client runs on another machine, or outside this container) is not waited for.
pub async fn gone(mut parent: watch::Receiver<Option<u32>>) {
    let named = parent
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|named| *named);
    let Some(process) = named.filter(|process| alive(*process)) else {
        return std::future::pending().await;
    };
    while alive(process) {
        tokio::time::sleep(EVERY).await;
    }
}

/// True while a process exists. Where there is no `/proc` nothing is known, and the end of standard input
/// has to do.
fn alive(process: u32) -> bool {
    std::path::Path::new("/proc")
        .join(process.to_string())
        .join("stat")
        .exists()
}
