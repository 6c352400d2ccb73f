//! The format of each event's samples.

use std::path::Path;

use rperf_lines::{
    Error, EventSwitch, FieldSelection, GroupMetrics, LineField, LineFields, TracepointPrinter,
};
use rperf_perfdata::{EventDesc, Metadata};
use rperf_resolve::{SampleCriteria, StackOptions};
use rperf_view::script::{self, Architecture, ScriptLayout, ScriptStyle, TimeOfDay};
use rperf_wire::{Attr, AttrFlags, Endian, EventType, RecordKind, SampleType};

use super::counts::are_counted;
use super::object;
use super::rows::RowLayout;
use super::settings::ScriptSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::payloads::tracepoint_printer;
use crate::cli::stack_folding::{can_complete_callchains, stack_options};
use crate::cli::symbols::shows_inlines;

/// `PERF_COUNT_SW_PAGE_FAULTS`, `_MIN`, `_MAJ`: events whose data address is symbolized.
const PAGE_FAULTS: [u64; 3] = [2, 5, 6];
/// `PERF_COUNT_SW_BPF_OUTPUT`.
const BPF_OUTPUT: u64 = 10;

/// The format of one event's samples.
pub(super) struct EventPlan {
    pub(super) name: String,
    pub(super) layout: ScriptLayout,
    /// The index of the event's cache of rendered text; events with equal fields and equal [`Self::inlines`] share a cache.
    pub(super) cache_index: usize,
    /// Whether the data address is symbolized.
    pub(super) symbolizes_data: bool,
    /// Whether a sample is a single branch, whose target is shown after its address.
    pub(super) shows_branch_target: bool,
    /// Whether samples are branches of a decoded trace, and the kind of each branch is shown.
    pub(super) shows_branch_kind: bool,
    /// Whether callchains include inlined functions.
    pub(super) inlines: bool,
    /// Whether weights have several parts (`PERF_SAMPLE_WEIGHT_STRUCT`).
    pub(super) weight_parts: bool,
    /// Whether the output of a BPF program in the event's raw data is shown.
    pub(super) shows_bpf_output: bool,
}

impl EventPlan {
    pub(super) fn shows_callers(&self) -> bool {
        self.layout.has_frame_lines() && self.layout.fields().has(LineField::Ip)
    }
}

/// The format of a recording's samples.
pub(super) struct ScriptPlan {
    /// In the order of the recording.
    pub(super) events: Vec<EventPlan>,
    pub(super) payloads: TracepointPrinter,
    pub(super) endian: Endian,
    pub(super) filter: SampleCriteria,
    /// Maximum number of frames of a callchain. `usize::MAX` if stacks are unwound: the limit is then in [`Self::stacks`].
    pub(super) max_stack: usize,
    /// The options for unwinding user stacks.
    pub(super) stacks: StackOptions,
    /// Functions whose callers are omitted.
    pub(super) stop_functions: Vec<String>,
    /// Whether kernel modules are shown by path.
    pub(super) kernel_paths: bool,
    /// Whether samples are written as JSON objects, or as rows made from such objects (`--csv`, `--template`).
    pub(super) is_structured: bool,
    /// The layout of rows, if samples are written as rows.
    pub(super) rows: Option<RowLayout>,
    /// Records that are printed among the samples.
    pub(super) records: Vec<RecordKind>,
    /// Maximum number of basic blocks shown per sample; `None` and 0 for no limit.
    pub(super) max_blocks: Option<usize>,
    /// Samples that enable and disable the output of others.
    pub(super) switch: EventSwitch,
    /// Whether the output keeps the texts of samples and of other records apart, so that the text of a sample can be dropped, or
    /// written to the file of its event.
    pub(super) separates_samples: bool,
    /// Metrics of counter groups, if shown.
    pub(super) metrics: GroupMetrics,
}

