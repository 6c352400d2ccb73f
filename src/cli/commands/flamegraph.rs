//! `rperf flamegraph`: draws a recording as a flame graph, or writes its folded stacks.

mod args;
mod field_weight;
mod input;
mod record;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::ArgMatches;
use rperf_flame::{Flame, FrameWidths, PALETTES, Palette, Stacks, svg};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::shared::flame_output::{
    DEFAULT_MIN_WIDTH, PictureFormat, write_picture, write_stacks,
};

pub(super) use self::args::command;
use self::input::{FlamegraphInput, TitledStacks};
use self::record::Recorded;

/// The widths that a picture may have, in pixels.
const PICTURE_WIDTHS: RangeInclusive<u64> = 100..=100_000;

/// Records if requested, then draws the flame graph or writes folded stacks.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let options = FlamegraphOptions::new(matches)?;
    let reader = FlamegraphInput::new(matches, context)?;
    let recorded = Recorded::record(matches, context)?;
    let path = match &recorded {
        Some(recorded) => Some(recorded.path.clone()),
        None => text(matches, "input").map(PathBuf::from),
    };
    // If the workload failed, its exit status is returned after drawing.
    let exit = recorded
        .as_ref()
        .map_or(ExitStatus::Ok, |recorded| recorded.exit);
    let TitledStacks {
        stacks,
        damage,
        title,
        unit,
    } = reader.read(path, context)?;
    if options.folded {
        write_stacks(&stacks, options.marks, options.output.as_deref(), context)?;
        damage?;
        return Ok(exit);
    }
    let flame = match text(matches, "diff") {
        None => Flame::new(&stacks, options.reverse),
        Some(other) => {
            let before = reader.read(Some(other.into()), context)?;
            // Nothing is drawn if `before` is incomplete; `damage`, of the drawn recording, is reported after drawing.
            before.damage?;
            let normalize = flag(matches, "normalize") == Some(true);
            options.compared(&before.stacks, &stacks, normalize)
        }
    };
    let svg_options = svg::SvgOptions {
        title: options.title.clone().unwrap_or(title),
        unit,
        ..options.svg.clone()
    };
    let output = options.output.as_deref();
    write_picture(&flame, options.format, &svg_options, output, context)?;
    damage?;
    Ok(exit)
}

/// The options of the output.
struct FlamegraphOptions {
    /// Whether folded stacks are written instead of a picture.
    folded: bool,
    format: PictureFormat,
    /// Whether folded stacks mark kernel, inlined and JIT frames.
    marks: bool,
    reverse: bool,
    /// With `--diff`, the recording that the widths of frames are taken from.
    widths: FrameWidths,
    output: Option<PathBuf>,
    title: Option<String>,
    /// The options of the picture, without title and unit, which depend on the stacks.
    svg: svg::SvgOptions,
}

impl FlamegraphOptions {
    /// Returns the flame graph of `after`, colored by the difference from `before`.
    fn compared(&self, before: &Stacks, after: &Stacks, normalize: bool) -> Flame {
        Flame::compare(before, after, self.widths, normalize, self.reverse)
    }

    fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let is_set = |id| flag(matches, id) == Some(true);
        let owned = |id| text(matches, id).map(str::to_owned);
        let width = matches.get_one::<u64>("width").copied();
        if width.is_some_and(|width| !PICTURE_WIDTHS.contains(&width)) {
            return Err(CliError::usage(format!(
                "--width: give {} to {} pixels",
                PICTURE_WIDTHS.start(),
                PICTURE_WIDTHS.end()
            )));
        }
        if text(matches, "diff").is_some() && is_set("folded") {
            return Err(CliError::usage(
                "--diff and --folded exclude each other: folded stacks have no colors",
            ));
        }
        if text(matches, "diff").is_none()
            && (is_set("normalize") || text(matches, "widths").is_some())
        {
            return Err(CliError::usage("--normalize and --widths need --diff"));
        }
        if text(matches, "format").is_some() && is_set("folded") {
            return Err(CliError::usage("--format and --folded exclude each other"));
        }
        if is_set("marks") && !is_set("folded") {
            return Err(CliError::usage(
                "--marks needs --folded; in an SVG use --colors kind",
            ));
        }
        Ok(Self {
            folded: is_set("folded"),
            format: text(matches, "format").map_or(Ok(PictureFormat::Svg), PictureFormat::parse)?,
            marks: is_set("marks"),
            reverse: is_set("reverse"),
            widths: text(matches, "widths").map_or(Ok(FrameWidths::default()), widths)?,
            output: owned("output").map(PathBuf::from),
            title: owned("title"),
            svg: svg::SvgOptions {
                title: String::new(),
                subtitle: owned("subtitle"),
                width: width.and_then(|width| u32::try_from(width).ok()),
                min_width: text(matches, "min-width").map_or(Ok(DEFAULT_MIN_WIDTH), min_width)?,
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

fn widths(word: &str) -> Result<FrameWidths, CliError> {
    match word {
        "before" => Ok(FrameWidths::Before),
        "after" => Ok(FrameWidths::After),
        _ => Err(CliError::usage(format!(
            "--widths: '{word}' is neither before nor after"
        ))),
    }
}

fn min_width(word: &str) -> Result<f64, CliError> {
    let width = word
        .parse()
        .ok()
        .filter(|width: &f64| width.is_finite() && *width >= 0.0);
    width.ok_or_else(|| CliError::usage(format!("--min-width: '{word}' is not a number of pixels")))
}

fn palette(word: &str) -> Result<Palette, CliError> {
    Palette::named(word).ok_or_else(|| {
        let known: Vec<&str> = PALETTES.iter().map(|(name, _)| *name).collect();
        CliError::usage(format!("--colors: unknown palette '{word}'"))
            .hint(format!("choose from {}", known.join(", ")))
    })
}
