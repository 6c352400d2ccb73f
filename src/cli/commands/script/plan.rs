//! How the samples of each event are written: decided once for a recording, or whenever a stream tells of more events.

use std::path::Path;

use rperf_lines::{Error, EventSwitch, Field, Fields, Metrics, Payloads, Selection};
use rperf_perfdata::{Described, EventDesc};
use rperf_resolve::{Filter, StackOptions};
use rperf_view::script::{self, Architecture, Layout, Style, TimeOfDay};
use rperf_wire::{Attr, AttrFlags, Endian, EventType, RecordKind, SampleType};

use super::object;
use super::settings::Settings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::payloads::payloads;
use crate::cli::stacks::{has_copies, stack_options};
use crate::cli::symbols::shows_inlines;

/// `PERF_COUNT_SW_PAGE_FAULTS`, `_MIN`, `_MAJ`: events whose data address has a symbol of its own.
const PAGE_FAULTS: [u64; 3] = [2, 5, 6];
/// `PERF_COUNT_SW_BPF_OUTPUT`.
const BPF_OUTPUT: u64 = 10;

/// How one event's samples are written.
pub(super) struct Event {
    pub(super) name: String,
    pub(super) layout: Layout,
    /// Which texts that were rendered before fit: events with equal fields share them.
    pub(super) known: usize,
    pub(super) names_data: bool,
    /// Whether a sample is one branch, and where it led to is shown behind its address.
    pub(super) shows_target: bool,
    /// Whether inlined functions are frames of its callchains.
    pub(super) inlines: bool,
    /// Whether weights consist of parts.
    pub(super) weight_parts: bool,
    /// Whether its raw data are what a BPF program put out.
    pub(super) outputs: bool,
}

impl Event {
    fn shows_callers(&self) -> bool {
        self.layout.is_stacked() && self.layout.fields().has(Field::Ip)
    }
}

/// How the samples of a recording are written.
pub(super) struct Plan {
    /// In the order of the recording.
    pub(super) events: Vec<Event>,
    pub(super) payloads: Payloads,
    pub(super) endian: Endian,
    pub(super) filter: Filter,
    /// Frames of a callchain that are shown.
    pub(super) max_stack: usize,
    /// How user stacks are unwound. Their chains are cut there already, so that [`Self::max_stack`] is no limit then.
    pub(super) stacks: StackOptions,
    /// Functions whose callers are left out.
    pub(super) stop: Vec<String>,
    /// Modules by the path of their file.
    pub(super) kernel_paths: bool,
    /// Whether samples are written as JSON objects.
    pub(super) objects: bool,
    /// Records that are shown beside samples.
    pub(super) records: Vec<RecordKind>,
    /// Stretches between branches that are shown.
    pub(super) max_blocks: Option<usize>,
    /// Which samples other samples switch on and off.
    pub(super) switch: EventSwitch,
    /// Whether what the samples of events show must be told apart.
    pub(super) parts: bool,
    /// What groups of counters say together, if that is shown.
    pub(super) metrics: Metrics,
}

impl Plan {
    /// Checks the fields that are asked for against what the events record, compiles the formats of tracepoints, and says
    /// which of those can't be shown.
    pub(super) fn new(
        context: &Context,
        path: &Path,
        recording: Described<'_>,
        settings: &Settings,
    ) -> Result<Self, CliError> {
        let mut selection = settings.selection.clone();
        if !settings.callchains {
            selection.hide_callchains();
        }
        let filter = settings.filter(recording)?;
        let events = recording.events.iter();
        // Beside single branches, which only traces have, there are events without samples: nothing is to be missed there.
        let traced = recording
            .events
            .iter()
            .any(|event| is_single_branch(&event.attr));
        let events = events.filter(|event| !traced || !has_no_samples(&event.attr));
        let events = events.map(|event| (&event.attr, event.name.as_str()));
        let checked = match recording.is_pipe {
            true => selection.check_stream(events),
            false => selection.check(events),
        };
        checked.map_err(super::refused)?;
        let mut events = recording.events.iter();
        let payloads = match events.any(|event| selection.fields(&event.attr).has(Field::Trace)) {
            true => payloads(context, path, recording)?,
            false => Payloads::default(),
        };
        let shows_metrics = |event: &EventDesc| selection.fields(&event.attr).has(Field::Metric);
        let metrics = match recording.events.iter().any(shows_metrics) {
            true => Metrics::new(recording),
            false => Metrics::default(),
        };
        let switch = settings.switch(recording)?;
        let events = layouts(recording, &selection, settings)?;
        let are_shown = events.iter().any(Event::shows_callers);
        let unwound = (are_shown && has_copies(recording.events)).then_some(settings.max_stack);
        Ok(Self {
            events,
            payloads,
            endian: recording.endian,
            filter,
            max_stack: unwound.map_or(settings.max_stack, |_| usize::MAX),
            stacks: stack_options(recording, unwound),
            stop: settings.stop.clone(),
            kernel_paths: settings.kernel_paths,
            objects: settings.objects,
            records: settings.records.clone(),
            max_blocks: settings.max_blocks,
            parts: settings.per_event || switch.is_needed(),
            switch,
            metrics,
        })
    }
}

