//! What is said while events are opened: what it decided otherwise than asked, and with `-v` and `-vv`
//! each attr and each call, in perf's layout.

use std::io;

use clap::ArgMatches;
use rperf_session::{Happened, Listing, Sampled, Watch};
use rperf_view::evlist::frequency;
use rperf_wire::{Attr, AttrText, attr_fields};

use super::explain;
use crate::cli::context::Context;

/// Width of the rule around an attr, and of the column of its names.
const RULE: usize = 60;
const NAMES: usize = 32;

/// Says things on stderr.
pub(crate) struct Said<'a> {
    context: &'a Context,
    verbosity: u8,
    /// The missing counter is named once.
    clock_said: bool,
    /// So is what the user may not see.
    user_said: bool,
}

impl<'a> Said<'a> {
    pub(crate) fn new(context: &'a Context, matches: &ArgMatches) -> Self {
        Self {
            context,
            verbosity: context.verbosity(matches),
            clock_said: false,
            user_said: false,
        }
    }

    fn attr(&self, attr: &Attr) {
        let rule = "-".repeat(RULE);
        self.context.note(&rule);
        self.context.note("perf_event_attr:");
        let size = u32::try_from(Attr::SIZE).unwrap_or_default();
        for (name, value) in attr_fields(attr, size) {
            self.context.note(format_args!("  {name:NAMES$} {value}"));
        }
        self.context.note(&rule);
    }

    /// What orders brought, and what is said with `-v` and `-vv` alone.
    fn detail(&self, happened: Happened<'_>) {
        let context = self.context;
        match happened {
            Happened::EventSwitched { event, on } => {
                let state = if on { "enabled" } else { "disabled" };
                context.note(format_args!("Event {event} {state}"));
            }
            Happened::NoSuchEvent { event } => {
                context.note(format_args!("failed: can't find '{event}' event"));
            }
            Happened::Listed {
                name,
                attr,
                listing,
            } => context.note(listed(name, attr, listing)),
            Happened::NotUnderstood { order } => context.warn(format_args!(
                "'{order}' is no order: enable, disable, evlist [-v|-g|-F], snapshot, stop, ping"
            )),
            Happened::LeftOut { field } if self.verbosity > 0 => {
                context.note(format_args!("this kernel does not know {field}: left out"));
            }
            Happened::LessPrecise { level } if self.verbosity > 1 => {
                context.note(format_args!("decreasing precise_ip by one ({level})"));
            }
            Happened::Opening { attr } if self.verbosity > 1 => self.attr(attr),
            Happened::Opened {
                observed,
                flags,
                group,
                outcome,
            } if self.verbosity > 1 => {
                let group = group.unwrap_or(-1);
                self.call(
                    &format!(
                        "sys_perf_event_open: pid {}  cpu {}  group_fd {group}  flags {flags:#x}",
                        observed.pid, observed.cpu
                    ),
                    outcome,
                );
            }
            Happened::TraceMapped { bytes } if self.verbosity > 0 => {
                context.note(format_args!("AUX area mmap length {bytes}"));
            }
            Happened::Mapped { bytes } if self.verbosity > 0 => {
                context.note(format_args!("mmap size {bytes}B"));
            }
            _ => {}
        }
    }

