//! Which samples are kept: `--filter 'period > 1000, cpu == 1 || cpu == 2'`, for events whose fields the kernel doesn't compare.
//!
//! Tests are joined by `||` (any of them) and such groups by commas (all of them), as newer releases of perf have it.

use rperf_wire::Sample;

use crate::Details;

/// What a sample must be to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFilter {
    /// All of these, of each any test.
    groups: Vec<Vec<Test>>,
}

/// One comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Test {
    term: Term,
    operator: Operator,
    value: u64,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    Ip,
    Id,
    Tid,
    Pid,
    Cpu,
    Time,
    Addr,
    Period,
    Transaction,
    Weight,
    /// A part of the weight: bits to shift, and bits that it has.
    WeightPart(u32, u32),
    PhysAddr,
    CodePageSize,
    DataPageSize,
}

const TERMS: [(&str, Term); 21] = [
    ("ip", Term::Ip),
    ("id", Term::Id),
    ("tid", Term::Tid),
    ("pid", Term::Pid),
    ("cpu", Term::Cpu),
    ("time", Term::Time),
    ("addr", Term::Addr),
    ("period", Term::Period),
    ("txn", Term::Transaction),
    ("weight", Term::Weight),
    ("weight1", Term::WeightPart(0, 32)),
    ("weight2", Term::WeightPart(32, 16)),
    ("weight3", Term::WeightPart(48, 16)),
    ("ins_lat", Term::WeightPart(32, 16)),
    ("p_stage_cyc", Term::WeightPart(48, 16)),
    ("retire_lat", Term::WeightPart(48, 16)),
    ("phys_addr", Term::PhysAddr),
    ("code_pgsz", Term::CodePageSize),
    ("code_page_size", Term::CodePageSize),
    ("data_pgsz", Term::DataPageSize),
    ("data_page_size", Term::DataPageSize),
];

/// Terms of perf that no field of a sample tells, or not in numbers.
const NOT_HERE: [(&str, &str); 3] = [
    (
        "mem_",
        "'report -s mem' tells samples apart by where their data was",
    ),
    (
        "uid",
        "samples don't tell of users: '-u' records the tasks of one",
    ),
    ("gid", "samples don't tell of groups"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    HasBits,
}

/// Longer ones come before those that they begin with.
const OPERATORS: [(&str, Operator); 7] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    (">", Operator::Greater),
    ("<=", Operator::LessOrEqual),
    ("<", Operator::Less),
    ("&", Operator::HasBits),
];

/// A filter of samples that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SampleFilterError {
    /// What is wrong, with the words that are.
    pub reason: String,
    /// What would do.
    pub hint: String,
}

impl SampleFilter {
    /// Reads a filter.
    ///
    /// # Errors
    /// [`SampleFilterError`] for the first test that cannot be used.
    pub fn parse(text: &str) -> Result<Self, SampleFilterError> {
        let group = |group: &str| group.split("||").map(Test::parse).collect();
        let groups = text.split(',').map(group).collect::<Result<_, _>>()?;
        Ok(Self { groups })
    }

    /// Samples that do not belong to process `pid`.
    #[must_use]
    pub fn all_but(pid: u32) -> Self {
        let test = Test {
            term: Term::Pid,
            operator: Operator::NotEqual,
            value: pid.into(),
        };
        Self {
            groups: vec![vec![test]],
        }
    }

    /// Keeps what both keep.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.groups.extend(other.groups);
        self
    }

    /// Has the fields recorded that it compares.
    pub fn ask_for(&self, details: &mut Details) {
        for Test { term, .. } in self.groups.iter().flatten() {
            match term {
                Term::Ip | Term::Tid | Term::Pid => {}
                Term::Id => details.identifier = true,
                Term::Cpu => details.cpu = true,
                Term::Time => details.time = Some(true),
                Term::Addr => details.data = true,
                Term::Period => details.period = details.period.filter(|wanted| *wanted),
                Term::Transaction => details.transaction = true,
                Term::Weight | Term::WeightPart(..) => details.weight = true,
                Term::PhysAddr => (details.data, details.phys_data) = (true, true),
                Term::CodePageSize => details.code_page_size = true,
                Term::DataPageSize => (details.data, details.data_page_size) = (true, true),
            }
        }
    }

    /// Whether a sample fits, one with a field that it does not have does not; `period` is that of samples without one.
    #[must_use]
    pub fn keeps(&self, sample: &Sample<'_>, period: u64) -> bool {
        let fits = |test: &Test| test.fits(sample, period);
        self.groups.iter().all(|group| group.iter().any(fits))
    }
}

impl Test {
    fn parse(text: &str) -> Result<Self, SampleFilterError> {
        let text = text.trim();
        let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let known = TERMS.iter().find(|(known, _)| *known == name);
        let Some((_, term)) = known else {
            return Err(unknown(name, text));
        };
        let rest = rest.trim_start();
        let mut operators = OPERATORS.iter();
        let found =
            operators.find_map(|(sign, operator)| Some((operator, rest.strip_prefix(sign)?)));
        let wrong = |reason: String, hint: &str| SampleFilterError {
            reason,
            hint: hint.to_owned(),
        };
        let Some((operator, value)) = found else {
            let reason = format!("'{text}' compares nothing");
            return Err(wrong(
                reason,
                "compare with ==, !=, >, >=, <, <= or &: 'period > 1000'",
            ));
        };
        let value = value.trim();
        let number = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => value.parse(),
        };
        let is_number = value.starts_with(|digit: char| digit.is_ascii_digit());
        let value = number.ok().filter(|_| is_number).ok_or_else(|| {
            wrong(
                format!("'{value}' is no number"),
                "give numbers as 4096 or 0x1000, and join tests by ',' (all) and '||' (any)",
            )
        })?;
        Ok(Self {
            term: *term,
            operator: *operator,
            value,
        })
    }

    fn fits(self, sample: &Sample<'_>, period: u64) -> bool {
        let Some(held) = self.term.of(sample, period) else {
            return false;
        };
        match self.operator {
            Operator::Equal => held == self.value,
            Operator::NotEqual => held != self.value,
            Operator::Greater => held > self.value,
            Operator::GreaterOrEqual => held >= self.value,
            Operator::Less => held < self.value,
            Operator::LessOrEqual => held <= self.value,
            Operator::HasBits => held & self.value != 0,
        }
    }
}

