//! `bench internals evlist-open-close`: opening and closing events.

use clap::{Arg, ArgMatches, Command};
use rperf_bench::Value;
use rperf_events::EventSpec;
use rperf_sys::{Counter, CpuList, ObservedTask, Proc, allowed_cpus};
use rperf_wire::{Attr, AttrFlags, EventType};

use super::{system, times};
use crate::cli::commands::bench::args::{BenchOptions, lettered_switch, numeric};
use crate::cli::commands::bench::runner::{RunOutput, Runner, not_applicable};
use crate::cli::error::CliError;
use crate::cli::live::explain::NO_TARGET_STATUS;
use crate::cli::live::{events, user};
use crate::cli::options::{is_given, list, number, switch, value};
use crate::cli::pmus::machine_pmus;
use crate::cli::tracefs::MachineTracepoints;
use crate::cli::vendor::report_problems;

/// The options that select tasks, of which at most one can be given.
const TARGETS: [&str; 4] = ["all-cpus", "pid", "tid", "uid"];

/// Each event is opened as a group of its own.
const NO_LEADER: Option<&Counter> = None;

pub(super) fn command() -> Command {
    // An option with an id as its value. In the help, the value has the name of the option: `--pid <pid>`.
    let id = |name: &'static str, letter: char| -> Arg {
        value(name, name).short(letter).value_parser(number)
    };
    // The name of the collection, as for its other benchmarks.
    Command::new("internals")
        .arg(lettered_switch(
            "all-cpus",
            'a',
            "open the events for all tasks on each CPU",
        ))
        .arg(
            value("cpu", "list")
                .short('C')
                .help("open the events on these CPUs (default: those that this process may use)"),
        )
        .arg(
            list("event", "event")
                .short('e')
                .help("events to open (default: dummy events)"),
        )
        .arg(numeric("iterations", 'i', "repetitions (default: 100)"))
        .arg(numeric(
            "nr-events",
            'n',
            "number of dummy events, or of copies of each event of -e (default: 1)",
        ))
        .arg(id("pid", 'p').help("open the events for the threads of this process"))
        .arg(id("tid", 't').help("open the events for this thread"))
        .arg(
            value("uid", "user")
                .short('u')
                .help("open the events for the threads of this user"),
        )
        .arg(switch("per-thread").help("open one event for any CPU, not one for each CPU"))
}