    /// A call that opens an event.
    fn call(&self, call: &str, outcome: Result<i32, &io::Error>) {
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

impl Watch for Said<'_> {
    fn tell(&mut self, happened: Happened<'_>) {
        let context = self.context;
        match happened {
            Happened::ClockInstead { event, instead } => {
                let bare = |name: &'_ str| name.split(':').next().unwrap_or_default().to_owned();
                if !self.clock_said {
                    context.note(format_args!(
                        "no hardware counter for {} here: recording {} instead",
                        bare(event),
                        bare(instead)
                    ));
                }
                self.clock_said = true;
            }
            Happened::UserOnly { event, paranoid } => {
                if !self.user_said {
                    let note = explain::user_only_note(paranoid);
                    context.note(format_args!("{note}, as {event}"));
                }
                self.user_said = true;
            }
            Happened::NotDeferred => context.warn(
                "this kernel cannot put off user callchains, as Linux 6.19 and later can: they are taken at each sample, as by --call-graph fp"
            ),
            Happened::SmallerRings { asked, had } => context.note(format_args!(
                "rings have {had} instead of {asked} pages: /proc/sys/kernel/perf_event_mlock_kb or RLIMIT_MEMLOCK allows no more"
            )),
            Happened::KernelAddressesHidden => {
                context.warn("kernel addresses are hidden (/proc/sys/kernel/kptr_restrict): kernel samples have no names");
            }
            Happened::Switched { on } => {
                context.note(if on { "Events enabled" } else { "Events disabled" });
            }
            Happened::SizeReached { bytes } => context.note(format_args!(
                "[ {} record: perf size limit reached ({} KB), stopping session ]",
                context.program,
                bytes >> 10
            )),
            Happened::Growing { bytes, samples, rate, copies } => {
                context.note(growing(bytes, samples, &lower(bytes, rate, copies)));
            }
            Happened::Dumped { path } => context.note(format_args!(
                "[ {} record: Dump {} ]",
                context.program,
                path.display()
            )),
            Happened::GroupBroken { leader } => context.warn(format_args!(
                "the group of {leader} does not fit on the counters: its events are sampled one by one"
            )),
            Happened::WorkloadStays { pid } => context.note(format_args!(
                "the recording is complete; process {pid} was told to end (SIGTERM) and is waited for: another signal leaves it alone"
            )),
            other => self.detail(other),
        }
    }
}

/// Bytes a minute that a recording may take without a word.
const LITTLE: u64 = 1 << 30;

/// What makes a recording grow less that grows by so many bytes a minute.
fn lower(bytes: u64, rate: Sampled, copies: bool) -> String {
    let (little, bytes) = (u128::from(LITTLE), u128::from(bytes));
    let rate = match rate {
        Sampled::Frequency(rate) => {
            format!("-F {}", (u128::from(rate) * little / bytes.max(1)).max(1))
        }
        Sampled::Period(period) => {
            format!("-c {}", u128::from(period.max(1)) * bytes.div_ceil(little))
        }
    };
    match copies {
        true => format!("{rate}, or --unwind live, which writes callchains in place of stacks"),
        false => rate,
    }
}

/// The line about a recording that will be large.
fn growing(bytes: u64, samples: u64, lower: &str) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "one decimal of a gigabyte is shown"
    )]
    let gigabytes = bytes as f64 / f64::from(1 << 30);
    let megabytes = (bytes / 60) >> 20;
    let samples = match samples {
        0 => String::new(),
        samples => format!(" and {samples} samples"),
    };
    format!("hint: {megabytes} MB{samples} a second make {gigabytes:.1} GB a minute: try {lower}")
}

/// One line of the list of events, as `evlist` has it.
fn listed(name: &str, attr: &Attr, listing: Listing) -> String {
    match listing {
        Listing::Frequency => format!("{name}: {}", frequency(attr)),
        Listing::Attr => {
            let size = u32::try_from(Attr::SIZE).unwrap_or_default();
            let separator = ": ";
            let text = AttrText {
                attr,
                size,
                separator,
            };
            format!("{name}: {text}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_takes_a_gigabyte_a_minute() {
        let three = 3 << 30;
        assert_eq!(lower(three, Sampled::Frequency(4000), false), "-F 1333");
        assert_eq!(lower(three + 1, Sampled::Period(10), false), "-c 40");
        assert_eq!(lower(three, Sampled::Period(0), false), "-c 3");
        assert!(lower(three, Sampled::Frequency(1), true).starts_with("-F 1, or --unwind live"));
        let line = "hint: 51 MB and 70 samples a second make 3.0 GB a minute: try -F 9";
        assert_eq!(growing(three, 70, "-F 9"), line);
        assert!(growing(three, 0, "x").starts_with("hint: 51 MB a second make"));
    }
}
