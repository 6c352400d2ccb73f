//! Sample filters: `--filter 'period > 1000, cpu == 1 || cpu == 2'`, for events that the kernel cannot filter.
//!
//! Commas separate groups of comparisons. A group holds if any of its comparisons, joined by `||`, holds; a sample is accepted if
//! all groups hold, as in newer releases of perf.

mod memory;

use rperf_wire::{FilterField, SampleRecord};

use self::memory::{MemoryPart, PARTS};
use crate::RecordDetails;
use crate::number::number;

/// A condition on samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleFilter {
    /// Accepts a sample if every group has a comparison that holds.
    groups: Vec<Vec<Comparison>>,
}

/// One comparison; variables for one are named `test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Comparison {
    field: ComparedField,
    operator: Operator,
    value: u64,
}

/// A field that filters compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComparedField {
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
    /// A part of the weight: its first bit and its number of bits.
    WeightPart(u32, u32),
    PhysAddr,
    CodePageSize,
    DataPageSize,
    /// A part of the data source of a memory access.
    Memory(&'static MemoryPart),
    /// The user id of the task, which samples do not have: only BPF programs can compare it.
    User,
    /// The group id of the task; like `User`, only for BPF programs. Elsewhere in this file, a group is a group of comparisons.
    Group,
}

const FIELDS: [(&str, ComparedField); 23] = [
    ("ip", ComparedField::Ip),
    ("id", ComparedField::Id),
    ("tid", ComparedField::Tid),
    ("pid", ComparedField::Pid),
    ("cpu", ComparedField::Cpu),
    ("time", ComparedField::Time),
    ("addr", ComparedField::Addr),
    ("period", ComparedField::Period),
    ("txn", ComparedField::Transaction),
    ("weight", ComparedField::Weight),
    ("weight1", ComparedField::WeightPart(0, 32)),
    ("weight2", ComparedField::WeightPart(32, 16)),
    ("weight3", ComparedField::WeightPart(48, 16)),
    ("ins_lat", ComparedField::WeightPart(32, 16)),
    ("p_stage_cyc", ComparedField::WeightPart(48, 16)),
    ("retire_lat", ComparedField::WeightPart(48, 16)),
    ("phys_addr", ComparedField::PhysAddr),
    ("code_pgsz", ComparedField::CodePageSize),
    ("code_page_size", ComparedField::CodePageSize),
    ("data_pgsz", ComparedField::DataPageSize),
    ("data_page_size", ComparedField::DataPageSize),
    ("uid", ComparedField::User),
    ("gid", ComparedField::Group),
];

/// A comparison that BPF programs can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfComparison {
    /// The field.
    pub field: FilterField,
    /// How it is compared.
    pub operator: Operator,
    /// The value that the field is compared with.
    pub value: u64,
}

/// A comparison of unsigned numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the comparisons")]
pub enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// The numbers have a common bit.
    HasBits,
}

/// The signs of the operators. The first match is used, so an operator comes before its prefixes.
const OPERATORS: [(&str, Operator); 7] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    (">", Operator::Greater),
    ("<=", Operator::LessOrEqual),
    ("<", Operator::Less),
    ("&", Operator::HasBits),
];

/// An invalid sample filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SampleFilterError {
    /// What is invalid.
    pub reason: String,
    /// How to fix it.
    pub hint: String,
}

impl SampleFilter {
    /// Parses a filter.
    ///
    /// # Errors
    /// [`SampleFilterError`] for the first invalid comparison.
    pub fn parse(text: &str) -> Result<Self, SampleFilterError> {
        let group = |group: &str| group.split("||").map(Comparison::parse).collect();
        let groups = text.split(',').map(group).collect::<Result<_, _>>()?;
        Ok(Self { groups })
    }

    /// Returns a filter that drops samples of process `pid`.
    #[must_use]
    pub fn all_but(pid: u32) -> Self {
        let test = Comparison {
            field: ComparedField::Pid,
            operator: Operator::NotEqual,
            value: pid.into(),
        };
        Self {
            groups: vec![vec![test]],
        }
    }

