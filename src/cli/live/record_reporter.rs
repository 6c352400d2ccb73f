//! Messages of a session: fallbacks, limits and control commands; with `-v`, details such as ring buffer sizes; and with `-vv`,
//! each attr and each call of perf_event_open(2), in perf's layout.

use std::io;

use clap::ArgMatches;
use rperf_names::counted;
use rperf_session::{ListedDetail, SessionNotice, SessionObserver};
use rperf_view::evlist::frequency_or_period;
use rperf_wire::{Attr, AttrText, attr_fields};

use super::explain::{self, MLOCK_KB};
use super::limits::setting;
use super::lower_rate::TooFrequent;
use crate::cli::context::Context;

/// The width of the separator lines around an attr.
const RULE_WIDTH: usize = 60;
/// The width of the column of an attr's field names.
const NAME_WIDTH: usize = 32;

/// Prints messages on stderr.
pub(crate) struct RecordReporter<'a> {
    context: &'a Context,
    /// The verbosity of the command, less one after [`Self::detailed_from_second_v`].
    verbosity: u8,
    /// Whether every attr and every call of perf_event_open(2) is shown: `-vv`, `--debug perf-event-open`.
    shows_perf_event_open: bool,
    /// Whether the missing hardware counter was reported; it is reported only once.
    clock_reported: bool,
    /// What the command does, in notes: `recording`, `counting`.
    doing: &'static str,
    /// Whether the missing permission was reported; it is reported only once.
    user_reported: bool,
}

impl<'a> RecordReporter<'a> {
    pub(crate) fn new(context: &'a Context, matches: &ArgMatches) -> Self {
        Self {
            context,
            verbosity: context.verbosity(matches),
            shows_perf_event_open: context.verbosity(matches) > 1
                || context.globals.shows_perf_event_open,
            doing: "recording",
            clock_reported: false,
            user_reported: false,
        }
    }

    /// Shows the details one level later, those of `-v` from `-vv` on, for commands whose `-v` shows something else. Attrs and
    /// calls are not affected: they are shown from `-vv` on.
    pub(crate) fn detailed_from_second_v(mut self) -> Self {
        self.verbosity = self.verbosity.saturating_sub(1);
        self
    }

    /// Sets what the command does, for notes; `recording` by default.
    pub(crate) fn doing(mut self, doing: &'static str) -> Self {
        self.doing = doing;
        self
    }

    /// Reports that an event is restricted to user space. `is_silent` is whether the event never fires in user space.
    fn user_only(&mut self, event: &str, paranoid: Option<i64>, is_silent: bool) {
        if !self.user_reported {
            let note = explain::user_only_note(paranoid, self.doing);
            self.context.note(format_args!("{note}, as {event}"));
        }
        self.user_reported = true;
        if is_silent {
            self.context.warn(explain::silent_in_user_space(event));
        }
    }

    fn print_attr(&self, attr: &Attr) {
        let rule = "-".repeat(RULE_WIDTH);
        self.context.note(&rule);
        self.context.note("perf_event_attr:");
        let size = u32::try_from(Attr::SIZE).unwrap_or_default();
        for (name, value) in attr_fields(attr, size) {
            self.context
                .note(format_args!("  {name:NAME_WIDTH$} {value}"));
        }
        self.context.note(&rule);
    }

    /// Reports control commands, and the messages of `-v` and `-vv`.
    fn detail(&self, notice: SessionNotice<'_>) {
        let context = self.context;
        match notice {
            SessionNotice::EventSwitched { event, on } => {
                let state = if on { "enabled" } else { "disabled" };
                context.note(format_args!("Event {event} {state}"));
            }
            SessionNotice::NoSuchEvent { event } => {
                context.note(format_args!("failed: can't find '{event}' event"));
            }
            SessionNotice::Listed {
                name,
                attr,
                listing,
            } => context.note(listed(name, attr, listing)),
            SessionNotice::UnknownCommand { command } => context.warn(format_args!(
                "unknown control command '{command}': enable, disable, evlist [-v|-g|-F], snapshot, stop, ping"
            )),
            SessionNotice::LeftOut { field } if self.verbosity > 0 => {
                context.note(format_args!("this kernel does not support {field}: not used"));
            }
            SessionNotice::LessPrecise { level } if self.verbosity > 1 => {
                context.note(format_args!("decreasing precise_ip by one ({level})"));
            }
            SessionNotice::Opening { attr } if self.shows_perf_event_open => self.print_attr(attr),
            SessionNotice::Opened {
                observed,
                flags,
                group,
                outcome,
            } if self.shows_perf_event_open => {
                let group = group.unwrap_or(-1);
                self.print_call(
                    &format!(
                        "sys_perf_event_open: pid {}  cpu {}  group_fd {group}  flags {flags:#x}",
                        observed.pid, observed.cpu
                    ),
                    outcome,
                );
            }
            SessionNotice::TraceMapped { bytes } if self.verbosity > 0 => {
                context.note(format_args!("AUX area mmap length {bytes}"));
            }
            SessionNotice::Mapped { bytes } if self.verbosity > 0 => {
                context.note(format_args!("mmap size {bytes}B"));
            }
            _ => {}
        }
    }

    /// Prints a call of perf_event_open(2) with its result.
    fn print_call(&self, call: &str, outcome: Result<i32, &io::Error>) {
        match outcome {
            Ok(fd) => self.context.note(format_args!("{call} = {fd}")),
            Err(error) => {
                self.context.note(call);
                let number = error.raw_os_error().map_or(0, |number| -number);
                let failed = format_args!("sys_perf_event_open failed, error {number}");
                self.context.note(failed);
            }
        }
    }
}

