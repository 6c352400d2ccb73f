//! The kernel, or a module of it: its symbols and types, and its image where that is at hand.

use std::cell::OnceCell;
use std::path::Path;

use clap::ArgMatches;
use rperf_probe::{
    Btf, Definition, Error, Found, Kernel, KernelSymbols, Options, Point, Probe, Target, find,
    place_in_kernel,
};
use rperf_symbol::{
    BuildId, Endianness, FileBytes, Files as _, ObjectKind, ObjectRequest, SearchPaths,
    build_id_of_notes, load,
};
use rperf_sys::{Proc, kernel_notes, uname};

use super::problem::problem;
use super::target::{Binary, search_paths};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;

const SYSFS: &str = "/sys";
const PROC: &str = "/proc";

/// What is at hand of the kernel.
pub(super) struct Running {
    /// `/proc/kallsyms`, which takes the kernel a while to write.
    listing: OnceCell<FileBytes>,
    /// The kernel's types and those of the module.
    types: OnceCell<Vec<FileBytes>>,
    module: Option<String>,
    machine: String,
    release: String,
    /// The image that the user named.
    named: Option<Box<Binary>>,
    /// Where others are looked for.
    paths: SearchPaths,
}

/// Places in the kernel, each with what the kernel is told.
pub(super) struct Places {
    pub(super) found: Found,
    pub(super) targets: Vec<Target>,
}

