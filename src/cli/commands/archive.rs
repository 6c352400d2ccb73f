//! `rperf archive`: the objects that a recording needs, in one file for another machine.

mod member;
mod pack;
mod unpack;

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_buildid_cache::Cache;
use rperf_safefs::{Folder, Opened as Found, write_whole};
use rperf_symbol::{BuildId, Files as _, build_id_of_elf};
use rperf_sys::{uname, unix_time, utc_offset};
use rperf_view::header::stamp;
use rperf_wire::name_path;

use self::pack::{Archive, Content};
use self::unpack::{Unpacked, Unpacker};
use super::buildid_list::{Object, hit_objects};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::files::DiskFiles;
use crate::cli::input::{DEFAULT, Opened};
use crate::cli::options::{flag, switch};
use crate::cli::spool::Spool;

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
                .help("read the file whoever owns it; with --unpack, write over a recording"),
        )
        .arg(switch("all").help("pack the recording, too: into perf.all-HOST-TIME.tar.bz2"))
        .arg(switch("unpack").help(
            "unpack an archive: objects into the build-id cache, a recording into the current folder",
        ))
        .arg(Arg::new("file").num_args(0..=1).value_name("file"))
}

/// Packs or unpacks.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let on = |name| flag(matches, name) == Some(true);
    match (on("all"), on("unpack")) {
        (true, true) => Err(CliError::usage("--all and --unpack exclude each other")),
        (false, true) => run_unpack(matches, context),
        (all, false) => run_pack(matches, context, all),
    }
}

/// Writes the archive. What cannot be packed is named, and the rest is packed.
fn run_pack(matches: &ArgMatches, context: &Context, all: bool) -> Result<Exit, CliError> {
    let file = matches
        .get_one::<String>("file")
        .map_or(DEFAULT, String::as_str);
    let force = flag(matches, "force") == Some(true);
    let input = Opened::named(Some(file.into()), force, context)?.whole(context)?;
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
    let time = u64::try_from(input.changed).unwrap_or_default();
    let name = match all {
        true => name_of_all()?,
        false => format!("{file}.tar.bz2"),
    };
    let packed = write_whole(Path::new(&name), |output| match all {
        true => pack_all(output, Path::new(file), (time, &objects), context),
        false => pack(output, (time, &objects), context),
    });
    // What is not in it.
    let missing = packed.map_err(|error| anyhow::Error::new(error).context(name.clone()))?;
    for object in &missing {
        context.warn(format_args!("{object}: neither cached nor installed"));
    }
    let program = context.program;
    let mut out = context.stdout();
    let unpacking = match all {
        true => format!("{program} archive --unpack {name}"),
        false => format!("tar xvf {name} -C ~/.debug"),
    };
    writeln!(out, "Now please run:\n\n$ {unpacking}\n")?;
    writeln!(out, "wherever you need to run '{program} report' on.")?;
    out.flush()?;
    Ok(match missing.is_empty() {
        true => Exit::Ok,
        false => Exit::Failure(1),
    })
}

/// `perf.all-HOST-20261121-093000.tar.bz2`, in the time of this machine.
fn name_of_all() -> std::io::Result<String> {
    let now = i64::try_from(unix_time()).unwrap_or_default();
    let stamp = stamp(now.saturating_add(utc_offset(now)));
    Ok(format!("perf.all-{}-{stamp}.tar.bz2", uname()?.nodename))
}

/// The recording, and the archive of its objects inside.
fn pack_all(
    output: &mut dyn Write,
    recording: &Path,
    (time, objects): (u64, &[Object]),
    context: &Context,
) -> std::io::Result<Vec<String>> {
    let mut inner = Spool::new(context);
    let missing = pack(&mut inner, (time, objects), context)?;
    let mut archive = Archive::new(output, time);
    archive.file(recording)?;
    archive.bytes(unpack::SYMBOLS, &inner.finish()?)?;
    archive.finish()?;
    Ok(missing)
}