    /// Returns the comparisons by group, if BPF programs can make all of them. In each group, at least one comparison must
    /// hold.
    #[must_use]
    pub fn bpf_comparisons(&self) -> Option<Vec<Vec<BpfComparison>>> {
        let test = |test: &Comparison| {
            Some(BpfComparison {
                field: test.field.in_kernel()?,
                operator: test.operator,
                value: test.value,
            })
        };
        let group = |group: &Vec<Comparison>| group.iter().map(test).collect();
        self.groups.iter().map(group).collect()
    }

    /// Returns the name of a compared field that only BPF programs can compare, if there is one.
    #[must_use]
    pub fn bpf_only_field(&self) -> Option<&'static str> {
        let mut fields = self.groups.iter().flatten().map(|test| test.field);
        fields.find_map(|field| match field {
            ComparedField::User => Some("uid"),
            ComparedField::Group => Some("gid"),
            _ => None,
        })
    }

    /// Returns a filter that accepts the samples that both filters accept.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.groups.extend(other.groups);
        self
    }

    /// Enables the recording of the fields that the filter compares.
    pub fn enable_fields(&self, details: &mut RecordDetails) {
        for Comparison { field, .. } in self.groups.iter().flatten() {
            match field {
                // Always recorded, or (user and group) never in samples.
                ComparedField::Ip
                | ComparedField::Tid
                | ComparedField::Pid
                | ComparedField::User
                | ComparedField::Group => {}
                ComparedField::Id => details.samples.identifier = true,
                ComparedField::Cpu => details.samples.cpu = true,
                ComparedField::Time => details.samples.time = Some(true),
                ComparedField::Addr | ComparedField::Memory(_) => details.samples.data = true,
                // Undoes `--no-period` only: samples without a period have the fixed period of the event.
                ComparedField::Period => {
                    details.samples.period = details.samples.period.filter(|is_on| *is_on)
                }
                ComparedField::Transaction => details.samples.transaction = true,
                ComparedField::Weight | ComparedField::WeightPart(..) => {
                    details.samples.weight = true
                }
                ComparedField::PhysAddr => {
                    (details.samples.data, details.samples.phys_data) = (true, true)
                }
                ComparedField::CodePageSize => details.samples.code_page_size = true,
                ComparedField::DataPageSize => {
                    (details.samples.data, details.samples.data_page_size) = (true, true)
                }
            }
        }
    }

    /// Whether the filter accepts a sample. A comparison with a field that the sample lacks does
    /// not hold. `period` is the period of samples without one.
    #[must_use]
    pub fn matches(&self, sample: &SampleRecord<'_>, period: u64) -> bool {
        let fits = |test: &Comparison| test.fits(sample, period);
        self.groups.iter().all(|group| group.iter().any(fits))
    }
}

impl Comparison {
    fn parse(text: &str) -> Result<Self, SampleFilterError> {
        let text = text.trim();
        let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let field = ComparedField::named(name).ok_or_else(|| unknown(name, text))?;
        let rest = rest.trim_start();
        let mut operators = OPERATORS.iter();
        // The operator, and the text after it.
        let comparison =
            operators.find_map(|(sign, operator)| Some((operator, rest.strip_prefix(sign)?)));
        let wrong = |reason: String, hint: &str| SampleFilterError {
            reason,
            hint: hint.to_owned(),
        };
        let Some((operator, value_text)) = comparison else {
            let reason = format!("'{text}' has no comparison");
            return Err(wrong(
                reason,
                "compare with ==, !=, >, >=, <, <= or &: 'period > 1000'",
            ));
        };
        let value_text = value_text.trim();
        let number = number(value_text);
        let value = match field {
            ComparedField::Memory(part) => number
                .or_else(|| part.named_value(value_text))
                .ok_or_else(|| {
                    wrong(
                        format!("'{value_text}' is not a value of {name}"),
                        &format!("choose from {}, or give a number", part.names().join(", ")),
                    )
                })?,
            _ => number.ok_or_else(|| {
                wrong(
                    format!("'{value_text}' is not a number"),
                    "give numbers as 4096 or 0x1000, join conditions with ',' (all) and '||' (any)",
                )
            })?,
        };
        Ok(Self {
            field,
            operator: *operator,
            value,
        })
    }

