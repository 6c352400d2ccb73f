//! Symbols of the kernel and its modules.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use object::elf::ET_REL;

use crate::build_id::image_with_build_id;
use crate::builder::TableBuilder;
use crate::candidates;
use crate::dwarf::{AddressMap, DebugSource};
use crate::elf::{AddressRelocation, ElfImage, SymbolSource, load_symbols};
use crate::files::{FileBytes, FilePart, FileRequest, Files};
use crate::finding::SymbolFinding;
use crate::kallsyms::{self, Kallsyms};
use crate::listing;
use crate::load::{LoadedSymbols, unreadable};
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::table::AddressKind;
use crate::unpack::decompressed;

/// Loads the file of `--kallsyms` if given. Otherwise loads a vmlinux; if none is usable, the listing of [`listing::find`]; if
/// there is no listing, the debug file from a server.
pub(crate) fn load_kernel(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
) -> LoadedSymbols {
    let mut findings = Vec::new();
    if paths.kallsyms_override.is_none()
        && let Some(loaded) = load_vmlinux(files, paths, request, &mut findings)
    {
        return loaded;
    }
    let Some(path) = listing::find(files, paths, request) else {
        if let Some(mut loaded) = fetch_image(files, paths, request, &mut findings) {
            // If the user named a vmlinux, its faults are reported. If not, the fetched file makes up for the
            // unusable candidates.
            if paths.vmlinux.is_some() {
                loaded.findings = findings;
            }
            return loaded;
        }
        findings.extend(no_kernel_symbols(request));
        return LoadedSymbols::empty(AddressKind::Runtime, findings);
    };
    let Some(listing) = read_kallsyms(files, &path, request, &mut findings) else {
        return LoadedSymbols::empty(AddressKind::Runtime, findings);
    };
    LoadedSymbols {
        table: listing.kernel,
        source: path,
        findings,
        debug: None,
        modules: listing.modules,
        // Only a jitdump has code.
        code: None,
    }
}

/// Loads a module's `.ko` file; if none is usable, its symbols in kallsyms; if there is no kallsyms, its debug file from a
/// server. Addresses are run-time ones.
pub(crate) fn load_module(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
) -> LoadedSymbols {
    let mut findings = Vec::new();
    // The path is only the module's name, `[ext4]`, if its file is not known.
    if request.path.is_absolute()
        && let Some(loaded) = load_module_file(files, paths, request, &mut findings)
    {
        return loaded;
    }
    let kernel = ObjectRequest {
        build_id: request.kernel_build_id,
        kind: ObjectKind::Kernel,
        // `kallsyms::read` relocates only the kernel's own symbols.
        relocation: None,
        ..*request
    };
    let Some(path) = listing::find(files, paths, &kernel) else {
        if let Some(loaded) = fetch_image(files, paths, request, &mut findings) {
            return loaded;
        }
        findings.extend(no_kernel_symbols(&kernel));
        return LoadedSymbols::empty(AddressKind::Runtime, findings);
    };
    let name = module_name(request.path);
    let module = read_kallsyms(files, &path, &kernel, &mut findings).and_then(|listing| {
        listing
            .modules
            .into_iter()
            .find(|module| *module.name == *name)
    });
    match module {
        Some(module) => LoadedSymbols {
            table: module.table,
            source: path,
            findings,
            debug: None,
            modules: Vec::new(),
            // Only a jitdump has code.
            code: None,
        },
        None => {
            findings.push(SymbolFinding::NotFound {
                path: request.path.to_owned(),
            });
            LoadedSymbols::empty(AddressKind::Runtime, findings)
        }
    }
}

/// `ext4` from `[ext4]` or `/lib/modules/…/ext4.ko.xz`; a `-` in the file name is `_` in the module's name.
fn module_name(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match bare {
        Some(bare) => bare.to_owned(),
        None => name.split(".ko").next().unwrap_or(&name).replace('-', "_"),
    }
}

fn load_module_file(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
    findings: &mut Vec<SymbolFinding>,
) -> Option<LoadedSymbols> {
    let cached = match (&paths.build_id_cache, request.build_id) {
        (Some(cache), Some(id)) => candidates::cached(cache, id, request.kind).to_vec(),
        _ => Vec::new(),
    };
    let object_path = paths.under_symfs(request.path);
    for path in cached.into_iter().chain([object_path]) {
        let Ok(bytes) = files.read(&path) else {
            continue;
        };
        let bytes = match decompressed(&bytes) {
            // It was not compressed.
            Ok(Cow::Borrowed(_)) => bytes,
            Ok(Cow::Owned(unpacked)) => unpacked.into(),
            Err(reason) => {
                findings.push(SymbolFinding::Damaged { path, reason });
                continue;
            }
        };
        match read_kernel_image(&path, &bytes, request, paths.demangle_kernel) {
            Ok(loaded) => return Some(loaded),
            Err(finding) => findings.push(finding),
        }
    }
    None
}