impl Term {
    fn of(self, sample: &Sample<'_>, period: u64) -> Option<u64> {
        match self {
            Self::Ip => sample.ip,
            Self::Id => sample.id,
            Self::Tid => sample.pid_tid.map(|(_, tid)| tid.into()),
            Self::Pid => sample.pid_tid.map(|(pid, _)| pid.into()),
            Self::Cpu => sample.cpu.map(u64::from),
            Self::Time => sample.time,
            Self::Addr => sample.addr,
            Self::Period => Some(sample.period.unwrap_or(period)),
            Self::Transaction => sample.transaction,
            Self::Weight => sample.weight,
            Self::WeightPart(shift, bits) => {
                let part = |weight: u64| (weight >> shift) & ((1 << bits) - 1);
                sample.weight.map(part)
            }
            Self::PhysAddr => sample.phys_addr,
            Self::CodePageSize => sample.code_page_size,
            Self::DataPageSize => sample.data_page_size,
        }
    }
}

fn unknown(name: &str, text: &str) -> SampleFilterError {
    let elsewhere = NOT_HERE.iter().find(|(begin, _)| name.starts_with(begin));
    if let Some((_, hint)) = elsewhere {
        return SampleFilterError {
            reason: format!("samples are not filtered by '{name}'"),
            hint: (*hint).to_owned(),
        };
    }
    let reason = match name {
        "" => format!("'{text}' begins with no term"),
        name => format!("there is no term '{name}'"),
    };
    let names: Vec<&str> = TERMS.iter().map(|(name, _)| *name).collect();
    SampleFilterError {
        reason,
        hint: format!("choose from {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample<'static> {
        Sample {
            ip: Some(0xffff_0000),
            pid_tid: Some((7, 9)),
            cpu: Some(3),
            period: Some(1000),
            weight: Some(5 | 6 << 32 | 7 << 48),
            ..Sample::default()
        }
    }

    fn keeps(text: &str) -> bool {
        SampleFilter::parse(text).unwrap().keeps(&sample(), 1)
    }

    #[test]
    fn commas_are_all_and_bars_are_any() {
        for (text, expected) in [
            ("period > 999, cpu == 3", true),
            ("period>1000,cpu==3", false),
            ("cpu == 1 || cpu == 3, pid != 8", true),
            ("cpu == 1||cpu == 2, pid == 7", false),
            (
                "pid == 7 || tid == 0, cpu == 0 || cpu >= 3 || cpu < 1",
                true,
            ),
            ("ip & 0xffff0000", true),
            ("ip & 0xffff", false),
            ("period <= 1000, period >= 1000, tid < 10, tid > 8", true),
            (
                "weight1 == 5, weight2 == 6, ins_lat == 6, weight3 == 7",
                true,
            ),
            // The sample does not tell.
            ("addr != 1", false),
            ("addr != 1 || cpu == 3", true),
        ] {
            assert_eq!(keeps(text), expected, "{text}");
        }
        let without = Sample {
            period: None,
            ..sample()
        };
        let filter = SampleFilter::parse("period == 42").unwrap();
        assert_eq!(
            [41, 42].map(|fixed| filter.keeps(&without, fixed)),
            [false, true]
        );
        assert!(!SampleFilter::all_but(7).keeps(&sample(), 1));
        let both = SampleFilter::all_but(8).and(filter);
        assert_eq!(
            [41, 42].map(|fixed| both.keeps(&without, fixed)),
            [false, true]
        );
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        for (text, reason) in [
            ("", "'' begins with no term"),
            ("> 3", "'> 3' begins with no term"),
            ("cpus == 1", "there is no term 'cpus'"),
            ("cpu", "'cpu' compares nothing"),
            ("cpu = 1", "'cpu = 1' compares nothing"),
            ("cpu == ", "'' is no number"),
            ("cpu == x", "'x' is no number"),
            ("cpu == -1", "'-1' is no number"),
            ("cpu == +1", "'+1' is no number"),
            ("cpu == 1 | cpu == 2", "'1 | cpu == 2' is no number"),
            ("period > 1,", "'' begins with no term"),
            ("mem_lvl == l1", "samples are not filtered by 'mem_lvl'"),
            ("uid == 0", "samples are not filtered by 'uid'"),
        ] {
            let error = SampleFilter::parse(text).unwrap_err();
            assert_eq!(error.to_string(), reason, "{text}");
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn fields_are_recorded_that_are_compared() {
        let mut details = Details {
            period: Some(false),
            ..Details::default()
        };
        SampleFilter::parse("pid == 1")
            .unwrap()
            .ask_for(&mut details);
        assert_eq!(details.period, Some(false));
        let filter = SampleFilter::parse("period > 1, cpu == 1 || phys_addr > 0").unwrap();
        filter.ask_for(&mut details);
        assert_eq!((details.period, details.cpu), (None, true));
        assert!(details.data && details.phys_data && !details.weight);
    }
}