    fn fits(self, sample: &SampleRecord<'_>, period: u64) -> bool {
        let Some(actual) = self.field.of(sample, period) else {
            return false;
        };
        match self.operator {
            Operator::Equal => actual == self.value,
            Operator::NotEqual => actual != self.value,
            Operator::Greater => actual > self.value,
            Operator::GreaterOrEqual => actual >= self.value,
            Operator::Less => actual < self.value,
            Operator::LessOrEqual => actual <= self.value,
            Operator::HasBits => actual & self.value != 0,
        }
    }
}

impl ComparedField {
    /// The field for BPF programs; `None` if they cannot compare it.
    fn in_kernel(self) -> Option<FilterField> {
        Some(match self {
            Self::Pid => FilterField::Process,
            Self::Tid => FilterField::Thread,
            Self::Cpu => FilterField::Cpu,
            Self::Period => FilterField::Period,
            Self::Addr => FilterField::Address,
            Self::User => FilterField::User,
            Self::Group => FilterField::Group,
            _ => return None,
        })
    }

    /// The field with this name in filters.
    fn named(name: &str) -> Option<Self> {
        let known = FIELDS.iter().find(|(known, _)| *known == name);
        let part = || PARTS.iter().find(|part| part.name == name);
        match known {
            Some((_, field)) => Some(*field),
            None => part().map(Self::Memory),
        }
    }

    /// The field's value in a sample; `None` if the sample lacks it. `period` is for samples without a period.
    fn of(self, sample: &SampleRecord<'_>, period: u64) -> Option<u64> {
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
            Self::Memory(part) => sample.data_src.map(|source| part.of(source)),
            Self::User | Self::Group => None,
        }
    }
}