impl SessionObserver for RecordReporter<'_> {
    fn on_event(&mut self, notice: SessionNotice<'_>) {
        let context = self.context;
        match notice {
            SessionNotice::ClockInstead { event, instead } => {
                let bare = |name: &'_ str| name.split(':').next().unwrap_or_default().to_owned();
                if !self.clock_reported {
                    context.note(format_args!(
                        "this machine has no hardware counter for {}: {} {} instead",
                        bare(event),
                        self.doing,
                        bare(instead)
                    ));
                }
                self.clock_reported = true;
            }
            SessionNotice::UserOnly {
                event,
                paranoid,
                is_silent,
            } => self.user_only(event, paranoid, is_silent),
            SessionNotice::NotDeferred => context.warn(
                "deferred user callchains need Linux 6.19 or later: recording them at each sample (--call-graph fp)"
            ),
            SessionNotice::SmallerRings { requested, actual } => context.note(format_args!(
                "ring buffers have {actual} instead of {requested} pages: limited by {} or RLIMIT_MEMLOCK",
                setting(MLOCK_KB)
            )),
            SessionNotice::KernelAddressesHidden => context.warn(format_args!(
                "kernel addresses are hidden by {} and {}: kernel samples have no symbols",
                setting("kptr_restrict"),
                setting("perf_event_paranoid")
            )),
            SessionNotice::Switched { on } => {
                context.note(if on { "Events enabled" } else { "Events disabled" });
            }
            SessionNotice::SizeReached { bytes } => context.note(format_args!(
                "[ {} record: perf size limit reached ({} KB), stopping session ]",
                context.program,
                bytes >> 10
            )),
            SessionNotice::GrowingFast { bytes, samples, event, rate, is_only, copies } => {
                let event = TooFrequent { event, rate, suits_all_events: is_only };
                context.note(growing(bytes, samples, &reducing_options(bytes, event, copies)));
            }
            SessionNotice::Dumped { path } => context.note(format_args!(
                "[ {} record: Dump {} ]",
                context.program,
                path.display()
            )),
            SessionNotice::GroupBroken { leader } => context.warn(format_args!(
                "the group of {leader} needs more counters than there are: its events are sampled separately"
            )),
            SessionNotice::WorkloadStays { pid } => context.note(format_args!(
                "the recording is complete; waiting for process {pid} to exit (SIGTERM was sent): interrupt again to leave it running"
            )),
            other => self.detail(other),
        }
    }
}

/// The growth of a recording that the suggested options aim at, in bytes per minute.
const MAX_BYTES_PER_MINUTE: u64 = 1 << 30;

/// Returns the options that reduce the growth of a recording, now `bytes` per minute.
fn reducing_options(bytes: u64, event: TooFrequent<'_>, has_stack_copies: bool) -> String {
    let rate = event.option(MAX_BYTES_PER_MINUTE, bytes);
    match has_stack_copies {
        true => {
            format!("{rate}, or --unwind live, which stores callchains instead of stack copies")
        }
        false => rate,
    }
}

/// The hint that a recording will be large: it grows by `bytes` per minute and `samples` per second (0 if unknown). `lower` are
/// the options that reduce the growth.
fn growing(bytes: u64, samples: u64, lower: &str) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "one decimal of a gigabyte is shown"
    )]
    let gigabytes = bytes as f64 / f64::from(1 << 30);
    let megabytes = (bytes / 60) >> 20;
    let samples = match samples {
        0 => String::new(),
        samples => format!(" and {}", counted(samples, "sample")),
    };
    format!("hint: {megabytes} MB{samples} a second make {gigabytes:.1} GB a minute: try {lower}")
}

/// Formats one line of the answer to the control command `evlist`.
fn listed(name: &str, attr: &Attr, listing: ListedDetail) -> String {
    match listing {
        ListedDetail::Frequency => format!("{name}: {}", frequency_or_period(attr)),
        ListedDetail::Attr => {
            let size = u32::try_from(Attr::SIZE).unwrap_or_default();
            let text = AttrText {
                attr,
                size,
                key_value_separator: ": ",
            };
            format!("{name}: {text}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rperf_session::SampledRate;

    use super::*;

    #[test]
    fn the_suggested_rate_aims_at_a_gigabyte_a_minute() {
        let three = 3 << 30;
        let (with_copies, without_copies) = (true, false);
        let clock = |rate| TooFrequent {
            event: "cpu-clock",
            rate,
            suits_all_events: true,
        };
        let (often, rare) = (
            clock(SampledRate::Frequency(4000)),
            clock(SampledRate::Frequency(1)),
        );
        assert_eq!(reducing_options(three, often, without_copies), "-F 1333");
        // A period is multiplied by a whole number: one more byte than 3 GiB takes 4.
        assert_eq!(
            reducing_options(three + 1, clock(SampledRate::Period(10)), without_copies),
            "-c 40"
        );
        // A period of 0 is taken as 1.
        assert_eq!(
            reducing_options(three, clock(SampledRate::Period(0)), without_copies),
            "-c 3"
        );
        assert!(reducing_options(three, rare, with_copies).starts_with("-F 1, or --unwind live"));
        let line = "hint: 51 MB and 70 samples a second make 3.0 GB a minute: try -F 9";
        assert_eq!(growing(three, 70, "-F 9"), line);
        assert!(growing(three, 0, "x").starts_with("hint: 51 MB a second make"));
    }
}
