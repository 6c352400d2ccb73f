//! The stacks of a recording, or of folded text.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_flame::{Kind, Stacks, is_idle, read_folded};
use rperf_hist::{
    Choice, Counted, Direction, GraphForm, GraphOptions, NamedStacks, Options, Origin, PayloadText,
    Samples, Select, Source, StackView, parse_fields,
};
use rperf_perfdata::PerfData;
use rperf_replay::{EventIndex, Replay, Sample, World};
use rperf_resolve::{Frame, Resolver, UserStacks};
use rperf_wire::SampleType;

use crate::cli::choice::Chosen;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;
use crate::cli::filter::Wanted;
use crate::cli::findings::{conclude, warn_of_symbols};
use crate::cli::input::{Input, Opened};
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::stacks::{has_copies, stack_options, warn_of_cut};
use crate::cli::symbol_options::Symbols;
use crate::cli::symbols::{own_vdso, replay, search_paths, shows_inlines};

/// What a recording begins with, of either byte order and of the first version.
const MAGICS: [&[u8]; 3] = [b"PERFILE2", b"2ELIFREP", b"PERFFILE"];

/// The outermost frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    None,
    Comm,
    Pid,
    Tid,
}

/// What the stacks are weighed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weighing {
    Samples,
    Period,
}

/// What is asked of a recording.
pub(super) struct Question {
    wanted: Wanted,
    symbols: Symbols,
    jobs: NonZeroUsize,
    force: bool,
    inlines: Option<bool>,
    /// The event's name.
    event: Option<String>,
    root: Root,
    weighing: Weighing,
    idle: bool,
    max_stack: Option<usize>,
    max_depth: usize,
}

/// Stacks, and what is said of them.
pub(super) struct Given {
    pub(super) stacks: Stacks,
    /// What they are of.
    pub(super) title: String,
    /// What is counted.
    pub(super) unit: String,
}

