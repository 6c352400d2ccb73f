//! What the browser asks for besides the report.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use clap::ArgMatches;

use rperf_hist::Select;
use rperf_perfdata::PerfData;
use rperf_safefs::Folder;
use rperf_tui::{News, Place, Request, Shown, Text};
use rperf_view::header::{HeaderOptions, write_header};

use crate::cli::commands::annotate::{Annotator, Counting};
use crate::cli::commands::report::parallelism::parallelism;
use crate::cli::commands::report::{Job, sockets};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::header;
use crate::cli::input::Input;
use crate::cli::progress::Progress;
use crate::cli::symbols::replay;

/// Bytes of another command's text that are shown.
const MOST: u64 = 16 << 20;
/// The options that say where names are looked for.
const NAMING: &[&str] = &["vmlinux", "kallsyms", "symfs"];
/// What a recording begins with.
const MAGIC: &[u8] = b"PERFILE2";

/// Answers until the browser is gone. Functions are looked for when one is asked for.
pub(super) fn answer(
    job: &Job<'_>,
    input: &Input,
    data: &PerfData<'_>,
    news: &Sender<News>,
    asked: &Receiver<Request>,
) {
    let server = Server {
        job,
        input,
        data,
        news,
    };
    while let Some(request) = server.serve(asked, None) {
        let served = with_functions(job, input, data, |annotator| {
            server.reply(request, Some(annotator));
            server.serve(asked, Some(annotator));
        });
        if let Err(error) = served
            && news.send(News::Said(error.text())).is_err()
        {
            return;
        }
    }
}

/// Counts the samples of a report by function.
fn with_functions<R>(
    job: &Job<'_>,
    input: &Input,
    data: &PerfData<'_>,
    with: impl FnOnce(&Annotator<'_, '_>) -> R,
) -> Result<R, CliError> {
    let jobs = job.settings.jobs;
    let replay = replay(data, jobs, &Progress::silent())?;
    let parallelism = parallelism(&replay).map(Arc::new);
    let sockets = sockets(data.described());
    let selected = job
        .selection
        .of(&replay, &sockets, parallelism.as_ref(), jobs)?;
    let symbols = &job.settings.symbols;
    let counting = Counting {
        replay: &replay,
        input,
        resolver: &symbols.resolver(job.context, replay.world(), data.features()),
        select: selected.as_ref().map(|selected| selected as &dyn Select),
        request: &job.code,
        jobs,
    };
    counting.with(with)
}

/// What answers are made of.
struct Server<'s> {
    job: &'s Job<'s>,
    input: &'s Input,
    data: &'s PerfData<'s>,
    news: &'s Sender<News>,
}

impl Server<'_> {
    /// Answers until the browser is gone, or until something is asked for that needs an annotator; returns that.
    fn serve(
        &self,
        asked: &Receiver<Request>,
        annotator: Option<&Annotator<'_, '_>>,
    ) -> Option<Request> {
        for request in asked {
            if matches!(request, Request::Left(_)) {
                continue;
            }
            let is_of_functions = matches!(request, Request::Annotate(_) | Request::Map(_));
            if annotator.is_none() && is_of_functions {
                return Some(request);
            }
            if !self.reply(request, annotator) {
                return None;
            }
        }
        None
    }

    /// Answers; whether somebody is left to hear it.
    fn reply(&self, request: Request, annotator: Option<&Annotator<'_, '_>>) -> bool {
        let answer = self.answer(request, annotator);
        let answer = answer.unwrap_or_else(|error| News::Said(error.text()));
        self.news.send(answer).is_ok()
    }

    fn others(&self) -> Others<'_> {
        Others {
            matches: self.job.matches,
            context: self.job.context,
            path: &self.input.path,
        }
    }

    fn answer(
        &self,
        request: Request,
        annotator: Option<&Annotator<'_, '_>>,
    ) -> Result<News, CliError> {
        if let Some(answer) = annotator.and_then(|annotator| annotator.answer(&request)) {
            return answer;
        }
        match request {
            Request::Header => self.header(),
            Request::Samples(place) => self.others().samples(place.as_ref()),
            Request::Recordings => recordings(),
            Request::Save(text) => save(&text),
            _ => Ok(News::Said(
                "That is of what runs now: 'top' shows it.".to_owned(),
            )),
        }
    }

    fn header(&self) -> Result<News, CliError> {
        let options = HeaderOptions {
            full: true,
            ..header::options(self.input.changed)
        };
        let mut text = Vec::new();
        write_header(&mut text, self.data, &options)?;
        Ok(shown("Header information", &text))
    }
}

/// Other commands on the same recording, for what they print.
pub(in crate::cli::commands) struct Others<'o> {
    pub(in crate::cli::commands) matches: &'o ArgMatches,
    pub(in crate::cli::commands) context: &'o Context,
    /// The recording.
    pub(in crate::cli::commands) path: &'o Path,
}

impl Others<'_> {
    /// The samples one by one: all, or those of a function.
    pub(in crate::cli::commands) fn samples(
        &self,
        place: Option<&Place>,
    ) -> Result<News, CliError> {
        match place {
            None => self.other("Samples", &["script"]),
            Some(place) => {
                let title = format!("Samples of {}", place.symbol);
                self.other(&title, &["script", "-S", &place.symbol])
            }
        }
    }

    /// What another command says of this recording, as far as it fits on a screen that is scrolled.
    fn other(&self, title: &str, words: &[&str]) -> Result<News, CliError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).arg("-i").arg(self.path);
        for option in NAMING {
            if let Some(value) = self.matches.get_one::<String>(option) {
                command.arg(format!("--{option}={value}"));
            }
        }
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut text = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MOST).read_to_end(&mut text)?;
        }
        let output = child.wait_with_output()?;
        if text.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Ok(News::Said(said));
        }
        let name = self.context.program;
        Ok(shown(
            &format!("{title} ({name} {})", words.join(" ")),
            &text,
        ))
    }
}

fn shown(title: &str, text: &[u8]) -> News {
    let lines = String::from_utf8_lossy(text);
    let lines = lines.lines().map(str::to_owned).collect();
    News::Shown(Shown::new(Text::new(title, lines)))
}

/// Recordings in the working directory.
fn recordings() -> Result<News, CliError> {
    let mut names = Vec::new();
    let folder = Folder::open(Path::new("."))?;
    for name in folder.names()? {
        let mut start = [0; 8];
        let file = folder.open_file(&name);
        let read = file.and_then(|mut file| file.read_exact(&mut start));
        if read.is_ok() && start == *MAGIC {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(match names.is_empty() {
        true => News::Said("There are no recordings in the working directory.".to_owned()),
        false => News::Recordings(names),
    })
}

/// Writes the first of perf.hist.0, perf.hist.1, … that is not there.
pub(in crate::cli::commands) fn save(text: &str) -> Result<News, CliError> {
    let folder = Folder::open(Path::new("."))?;
    for number in 0.. {
        let name = format!("perf.hist.{number}");
        match folder.create_file(name.as_ref(), 0o666) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                return Ok(News::Said(format!("{name} was written.")));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let error = anyhow::Error::new(error).context(format!("failed to write {name}"));
                return Err(error.into());
            }
        }
    }
    Ok(News::Said("There is no name left for a file.".to_owned()))
}
