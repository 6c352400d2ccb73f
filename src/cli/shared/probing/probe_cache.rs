//! `--cache`: events stored in the build-id cache with the object they belong to. User-defined events are those that `--cache`
//! stored; the other entries are the object's USDT markers.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rperf_buildid_cache::{
    Cache, Cached, DEBUG_FILES, KERNEL_OBJECT, NewObject, SpecialObject, debug_file,
};
use rperf_names::matches_pattern;
use rperf_probe::{CachedEntry, Definition, Point, ProbeEvent, cached_entries, heading, put_entry};
use rperf_symbol::{BuildId, Files as _};

use super::place_messages::FAILED;
use super::running_kernel::running_id;
use super::target::{OpenedObject, ProbedObject};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::explain::reason;
use crate::cli::shared::namespace::{MountNamespace, NO_CACHE};
use crate::cli::usdt_markers::is_installed;
use rperf_input::DiskFiles;

/// The file with the kernel's symbols.
const KALLSYMS: &str = "/proc/kallsyms";

/// An object whose events the cache can store.
#[derive(Debug, Clone)]
pub(crate) struct CachedObject {
    /// The program; `None` for the kernel.
    program: Option<PathBuf>,
    id: BuildId,
}

impl CachedObject {
    /// Returns the object with which the cache stores events of `opened`, even if the cache does not have it yet; `None` for
    /// objects without a build-id, modules, and kernels that are not running.
    pub(crate) fn of(opened: &OpenedObject) -> Option<Self> {
        match opened {
            OpenedObject::Program(binary) => Some(Self {
                program: Some(binary.path().to_owned()),
                id: binary.build_id()?,
            }),
            OpenedObject::Kernel(kernel) if kernel.module().is_some() => None,
            // Symbols are kept with the events, and only those of the running kernel are available.
            OpenedObject::Kernel(kernel) => Some(Self {
                program: None,
                id: kernel
                    .build_id()
                    .filter(|id| running_id().as_ref() == Some(id))?,
            }),
        }
    }

    /// Returns the object's entries in the cache; empty if there are none.
    fn entries(&self, context: &Context) -> Vec<CachedEntry> {
        let cached = context
            .buildid_dir()
            .and_then(|root| Cache::new(root).object(&self.id.to_string()));
        let text = cached.and_then(|cached| cached.probes().ok());
        cached_entries(&text.unwrap_or_default())
    }

    /// Returns the cached events of exactly this definition; `None` if there are none.
    pub(crate) fn events_for(
        &self,
        definition: &Definition,
        group: &str,
        context: &Context,
    ) -> Option<Vec<ProbeEvent>> {
        let text = heading(definition, group);
        let entries = self.entries(context);
        let last = entries
            .iter()
            .rev()
            .find(|entry| !entry.is_marker && entry.text == text)?;
        let events: Vec<ProbeEvent> = last.events().collect();
        (!events.is_empty()).then_some(events)
    }

    /// Returns the user-defined events that `point` matches; none unless it is `%[GROUP:]NAME`.
    pub(crate) fn events_called(&self, point: &Point, context: &Context) -> Vec<ProbeEvent> {
        let entries = self.entries(context);
        let user_defined = entries.iter().filter(|entry| !entry.is_marker);
        let events = user_defined.flat_map(CachedEntry::events);
        events.filter(|event| is_covered(point, event)).collect()
    }

    /// Adds the object to the cache unless it is there. Then adds `entry`, if given, to the object's list of entries.
    fn keep(&self, entry: Option<CachedEntry>, cache: &Cache) -> io::Result<()> {
        let id = self.id.to_string();
        if cache.object(&id).is_none() {
            self.add(&id, cache)?;
        }
        let cached = cache.object(&id).ok_or(io::ErrorKind::NotFound)?;
        let Some(entry) = entry else {
            return Ok(());
        };
        cached.change_probes(|list| {
            let mut entries = cached_entries(list);
            put_entry(&mut entries, entry);
            (text(&entries), ())
        })
    }

    fn add(&self, id: &str, cache: &Cache) -> io::Result<()> {
        let Some(program) = &self.program else {
            let symbols = || Ok(DiskFiles.read(Path::new(KALLSYMS))?.to_vec());
            let kernel = SpecialObject::kernel(self.id.as_bytes());
            return cache.add_special(&kernel, symbols);
        };
        let present = MountNamespace::current()
            .read(program)
            .map_err(io::Error::other)?;
        cache.add(&NewObject {
            path: &present.path,
            file: &present.readable_path,
            id,
            debug: debug_file(Path::new(DEBUG_FILES), id).as_deref(),
            probes: Some(&present.markers),
        })
    }
}

