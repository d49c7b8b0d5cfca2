//! What is said of a program's launches, held against those that it made.

use std::fmt;

use warplens_host::LaunchSite;
use warplens_ir::{Bound, Type};
use warplens_oracle::Scalar;

use super::device::{Array, Made, Number, Passed, scalar_named};

/// How many of all are said and right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    right: usize,
    of: usize,
}

impl Share {
    fn see(&mut self, right: bool) {
        self.right += usize::from(right);
        self.of += 1;
    }

    fn add(&mut self, other: Share) {
        self.right += other.right;
        self.of += other.of;
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.right, self.of)
    }
}

/// What the comparison of a program came to.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Launches that the program made.
    made: usize,
    /// Different ones: their kernel, grid, block and shared memory are said, and right.
    launches: Share,
    /// Their numbers: integers and those of floating point, members of structures among them.
    numbers: Share,
    /// How often each is made.
    counts: Share,
    /// Bytes of the arrays that pointers point to.
    extents: Share,
    /// What these hold, where that is the host's doing.
    contents: Share,
    /// What is said and is not so.
    pub wrong: Vec<String>,
    /// What is not said.
    pub missing: Vec<String>,
}

impl Comparison {
    /// Adds another program's.
    pub fn add(&mut self, other: &Comparison) {
        self.made += other.made;
        for (own, more) in [
            (&mut self.launches, other.launches),
            (&mut self.numbers, other.numbers),
            (&mut self.counts, other.counts),
            (&mut self.extents, other.extents),
            (&mut self.contents, other.contents),
        ] {
            own.add(more);
        }
        self.wrong.extend(other.wrong.iter().cloned());
        self.missing.extend(other.missing.iter().cloned());
    }

    /// Figures that are right.
    pub fn right(&self) -> usize {
        let all = [
            self.launches,
            self.numbers,
            self.counts,
            self.extents,
            self.contents,
        ];
        all.iter().map(|share| share.right).sum()
    }

    /// In one line.
    pub fn in_short(&self) -> String {
        format!(
            "{} launches, different ones {}, numbers {}, counts {}, extents {}, contents {}",
            self.made, self.launches, self.numbers, self.counts, self.extents, self.contents
        )
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "said and right, of what the programs did:")?;
        for (what, share) in [
            (
                "launches (kernel, grid, block, shared memory)",
                self.launches,
            ),
            ("numbers that they pass", self.numbers),
            ("how often", self.counts),
            ("extents of arrays", self.extents),
            (
                "contents of arrays of integers that the host wrote",
                self.contents,
            ),
        ] {
            writeln!(f, "  {what}: {share}")?;
        }
        write!(f, "said and not so: {}", self.wrong.len())
    }
}

/// Launches that differ in nothing that a launch says.
struct Group<'a> {
    first: &'a Made,
    all: Vec<&'a Made>,
}

/// Sites that say the same launch, in several places of the program.
struct Said<'a> {
    sites: Vec<&'a LaunchSite>,
}

impl<'a> Said<'a> {
    fn first(&self) -> &'a LaunchSite {
        self.sites[0]
    }

    /// How often; `None` where one of them does not say it.
    fn count(&self) -> Option<u64> {
        self.sites.iter().map(|site| site.count).sum()
    }
}

fn same_launch(a: &LaunchSite, b: &LaunchSite) -> bool {
    let scalar = |ty: &Option<Type>| {
        let element = ty.as_ref().and_then(Type::element).cloned();
        element.filter(|element| matches!(element, Type::Int { .. } | Type::Float { .. }))
    };
    let differ = |(a, b): (&Option<Type>, &Option<Type>)| match (scalar(a), scalar(b)) {
        (Some(a), Some(b)) => a != b,
        _ => false,
    };
    let mut types = a.argument_types.iter().zip(&b.argument_types);
    a.kernel == b.kernel
        && (a.grid, a.block) == (b.grid, b.block)
        && a.dynamic_shared_bytes == b.dynamic_shared_bytes
        && a.template_args == b.template_args
        && (&a.arguments, &a.members) == (&b.arguments, &b.members)
        && a.reals == b.reals
        && !types.any(differ)
}

