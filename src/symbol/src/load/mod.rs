//! From a request to a table: which file is read, and what is said about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::build_id::{BuildId, build_id_of_image};
use crate::builder::TableBuilder;
use crate::candidates;
use crate::dwarf::{AddressMap, DebugSource};
use crate::elf::{Adjust, Image, SymbolSource, load_symbols};
use crate::files::{FileBytes, Files};
use crate::finding::Finding;
use crate::kallsyms::ModuleSymbols;
use crate::kernel;
use crate::perf_map;
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::table::{AddressSpace, SymbolTable};

/// What [`load`] came back with.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The symbols; empty where there are none.
    pub table: SymbolTable,
    /// The file they were read from; empty where there are none.
    pub source: PathBuf,
    /// What is worth telling the user.
    pub findings: Vec<Finding>,
    /// Where lines and inlined functions may be; `None` for what has no file of its own.
    pub debug: Option<DebugSource>,
    /// With [`ObjectKind::Kernel`] out of kallsyms: the symbols of modules, which the same listing has.
    pub modules: Vec<ModuleSymbols>,
}

impl Loaded {
    pub(crate) fn nothing(space: AddressSpace, findings: Vec<Finding>) -> Self {
        Self {
            table: SymbolTable::empty(space),
            source: PathBuf::new(),
            findings,
            debug: None,
            modules: Vec::new(),
        }
    }
}

/// Finds and reads the symbols of one object as perf 6.1 does. It never fails: what is wrong is told in
/// [`Loaded::findings`].
pub fn load(files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) -> Loaded {
    match request.kind {
        ObjectKind::Kernel => kernel::load_kernel(files, paths, request),
        ObjectKind::KernelModule => kernel::load_module(files, paths, request),
        ObjectKind::User | ObjectKind::Vdso => load_object(files, paths, request),
        ObjectKind::PerfMap => load_perf_map(files, request.path),
        ObjectKind::Other => Loaded::nothing(AddressSpace::FileOffset, Vec::new()),
    }
}

fn load_perf_map(files: &dyn Files, path: &Path) -> Loaded {
    let nothing = |finding| Loaded::nothing(AddressSpace::Runtime, Vec::from_iter(finding));
    let bytes = match files.read(path) {
        Ok(bytes) => bytes,
        // Most processes with anonymous code have no map; that is no news.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return nothing(None),
        Err(error) => return nothing(Some(unreadable(path, &error))),
    };
    if !files.is_trusted(path) {
        return nothing(Some(Finding::Untrusted {
            path: path.to_owned(),
        }));
    }
    let map = perf_map::parse(&bytes);
    let bad = (map.bad_lines > 0).then(|| Finding::BadLines {
        path: path.to_owned(),
        count: map.bad_lines,
    });
    Loaded {
        table: map.table,
        source: path.to_owned(),
        findings: Vec::from_iter(bad),
        debug: None,
        modules: Vec::new(),
    }
}

/// A file that passed the checks.
struct Candidate {
    path: PathBuf,
    bytes: FileBytes,
    has_symtab: bool,
    has_dynsym: bool,
}

/// The first file with `.symtab` gives the names, the first with `.dynsym` tells how the object is
/// mapped and what its PLT calls; each stands in for the other where there is no other.
fn load_object(files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) -> Loaded {
    let mut findings = Vec::new();
    let id = wanted_build_id(files, paths, request);
    let mut names: Option<Candidate> = None;
    let mut runtime: Option<Candidate> = None;
    let listed = candidates::of_user_object(files, paths, request.path, id.as_ref(), request.kind);
    let mut seen = false;
    let own = paths.under_symfs(request.path);
    for path in listed {
        if names.is_some() && runtime.is_some() {
            break;
        }
        let read = match request.image {
            Some(image) if path == own => Ok(image.clone()),
            _ => files.read(&path),
        };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound && path == own {
                    findings.push(unreadable(&path, &error));
                }
                continue;
            }
        };
        seen = true;
        match check(path, bytes, id.as_ref()) {
            Err(finding) => findings.push(finding),
            Ok(candidate) => place(candidate, &mut names, &mut runtime),
        }
    }
    let (Some(names), runtime) = (match (names, runtime) {
        (None, Some(runtime)) => (Some(runtime), None),
        both => both,
    }) else {
        if findings.is_empty() {
            let path = request.path.to_owned();
            findings.push(match seen {
                true => Finding::Stripped { path },
                false => Finding::NotFound { path },
            });
        }
        return Loaded::nothing(AddressSpace::FileOffset, findings);
    };
    let found = Found { names, runtime, id };
    read_tables(request, &found, paths.demangle, findings)
}