/// Whether `point` is `%[GROUP:]NAME` and matches an event. The group may be given without `sdt_`.
fn is_covered(point: &Point, event: &ProbeEvent) -> bool {
    let Point::Marker { provider, name } = point else {
        return false;
    };
    let is_group_matched = provider.as_ref().is_none_or(|provider| {
        let sdt_group = format!("sdt_{provider}");
        matches_pattern(provider, &event.group) || matches_pattern(&sdt_group, &event.group)
    });
    is_group_matched && matches_pattern(name, &event.name)
}

fn text(entries: &[CachedEntry]) -> String {
    entries.iter().map(CachedEntry::to_string).collect()
}

/// Returns the cache.
///
/// # Errors
/// Status 255: its directory is unknown, or the cache is disabled.
fn cache(context: &Context) -> Result<Cache, CliError> {
    let root = context.buildid_dir();
    let root = root.filter(|root| root != Path::new(NO_CACHE));
    let root = root.ok_or_else(|| {
        CliError::message(
            255,
            "--cache: no build-id cache: its directory is unknown, or it is disabled (/dev/null)",
        )
        .hint("set one: --buildid-dir DIR before the command, the setting buildid.dir, or HOME")
    })?;
    Ok(Cache::new(root))
}

/// A cache entry to add for one definition.
pub(crate) struct CacheAddition {
    /// The object that the entry belongs to.
    object: CachedObject,
    /// `None` for a point `%[GROUP:]NAME`: USDT markers are added with the object, and a cached event is already there.
    entry: Option<CachedEntry>,
}

impl CacheAddition {
    /// Creates the addition for `definition` with its `events`.
    ///
    /// # Errors
    /// `object` is `None`: the cache cannot store events of the probed object.
    pub(crate) fn new(
        definition: &Definition,
        object: Option<&CachedObject>,
        events: &[ProbeEvent],
    ) -> Result<Self, CliError> {
        let object = object.ok_or_else(|| {
            CliError::message(255, "--cache: events of this object cannot be stored")
                .detail("  Error: Failed to add events.")
                .hint("the cache stores events of programs with a build-id (link with --build-id) and of the running kernel, not of its modules")
        })?;
        let is_marker_or_cached = matches!(definition.point, Point::Marker { .. });
        let group = events.first().map(|event| event.group.clone());
        let group = group.unwrap_or_default();
        Ok(Self {
            object: object.clone(),
            entry: (!is_marker_or_cached).then(|| CachedEntry::new(definition, &group, events)),
        })
    }
}

/// Writes the additions to the cache.
pub(crate) fn keep(additions: Vec<CacheAddition>, context: &Context) -> Result<(), CliError> {
    let cache = cache(context)?;
    for CacheAddition { object, entry } in additions {
        object.keep(entry, &cache).map_err(|error| {
            let root = cache.root().display();
            CliError::message(255, format!("--cache: {root}: {}", reason(&error)))
                .detail("  Error: Failed to store events.")
        })?;
    }
    Ok(())
}

/// Returns the cached objects with their entries: all objects if `within` is the kernel (neither `-x` nor `-m` is given), all
/// builds of a program, or none for a module.
fn lists(
    cache: &Cache,
    within: &ProbedObject,
) -> Result<Vec<(Cached, Vec<CachedEntry>)>, CliError> {
    let root = cache.root().display().to_string();
    let objects = cache.objects();
    let objects =
        objects.map_err(|error| CliError::from(anyhow::Error::new(error).context(root)))?;
    let matching = objects.into_iter().filter(|cached| match within {
        ProbedObject::Kernel => true,
        ProbedObject::Program(program) => cached.name == *program,
        ProbedObject::Module(_) => false,
    });
    let lists = matching.map(|cached| {
        let folder = cached.folder.display().to_string();
        let text = cached.probes();
        let text = text.map_err(|error| anyhow::Error::new(error).context(folder))?;
        Ok((cached, cached_entries(&text)))
    });
    lists.collect()
}

