//! Template parameters that nothing binds: where what is assumed first leaves parts of the kernel without a meaning, other
//! values are tried, and the one under which most of it has a meaning is taken.
//!
//! `Bytes<N * sizeof(T)>` may be specialised for 4, 8 and 16 bytes, `copy<T, 4>` for halves only: a kernel that is launched at all
//! is launched with arguments that its program has these for.

use super::assumptions::{ASSUMED_INTEGER, ASSUMED_NUMBER, ASSUMED_TYPE};
use warplens_ir::{
    Assumption, AssumptionKind, Expr, ExprKind, Kernel, NotUnderstood, Reason, Type,
};

/// Readings of one kernel beyond the first.
const MOST_TRIALS: usize = 24;
/// Expressions of all of them.
const MOST_EXPRESSIONS: u32 = 60_000;
/// Types that specialisations are for.
const TYPES: [&str; 4] = ["__half", "float", "int", "double"];
const INTEGER: &str = "int";
/// What a type is that a kernel subscripts or dereferences.
const POINTERS: [&str; 2] = ["float *", "int *"];
/// Numbers that they are for.
const NUMBERS: [&str; 6] = ["4", "8", "16", "1", "2", "128"];

/// The kernel under the assumptions that leave the fewest parts of it without a meaning. `given`: what the user binds; what is tried
/// is bound behind it.
pub(super) fn best(
    first: Kernel,
    expressions: u32,
    given: &[(String, String)],
    read: impl Fn(&[(String, String)]) -> Option<(Kernel, u32)>,
) -> Kernel {
    // Text that the grammar does not accept is being typed, or has no meaning under any arguments.
    let is_broken =
        |lost: &NotUnderstood| matches!(lost.reason, Reason::SyntaxError | Reason::Layouts);
    if first.not_understood.iter().any(is_broken) {
        return first;
    }
    let mut best = first;
    let mut least = without_meaning(&best);
    if least == 0 {
        return best;
    }
    let mut trials = Trials {
        read,
        left: MOST_TRIALS,
        expressions: MOST_EXPRESSIONS.saturating_sub(expressions),
    };
    let by_user = given.len();
    let mut given = given.to_vec();
    // `out + row * n + key` is an element where both `row` and `key` are integers: one alone changes nothing.
    let mistaken = |lost: &NotUnderstood| lost.reason == Reason::Operator;
    if best.not_understood.iter().any(mistaken) {
        let mut integers: Vec<(String, String)> = (best.assumed.iter())
            .filter(|assumed| {
                assumed.kind == AssumptionKind::Template && assumed.value == ASSUMED_TYPE.0
            })
            .map(|assumed| (assumed.name.clone(), INTEGER.to_owned()))
            .collect();
        if let Some((kernel, left)) = trials.read(&[&given[..], &integers].concat(), by_user)
            && left < least
        {
            (best, least) = (kernel, left);
            // Those that need not be integers are what is assumed of any type.
            for at in (0..integers.len()).rev() {
                let mut fewer = integers.clone();
                fewer.remove(at);
                if let Some((kernel, left)) = trials.read(&[&given[..], &fewer].concat(), by_user)
                    && left <= least
                {
                    (best, least, integers) = (kernel, left, fewer);
                }
            }
            given.append(&mut integers);
        }
    }
    let mut tried: Vec<String> = (given[by_user..].iter())
        .map(|(name, _)| name.clone())
        .collect();
    while let Some(assumed) = next(&best, &tried) {
        tried.push(assumed.name.clone());
        for value in alternatives(&assumed.value, unread_accesses(&best) > 0) {
            if least == 0 {
                return best;
            }
            let mut other = given.clone();
            other.push((assumed.name.clone(), value.to_owned()));
            if let Some((kernel, left)) = trials.read(&other, by_user)
                && left < least
            {
                (best, least, given) = (kernel, left, other);
                break;
            }
        }
    }
    best
}

/// Readings of a kernel under other arguments, as long as there may be any.
struct Trials<R> {
    read: R,
    left: usize,
    expressions: u32,
}

impl<R: Fn(&[(String, String)]) -> Option<(Kernel, u32)>> Trials<R> {
    /// The kernel with these arguments, those behind the user's noted as assumed, and how many parts of it have no meaning.
    fn read(&mut self, given: &[(String, String)], by_user: usize) -> Option<(Kernel, usize)> {
        if self.left == 0 || self.expressions == 0 {
            return None;
        }
        let (mut kernel, expressions) = (self.read)(given)?;
        self.left -= 1;
        self.expressions = self.expressions.saturating_sub(expressions);
        for (name, value) in &given[by_user..] {
            if kernel.assumed.iter().all(|known| known.name != *name) {
                kernel.assumed.push(Assumption {
                    name: name.clone(),
                    value: value.clone(),
                    kind: AssumptionKind::Template,
                });
            }
        }
        let left = without_meaning(&kernel);
        Some((kernel, left))
    }
}

/// How many parts of it have no meaning, of those that other template arguments may give one.
fn without_meaning(kernel: &Kernel) -> usize {
    kernel.not_understood.len() + unread_accesses(kernel)
}

/// Accesses to types that were not read.
fn unread_accesses(kernel: &Kernel) -> usize {
    let mut parts = 0;
    let mut look = |expression: &Expr| {
        let accesses = matches!(expression.kind, ExprKind::Deref(_) | ExprKind::Index(..));
        parts += usize::from(accesses && matches!(expression.ty, Type::Unknown(_)));
    };
    warplens_ir::walk::expressions(&kernel.body, &mut look);
    for routine in &kernel.routines {
        warplens_ir::walk::expressions(&routine.body, &mut look);
    }
    parts
}

/// The next parameter for which a plain type or number was assumed.
fn next(kernel: &Kernel, tried: &[String]) -> Option<Assumption> {
    let mut all = kernel.assumed.iter();
    all.find(|assumed| {
        assumed.kind == AssumptionKind::Template
            && !tried.contains(&assumed.name)
            && !alternatives(&assumed.value, false).is_empty()
    })
    .cloned()
}

/// What else may stand in the place of an assumed value. An iterator is a pointer, where something is accessed that was not read.
fn alternatives(value: &str, accesses: bool) -> Vec<&'static str> {
    let plain = [ASSUMED_TYPE.0, ASSUMED_INTEGER.0];
    let (first, others): (&[&str], &[&str]) = if POINTERS.contains(&value) {
        (&POINTERS, &[])
    } else if plain.contains(&value) {
        let pointers: &[&str] = if accesses { &POINTERS } else { &[] };
        (pointers, &TYPES)
    } else if value.parse() == Ok(ASSUMED_NUMBER) {
        (&[], &NUMBERS)
    } else {
        (&[], &[])
    };
    let all = first.iter().chain(others).copied();
    all.filter(|other| *other != value).collect()
}
