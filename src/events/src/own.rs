//! What the terms of one event set for it alone, whatever the options of the command say.

use rperf_wire::{Attr, AttrFlags, BranchSampleType, SampleType};

use crate::number::number;
use crate::terms::Term;
use crate::{CallGraph, StackSize, branch_filter};

/// Settings of one event; what is `None` is left to the command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Own {
    /// How often samples are taken (`period=`, `freq=`).
    pub rate: Option<Rate>,
    /// Whether samples have a time (`time=`).
    pub time: Option<bool>,
    /// Whether children of the observed tasks are observed too (`inherit`, `no-inherit`).
    pub inherit: Option<bool>,
    /// How callchains are recorded (`call-graph=`, `stack-size=`).
    pub call_graph: Option<CallGraph>,
    /// Deepest callchain in frames (`max-stack=`); asks for callchains too.
    pub max_stack: Option<u16>,
    /// Branches that samples hold (`branch_type=`).
    pub branches: Option<BranchSampleType>,
    /// Whether counts of the threads of a core are shown as one where each CPU has a row (`percore`).
    pub per_core: bool,
}

/// How often one event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Once for this many events.
    Period(u64),
    /// So many times a second of counting.
    Frequency(u64),
}

/// What a term that every event takes turned out to be.
#[derive(Debug)]
pub(crate) enum Common {
    /// Kept in [`Own`].
    Kept,
    /// Another name for the event.
    Name(String),
    /// A word of the attr: `config` (0), `config1`, `config2` or `config3`.
    Config(usize, u64),
}

/// Keys of the terms that every event takes, for advice.
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

/// What is known of perf's terms and not built, with the reason.
const REFUSED: [(&str, &str); 4] = [
    (
        "overwrite",
        "one event cannot have a ring of its own, use --overwrite",
    ),
    (
        "aux-output",
        "intel_bts, the one hardware trace that is recorded, takes in no other event",
    ),
    (
        "aux-sample-size",
        "intel_bts, the one hardware trace that is recorded, cannot be copied into samples",
    ),
    ("metric-id", "-M names the events of metrics itself"),
];

/// A value that does not fit its key.
type Reason = String;

impl Own {
    /// Takes a term that every event may have; `None` where the key is none of those.
    pub(crate) fn take(&mut self, term: &Term<'_>) -> Result<Option<Common>, Reason> {
        let refused = REFUSED.iter().find(|(key, _)| *key == term.key);
        if let Some((key, why)) = refused {
            return Err(format!("`{key}' is not available here: {why}"));
        }
        match term.key {
            "config" => return term_number(term).map(|value| Some(Common::Config(0, value))),
            "config1" => return term_number(term).map(|value| Some(Common::Config(1, value))),
            "config2" => return term_number(term).map(|value| Some(Common::Config(2, value))),
            "config3" => return term_number(term).map(|value| Some(Common::Config(3, value))),
            "name" => {
                let name = term.value.unwrap_or_default().trim_matches(['\'', '"']);
                let missing = || "`name' needs a name: name=mine".to_owned();
                let name = (!name.is_empty()).then(|| name.to_owned());
                return name
                    .map(|name| Some(Common::Name(name)))
                    .ok_or_else(missing);
            }
            "period" => self.rate = Some(Rate::Period(positive(term)?)),
            "freq" => self.rate = Some(Rate::Frequency(positive(term)?)),
            "time" => self.time = Some(switch(term)?),
            "inherit" => self.inherit = Some(switch(term)?),
            "no-inherit" => self.inherit = Some(!switch(term)?),
            "no-overwrite" => drop(switch(term)?),
            "max-stack" => self.max_stack = Some(small(term)?),
            "call-graph" => self.call_graph = Some(call_graph(term, self.call_graph)?),
            "stack-size" => self.stack_size(term)?,
            "percore" => self.per_core = switch(term)?,
            "branch_type" => self.branches = Some(branches(term)?),
            _ => return Ok(None),
        }
        Ok(Some(Common::Kept))
    }

    /// The size counts where stacks are copied, whichever of the two terms comes first.
    fn stack_size(&mut self, term: &Term<'_>) -> Result<(), Reason> {
        let size = number(term.value.unwrap_or_default()).and_then(StackSize::new);
        let stack_size = size.ok_or_else(|| {
            format!(
                "`stack-size' takes bytes, at most {}",
                StackSize::MAX.bytes()
            )
        })?;
        if matches!(self.call_graph, None | Some(CallGraph::Dwarf { .. })) {
            self.call_graph = Some(CallGraph::Dwarf { stack_size });
        }
        Ok(())
    }

    /// How this event's callchains are recorded where the command says `general`.
    pub(crate) fn call_graph(&self, general: CallGraph) -> CallGraph {
        match (self.call_graph, general) {
            (Some(own), _) => own,
            (None, CallGraph::None) if self.max_stack.is_some() => CallGraph::FramePointers,
            (None, general) => general,
        }
    }

    /// Puts the rest into an attr whose other fields are settled.
    pub(crate) fn apply(&self, attr: &mut Attr) {
        if let Some(rate) = self.rate {
            let (value, freq) = match rate {
                Rate::Period(period) => (period, false),
                Rate::Frequency(frequency) => (frequency, true),
            };
            attr.sample_period = value;
            attr.flags = attr.flags.with(AttrFlags::FREQ, freq);
            attr.sample_type = attr.sample_type.with(SampleType::PERIOD, freq);
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

fn small(term: &Term<'_>) -> Result<u16, Reason> {
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

fn call_graph(term: &Term<'_>, before: Option<CallGraph>) -> Result<CallGraph, Reason> {
    match term.value {
        Some("no") => Ok(CallGraph::None),
        Some("fp") => Ok(CallGraph::FramePointers),
        Some("dwarf") => Ok(match before {
            Some(dwarf @ CallGraph::Dwarf { .. }) => dwarf,
            _ => CallGraph::Dwarf {
                stack_size: StackSize::default(),
            },
        }),
        Some("lbr") => Ok(CallGraph::BranchRecords),
        _ => Err("`call-graph' takes fp, dwarf, lbr or no".to_owned()),
    }
}

/// Perf joins several kinds of branches with a bar, since a comma would end the term.
fn branches(term: &Term<'_>) -> Result<BranchSampleType, Reason> {
    let names = term.value.unwrap_or_default().replace('|', ",");
    branch_filter(&names).map_err(|unknown| unknown.to_string())
}
