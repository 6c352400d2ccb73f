//! Annotated functions in the browser.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use clap::ArgMatches;
use rperf_tui::{AnnotateScreen, BrowserRequest, ReaderMessage};

use crate::cli::context::Context;
use crate::cli::display::{BrowserTerminal, browses, spawn_browser_thread};
use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::shared::annotation::Annotator;
use crate::cli::shared::browser::CommandRunner;

/// Options that select text output instead of the browser.
const TEXT_FLAGS: &[&str] = &["stdio", "stdio2"];
/// Options with a value that also select text output.
const TEXT_OPTIONS: &[&str] = &["output", "hot"];

/// Whether the browser is used. Options for text output take precedence over `--tui` and `--no-tui`; if none of these is given,
/// the browser is used on a terminal unless the setting `tui.annotate` is off.
///
/// # Errors
///
/// Status 129: `--tui` is given without an option for text output, and there is no terminal.
pub(super) fn is_wanted(matches: &ArgMatches, context: &Context) -> Result<bool, CliError> {
    let has_text_flag = TEXT_FLAGS.iter().any(|id| flag(matches, id) == Some(true));
    if has_text_flag || TEXT_OPTIONS.iter().any(|id| matches.contains_id(id)) {
        return Ok(false);
    }
    let by_default = context.config.flag("tui.annotate") != Some(false);
    browses(matches, context, "annotate", by_default)
}

/// Shows the hottest function that has code, and others on request.
pub(super) fn run(
    annotator: &Annotator<'_, '_>,
    commands: &CommandRunner<'_>,
    context: &Context,
) -> Result<(), CliError> {
    let first = Arc::new(annotator.hottest_with_code(context)?);
    let mut display = BrowserTerminal::open(context)?;
    let (request_sender, requests) = channel();
    let (answer_sender, answers) = channel();
    // `is_global`: percentages are relative to the event's total instead of the function's.
    let (options, is_global) = annotator.printer.request.view_options();
    let screen = AnnotateScreen::new(first, options, is_global, request_sender, display.theme());
    thread::scope(|scope| {
        spawn_browser_thread(scope, || {
            serve(annotator, commands, requests, &answer_sender)
        })?;
        display.run(Box::new(screen), answers)
    })
}

/// Answers requests until the browser exits.
fn serve(
    annotator: &Annotator<'_, '_>,
    commands: &CommandRunner<'_>,
    requests: Receiver<BrowserRequest>,
    answer_sender: &Sender<ReaderMessage>,
) {
    for request in requests {
        let answer = match &request {
            BrowserRequest::Samples(function) => commands.samples(function.as_ref()),
            request => match annotator.answer(request) {
                Some(answer) => answer,
                // `Closed` needs no answer. The browser of `annotate` sends no other request that gives `None`.
                None => continue,
            },
        };
        let answer = answer.unwrap_or_else(|error| ReaderMessage::Notice(error.text()));
        if answer_sender.send(answer).is_err() {
            return;
        }
    }
}
