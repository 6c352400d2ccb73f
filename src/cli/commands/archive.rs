//! `rperf archive`: packs the objects that a recording needs into one file, for analysis on another machine.

mod member;
mod pack;
mod size;
mod unpack;

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_buildid_cache::Cache;
use rperf_names::counted;
use rperf_safefs::{Folder, FoundFile, write_atomic};
use rperf_symbol::{BuildId, Files as _, build_id_of_elf};
use rperf_sys::{uname, unix_time, utc_offset};
use rperf_view::header::stamp;
use rperf_wire::name_path;

use self::pack::{Archive, PackedFile};
use self::unpack::{ArchiveSummary, ArchiveUnpacker};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::{DEFAULT, InputName, OpenedInput, STDIN};
use crate::cli::options::{flag, switch};
use crate::cli::shared::namespace::NO_CACHE;
use crate::cli::shared::recorded_objects::{Objects, RecordedObject, hit_objects};
use rperf_input::DiskFiles;

const ABOUT: &str = "\
Packs the programs, libraries and kernel symbols that the samples of a recording refer to into FILE.tar.bz2. After \
unpacking it into ~/.debug on another machine, 'report' and 'script' show the same symbols there. Objects are taken from \
the build-id cache, or from their installed path if the build-id matches.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("archive")
        .long_about(ABOUT)
        .arg(
            switch("force")
                .short('f')
                .help("do not check the owner of the file; with --unpack, overwrite an existing recording"),
        )
        .arg(switch("all").help("also pack the recording, into perf.all-HOST-TIME.tar.bz2"))
        .arg(switch("unpack").help(
            "unpack an archive: objects into the build-id cache, the recording into the current directory",
        ))
        .arg(switch("size").help("show the size of each object before compression, and write nothing"))
        .arg(Arg::new("file").num_args(0..=1).value_name("file"))
}

/// Packs or unpacks an archive.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let is_set = |name| flag(matches, name) == Some(true);
    match (is_set("all"), is_set("unpack")) {
        (true, true) => Err(CliError::usage("--all and --unpack exclude each other")),
        (false, true) if is_set("size") => {
            Err(CliError::usage("--size and --unpack exclude each other"))
        }
        (false, true) => run_unpack(matches, context),
        (all, false) => run_pack(matches, context, all),
    }
}

/// Writes the archive, or prints sizes with `--size`. Objects that can't be packed are listed; the others are packed. With `all`
/// (`--all`), the recording is packed too.
fn run_pack(matches: &ArgMatches, context: &Context, all: bool) -> Result<ExitStatus, CliError> {
    let given = matches.get_one::<String>("file");
    let file = given.map_or(DEFAULT, String::as_str);
    if all {
        require_one_file(Path::new(file))?;
    }
    let input_name = InputName {
        given: given.map(PathBuf::from),
        // Without a name, stdin is not read even if it is a pipe. The name `-` still means stdin.
        may_be_stdin: false,
        force: flag(matches, "force") == Some(true),
        // For the advice to record first, if there is no perf.data.
        recorder: "record",
    };
    // If the recording is a pipe (`-` or a FIFO), `complete` reads it to its end.
    let input = OpenedInput::of(input_name, context)?.complete(context)?;
    let data = input.parse(context)?;
    let Objects {
        rows: objects,
        damage,
    } = hit_objects(&input, &data, context)?;
    if objects.iter().all(|object| object.id.is_none()) {
        return Err(no_build_ids(&objects, context));
    }
    let contents = ArchiveContents {
        time: u64::try_from(input.mtime).unwrap_or_default(),
        objects: &objects,
    };
    if flag(matches, "size") == Some(true) {
        let recording = all.then(|| Path::new(file));
        size::print(recording, contents, context)?;
        // `damage` is an error if not all records could be read.
        damage?;
        return Ok(ExitStatus::Ok);
    }
    let name = match all {
        true => name_of_all()?,
        false => format!("{file}.tar.bz2"),
    };
    let packed = write_atomic(Path::new(&name), |output| match all {
        true => pack_all(output, Path::new(file), contents, context),
        false => pack(output, contents, context),
    });
    let missing = packed.map_err(|error| anyhow::Error::new(error).context(name.clone()))?;
    warn_of_missing(&missing, context);
    print_unpacking(&name, all, context)?;
    // `damage` is an error if not all records could be read: then objects may be missing from the archive.
    damage?;
    Ok(match missing.is_empty() {
        true => ExitStatus::Ok,
        false => ExitStatus::Failure(1),
    })
}

