//! Regions of `OpenMP` in a run: what each thread of a team does, and what only one of them does.
//!
//! In: a statement with its directive. Out: its effects. What holds: where the number of threads is known and nothing in the region divides
//! work among them, it is walked once for each, in their order; else what it changes is unknown behind it, and what each thread does is
//! done as often as there are threads, which is not known where nothing says how many. Work that is divided is done once.

use warplens_hir::Source;
use warplens_syntax::{Kind, Node};

use super::arguments::Argument;
use super::events::Side;
use super::nodes::text;
use super::state::Host;
use super::team::Team;
use super::value::Value;

/// Threads that are walked one by one.
const MOST_THREADS: u64 = 64;

/// What a directive says of the statement behind it.
enum Directive<'s> {
    /// Each thread of a new team does it.
    Team(&'s str),
    /// The threads of a new team divide it.
    Divided(&'s str),
    /// One thread of the team does it, or all of them together.
    Once,
    /// It changes nothing, or has no statement.
    None,
}

fn directive_of(pragma: &str) -> Directive<'_> {
    let Some(clauses) = clauses_of(pragma) else {
        return Directive::None;
    };
    let mut named = words(clauses);
    match (named.next(), named.next()) {
        (Some("parallel"), Some("for" | "sections" | "loop" | "master" | "masked")) => {
            Directive::Divided(clauses)
        }
        (Some("parallel"), _) => Directive::Team(clauses),
        (Some("single" | "master" | "masked" | "for" | "sections" | "loop"), _) => Directive::Once,
        _ => Directive::None,
    }
}

/// What follows `#pragma omp`.
fn clauses_of(pragma: &str) -> Option<&str> {
    let rest = pragma.trim_start().strip_prefix('#')?;
    let rest = rest.trim_start().strip_prefix("pragma")?;
    rest.trim_start().strip_prefix("omp ")
}

fn words(clauses: &str) -> impl Iterator<Item = &str> {
    let words = clauses.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty())
}

/// Whether directives within a region divide work among its threads: others only order what each of them does.
fn divides_work(region: &str) -> bool {
    let mut directives = region.lines().filter_map(clauses_of);
    directives.any(|clauses| {
        let orders = matches!(
            words(clauses).next(),
            Some("critical" | "barrier" | "atomic" | "flush")
        );
        !orders
    })
}