/// Large fields of samples, each with the fields of lines that need it.
const LARGE_FIELDS: [(SampleType, &[LineField]); 6] = [
    (SampleType::CALLCHAIN, &[LineField::Ip]),
    (SampleType::REGS_USER, &[LineField::Ip, LineField::Uregs]),
    (SampleType::STACK_USER, &[LineField::Ip]),
    (SampleType::REGS_INTR, &[LineField::Iregs]),
    (
        SampleType::RAW,
        &[
            LineField::Trace,
            LineField::BpfOutput,
            LineField::Synth,
            LineField::Flags,
            LineField::Ipc,
        ],
    ),
    (
        SampleType::BRANCH_STACK,
        &[
            LineField::Ip,
            LineField::Brstack,
            LineField::Brstacksym,
            LineField::Brstackoff,
            LineField::Brstackinsn,
            LineField::Brstackinsnlen,
            LineField::Brstackdisasm,
            LineField::Flags,
            LineField::Ipc,
        ],
    ),
];

impl ScriptPlan {
    /// Returns the fields of samples to read: all for objects and rows, otherwise large fields only if an event shows
    /// them.
    pub(super) fn sample_fields(&self) -> SampleType {
        if self.is_structured {
            return SampleType::ALL;
        }
        let is_shown = |field: &LineField| {
            let mut events = self.events.iter();
            events.any(|event| event.layout.fields().has(*field))
        };
        let large = LARGE_FIELDS.iter();
        let unread = large.filter(|(_, line_fields)| !line_fields.iter().any(is_shown));
        let is_read = false;
        unread.fold(SampleType::ALL, |read, (field, _)| {
            read.with(*field, is_read)
        })
    }

    /// Checks the requested fields against the fields that the events record, compiles the formats of tracepoints, and reports
    /// formats that can't be shown.
    pub(super) fn new(
        context: &Context,
        path: &Path,
        recording: Metadata<'_>,
        settings: &ScriptSettings,
    ) -> Result<Self, CliError> {
        let recording = sampled(recording);
        let mut selection = settings.selection.clone();
        if !settings.callchains {
            selection.hide_callchains();
        }
        let filter = settings.filter(recording)?;
        check_fields(recording, &mut selection)?;
        let mut events = recording.events.iter();
        let payloads = match events.any(|event| selection.fields(&event.attr).has(LineField::Trace))
        {
            true => tracepoint_printer(context, path, recording)?,
            false => TracepointPrinter::default(),
        };
        let shows_metrics =
            |event: &EventDesc| selection.fields(&event.attr).has(LineField::Metric);
        let metrics = match recording.events.iter().any(shows_metrics) {
            true => GroupMetrics::new(recording),
            false => GroupMetrics::default(),
        };
        let switch = settings.switch(recording)?;
        let events = event_plans(recording, &selection, settings)?;
        let rows = settings.rows.as_ref().map(|rows| rows.for_events(&events));
        let shows_callers = events.iter().any(EventPlan::shows_callers);
        let unwind_limit = (shows_callers && can_complete_callchains(recording.events))
            .then_some(settings.max_stack);
        Ok(Self {
            events,
            payloads,
            endian: recording.endian,
            filter,
            max_stack: unwind_limit.map_or(settings.max_stack, |_| usize::MAX),
            stacks: stack_options(recording, unwind_limit),
            stop_functions: settings.stop_functions.clone(),
            kernel_paths: settings.kernel_paths,
            is_structured: settings.is_structured,
            rows,
            records: settings.records.clone(),
            max_blocks: settings.max_blocks,
            separates_samples: settings.per_event_dump || switch.is_needed(),
            switch,
            metrics,
        })
    }
}

impl ScriptPlan {
    /// Shows the kinds of branches, if requested. Only for a recording with a decoded trace: its last event is that of the
    /// decoded branches.
    pub(super) fn show_branch_kinds(&mut self) {
        if let Some(event) = self.events.last_mut() {
            event.shows_branch_kind = event.layout.fields().has(LineField::Flags);
        }
    }
}

/// Fits the selection to the recorded fields: refuses a missing field if a `-F` for all event classes names it, and removes other
/// missing fields.
fn check_fields(recording: Metadata<'_>, selection: &mut FieldSelection) -> Result<(), CliError> {
    let events = recording.events.iter();
    // Single branches come from a decoded trace. Some events of such a recording have no samples; a field that these events do
    // not record is not an error.
    let traced = recording
        .events
        .iter()
        .any(|event| is_single_branch(&event.attr));
    let events = events.filter(|event| !traced || !has_no_samples(&event.attr));
    let events = events.map(|event| (&event.attr, event.name.as_str()));
    let checked = match recording.is_pipe {
        true => selection.fit_to_stream(events),
        false => selection.fit_to_events(events),
    };
    checked.map_err(super::field_error)
}

