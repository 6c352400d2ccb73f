//! Flame graphs as files: folded stacks, an SVG picture, an HTML page or JSON.

use std::path::Path;

use rperf_flame::{Flame, Stacks, amount, svg, write_folded, write_json};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::output_file::write_to;

/// The default of [`svg::SvgOptions::min_width`], in pixels: narrower frames are omitted.
pub(crate) const DEFAULT_MIN_WIDTH: f64 = 0.1;

/// The default output file of `--format svg`.
const DEFAULT_SVG: &str = "flamegraph.svg";
/// The default output file of `--format html`.
const DEFAULT_HTML: &str = "flamegraph.html";
/// The default output file of `--format json`.
const DEFAULT_JSON: &str = "flamegraph.json";

/// The format of a flame graph: a picture, a page with the picture, or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Svg,
    Html,
    Json,
}

impl PictureFormat {
    /// Parses the value of `--format`.
    ///
    /// # Errors
    ///
    /// Status 129: the word is unknown.
    pub(crate) fn parse(word: &str) -> Result<Self, CliError> {
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
            Self::Svg => DEFAULT_SVG,
            Self::Html => DEFAULT_HTML,
            Self::Json => DEFAULT_JSON,
        }
    }
}

/// Writes a flame graph to `output` or the default file of its format. Prints the file's name and the total weight, except
/// for JSON and the standard output.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn write_picture(
    flame: &Flame,
    format: PictureFormat,
    options: &svg::SvgOptions,
    output: Option<&Path>,
    context: &Context,
) -> Result<(), CliError> {
    let path = output.unwrap_or(Path::new(format.default_output()));
    write_to(path, context, |out| match format {
        PictureFormat::Svg => svg::write(flame, options, out),
        PictureFormat::Html => svg::write_html(flame, options, out),
        PictureFormat::Json => write_json(flame, out),
    })?;
    if format != PictureFormat::Json && path != Path::new("-") {
        context.note(format_args!(
            "[ {}: {}; open it in a web browser ]",
            path.display(),
            amount(flame.total(), &options.unit)
        ));
    }
    Ok(())
}

/// Writes folded stacks to `output` or the standard output. With `marks`, names of frames have suffixes for kernel, inlined
/// and JIT code.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn write_stacks(
    stacks: &Stacks,
    marks: bool,
    output: Option<&Path>,
    context: &Context,
) -> Result<(), CliError> {
    let path = output.unwrap_or(Path::new("-"));
    write_to(path, context, |out| write_folded(stacks, marks, out))
}
