//! Executables and libraries: which of an object's files its symbols are read from.

use std::io;
use std::path::PathBuf;

use memchr::memmem::Finder;

use super::{Loaded, unreadable};
use crate::build_id::{BuildId, build_id_of_image, image_with_build_id};
use crate::builder::TableBuilder;
use crate::candidates;
use crate::dwarf::{AddressMap, DebugSource};
use crate::elf::{Adjust, Image, SymbolSource, load_symbols};
use crate::files::{FileBytes, Files, Part, Wanted};
use crate::finding::Finding;
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::table::AddressSpace;
use crate::unpack::unpacked;

/// Finds and reads the symbols of an executable, a library or the vdso.
pub(super) fn load(files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) -> Loaded {
    Located::find(files, paths, request).read()
}

/// The files of an executable, a library or the vdso, for those who may not need the symbols in them.
pub struct Located {
    object: PathBuf,
    kind: ObjectKind,
    demangle: bool,
    id: Option<BuildId>,
    chosen: Option<Chosen>,
    findings: Vec<Finding>,
}

impl Located {
    /// Finds the files that [`load`](crate::load()) reads the symbols of such an object from.
    pub fn find(files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) -> Self {
        let mut search = Search {
            id: wanted_build_id(files, paths, request),
            ..Search::default()
        };
        search.run(files, paths, request);
        search.ask(files, paths, request);
        let chosen = search.choose();
        Self {
            object: request.path.to_owned(),
            kind: request.kind,
            demangle: paths.demangle,
            id: search.id,
            findings: match chosen.is_some() {
                true => search.findings,
                false => search.complain(request),
            },
            chosen,
        }
    }

    /// Where lines, inlined functions and variables may be.
    #[must_use]
    pub fn debug(&self) -> Option<DebugSource> {
        let chosen = self.chosen.as_ref()?;
        let (symbols, runtime) = chosen.images().ok()?;
        Some(self.source(chosen, runtime.as_ref().unwrap_or(&symbols)))
    }

    /// Whether names of symbols may have `part` in them, told by the bytes of all names.
    #[must_use]
    pub fn may_have(&self, part: &str) -> bool {
        let Some(chosen) = &self.chosen else {
            return false;
        };
        let wanted = Finder::new(part);
        let files = [Some(&chosen.names), chosen.runtime.as_ref()];
        files.into_iter().flatten().any(|file| {
            let names = Image::parse(&file.bytes).ok().map(|image| image.names());
            names.is_none_or(|names| names.iter().any(|names| wanted.find(names).is_some()))
        })
    }

    fn source(&self, chosen: &Chosen, runtime: &Image<'_>) -> DebugSource {
        DebugSource {
            object: self.object.clone(),
            kind: self.kind,
            build_id: self.id,
            path: chosen.names.path.clone(),
            bytes: chosen.names.bytes.clone(),
            addresses: AddressMap::of_object(runtime),
        }
    }

    /// Reads the symbols.
    #[must_use]
    pub fn read(&self) -> Loaded {
        let mut findings = self.findings.clone();
        let Some(chosen) = &self.chosen else {
            return Loaded::nothing(AddressSpace::FileOffset, findings);
        };
        let names = &chosen.names;
        let damaged = |reason| Finding::Damaged {
            path: names.path.clone(),
            reason,
        };
        let (symbols, runtime) = match chosen.images() {
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
            exports_of_runtime: chosen.is_extracted,
        };
        let mut builder = TableBuilder::of_file(self.demangle, names.bytes.clone());
        if let Err(reason) = load_symbols(&source, &mut builder) {
            findings.push(damaged(reason));
        }
        if !names.has_symtab {
            findings.push(Finding::OnlyDynamic {
                path: names.path.clone(),
            });
        }
        Loaded {
            table: builder.finish(AddressSpace::FileOffset),
            source: names.path.clone(),
            findings,
            debug: Some(self.source(chosen, source.runtime)),
            modules: Vec::new(),
            code: None,
        }
    }
}

/// A file that passed the checks.
#[derive(Clone)]
struct Candidate {
    path: PathBuf,
    bytes: FileBytes,
    has_symtab: bool,
    has_dynsym: bool,
    has_debug_data: bool,
}

/// The first file with `.symtab` gives the names, the first with `.dynsym` tells how the object is
/// mapped and what its PLT calls; each stands in for the other where there is no other.
#[derive(Default)]
struct Search {
    id: Option<BuildId>,
    names: Option<Candidate>,
    runtime: Option<Candidate>,
    /// The first file with `.gnu_debugdata`, which is asked if no other has names.
    embedded: Option<Candidate>,
    /// Whether any file was there at all.
    seen: bool,
    /// Whether one of them was the right one.
    matched: bool,
    findings: Vec<Finding>,
}

/// The files that the symbols of one object are read from.
struct Chosen {
    names: Candidate,
    /// Where it isn't the same one.
    runtime: Option<Candidate>,
    /// Whether `names` was in `.gnu_debugdata` of `runtime`.
    is_extracted: bool,
}

