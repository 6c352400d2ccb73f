//! Functions in the browser.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use clap::ArgMatches;
use rperf_tui::{AnnotateScreen, News, Request as Asked};

use super::annotator::Annotator;
use crate::cli::commands::report::Others;
use crate::cli::context::Context;
use crate::cli::display::{Display, browses, started};
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// What is printed and not browsed.
const PRINTED: &[&str] = &["stdio", "stdio2"];
/// The same, as options with a value.
const VALUES: &[&str] = &["output", "hot"];

/// Whether functions are browsed: `--tui`, or a terminal on both sides and nothing that asks for text.
///
/// # Errors
///
/// Status 129: `--tui` without a terminal.
pub(super) fn is_wanted(matches: &ArgMatches, context: &Context) -> Result<bool, CliError> {
    let is_printed = PRINTED.iter().any(|id| flag(matches, id) == Some(true));
    if is_printed || VALUES.iter().any(|id| matches.contains_id(id)) {
        return Ok(false);
    }
    let configured = context.config.flag("tui.annotate") != Some(false);
    browses(matches, context, "annotate", configured)
}

/// Shows the hottest function, and others as they are asked for.
pub(super) fn run(
    annotator: &Annotator<'_, '_>,
    others: &Others<'_>,
    context: &Context,
) -> Result<(), CliError> {
    let first = Arc::new(annotator.first(context)?);
    let mut display = Display::open(context)?;
    let (requests, asked) = channel();
    let (news, told) = channel();
    let request = annotator.printer.request;
    let screen = AnnotateScreen::new(first, request.looks(), requests, display.theme());
    thread::scope(|scope| {
        started(scope, || serve(annotator, others, &news, asked))?;
        display.run(Box::new(screen), told)
    })
}

/// Answers until the browser is gone.
fn serve(
    annotator: &Annotator<'_, '_>,
    others: &Others<'_>,
    news: &Sender<News>,
    asked: Receiver<Asked>,
) {
    for request in asked {
        let answer = match &request {
            Asked::Samples(place) => others.samples(place.as_ref()),
            request => match annotator.answer(request) {
                Some(answer) => answer,
                None => continue,
            },
        };
        let answer = answer.unwrap_or_else(|error| News::Said(error.text()));
        if news.send(answer).is_err() {
            return;
        }
    }
}
