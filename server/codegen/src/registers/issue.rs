//! One order in which a block's instructions are issued, and how many words live at a time in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use warplens_ir::stop;

use super::{Block, latency};
use crate::thresholds::nvcc;

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

/// What the fewest words are chosen by, the smallest first: how what lives would change, how many of those that wait for the
/// instruction could not go on yet, when the newest value that it reads was made (what was begun is finished first), its
/// number. Each has 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl Key {
    /// That of what is not open; it is no instruction's.
    const NONE: Key = Key(u128::MAX);
    /// A change of no words.
    const STAYS: i64 = 1 << 31;

    fn new(change: i64, stuck: u32, newest: Option<u32>, number: usize) -> Key {
        let change = (Key::STAYS + change) as u32;
        // Newer ones first, and what reads nothing last.
        let age = newest.map_or(u32::MAX, |made_at| u32::MAX - 1 - made_at);
        let parts = [change, stuck, age, number as u32];
        Key(parts
            .into_iter()
            .fold(0, |key, part| key << 32 | u128::from(part)))
    }

    fn change(self) -> i64 {
        i64::from((self.0 >> 96) as u32) - Key::STAYS
    }

    fn number(self) -> usize {
        self.0 as u32 as usize
    }
}

/// A set of ranks whose first is soon found.
struct Ranks {
    bits: Vec<u64>,
    /// Which words of `bits` are not zero.
    filled: Vec<u64>,
}

impl Ranks {
    fn new(count: usize) -> Ranks {
        let chunks = count.div_ceil(64);
        Ranks {
            bits: vec![0; chunks],
            filled: vec![0; chunks.div_ceil(64)],
        }
    }

    fn insert(&mut self, rank: usize) {
        self.bits[rank / 64] |= 1 << (rank % 64);
        self.filled[rank / 4096] |= 1 << (rank / 64 % 64);
    }

    fn remove(&mut self, rank: usize) {
        self.bits[rank / 64] &= !(1 << (rank % 64));
        if self.bits[rank / 64] == 0 {
            self.filled[rank / 4096] &= !(1 << (rank / 64 % 64));
        }
    }

    fn first(&self) -> Option<usize> {
        let at = self.filled.iter().position(|filled| *filled != 0)?;
        let chunk = at * 64 + self.filled[at].trailing_zeros() as usize;
        Some(chunk * 64 + self.bits[chunk].trailing_zeros() as usize)
    }

    /// The first that is wanted.
    fn find(&self, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        for chunk in super::members(&self.filled) {
            let mut bits = self.bits[chunk];
            while bits != 0 {
                let rank = chunk * 64 + bits.trailing_zeros() as usize;
                if wanted(rank) {
                    return Some(rank);
                }
                bits &= bits - 1;
            }
        }
        None
    }
}

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
    /// The instructions that could be issued, by their keys and by what their keys were before; kept once they are needed for
    /// them.
    by_key: BinaryHeap<Reverse<Key>>,
    keys: Vec<Key>,
    keyed: bool,
    /// Cycles.
    now: u32,
    /// When each may issue.
    since: Vec<u32>,
    /// What may issue now, by what waits for it longest; what may later, by when, and what was issued meanwhile. Where words
    /// are counted alone they are not kept.
    ready: Ranks,
    later: BinaryHeap<Reverse<(u32, u32)>>,
    timed: bool,
    /// Room for those whose keys depend on what changes.
    changed: Vec<u32>,
}

