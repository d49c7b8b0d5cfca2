//! Work on several threads that comes back in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use warplens_syntax::stop::{self, Flags};

/// Pieces of work that are new and that one thread does before others are asked to help: an edit needs one or two.
const FEW: usize = 4;
/// Never more threads than this: the user's machine has other work.
const MOST_THREADS: usize = 4;
/// Deep recursion over deeply nested source must not end the process.
const STACK: usize = 16 * 1024 * 1024;

/// What `make` makes of each, in their order. The calling thread takes part: where no other can be started it does all.
fn in_order<T: Sync, R: Send>(of: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = cores.min(MOST_THREADS).min(of.len());
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(of.len()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = of.get(at) else { return };
            let one = make(one);
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            made.push((at, one));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            let other = thread::Builder::new().name("kernels".to_owned());
            drop(other.stack_size(STACK).spawn_scoped(scope, work));
        }
        work();
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, one)| one).collect()
}

/// The same, where most is often known already and takes no time: this thread begins, and others are asked to help only once
/// some of it had to be computed. `make` says how many pieces that were, and `None` stops everything.
pub(crate) fn as_needed<T: Sync, R: Send>(
    of: &[T],
    shares: bool,
    make: impl Fn(&T) -> Option<(R, usize)> + Sync,
) -> Option<Vec<R>> {
    let mut all = Vec::with_capacity(of.len());
    let mut computed = 0;
    for one in of {
        if shares && computed >= FEW {
            break;
        }
        let (made, new) = make(one)?;
        computed += new;
        all.push(made);
    }
    let flags = Flags::of_thread();
    let rest = in_order(&of[all.len()..], |one| flags.under(|| make(one)));
    if rest.iter().any(Option::is_none) {
        // On this thread as well, where it was for another flag than the caller's.
        stop::check();
    }
    for one in rest {
        all.push(one??.0);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_last_keeps_its_place() {
        let of: Vec<u64> = (0..100).collect();
        let doubled = in_order(&of, |number| {
            thread::sleep(std::time::Duration::from_micros(100 - number));
            2 * number
        });
        assert!(doubled.into_iter().eq((0..100).map(|number| 2 * number)));
        assert!(in_order(&[], |number: &u64| *number).is_empty());
    }
}