/// Prints how to unpack the archive `name`.
fn print_unpacking(name: &str, all: bool, context: &Context) -> std::io::Result<()> {
    let program = context.program;
    let mut out = context.stdout();
    let unpacking = match all {
        true => format!("{program} archive --unpack {name}"),
        false => format!("tar xvf {name} -C ~/.debug"),
    };
    writeln!(out, "Now please run:\n\n$ {unpacking}\n")?;
    writeln!(out, "wherever you need to run '{program} report' on.")?;
    out.flush()
}

/// Checks that the recording can be a member of an archive: that it is a single file.
fn require_one_file(recording: &Path) -> Result<(), CliError> {
    const TO_FILE: &str = "write the recording to a file first";
    const TO_COPY: &str = "pack only the objects, without --all, and copy the directory";
    let refused = |name: String, kind, hint| {
        let message = format!("{name}--all packs a recording that is one file, and this is {kind}");
        Err(CliError::message(255, message).hint(hint))
    };
    if recording == Path::new(STDIN) {
        return refused(String::new(), "stdin", TO_FILE);
    }
    let name = format!("{}: ", recording.display());
    match FoundFile::find(recording) {
        Ok(found) if found.is_fifo() => refused(name, "a FIFO", TO_FILE),
        Ok(found) if found.metadata().is_dir() => refused(name, "a directory", TO_COPY),
        // Opening the recording reports other problems.
        _ => Ok(()),
    }
}

/// Warns of the objects that are not in the archive.
fn warn_of_missing(missing: &[&RecordedObject], context: &Context) {
    for object in missing {
        let why = match object.id {
            Some(_) => "neither in the build-id cache nor installed",
            None => "no build-id is recorded",
        };
        context.warn(format_args!("{}: {why}", missing_name(object)));
    }
}

/// Returns the error for a recording whose sampled `objects` all lack build-ids.
fn no_build_ids(objects: &[RecordedObject], context: &Context) -> CliError {
    let program = context.program;
    let why = match objects.is_empty() {
        true => "no sample is in a known object",
        false => {
            "the recording has no build-ids: it was made with -B, or written to a pipe by perf"
        }
    };
    let message = format!("{program} archive: no build-ids found");
    CliError::message(1, message).hint(why)
}

/// Returns the name of an archive of `--all`: `perf.all-HOST-20261121-093000.tar.bz2`, with the present local time.
fn name_of_all() -> std::io::Result<String> {
    let now = i64::try_from(unix_time()).unwrap_or_default();
    let stamp = stamp(now.saturating_add(utc_offset(now)));
    Ok(format!("perf.all-{}-{stamp}.tar.bz2", uname()?.nodename))
}

/// The objects of an archive, and the time of its members.
#[derive(Clone, Copy)]
struct ArchiveContents<'c> {
    /// Modification time of members that are not copies of files, in seconds since 1970.
    time: u64,
    objects: &'c [RecordedObject],
}

/// Packs the recording together with the archive of its objects. Returns the objects that could not be packed.
fn pack_all<'c>(
    output: &mut dyn Write,
    recording: &Path,
    contents: ArchiveContents<'c>,
    context: &Context,
) -> std::io::Result<Vec<&'c RecordedObject>> {
    // The archive of the objects is a member: it is collected in memory or in a temporary file first.
    let mut inner = context.spool();
    let missing = pack(&mut inner, contents, context)?;
    let mut archive = Archive::new(output, contents.time);
    archive.add_file(recording)?;
    archive.add_bytes(unpack::SYMBOLS_ARCHIVE, &inner.finish()?)?;
    archive.finish()?;
    Ok(missing)
}

/// Packs the objects. Returns those that could not be packed: without a build-id, or neither in the cache nor installed.
fn pack<'c>(
    output: &mut dyn Write,
    contents: ArchiveContents<'c>,
    context: &Context,
) -> std::io::Result<Vec<&'c RecordedObject>> {
    let mut archive = Archive::new(output, contents.time);
    let cache = context.buildid_dir().map(Cache::new);
    let mut missing = Vec::new();
    for object in contents.objects {
        match PackedObject::of(object, cache.as_ref())? {
            Some(packed) => archive.add_object(&packed.name, &packed.id, &packed.files)?,
            None => missing.push(object),
        }
    }
    archive.finish()?;
    Ok(missing)
}

/// An object to pack, with its files from the cache or its installed file.
struct PackedObject {
    name: PathBuf,
    /// The build-id in hexadecimal.
    id: String,
    files: Vec<PackedFile>,
}

