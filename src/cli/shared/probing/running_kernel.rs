//! The running kernel or one of its modules: its symbols and types, and its image if available.

use std::cell::OnceCell;
use std::path::Path;

use clap::ArgMatches;
use rperf_btf::Btf;
use rperf_probe::{
    Definition, Error, Kernel, KernelSymbolList, Point, Probe, ProbePoints, ProbeTarget,
    SearchOptions, find, kernel_image_target,
};
use rperf_symbol::{
    BuildId, Endianness, FileBytes, Files as _, ObjectKind, ObjectRequest, SearchPaths,
    build_id_of_notes, load,
};
use rperf_sys::{Proc, kernel_notes, uname};

use super::place_messages::problem;
use super::target::{ProbedBinary, search_paths};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use rperf_input::DiskFiles;

const SYSFS: &str = "/sys";
const PROC: &str = "/proc";

/// The symbols, types and image of the running kernel or one of its modules.
pub(crate) struct RunningKernel {
    /// The content of `/proc/kallsyms`. Read on demand: the kernel takes a while to generate it.
    listing: OnceCell<FileBytes>,
    /// BTF of the kernel, then of the module if there is one.
    types: OnceCell<Vec<FileBytes>>,
    /// The module's name, with `_` for `-`; `None` for the kernel itself.
    module: Option<String>,
    machine: String,
    release: String,
    /// The image or module file given by the user.
    given_image: Option<Box<ProbedBinary>>,
    /// Where other images are searched.
    paths: SearchPaths,
}

/// The probe points of a definition, each with its target.
pub(crate) struct ResolvedProbes {
    pub(crate) points: ProbePoints,
    pub(crate) targets: Vec<ProbeTarget>,
}

