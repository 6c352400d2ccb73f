//! The stacks of a recording, or of folded text.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_flame::{Kind, Stacks, is_idle, read_folded};
use rperf_hist::{
    Choice, Direction, GraphForm, GraphOptions, NamedStacks, Naming, Options, Origin, Select,
    StackView, parse_fields,
};
use rperf_perfdata::{Error, FileHeader};
use rperf_replay::{EventIndex, Replay, Sample, World};
use rperf_resolve::{Filter, Frame, Resolver};
use rperf_safefs::open_regular;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::filter::Wanted;
use crate::cli::findings::{conclude, warn_of_symbols};
use crate::cli::input::{Input, Opened};
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::progress::Progress;
use crate::cli::sampled::find_event;
use crate::cli::stacks::{copied, fold, source, unwinding_limit, warn_of_cut};
use crate::cli::symbol_options::Symbols;
use crate::cli::symbols::replay;

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
        let input = Opened::named(path, self.force, context)?.whole(context)?;
        self.read_recording(&input, context)
    }

    fn read_text(&self, path: &Path) -> Result<Given, CliError> {
        let shown = path.display();
        let failed =
            |error: &dyn std::fmt::Display| CliError::message(255, format!("{shown}: {error}"));
        let file = open_regular(path).map_err(|error| failed(&error))?;
        let stacks = read_folded(BufReader::new(file)).map_err(|error| failed(&error))?;
        Ok(Given {
            stacks: stacks.map_err(|error| failed(&error))?,
            title: "Flame Graph".to_owned(),
            unit: "samples".to_owned(),
        })
    }

    fn read_recording(&self, input: &Input, context: &Context) -> Result<Given, CliError> {
        let data = input.parse(context)?;
        let progress = Progress::start(context, data.data().len());
        let replay = replay(&data, self.jobs, &progress)?;
        let event = find_event(&replay, &input.path, self.event.as_deref())?;
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

    fn stacks(
        &self,
        replay: &Replay<'_>,
        event: usize,
        context: &Context,
    ) -> Result<Stacks, CliError> {
        let data = replay.data();
        let chosen = OneEvent {
            event: EventIndex(u32::try_from(event).unwrap_or(u32::MAX)),
            chosen: self.wanted.filter(data.described(), false)?.non_empty(),
        };
        let mut options = self.options();
        let resolver = self
            .symbols
            .resolver(context, replay.world(), data.features());
        let limit = unwinding_limit(data.described(), &mut options);
        let source = source(data.described(), self.inlines);
        let naming = Naming::new(&options, &source, &resolver, self.jobs);
        let select = Some(&chosen as &dyn Select);
        let (folded, cut) = fold(replay, (&naming, &resolver), limit, select, self.jobs);
        let named = naming.named_stacks(folded);
        warn_of_symbols(context, &resolver);
        warn_of_cut(context, &cut, copied(data.events()));
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
            order_by: parse_fields(keys).unwrap_or_default(),
            order: Direction::Caller,
            graph: Some(GraphOptions {
                form: GraphForm::Graph,
                min_percent: 0.0,
                by_address: false,
                by_line: false,
                tells_branches: false,
            }),
            max_stack: self.max_stack.unwrap_or(usize::MAX),
            ..Options::default()
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
    chosen: Option<Filter>,
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
    let mut first = Vec::new();
    let begin = |file: File| file.take(FileHeader::SIZE as u64).read_to_end(&mut first);
    let is_read = open_regular(path)
        .and_then(begin)
        .is_ok_and(|count| count > 0);
    let is_foreign = matches!(FileHeader::decode(&first), Err(Error::Magic { .. }));
    is_read && is_foreign && !first.contains(&0)
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
