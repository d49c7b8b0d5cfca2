//! Work that is given up in its midst.
//!
//! In: a flag that any thread may set, and work under it. Out: what the work gives, or nothing where the flag was set before it was
//! done. What holds: work that may take long looks at the flags of its thread on its way ([`check`]) and unwinds where one is set,
//! past what catches panics; who works on several threads hands the flags on ([`Flags`]).

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The flags under which a thread works, outermost first.
#[derive(Debug, Clone, Default)]
pub struct Flags(Vec<Arc<AtomicBool>>);

/// What unwinds: the flag that was set.
struct GivenUp(Arc<AtomicBool>);

thread_local! {
    static OF_THREAD: RefCell<Flags> = const { RefCell::new(Flags(Vec::new())) };
}

/// Gives up what this thread works on where a flag of it is set.
#[inline]
pub fn check() {
    let set = OF_THREAD.with_borrow(|flags| {
        let mut flags = flags.0.iter();
        flags.find(|flag| flag.load(Ordering::Relaxed)).cloned()
    });
    if let Some(flag) = set {
        // Without a word: it is no defect.
        resume_unwind(Box::new(GivenUp(flag)));
    }
}

/// Whether what unwinds is work that is given up: who catches panics lets it pass.
pub fn is_given_up(cause: &(dyn Any + Send)) -> bool {
    cause.is::<GivenUp>()
}

/// What the work gives; nothing where the flag was set before it was done.
pub fn until<T>(flag: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> Option<T> {
    let mut flags = Flags::of_thread();
    flags.0.push(Arc::clone(flag));
    let worked = flags.over(|| catch_unwind(AssertUnwindSafe(work)));
    match worked {
        Ok(made) => Some(made),
        Err(cause) => match cause.downcast_ref::<GivenUp>() {
            Some(GivenUp(set)) if Arc::ptr_eq(set, flag) => None,
            _ => resume_unwind(cause),
        },
    }
}

impl Flags {
    /// Those under which this thread works.
    pub fn of_thread() -> Flags {
        OF_THREAD.with_borrow(Flags::clone)
    }

    /// The work of another thread under these flags; nothing where one of them was set before it was done.
    pub fn under<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        match self.over(|| catch_unwind(AssertUnwindSafe(work))) {
            Ok(made) => Some(made),
            Err(cause) if is_given_up(&*cause) => None,
            Err(cause) => resume_unwind(cause),
        }
    }

    /// Work that does not unwind, under these flags in the place of those of the thread.
    fn over<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = OF_THREAD.replace(self.clone());
        let worked = work();
        OF_THREAD.set(before);
        worked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_stops_at_its_next_check_and_the_flags_are_those_from_before() {
        let flag = Arc::new(AtomicBool::new(false));
        let mut turns = 0;
        let made = until(&flag, || {
            loop {
                check();
                turns += 1;
                flag.store(turns == 3, Ordering::Relaxed);
            }
        });
        assert_eq!((made, turns), (None::<()>, 3));
        check();
        assert_eq!(until(&Arc::default(), || 5), Some(5));
    }

    #[test]
    fn who_waits_for_another_flag_passes_it_on() {
        let (outer, inner) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut passed = false;
        let made = until(&outer, || {
            until(&inner, || {
                outer.store(true, Ordering::Relaxed);
                check();
            });
            passed = true;
        });
        assert_eq!((made, passed), (None, false));
    }

    #[test]
    fn other_threads_stop_as_well() {
        let flag = Arc::new(AtomicBool::new(true));
        let made = until(&flag, || {
            let flags = Flags::of_thread();
            std::thread::scope(|scope| {
                let other = scope.spawn(|| flags.under(check));
                other.join().expect("it does not panic")
            })
        });
        assert_eq!(made, Some(None));
    }

    #[test]
    fn a_panic_goes_its_way() {
        let flag = Arc::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| until(&flag, || panic!("as planned"))));
        let cause = panicked.expect_err("it panicked");
        assert!(!is_given_up(&*cause));
    }
}
