//! The control flow graph that traces are searched in: blocks, edges, and the circles among them.
//!
//! Section III-B of the paper: a circular check splits the edges into back edges and the rest, which leaves a graph
//! without circles; two circles share no block or one lies within the other.

/// A set of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(blocks: usize) -> Set {
        Set(vec![0; blocks.div_ceil(64)])
    }

    fn insert(&mut self, block: usize) {
        self.0[block / 64] |= 1 << (block % 64);
    }

    fn contains(&self, block: usize) -> bool {
        self.0[block / 64] >> (block % 64) & 1 == 1
    }

    fn add_all(&mut self, other: &Set) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}

/// Blocks of a graph, at most: what is reached from where is kept for every pair.
pub const MOST_BLOCKS: usize = 4096;

/// A control flow graph. Block 0 is where it is entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cfg {
    back: Vec<Vec<usize>>,
    closest: Vec<Vec<usize>>,
    reaches: Vec<Set>,
    loops: Vec<usize>,
    around: Vec<Vec<usize>>,
}

impl Cfg {
    /// The graph of this many blocks with these edges; an edge to a block that there is not is left out.
    ///
    /// `None` where there are no blocks or more than [`MOST_BLOCKS`].
    pub fn new(blocks: usize, edges: &[(usize, usize)]) -> Option<Cfg> {
        if blocks == 0 || blocks > MOST_BLOCKS {
            return None;
        }
        let mut successors = vec![Vec::new(); blocks];
        for &(from, to) in edges {
            if from < blocks && to < blocks && !successors[from].contains(&to) {
                successors[from].push(to);
            }
        }
        let (order, back) = split(&mut successors);
        let mut reaches: Vec<Set> = (0..blocks).map(|_| Set::new(blocks)).collect();
        // Successors stand before their predecessors in the order.
        for &block in &order {
            let mut all = Set::new(blocks);
            all.insert(block);
            for &next in &successors[block] {
                all.add_all(&reaches[next]);
            }
            reaches[block] = all;
        }
        let closest = successors
            .iter()
            .map(|all| {
                let on_the_way = |to: usize| {
                    all.iter()
                        .any(|&other| other != to && reaches[other].contains(to))
                };
                all.iter().copied().filter(|&to| !on_the_way(to)).collect()
            })
            .collect();
        let mut graph = Cfg {
            back,
            closest,
            reaches,
            loops: Vec::new(),
            around: Vec::new(),
        };
        graph.find_loops();
        Some(graph)
    }

    /// How many blocks.
    pub fn blocks(&self) -> usize {
        self.back.len()
    }

    /// Headers of the loops, in the order of blocks: a loop's number is its place here.
    pub fn loops(&self) -> &[usize] {
        &self.loops
    }

    /// The loops that a block is in, innermost first.
    pub fn around(&self, block: usize) -> &[usize] {
        &self.around[block]
    }

    /// Where the back edges that leave a block lead.
    pub fn back(&self, block: usize) -> &[usize] {
        &self.back[block]
    }

    /// The blocks that come next without a back edge, those left out that lie behind another of them.
    pub fn closest(&self, block: usize) -> &[usize] {
        &self.closest[block]
    }

    /// True where a path without back edges leads from one block to the other, or they are the same.
    pub fn reaches(&self, from: usize, to: usize) -> bool {
        self.reaches[from].contains(to)
    }

    fn find_loops(&mut self) {
        let blocks = self.blocks();
        let mut members: Vec<(usize, Set)> = Vec::new();
        for (source, headers) in self.back.iter().enumerate() {
            for &header in headers {
                let at = members.iter().position(|(known, _)| *known == header);
                let at = at.unwrap_or_else(|| {
                    members.push((header, Set::new(blocks)));
                    members.len() - 1
                });
                for block in 0..blocks {
                    if self.reaches[header].contains(block) && self.reaches[block].contains(source)
                    {
                        members[at].1.insert(block);
                    }
                }
            }
        }
        members.sort_by_key(|(header, _)| *header);
        let sizes: Vec<u32> = members
            .iter()
            .map(|(_, set)| set.0.iter().map(|word| word.count_ones()).sum())
            .collect();
        self.around = (0..blocks)
            .map(|block| {
                let mut around: Vec<usize> = (0..members.len())
                    .filter(|&number| members[number].1.contains(block))
                    .collect();
                around.sort_by_key(|&number| sizes[number]);
                around
            })
            .collect();
        self.loops = members.into_iter().map(|(header, _)| header).collect();
    }
}

/// The circular check: takes the back edges out of `successors`; the blocks in the order in which a search leaves them.
fn split(successors: &mut [Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Left,
    }
    let blocks = successors.len();
    let mut state = vec![State::New; blocks];
    let mut back = vec![Vec::new(); blocks];
    let mut order = Vec::with_capacity(blocks);
    for root in 0..blocks {
        if state[root] != State::New {
            continue;
        }
        let mut path = vec![(root, 0)];
        state[root] = State::Open;
        while let Some((block, next)) = path.last_mut() {
            let block = *block;
            match successors[block].get(*next).copied() {
                None => {
                    state[block] = State::Left;
                    order.push(block);
                    path.pop();
                }
                Some(to) if state[to] == State::Open => {
                    successors[block].remove(*next);
                    back[block].push(to);
                }
                Some(to) => {
                    *next += 1;
                    if state[to] == State::New {
                        state[to] = State::Open;
                        path.push((to, 0));
                    }
                }
            }
        }
    }
    (order, back)
}
