//! Answers the browser's requests while it shows the report: annotated functions, the symbols of an object, samples, the header,
//! lists of recordings, saving text.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use rperf_analysis::running_threads;
use rperf_hist::{Parallelism, SelectSamples};
use rperf_perfdata::{MAGIC_SIZE, PerfData, is_perf_data};
use rperf_safefs::Folder;
use rperf_tui::{BrowserRequest, ReaderMessage};
use rperf_view::header::{HeaderOptions, write_header};

use super::super::{ReportJob, sockets};
use crate::cli::error::CliError;
use crate::cli::header;
use crate::cli::input::Input;
use crate::cli::progress::ProgressDisplay;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::annotation::{Annotator, FunctionCounts};
use crate::cli::shared::browser::{CommandRunner, save, shown};

/// Answers requests until the browser exits. Samples are counted by function when a function is requested for the first time.
pub(super) fn answer(
    job: &ReportJob<'_>,
    input: &Input,
    data: &PerfData<'_>,
    messages: &Sender<ReaderMessage>,
    requests_in: &Receiver<BrowserRequest>,
) {
    let server = RequestServer {
        job,
        input,
        data,
        messages,
    };
    let no_annotator = None;
    while let Some(request) = server.serve(requests_in, no_annotator) {
        // The request needs an annotator, which then answers later requests, too, until the browser exits. If the annotator
        // cannot be created, the browser shows the error, and the loop serves the next request.
        let served = with_functions(job, input, data, |annotator| {
            server.reply(request, Some(annotator));
            server.serve(requests_in, Some(annotator));
        });
        if let Err(error) = served
            && messages.send(ReaderMessage::Notice(error.text())).is_err()
        {
            return;
        }
    }
}

/// Counts the samples of a report by function, and passes the annotator of the functions to `work`.
fn with_functions<R>(
    job: &ReportJob<'_>,
    input: &Input,
    data: &PerfData<'_>,
    work: impl FnOnce(&Annotator<'_, '_>) -> R,
) -> Result<R, CliError> {
    let (jobs, progress) = (job.settings.jobs, ProgressDisplay::silent());
    let analysis = Analysis::with_progress(input, data, jobs, progress, job.context)?;
    let changes = running_threads(&analysis.replay);
    let parallelism = changes.map(|changes| Arc::new(Parallelism::new(changes)));
    let cpu_sockets = sockets(data.metadata());
    let selected = job
        .selection
        .of(&analysis.replay, &cpu_sockets, parallelism.as_ref(), jobs)?;
    let counting = FunctionCounts {
        analysis: &analysis,
        resolver: &analysis.resolver(&job.settings.symbols),
        select: selected
            .as_ref()
            .map(|selected| selected as &dyn SelectSamples),
        request: &job.code,
    };
    counting.with_annotator(work)
}

/// The data from which requests are answered.
struct RequestServer<'s> {
    job: &'s ReportJob<'s>,
    input: &'s Input,
    data: &'s PerfData<'s>,
    messages: &'s Sender<ReaderMessage>,
}

impl RequestServer<'_> {
    /// Answers requests until the browser exits. Without an annotator, returns the first request that needs one, unanswered.
    fn serve(
        &self,
        requests_in: &Receiver<BrowserRequest>,
        annotator: Option<&Annotator<'_, '_>>,
    ) -> Option<BrowserRequest> {
        for request in requests_in {
            // `Closed`: the browser no longer shows a function. No answer is needed.
            if matches!(request, BrowserRequest::Closed(_)) {
                continue;
            }
            // `Map` requests the symbols of a function's object.
            let needs_annotator = matches!(
                request,
                BrowserRequest::Annotate(_) | BrowserRequest::Map(_)
            );
            if annotator.is_none() && needs_annotator {
                return Some(request);
            }
            if !self.reply(request, annotator) {
                return None;
            }
        }
        None
    }

    /// Sends the answer to a request; returns whether the browser still listens.
    fn reply(&self, request: BrowserRequest, annotator: Option<&Annotator<'_, '_>>) -> bool {
        let answer = self.answer(request, annotator);
        let answer = answer.unwrap_or_else(|error| ReaderMessage::Notice(error.text()));
        self.messages.send(answer).is_ok()
    }

    fn command_runner(&self) -> CommandRunner<'_> {
        CommandRunner {
            matches: self.job.matches,
            context: self.job.context,
            path: &self.input.path,
        }
    }

    /// Returns the answer to a request.
    fn answer(
        &self,
        request: BrowserRequest,
        annotator: Option<&Annotator<'_, '_>>,
    ) -> Result<ReaderMessage, CliError> {
        if let Some(answer) = annotator.and_then(|annotator| annotator.answer(&request)) {
            return answer;
        }
        match request {
            BrowserRequest::Header => self.header(),
            BrowserRequest::Samples(place) => self.command_runner().samples(place.as_ref()),
            BrowserRequest::Recordings => recordings(),
            BrowserRequest::Save(text) => save(&text),
            // Only `Zero` and `Stop` get here. The annotator answers the rest: `Annotate` and `Map`, which are not passed without
            // one, and requests from the view of a function, which only an annotator opens.
            _ => Ok(ReaderMessage::Notice("Only available in 'top'.".to_owned())),
        }
    }

    fn header(&self) -> Result<ReaderMessage, CliError> {
        let options = HeaderOptions {
            full: true,
            ..header::options(self.input.mtime)
        };
        let mut text = Vec::new();
        write_header(&mut text, self.data, &options)?;
        Ok(shown("Header information", &text))
    }
}

/// Returns the names of the recordings in the working directory, or a notice that there are none.
fn recordings() -> Result<ReaderMessage, CliError> {
    let mut names = Vec::new();
    let folder = Folder::open(Path::new("."))?;
    for name in folder.names()? {
        let mut start = [0; MAGIC_SIZE];
        let file = folder.open_file(&name);
        let read = file.and_then(|mut file| file.read_exact(&mut start));
        if read.is_ok() && is_perf_data(&start) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(match names.is_empty() {
        true => {
            ReaderMessage::Notice("There are no recordings in the working directory.".to_owned())
        }
        false => ReaderMessage::Recordings(names),
    })
}