impl Question {
    /// Reads the options.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let text = |id: &str| matches.get_one::<String>(id).map(String::as_str);
        let frames = |id: &str| {
            let count = matches.get_one::<u64>(id);
            count.map(|count| usize::try_from(*count).unwrap_or(usize::MAX))
        };
        Ok(Self {
            wanted: Wanted::new(matches)?,
            symbols: Symbols::new(matches, context)?,
            jobs: jobs(matches, context)?,
            force: flag(matches, "force") == Some(true),
            inlines: flag(matches, "inline"),
            event: text("event").map(str::to_owned),
            root: text("root").map_or(Ok(Root::Comm), root)?,
            weighing: text("weight").map_or(Ok(Weighing::Samples), weighing)?,
            idle: flag(matches, "idle") != Some(false),
            max_stack: frames("max-stack"),
            max_depth: frames("max-depth").unwrap_or(usize::MAX),
        })
    }

    /// The stacks of a file, or of the usual recording.
    pub(super) fn read(&self, path: Option<PathBuf>, context: &Context) -> Result<Given, CliError> {
        if let Some(path) = path.as_deref().filter(|path| is_text(path)) {
            return self.read_text(path);
        }
        let input = match Opened::named(path, self.force, context)? {
            Opened::Whole(input) => input,
            Opened::Stream(stream) => stream.spool(context)?,
        };
        self.read_recording(&input, context)
    }

    fn read_text(&self, path: &Path) -> Result<Given, CliError> {
        let shown = path.display();
        let failed =
            |error: &dyn std::fmt::Display| CliError::message(255, format!("{shown}: {error}"));
        let file = File::open(path).map_err(|error| failed(&error))?;
        let stacks = read_folded(BufReader::new(file)).map_err(|error| failed(&error))?;
        Ok(Given {
            stacks: stacks.map_err(|error| failed(&error))?,
            title: "Flame Graph".to_owned(),
            unit: "samples".to_owned(),
        })
    }

    fn read_recording(&self, input: &Input, context: &Context) -> Result<Given, CliError> {
        let data = input.parse(context)?;
        let replay = replay(&data)?;
        let event = self.event(&replay, input)?;
        let stacks = self.stacks(&replay, event, context)?;
        conclude(&input.path, &replay.diagnostics(), context)?;
        if stacks.is_empty() {
            let message = format!("{}: no sample is left to draw", input.path.display());
            return Err(CliError::message(255, message)
                .hint("--time, --cpu, --comms, --no-idle and such leave none"));
        }
        let name = data
            .events()
            .get(event)
            .map_or("", |event| event.name.as_str());
        Ok(Given {
            stacks,
            title: format!("Flame Graph: {name}"),
            unit: match self.weighing {
                Weighing::Samples => "samples".to_owned(),
                Weighing::Period => name.to_owned(),
            },
        })
    }

    /// The event that is drawn: the one of that name, or the first that has samples.
    fn event(&self, replay: &Replay<'_>, input: &Input) -> Result<usize, CliError> {
        let data = replay.data();
        let mut counted = data.events().iter().zip(replay.sample_counts()).enumerate();
        let shown = input.path.display();
        let Some(wanted) = &self.event else {
            let found = counted.find(|(_, (_, samples))| **samples > 0);
            let none = || CliError::message(255, format!("The {shown} data has no samples!"));
            return found.map(|(index, _)| index).ok_or_else(none);
        };
        // An event is known with its modifiers and without.
        let named = |name: &str| {
            name == wanted
                || name
                    .rsplit_once(':')
                    .is_some_and(|(name, _)| name == wanted)
        };
        let found = counted.find(|(_, (event, _))| named(&event.name));
        found.map(|(index, _)| index).ok_or_else(|| {
            let names: Vec<&str> = data
                .events()
                .iter()
                .map(|event| event.name.as_str())
                .collect();
            CliError::message(255, format!("{shown} has no event '{wanted}'"))
                .hint(format!("its events: {}", names.join(", ")))
        })
    }

    fn stacks(
        &self,
        replay: &Replay<'_>,
        event: usize,
        context: &Context,
    ) -> Result<Stacks, CliError> {
        let data = replay.data();
        let chosen = OneEvent {
            event: EventIndex(u32::try_from(event).unwrap_or(u32::MAX)),
            chosen: Chosen::new(self.wanted.filter(data.described(), false)?),
        };
        let options = self.options();
        let unwinds = has_copies(data.events());
        let limit = unwinds.then(|| self.max_stack.unwrap_or(usize::MAX));
        let paths = self
            .symbols
            .search_paths(search_paths(context, data.features()));
        let vdso = own_vdso().filter(|_| !self.symbols.elsewhere());
        let resolver = Resolver::new(replay.world(), &DiskFiles, paths).with_vdso(vdso);
        let unwound = UserStacks::new(&resolver, stack_options(data.described(), limit));
        let samples = replay.fold(self.jobs, || {
            unwound.fold(Samples::new(&options, Some(&chosen)))
        })?;
        let source = self.source(data);
        let named = samples
            .into_inner()
            .named_stacks(&options, &source, &resolver, self.jobs);
        warn_of_symbols(context, &resolver);
        warn_of_cut(context, &unwound.summary(), data.events());
        let mut stacks = Stacks::default();
        for event in &named {
            self.add(event, &mut stacks);
        }
        Ok(stacks)
    }

    /// Whole stacks, kept apart by what their outermost frame says.
    fn options(&self) -> Options {
        let keys = match self.root {
            Root::None | Root::Comm => "comm",
            Root::Pid | Root::Tid => "comm,tid",
        };
        Options {
            counted: Counted::Samples,
            columns: Vec::new(),
            order_by: parse_fields(keys).unwrap_or_default(),
            children: false,
            order: Direction::Caller,
            graph: Some(GraphOptions {
                form: GraphForm::Graph,
                min_percent: 0.0,
                by_address: false,
                by_line: false,
            }),
            max_stack: self.max_stack.unwrap_or(usize::MAX),
            hide_unresolved: false,
            symbol_filter: None,
            relative: false,
            time_quantum: 0,
            nanoseconds: false,
            full_paths: false,
            sort_event: 0,
            weight_parts: Vec::new(),
        }
    }

    fn source<'p>(&self, data: &PerfData<'_>) -> Source<'p> {
        let events = data.events().iter();
        Source {
            endian: data.endian(),
            callchains: events
                .clone()
                .map(|event| event.attr.sample_type.contains(SampleType::CALLCHAIN))
                .collect(),
            inlines: events
                .map(|event| shows_inlines(&event.attr, self.inlines))
                .collect(),
            groups: Vec::new(),
            sockets: Vec::new(),
            payloads: &Nothing,
        }
    }

    /// Adds the stacks of one event with their roots and weights.
    fn add(&self, named: &NamedStacks, stacks: &mut Stacks) {
        let places: Vec<(u32, bool)> = named
            .places
            .iter()
            .map(|place| {
                let idle = place.origin == Origin::Kernel && is_idle(&place.name);
                (stacks.label(&place.name, kind(place.origin)), idle)
            })
            .collect();
        let mut frames = Vec::new();
        for stack in named.iter() {
            let idle = || stack.frames.iter().any(|place| places[*place as usize].1);
            if !self.idle && idle() {
                continue;
            }
            frames.clear();
            frames.extend(
                self.root(&stack)
                    .map(|root| stacks.label(&root, Kind::User)),
            );
            frames.extend(stack.frames.iter().map(|place| places[*place as usize].0));
            frames.truncate(self.max_depth);
            let weight = match self.weighing {
                Weighing::Samples => stack.sum.samples,
                Weighing::Period => stack.sum.period,
            };
            stacks.add(&frames, weight);
        }
    }

    fn root(&self, stack: &StackView<'_>) -> Option<String> {
        let comm = stack.comm.unwrap_or("[unknown]");
        // What collects the text of script writes names of programs so.
        let comm = comm.replace(' ', "_");
        match self.root {
            Root::None => None,
            Root::Comm => Some(comm),
            Root::Pid => Some(format!("{comm}-{}", stack.pid)),
            Root::Tid => Some(format!("{comm}-{}/{}", stack.pid, stack.tid)),
        }
    }
}

