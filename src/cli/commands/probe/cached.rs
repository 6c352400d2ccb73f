//! `--cache`: events kept in the build-id cache, beside the object that they are about.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rperf_buildid_cache::{
    Cache, Cached, DEBUG_FILES, KERNEL_OBJECT, NewObject, SpecialObject, debug_file,
};
use rperf_events::matches_pattern;
use rperf_probe::{CachedEntry, Definition, Event, Point, cached_entries, heading, keep_entry};
use rperf_symbol::{BuildId, Files as _};

use super::NOT_FOUND;
use super::running::running_id;
use super::target::{Opened, Subject};
use crate::cli::commands::buildid_cache::{NO_CACHE, Namespace};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::files::DiskFiles;
use crate::cli::live::explain::reason;
use crate::cli::marks::is_installed;

/// The file with the kernel's symbols.
const KALLSYMS: &str = "/proc/kallsyms";

/// What the cache keeps events of.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// The program; `None` for the kernel.
    program: Option<PathBuf>,
    id: BuildId,
}

impl Home {
    /// `None` for what has no build-id, and for modules.
    pub(super) fn of(opened: &Opened) -> Option<Self> {
        match opened {
            Opened::Program(binary) => Some(Self {
                program: Some(binary.path().to_owned()),
                id: binary.build_id()?,
            }),
            Opened::Kernel(kernel) if kernel.module().is_some() => None,
            // Its symbols are kept beside its events, and only those of the running kernel are at hand.
            Opened::Kernel(kernel) => Some(Self {
                program: None,
                id: kernel
                    .build_id()
                    .filter(|id| running_id().as_ref() == Some(id))?,
            }),
        }
    }

    /// What the cache has of it; nothing is no fault.
    fn entries(&self, context: &Context) -> Vec<CachedEntry> {
        let cached = context
            .buildid_dir()
            .and_then(|root| Cache::new(root).object(&self.id.to_string()));
        let text = cached.and_then(|cached| cached.probes().ok());
        cached_entries(&text.unwrap_or_default())
    }

    /// The events that were kept under this very definition.
    pub(super) fn recalled(
        &self,
        definition: &Definition,
        group: &str,
        context: &Context,
    ) -> Option<Vec<Event>> {
        let text = heading(definition, group);
        let entries = self.entries(context);
        let own = entries
            .iter()
            .rev()
            .find(|entry| !entry.is_marker && entry.text == text)?;
        let events: Vec<Event> = own.events().collect();
        (!events.is_empty()).then_some(events)
    }

    /// The events that `%[GROUP:]NAME` covers of those that users defined.
    pub(super) fn named(&self, point: &Point, context: &Context) -> Vec<Event> {
        let entries = self.entries(context);
        let asked = entries.iter().filter(|entry| !entry.is_marker);
        let events = asked.flat_map(CachedEntry::events);
        events.filter(|event| is_covered(point, event)).collect()
    }

    /// Puts the object into the cache, and the entry into its list.
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
            keep_entry(&mut entries, entry);
            (text(&entries), ())
        })
    }

    fn add(&self, id: &str, cache: &Cache) -> io::Result<()> {
        let Some(program) = &self.program else {
            let symbols = || Ok(DiskFiles.read(Path::new(KALLSYMS))?.to_vec());
            let kernel = SpecialObject::kernel(self.id.as_bytes());
            return cache.add_special(&kernel, symbols);
        };
        let present = Namespace::own().read(program).map_err(io::Error::other)?;
        cache.add(&NewObject {
            path: &present.path,
            file: &present.file,
            id,
            debug: debug_file(Path::new(DEBUG_FILES), id).as_deref(),
            probes: Some(&present.probes),
        })
    }
}

/// Whether `%[GROUP:]NAME` covers an event. The group may have been written without its `sdt_`.
fn is_covered(point: &Point, event: &Event) -> bool {
    let Point::Marker { provider, name } = point else {
        return false;
    };
    let group = provider.as_ref().is_none_or(|provider| {
        let whole = format!("sdt_{provider}");
        matches_pattern(provider, &event.group) || matches_pattern(&whole, &event.group)
    });
    group && matches_pattern(name, &event.name)
}

fn text(entries: &[CachedEntry]) -> String {
    entries.iter().map(CachedEntry::to_string).collect()
}

/// The cache that is to be changed or shown.
fn cache(context: &Context) -> Result<Cache, CliError> {
    let root = context.buildid_dir();
    let root = root.filter(|root| root != Path::new(NO_CACHE));
    let root = root.ok_or_else(|| {
        CliError::message(255, "--cache: there is no build-id cache")
            .hint("--buildid-dir DIR before the command names one; so do HOME and buildid.dir")
    })?;
    Ok(Cache::new(root))
}

/// What is to be kept of one definition.
pub(super) struct Addition {
    home: Home,
    /// `None` for places that the program's author marked: those come with the object.
    entry: Option<CachedEntry>,
}

impl Addition {
    /// Checks that the cache can keep it.
    ///
    /// # Errors
    /// Objects without a build-id, and modules.
    pub(super) fn new(
        definition: &Definition,
        home: Option<&Home>,
        events: &[Event],
    ) -> Result<Self, CliError> {
        let home = home.ok_or_else(|| {
            CliError::message(255, "--cache: the object has no build-id, which the cache files it under")
                .detail("  Error: Failed to add events.")
                .hint("programs get one by the linker's --build-id; of modules and other kernels than the running one nothing is kept")
        })?;
        let is_marker = matches!(definition.point, Point::Marker { .. });
        let group = events.first().map(|event| event.group.clone());
        let group = group.unwrap_or_default();
        Ok(Self {
            home: home.clone(),
            entry: (!is_marker).then(|| CachedEntry::new(definition, &group, events)),
        })
    }
}

