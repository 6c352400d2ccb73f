//! `rperf buildid-cache`: the cache of objects by build-id that recordings are read with later.

mod kernel;
mod missing;
mod present;
mod size;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use rperf_buildid_cache::{Cache, Cached, DEBUG_FILES, NewObject, debug_file};
use rperf_debuginfod::Client;
use rperf_symbol::{Part, Wanted};

use self::kernel::Kept as KeptKernel;
pub(super) use self::present::Namespace;
use self::present::Present;
use self::size::{Kept, surplus, told, total};
use super::record::parse_size;
use crate::cli::context::Context;
use crate::cli::debuginfod;
use crate::cli::error::{CliError, Exit};
use crate::cli::live::explain::reason;
use crate::cli::options::{counter, flag, list, number, switch, value};

const ABOUT: &str = "\
Keeps programs and libraries, by the build-ids in them, in a folder of their own (~/.debug, or where --buildid-dir and the \
setting buildid.dir say). There they are found when a recording is read after the installed files have changed. The cache is \
the same for Linux perf.";

/// What is done to the cache with a file.
#[derive(Debug, Clone, Copy)]
enum Change {
    Add,
    Remove,
    Purge,
    Update,
}

/// The options that change the cache, in the order in which they are done.
const CHANGES: [(&str, Change); 4] = [
    ("add", Change::Add),
    ("remove", Change::Remove),
    ("purge", Change::Purge),
    ("update", Change::Update),
];

/// What a cache that is switched off is called.
pub(super) const NO_CACHE: &str = "/dev/null";

/// The options, in perf's order.
pub(super) fn command() -> Command {
    let files = "file[,file...]";
    Command::new("buildid-cache")
        .long_about(ABOUT)
        .arg(list("add", files).short('a').help("add these files"))
        .arg(
            value("kcore", "file")
                .short('k')
                .help("add the kernel's code out of this file, /proc/kcore or a copy of it, with the kallsyms and modules beside it"),
        )
        .arg(
            list("remove", files)
                .short('r')
                .help("take these files out, as they are now"),
        )
        .arg(
            list("purge", files)
                .short('p')
                .help("take out all builds of the files at these paths"),
        )
        .arg(switch("purge-all").short('P').help("take everything out"))
        .arg(
            switch("list")
                .short('l')
                .help("print id and path of everything in the cache"),
        )
        .arg(
            value("missing", "file")
                .short('M')
                .help("print the objects of this recording that the cache lacks"),
        )
        .arg(
            switch("force")
                .short('f')
                .help("read the recording whoever owns it; with -k, add what is there already"),
        )
        .arg(
            list("update", files)
                .short('u')
                .help("add these files in place of what the cache has under their ids"),
        )
        .arg(debuginfod::option().help("ask these debuginfod servers for the debug files of what is added; without urls, those of DEBUGINFOD_URLS"))
        .arg(
            value("max-size", "size")
                .help("then take out what was used least recently, until the rest needs no more than this: 500M, 2G"),
        )
        .arg(
            value("target-ns", "pid")
                .value_parser(number)
                .help("the files are those that this process sees, in its mount namespace"),
        )
        .arg(counter("verbose").short('v').help("say what is done"))
}

