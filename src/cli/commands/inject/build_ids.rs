//! Looks up the build-ids of a recording's objects: in `--known-build-ids`, otherwise on this machine.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_replay::DsoKind;
use rperf_rewrite::{BuildIdSource, ObjectName};
use rperf_symbol::{BuildId, Files as _, build_id_of_elf, build_id_of_notes, native_endian};
use rperf_sys::{kernel_notes, module_notes, uname};
use std::collections::HashMap;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::symbols::own_vdso;
use rperf_input::DiskFiles;

const SYSFS: &str = "/sys";
/// Maximum size of a list of build-ids, in bytes.
const MAX_LIST: u64 = 64 << 20;

/// Build-ids by path, from `--known-build-ids`.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownBuildIds(HashMap<String, BuildId>);

impl KnownBuildIds {
    /// Parses the values of the option.
    ///
    /// # Errors
    ///
    /// Status 129 for an entry that is not a build-id and a path, 255 for a file that cannot be read.
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let mut known = Self::default();
        for value in matches
            .get_many::<String>("known-build-ids")
            .into_iter()
            .flatten()
        {
            match value.strip_prefix("file://") {
                Some(path) => known.add_file(Path::new(path))?,
                None => known.add(value.split(','), "--known-build-ids")?,
            }
        }
        Ok(known)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), CliError> {
        let origin = path.display().to_string();
        let bytes = rperf_safefs::read(path, MAX_LIST).map_err(|error| {
            CliError::failure(255, anyhow::Error::new(error).context(origin.clone()))
        })?;
        let text = String::from_utf8_lossy(&bytes);
        self.add(text.lines(), &origin)
    }

    fn add<'t>(
        &mut self,
        entries: impl Iterator<Item = &'t str>,
        origin: &str,
    ) -> Result<(), CliError> {
        for entry in entries.map(str::trim).filter(|entry| !entry.is_empty()) {
            let pair = entry.split_once(char::is_whitespace);
            let parsed = pair.and_then(|(id, path)| Some((BuildId::from_hex(id)?, path.trim())));
            let Some((id, path)) = parsed else {
                let error =
                    CliError::usage(format!("{origin}: '{entry}' is not a build-id and a path"));
                return Err(error.hint("write the hexadecimal build-id, a space, and the path"));
            };
            self.0.insert(path.to_owned(), id);
        }
        Ok(())
    }
}

/// Looks up the build-ids of objects.
pub(super) struct BuildIdLookup<'c> {
    context: &'c Context,
    known: KnownBuildIds,
    /// The kernel image given by `-k`.
    vmlinux: Option<PathBuf>,
    /// The release of the recording's kernel, if recorded.
    release: Option<String>,
    /// Whether the image of a kernel other than the running one is searched for by its release.
    searches_images: bool,
    is_verbose: bool,
}

impl<'c> BuildIdLookup<'c> {
    /// Creates the lookup for a recording of a kernel of this release.
    pub(super) fn new(
        matches: &ArgMatches,
        context: &'c Context,
        known: KnownBuildIds,
        release: Option<String>,
    ) -> Self {
        Self {
            context,
            known,
            vmlinux: matches.get_one::<String>("vmlinux").map(PathBuf::from),
            release,
            searches_images: flag(matches, "ignore-vmlinux") != Some(true),
            is_verbose: context.verbosity(matches) > 0,
        }
    }

    /// Whether the recording's kernel has the release of the running one; true if the release was not recorded.
    fn is_running_kernel(&self) -> bool {
        let running = uname().map(|running| running.release).ok();
        self.release.is_none() || self.release == running
    }

    fn kernel(&self) -> Option<BuildId> {
        let build_id_of = |path: &Path| build_id_of_elf(&DiskFiles.read(path).ok()?);
        if let Some(path) = &self.vmlinux {
            return build_id_of(path);
        }
        if self.is_running_kernel() {
            let notes = kernel_notes(Path::new(SYSFS)).ok()?;
            return build_id_of_notes(&notes, native_endian());
        }
        let release = self.release.as_deref().filter(|_| self.searches_images)?;
        // The release comes from the recording; as part of a path it must not lead to another folder.
        let release = Some(release).filter(|release| !release.contains('/'))?;
        let places = ["/usr/lib/debug/boot/vmlinux-", "/boot/vmlinux-"];
        let mut places = places.into_iter().map(|place| format!("{place}{release}"));
        places.find_map(|place| build_id_of(Path::new(&place)))
    }

    fn module(&self, object: ObjectName<'_>) -> Option<BuildId> {
        let path = object.path();
        if path.is_absolute() {
            return build_id_of_elf(&DiskFiles.read(&path).ok()?);
        }
        let name = object.name.strip_prefix('[')?.strip_suffix(']')?;
        // As part of a path in sysfs, the name must not lead to another folder.
        if !self.is_running_kernel() || name.contains(['/', '.']) {
            return None;
        }
        let notes = module_notes(Path::new(SYSFS), name).ok()?;
        build_id_of_notes(&notes, native_endian())
    }
}

impl BuildIdSource for BuildIdLookup<'_> {
    fn find(&mut self, object: ObjectName<'_>) -> Option<BuildId> {
        let known = self.known.0.get(object.name).copied();
        let found = known.or_else(|| match object.kind {
            DsoKind::Kernel => self.kernel(),
            DsoKind::KernelModule => self.module(object),
            DsoKind::Vdso if self.is_running_kernel() => build_id_of_elf(&own_vdso()?),
            DsoKind::User => build_id_of_elf(&DiskFiles.read(&object.path()).ok()?),
            _ => None,
        });
        if self.is_verbose {
            match &found {
                Some(id) => self
                    .context
                    .note(format_args!("build-id {id} {}", object.name)),
                None => self
                    .context
                    .note(format_args!("no build-id: {}", object.name)),
            }
        }
        found
    }
}
