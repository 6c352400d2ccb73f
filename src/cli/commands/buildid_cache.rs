//! `rperf buildid-cache`: the cache of objects by build-id.

mod kernel;
mod missing;
mod size;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use rperf_buildid_cache::{Cache, Cached, DEBUG_FILES, NewObject, debug_file};
use rperf_debuginfod::Client;
use rperf_symbol::{FilePart, FileRequest};
use rperf_sys::unix_time;

use self::kernel::KcoreCopy;
use self::size::{CacheLimits, SizedObject, count_and_size, surplus, total};
use crate::cli::context::Context;
use crate::cli::debuginfod;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::explain::reason;
use crate::cli::options::{counter, flag, list, number, switch, value};
use crate::cli::shared::namespace::{ExistingFile, MountNamespace, NO_CACHE};
use crate::cli::shared::sampling::size::parse_with_unit;

const ABOUT: &str = "\
Manages the build-id cache: copies of programs and libraries by build-id, in ~/.debug unless --buildid-dir or the \
setting buildid.dir names another directory. With the copies, recordings can be read after the installed files have changed. \
The cache is shared with Linux perf.";

/// A change of the cache that is made for each file of an option.
#[derive(Debug, Clone, Copy)]
enum CacheChange {
    /// Adds the file.
    Add,
    /// Removes the object with the file's build-id.
    Remove,
    /// Removes all objects with the file's path.
    Purge,
    /// Adds the file, replacing the object with its build-id.
    Update,
}

/// The options with a list of files, and their changes of the cache, in the order of execution.
const CHANGES: [(&str, CacheChange); 4] = [
    ("add", CacheChange::Add),
    ("remove", CacheChange::Remove),
    ("purge", CacheChange::Purge),
    ("update", CacheChange::Update),
];

/// Returns the command with its options.
pub(super) fn command() -> Command {
    let files = "file[,file...]";
    Command::new("buildid-cache")
        .long_about(ABOUT)
        .arg(list("add", files).short('a').help("add these files to the cache"))
        .arg(
            value("kcore", "file")
                .short('k')
                .help("add a kernel image (/proc/kcore or a copy), with kallsyms and modules of the same directory"),
        )
        .arg(
            list("remove", files)
                .short('r')
                .help("remove the cached copies of these files (same build-id)"),
        )
        .arg(
            list("purge", files)
                .short('p')
                .help("remove every cached build of the files at these paths"),
        )
        .arg(switch("purge-all").short('P').help("remove all objects"))
        .arg(
            switch("list")
                .short('l')
                .help("list build-id and path of every cached object"),
        )
        .arg(
            value("missing", "file")
                .short('M')
                .help("list the objects of this recording that are not in the cache"),
        )
        .arg(
            switch("force")
                .short('f')
                .help("do not check the owner of the recording; with -k, add a kernel image that is already cached"),
        )
        .arg(
            list("update", files)
                .short('u')
                .help("add these files, replacing the cached objects that have their build-ids"),
        )
        .arg(debuginfod::option().help("download debug files of added objects from these debuginfod servers (default: DEBUGINFOD_URLS)"))
        .arg(
            value("max-size", "size")
                .help("remove least recently used objects until the others are together at most this large: 500M, 2G"),
        )
        .arg(
            value("max-age", "time")
                .help("remove objects that were not used for this time: 12h, 30d, 8w"),
        )
        .arg(
            value("target-ns", "pid")
                .value_parser(number)
                .help("look up files in the mount namespace of this process"),
        )
        .arg(counter("verbose").short('v').help("be verbose"))
}

/// Executes the options in this order: list, purge all, add, remove, purge, update, missing, kcore, size and age limit.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let limits = limits(matches)?;
    let cache = CacheEditor::new(matches, context)?;
    let is_set = |name| flag(matches, name) == Some(true);
    let mut successes = vec![];
    if is_set("list") {
        cache.list()?;
        successes.push(true);
    }
    if is_set("purge-all") {
        successes.push(cache.purge_all()?);
    }
    for (option, change) in CHANGES {
        for file in files(matches, option) {
            let result = cache.change(change, &file);
            if let Err(why) = &result {
                let file = file.display();
                context.note(format_args!("Couldn't {option} {file}: {why}"));
            }
            successes.push(result.is_ok());
        }
    }
    if let Some(recording) = matches.get_one::<String>("missing") {
        missing::print(Path::new(recording), is_set("force"), &cache.cache, context)?;
        successes.push(true);
    }
    if let Some(kcore) = matches.get_one::<String>("kcore") {
        successes.push(cache.add_kcore(Path::new(kcore), is_set("force")));
    }
    if let Some(limits) = limits {
        successes.push(cache.shrink(limits)?);
    }
    if successes.is_empty() {
        let program = context.program;
        let error = format!("{program} buildid-cache: nothing to do");
        return Err(CliError::usage(error).hint(format!(
            "'{program} buildid-cache -l' lists the cache, -a FILE adds a file"
        )));
    }
    context.stdout().flush()?;
    Ok(match successes.iter().all(|success| *success) {
        true => ExitStatus::Ok,
        false => ExitStatus::Failure(1),
    })
}