/// Compares. `is_cut`: there is more than `sites`; `ended`: the program came to its end.
pub fn compare(made: &[Made], sites: &[LaunchSite], is_cut: bool, ended: bool) -> Comparison {
    let mut groups: Vec<Group> = Vec::new();
    for one in made {
        match groups.iter_mut().find(|group| alike(group.first, one)) {
            Some(group) => group.all.push(one),
            None => groups.push(Group {
                first: one,
                all: vec![one],
            }),
        }
    }
    let mut result = Comparison {
        made: made.len(),
        ..Comparison::default()
    };
    let mut all: Vec<Said> = Vec::new();
    for site in sites {
        match all.iter_mut().find(|said| same_launch(said.first(), site)) {
            Some(said) => said.sites.push(site),
            None => all.push(Said { sites: vec![site] }),
        }
    }
    let mut taken: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut last = 0;
    for (number, group) in groups.iter().enumerate() {
        let fitting = all
            .iter()
            .enumerate()
            .filter_map(|(at, said)| Some((at, known(said.first(), group.first)?)));
        // Of those that say as much, the first.
        let best = fitting.max_by_key(|&(at, known)| (known, std::cmp::Reverse(at)));
        let best_said = best.map(|(at, _)| &all[at]);
        if let Some((at, _)) = best {
            if taken[at].is_empty() {
                if at < last && !group.first.arguments.contains(&Passed::Unknown) {
                    let what = format!("{} is said later than it is made", shown(group.first));
                    result.wrong.push(what);
                }
                last = last.max(at);
            }
            taken[at].push(number);
        }
        result.see(group, best_said);
    }
    for (said, taken) in all.iter().zip(&taken) {
        let times: usize = taken.iter().map(|&at| groups[at].all.len()).sum();
        let name = shown_site(said.first());
        // Launches that differ in a structure that was not read look alike.
        let is_whole = |one: &&Made| !one.arguments.contains(&Passed::Unknown);
        let alike = groups.iter().map(|group| group.first);
        let mut of_kernel = alike.filter(|one| one.kernel == said.first().kernel);
        if !of_kernel.all(|one| is_whole(&one)) || (!ended && taken.is_empty()) {
            continue;
        }
        match said.count() {
            // One of two ways that the program may go.
            None if taken.is_empty() => {}
            None => {
                result.counts.see(false);
                result.missing.push(format!("{name}: how often"));
            }
            Some(count) => {
                result.counts.see(count == times as u64);
                let more_may_come = is_cut && count < times as u64;
                let ended_before = !ended && count > times as u64;
                if count != times as u64 && !more_may_come && !ended_before {
                    let what = format!("{name} is made {times} times, not {count}");
                    result.wrong.push(what);
                }
            }
        }
    }
    result
}

impl Comparison {
    /// Looks at what is said of one launch.
    fn see(&mut self, group: &Group, said: Option<&Said>) {
        let first = group.first;
        let name = shown(first);
        let site = said.map(Said::first);
        let whole = site.is_some_and(|site| {
            site.grid.is_some() && site.block.is_some() && site.dynamic_shared_bytes.is_some()
        });
        self.launches.see(whole);
        let mut missing: Vec<String> = Vec::new();
        if !whole {
            missing.push(site.map_or_else(|| "it is not found".to_owned(), shown_site));
        }
        for (at, passed) in first.arguments.iter().enumerate() {
            match passed {
                Passed::Unknown => {}
                Passed::Words(words) => {
                    for (path, _) in words {
                        let known = site.is_some_and(|site| number(site, at, path).is_some());
                        self.numbers.see(known);
                        if !known && site.is_some() {
                            let what = format!("argument {at} {path}");
                            missing.push(what.trim_end().to_owned());
                        }
                    }
                }
                Passed::Pointer(_) => {
                    if let Some(said) = said {
                        missing.extend(self.see_array(group, said, at, &name));
                    } else {
                        self.extents.see(false);
                    }
                }
            }
        }
        if !missing.is_empty() {
            self.missing.push(format!("{name}: {}", missing.join(", ")));
        }
    }