/// Does all that is asked for, in this order: list, add, remove, purge, missing, update, kcore, and what makes room.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let limit = matches.get_one::<String>("max-size");
    let limit = limit.map(|word| {
        parse_size(word).ok_or_else(|| {
            CliError::usage(format!("--max-size: '{word}' is no size"))
                .hint("bytes with a unit: 100K, 500M, 2G; -P takes everything out")
        })
    });
    let limit = limit.transpose()?;
    let cache = Editor::new(matches, context)?;
    let on = |name| flag(matches, name) == Some(true);
    let mut done = vec![];
    if on("list") {
        cache.list()?;
        done.push(true);
    }
    if on("purge-all") {
        done.push(cache.purge_all()?);
    }
    for (option, change) in CHANGES {
        for file in files(matches, option) {
            let acted = cache.change(change, &file);
            if let Err(why) = &acted {
                let shown = file.display();
                context.note(format_args!("Couldn't {option} {shown}: {why}"));
            }
            done.push(acted.is_ok());
        }
    }
    if let Some(recording) = matches.get_one::<String>("missing") {
        missing::print(Path::new(recording), on("force"), &cache.cache, context)?;
        done.push(true);
    }
    if let Some(memory) = matches.get_one::<String>("kcore") {
        done.push(cache.keep_kernel(Path::new(memory), on("force")));
    }
    if let Some(limit) = limit {
        done.push(cache.shrink(limit)?);
    }
    if done.is_empty() {
        let program = context.program;
        let error = format!("{program} buildid-cache: nothing to do");
        return Err(CliError::usage(error).hint(format!(
            "'{program} buildid-cache -l' lists what there is, -a FILE adds to it"
        )));
    }
    context.stdout().flush()?;
    Ok(match done.iter().all(|done| *done) {
        true => Exit::Ok,
        false => Exit::Failure(1),
    })
}

/// The files of a list option.
fn files(matches: &ArgMatches, option: &str) -> Vec<PathBuf> {
    let lists = matches.get_many::<String>(option).unwrap_or_default();
    let files = lists.flat_map(|list| list.split(','));
    let named = files.filter(|file| !file.is_empty());
    named.map(PathBuf::from).collect()
}

/// The cache, and what is said about changes to it.
struct Editor<'c> {
    cache: Cache,
    context: &'c Context,
    verbose: bool,
    files: Namespace,
    servers: Option<Client>,
}

impl<'c> Editor<'c> {
    fn new(matches: &ArgMatches, context: &'c Context) -> Result<Self, CliError> {
        let root = context.buildid_dir();
        let root = root.filter(|root| root != Path::new(NO_CACHE));
        let root = root.ok_or_else(|| {
            CliError::message(255, "there is no build-id cache")
                .hint("--buildid-dir DIR before the command names one; so do HOME and buildid.dir")
        })?;
        let verbose = context.verbosity(matches) > 0;
        if verbose {
            context.note(format_args!("build-id cache: {}", root.display()));
        }
        Ok(Self {
            cache: Cache::new(root),
            context,
            verbose,
            files: Namespace::new(matches)?,
            servers: debuginfod::client(matches, "buildid-cache.debuginfod", context)?,
        })
    }

    fn objects(&self) -> Result<Vec<Cached>, CliError> {
        let shown = self.cache.root().display().to_string();
        let objects = self.cache.objects();
        objects.map_err(|error| anyhow::Error::new(error).context(shown).into())
    }

    fn list(&self) -> Result<(), CliError> {
        let mut out = self.context.stdout();
        for cached in self.objects()? {
            writeln!(out, "{} {}", cached.id, cached.name.display())?;
        }
        Ok(())
    }

    /// `Adding ID FILE: Ok`.
    fn say(&self, doing: &str, id: &str, file: &Path) {
        if self.verbose {
            let shown = file.display();
            self.context.note(format_args!("{doing} {id} {shown}: Ok"));
        }
    }

    fn put(&self, present: &Present) -> Result<(), String> {
        let id = present.id.to_string();
        let debug = self.debug_file(present, &id);
        let object = NewObject {
            path: &present.path,
            file: &present.file,
            id: &id,
            debug: debug.as_deref(),
            probes: Some(&present.probes),
        };
        self.cache.add(&object).map_err(|error| reason(&error))
    }

    /// The installed one, else what a server has.
    fn debug_file(&self, present: &Present, id: &str) -> Option<PathBuf> {
        debug_file(Path::new(DEBUG_FILES), id).or_else(|| {
            self.servers.as_ref()?.find(&Wanted {
                build_id: &present.id,
                part: Part::Debuginfo,
                object: &present.path,
            })
        })
    }

    fn change(&self, change: Change, file: &Path) -> Result<(), String> {
        match change {
            Change::Add => self.add(file),
            Change::Remove => self.remove(file),
            Change::Purge => self.purge(file),
            Change::Update => self.update(file),
        }
    }