/// Returns the recording, without its events if all of them are only counted: they have no samples in which a field could be
/// missing.
fn sampled(recording: Metadata<'_>) -> Metadata<'_> {
    match are_counted(recording.events) {
        true => Metadata {
            events: &[],
            ..recording
        },
        false => recording,
    }
}

fn event_plans(
    recording: Metadata<'_>,
    selection: &FieldSelection,
    settings: &ScriptSettings,
) -> Result<Vec<EventPlan>, CliError> {
    let style = style(recording, settings);
    let mut cache_keys: Vec<(LineFields, bool)> = Vec::new();
    let events = recording.events.iter().map(|event| {
        let attr = &event.attr;
        let mut fields = selection.fields(attr);
        let shows_branch_target = is_single_branch(attr) && selection.shows_targets(attr);
        // In text, the target of a branch is printed at another position of the line. Objects and rows keep it as `addr`.
        fields.set(
            LineField::Addr,
            fields.has(LineField::Addr) && (!shows_branch_target || settings.is_structured),
        );
        if fields.has(LineField::Tod) && style.time_of_day.is_none() {
            return Err(super::field_error(Error::NoTimeOfDay));
        }
        let inlines = shows_inlines(attr, settings.inlines);
        let shared = cache_keys.iter().position(|key| *key == (fields, inlines));
        let cache_index = shared.unwrap_or_else(|| {
            cache_keys.push((fields, inlines));
            cache_keys.len() - 1
        });
        let weight_parts = attr.sample_type.contains(SampleType::WEIGHT_STRUCT);
        let is_bpf_output = attr.kind == EventType::SOFTWARE && attr.config == BPF_OUTPUT;
        let script_event = script::ScriptEvent {
            name: &event.name,
            fields,
            shows_callchains: attr.sample_type.contains(SampleType::CALLCHAIN)
                && settings.callchains,
            weight_parts,
            bpf_output: is_bpf_output,
        };
        if settings.is_structured {
            object::check(fields, settings.format_option())?;
        }
        Ok(EventPlan {
            name: event.name.clone(),
            weight_parts,
            shows_bpf_output: is_bpf_output && fields.has(LineField::BpfOutput),
            layout: ScriptLayout::new(&script_event, style),
            cache_index,
            symbolizes_data: symbolizes_data(attr),
            shows_branch_target,
            // Set by [`ScriptPlan::show_branch_kinds`] for the branches of a decoded trace.
            shows_branch_kind: false,
            inlines,
        })
    });
    events.collect()
}

fn style(recording: Metadata<'_>, settings: &ScriptSettings) -> ScriptStyle {
    let longest = recording.events.iter().map(|event| event.name.len()).max();
    let clock = recording.features.clock_data();
    let arch = recording.features.arch();
    ScriptStyle {
        event_name_width: longest.unwrap_or_default(),
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

/// Whether each sample of the event is a single branch, with the target as address.
fn is_single_branch(attr: &Attr) -> bool {
    attr.kind == EventType::HARDWARE
        && attr.config == Attr::BRANCHES
        && attr.sample_period == 1
        && !attr.flags.contains(AttrFlags::FREQ)
        && attr.sample_type.contains(SampleType::ADDR)
}

/// Whether an event of a recording with a decoded trace is assumed to have no samples: one of a dynamic PMU (a type above
/// `PERF_TYPE_BREAKPOINT`), or a dummy event.
fn has_no_samples(attr: &Attr) -> bool {
    attr.kind.0 > EventType::BREAKPOINT.0 || attr.is_dummy()
}

/// Whether the data address of the event's samples is symbolized: for page faults, as in perf. For targets of branches see
/// [`EventPlan::shows_branch_target`].
fn symbolizes_data(attr: &Attr) -> bool {
    attr.kind == EventType::SOFTWARE && PAGE_FAULTS.contains(&attr.config)
}