/// Writes the additions into the cache.
pub(super) fn keep(additions: Vec<Addition>, context: &Context) -> Result<(), CliError> {
    let cache = cache(context)?;
    for Addition { home, entry } in additions {
        home.keep(entry, &cache).map_err(|error| {
            let root = cache.root().display();
            CliError::message(255, format!("--cache: {root}: {}", reason(&error)))
                .detail("  Error: Failed to keep events.")
        })?;
    }
    Ok(())
}

/// The objects with lists, those of a program only where one is named.
fn lists(cache: &Cache, within: &Subject) -> Result<Vec<(Cached, Vec<CachedEntry>)>, CliError> {
    let root = cache.root().display().to_string();
    let objects = cache.objects();
    let objects =
        objects.map_err(|error| CliError::from(anyhow::Error::new(error).context(root)))?;
    let wanted = objects.into_iter().filter(|cached| match within {
        Subject::Kernel => true,
        Subject::Program(program) => cached.name == *program,
        Subject::Module(_) => false,
    });
    let lists = wanted.map(|cached| {
        let folder = cached.folder.display().to_string();
        let text = cached.probes();
        let text = text.map_err(|error| anyhow::Error::new(error).context(folder))?;
        Ok((cached, cached_entries(&text)))
    });
    lists.collect()
}

/// `--list`: what is kept of each object.
pub(super) fn list(pattern: &str, within: &Subject, context: &Context) -> Result<Exit, CliError> {
    let cache = cache(context)?;
    let mut out = context.stdout();
    let mut any = false;
    for (cached, entries) in lists(&cache, within)? {
        let covered: Vec<_> = entries
            .iter()
            .filter(|entry| entry.is_covered(pattern))
            .collect();
        if !covered.is_empty() {
            any = true;
            writeln!(out, "{} ({}):", cached.name.display(), cached.id)?;
        }
        for entry in covered {
            writeln!(out, "{}", entry.text)?;
        }
    }
    out.flush()?;
    if !any {
        let root = cache.root().display();
        context.note(format_args!(
            "no event in the build-id cache {root} is named {pattern}"
        ));
    }
    Ok(Exit::Ok)
}

/// `--del`: takes out what the patterns cover, and says what.
pub(super) fn delete(
    patterns: &[&String],
    within: &Subject,
    is_dry: bool,
    context: &Context,
) -> Result<(), CliError> {
    let cache = cache(context)?;
    let lists = lists(&cache, within)?;
    for pattern in patterns {
        let is_hit = |entry: &CachedEntry| entry.is_covered(pattern);
        if !lists.iter().flat_map(|(_, entries)| entries).any(is_hit) {
            let error = format!("\"{pattern}\" does not hit any cached event.");
            return Err(
                CliError::message(NOT_FOUND, error).detail("  Error: Failed to delete events.")
            );
        }
    }
    let is_doomed = |entry: &CachedEntry| patterns.iter().any(|pattern| entry.is_covered(pattern));
    for (cached, entries) in lists {
        let mut doomed: Vec<_> = entries.into_iter().filter(is_doomed).collect();
        if !doomed.is_empty() && !is_dry {
            let folder = cached.folder.display().to_string();
            // As it is by now: another run may have added to it.
            let taken = cached.change_probes(|list| {
                let entries = cached_entries(list).into_iter();
                let (doomed, left): (Vec<_>, Vec<_>) = entries.partition(is_doomed);
                (text(&left), doomed)
            });
            doomed = taken.map_err(|error| anyhow::Error::new(error).context(folder))?;
        }
        let doing = if is_dry { "Would remove" } else { "Removed" };
        for entry in doomed {
            context.note(format_args!("{doing} cached event: {}", entry.text));
        }
    }
    Ok(())
}

/// The programs, and whether the running kernel too, with kept events that `%[GROUP:]NAME` covers.
pub(super) fn homes(point: &Point, context: &Context) -> (Vec<PathBuf>, bool) {
    let root = context.buildid_dir();
    let objects = root.and_then(|root| Cache::new(root).objects().ok());
    let kernel = running_id().map(|id| id.to_string());
    let (mut programs, mut in_kernel) = (Vec::new(), false);
    for cached in objects.unwrap_or_default() {
        let entries = cached_entries(&cached.probes().unwrap_or_default());
        let mut asked = entries.iter().filter(|entry| !entry.is_marker);
        if !asked.any(|entry| entry.events().any(|event| is_covered(point, &event))) {
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

/// Kept events as a definition asks for them: under other names, but with their own values.
pub(super) fn under_own_names(
    kept: Vec<Event>,
    definition: &Definition,
) -> Result<Vec<(Event, Option<String>)>, CliError> {
    if !kept.is_empty() && !definition.arguments.is_empty() {
        let place = &definition.point;
        let error =
            format!("{place} is a kept event, which has values of its own and takes no others");
        return Err(CliError::usage(error));
    }
    let named = kept.into_iter().map(|mut event| {
        event.group = definition.group.clone().unwrap_or(event.group);
        event.name = definition.event.clone().unwrap_or(event.name);
        (event, None)
    });
    Ok(named.collect())
}