    fn add(&self, file: &Path) -> Result<(), String> {
        let present = self.files.read(file)?;
        self.put(&present)?;
        self.say("Adding", &present.id.to_string(), file);
        Ok(())
    }

    fn remove(&self, file: &Path) -> Result<(), String> {
        let present = self.files.read(file)?;
        let cached = self.cache.object(&present.id.to_string());
        let cached = cached.ok_or_else(|| format!("{} is not in the cache", present.id))?;
        self.take_out(&cached, file)
    }

    fn purge(&self, file: &Path) -> Result<(), String> {
        let path = match self.files.path(file) {
            Ok(path) => path,
            // It may be gone from where it was.
            Err(_) => std::path::absolute(file).map_err(|error| reason(&error))?,
        };
        let all = self.cache.objects().map_err(|error| reason(&error))?;
        // Names in brackets are no paths.
        let named = |cached: &&Cached| cached.name == path || cached.name == file;
        let builds: Vec<&Cached> = all.iter().filter(named).collect();
        if builds.is_empty() {
            return Err("no build of it is in the cache".to_owned());
        }
        for cached in builds {
            self.take_out(cached, file)?;
        }
        if self.verbose {
            self.context
                .note(format_args!("Purging {}: Ok", file.display()));
        }
        Ok(())
    }

    fn update(&self, file: &Path) -> Result<(), String> {
        let present = self.files.read(file)?;
        if let Some(cached) = self.cache.object(&present.id.to_string()) {
            self.cache.remove(&cached).map_err(|error| reason(&error))?;
        }
        self.put(&present)?;
        self.say("Updating", &present.id.to_string(), file);
        Ok(())
    }

    /// The kernel's code; says why it could not be kept.
    fn keep_kernel(&self, memory: &Path, again: bool) -> bool {
        let kept = kernel::keep(self.cache.root(), memory, again);
        let said = match &kept {
            Ok(KeptKernel::New(folder)) => {
                format!(
                    "kcore added to build-id cache directory {}",
                    folder.display()
                )
            }
            Ok(KeptKernel::Before(folder)) => format!("same kcore found in {}", folder.display()),
            Err(why) => format!("Couldn't add {}: {why}", memory.display()),
        };
        if self.verbose || kept.is_err() {
            self.context.note(said);
        }
        kept.is_ok()
    }

    /// Everything; says what could not be taken out and goes on.
    fn purge_all(&self) -> Result<bool, CliError> {
        let mut whole = true;
        for cached in self.objects()? {
            if let Err(why) = self.take_out(&cached, &cached.name) {
                let shown = cached.name.display();
                self.context
                    .note(format_args!("Couldn't remove {shown}: {why}"));
                whole = false;
            }
        }
        Ok(whole)
    }

    /// Takes out what was not used for longest, until `limit` bytes will do, and says how large the cache is.
    fn shrink(&self, limit: u64) -> Result<bool, CliError> {
        let mut whole = true;
        // What another run takes out meanwhile is gone as well.
        let looked = self.objects()?.into_iter().map(Kept::of);
        let all: Vec<Kept> = looked.filter_map(Result::ok).collect();
        let (count, bytes) = (all.len(), total(&all));
        let (mut fewer, mut less) = (0, 0);
        for kept in surplus(all, limit) {
            let shown = kept.cached.name.clone();
            if let Err(why) = self.take_out(&kept.cached, &shown) {
                let shown = shown.display();
                self.context
                    .note(format_args!("Couldn't remove {shown}: {why}"));
                whole = false;
                continue;
            }
            fewer += 1;
            less += kept.bytes;
        }
        self.context.note(format_args!(
            "build-id cache: {}; taken out: {}",
            told(count - fewer, bytes.saturating_sub(less)),
            told(fewer, less)
        ));
        Ok(whole)
    }

    fn take_out(&self, cached: &Cached, file: &Path) -> Result<(), String> {
        self.cache.remove(cached).map_err(|error| reason(&error))?;
        self.say("Removing", &cached.id, file);
        Ok(())
    }
}