    /// Looks at what is said of the array that an argument points to; what is not said.
    fn see_array(&mut self, group: &Group, said: &Said, at: usize, name: &str) -> Vec<String> {
        let mut missing = Vec::new();
        let arrays = || {
            let all = group.all.iter();
            all.filter_map(|made| match &made.arguments[at] {
                Passed::Pointer(Some(array)) => Some((array, made.is_after_unrun)),
                _ => None,
            })
        };
        let lengths: Vec<u64> = arrays().map(|(array, _)| array.bytes).collect();
        if lengths.is_empty() {
            return missing;
        }
        let extents = || said.sites.iter().map(|site| site.extents.get(at)?.as_ref());
        let is_said = |length: &u64| extents().flatten().any(|said| said == length);
        let right = lengths.iter().all(is_said);
        self.extents.see(right);
        if !right && extents().all(|said| said.is_some()) {
            let said: Vec<&u64> = extents().flatten().collect();
            self.wrong.push(format!(
                "{name}: argument {at} points to {lengths:?} bytes, not {said:?}"
            ));
        } else if !right {
            missing.push(format!("extent {at}"));
        }
        let run = || arrays().filter(|(_, is_after_unrun)| !is_after_unrun);
        let contents = || {
            said.sites
                .iter()
                .map(|site| site.contents.get(at)?.as_ref())
        };
        let is_open = contents().any(|said| said.is_none());
        // What kernels compute is not evaluated, nor what floating point is: it decides few branches and no addresses. That
        // it is not said to be something else is checked all the same.
        let wanted = |(array, _): (&Array, bool)| {
            let integers = array.element.is_some_and(|element| !element.is_float());
            array.is_of_host && integers
        };
        let wanted = run().count() > 0 && run().all(wanted);
        if is_open && !wanted {
            return missing;
        }
        // The first byte in which an array is not what is said of it, by the one that is said like it the longest.
        let differing = |(array, _): (&Array, bool)| {
            let found = array.contents.as_ref()?;
            let differences = contents().flatten().map(|said| difference(said, found));
            differences
                .max_by_key(|byte| byte.unwrap_or(usize::MAX))
                .flatten()
        };
        let differing = run().find_map(differing);
        self.contents.see(!is_open && differing.is_none());
        match differing {
            Some(byte) if !is_open => self.wrong.push(format!(
                "{name}: what argument {at} points to differs at byte {byte}"
            )),
            None if !is_open => {}
            _ => missing.push(format!("contents {at}")),
        }
        missing
    }
}

/// The first byte in which an array is not what is said of it.
fn difference(said: &[u8], found: &[u8]) -> Option<usize> {
    let differing = said
        .iter()
        .zip(found)
        .position(|(said, found)| said != found);
    differing.or((said.len() > found.len()).then_some(found.len()))
}

fn alike(a: &Made, b: &Made) -> bool {
    let same = |(a, b): (&Passed, &Passed)| match (a, b) {
        (Passed::Pointer(a), Passed::Pointer(b)) => {
            a.as_ref().map(|array| array.bytes) == b.as_ref().map(|array| array.bytes)
        }
        _ => a == b,
    };
    a.kernel == b.kernel
        && a.template == b.template
        && (a.grid, a.block) == (b.grid, b.block)
        && a.dynamic_shared_bytes == b.dynamic_shared_bytes
        && a.arguments.len() == b.arguments.len()
        && a.arguments.iter().zip(&b.arguments).all(same)
}

