//! Settings of one event from its terms, which override the options of the command.

use rperf_wire::{Attr, AttrFlags, BranchSampleType, SampleType};

use crate::number::number;
use crate::terms::Term;
use crate::{CallGraph, StackSize, branch_filter};

/// Settings of one event; for `None`, the command's option applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventSettings {
    /// Sampling rate (`period=`, `freq=`).
    pub rate: Option<SamplingRate>,
    /// Whether samples have a time (`time=`).
    pub time: Option<bool>,
    /// Whether the event is inherited to child tasks (`inherit`, `no-inherit`).
    pub inherit: Option<bool>,
    /// How callchains are recorded (`call-graph=`, `stack-size=`).
    pub call_graph: Option<CallGraph>,
    /// Maximum callchain depth in frames (`max-stack=`); enables callchains, unless `call-graph=no` is given.
    pub max_stack: Option<u16>,
    /// Branch filter of samples (`branch_type=`).
    pub branches: Option<BranchSampleType>,
    /// Whether counts are summed over the hardware threads of a core when each CPU has a row (`percore`).
    pub per_core: bool,
}

/// Sampling rate of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingRate {
    /// One sample per this number of events.
    Period(u64),
    /// Number of samples per second.
    Frequency(u64),
}

/// Result of a term that needs no format of a PMU.
#[derive(Debug)]
pub(crate) enum CommonTerm {
    /// Stored in [`EventSettings`].
    Stored,
    /// Overrides the event's name.
    Name(String),
    /// A `config` word of the attr: its number, 0 (`config`) to 3 (`config3`), and its value.
    Config(usize, u64),
}

/// Keys of the terms that need no format of a PMU, for suggestions; without `overwrite`, whose only valid value is 0. Only events
/// of a PMU take the first key, `config`; all events take the others.
pub(crate) const KEYS: [&str; 16] = [
    "config",
    "config1",
    "config2",
    "config3",
    "name",
    "period",
    "freq",
    "branch_type",
    "time",
    "call-graph",
    "stack-size",
    "max-stack",
    "inherit",
    "no-inherit",
    "no-overwrite",
    "percore",
];

/// Terms of perf that are not supported, with the reason.
const UNSUPPORTED_TERMS: [(&str, &str); 3] = [
    (
        "aux-output",
        "the only supported hardware trace, intel_bts, cannot include other events",
    ),
    (
        "aux-sample-size",
        "the only supported hardware trace, intel_bts, has no AUX samples",
    ),
    ("metric-id", "the events of metrics are given by -M"),
];

/// Why a term is refused: its key is not supported, or its value is invalid.
type Reason = String;

impl EventSettings {
    /// Stores or returns the value of a term that needs no format of a PMU; returns `None` for another key.
    pub(crate) fn read_term(&mut self, term: &Term<'_>) -> Result<Option<CommonTerm>, Reason> {
        let unsupported = UNSUPPORTED_TERMS.iter().find(|(key, _)| *key == term.key);
        if let Some((key, why)) = unsupported {
            return Err(unavailable(key, why));
        }
        match term.key {
            "config" => return term_number(term).map(|value| Some(CommonTerm::Config(0, value))),
            "config1" => return term_number(term).map(|value| Some(CommonTerm::Config(1, value))),
            "config2" => return term_number(term).map(|value| Some(CommonTerm::Config(2, value))),
            "config3" => return term_number(term).map(|value| Some(CommonTerm::Config(3, value))),
            "name" => {
                let name = term.value.unwrap_or_default().trim_matches(['\'', '"']);
                let missing = || "`name' needs a name: name=mine".to_owned();
                let name = (!name.is_empty()).then(|| name.to_owned());
                return name
                    .map(|name| Some(CommonTerm::Name(name)))
                    .ok_or_else(missing);
            }
            "period" => self.rate = Some(SamplingRate::Period(positive(term)?)),
            "freq" => self.rate = Some(SamplingRate::Frequency(positive(term)?)),
            "time" => self.time = Some(switch(term)?),
            "inherit" => self.inherit = Some(switch(term)?),
            "no-inherit" => self.inherit = Some(!switch(term)?),
            "overwrite" => refuse_overwriting(term, switch(term)?)?,
            "no-overwrite" => refuse_overwriting(term, !switch(term)?)?,
            "max-stack" => self.max_stack = Some(frame_count(term)?),
            "call-graph" => self.call_graph = Some(call_graph(term, self.call_graph)?),
            "stack-size" => self.set_stack_size(term)?,
            "percore" => self.per_core = switch(term)?,
            "branch_type" => self.branches = Some(branches(term)?),
            _ => return Ok(None),
        }
        Ok(Some(CommonTerm::Stored))
    }