/// Returns the limits of `--max-size` and `--max-age`; `None` if neither is given.
fn limits(matches: &ArgMatches) -> Result<Option<CacheLimits>, CliError> {
    let size = matches.get_one::<String>("max-size").map(|word| {
        parse_with_unit(word).ok_or_else(|| {
            CliError::usage(format!("--max-size: '{word}' is not a size"))
                .hint("give bytes with a unit: 100K, 500M, 2G; -P removes all objects")
        })
    });
    let age = matches.get_one::<String>("max-age").map(|word| {
        age(word).ok_or_else(|| {
            CliError::usage(format!("--max-age: '{word}' is not an age"))
                .hint("give hours, days or weeks: 12h, 30d, 8w")
        })
    });
    let (size, age) = (size.transpose()?, age.transpose()?);
    let now = i64::try_from(unix_time()).unwrap_or(i64::MAX);
    Ok((size.is_some() || age.is_some()).then(|| CacheLimits {
        bytes: size.unwrap_or(u64::MAX),
        since: age.map_or(i64::MIN, |age| now.saturating_sub(age)),
    }))
}

/// Parses an age of hours, days or weeks (`12h`, `30d`, `8w`) into seconds.
fn age(word: &str) -> Option<i64> {
    let unit = match word.chars().last()? {
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let number: u32 = word.get(..word.len() - 1)?.parse().ok()?;
    Some(i64::from(number) * unit)
}

/// Returns the files of all occurrences of an option that takes a list.
fn files(matches: &ArgMatches, option: &str) -> Vec<PathBuf> {
    let lists = matches.get_many::<String>(option).unwrap_or_default();
    let files = lists.flat_map(|list| list.split(','));
    let named = files.filter(|file| !file.is_empty());
    named.map(PathBuf::from).collect()
}

/// Lists and changes the cache.
struct CacheEditor<'c> {
    cache: Cache,
    context: &'c Context,
    verbose: bool,
    /// The mount namespace in which files are looked up.
    namespace: MountNamespace,
    /// The debuginfod servers from which debug files are downloaded, if any.
    servers: Option<Client>,
}

impl<'c> CacheEditor<'c> {
    fn new(matches: &ArgMatches, context: &'c Context) -> Result<Self, CliError> {
        let root = context.buildid_dir();
        let root = root.filter(|root| root != Path::new(NO_CACHE));
        let root = root.ok_or_else(|| {
            let message =
                "no build-id cache: its directory is unknown, or it is disabled (/dev/null)";
            CliError::message(255, message).hint(
                "set one: --buildid-dir DIR before the command, the setting buildid.dir, or HOME",
            )
        })?;
        let verbose = context.verbosity(matches) > 0;
        if verbose {
            context.note(format_args!("build-id cache: {}", root.display()));
        }
        Ok(Self {
            cache: Cache::new(root),
            context,
            verbose,
            namespace: MountNamespace::new(matches)?,
            servers: debuginfod::client(matches, "buildid-cache.debuginfod", context)?,
        })
    }

    fn objects(&self) -> Result<Vec<Cached>, CliError> {
        let root = self.cache.root().display().to_string();
        let objects = self.cache.objects();
        objects.map_err(|error| anyhow::Error::new(error).context(root).into())
    }

    fn list(&self) -> Result<(), CliError> {
        let mut out = self.context.stdout();
        for cached in self.objects()? {
            writeln!(out, "{} {}", cached.id, cached.name.display())?;
        }
        Ok(())
    }

    /// With `-v`, prints a line such as `Adding ID FILE: Ok`.
    fn report_change(&self, action: &str, id: &str, file: &Path) {
        if self.verbose {
            let file = file.display();
            self.context.note(format_args!("{action} {id} {file}: Ok"));
        }
    }

    fn add_object(&self, present: &ExistingFile) -> Result<(), String> {
        let id = present.id.to_string();
        let debug = self.find_debug_file(present, &id);
        // With `--target-ns`, `path` is the file's path in the namespace, `file` the path at which this process can read it.
        let object = NewObject {
            path: &present.path,
            file: &present.readable_path,
            id: &id,
            debug: debug.as_deref(),
            // The SDT markers of the file, which are cached for `probe`.
            probes: Some(&present.markers),
        };
        self.cache.add(&object).map_err(|error| reason(&error))
    }

    /// Returns the installed debug file, otherwise one from a debuginfod server; `None` if there is neither.
    fn find_debug_file(&self, present: &ExistingFile, id: &str) -> Option<PathBuf> {
        debug_file(Path::new(DEBUG_FILES), id).or_else(|| {
            self.servers.as_ref()?.find(&FileRequest {
                build_id: &present.id,
                part: FilePart::Debuginfo,
                object: &present.path,
            })
        })
    }