fn load_vmlinux(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
    findings: &mut Vec<SymbolFinding>,
) -> Option<LoadedSymbols> {
    let images = match &paths.vmlinux {
        Some(named) => std::slice::from_ref(named),
        None => paths.vmlinux_candidates.as_slice(),
    };
    for path in images {
        let path = paths.under_symfs(path);
        let bytes = match files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                // Candidates that can't be read are not reported.
                findings.extend(paths.vmlinux.is_some().then(|| unreadable(&path, &error)));
                continue;
            }
        };
        match read_kernel_image(&path, &bytes, request, paths.demangle_kernel) {
            Ok(loaded) => return Some(loaded),
            Err(finding) => findings.push(finding),
        }
    }
    None
}

/// Fetches the debug file of the kernel or a module from a server.
fn fetch_image(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
    findings: &mut Vec<SymbolFinding>,
) -> Option<LoadedSymbols> {
    let debug_file = FileRequest {
        build_id: request.build_id?,
        part: FilePart::Debuginfo,
        object: request.path,
    };
    let (path, bytes) = paths.fetch(files, &debug_file)?;
    match read_kernel_image(&path, &bytes, request, paths.demangle_kernel) {
        Ok(loaded) => Some(loaded),
        Err(finding) => {
            findings.push(finding);
            None
        }
    }
}

/// Reads a vmlinux, an uncompressed module or the debug file of either, with run-time addresses.
fn read_kernel_image(
    path: &Path,
    bytes: &FileBytes,
    request: &ObjectRequest<'_>,
    demangle: bool,
) -> Result<LoadedSymbols, SymbolFinding> {
    let image = image_with_build_id(path, bytes, request.build_id)?;
    let path = path.to_owned();
    if image.symtab().is_none() {
        return Err(SymbolFinding::Stripped { path });
    }
    let relocation = match ImageRelocation::of(&image, request) {
        Ok(relocation) => relocation,
        Err(reason) => return Err(SymbolFinding::Damaged { path, reason }),
    };
    let mut builder = match image.kind {
        // Modules were usually decompressed, and keeping that memory for names isn't worthwhile.
        ET_REL => TableBuilder::new(demangle),
        _ => TableBuilder::of_file(demangle, bytes.clone()),
    };
    // The image has the symbols and the segments, so it takes the place of both files.
    let source = SymbolSource {
        symbols: &image,
        runtime: &image,
        relocation: relocation.symbols,
        dynsym_from_runtime: false,
    };
    if let Err(reason) = load_symbols(&source, &mut builder) {
        return Err(SymbolFinding::Damaged { path, reason });
    }
    Ok(LoadedSymbols {
        table: builder.finish(AddressKind::Runtime),
        source: path.clone(),
        findings: Vec::new(),
        debug: Some(DebugSource {
            object: request.path.to_owned(),
            kind: request.kind,
            build_id: request.build_id.copied(),
            path,
            bytes: bytes.clone(),
            addresses: AddressMap::Shift(relocation.dwarf),
        }),
        modules: Vec::new(),
        // Only a jitdump has code.
        code: None,
    })
}

/// Relocation of an image to its address in the recorded kernel.
struct ImageRelocation {
    symbols: AddressRelocation,
    /// Run-time addresses minus addresses in DWARF, wrapping.
    dwarf: u64,
}

impl ImageRelocation {
    /// Relocates a module to the start of its mapping, and the kernel so that its relocation symbol has the recorded address, if
    /// one was recorded. It is an error if the kernel image does not have this symbol.
    fn of(image: &ElfImage<'_>, request: &ObjectRequest<'_>) -> Result<Self, String> {
        if image.kind == ET_REL {
            let start = request.map_start;
            return Ok(Self {
                symbols: AddressRelocation::ModuleText(start),
                dwarf: start,
            });
        }
        let distance = match request.relocation {
            Some((name, recorded)) => {
                let value = image.symbol_value(name);
                let value =
                    value.ok_or("it lacks the symbol that determines the kernel's load address")?;
                recorded.wrapping_sub(value)
            }
            None => 0,
        };
        Ok(Self {
            symbols: AddressRelocation::Shift(distance),
            dwarf: distance,
        })
    }
}

fn no_kernel_symbols(request: &ObjectRequest<'_>) -> Option<SymbolFinding> {
    let build_id = *request.build_id?;
    Some(SymbolFinding::NoKernelSymbols { build_id })
}

fn read_kallsyms(
    files: &dyn Files,
    path: &Path,
    request: &ObjectRequest<'_>,
    findings: &mut Vec<SymbolFinding>,
) -> Option<Kallsyms> {
    let listing = files
        .open(path)
        .and_then(|mut source| kallsyms::read(&mut *source, request.relocation));
    let listing = match listing {
        Ok(listing) => listing,
        Err(error) => {
            findings.push(match error.kind() {
                io::ErrorKind::NotFound => SymbolFinding::NotFound {
                    path: path.to_owned(),
                },
                _ => unreadable(path, &error),
            });
            return None;
        }
    };
    let path = path.to_owned();
    if listing.is_blank {
        findings.push(SymbolFinding::NoListing { path });
        return None;
    }
    if listing.hidden {
        findings.push(SymbolFinding::KernelAddressesHidden { path });
        return None;
    }
    if let Some((symbol, _)) = request
        .relocation
        .filter(|_| listing.lacks_relocation_symbol)
    {
        findings.push(SymbolFinding::NoRelocationSymbol {
            path,
            symbol: symbol.to_owned(),
        });
        return None;
    }
    Some(listing)
}
