//! `rperf archive`: the objects that a recording needs, in one file for another machine.

mod pack;

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_session::Cache;
use rperf_symbol::{BuildId, Files as _, build_id_of_elf};

use self::pack::{Archive, Content};
use super::buildid_list::{Object, hit_objects};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::files::DiskFiles;
use crate::cli::input::{DEFAULT, Opened};
use crate::cli::options::{flag, not_yet, switch};

const ABOUT: &str = "\
Packs the programs, libraries and kernel symbols that the samples of a recording hit into FILE.tar.bz2. Unpacked into ~/.debug \
on another machine, it lets 'report' and 'script' find there what was found here. They come out of the build-id cache, or from \
where they are installed if that is the same build.";

/// The options.
pub(super) fn command() -> Command {
    Command::new("archive")
        .long_about(ABOUT)
        .arg(
            switch("force")
                .short('f')
                .help("read the file whoever owns it"),
        )
        .arg(not_yet("all", "copy the recording beside the archive"))
        .arg(not_yet("unpack", "tar unpacks archives"))
        .arg(Arg::new("file").num_args(0..=1).value_name("file"))
}

/// Writes the archive. What cannot be packed is named, and the rest is packed.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let file = matches
        .get_one::<String>("file")
        .map_or(DEFAULT, String::as_str);
    let force = flag(matches, "force") == Some(true);
    let input = match Opened::named(Some(file.into()), force, context)? {
        Opened::Whole(input) => input,
        Opened::Stream(stream) => stream.spool(context)?,
    };
    let data = input.parse(context)?;
    let objects = hit_objects(&input, &data, context)?;
    if objects.iter().all(|object| object.id.is_none()) {
        let program = context.program;
        let why = match objects.is_empty() {
            true => "no sample hit a known object",
            false => "the recording was made with -B, or by perf into a pipe",
        };
        let message = format!("{program} archive: no build-ids found");
        return Err(CliError::message(1, message).hint(why));
    }
    let name = format!("{file}.tar.bz2");
    let time = u64::try_from(input.changed).unwrap_or_default();
    let missing = write(Path::new(&name), time, &objects, context)
        .map_err(|error| anyhow::Error::new(error).context(name.clone()))?;
    for object in &missing {
        context.warn(format_args!("{object}: neither cached nor installed"));
    }
    let program = context.program;
    let mut out = context.stdout();
    writeln!(out, "Now please run:\n\n$ tar xvf {name} -C ~/.debug\n")?;
    writeln!(out, "wherever you need to run '{program} report' on.")?;
    out.flush()?;
    Ok(match missing.is_empty() {
        true => Exit::Ok,
        false => Exit::Failure(1),
    })
}

/// Writes the archive under this name, whole or not at all. Gives what is not in it.
fn write(
    name: &Path,
    time: u64,
    objects: &[Object],
    context: &Context,
) -> std::io::Result<Vec<String>> {
    let mut temporary = name.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = File::create(&temporary).and_then(|file| {
        let mut archive = Archive::new(BufWriter::new(file), time);
        let missing = pack(&mut archive, objects, context)?;
        archive.finish()?.flush()?;
        fs::rename(&temporary, name)?;
        Ok(missing)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn pack(
    archive: &mut Archive<BufWriter<File>>,
    objects: &[Object],
    context: &Context,
) -> std::io::Result<Vec<String>> {
    let cache = context.buildid_dir().map(Cache::new);
    let mut missing = Vec::new();
    for Object { name, id, .. } in objects {
        let Some(id) = id else {
            missing.push(name.clone());
            continue;
        };
        let hexadecimal = id.to_string();
        let cached = cache.as_ref().and_then(|cache| cache.object(&hexadecimal));
        match (cached, installed(Path::new(name), id)) {
            (Some(cached), _) => {
                let contents = Content::of_folder(&cached.folder)?;
                archive.object(&cached.name, &hexadecimal, &contents)?;
            }
            (None, Some(content)) => {
                archive.object(Path::new(name), &hexadecimal, &[content])?;
            }
            (None, None) => missing.push(format!("{hexadecimal} {name}")),
        }
    }
    Ok(missing)
}

/// The file at this path, if it is of this build.
fn installed(path: &Path, id: &BuildId) -> Option<Content> {
    let bytes = DiskFiles.read(path).ok().filter(|_| path.is_absolute())?;
    let found = build_id_of_elf(&bytes)?;
    found.matches(id).then(|| Content::new("elf", path))
}
