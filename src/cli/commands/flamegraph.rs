//! `rperf flamegraph`: a recording as one picture.

mod args;
mod stacks;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_flame::{Flame, PALETTES, Palette, Stacks, Widths, svg, write_folded, write_json};

use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, Exit};
use crate::cli::input::DEFAULT;
use crate::cli::options::flag;
use crate::cli::product::write_to;

pub(super) use self::args::command;
use self::stacks::{Given, Question};

/// Where the picture goes where nothing else is said.
const PICTURE: &str = "flamegraph.svg";
const TREE: &str = "flamegraph.json";
/// Narrowest frame, in pixels, where nothing else is said.
const MIN_WIDTH: f64 = 0.1;
/// Pixels that a picture may be wide.
const WIDEST: u64 = 100_000;

/// Draws the picture.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let looks = Looks::new(matches)?;
    let question = Question::new(matches, context)?;
    let recorded = record(matches, context)?;
    let input = text(matches, "input").map(PathBuf::from);
    let input = input.or_else(|| recorded.is_some().then(|| DEFAULT.into()));
    let Given {
        stacks,
        title,
        unit,
    } = question.read(input, context)?;
    if looks.folded {
        return folded(&stacks, &looks, context);
    }
    let flame = match text(matches, "diff") {
        None => Flame::new(&stacks, looks.reverse),
        Some(other) => {
            let before = question.read(Some(other.into()), context)?.stacks;
            let normalize = flag(matches, "normalize") == Some(true);
            Flame::compare(&before, &stacks, looks.widths, normalize, looks.reverse)
        }
    };
    let options = svg::Options {
        title: looks.title.clone().unwrap_or(title),
        unit,
        ..looks.options.clone()
    };
    let path = looks.output.as_deref();
    if looks.json {
        let path = path.unwrap_or(Path::new(TREE));
        write_to(path, context, |out| write_json(&flame, out))?;
        return Ok(recorded.unwrap_or(Exit::Ok));
    }
    let path = path.unwrap_or(Path::new(PICTURE));
    write_to(path, context, |out| svg::write(&flame, &options, out))?;
    if path != Path::new("-") {
        context.note(format_args!(
            "[ {}: {} {}; a browser shows it ]",
            path.display(),
            flame.total(),
            options.unit
        ));
    }
    // A workload that failed has been drawn all the same; its status is the user's.
    Ok(recorded.unwrap_or(Exit::Ok))
}

fn folded(stacks: &Stacks, looks: &Looks, context: &Context) -> Result<Exit, CliError> {
    let path = looks.output.as_deref().unwrap_or(Path::new("-"));
    write_to(path, context, |out| write_folded(stacks, looks.marks, out))?;
    Ok(Exit::Ok)
}

/// Records the command that is given, if one is.
fn record(matches: &ArgMatches, context: &Context) -> Result<Option<Exit>, CliError> {
    let workload: Vec<OsString> = matches
        .get_many::<OsString>("workload")
        .unwrap_or_default()
        .cloned()
        .collect();
    if workload.is_empty() {
        return match ["freq", "call-graph"]
            .iter()
            .find(|id| text(matches, id).is_some())
        {
            Some(option) => Err(CliError::usage(format!(
                "{} flamegraph: --{option} is for recording, and no command is given",
                context.program
            ))),
            None => Ok(None),
        };
    }
    let file = text(matches, "input").unwrap_or(DEFAULT);
    let mut words: Vec<OsString> = vec!["-o".into(), file.into()];
    words.push("--call-graph".into());
    words.push(text(matches, "call-graph").unwrap_or("fp").into());
    for (option, id) in [("-F", "freq"), ("-e", "event")] {
        if let Some(value) = text(matches, id) {
            words.extend([option.into(), value.into()]);
        }
    }
    if flag(matches, "all-cpus") == Some(true) {
        words.push("-a".into());
    }
    words.push("--".into());
    words.extend(workload);
    dispatch(context, OsStr::new("record"), &words).map(Some)
}

/// How the result looks.
struct Looks {
    folded: bool,
    json: bool,
    marks: bool,
    reverse: bool,
    widths: Widths,
    output: Option<PathBuf>,
    title: Option<String>,
    options: svg::Options,
}

impl Looks {
    fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let is_set = |id| flag(matches, id) == Some(true);
        let owned = |id| text(matches, id).map(str::to_owned);
        let width = matches.get_one::<u64>("width").copied();
        if width.is_some_and(|width| !(100..=WIDEST).contains(&width)) {
            return Err(CliError::usage(format!(
                "--width takes 100 to {WIDEST} pixels"
            )));
        }
        if text(matches, "diff").is_some() && is_set("folded") {
            return Err(CliError::usage(
                "--diff colours a picture; --folded writes text, one recording at a time",
            ));
        }
        if text(matches, "diff").is_none()
            && (is_set("normalize") || text(matches, "widths").is_some())
        {
            return Err(CliError::usage("--normalize and --widths are for --diff"));
        }
        if text(matches, "format").is_some() && is_set("folded") {
            return Err(CliError::usage(
                "--format is of pictures and trees; --folded writes text",
            ));
        }
        if is_set("marks") && !is_set("folded") {
            return Err(CliError::usage(
                "--marks is for --folded; pictures have --colors kind",
            ));
        }
        Ok(Self {
            folded: is_set("folded"),
            json: text(matches, "format").map_or(Ok(false), is_json)?,
            marks: is_set("marks"),
            reverse: is_set("reverse"),
            widths: text(matches, "widths").map_or(Ok(Widths::default()), widths)?,
            output: owned("output").map(PathBuf::from),
            title: owned("title"),
            options: svg::Options {
                title: String::new(),
                subtitle: owned("subtitle"),
                width: width.and_then(|width| u32::try_from(width).ok()),
                min_width: text(matches, "min-width").map_or(Ok(MIN_WIDTH), min_width)?,
                inverted: is_set("inverted"),
                palette: text(matches, "colors").map_or(Ok(Palette::default()), palette)?,
                unit: String::new(),
            },
        })
    }
}

fn text<'m>(matches: &'m ArgMatches, id: &str) -> Option<&'m str> {
    matches.get_one::<String>(id).map(String::as_str)
}

fn is_json(word: &str) -> Result<bool, CliError> {
    match word {
        "svg" => Ok(false),
        "json" => Ok(true),
        _ => Err(
            CliError::usage(format!("--format takes svg or json, not '{word}'"))
                .hint("a browser shows an SVG as it is"),
        ),
    }
}

fn widths(word: &str) -> Result<Widths, CliError> {
    match word {
        "before" => Ok(Widths::Before),
        "after" => Ok(Widths::After),
        _ => Err(CliError::usage(format!(
            "--widths takes before or after, not '{word}'"
        ))),
    }
}

fn min_width(word: &str) -> Result<f64, CliError> {
    let width = word
        .parse()
        .ok()
        .filter(|width: &f64| width.is_finite() && *width >= 0.0);
    width.ok_or_else(|| CliError::usage(format!("--min-width takes pixels, not '{word}'")))
}

fn palette(word: &str) -> Result<Palette, CliError> {
    Palette::named(word).ok_or_else(|| {
        let known: Vec<&str> = PALETTES.iter().map(|(name, _)| *name).collect();
        CliError::usage(format!("--colors: there is no palette '{word}'"))
            .hint(format!("palettes: {}", known.join(", ")))
    })
}
