//! `rperf list`: what `-e` can name.

mod details;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use clap::{Arg, ArgMatches, Command};
use rperf_events::Catalogue;
use rperf_events::list::{Kind, Listing, Row, Sources, Wanted};
use rperf_session::{Cache, Cached};
use rperf_symbol::{Files as _, build_id_of_elf};
use rperf_sys::{Counter, Observed};
use rperf_view::list::{Told, write_json, write_names, write_text};
use rperf_wire::{Attr, AttrFlags};

use self::details::Details;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::files::DiskFiles;
use crate::cli::options::{flag, not_yet, switch, value};
use crate::cli::pmus::MachinePmus;
use crate::cli::product::write_to;
use crate::cli::tracefs::MachineTracepoints;

const ABOUT: &str = "\
Lists the events that -e takes, one in a line with its kind in brackets, as this machine has them: hardware, software and \
cache events that the kernel opens, those that PMUs name, tracepoints, and the probes that programs in the build-id cache \
bring along. A word chooses a kind: hw, sw, cache, pmu, tracepoint, sdt; or a tracepoint by its name, with patterns \
('sched:*', 'sch*:*wake*'); or whatever has it in its name. -v tells a tracepoint's fields with their types, how the kernel \
prints it, and a filter to begin with.";

/// Kinds of metrics, for which there are no tables.
const METRICS: [&str; 4] = ["metric", "metrics", "metricgroup", "metricgroups"];

/// The options.
pub(super) fn command() -> Command {
    Command::new("list")
        .long_about(ABOUT)
        .arg(
            switch("desc")
                .short('d')
                .help("tell below each event what is known of it (the default); --no-desc leaves out what -v and --details tell"),
        )
        .arg(
            switch("long-desc")
                .short('v')
                .help("tell type and number of each event, and the fields of tracepoints"),
        )
        .arg(not_yet("cputype", ""))
        .arg(not_yet("debug", ""))
        .arg(not_yet("deprecated", ""))
        .arg(switch("details").help("tell type, number and terms of each event"))
        .arg(
            switch("json")
                .short('j')
                .help("print an array of objects in JSON"),
        )
        .arg(
            value("output", "file")
                .short('o')
                .help("write to this file"),
        )
        .arg(switch("raw-dump").help("print bare names in one line"))
        .arg(
            Arg::new("words")
                .num_args(0..)
                .value_name("kind or pattern"),
        )
}

/// Prints the events.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let on = |name| flag(matches, name) == Some(true);
    if on("json") && on("raw-dump") {
        return Err(CliError::usage("--json and --raw-dump exclude each other"));
    }
    let machine = Machine::find(context);
    let words = matches.get_many::<String>("words").unwrap_or_default();
    let words: Vec<&str> = words.map(String::as_str).collect();
    let (rows, missed) = machine.rows(&words, context);
    let tells = flag(matches, "desc") != Some(false);
    let details = Details {
        tracefs: &machine.tracepoints.0,
        resolved: tells && (on("details") || on("long-desc")),
        fields: tells && on("long-desc"),
        examples: tells && !words.is_empty(),
    };
    let events = rows.into_iter().map(|row| details.tell(row));
    let events: Vec<Told> = events.collect();
    let write = |out: &mut dyn Write| match (on("json"), on("raw-dump")) {
        (true, _) => write_json(out, &events),
        (_, true) => write_names(out, &events),
        _ => write_text(out, &events),
    };
    match matches.get_one::<String>("output") {
        Some(path) => write_to(Path::new(path), context, write)?,
        None => print(context, on("json") || on("raw-dump"), write)?,
    }
    Ok(match missed {
        true => Exit::Failure(1),
        false => Exit::Ok,
    })
}

fn print(
    context: &Context,
    is_for_programs: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    if !is_for_programs {
        context.paginate("list")?;
    }
    let mut out = context.stdout();
    if context.output.redirected().load(Ordering::Relaxed) {
        let title = "List of pre-defined events (to be used in -e or -M):";
        writeln!(out, "\n{title}\n")?;
    }
    write(&mut out)?;
    Ok(out.flush()?)
}

/// What this machine has.
struct Machine {
    pmus: MachinePmus,
    tracepoints: MachineTracepoints,
    cache: Option<Cache>,
}