/// The samples of one event, as far as they are chosen.
struct OneEvent {
    event: EventIndex,
    chosen: Option<Chosen>,
}

impl Select for OneEvent {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> Choice {
        if sample.event != self.event {
            return Choice::Ignored;
        }
        let chosen = self.chosen.as_ref();
        chosen.map_or(Choice::Counted, |chosen| chosen.sample(world, sample))
    }

    fn place(&self, resolver: &Resolver<'_>, frame: &Frame) -> Choice {
        let chosen = self.chosen.as_ref();
        chosen.map_or(Choice::Counted, |chosen| chosen.place(resolver, frame))
    }
}

/// Stacks need no text of tracepoints.
struct Nothing;

impl PayloadText for Nothing {
    fn has(&self, _event: EventIndex) -> bool {
        false
    }

    fn write(&self, _event: EventIndex, _raw: &[u8], _out: &mut Vec<u8>) {}
}

fn kind(origin: Origin) -> Kind {
    match origin {
        Origin::User => Kind::User,
        Origin::Kernel => Kind::Kernel,
        Origin::Inlined => Kind::Inlined,
        Origin::Jit => Kind::Jit,
    }
}

/// Whether this is a file of text rather than a recording, of which there are directories and pipes too.
fn is_text(path: &Path) -> bool {
    let is_file = path
        .metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    let mut first = [0; 8];
    let read = is_file
        && File::open(path)
            .and_then(|mut file| file.read_exact(&mut first))
            .is_ok();
    // What is shorter than eight bytes may be text, and is no recording.
    is_file && !(read && (MAGICS.contains(&&first[..]) || first.contains(&0)))
}

fn root(word: &str) -> Result<Root, CliError> {
    match word {
        "none" => Ok(Root::None),
        "comm" => Ok(Root::Comm),
        "pid" => Ok(Root::Pid),
        "tid" => Ok(Root::Tid),
        _ => Err(CliError::usage(format!(
            "--root takes comm, pid, tid or none, not '{word}'"
        ))),
    }
}

fn weighing(word: &str) -> Result<Weighing, CliError> {
    match word {
        "samples" => Ok(Weighing::Samples),
        "period" => Ok(Weighing::Period),
        _ => Err(CliError::usage(format!(
            "--weight takes samples or period, not '{word}'"
        ))),
    }
}
