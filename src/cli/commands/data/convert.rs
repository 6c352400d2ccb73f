//! `rperf data convert`: a recording in the format of another tool.

mod json;
mod target;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::Path;

use clap::{Arg, ArgMatches};
use flate2::Compression;
use flate2::write::GzEncoder;
use rperf_export::{Gather, Profile, firefox, perfetto, pprof, speedscope};
use rperf_perfdata::{Described, PerfData};
use rperf_replay::Replay;
use rperf_resolve::{Resolver, UserStacks};

use self::target::{Format, Target};
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, Exit};
use crate::cli::findings::{conclude, warn_of_symbols};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::{flag, not_yet, switch, value};
use crate::cli::product::write_to;
use crate::cli::progress::Progress;
use crate::cli::stacks::{copied, has_copies, stack_options, warn_of_cut};
use crate::cli::symbol_options::Symbols;
use crate::cli::symbols::{replay, shows_inlines};

/// Options of conversion alone.
pub(super) fn options() -> Vec<Arg> {
    let mut options = vec![
        switch("all").help("records that are no samples too; not for any of these formats"),
        switch("tod").help("times of day; not for any of these formats"),
        not_yet(
            "to-ctf",
            "--to-json and --to-perfetto have the same samples",
        ),
    ];
    options.extend(Format::ALL.map(|format| value(format.option(), "file").help(format.help())));
    options
}

/// Refuses the options of conversion where nothing is converted.
pub(super) fn refuse(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let mut formats = Format::ALL.map(Format::option).into_iter();
    match formats.find(|option| matches.get_one::<String>(option).is_some()) {
        None => Ok(()),
        Some(option) => Err(CliError::usage(format!(
            "{} data check: --{option} is for 'data convert'",
            context.program
        ))),
    }
}

/// Writes the recording in the format that is asked for.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let target = Target::new(matches)?;
    if target.format == Format::Folded {
        return folded(matches, context, &target);
    }
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let jobs = jobs(matches, context)?;
    let progress = Progress::start(context, data.data().len());
    let replay = replay(&data, jobs, &progress)?;
    if replay.sample_counts().iter().sum::<u64>() == 0 && target.format != Format::Json {
        let message = format!("The {} data has no samples!", input.path.display());
        return Err(CliError::message(255, message));
    }
    let conversion = Conversion {
        matches,
        context,
        input: &input,
        data: &data,
        replay: &replay,
        jobs,
    };
    let samples = conversion.write(&target)?;
    conclude(&input.path, &replay.diagnostics(), context)?;
    target.tell(context, &input.path, samples);
    Ok(Exit::Ok)
}

/// What flame graphs are made of is what 'flamegraph' writes.
fn folded(matches: &ArgMatches, context: &Context, target: &Target) -> Result<Exit, CliError> {
    let mut words: Vec<OsString> = vec!["--folded".into(), "-o".into(), target.path.into()];
    for option in ["input", "vmlinux", "kallsyms", "symfs", "debuginfod"] {
        if let Some(value) = matches.get_one::<String>(option) {
            words.push(format!("--{option}={value}").into());
        }
    }
    for option in [
        "force",
        "quiet",
        "inline",
        "ignore-vmlinux",
        "demangle",
        "demangle-kernel",
        "mark-cut",
    ] {
        match flag(matches, option) {
            Some(true) => words.push(format!("--{option}").into()),
            Some(false) => words.push(format!("--no-{option}").into()),
            None => {}
        }
    }
    if let Some(jobs) = matches.get_one::<u64>("jobs") {
        words.push(format!("--jobs={jobs}").into());
    }
    dispatch(context, OsStr::new("flamegraph"), &words)
}

/// A recording on its way.
struct Conversion<'c> {
    matches: &'c ArgMatches,
    context: &'c Context,
    input: &'c Input,
    data: &'c PerfData<'c>,
    replay: &'c Replay<'c>,
    jobs: NonZeroUsize,
}

impl Conversion<'_> {
    /// Writes the file; the samples that are in it.
    fn write(&self, target: &Target<'_>) -> Result<u64, CliError> {
        let Self { context, data, .. } = *self;
        let symbols = Symbols::new(self.matches, context)?;
        let resolver = symbols.resolver(context, self.replay.world(), data.features());
        let limit = has_copies(data.events()).then_some(usize::MAX);
        let stacks = UserStacks::new(&resolver, stack_options(data.described(), limit));
        let samples = match target.format {
            Format::Json => self.write_json(target, &resolver, &stacks)?,
            _ => {
                let profile = self.profile(&resolver, &stacks)?;
                self.write_profile(target, &profile)?;
                let rows = profile.tracks.iter().map(|track| track.rows.len() as u64);
                rows.sum()
            }
        };
        warn_of_symbols(context, &resolver);
        warn_of_cut(context, &stacks.summary(), copied(data.events()));
        Ok(samples)
    }

    fn profile(
        &self,
        resolver: &Resolver<'_>,
        stacks: &UserStacks<'_, '_>,
    ) -> Result<Profile, CliError> {
        let asked = flag(self.matches, "inline");
        let gather = Gather::new(resolver, self.data.described(), |event| {
            shows_inlines(&event.attr, asked)
        });
        let gathered = self.replay.fold(self.jobs, || stacks.fold(gather.worker()));
        Ok(gathered.into_inner().finish())
    }

    fn write_profile(&self, target: &Target<'_>, profile: &Profile) -> Result<(), CliError> {
        let recording = self.data.described();
        let features = recording.features;
        let start = start(recording, profile);
        let exporter = format!("{} {}", self.context.program, env!("CARGO_PKG_VERSION"));
        let name = self.input.path.to_string_lossy();
        write_to(Path::new(target.path), self.context, |out| {
            match target.format {
                Format::Pprof => return pprof::write(profile, start, out),
                Format::Perfetto => return perfetto::write(profile, out),
                _ => {}
            }
            let (arch, cpu) = (features.arch(), features.cpudesc());
            let command_line = features.cmdline().map(|words| words.join(" "));
            let about = firefox::About {
                product: &name,
                exporter: &exporter,
                arch: arch.as_deref(),
                cpu: cpu.as_deref(),
                command_line: command_line.as_deref(),
                start,
            };
            compressed(target.path, out, |out| match target.format {
                Format::Firefox => firefox::write(profile, &about, out),
                _ => speedscope::write(profile, &name, &exporter, out),
            })
        })
    }
}

/// Compresses what goes to a file whose name says so.
fn compressed(
    path: &str,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if !path.ends_with(".gz") {
        return write(out);
    }
    let mut out = GzEncoder::new(out, Compression::fast());
    write(&mut out)?;
    out.finish().map(drop)
}

/// When the first sample was taken, in nanoseconds since 1970, if the recording tells how its clock runs.
fn start(recording: Described<'_>, profile: &Profile) -> Option<i64> {
    let clock = recording.features.clock_data()?;
    let first = i128::from(profile.first_time());
    let since = first - i128::from(clock.clockid_time);
    i64::try_from(i128::from(clock.wall_clock) + since).ok()
}
