//! Selection of tests.

use super::cases::{TESTS, TestCase};
use crate::cli::error::CliError;

/// A test that was selected.
#[derive(Clone, Copy)]
pub(super) struct SelectedTest {
    /// The number of the test, from 1.
    pub(super) number: usize,
    /// The test.
    pub(super) case: &'static TestCase,
    /// Whether `-s` skips it.
    pub(super) is_skipped: bool,
}

/// Selects tests by numbers and parts of names, ignoring case; all tests if `words` is empty. `skipped` is the argument of `-s`.
pub(super) fn select(
    words: &[String],
    skipped: Option<&str>,
) -> Result<Vec<SelectedTest>, CliError> {
    for word in words {
        if !TESTS
            .iter()
            .zip(1..)
            .any(|(case, number)| matches(case, number, word))
        {
            return Err(unknown(word));
        }
    }
    let skipped = skipped.map_or(Ok(Vec::new()), skipped_numbers)?;
    let is_selected = |test: &SelectedTest| {
        words.is_empty()
            || words
                .iter()
                .any(|word| matches(test.case, test.number, word))
    };
    let numbered = TESTS.iter().zip(1..).map(|(case, number)| SelectedTest {
        number,
        case,
        is_skipped: skipped.contains(&number),
    });
    Ok(numbered.filter(is_selected).collect())
}

fn matches(case: &TestCase, number: usize, word: &str) -> bool {
    match word.parse::<usize>() {
        Ok(given) => given == number,
        Err(_) => case.name.to_lowercase().contains(&word.to_lowercase()),
    }
}

/// The numbers of `-s 1,2`.
fn skipped_numbers(list: &str) -> Result<Vec<usize>, CliError> {
    let number = |word: &str| {
        let number = word.trim().parse().ok();
        let valid = number.filter(|number| (1..=TESTS.len()).contains(number));
        valid.ok_or_else(|| {
            let last = TESTS.len();
            CliError::usage(format!("--skip: '{word}' is not the number of a test")).hint(format!(
                "give numbers from 1 to {last}, separated by commas; 'test list' shows them"
            ))
        })
    };
    list.split(',').map(number).collect()
}

fn unknown(word: &str) -> CliError {
    let message = format!("'{word}' is neither the number of a test nor a part of its name");
    let error = CliError::usage(message).detail("tests:");
    let tests = TESTS.iter().zip(1..);
    tests.fold(error, |error, (case, number)| {
        error.detail(format!("{number:3}: {}", case.name))
    })
}