impl Host<'_> {
    /// Walks a statement behind a directive.
    pub(super) fn directed(&mut self, pragma: Node, node: Node, source: Source) -> bool {
        let (clauses, divided) = match directive_of(text(pragma, source)) {
            Directive::None => return self.statement(node, source),
            Directive::Once => return self.once(node, source),
            Directive::Team(clauses) => (clauses, false),
            Directive::Divided(clauses) => (clauses, true),
        };
        let before = self.team();
        // A team within a team has one thread.
        let threads = match before {
            Some(_) => Some(1),
            None => self.threads_of(clauses),
        };
        let team = |thread| Team {
            threads,
            thread,
            all: None,
        };
        let shares = divides_work(text(node, source));
        let goes_on = match threads {
            _ if divided => {
                self.set_team(Some(team(None)));
                self.statement(node, source)
            }
            Some(threads @ 1..=MOST_THREADS) if !shares => (0..threads).all(|thread| {
                self.set_team(Some(team(Some(thread))));
                self.statement(node, source)
            }),
            _ => {
                self.each_thread(team(None), node, source);
                true
            }
        };
        self.set_team(before);
        goes_on
    }

    /// Walks a region as all threads of a team do it.
    fn each_thread(&mut self, team: Team, node: Node, source: Source) {
        let touched = self.touched_mark();
        let times = self.running.as_ref().map_or(1, |running| running.times);
        let each = team.threads.unwrap_or(1);
        self.enter(Some(node), Side::Loop, team.threads.is_none(), source);
        if team.threads.is_none() {
            self.may_have_ended(1);
        }
        let all = Some((self.around.len().saturating_sub(1), times));
        self.set_team(Some(Team { all, ..team }));
        self.set_times(times.saturating_mul(each));
        // One thread finds what the others did.
        for last in [false, true] {
            let (sites, events) = (self.sites.len(), self.events.len());
            self.perhaps(|host| host.statement(node, source));
            if !last {
                self.sites.truncate(sites);
                self.events.truncate(events);
            }
            self.forget_touched(touched);
        }
        self.set_times(times);
        self.leave();
    }

    /// Walks what one thread of the team does, or all of them together.
    fn once(&mut self, node: Node, source: Source) -> bool {
        let Some(Team {
            all: Some((around, times)),
            ..
        }) = self.team()
        else {
            return self.statement(node, source);
        };
        let open = self
            .around
            .get_mut(around)
            .is_some_and(|around| std::mem::replace(&mut around.is_open, false));
        let each = self.set_times(times);
        let goes_on = self.statement(node, source);
        self.set_times(each);
        if let Some(around) = self.around.get_mut(around) {
            around.is_open = open;
        }
        goes_on
    }

    fn set_times(&mut self, times: u64) -> u64 {
        match &mut self.running {
            Some(running) => std::mem::replace(&mut running.times, times),
            None => 1,
        }
    }

    fn team(&self) -> Option<Team> {
        self.running.as_ref()?.team
    }

    fn set_team(&mut self, team: Option<Team>) {
        if let Some(running) = &mut self.running {
            running.team = team;
        }
    }

    /// How many threads a region has: what its clause says, the program, or the environment.
    fn threads_of(&mut self, clauses: &str) -> Option<u64> {
        let Some((_, rest)) = clauses.split_once("num_threads") else {
            return self.most_threads();
        };
        let number = rest
            .trim_start()
            .strip_prefix('(')?
            .split(')')
            .next()?
            .trim();
        match number.parse() {
            Ok(number) => Some(number),
            Err(_) => {
                let place = self.place_named(number)?;
                u64::try_from(self.read(&place).as_int()?).ok()
            }
        }
    }

    /// How many threads a region has that says nothing.
    fn most_threads(&self) -> Option<u64> {
        let running = self.running.as_ref()?;
        if let Some(set) = &running.most_threads {
            return u64::try_from(set.as_int()?).ok();
        }
        let mut environment = running.environment.iter();
        let (_, value) = environment.find(|(name, _)| name == "OMP_NUM_THREADS")?;
        value.split(',').next()?.trim().parse().ok()
    }

    /// A function of `OpenMP`'s library.
    pub(super) fn team_call(&mut self, name: &str, arguments: &[Argument]) -> Option<Value> {
        let rest = name.strip_prefix("omp_")?;
        let running = self.running.as_mut()?;
        let team = running.team;
        let number = |number: Option<u64>| {
            let number = number.and_then(|number| i64::try_from(number).ok());
            number.map_or(Value::Unknown, Value::int)
        };
        Some(match (rest, arguments) {
            ("get_thread_num", []) => number(team.map_or(Some(0), |team| team.thread)),
            ("get_num_threads", []) => number(team.map_or(Some(1), |team| team.threads)),
            ("get_max_threads", []) if team.is_none() => number(self.most_threads()),
            ("in_parallel", []) => match team {
                None => Value::int(0),
                Some(Team { threads, .. }) => {
                    threads.map_or(Value::Unknown, |threads| Value::int(i64::from(threads > 1)))
                }
            },
            ("set_num_threads", [threads]) => {
                running.most_threads = Some(threads.value.clone());
                Value::Unknown
            }
            _ => return None,
        })
    }
}

/// Whether a directive has each thread of a team do something.
pub(super) fn makes_team(node: Node, source: Source) -> bool {
    matches!(directive_of(text(node, source)), Directive::Team(_))
}

/// Whether a node is a directive that says something of the statement behind it.
pub(super) fn is_directive(node: Node, source: Source) -> bool {
    node.kind() == Kind::PreprocCall && !matches!(directive_of(text(node, source)), Directive::None)
}