impl Machine {
    fn find(context: &Context) -> Self {
        Self {
            pmus: MachinePmus::find(context),
            tracepoints: MachineTracepoints::find(context.globals.debugfs_dir.as_deref()),
            cache: context.buildid_dir().map(Cache::new),
        }
    }

    /// The events that the words ask for, one word after the other, and whether one asked for a name that nothing has.
    /// What is missing is said.
    fn rows(&self, words: &[&str], context: &Context) -> (Vec<Row>, bool) {
        let catalogue = Catalogue {
            pmus: self.pmus.types(),
            machine: &self.pmus,
            tracepoints: &self.tracepoints,
        };
        let sources = Sources {
            catalogue: &catalogue,
            opens: &opens,
            marks: &|| self.cache.as_ref().map(marks).unwrap_or_default(),
        };
        let (mut rows, mut missed) = (Vec::new(), false);
        let mut untraced = None;
        let mut take = |listing: Listing| {
            untraced = untraced.take().or(listing.untraced);
            let found = listing.rows.len();
            rows.extend(listing.rows);
            found > 0
        };
        if words.is_empty() {
            take(Listing::new(&Wanted::All, sources));
        }
        for word in words {
            if METRICS.contains(word) {
                context.note("no metrics: there are no tables of processor vendors");
                continue;
            }
            let wanted = Wanted::new(word);
            let found = take(Listing::new(&wanted, sources))
                || wanted
                    .in_any_case()
                    .is_some_and(|wanted| take(Listing::new(&wanted, sources)));
            match &wanted {
                _ if found => {}
                Wanted::Kinds(kinds) => context.note(absent(kinds)),
                _ => {
                    missed = true;
                    context.note(format_args!("no event is called '{word}', or like it"));
                }
            }
        }
        if let Some(error) = untraced {
            let folder = self.tracepoints.0.events().display();
            context.note(format_args!(
                "tracepoints are left out: {folder}: {error}\nhint: they are root's to read, and of whom 'mount -o remount,gid=GROUP,mode=750 {}' lets",
                self.tracepoints.0.root().display()
            ));
        }
        (rows, missed)
    }
}

/// Why there are no events of a kind that was asked for.
fn absent(kinds: &[Kind]) -> &'static str {
    match kinds {
        [Kind::Hardware | Kind::Cache] => "no hardware PMU found",
        [Kind::Pmu] => "no PMU of this machine names events",
        [Kind::Sdt] => "no program in the build-id cache is known to have USDT probes",
        _ => "there are no such events here",
    }
}

/// Whether the kernel opens an event for this process, or at least for its part in user space.
fn opens(attr: &Attr) -> bool {
    let mut attr = Attr {
        flags: AttrFlags::DISABLED,
        ..attr.clone()
    };
    let observed = Observed { pid: 0, cpu: -1 };
    match Counter::open(&attr, observed, None) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            attr.flags.0 |= AttrFlags::EXCLUDE_KERNEL.0;
            Counter::open(&attr, observed, None).is_ok()
        }
        opened => opened.is_ok(),
    }
}

/// The USDT probes of the programs in the cache. Where several have one of the same name, each is told with its program.
fn marks(cache: &Cache) -> Vec<String> {
    let mut marks: Vec<(String, String, String)> = Vec::new();
    for cached in cache.objects().unwrap_or_default() {
        let text = fs::read_to_string(cached.folder.join("probes")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.strip_prefix('%'));
        let names = lines.filter_map(|line| Some(line.split_once('=')?.0));
        let names: Vec<&str> = names.collect();
        // Of a program that is gone, or another build by now, nothing can be probed.
        if !names.is_empty() && is_installed(&cached) {
            let program = cached.name.display().to_string();
            let named = names.into_iter().map(str::to_owned);
            marks.extend(named.map(|name| (name, cached.id.clone(), program.clone())));
        }
    }
    marks.sort_unstable();
    marks.dedup();
    let shared = marks.chunk_by(|one, next| one.0 == next.0);
    let named = shared.flat_map(|same| {
        same.iter().map(|(name, id, program)| match same.len() {
            1 => name.clone(),
            _ => format!("{name}@{program}({id:.12})"),
        })
    });
    named.collect()
}

fn is_installed(cached: &Cached) -> bool {
    let bytes = DiskFiles.read(&cached.name).ok();
    let found = bytes.and_then(|bytes| build_id_of_elf(&bytes));
    found.is_some_and(|found| found.to_string() == cached.id)
}