impl Running {
    /// Reads what the kernel tells of itself; `module` is the name of a module or the path of its file.
    pub(super) fn open(
        module: Option<&str>,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Self, CliError> {
        let names = uname()?;
        let paths = search_paths(matches, context)?.with_kernel_release(&names.release);
        let file = module.filter(|module| module.contains('/')).map(Path::new);
        let image = matches.get_one::<String>("vmlinux").map(Path::new);
        let named = file.or(image).map(|path| {
            let path = paths.symfs.as_ref().map_or_else(
                || path.to_owned(),
                |root| root.join(path.strip_prefix("/").unwrap_or(path)),
            );
            Binary::at_kernel(path, &paths).map(Box::new)
        });
        let module = module.map(module_name);
        Ok(Self {
            listing: OnceCell::new(),
            types: OnceCell::new(),
            module,
            machine: names.machine,
            release: names.release,
            named: named.transpose()?,
            paths,
        })
    }

    pub(super) fn module(&self) -> Option<&str> {
        self.module.as_deref()
    }

    /// What the kernel's types and those of the module are read from, in the kernel itself.
    fn types(&self) -> &[FileBytes] {
        self.types.get_or_init(|| {
            let btf = Path::new(SYSFS).join("kernel/btf");
            let own = self.module.as_ref().map(|module| btf.join(module));
            let files = [Some(btf.join("vmlinux")), own].into_iter().flatten();
            files.map_while(|path| DiskFiles.read(&path).ok()).collect()
        })
    }

    /// Hands over what the kernel tells of itself.
    pub(super) fn with<T>(&self, work: impl FnOnce(&Kernel<'_>) -> T) -> T {
        let listing = self.listing.get_or_init(|| {
            let listing = DiskFiles.read(&Path::new(PROC).join("kallsyms"));
            listing.unwrap_or_else(|_| Vec::new().into())
        });
        let symbols = KernelSymbols::parse(listing);
        let mut types = self.types().iter().map(|bytes| &bytes[..]);
        let base = types.next().and_then(|bytes| Btf::parse(bytes).ok());
        let types = base.map(|base| match types.next() {
            Some(own) => base.clone().with_module(own).unwrap_or(base),
            None => base,
        });
        work(&Kernel {
            symbols: &symbols,
            types: types.as_ref(),
            module: self.module(),
            machine: &self.machine,
        })
    }

    /// The build-id of the image that the user named, else of the running kernel.
    pub(super) fn build_id(&self) -> Option<BuildId> {
        match &self.named {
            Some(image) => image.build_id(),
            None => running_id(),
        }
    }

    /// The image that the user named: nothing else counts then.
    pub(super) fn named(&self) -> Option<&Binary> {
        self.named.as_deref()
    }

    /// The image of the running kernel, or of its module, with debug information.
    pub(super) fn image(&self) -> Option<Binary> {
        let path = match &self.module {
            None => {
                let id = running_id()?;
                let name = Path::new("[kernel.kallsyms]");
                let request = ObjectRequest::new(name, ObjectKind::Kernel);
                let loaded = load(&DiskFiles, &self.paths, &request.with_build_id(Some(&id)));
                loaded.debug?.path().to_owned()
            }
            Some(module) => {
                let library = format!("/lib/modules/{}", self.release);
                let modules = Proc::new(PROC).modules(Path::new(&library)).ok()?;
                let own = modules.into_iter().find(|other| other.name == *module);
                own?.file?
            }
        };
        let image = Binary::at_kernel(path, &self.paths).ok()?;
        image.has_debug_info().then_some(image)
    }

    /// What is said where no image has debug information: where it was looked for.
    pub(super) fn no_image(&self, doing: &str) -> CliError {
        let tried = self.paths.vmlinux_candidates.iter();
        let tried: Vec<String> = tried.map(|path| path.display().to_string()).collect();
        problem(&Error::NoKernelImage, doing).hint(format!(
            "looked for in the build-id cache and as {}",
            tried.join(", ")
        ))
    }

    /// The places of a definition: by what the kernel tells of itself, else by its image.
    pub(super) fn find(
        &self,
        definition: &Definition,
        options: &Options,
    ) -> Result<Places, CliError> {
        let failed = |error: Error| match error {
            Error::NoKernelImage => self.no_image("add events"),
            error => problem(&error, "add events"),
        };
        if let Some(image) = &self.named {
            return self
                .in_image(image, definition, options, false)
                .map_err(failed);
        }
        let own = self.with(|kernel| {
            let found = kernel.find(definition, options)?;
            let targets = found.probes.iter().map(|probe| kernel.target(probe));
            let targets = targets.collect();
            Ok(Places { found, targets })
        });
        // Only functions that the kernel lists can be where it says; lines and variables take debug information.
        match own {
            Err(error) if needs_image(&error, definition) => match self.image() {
                Some(image) => {
                    let places = self.in_image(&image, definition, options, true);
                    places.map_err(failed)
                }
                None => Err(failed(error)),
            },
            own => own.map_err(failed),
        }
    }

    fn in_image(
        &self,
        image: &Binary,
        definition: &Definition,
        options: &Options,
        is_running: bool,
    ) -> Result<Places, Error> {
        let object = image.object()?;
        let found = find(&object, definition, options)?;
        let target = |probe: &Probe| place_in_kernel(&object, probe, self.module(), is_running);
        let targets = found.probes.iter().map(target).collect();
        Ok(Places { found, targets })
    }
}

/// The build-id of the running kernel.
pub(super) fn running_id() -> Option<BuildId> {
    let notes = kernel_notes(Path::new(SYSFS)).ok()?;
    let endian = match cfg!(target_endian = "big") {
        true => Endianness::Big,
        false => Endianness::Little,
    };
    build_id_of_notes(&notes, endian)
}

fn needs_image(error: &Error, definition: &Definition) -> bool {
    match error {
        Error::NoKernelImage | Error::NoSignature { .. } | Error::NoVariable { .. } => true,
        // It may be inlined everywhere.
        Error::NoPoint { .. } => matches!(definition.point, Point::Function { .. }),
        _ => false,
    }
}

/// `snd_hda` out of `snd-hda`, `/lib/modules/…/snd-hda.ko.xz` or `snd_hda.ko.debug`.
pub(super) fn module_name(given: &str) -> String {
    let file = given.rsplit('/').next().unwrap_or(given);
    let name = file.split(".ko").next().unwrap_or(file);
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::module_name;

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