/// Keeps `candidate` for what is still missing. One file may serve as both.
fn place(candidate: Candidate, names: &mut Option<Candidate>, runtime: &mut Option<Candidate>) {
    let for_names = names.is_none() && candidate.has_symtab;
    let for_runtime = runtime.is_none() && candidate.has_dynsym;
    if for_names && for_runtime {
        *runtime = Some(Candidate {
            path: candidate.path.clone(),
            bytes: candidate.bytes.clone(),
            ..candidate
        });
    }
    if for_names {
        *names = Some(candidate);
    } else if for_runtime {
        *runtime = Some(candidate);
    }
}

/// The files of one object.
struct Found {
    names: Candidate,
    /// Where it isn't the same one.
    runtime: Option<Candidate>,
    id: Option<BuildId>,
}

fn read_tables(
    request: &ObjectRequest<'_>,
    found: &Found,
    demangle: bool,
    mut findings: Vec<Finding>,
) -> Loaded {
    let names = &found.names;
    let damaged = |reason| Finding::Damaged {
        path: names.path.clone(),
        reason,
    };
    let images = Image::parse(&names.bytes).and_then(|image| {
        Ok((
            image,
            found
                .runtime
                .as_ref()
                .map(|r| Image::parse(&r.bytes))
                .transpose()?,
        ))
    });
    let (symbols, runtime) = match images {
        Ok(images) => images,
        Err(reason) => {
            findings.push(damaged(reason));
            return Loaded::nothing(AddressSpace::FileOffset, findings);
        }
    };
    let source = SymbolSource {
        symbols: &symbols,
        runtime: runtime.as_ref().unwrap_or(&symbols),
        adjust: Adjust::FileOffset,
    };
    let mut builder = TableBuilder::new(demangle);
    if let Err(reason) = load_symbols(&source, &mut builder) {
        findings.push(damaged(reason));
    }
    if !names.has_symtab {
        findings.push(Finding::OnlyDynamic {
            path: names.path.clone(),
        });
    }
    let debug = DebugSource {
        object: request.path.to_owned(),
        kind: request.kind,
        build_id: found.id,
        path: names.path.clone(),
        bytes: names.bytes.clone(),
        addresses: AddressMap::of_object(source.runtime),
    };
    Loaded {
        table: builder.finish(AddressSpace::FileOffset),
        source: names.path.clone(),
        findings,
        debug: Some(debug),
        modules: Vec::new(),
    }
}

/// The recorded build-id; without one, that of the object as it is now, so that its debug file is found.
fn wanted_build_id(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
) -> Option<BuildId> {
    if let Some(id) = request.build_id {
        return Some(*id);
    }
    let bytes = match request.image {
        Some(image) => image.clone(),
        None => files.read(&paths.under_symfs(request.path)).ok()?,
    };
    build_id_of_image(&Image::parse(&bytes).ok()?)
}

fn check(path: PathBuf, bytes: FileBytes, wanted: Option<&BuildId>) -> Result<Candidate, Finding> {
    let image = match Image::parse(&bytes) {
        Ok(image) => image,
        Err(reason) => return Err(Finding::Damaged { path, reason }),
    };
    if let Some(wanted) = wanted {
        let found = build_id_of_image(&image);
        if !found.is_some_and(|found| found.matches(wanted)) {
            return Err(Finding::BuildIdMismatch {
                path,
                found,
                wanted: *wanted,
            });
        }
    }
    let has_symtab = image.symtab().is_some();
    let has_dynsym = image.dynsym().is_some();
    drop(image);
    Ok(Candidate {
        path,
        bytes,
        has_symtab,
        has_dynsym,
    })
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Finding {
    Finding::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