/// `--list`: prints the entries that `pattern` matches, by object.
pub(crate) fn list(
    pattern: &str,
    within: &ProbedObject,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let cache = cache(context)?;
    let mut out = context.stdout();
    let mut is_found = false;
    for (cached, entries) in lists(&cache, within)? {
        let covered: Vec<_> = entries
            .iter()
            .filter(|entry| entry.is_covered(pattern))
            .collect();
        if !covered.is_empty() {
            is_found = true;
            writeln!(out, "{} ({}):", cached.name.display(), cached.id)?;
        }
        for entry in covered {
            writeln!(out, "{}", entry.text)?;
        }
    }
    out.flush()?;
    if !is_found {
        let root = cache.root().display();
        context.note(format_args!(
            "no event in the build-id cache {root} matches {pattern}"
        ));
    }
    Ok(ExitStatus::Ok)
}

/// `--del`: deletes the entries that any pattern matches, unless `is_dry`, and prints them.
pub(crate) fn delete(
    patterns: &[&String],
    within: &ProbedObject,
    is_dry: bool,
    context: &Context,
) -> Result<(), CliError> {
    let cache = cache(context)?;
    let lists = lists(&cache, within)?;
    for pattern in patterns {
        let is_covered_by_this = |entry: &CachedEntry| entry.is_covered(pattern);
        if !lists
            .iter()
            .flat_map(|(_, entries)| entries)
            .any(is_covered_by_this)
        {
            let error = format!("\"{pattern}\" does not hit any cached event.");
            return Err(
                CliError::message(FAILED, error).detail("  Error: Failed to delete events.")
            );
        }
    }
    let is_covered_by_any =
        |entry: &CachedEntry| patterns.iter().any(|pattern| entry.is_covered(pattern));
    for (cached, entries) in lists {
        let mut removed: Vec<_> = entries.into_iter().filter(is_covered_by_any).collect();
        if !removed.is_empty() && !is_dry {
            let folder = cached.folder.display().to_string();
            // Re-reads the list: another run may have added to it.
            let changed = cached.change_probes(|list| {
                let entries = cached_entries(list).into_iter();
                let (removed, left): (Vec<_>, Vec<_>) = entries.partition(is_covered_by_any);
                (text(&left), removed)
            });
            removed = changed.map_err(|error| anyhow::Error::new(error).context(folder))?;
        }
        let action = if is_dry { "Would remove" } else { "Removed" };
        for entry in removed {
            context.note(format_args!("{action} cached event: {}", entry.text));
        }
    }
    Ok(())
}

/// Returns the installed programs with user-defined events that `point` (`%[GROUP:]NAME`) matches, and whether the running kernel
/// has user-defined events that it matches.
pub(crate) fn objects_with(point: &Point, context: &Context) -> (Vec<PathBuf>, bool) {
    let root = context.buildid_dir();
    let objects = root.and_then(|root| Cache::new(root).objects().ok());
    let kernel = running_id().map(|id| id.to_string());
    let (mut programs, mut in_kernel) = (Vec::new(), false);
    for cached in objects.unwrap_or_default() {
        let entries = cached_entries(&cached.probes().unwrap_or_default());
        let mut user_defined = entries.iter().filter(|entry| !entry.is_marker);
        if !user_defined.any(|entry| entry.events().any(|event| is_covered(point, &event))) {
            continue;
        }
        if cached.name == Path::new(KERNEL_OBJECT) {
            in_kernel |= kernel.as_ref() == Some(&cached.id);
        } else if !programs.contains(&cached.name) && is_installed(&cached) {
            programs.push(cached.name);
        }
    }
    (programs, in_kernel)
}

/// Returns the cached events, renamed to the group and the name of the definition if the definition has them. Each is paired with
/// `None` instead of a description of the probed place, which the cache does not have.
///
/// # Errors
/// Status 129: there are cached events, and the definition has arguments.
pub(crate) fn renamed(
    cached: Vec<ProbeEvent>,
    definition: &Definition,
) -> Result<Vec<(ProbeEvent, Option<String>)>, CliError> {
    if !cached.is_empty() && !definition.arguments.is_empty() {
        let point = &definition.point;
        let error = format!("{point} is a stored event with its own arguments: it takes no others");
        return Err(CliError::usage(error));
    }
    let renamed = cached.into_iter().map(|mut event| {
        event.group = definition.group.clone().unwrap_or(event.group);
        event.name = definition.event.clone().unwrap_or(event.name);
        (event, None)
    });
    Ok(renamed.collect())
}