/// The error for a comparison `text` with the unknown field `name`, which is empty if the text does not begin with a name.
fn unknown(name: &str, text: &str) -> SampleFilterError {
    let reason = match name {
        "" => format!("'{text}' does not begin with a field"),
        name => format!("unknown field '{name}'"),
    };
    let names = FIELDS.iter().map(|(name, _)| *name);
    let names: Vec<&str> = names.chain(PARTS.iter().map(|part| part.name)).collect();
    SampleFilterError {
        reason,
        hint: format!("choose from {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The event's fixed period, for samples without a period.
    const FIXED_PERIOD: u64 = 1;

    fn sample() -> SampleRecord<'static> {
        SampleRecord {
            ip: Some(0xffff_0000),
            pid_tid: Some((7, 9)),
            cpu: Some(3),
            period: Some(1000),
            weight: Some(5 | 6 << 32 | 7 << 48),
            ..SampleRecord::default()
        }
    }

    fn matches(text: &str) -> bool {
        let filter = SampleFilter::parse(text).unwrap();
        filter.matches(&sample(), FIXED_PERIOD)
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
            // The sample has no address.
            ("addr != 1", false),
            ("addr != 1 || cpu == 3", true),
        ] {
            assert_eq!(matches(text), expected, "{text}");
        }
    }

    #[test]
    fn samples_without_a_period_are_compared_by_the_fixed_one() {
        let without = SampleRecord {
            period: None,
            ..sample()
        };
        let filter = SampleFilter::parse("period == 42").unwrap();
        assert_eq!(
            [41, 42].map(|fixed| filter.matches(&without, fixed)),
            [false, true]
        );
        // `and` keeps both conditions; the sample's process is 7.
        let both = SampleFilter::all_but(8).and(filter);
        assert_eq!(
            [41, 42].map(|fixed| both.matches(&without, fixed)),
            [false, true]
        );
    }

    #[test]
    fn samples_of_an_excluded_process_do_not_match() {
        assert!(!SampleFilter::all_but(7).matches(&sample(), FIXED_PERIOD));
        assert!(SampleFilter::all_but(8).matches(&sample(), FIXED_PERIOD));
    }

    #[test]
    fn parts_of_memory_accesses_have_names() {
        // A locked load that hit level 3 after an L2 TLB hit, with the snoop bits none and fwd (both, so that `==` and `&`
        // differ), and hops0.
        let sample = SampleRecord {
            data_src: Some(2 | 1 << 20 | 2 << 24 | (16 | 2) << 26 | 3 << 33 | 1 << 38 | 1 << 43),
            ..SampleRecord::default()
        };
        for (text, expected) in [
            ("mem_op == load", true),
            ("mem_op == store || mem_op == 2", true),
            ("mem_op & 6, mem_lvl > l1", true),
            ("mem_lvl == l3, mem_lock == locked, mem_remote == 0", true),
            ("mem_snoop == none", false),
            ("mem_snoop & fwd, mem_snoop & none", true),
            (
                "mem_dtlb == l2_hit, mem_dtlb & any_hit, mem_hops == hops0",
                true,
            ),
            ("mem_dtlb == l1_hit || mem_blk != 0", false),
        ] {
            let filter = SampleFilter::parse(text).unwrap();
            assert_eq!(filter.matches(&sample, FIXED_PERIOD), expected, "{text}");
            assert!(
                !filter.matches(&SampleRecord::default(), FIXED_PERIOD),
                "{text}"
            );
            let mut details = RecordDetails::default();
            filter.enable_fields(&mut details);
            assert!(details.samples.data, "{text}");
        }
    }

    #[test]
    fn some_fields_can_be_compared_by_bpf_programs() {
        let filter = |text: &str| SampleFilter::parse(text).unwrap();
        let test = |field, operator, value| BpfComparison {
            field,
            operator,
            value,
        };
        assert_eq!(
            filter("uid == 3 || period > 5, pid != 7").bpf_comparisons(),
            Some(vec![
                vec![
                    test(FilterField::User, Operator::Equal, 3),
                    test(FilterField::Period, Operator::Greater, 5)
                ],
                vec![test(FilterField::Process, Operator::NotEqual, 7)],
            ])
        );
        for (text, only) in [
            ("ip > 1, gid == 1", Some("gid")),
            ("cpu == 1 || time > 0", None),
        ] {
            assert_eq!(filter(text).bpf_comparisons(), None, "{text}");
            assert_eq!(filter(text).bpf_only_field(), only);
        }
        // Samples have no ids of users and groups, so these comparisons never hold.
        assert!(!filter("uid == 0 || gid == 0").matches(&sample(), FIXED_PERIOD));
    }

    #[test]
    fn invalid_comparisons_are_named() {
        for (text, reason) in [
            ("", "'' does not begin with a field"),
            ("> 3", "'> 3' does not begin with a field"),
            ("cpus == 1", "unknown field 'cpus'"),
            ("cpu", "'cpu' has no comparison"),
            ("cpu = 1", "'cpu = 1' has no comparison"),
            ("cpu == ", "'' is not a number"),
            ("cpu == x", "'x' is not a number"),
            ("cpu == -1", "'-1' is not a number"),
            ("cpu == +1", "'+1' is not a number"),
            ("cpu == 1 | cpu == 2", "'1 | cpu == 2' is not a number"),
            ("period > 1,", "'' does not begin with a field"),
            ("mem_lvl == l9", "'l9' is not a value of mem_lvl"),
            ("mem_level == l1", "unknown field 'mem_level'"),
            ("cpu == l1", "'l1' is not a number"),
        ] {
            let error = SampleFilter::parse(text).unwrap_err();
            assert_eq!(error.to_string(), reason, "{text}");
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn compared_fields_are_recorded() {
        let mut details = RecordDetails::default();
        details.samples.period = Some(false);
        SampleFilter::parse("pid == 1")
            .unwrap()
            .enable_fields(&mut details);
        assert_eq!(details.samples.period, Some(false));
        let filter = SampleFilter::parse("period > 1, cpu == 1 || phys_addr > 0").unwrap();
        filter.enable_fields(&mut details);
        assert_eq!((details.samples.period, details.samples.cpu), (None, true));
        assert!(details.samples.data && details.samples.phys_data && !details.samples.weight);
    }
}