/// How much of a launch is said by a site that may be it; `None` where it cannot.
fn known(site: &LaunchSite, made: &Made) -> Option<usize> {
    if site.kernel != made.kernel {
        return None;
    }
    let mut known = 0;
    let mut see = |fits: Option<bool>| {
        known += usize::from(fits.is_some());
        fits.unwrap_or(true)
    };
    let mut fits = see(site.grid.map(|grid| grid == made.grid))
        && see(site.block.map(|block| block == made.block))
        && see(site
            .dynamic_shared_bytes
            .map(|bytes| bytes == made.dynamic_shared_bytes));
    for (said, text) in site.template_args.iter().zip(&made.template) {
        let fitting = match said {
            Some(Bound::Value(value)) => {
                let number = match text.trim_end_matches(['u', 'l']) {
                    "true" => Ok(1),
                    "false" => Ok(0),
                    digits => digits.parse::<i64>(),
                };
                number.ok().map(|number| number == *value)
            }
            Some(Bound::Type(ty)) => {
                let built_in = matches!(ty, Type::Int { .. } | Type::Float { bits: 32.., .. });
                match scalar_named(text) {
                    Some(found) => is_scalar(ty, found),
                    None => built_in.then_some(false),
                }
            }
            _ => None,
        };
        fits &= see(fitting);
    }
    for (at, passed) in made.arguments.iter().enumerate() {
        match passed {
            Passed::Words(words) => {
                for (path, found) in words {
                    fits &= see(number(site, at, path).map(|said| same(said, *found)));
                }
            }
            Passed::Pointer(Some(array)) => {
                // By the type of its arguments an instance of a template is told from another.
                let ty = site.argument_types.get(at).and_then(Option::as_ref);
                let said = ty.and_then(Type::element).zip(array.element);
                fits &= see(said.and_then(|(said, found)| is_scalar(said, found)));
            }
            Passed::Pointer(None) | Passed::Unknown => {}
        }
    }
    fits.then_some(known)
}

/// Whether a type of the host is what the oracle has; of integers their width counts. `None`: not told.
fn is_scalar(ty: &Type, found: Scalar) -> Option<bool> {
    match ty {
        Type::Float { bits: 32, .. } => Some(found == Scalar::F32),
        Type::Float { bits: 64, .. } => Some(found == Scalar::F64),
        Type::Int { bits, .. } => Some(!found.is_float() && u64::from(*bits) == found.size() * 8),
        _ => None,
    }
}

/// The number that is said of a place in an argument.
fn number(site: &LaunchSite, at: usize, path: &str) -> Option<f64> {
    let whole = if path.is_empty() {
        site.arguments.get(at).copied().flatten()
    } else {
        let mut members = site.members.iter();
        let member = members.find(|member| member.argument == at && member.path == path);
        member.map(|member| member.value)
    };
    let real = || {
        let mut reals = site.reals.iter();
        let real = reals.find(|real| real.argument == at && real.path == path);
        real.map(warplens_host::Real::value)
    };
    whole.map(|whole| whole as f64).or_else(real)
}

/// Whether a number that is said is the one that was passed, as its type keeps it.
fn same(said: f64, found: Number) -> bool {
    match found {
        Number::Whole(found) => said == found as f64,
        Number::Real(found, Scalar::F32) => said as f32 == found as f32,
        Number::Real(_, Scalar::F16) => true,
        Number::Real(found, _) => said == found,
    }
}

fn shown(made: &Made) -> String {
    let template = match &made.template[..] {
        [] => String::new(),
        all => format!("<{}>", all.join(", ")),
    };
    let numbers: Vec<String> = made
        .arguments
        .iter()
        .map(|passed| match passed {
            Passed::Words(words) => words
                .iter()
                .map(|(path, number)| match number {
                    Number::Whole(whole) if path.is_empty() => whole.to_string(),
                    Number::Real(real, _) if path.is_empty() => real.to_string(),
                    Number::Whole(whole) => format!("{path}={whole}"),
                    Number::Real(real, _) => format!("{path}={real}"),
                })
                .collect::<Vec<_>>()
                .join(" "),
            Passed::Pointer(Some(array)) => format!("*{}", array.bytes),
            Passed::Pointer(None) => "*".to_owned(),
            Passed::Unknown => "?".to_owned(),
        })
        .collect();
    format!(
        "{}{template}<<<{:?}, {:?}, {}>>>({})",
        made.kernel,
        made.grid,
        made.block,
        made.dynamic_shared_bytes,
        numbers.join(", ")
    )
}

fn shown_site(site: &LaunchSite) -> String {
    format!(
        "{}{:?}<<<{:?}, {:?}, {:?}>>>({:?} {:?})",
        site.kernel,
        site.template_args,
        site.grid,
        site.block,
        site.dynamic_shared_bytes,
        site.arguments,
        site.members
    )
}
