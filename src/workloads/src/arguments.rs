//! The words after a workload's name.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::slice::Iter;
use std::str::FromStr;
use std::time::Duration;

use crate::{Workload, WorkloadError};

/// The arguments of a workload, read one after the other; [`Arguments::end`] refuses those that were not read.
pub(crate) struct Arguments<'a> {
    workload: &'static str,
    words: Iter<'a, String>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(workload: &Workload, words: &'a [String]) -> Self {
        Self {
            workload: workload.name,
            words: words.iter(),
        }
    }

    /// The workload's name.
    pub(crate) fn workload(&self) -> &'static str {
        self.workload
    }

    /// The next argument, `<seconds>`, from 0.001 to 1000000, with or without a fraction; `default` if there is none.
    pub(crate) fn seconds(&mut self, default: f64) -> Result<Duration, WorkloadError> {
        let Some(word) = self.words.next() else {
            return Ok(Duration::from_secs_f64(default));
        };
        let seconds: Option<f64> = word.parse().ok();
        // setitimer(2) with a time of 0 would stop the timer, and the workload would not end.
        let valid = seconds.filter(|seconds| (0.001..=1e6).contains(seconds));
        let duration = valid.map(Duration::from_secs_f64);
        duration.ok_or_else(|| self.invalid("<seconds>", word, "seconds, 0.001 to 1000000"))
    }

    /// The next argument, a number within `range`; `default` if there is none. `argument` is its text in the usage line.
    pub(crate) fn number<T>(
        &mut self,
        argument: &'static str,
        default: T,
        range: &RangeInclusive<T>,
    ) -> Result<T, WorkloadError>
    where
        T: FromStr + PartialOrd + Display,
    {
        let Some(word) = self.words.next() else {
            return Ok(default);
        };
        let number: Option<T> = word.parse().ok();
        let valid = number.filter(|number| range.contains(number));
        valid.ok_or_else(|| {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            self.invalid(argument, word, &expected)
        })
    }

    /// Checks that no argument is left.
    pub(crate) fn end(&mut self) -> Result<(), WorkloadError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(WorkloadError::TooMany {
                workload: self.workload,
                word: word.clone(),
            }),
        }
    }

    fn invalid(&self, argument: &'static str, word: &str, expected: &str) -> WorkloadError {
        WorkloadError::Argument {
            workload: self.workload,
            argument,
            word: word.to_owned(),
            expected: expected.to_owned(),
        }
    }
}
