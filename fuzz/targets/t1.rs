//! Kernel Tuner's T1 files and the expressions in them: an error in words, or a value within the bounds.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use warplens_tuning::{Expression, Space, Value, lines};

/// Configurations looked at of one space.
const LOOKED_AT: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match Space::read(&text) {
        Ok(space) => {
            for configuration in space.configurations().take(LOOKED_AT) {
                if let Err(why) = configuration {
                    assert!(!why.is_empty());
                }
            }
        }
        Err(why) => assert!(!why.is_empty()),
    }
    let names = BTreeMap::from([
        ("a".to_owned(), Value::Int(7)),
        ("b".to_owned(), Value::Real(0.5)),
        ("c".to_owned(), Value::Text("c".to_owned())),
        (
            "d".to_owned(),
            Value::List(vec![Value::Int(1), Value::Int(-2)]),
        ),
    ]);
    for line in text.lines().take(16) {
        if let Ok(expression) = Expression::read(line) {
            let _value_or_reason = expression.evaluate(&names);
            // What it was read as is written and read as the same.
            assert!(expression.names().iter().all(|name| !name.is_empty()));
        }
    }
    for configuration in lines(bytes).take(LOOKED_AT) {
        if let Err(why) = configuration {
            assert!(!why.is_empty());
        }
    }
});
