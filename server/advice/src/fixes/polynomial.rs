//! Subscripts as sums of products of names, as they are written in a program.

/// A sum of products of names.
pub(crate) type Polynomial = warplens_symbolic::Polynomial<String>;

/// A name by itself.
pub(crate) fn name(name: &str) -> Polynomial {
    Polynomial::atom(name.to_owned())
}

/// A polynomial as it is written behind something that it is added to: ` + k - 1`, nothing for 0.
pub(crate) fn added(polynomial: &Polynomial) -> Option<String> {
    let mut written = String::new();
    // The constant comes last.
    let (named, constant): (Vec<_>, Vec<_>) = polynomial
        .products()?
        .into_iter()
        .partition(|(names, _)| !names.is_empty());
    for (names, factor) in named.into_iter().chain(constant) {
        written.push_str(if factor < 0 { " - " } else { " + " });
        let size = factor.unsigned_abs();
        if names.is_empty() {
            written.push_str(&size.to_string());
            continue;
        }
        if size != 1 {
            written.push_str(&size.to_string());
            written.push_str(" * ");
        }
        let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        written.push_str(&names.join(" * "));
    }
    Some(written)
}

/// A polynomial as it is written by itself.
pub(crate) fn alone(polynomial: &Polynomial) -> Option<String> {
    let added = added(polynomial)?;
    Some(match added.strip_prefix(" + ") {
        Some(rest) => rest.to_owned(),
        None if added.is_empty() => "0".to_owned(),
        None => format!("0{added}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_products_is_written_with_its_constant_last() {
        let row = name("y").offset(-1).and_then(|row| row.mul(&name("w")));
        let index = row
            .and_then(|row| row.add(&name("x"))?.offset(3))
            .expect("a sum");
        let written = added(&index);
        assert_eq!(written.as_deref(), Some(" - w + w * y + x + 3"));
        let nothing = index.sub(&index).expect("a difference");
        assert_eq!(added(&nothing).as_deref(), Some(""));
        assert_eq!(alone(&nothing).as_deref(), Some("0"));
        assert_eq!(alone(&name("x")).as_deref(), Some("x"));
    }
}