    /// Sets the size of stack copies. The term may precede or follow `call-graph=dwarf`, and implies it if no mode is given. With
    /// another mode, which has no stack copies, it has no effect.
    fn set_stack_size(&mut self, term: &Term<'_>) -> Result<(), Reason> {
        let size = number(term.value.unwrap_or_default()).and_then(StackSize::new);
        let stack_size = size.ok_or_else(|| {
            format!(
                "`stack-size' takes bytes, at most {}",
                StackSize::MAX.bytes()
            )
        })?;
        if matches!(self.call_graph, None | Some(CallGraph::Dwarf { .. })) {
            self.call_graph = Some(CallGraph::Dwarf {
                stack_size,
                // As with `--call-graph dwarf`, data addresses are recorded, too.
                with_data: true,
            });
        }
        Ok(())
    }

    /// The call graph mode of this event; `general` is the command's.
    pub(crate) fn effective_call_graph(&self, general: CallGraph) -> CallGraph {
        match (self.call_graph, general) {
            (Some(own), _) => own,
            (None, CallGraph::None) if self.max_stack.is_some() => CallGraph::FramePointers,
            (None, general) => general,
        }
    }

    /// Applies the settings except `call_graph` and `per_core` to an attr. They override the command's options, which the attr
    /// already has.
    pub(crate) fn apply(&self, attr: &mut Attr) {
        if let Some(rate) = self.rate {
            let (value, is_frequency) = match rate {
                SamplingRate::Period(period) => (period, false),
                SamplingRate::Frequency(frequency) => (frequency, true),
            };
            attr.sample_period = value;
            attr.flags = attr.flags.with(AttrFlags::FREQ, is_frequency);
            attr.sample_type = attr.sample_type.with(SampleType::PERIOD, is_frequency);
        }
        if let Some(time) = self.time {
            attr.sample_type = attr.sample_type.with(SampleType::TIME, time);
        }
        if let Some(max_stack) = self.max_stack {
            attr.sample_max_stack = max_stack;
        }
        if let Some(inherit) = self.inherit {
            attr.flags = attr.flags.with(AttrFlags::INHERIT, inherit);
        }
        if let Some(branches) = self.branches {
            attr.branch_sample_type = branches;
            attr.sample_type = attr
                .sample_type
                .with(SampleType::BRANCH_STACK, !branches.is_empty());
        }
    }
}

fn term_number(term: &Term<'_>) -> Result<u64, Reason> {
    let value = number(term.value.unwrap_or_default());
    value.ok_or_else(|| format!("`{}' needs a number: {}=0x10", term.key, term.key))
}

fn positive(term: &Term<'_>) -> Result<u64, Reason> {
    let value = term_number(term)?;
    let above = (value > 0).then_some(value);
    above.ok_or_else(|| format!("`{}' must be above 0", term.key))
}

fn frame_count(term: &Term<'_>) -> Result<u16, Reason> {
    let value = u16::try_from(positive(term)?).ok();
    value.ok_or_else(|| format!("`{}' takes at most {} frames", term.key, u16::MAX))
}

fn switch(term: &Term<'_>) -> Result<bool, Reason> {
    match term.value {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(_) => Err(format!("`{}' takes 0 or 1", term.key)),
    }
}

/// Refuses a term that requests an overwritable ring; the other value is the default.
fn refuse_overwriting(term: &Term<'_>, is_requested: bool) -> Result<(), Reason> {
    if !is_requested {
        return Ok(());
    }
    let words = match term.key {
        "no-overwrite" => "no-overwrite=0",
        key => key,
    };
    let why = "a single event cannot have its own ring buffer, use --overwrite";
    Err(unavailable(words, why))
}

/// The reason for a term that is not supported.
fn unavailable(term: &str, why: &str) -> Reason {
    format!("`{term}' is not available here: {why}")
}

/// Parses a call graph mode. `before` is the mode that the preceding terms have set: `dwarf` keeps the size of an earlier
/// `stack-size` term.
fn call_graph(term: &Term<'_>, before: Option<CallGraph>) -> Result<CallGraph, Reason> {
    match term.value {
        Some("no") => Ok(CallGraph::None),
        Some("fp") => Ok(CallGraph::FramePointers),
        Some("dwarf") => Ok(match before {
            Some(dwarf @ CallGraph::Dwarf { .. }) => dwarf,
            _ => CallGraph::Dwarf {
                stack_size: StackSize::default(),
                // As in `set_stack_size`.
                with_data: true,
            },
        }),
        Some("lbr") => Ok(CallGraph::BranchRecords),
        _ => Err("`call-graph' takes fp, dwarf, lbr or no".to_owned()),
    }
}

/// Parses branch types. Perf separates them by a bar, since a comma would end the term.
fn branches(term: &Term<'_>) -> Result<BranchSampleType, Reason> {
    let names = term.value.unwrap_or_default().replace('|', ",");
    branch_filter(&names).map_err(|unknown| unknown.to_string())
}