    fn change(&self, change: CacheChange, file: &Path) -> Result<(), String> {
        match change {
            CacheChange::Add => self.add(file),
            CacheChange::Remove => self.remove(file),
            CacheChange::Purge => self.purge(file),
            CacheChange::Update => self.update(file),
        }
    }

    fn add(&self, file: &Path) -> Result<(), String> {
        let present = self.namespace.read(file)?;
        self.add_object(&present)?;
        self.report_change("Adding", &present.id.to_string(), file);
        Ok(())
    }

    fn remove(&self, file: &Path) -> Result<(), String> {
        let present = self.namespace.read(file)?;
        let cached = self.cache.object(&present.id.to_string());
        let cached = cached.ok_or_else(|| format!("{} is not in the cache", present.id))?;
        self.remove_object(&cached, file)
    }

    fn purge(&self, file: &Path) -> Result<(), String> {
        let path = match self.namespace.path(file) {
            Ok(path) => path,
            // The file may have been deleted.
            Err(_) => std::path::absolute(file).map_err(|error| reason(&error))?,
        };
        let all = self.cache.objects().map_err(|error| reason(&error))?;
        // `file` itself can be a name in brackets, such as `[vdso]`, which is not a path.
        let has_name = |cached: &&Cached| cached.name == path || cached.name == file;
        let builds: Vec<&Cached> = all.iter().filter(has_name).collect();
        if builds.is_empty() {
            return Err("no build of it is cached".to_owned());
        }
        for cached in builds {
            self.remove_object(cached, file)?;
        }
        if self.verbose {
            self.context
                .note(format_args!("Purging {}: Ok", file.display()));
        }
        Ok(())
    }

    fn update(&self, file: &Path) -> Result<(), String> {
        let present = self.namespace.read(file)?;
        if let Some(cached) = self.cache.object(&present.id.to_string()) {
            self.cache.remove(&cached).map_err(|error| reason(&error))?;
        }
        self.add_object(&present)?;
        self.report_change("Updating", &present.id.to_string(), file);
        Ok(())
    }

    /// Copies the kernel's code from `kcore` into the cache, and prints an error, or the result with `-v`. Returns whether
    /// there is a copy now, new or existing.
    fn add_kcore(&self, kcore: &Path, even_if_cached: bool) -> bool {
        let copy = kernel::copy_kcore(self.cache.root(), kcore, even_if_cached);
        let message = match &copy {
            Ok(KcoreCopy::New(folder)) => {
                format!(
                    "kcore added to build-id cache directory {}",
                    folder.display()
                )
            }
            Ok(KcoreCopy::Existing(folder)) => format!("same kcore found in {}", folder.display()),
            Err(why) => format!("Couldn't add {}: {why}", kcore.display()),
        };
        if self.verbose || copy.is_err() {
            self.context.note(message);
        }
        copy.is_ok()
    }

    /// Removes all objects; prints an error for each that can't be removed. Returns whether all were removed.
    fn purge_all(&self) -> Result<bool, CliError> {
        let mut succeeded = true;
        for cached in self.objects()? {
            if let Err(why) = self.remove_object(&cached, &cached.name) {
                let name = cached.name.display();
                self.context
                    .note(format_args!("Couldn't remove {name}: {why}"));
                succeeded = false;
            }
        }
        Ok(succeeded)
    }

    /// Removes the least recently used objects until the others are within the limits, and prints the remaining and the
    /// removed size. Prints an error for each object that can't be removed. Returns whether there was no such error.
    fn shrink(&self, limits: CacheLimits) -> Result<bool, CliError> {
        let mut succeeded = true;
        // An object that can't be read, such as one that another process has just removed, is ignored.
        let sized = self.objects()?.into_iter().map(SizedObject::of);
        let all: Vec<SizedObject> = sized.filter_map(Result::ok).collect();
        let (count, bytes) = (all.len(), total(&all));
        let (mut removed_count, mut removed_bytes) = (0, 0);
        for surplus_object in surplus(all, limits) {
            let name = surplus_object.cached.name.clone();
            if let Err(why) = self.remove_object(&surplus_object.cached, &name) {
                let name = name.display();
                self.context
                    .note(format_args!("Couldn't remove {name}: {why}"));
                succeeded = false;
                continue;
            }
            removed_count += 1;
            removed_bytes += surplus_object.bytes;
        }
        self.context.note(format_args!(
            "build-id cache: {}; removed: {}",
            count_and_size(count - removed_count, bytes.saturating_sub(removed_bytes)),
            count_and_size(removed_count, removed_bytes)
        ));
        Ok(succeeded)
    }

    /// Removes an object. `file` is only for the message.
    fn remove_object(&self, cached: &Cached, file: &Path) -> Result<(), String> {
        self.cache.remove(cached).map_err(|error| reason(&error))?;
        self.report_change("Removing", &cached.id, file);
        Ok(())
    }
}
