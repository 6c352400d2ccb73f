//! `rperf flamegraph`: draws a recording as a flame graph.

mod args;
mod field_weight;
mod input;
mod record;

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_flame::{Flame, FrameWidths, PALETTES, Palette, Stacks, svg, write_folded, write_json};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::output_file::write_to;

pub(super) use self::args::command;
use self::input::{FlamegraphInput, TitledStacks};
use self::record::Recorded;

/// The default output file.
const DEFAULT_OUTPUT: &str = "flamegraph.svg";
/// The default output file of `--format html`.
const DEFAULT_PAGE: &str = "flamegraph.html";
/// The default output file of `--format json`.
const DEFAULT_JSON_OUTPUT: &str = "flamegraph.json";
/// The default width of the narrowest frame, in pixels.
const MIN_WIDTH: f64 = 0.1;
/// The largest width of a picture, in pixels.
const MAX_WIDTH: u64 = 100_000;

/// Draws the flame graph.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let options = FlamegraphOptions::new(matches)?;
    let source = FlamegraphInput::new(matches, context)?;
    let recorded = Recorded::new(matches, context)?;
    let input = match &recorded {
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
    } = source.read(input, context)?;
    if options.folded {
        write_stacks(&stacks, &options, context)?;
        damage?;
        return Ok(exit);
    }
    let flame = match text(matches, "diff") {
        None => Flame::new(&stacks, options.reverse),
        Some(other) => {
            let before = source.read(Some(other.into()), context)?;
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
    let path = options.output.as_deref();
    let path = path.unwrap_or(Path::new(options.format.default_output()));
    write_to(path, context, |out| match options.format {
        PictureFormat::Svg => svg::write(&flame, &svg_options, out),
        PictureFormat::Html => svg::write_html(&flame, &svg_options, out),
        PictureFormat::Json => write_json(&flame, out),
    })?;
    if options.format == PictureFormat::Json {
        damage?;
        return Ok(exit);
    }
    if path != Path::new("-") {
        context.note(format_args!(
            "[ {}: {} {}; open it in a web browser ]",
            path.display(),
            flame.total(),
            svg_options.unit
        ));
    }
    damage?;
    Ok(exit)
}

fn write_stacks(
    stacks: &Stacks,
    options: &FlamegraphOptions,
    context: &Context,
) -> Result<(), CliError> {
    let path = options.output.as_deref().unwrap_or(Path::new("-"));
    write_to(path, context, |out| {
        write_folded(stacks, options.marks, out)
    })?;
    Ok(())
}

/// The format of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PictureFormat {
    Svg,
    Html,
    Json,
}

impl PictureFormat {
    fn parse(word: &str) -> Result<Self, CliError> {
        match word {
            "svg" => Ok(Self::Svg),
            "html" => Ok(Self::Html),
            "json" => Ok(Self::Json),
            _ => Err(
                CliError::usage(format!("--format: '{word}' is none of svg, html, json"))
                    .hint("svg and html are for web browsers, json for scripts"),
            ),
        }
    }

    fn default_output(self) -> &'static str {
        match self {
            Self::Svg => DEFAULT_OUTPUT,
            Self::Html => DEFAULT_PAGE,
            Self::Json => DEFAULT_JSON_OUTPUT,
        }
    }
}

/// The options of the output.
struct FlamegraphOptions {
    folded: bool,
    format: PictureFormat,
    marks: bool,
    reverse: bool,
    widths: FrameWidths,
    output: Option<PathBuf>,
    title: Option<String>,
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
        if width.is_some_and(|width| !(100..=MAX_WIDTH).contains(&width)) {
            return Err(CliError::usage(format!(
                "--width: give 100 to {MAX_WIDTH} pixels"
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
