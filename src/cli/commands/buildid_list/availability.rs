//! `--missing`: whether and where this machine has the recorded build of each object. Objects with a build-id are all listed,
//! missing or not.

use std::io::Write as _;
use std::path::Path;

use rperf_buildid_cache::{Cache, KERNEL_OBJECT};
use rperf_names::counted;
use rperf_symbol::{BuildId, Files as _, build_id_of_elf};
use rperf_sys::vdso_image;
use rperf_wire::name_path;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::shared::namespace::NO_CACHE;
use crate::cli::shared::probing::running_kernel::running_id;
use crate::cli::shared::recorded_objects::RecordedObject;
use rperf_input::DiskFiles;

/// The place of the recorded build of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Availability {
    /// In the build-id cache.
    Cached,
    /// At the object's path; for the kernel and the vdso, in the running kernel.
    Installed,
    /// The place of [`Self::Installed`] has another build, or one whose build-id is missing or unreadable.
    Differs,
    /// No readable file is at the object's path, or the object has no path.
    Gone,
}

impl Availability {
    /// Looks for the build `id` of the object `name`, first in the cache.
    fn of(name: &str, id: &BuildId, cache: Option<&Cache>) -> Self {
        if cache.is_some_and(|cache| cache.object(&id.to_string()).is_some()) {
            return Self::Cached;
        }
        let path = name_path(name);
        let installed = match name {
            KERNEL_OBJECT => running_id(),
            "[vdso]" => vdso_image().ok().and_then(|image| build_id_of_elf(&image)),
            _ if path.is_absolute() => match DiskFiles.read(&path) {
                Ok(bytes) => build_id_of_elf(&bytes),
                Err(_) => return Self::Gone,
            },
            _ => return Self::Gone,
        };
        match installed.is_some_and(|installed| installed.matches(id)) {
            true => Self::Installed,
            false => Self::Differs,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Installed => "installed",
            Self::Differs => "differs",
            Self::Gone => "gone",
        }
    }
}

/// Prints availability, build-id and name of each object that has a build-id.
pub(super) fn print(objects: &[RecordedObject], context: &Context) -> Result<(), CliError> {
    // The directory `NO_CACHE` means that there is no cache.
    let cache = context
        .buildid_dir()
        .filter(|root| root != Path::new(NO_CACHE));
    let cache = cache.map(Cache::new);
    let mut out = context.stdout();
    let mut missing = 0;
    for (id, object) in objects
        .iter()
        .filter_map(|object| Some((object.id?, object)))
    {
        let availability = Availability::of(&object.name, &id, cache.as_ref());
        missing += usize::from(matches!(
            availability,
            Availability::Differs | Availability::Gone
        ));
        writeln!(out, "{:<9} {id} {}", availability.name(), object.name)?;
    }
    if missing > 0 {
        let program = context.program;
        context.note(format_args!(
            "hint: the recorded builds of {} are not on this machine: '{program} report --debuginfod' downloads them, '{program} archive' on the recording's machine packs them",
            counted(missing as u64, "object")
        ));
    }
    Ok(())
}
