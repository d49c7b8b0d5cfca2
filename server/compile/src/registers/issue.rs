//! One order in which a block's instructions are issued, and how many words live at a time in it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Block, WIDEST, latency};

/// By what the next instruction is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// What others wait for longest comes first, as long as this many words suffice.
    Latency(u32),
    /// What leaves the fewest words alive.
    Fewest,
    /// The same, and of several what the fewest of those that read it could not go on with yet: a value is made when all
    /// that it is for can follow.
    Followed,
    /// As the compiler's front end leaves them.
    AsWritten,
}

/// What the fewest words are chosen by: how what lives would change, how many of those that wait for the instruction could not
/// go on yet, when the newest value that it reads was made (what was begun is finished first), its number.
type Key = (i64, u32, Reverse<Option<u32>>, usize);

/// A block of which a part is issued.
struct Issue<'a> {
    block: &'a Block<'a>,
    /// While there are registers enough, nothing is made twice.
    thrifty: bool,
    /// Uses of each value that are still to come.
    uses: Vec<u32>,
    live: Vec<bool>,
    now_live: u32,
    most: u32,
    /// When each value was made, from 1; 0 for those from before the block.
    made_at: Vec<u32>,
    made: u32,
    /// How many others each instruction waits for.
    waits: Vec<u32>,
    issued: Vec<bool>,
    /// For [`Order::Followed`]: how many of those that wait for each wait for others as well.
    stuck: Vec<u32>,
    followed: bool,
    /// The instructions that could be issued, by their keys; kept once somebody asks for them.
    by_key: BTreeSet<Key>,
    keys: Vec<Option<Key>>,
    keyed: bool,
    /// Cycles.
    now: u32,
    /// When each may issue.
    since: Vec<u32>,
    /// What may issue now, by what waits for it longest; what may later, by when.
    ready: BTreeSet<(Reverse<u32>, usize)>,
    later: BTreeSet<(u32, usize)>,
}

impl Block<'_> {
    /// Issues the instructions: what others wait for longest comes first, and while all wait whatever is ready; where registers
    /// get short, what frees some. Gives the most words that live at a time; where these do not fit, so many as were found
    /// not to.
    pub(super) fn issue(&self, order: Order) -> u32 {
        let mut issue = Issue::new(self, order);
        if order == Order::AsWritten {
            for number in 0..self.orders.len() {
                issue.execute(number);
            }
            return issue.most;
        }
        let mut left = self.orders.len();
        while left > 0 {
            let chosen = match order {
                Order::Latency(room) if issue.most > room => return issue.most,
                Order::Latency(room) => issue.longest_awaited(room),
                Order::Fewest | Order::Followed | Order::AsWritten => issue.fewest(),
            };
            let Some(number) = chosen else {
                let later = issue.later.first().map(|(since, _)| *since);
                issue.now = later.unwrap_or(issue.now + 1);
                continue;
            };
            issue.close(number);
            issue.execute(number);
            left -= 1;
        }
        issue.most
    }
}