impl PackedObject {
    /// Finds the files of an object. `None` if it has no build-id, or is neither in the cache nor installed.
    fn of(object: &RecordedObject, cache: Option<&Cache>) -> std::io::Result<Option<Self>> {
        let Some(build_id) = &object.id else {
            return Ok(None);
        };
        let id = build_id.to_string();
        let cached = cache.and_then(|cache| cache.object(&id));
        if let Some(cached) = cached {
            let files = PackedFile::of_folder(&cached.folder)?;
            let name = cached.name;
            return Ok(Some(Self { name, id, files }));
        }
        let name = name_path(&object.name).into_owned();
        let file = installed(&name, build_id);
        let files = file.map(|file| vec![file]);
        Ok(files.map(|files| Self { name, id, files }))
    }
}

/// Returns the build-id, if recorded, and the name of an object that cannot be packed.
fn missing_name(object: &RecordedObject) -> String {
    match &object.id {
        Some(id) => format!("{id} {}", object.name),
        None => object.name.clone(),
    }
}

/// Unpacks one archive and reports the result.
fn run_unpack(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let program = context.program;
    let name = match matches.get_one::<String>("file") {
        Some(name) => PathBuf::from(name),
        None => only_archive(context)?,
    };
    let is_named = matches.contains_id("file");
    let file = open(&name, is_named).map_err(|error| {
        let message = format!("failed to open {}", name.display());
        anyhow::Error::new(error).context(message)
    })?;
    let cache = context.buildid_dir();
    // `NO_CACHE` (/dev/null) as its directory disables the cache.
    let cache = cache.filter(|cache| cache != Path::new(NO_CACHE));
    let cache = cache.ok_or_else(|| {
        CliError::message(255, "no directory for the build-id cache to unpack into")
            .hint("set one: --buildid-dir DIR before the command, the setting buildid.dir, or HOME")
    })?;
    // A link to the directory must be owned by root or the user.
    let root = Folder::open_own_or_create(&cache, 0o777)
        .map_err(|error| anyhow::Error::new(error).context(cache.display().to_string()))?;
    let unpacker = ArchiveUnpacker {
        cache: &root,
        recording_folder: &Folder::open(Path::new("."))?,
        force: flag(matches, "force") == Some(true),
    };
    let mut summary = ArchiveSummary::default();
    let result = unpacker.unpack(BufReader::new(file), &mut summary);
    for refused in &summary.refused {
        context.warn(format_args!("skipped {refused}"));
    }
    let mut out = context.stdout();
    for recording in &summary.recordings {
        let shown = recording.display();
        writeln!(
            out,
            "unpacked {shown}: '{program} report -i {shown}' reads it"
        )?;
    }
    let (objects, cache) = (summary.object_count, cache.display());
    writeln!(
        out,
        "unpacked {} into {cache}",
        counted(objects as u64, "object")
    )?;
    out.flush()?;
    if let Err(error) = result {
        let error = anyhow::Error::new(error).context(name.display().to_string());
        return Err(
            CliError::failure(255, error).hint("the members before this error were unpacked")
        );
    }
    Ok(match summary.refused.is_empty() {
        true => ExitStatus::Ok,
        false => ExitStatus::Failure(1),
    })
}

/// Opens an archive: a regular file or, if the user named it (`is_named`), a file of any type but a directory.
fn open(path: &Path, is_named: bool) -> std::io::Result<File> {
    let found = FoundFile::find(path)?;
    match is_named && !found.metadata().is_file() && !found.metadata().is_dir() {
        true => found.for_reading_any_type(),
        false => found.for_reading(),
    }
}

/// Returns the only name in the current directory of the form `perf*.tar.bz2`.
///
/// # Errors
///
/// Status 1: there is none, or there are several.
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
            let (problem, hint) = match found.is_empty() {
                true => (
                    "no perf*.tar.bz2 in the current directory".to_owned(),
                    "name the archive after --unpack",
                ),
                false => (
                    format!("several archives: {}", found.join(", ")),
                    "name one of them",
                ),
            };
            let message = format!("{program} archive --unpack: {problem}");
            Err(CliError::message(1, message).hint(hint))
        }
    }
}

/// Returns the file at `path` if the path is absolute and the file's build-id is `id`. In the cache, an object file has the name
/// `elf`.
fn installed(path: &Path, id: &BuildId) -> Option<PackedFile> {
    if !path.is_absolute() {
        return None;
    }
    let bytes = DiskFiles.read(path).ok()?;
    let file_id = build_id_of_elf(&bytes)?;
    file_id.matches(id).then(|| PackedFile::new("elf", path))
}
