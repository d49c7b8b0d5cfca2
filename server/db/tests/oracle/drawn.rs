//! How many kernels a test draws, and from which seed: `WARPLENS_ORACLE_CASES` and `WARPLENS_ORACLE_SEED`.

use std::fmt::Debug;

use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Draws this number of kernels where the environment says no number; tests with another `stream` draw others.
pub fn runner(stream: u8, cases: u32) -> TestRunner {
    let config = Config {
        cases: number("WARPLENS_ORACLE_CASES").map_or(cases, |cases| cases as u32),
        max_global_rejects: 10_000_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed = [stream; 32];
    seed[..8].copy_from_slice(&number("WARPLENS_ORACLE_SEED").unwrap_or(0).to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

/// Fails with what the smallest kernel that failed says.
pub fn passed<T: Debug>(result: Result<(), TestError<T>>) {
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(error) => panic!("{error}"),
    }
}