impl<'a> Issue<'a> {
    fn new(block: &'a Block<'a>, order: Order) -> Issue<'a> {
        let thrifty = !matches!(order, Order::Latency(_));
        let count = block.orders.len();
        let followed = order == Order::Followed;
        let mut stuck = vec![0; if followed { count } else { 0 }];
        if followed {
            for (number, others) in block.behind.iter().enumerate() {
                let wait_besides = others.iter().filter(|other| block.waits[**other] > 1);
                stuck[number] = wait_besides.count() as u32;
            }
        }
        let values = block.words.len();
        let mut issue = Issue {
            block,
            thrifty,
            uses: block.uses.clone(),
            live: block.entered.clone(),
            now_live: if thrifty {
                block.through.1
            } else {
                block.through.0
            },
            most: 0,
            made_at: vec![0; values],
            made: 0,
            waits: block.waits.clone(),
            issued: vec![false; count],
            stuck,
            followed,
            by_key: BTreeSet::new(),
            keys: vec![None; count],
            keyed: thrifty && order != Order::AsWritten,
            now: 0,
            since: vec![0; count],
            ready: BTreeSet::new(),
            later: BTreeSet::new(),
        };
        let entered = (0..values).filter(|v| issue.live[*v]);
        issue.now_live += entered.map(|v| issue.words(v)).sum::<u32>();
        issue.most = issue.now_live;
        if order != Order::AsWritten {
            for number in (0..count).filter(|number| block.waits[*number] == 0) {
                issue.open(number);
            }
        }
        issue
    }

    fn words(&self, v: usize) -> u32 {
        if self.thrifty && self.block.cheap[v] {
            0
        } else {
            self.block.words[v]
        }
    }

    /// How issuing an instruction would change what lives.
    fn change(&self, number: usize) -> i64 {
        let operands = &self.block.orders[number];
        let mut change = 0i64;
        for &v in &operands.made {
            if !self.live[v] {
                change += i64::from(self.words(v));
            }
        }
        for (at, &v) in operands.read.iter().enumerate() {
            if operands.read[..at].contains(&v) {
                continue;
            }
            let mine = operands.read.iter().filter(|other| **other == v).count() as u32;
            if self.uses[v] == mine && !self.block.leaves[v] {
                change -= i64::from(self.words(v));
            }
        }
        change
    }

    fn key(&self, number: usize) -> Key {
        let read = self.block.orders[number].read.iter();
        let newest = read.map(|v| self.made_at[*v]).max();
        let stuck = self.stuck.get(number).copied().unwrap_or(0);
        (self.change(number), stuck, Reverse(newest), number)
    }

    fn is_open(&self, number: usize) -> bool {
        self.waits[number] == 0 && !self.issued[number]
    }

    /// Nothing keeps it any more.
    fn open(&mut self, number: usize) {
        if self.since[number] <= self.now {
            self.ready
                .insert((Reverse(self.block.height[number]), number));
        } else {
            self.later.insert((self.since[number], number));
        }
        self.look_at(number);
    }

    /// It is about to be issued.
    fn close(&mut self, number: usize) {
        if !self
            .ready
            .remove(&(Reverse(self.block.height[number]), number))
        {
            self.later.remove(&(self.since[number], number));
        }
        if let Some(key) = self.keys[number].take() {
            self.by_key.remove(&key);
        }
    }

    /// Its key may be another one.
    fn look_at(&mut self, number: usize) {
        if !self.keyed || !self.is_open(number) {
            return;
        }
        let key = Some(self.key(number));
        if self.keys[number] != key {
            if let Some(old) = std::mem::replace(&mut self.keys[number], key) {
                self.by_key.remove(&old);
            }
            self.by_key.extend(key);
        }
    }

    fn fewest(&self) -> Option<usize> {
        self.by_key.first().map(|(.., number)| *number)
    }

    /// What others wait for longest of what may issue now and fits; where nothing fits, what leaves the fewest words.
    fn longest_awaited(&mut self, room: u32) -> Option<usize> {
        while let Some(&(since, number)) = self.later.first()
            && since <= self.now
        {
            self.later.pop_first();
            self.ready
                .insert((Reverse(self.block.height[number]), number));
        }
        if self.now_live + WIDEST <= room {
            return self.ready.first().map(|(_, number)| *number);
        }
        if !self.keyed {
            self.keyed = true;
            for number in 0..self.issued.len() {
                self.look_at(number);
            }
        }
        let most = i64::from(room) - i64::from(self.now_live);
        if self
            .by_key
            .first()
            .is_none_or(|(change, ..)| *change > most)
        {
            return self.fewest();
        }
        let fits = |number: &usize| self.keys[*number].is_some_and(|(change, ..)| change <= most);
        let mut ready = self.ready.iter().map(|(_, number)| *number);
        ready.find(fits)
    }

    /// Issues an instruction.
    fn execute(&mut self, number: usize) {
        let block = self.block;
        let operands = &block.orders[number];
        self.issued[number] = true;
        self.most = self.most.max(self.now_live + operands.extra);
        // Those whose keys hang on what changes here.
        let mut changed: Vec<usize> = Vec::new();
        for &v in &operands.read {
            self.uses[v] -= 1;
            if self.keyed && self.uses[v] <= block.together[v] {
                changed.extend(&block.readers[v]);
            }
            if self.uses[v] == 0 && !block.leaves[v] && self.live[v] {
                self.live[v] = false;
                self.now_live -= self.words(v);
                changed.extend(&block.makers[v]);
            }
        }
        for &v in &operands.made {
            self.made += 1;
            if self.made_at[v] != 0 {
                changed.extend(&block.readers[v]);
            }
            self.made_at[v] = self.made;
            if !self.live[v] {
                self.live[v] = true;
                self.now_live += self.words(v);
                changed.extend(&block.makers[v]);
            }
        }
        self.most = self.most.max(self.now_live);
        // What nobody reads is gone at once.
        for &v in &operands.made {
            if !block.leaves[v] && self.uses[v] == 0 && self.live[v] {
                self.live[v] = false;
                self.now_live -= self.words(v);
                changed.extend(&block.makers[v]);
            }
        }
        let code = &block.code[number];
        self.now = self.now.max(self.since[number]) + code.count.max(1);
        for &other in &block.behind[number] {
            self.waits[other] -= 1;
            if self.followed && self.waits[other] == 1 {
                let last = block.ahead[other]
                    .iter()
                    .find(|number| !self.issued[**number]);
                if let Some(&last) = last {
                    self.stuck[last] -= 1;
                    changed.push(last);
                }
            }
            self.since[other] = self.since[other].max(self.now + latency(code));
            if self.waits[other] == 0 {
                self.open(other);
            }
        }
        for other in changed {
            self.look_at(other);
        }
    }
}