impl RunningKernel {
    /// Opens the running kernel; `module` is the name of a module or the path of its file.
    pub(crate) fn open(
        module: Option<&str>,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Self, CliError> {
        let names = uname()?;
        let paths = search_paths(matches, context)?.with_kernel_release(&names.release);
        let file = module.filter(|module| module.contains('/')).map(Path::new);
        let image = matches.get_one::<String>("vmlinux").map(Path::new);
        let given_image = file.or(image).map(|path| {
            let path = paths.symfs.as_ref().map_or_else(
                || path.to_owned(),
                |root| root.join(path.strip_prefix("/").unwrap_or(path)),
            );
            ProbedBinary::kernel_at(path, &paths).map(Box::new)
        });
        let module = module.map(module_name);
        Ok(Self {
            listing: OnceCell::new(),
            types: OnceCell::new(),
            module,
            machine: names.machine,
            release: names.release,
            given_image: given_image.transpose()?,
            paths,
        })
    }

    pub(crate) fn module(&self) -> Option<&str> {
        self.module.as_deref()
    }

    /// Returns the kernel's and the module's BTF from sysfs, as far as they can be read. Without the kernel's BTF, the module's
    /// is not read: it refers to the kernel's types.
    fn types(&self) -> &[FileBytes] {
        self.types.get_or_init(|| {
            let btf = Path::new(SYSFS).join("kernel/btf");
            let of_module = self.module.as_ref().map(|module| btf.join(module));
            let files = [Some(btf.join("vmlinux")), of_module].into_iter().flatten();
            files.map_while(|path| DiskFiles.read(&path).ok()).collect()
        })
    }

    /// Calls `work` with the running kernel's symbols and types.
    pub(crate) fn with_symbols<T>(&self, work: impl FnOnce(&Kernel<'_>) -> T) -> T {
        let listing = self.listing.get_or_init(|| {
            let listing = DiskFiles.read(&Path::new(PROC).join("kallsyms"));
            listing.unwrap_or_else(|_| Vec::new().into())
        });
        let symbols = KernelSymbolList::parse(listing);
        let mut files = self.types().iter().map(|bytes| &bytes[..]);
        let base = files.next().and_then(|bytes| Btf::parse(bytes).ok());
        let types = base.map(|base| match files.next() {
            Some(of_module) => base.clone().with_module(of_module).unwrap_or(base),
            None => base,
        });
        work(&Kernel {
            symbols: &symbols,
            types: types.as_ref(),
            module: self.module(),
            machine: &self.machine,
        })
    }

    /// Returns the build-id of the file given by the user, otherwise of the running kernel.
    pub(crate) fn build_id(&self) -> Option<BuildId> {
        match &self.given_image {
            Some(image) => image.build_id(),
            None => running_id(),
        }
    }

    /// Returns the image or module file given by the user. If there is one, nothing else is searched.
    pub(crate) fn given_image(&self) -> Option<&ProbedBinary> {
        self.given_image.as_deref()
    }

    /// Returns the image of the running kernel, or of its module; `None` if it is not found or has no debug information.
    pub(crate) fn image(&self) -> Option<ProbedBinary> {
        let path = match &self.module {
            None => {
                let id = running_id()?;
                let name = Path::new("[kernel.kallsyms]");
                let request = ObjectRequest::new(name, ObjectKind::Kernel);
                let loaded = load(&DiskFiles, &self.paths, &request.with_build_id(Some(&id)));
                loaded.debug?.path().to_owned()
            }
            Some(module) => {
                let directory = format!("/lib/modules/{}", self.release);
                let modules = Proc::new(PROC).modules(Path::new(&directory)).ok()?;
                let found = modules.into_iter().find(|entry| entry.name == *module);
                found?.file?
            }
        };
        let image = ProbedBinary::kernel_at(path, &self.paths).ok()?;
        image.has_debug_info().then_some(image)
    }

    /// Returns the error that no kernel image with debug information is found. The hint lists the searched paths; `action` is
    /// what failed, such as `add events`.
    pub(crate) fn no_image(&self, action: &str) -> CliError {
        problem(&Error::NoKernelImage, action).hint(self.searched())
    }

    /// Returns the hint with the places where [`Self::image`] searches.
    fn searched(&self) -> String {
        if let Some(module) = &self.module {
            let release = &self.release;
            return format!(
                "searched for a file of {module} with debug information in /lib/modules/{release}"
            );
        }
        let tried = self.paths.vmlinux_candidates.iter();
        let tried: Vec<String> = tried.map(|path| path.display().to_string()).collect();
        format!("searched in the build-id cache and as {}", tried.join(", "))
    }

    /// Finds the probe points of a definition: in the image given by the user, if any, otherwise with the running kernel's
    /// symbols and BTF, or in the image that [`Self::image`] finds if these are not sufficient.
    pub(crate) fn find(
        &self,
        definition: &Definition,
        options: &SearchOptions,
    ) -> Result<ResolvedProbes, CliError> {
        let failed = |error: Error| match error {
            Error::NoKernelImage => self.no_image("add events"),
            error => problem(&error, "add events"),
        };
        if let Some(image) = &self.given_image {
            let is_running = false;
            let in_image = self.in_image(image, definition, options, is_running);
            return in_image.map_err(failed);
        }
        let resolved = self.with_symbols(|kernel| {
            let points = kernel.find(definition, options)?;
            let targets = points.probes.iter().map(|probe| kernel.target(probe));
            let targets = targets.collect();
            Ok(ResolvedProbes { points, targets })
        });
        // Function entries need only kallsyms; lines and local variables require debug information.
        match resolved {
            Err(error) if needs_image(&error, definition) => match self.image() {
                Some(image) => {
                    let is_running = true;
                    let in_image = self.in_image(&image, definition, options, is_running);
                    in_image.map_err(failed)
                }
                None => Err(failed(error)),
            },
            resolved => resolved.map_err(failed),
        }
    }

    /// Finds the probe points of a definition in an image. `is_running`: the image was found for the running kernel, not given by
    /// the user.
    fn in_image(
        &self,
        image: &ProbedBinary,
        definition: &Definition,
        options: &SearchOptions,
        is_running: bool,
    ) -> Result<ResolvedProbes, Error> {
        let object = image.object()?;
        let points = find(&object, definition, options)?;
        let target = |probe: &Probe| kernel_image_target(&object, probe, self.module(), is_running);
        let targets = points.probes.iter().map(target).collect();
        Ok(ResolvedProbes { points, targets })
    }
}

/// Returns the build-id of the running kernel.
pub(crate) fn running_id() -> Option<BuildId> {
    let notes = kernel_notes(Path::new(SYSFS)).ok()?;
    let endian = match cfg!(target_endian = "big") {
        true => Endianness::Big,
        false => Endianness::Little,
    };
    build_id_of_notes(&notes, endian)
}

/// Whether the definition may be found in the image although the search with symbols and BTF failed.
fn needs_image(error: &Error, definition: &Definition) -> bool {
    match error {
        Error::NoKernelImage | Error::NoSignature { .. } | Error::NoVariable { .. } => true,
        // The function may be inlined at every call.
        Error::NoPoint { .. } => matches!(definition.point, Point::Function { .. }),
        _ => false,
    }
}

/// Returns `snd_hda` for `snd-hda`, `/lib/modules/…/snd-hda.ko.xz` or `snd_hda.ko.debug`.
pub(crate) fn module_name(given: &str) -> String {
    let file = given.rsplit('/').next().unwrap_or(given);
    let name = file.split(".ko").next().unwrap_or(file);
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_where_the_image_is_searched() {
        let no_cache = None;
        let mut kernel = RunningKernel {
            listing: OnceCell::new(),
            types: OnceCell::new(),
            module: None,
            machine: "x86_64".to_owned(),
            release: "6.1".to_owned(),
            given_image: None,
            paths: SearchPaths::new(no_cache).with_kernel_release("6.1"),
        };
        let hint = kernel.searched();
        assert!(
            hint.starts_with("searched in the build-id cache and as "),
            "{hint}"
        );
        kernel.module = Some("drm".to_owned());
        assert_eq!(
            kernel.searched(),
            "searched for a file of drm with debug information in /lib/modules/6.1"
        );
    }

    #[test]
    fn modules_by_name_or_file() {
        for (given, name) in [
            ("drm", "drm"),
            ("snd-hda", "snd_hda"),
            ("/lib/modules/6.1/snd-hda.ko.xz", "snd_hda"),
            ("./a-b.ko.debug", "a_b"),
        ] {
            assert_eq!(module_name(given), name);
        }
    }
}
