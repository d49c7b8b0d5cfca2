//! Histograms, prefix sums and rows put in order: what is counted, added and moved depends on data.

use warplens_oracle::Argument;

use super::{Number, Problem, floats, int, problem, ramp};

fn ints(values: &[i32]) -> Argument {
    Argument::Buffer(
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    )
}

fn floats_of(values: &[i32]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

pub(super) fn problems(all: &mut Vec<Problem>) {
    histogram(all);
    scan(all);
    tokens(all);
}

fn histogram(all: &mut Vec<Problem>) {
    let n = 8192usize;
    let keys: Vec<u8> = (0..n).map(|i| (i * 37 / 5) as u8).collect();
    let mut bins = vec![0; 256];
    for key in &keys {
        bins[usize::from(*key)] += 1;
    }
    let mut made = problem("single_pass.cu", "histogram", [2, 1, 1], [256, 1, 1]);
    made.arguments = vec![
        ("counts", ints(&[0; 256])),
        ("keys", Argument::Buffer(keys)),
        ("n", int(n)),
    ];
    made.number = Number::I32;
    made.want = vec![(0, floats_of(&bins))];
    made.on_data = true;
    all.push(made);
}

fn scan(all: &mut Vec<Problem>) {
    // The last block has a part only.
    let (n, blocks) = (9000usize, 5usize);
    let input: Vec<i32> = (0..n).map(|i| (i % 7) as i32 - 2).collect();
    let sums: Vec<i32> = input
        .iter()
        .scan(0, |sum, x| {
            *sum += x;
            Some(*sum)
        })
        .collect();
    let grid = [blocks as u32, 1, 1];
    let mut made = problem("single_pass.cu", "scan_looking_back", grid, [256, 1, 1]);
    made.arguments = vec![
        ("out", ints(&vec![0; n])),
        ("in", ints(&input)),
        ("states", ints(&vec![0; 2 * blocks])),
        ("tickets", ints(&[0])),
        ("n", int(n)),
    ];
    made.number = Number::I32;
    made.want = vec![(0, floats_of(&sums))];
    made.on_data = true;
    all.push(made);
}

fn tokens(all: &mut Vec<Problem>) {
    let n = 700usize;
    let expert: Vec<i32> = (0..n).map(|i| (i * i / 3 % 8) as i32).collect();
    let mut loads = vec![0; 8];
    for own in &expert {
        loads[*own as usize] += 1;
    }
    let mut made = problem("single_pass.cu", "place_tokens", [3, 1, 1], [256, 1, 1]);
    made.arguments = vec![
        ("place", ints(&vec![0; n])),
        ("counts", ints(&[0; 8])),
        ("expert", ints(&expert)),
        ("n", int(n)),
    ];
    made.number = Number::I32;
    made.want = vec![(1, floats_of(&loads))];
    made.on_data = true;
    all.push(made);

    let (tokens, width) = (6usize, 1024usize);
    let (mut place, mut loads, mut first) = (vec![0; tokens], vec![0; 8], vec![0; 8]);
    for token in 0..tokens {
        let own = &mut loads[expert[token] as usize];
        place[token] = *own;
        *own += 1;
    }
    for own in 1..8 {
        first[own] = first[own - 1] + loads[own - 1];
    }
    let rows = ramp(tokens * width, 1013);
    let mut want = vec![0.0; rows.len()];
    for token in 0..tokens {
        let row = (first[expert[token] as usize] + place[token]) as usize;
        let from = &rows[token * width..][..width];
        want[row * width..][..width].copy_from_slice(from);
    }
    let grid = [tokens as u32, 1, 1];
    let mut made = problem("single_pass.cu", "gather_tokens", grid, [256, 1, 1]);
    made.arguments = vec![
        ("to", floats(vec![0.0; rows.len()])),
        ("from", floats(rows)),
        ("place", ints(&place)),
        ("counts", ints(&loads)),
        ("expert", ints(&expert[..tokens])),
    ];
    made.want = vec![(0, want)];
    made.on_data = true;
    all.push(made);
}