impl Chosen {
    /// The file with the names, and what is mapped where that is another one.
    fn images(&self) -> Result<(Image<'_>, Option<Image<'_>>), String> {
        let names = Image::parse(&self.names.bytes)?;
        let runtime = self.runtime.as_ref();
        let runtime = runtime.map(|file| Image::parse(&file.bytes)).transpose()?;
        Ok((names, runtime))
    }
}

impl Search {
    fn run(&mut self, files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) {
        let id = self.id;
        let own = paths.under_symfs(request.path);
        let listed = candidates::of_user_object(files, paths, request, id.as_ref());
        for path in listed {
            if self.names.is_some() && self.runtime.is_some() {
                break;
            }
            let read = match request.image {
                Some(image) if path == own => Ok(image.clone()),
                _ => files.read(&path),
            };
            match read {
                Ok(bytes) => self.offer(path, bytes),
                Err(error) if error.kind() != io::ErrorKind::NotFound && path == own => {
                    self.findings.push(unreadable(&path, &error));
                }
                Err(_) => {}
            }
        }
    }

    /// Goes on with what servers have: the object where no file at hand is it, its debug file where none has names.
    fn ask(&mut self, files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) {
        let Some(id) = self.id.filter(|_| request.kind == ObjectKind::User) else {
            return;
        };
        let fetch = |part| {
            let object = request.path;
            let build_id = &id;
            paths.fetch(
                files,
                &Wanted {
                    build_id,
                    part,
                    object,
                },
            )
        };
        if !self.matched
            && let Some((path, bytes)) = fetch(Part::Executable)
        {
            self.offer(path, bytes);
        }
        if self.names.is_none()
            && self.embedded.is_none()
            && let Some((path, bytes)) = fetch(Part::Debuginfo)
        {
            self.offer(path, bytes);
        }
    }

    fn offer(&mut self, path: PathBuf, bytes: FileBytes) {
        self.seen = true;
        match candidate(path, bytes, self.id.as_ref()) {
            // One place where another file lies is enough.
            Err(Finding::BuildIdMismatch { .. }) if self.knows_mismatch() => {}
            Err(finding) => self.findings.push(finding),
            Ok(candidate) => self.place(candidate),
        }
    }

    fn knows_mismatch(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| matches!(finding, Finding::BuildIdMismatch { .. }))
    }

    /// Keeps `candidate` for what is still missing. One file may serve as all.
    fn place(&mut self, candidate: Candidate) {
        self.matched = true;
        if candidate.has_debug_data && self.embedded.is_none() {
            self.embedded = Some(candidate.clone());
        }
        if candidate.has_dynsym && self.runtime.is_none() {
            self.runtime = Some(candidate.clone());
        }
        if candidate.has_symtab && self.names.is_none() {
            self.names = Some(candidate);
        }
    }

    fn choose(&mut self) -> Option<Chosen> {
        if self.names.is_none()
            && let Some(holder) = self.embedded.take()
            && let Some(names) = self.extract(&holder)
        {
            return Some(Chosen {
                names,
                runtime: Some(holder),
                is_extracted: true,
            });
        }
        let (names, runtime) = match self.names.take() {
            Some(names) => (names, self.runtime.take()),
            None => (self.runtime.take()?, None),
        };
        Some(Chosen {
            names,
            runtime,
            is_extracted: false,
        })
    }

    /// The small file in `.gnu_debugdata` of `holder`.
    fn extract(&mut self, holder: &Candidate) -> Option<Candidate> {
        let image = Image::parse(&holder.bytes).ok()?;
        let extracted = unpacked(image.debug_data()?).and_then(|bytes| {
            let bytes = FileBytes::from(bytes.into_owned());
            candidate(holder.path.clone(), bytes, None).map_err(|finding| finding.to_string())
        });
        match extracted {
            Ok(names) => names.has_symtab.then_some(names),
            Err(reason) => {
                self.findings.push(Finding::Damaged {
                    path: holder.path.clone(),
                    reason: format!(".gnu_debugdata: {reason}"),
                });
                None
            }
        }
    }

    /// What there is to say where nothing was found.
    fn complain(mut self, request: &ObjectRequest<'_>) -> Vec<Finding> {
        if self.findings.is_empty() {
            let path = request.path.to_owned();
            self.findings.push(match self.seen {
                true => Finding::Stripped { path },
                false => Finding::NotFound { path },
            });
        }
        self.findings
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

/// What the file at `path` has, if it is an ELF file with the build-id `wanted`.
fn candidate(
    path: PathBuf,
    bytes: FileBytes,
    wanted: Option<&BuildId>,
) -> Result<Candidate, Finding> {
    let image = image_with_build_id(&path, &bytes, wanted)?;
    let has_symtab = image.symtab().is_some();
    let has_dynsym = image.dynsym().is_some();
    let has_debug_data = image.debug_data().is_some();
    drop(image);
    Ok(Candidate {
        path,
        bytes,
        has_symtab,
        has_dynsym,
        has_debug_data,
    })
}