fn layouts(
    recording: Described<'_>,
    selection: &Selection,
    settings: &Settings,
) -> Result<Vec<Event>, CliError> {
    let style = style(recording, settings);
    let mut kinds: Vec<(Fields, bool)> = Vec::new();
    let events = recording.events.iter().map(|event| {
        let attr = &event.attr;
        let mut fields = selection.fields(attr);
        let shows_target = is_single_branch(attr) && selection.shows_targets(attr);
        // Its place in the line is another.
        fields.set(
            Field::Addr,
            fields.has(Field::Addr) && (!shows_target || settings.objects),
        );
        if fields.has(Field::Tod) && style.time_of_day.is_none() {
            return Err(super::refused(Error::NoTimeOfDay));
        }
        let inlines = shows_inlines(attr, settings.inlines);
        let same = kinds.iter().position(|kind| *kind == (fields, inlines));
        let known = same.unwrap_or_else(|| {
            kinds.push((fields, inlines));
            kinds.len() - 1
        });
        let weight_parts = attr.sample_type.contains(SampleType::WEIGHT_STRUCT);
        let outputs = attr.kind == EventType::SOFTWARE && attr.config == BPF_OUTPUT;
        let shown = script::Event {
            name: &event.name,
            fields,
            stacked: attr.sample_type.contains(SampleType::CALLCHAIN) && settings.callchains,
            weight_parts,
            bpf_output: outputs,
        };
        if settings.objects {
            object::check(fields)?;
        }
        Ok(Event {
            name: event.name.clone(),
            weight_parts,
            outputs: outputs && fields.has(Field::BpfOutput),
            layout: Layout::new(&shown, style),
            known,
            names_data: names_data(attr),
            shows_target,
            inlines,
        })
    });
    events.collect()
}

fn style(recording: Described<'_>, settings: &Settings) -> Style {
    let longest = recording.events.iter().map(|event| event.name.len()).max();
    let clock = recording.features.clock_data();
    let arch = recording.features.arch();
    Style {
        name_columns: longest.unwrap_or_default(),
        full_paths: settings.full_source_paths,
        brief: settings.brief,
        nanoseconds: settings.nanoseconds,
        clock: settings.clock,
        time_of_day: clock.map(|clock| TimeOfDay {
            wall: clock.wall_clock,
            clock: clock.clockid_time,
            zone: rperf_sys::utc_offset,
        }),
        architecture: Architecture::from_machine(arch.as_deref().unwrap_or(std::env::consts::ARCH)),
    }
}

/// Whether each sample of the event is one branch, and its address where that led to.
fn is_single_branch(attr: &Attr) -> bool {
    attr.kind == EventType::HARDWARE
        && attr.config == Attr::BRANCHES
        && attr.sample_period == 1
        && !attr.flags.contains(AttrFlags::FREQ)
        && attr.sample_type.contains(SampleType::ADDR)
}

/// Whether it is the event of a trace, which a unit of its own writes, or one that carries the side-band alone.
fn has_no_samples(attr: &Attr) -> bool {
    attr.kind.0 > EventType::BREAKPOINT.0 || attr.is_dummy()
}

/// Whether the data address of a sample is one that perf names: that of a page fault.
fn names_data(attr: &Attr) -> bool {
    attr.kind == EventType::SOFTWARE && PAGE_FAULTS.contains(&attr.config)
}