impl Block<'_> {
    /// Issues the instructions: what others wait for longest comes first, and while all wait whatever is ready; where registers
    /// get short, what frees some. Gives the most words that live at a time; where these do not fit, the number that did
    /// not.
    pub(super) fn issue(&self, order: Order) -> u32 {
        stop::check();
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
                issue.now = issue.next().unwrap_or(issue.now + 1);
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
            for (number, stuck) in stuck.iter_mut().enumerate() {
                let others = block.behind.of(number).iter();
                let wait_besides = others.filter(|other| block.waits[**other as usize] > 1);
                *stuck = wait_besides.count() as u32;
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
            by_key: BinaryHeap::new(),
            keys: vec![Key::NONE; count],
            keyed: thrifty && order != Order::AsWritten,
            now: 0,
            since: vec![0; count],
            ready: Ranks::new(count),
            later: BinaryHeap::new(),
            timed: !thrifty,
            changed: Vec::new(),
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

    /// How issuing an instruction would change what lives, and when the newest value that it reads was made.
    fn look(&self, number: usize) -> (i64, Option<u32>) {
        let operands = &self.block.orders[number];
        let mut change = 0i64;
        let mut newest = None;
        for &v in &operands.made {
            if !self.live[v as usize] {
                change += i64::from(self.words(v as usize));
            }
        }
        for &(v, times) in &operands.read {
            let v = v as usize;
            if self.uses[v] == times && !self.block.leaves[v] {
                change -= i64::from(self.words(v));
            }
            newest = newest.max(Some(self.made_at[v]));
        }
        (change, newest)
    }

    fn key(&self, number: usize) -> Key {
        let (change, newest) = self.look(number);
        let stuck = self.stuck.get(number).copied().unwrap_or(0);
        Key::new(change, stuck, newest, number)
    }

    fn is_open(&self, number: usize) -> bool {
        self.waits[number] == 0 && !self.issued[number]
    }

    /// Nothing keeps it any more.
    fn open(&mut self, number: usize) {
        if self.timed {
            if self.since[number] <= self.now {
                self.ready.insert(self.block.rank[number] as usize);
            } else {
                self.later
                    .push(Reverse((self.since[number], number as u32)));
            }
        }
        self.look_at(number);
    }

    /// It is about to be issued.
    fn close(&mut self, number: usize) {
        self.ready.remove(self.block.rank[number] as usize);
        self.keys[number] = Key::NONE;
    }

    /// When the next of those may issue that wait for nothing but time.
    fn next(&mut self) -> Option<u32> {
        while let Some(&Reverse((since, number))) = self.later.peek() {
            if !self.issued[number as usize] {
                return Some(since);
            }
            self.later.pop();
        }
        None
    }

    /// Its key may be another one.
    fn look_at(&mut self, number: usize) {
        if !self.keyed || !self.is_open(number) {
            return;
        }
        let key = self.key(number);
        if self.keys[number] != key {
            self.keys[number] = key;
            self.by_key.push(Reverse(key));
        }
    }

    /// The smallest key.
    fn least(&mut self) -> Option<Key> {
        while let Some(&Reverse(key)) = self.by_key.peek() {
            if self.keys[key.number()] == key {
                return Some(key);
            }
            self.by_key.pop();
        }
        None
    }

    fn fewest(&mut self) -> Option<usize> {
        self.least().map(Key::number)
    }

    /// What others wait for longest of what may issue now and fits; where nothing fits, what leaves the fewest words.
    fn longest_awaited(&mut self, room: u32) -> Option<usize> {
        while self.next().is_some_and(|since| since <= self.now)
            && let Some(Reverse((_, number))) = self.later.pop()
        {
            self.ready.insert(self.block.rank[number as usize] as usize);
        }
        let block = self.block;
        let ranked = |rank: usize| block.by_rank[rank] as usize;
        if self.now_live + nvcc().registers.widest <= room {
            return self.ready.first().map(ranked);
        }
        if !self.keyed {
            self.keyed = true;
            for number in 0..self.issued.len() {
                self.look_at(number);
            }
        }
        let most = i64::from(room) - i64::from(self.now_live);
        let least = self.least();
        if least.is_none_or(|key| key.change() > most) {
            return least.map(Key::number);
        }
        // What is ready is open, and has a key.
        let fits = |rank: usize| self.keys[ranked(rank)].change() <= most;
        self.ready.find(fits).map(ranked)
    }

    /// Issues an instruction.
    fn execute(&mut self, number: usize) {
        let block = self.block;
        let operands = &block.orders[number];
        self.issued[number] = true;
        self.most = self.most.max(self.now_live + operands.extra);
        let mut changed = std::mem::take(&mut self.changed);
        for &(v, times) in &operands.read {
            let v = v as usize;
            self.uses[v] -= times;
            if self.keyed && self.uses[v] <= block.together[v] {
                changed.extend(block.readers.of(v));
            }
            if self.uses[v] == 0 && !block.leaves[v] && self.live[v] {
                self.live[v] = false;
                self.now_live -= self.words(v);
                changed.extend(block.makers.of(v));
            }
        }
        for &v in &operands.made {
            let v = v as usize;
            self.made += 1;
            if self.made_at[v] != 0 {
                changed.extend(block.readers.of(v));
            }
            self.made_at[v] = self.made;
            if !self.live[v] {
                self.live[v] = true;
                self.now_live += self.words(v);
                changed.extend(block.makers.of(v));
            }
        }
        self.most = self.most.max(self.now_live);
        // A value without a reader is dead at once.
        for &v in &operands.made {
            let v = v as usize;
            if !block.leaves[v] && self.uses[v] == 0 && self.live[v] {
                self.live[v] = false;
                self.now_live -= self.words(v);
                changed.extend(block.makers.of(v));
            }
        }
        let code = &block.code[number];
        self.now = self.now.max(self.since[number]) + code.count.max(1);
        let there = self.now + latency(code);
        for &other in block.behind.of(number) {
            let other = other as usize;
            self.waits[other] -= 1;
            if self.followed && self.waits[other] == 1 {
                let mut ahead = block.ahead.of(other).iter();
                if let Some(&last) = ahead.find(|number| !self.issued[**number as usize]) {
                    self.stuck[last as usize] -= 1;
                    changed.push(last);
                }
            }
            self.since[other] = self.since[other].max(there);
            if self.waits[other] == 0 {
                self.open(other);
            }
        }
        for other in changed.drain(..) {
            self.look_at(other as usize);
        }
        self.changed = changed;
    }
}