fn pack(
    output: &mut dyn Write,
    (time, objects): (u64, &[Object]),
    context: &Context,
) -> std::io::Result<Vec<String>> {
    let mut archive = Archive::new(output, time);
    let cache = context.buildid_dir().map(Cache::new);
    let mut missing = Vec::new();
    for Object { name, id, .. } in objects {
        let Some(id) = id else {
            missing.push(name.clone());
            continue;
        };
        let hexadecimal = id.to_string();
        let cached = cache.as_ref().and_then(|cache| cache.object(&hexadecimal));
        match (cached, installed(&name_path(name), id)) {
            (Some(cached), _) => {
                let contents = Content::of_folder(&cached.folder)?;
                archive.object(&cached.name, &hexadecimal, &contents)?;
            }
            (None, Some(content)) => {
                archive.object(&name_path(name), &hexadecimal, &[content])?;
            }
            (None, None) => missing.push(format!("{hexadecimal} {name}")),
        }
    }
    archive.finish()?;
    Ok(missing)
}

/// Unpacks one archive, and says what came of it.
fn run_unpack(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let program = context.program;
    let name = match matches.get_one::<String>("file") {
        Some(name) => PathBuf::from(name),
        None => only_archive(context)?,
    };
    let given = matches.contains_id("file");
    let file = open(&name, given).map_err(|error| {
        let message = format!("failed to open {}", name.display());
        anyhow::Error::new(error).context(message)
    })?;
    let cache = context.buildid_dir();
    let cache = cache.filter(|cache| cache != Path::new("/dev/null"));
    let cache = cache.ok_or_else(|| {
        CliError::message(255, "there is no build-id cache to unpack into")
            .hint("--buildid-dir DIR before the command names one; so do HOME and buildid.dir")
    })?;
    let root = Folder::open_own_or_create(&cache, 0o777)
        .map_err(|error| anyhow::Error::new(error).context(cache.display().to_string()))?;
    let unpacker = Unpacker {
        cache: &root,
        here: &Folder::open(Path::new("."))?,
        force: flag(matches, "force") == Some(true),
    };
    let mut done = Unpacked::default();
    let ended = unpacker.unpack(BufReader::new(file), &mut done);
    for refused in &done.refused {
        context.warn(format_args!("left out {refused}"));
    }
    let mut out = context.stdout();
    for recording in &done.recordings {
        let shown = recording.display();
        writeln!(
            out,
            "unpacked {shown}: '{program} report -i {shown}' reads it"
        )?;
    }
    let (objects, cache) = (done.objects, cache.display());
    writeln!(out, "unpacked {objects} objects into {cache}")?;
    out.flush()?;
    if let Err(error) = ended {
        let error = anyhow::Error::new(error).context(name.display().to_string());
        return Err(CliError::failure(255, error).hint("what came before that was unpacked"));
    }
    Ok(match done.refused.is_empty() {
        true => Exit::Ok,
        false => Exit::Failure(1),
    })
}

/// Opens an archive: a file, or what else the user gave.
fn open(path: &Path, given: bool) -> std::io::Result<File> {
    let found = Found::find(path)?;
    match given && !found.metadata().is_file() && !found.metadata().is_dir() {
        true => found.as_it_is(),
        false => found.for_reading(),
    }
}

/// The one file in the current folder that is called like an archive.
fn only_archive(context: &Context) -> Result<PathBuf, CliError> {
    let names = Folder::open(Path::new("."))?.names()?.into_iter();
    let names = names.filter_map(|name| name.into_string().ok());
    let is_archive = |name: &String| name.starts_with("perf") && name.ends_with(".tar.bz2");
    let mut found: Vec<String> = names.filter(is_archive).collect();
    found.sort();
    match &found[..] {
        [name] => Ok(PathBuf::from(name)),
        _ => {
            let program = context.program;
            let listed = match found.is_empty() {
                true => "no perf*.tar.bz2 is in this folder".to_owned(),
                false => format!("there are several: {}", found.join(", ")),
            };
            let message = format!("{program} archive --unpack: {listed}");
            Err(CliError::message(1, message).hint("a file name says which one is meant"))
        }
    }
}

/// The file at this path, if it is of this build.
fn installed(path: &Path, id: &BuildId) -> Option<Content> {
    let bytes = DiskFiles.read(path).ok().filter(|_| path.is_absolute())?;
    let found = build_id_of_elf(&bytes)?;
    found.matches(id).then(|| Content::new("elf", path))
}