pub(super) fn run(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let iterations = options.positive("iterations", 100)?;
    let copies = options.positive_count("nr-events", 1)?;
    let EventsToOpen { attrs, specs } = EventsToOpen::new(matches, runner)?;
    let cpus = observed_cpus(options)?;
    let tasks = observed_tasks(options)?;
    // perf_event_open(2) refuses to open an event for all tasks on any CPU.
    if tasks == [-1] && cpus == [-1] {
        let message = "--all-cpus and --per-thread exclude each other";
        return Err(CliError::usage(message));
    }
    let events = attrs.len() * copies as usize;
    runner.print_unless_json(&format!(
        "  Number of cpus:\t{}\n  Number of threads:\t{}\n  Number of events:\t{events} ({} fds)\n  Number of iterations:\t{iterations}\n",
        cpus.len(),
        tasks.len(),
        cpus.len() * tasks.len() * events
    ))?;
    let open_and_close = || {
        let mut opened = Vec::new();
        for attr in attrs
            .iter()
            .flat_map(|attr| std::iter::repeat_n(attr, copies as usize))
        {
            for cpu in &cpus {
                for pid in &tasks {
                    let observed = ObservedTask {
                        pid: *pid,
                        cpu: *cpu,
                    };
                    match Counter::open(attr, observed, NO_LEADER) {
                        Ok(counter) => opened.push(counter),
                        // The task exited after the list of tasks was read.
                        Err(error) if *pid > 0 && error.raw_os_error() == Some(libc::ESRCH) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        drop(opened);
        Ok(())
    };
    let measured = runner.measure(
        || times(iterations, open_and_close).map_err(system("perf_event_open")),
        |taken| RunOutput {
            text: format!(
                "  Average open-close took: {:.3} usec (+- {:.3} usec)\n",
                taken.mean(),
                taken.standard_error()
            ),
            // `-f simple` prints the text, too.
            simple: None,
            values: vec![Value::lower_is_better("usec", taken.mean())],
        },
    );
    drop(specs); // Until here, `attrs` may point to paths in them.
    measured
}

/// The events to open, all disabled: they never count.
struct EventsToOpen {
    attrs: Vec<Attr>,
    /// The events of `-e`. They must live as long as `attrs`, because attrs of uprobes point to paths in them.
    specs: Vec<EventSpec>,
}

impl EventsToOpen {
    fn new(matches: &ArgMatches, runner: &Runner<'_>) -> Result<Self, CliError> {
        let disabled = |attr: &Attr| Attr {
            flags: attr.flags | AttrFlags::DISABLED,
            ..attr.clone()
        };
        if !matches.contains_id("event") {
            let dummy = Attr {
                kind: EventType::SOFTWARE,
                config: Attr::DUMMY,
                ..Attr::default()
            };
            return Ok(Self {
                attrs: vec![disabled(&dummy)],
                specs: Vec::new(),
            });
        }
        let context = runner.context();
        let pmus = machine_pmus(context);
        let tracepoints = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
        let specs = events::listed(matches, "event", &pmus.catalogue(&tracepoints))?;
        report_problems(&pmus.tables, context);
        // Tool events are counted by rperf itself (`duration_time`), so there is nothing to open.
        if let Some(tool) = specs.iter().find(|spec| spec.tool.is_some()) {
            let message = format!("{}: not an event of the kernel", tool.name);
            return Err(not_applicable(message));
        }
        Ok(Self {
            attrs: specs.iter().map(|spec| disabled(&spec.attr)).collect(),
            specs,
        })
    }
}

/// Returns the CPUs that events are opened on; -1 is any CPU.
fn observed_cpus(options: BenchOptions<'_>) -> Result<Vec<i32>, CliError> {
    let list = options.word("cpu");
    if options.is_on("per-thread") {
        return match list {
            None => Ok(vec![-1]),
            Some(_) => {
                let message = "--cpu and --per-thread exclude each other";
                Err(CliError::usage(message))
            }
        };
    }
    let cpus = match list {
        Some(list) => {
            CpuList::parse(list).map_err(|error| CliError::usage(format!("-C: {error}")))?
        }
        None => allowed_cpus()?,
    };
    Ok(cpus.numbers().iter().map(|cpu| cpu.cast_signed()).collect())
}

/// Returns the ids of the threads that events are opened for: -1 is all threads, 0 the calling one.
fn observed_tasks(options: BenchOptions<'_>) -> Result<Vec<i32>, CliError> {
    let targets = TARGETS.into_iter();
    let given: Vec<&str> = targets.filter(|id| is_given(options.0, id)).collect();
    if let [first, second, ..] = given[..] {
        return Err(CliError::usage(format!(
            "--{first} and --{second} exclude each other"
        )));
    }
    let proc = Proc::new("/proc");
    if options.is_on("all-cpus") {
        return Ok(vec![-1]);
    }
    let (tids, target) = if let Some(pid) = options.number("pid") {
        let threads = valid_id(pid).and_then(|pid| proc.threads(pid).ok());
        (threads.unwrap_or_default(), format!("process {pid}"))
    } else if let Some(tid) = options.number("tid") {
        let thread = valid_id(tid).filter(|tid| proc.process_of(*tid).is_ok());
        (thread.into_iter().collect(), format!("thread {tid}"))
    } else if let Some(name) = options.word("uid") {
        let user = user::user(name)?;
        let processes = proc.processes()?.into_iter();
        let owned = processes.filter(|pid| proc.owner(*pid).is_ok_and(|owner| owner == user));
        // Processes that have exited since they were listed have no threads.
        let threads = owned.flat_map(|pid| proc.threads(pid).unwrap_or_default());
        (threads.collect(), format!("process of user {name}"))
    } else {
        return Ok(vec![0]);
    };
    if tids.is_empty() {
        return Err(CliError::message(NO_TARGET_STATUS, format!("no {target}")));
    }
    Ok(tids.into_iter().map(u32::cast_signed).collect())
}

/// Returns the id of a process or thread; `None` if it is too large to be one.
fn valid_id(id: u64) -> Option<u32> {
    u32::try_from(id).ok()
}
