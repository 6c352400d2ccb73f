//! CPU lists in the notation of the kernel and of users: `0,2,4-6`.

use std::fmt;

/// CPUs or NUMA nodes in ascending order without duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuList {
    numbers: Vec<u32>,
}

/// The reason for which a text is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CpuListError {
    /// A part is neither a number nor a range, or one of its numbers exceeds `u32`.
    #[error("'{0}' is neither a number nor a range such as 2-5")]
    Part(String),
    /// A range whose end is below its start.
    #[error("the range '{0}' ends below its start")]
    Backwards(String),
    /// A number of 65536 or more that fits in `u32`. The message says "CPU" for NUMA nodes, too.
    #[error("{0} is not a CPU number")]
    TooLarge(u32),
}

impl CpuList {
    /// Exclusive upper limit of numbers in a parsed list, far above any kernel's `NR_CPUS`.
    const LIMIT: u32 = 1 << 16;

    /// Parses a list. Blanks around numbers, empty parts and an empty list are accepted.
    ///
    /// # Errors
    /// [`CpuListError`] for the first invalid part.
    pub fn parse(text: &str) -> Result<Self, CpuListError> {
        let mut numbers = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |word: &str| {
                let parsed = word.trim().parse::<u32>();
                parsed.map_err(|_| CpuListError::Part(part.to_owned()))
            };
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(CpuListError::Backwards(part.to_owned()));
            }
            if last >= Self::LIMIT {
                return Err(CpuListError::TooLarge(last));
            }
            numbers.extend(first..=last);
        }
        Ok(numbers.into_iter().collect())
    }

    /// The numbers, ascending.
    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Whether `number` is in the list.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.numbers.binary_search(&number).is_ok()
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<T: IntoIterator<Item = u32>>(iter: T) -> Self {
        let mut numbers: Vec<u32> = iter.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self { numbers }
    }
}

/// The kernel's form: `0-1,4`.
impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self
            .numbers
            .chunk_by(|one, next| one.checked_add(1) == Some(*next));
        for (index, run) in runs.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepts_ranges_and_blanks() {
        let list = CpuList::parse("4-6, 0,2,5\n").unwrap();
        assert_eq!(list.numbers(), [0, 2, 4, 5, 6]);
        assert_eq!(list.to_string(), "0,2,4-6");
        assert!(list.contains(5) && !list.contains(3));
        assert_eq!(CpuList::parse("\n").unwrap().numbers(), []);
    }

    #[test]
    fn names_the_part_that_is_wrong() {
        assert_eq!(CpuList::parse("0,x"), Err(CpuListError::Part("x".into())));
        assert_eq!(
            CpuList::parse("3-1"),
            Err(CpuListError::Backwards("3-1".into()))
        );
        assert_eq!(
            CpuList::parse("0-4294967295"),
            Err(CpuListError::TooLarge(u32::MAX))
        );
        assert_eq!(CpuList::parse("-1"), Err(CpuListError::Part("-1".into())));
    }

    proptest! {
        #[test]
        fn parses_what_it_prints(numbers in proptest::collection::btree_set(0_u32..500, 0..40)) {
            let list: CpuList = numbers.iter().copied().collect();
            prop_assert_eq!(CpuList::parse(&list.to_string()), Ok(list));
        }
    }
}
