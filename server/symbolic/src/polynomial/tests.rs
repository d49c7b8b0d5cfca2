use super::*;

const N: Name = 0;
const M: Name = 1;
const I: Name = 2;

fn n() -> Polynomial {
    Polynomial::name(N)
}

fn m() -> Polynomial {
    Polynomial::name(M)
}

fn positive() -> Bounds {
    let mut bounds = Bounds::default();
    for name in [N, M] {
        bounds.set(name, Bound::new(Some(1), None));
    }
    bounds
}

fn text(polynomial: &Polynomial) -> String {
    polynomial
        .text(&|name| ["n", "m", "i"][name as usize].to_owned())
        .expect("short")
}

fn at(polynomial: &Polynomial, n: i128, m: i128) -> i128 {
    let value = polynomial.evaluate(&|name| Some(if name == N { n } else { m }));
    value.and_then(Ratio::as_whole).expect("a whole number")
}

#[test]
fn differences_are_the_terms_of_what_subtracting_gives() {
    let zero = Polynomial::zero();
    let square = n().mul(&n()).expect("small");
    let some = [
        zero,
        Polynomial::constant(3),
        n(),
        n().offset(3).expect("small"),
        square.add(&m()).expect("small"),
        square.plus(&m(), Ratio::whole(4)).expect("small"),
    ];
    for left in &some {
        for right in &some {
            let terms = left.differences(right);
            let terms = terms.map(|term| term.map(|(monomial, by)| (monomial.clone(), by)));
            let terms: Vec<_> = terms.collect::<Option<_>>().expect("small");
            assert_eq!(Polynomial::sum(terms), left.sub(right));
        }
    }
}

#[test]
fn written_as_a_person_would() {
    let bounds = positive();
    let twice = n().mul(&m()).and_then(|p| p.scale(Ratio::whole(2)));
    assert_eq!(text(&twice.expect("small")), "2*n*m");
    let sum = Polynomial::name(I).sum_over(
        I,
        &Polynomial::zero(),
        &n().offset(-1).expect("small"),
        &bounds,
    );
    assert_eq!(text(&sum.expect("small")), "n*(n - 1)/2");
    let ceil = n().offset(15).and_then(|p| p.floor_div(16, &bounds));
    assert_eq!(text(&ceil.expect("small")), "ceil(n/16)");
    let floor = n().offset(-3).and_then(|p| p.floor_div(16, &bounds));
    assert_eq!(text(&floor.expect("small")), "floor((n + 13)/16) - 1");
    let least = Polynomial::least(
        &[n().offset(-1).expect("small"), Polynomial::constant(63)],
        &bounds,
    );
    assert_eq!(
        text(&least.expect("small").offset(1).expect("small")),
        "min(n, 64)"
    );
    let most = Polynomial::greatest(
        &[n().offset(-5).expect("small"), Polynomial::zero()],
        &bounds,
    );
    assert_eq!(text(&most.expect("small")), "max(n - 5, 0)");
    let guard = n()
        .offset(-5)
        .and_then(|p| p.holds(&bounds))
        .and_then(|p| p.mul(&m()));
    assert_eq!(text(&guard.expect("small")), "m*(n >= 5)");
    assert_eq!(text(&Polynomial::zero()), "0");
}

#[test]
fn what_the_ranges_decide_is_not_written() {
    let bounds = positive();
    assert_eq!(
        n().offset(-1).and_then(|p| p.holds(&bounds)),
        Some(Polynomial::constant(1))
    );
    assert_eq!(
        n().neg().and_then(|p| p.holds(&bounds)),
        Some(Polynomial::zero())
    );
    assert_eq!(
        Polynomial::greatest(&[n(), Polynomial::zero()], &bounds),
        Some(n())
    );
    let product = n().mul(&m()).expect("small");
    assert_eq!(
        Polynomial::least(&[product, Polynomial::constant(1)], &bounds),
        Some(Polynomial::constant(1))
    );
}

#[test]
fn floors_agree_with_division() {
    let bounds = Bounds::default();
    for (a, b, c, by) in [
        (1, 0, 0, 3),
        (2, 0, 5, 4),
        (-3, 2, 7, 6),
        (16, -32, 9, 16),
        (-1, -1, -1, 2),
        (6, 10, 3, 4),
    ] {
        let inner = n()
            .scale(Ratio::whole(a))
            .and_then(|p| p.add(&m().scale(Ratio::whole(b))?))
            .and_then(|p| p.offset(c))
            .expect("small");
        let floor = inner.floor_div(by, &bounds).expect("small");
        for n in -20..20 {
            for m in -5..5 {
                assert_eq!(
                    at(&floor, n, m),
                    (a * n + b * m + c).div_euclid(by),
                    "{}",
                    text(&floor)
                );
            }
        }
    }
}

#[test]
fn sums_of_powers_agree_with_adding_up() {
    let bounds = Bounds::default();
    for power in 0..6 {
        let summand = Polynomial::name(I)
            .power(power)
            .and_then(|p| p.mul(&m()))
            .expect("small");
        let sum = summand.sum_over(I, &m(), &n(), &bounds).expect("small");
        for last in -6..8i128 {
            for first in -6..=last + 1 {
                let plain: i128 = (first..=last).map(|i| i.pow(power) * first).sum();
                assert_eq!(at(&sum, last, first), plain, "{}", text(&sum));
            }
        }
    }
}

#[test]
fn numbers_out_of_reach_are_not_wrong_ones() {
    let large: Polynomial = Polynomial::constant(i128::MAX);
    assert_eq!(large.mul(&large), None);
    assert_eq!(large.offset(1), None);
    assert_eq!(n().power(HIGHEST_POWER + 1), None);
}
