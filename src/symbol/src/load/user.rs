//! Executables and libraries: selection of the files with an object's symbols.

use std::io;
use std::path::PathBuf;

use memchr::memmem::Finder;

use super::{LoadedSymbols, unreadable};
use crate::build_id::{BuildId, build_id_of_image, image_with_build_id};
use crate::builder::TableBuilder;
use crate::candidates;
use crate::dwarf::{AddressMap, DebugSource};
use crate::elf::{AddressRelocation, ElfImage, SymbolSource, load_symbols};
use crate::files::{FileBytes, FilePart, FileRequest, Files};
use crate::finding::SymbolFinding;
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::table::AddressKind;
use crate::unpack::decompressed;

/// Loads the symbols of an executable, a library or the vdso.
pub(super) fn load(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
) -> LoadedSymbols {
    ObjectFiles::find(files, paths, request).read()
}

/// The files of an executable, a library or the vdso, whose symbols are read on request.
pub struct ObjectFiles {
    object: PathBuf,
    kind: ObjectKind,
    demangle: bool,
    /// From [`build_id_of_request`].
    id: Option<BuildId>,
    selected: Option<SelectedFiles>,
    findings: Vec<SymbolFinding>,
}

impl ObjectFiles {
    /// Finds the files from which [`load`](crate::load()) reads the symbols.
    pub fn find(files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) -> Self {
        let mut search = FileSearch {
            id: build_id_of_request(files, paths, request),
            ..FileSearch::default()
        };
        search.run(files, paths, request);
        search.query_servers(files, paths, request);
        let selected = search.select();
        Self {
            object: request.path.to_owned(),
            kind: request.kind,
            demangle: paths.demangle,
            id: search.id,
            findings: match selected.is_some() {
                true => search.findings,
                false => search.into_findings(request),
            },
            selected,
        }
    }

    /// Returns where to look for lines, inlined functions and variables; `None` if no file was found, or one is damaged.
    #[must_use]
    pub fn debug(&self) -> Option<DebugSource> {
        let selected = self.selected.as_ref()?;
        let (names, runtime) = selected.images().ok()?;
        Some(self.debug_source(selected, runtime.as_ref().unwrap_or(&names)))
    }

    /// Whether symbol names, as they are in the files, may contain `part`; `true` if a file cannot be parsed, `false` if no
    /// file was found.
    #[must_use]
    pub fn may_have_name_with(&self, part: &str) -> bool {
        let Some(selected) = &self.selected else {
            return false;
        };
        let finder = Finder::new(part);
        let files = [Some(&selected.names), selected.runtime.as_ref()];
        files.into_iter().flatten().any(|file| {
            let tables = ElfImage::parse(&file.bytes)
                .ok()
                .map(|image| image.string_tables());
            tables.is_none_or(|tables| tables.iter().any(|table| finder.find(table).is_some()))
        })
    }

    fn debug_source(&self, selected: &SelectedFiles, runtime: &ElfImage<'_>) -> DebugSource {
        DebugSource {
            object: self.object.clone(),
            kind: self.kind,
            build_id: self.id,
            path: selected.names.path.clone(),
            bytes: selected.names.bytes.clone(),
            addresses: AddressMap::of_object(runtime),
        }
    }

    /// Reads the symbols.
    #[must_use]
    pub fn read(&self) -> LoadedSymbols {
        let mut findings = self.findings.clone();
        let Some(selected) = &self.selected else {
            return LoadedSymbols::empty(AddressKind::FileOffset, findings);
        };
        let names = &selected.names;
        let damaged = |reason| SymbolFinding::Damaged {
            path: names.path.clone(),
            reason,
        };
        let (names_image, runtime) = match selected.images() {
            Ok(images) => images,
            Err(reason) => {
                findings.push(damaged(reason));
                return LoadedSymbols::empty(AddressKind::FileOffset, findings);
            }
        };
        let source = SymbolSource {
            symbols: &names_image,
            runtime: runtime.as_ref().unwrap_or(&names_image),
            relocation: AddressRelocation::FileOffset,
            // `.gnu_debugdata` omits the symbols that are in `.dynsym`.
            dynsym_from_runtime: selected.is_extracted,
        };
        let mut builder = TableBuilder::of_file(self.demangle, names.bytes.clone());
        if let Err(reason) = load_symbols(&source, &mut builder) {
            findings.push(damaged(reason));
        }
        if !names.has_symtab {
            findings.push(SymbolFinding::OnlyDynamic {
                path: names.path.clone(),
            });
        }
        LoadedSymbols {
            table: builder.finish(AddressKind::FileOffset),
            source: names.path.clone(),
            findings,
            debug: Some(self.debug_source(selected, source.runtime)),
            modules: Vec::new(),
            code: None,
        }
    }
}

/// A file that passed [`check_file`].
#[derive(Clone)]
struct CheckedFile {
    path: PathBuf,
    bytes: FileBytes,
    has_symtab: bool,
    has_dynsym: bool,
    /// Whether it has `.gnu_debugdata`.
    has_debug_data: bool,
}

/// The search for the files of an object. Symbol names come from the first file with `.symtab` (`names`), the mapped segments and
/// the PLT from the first with `.dynsym` (`runtime`). If there is only one of these files, it is used for both.
#[derive(Default)]
struct FileSearch {
    /// From [`build_id_of_request`].
    id: Option<BuildId>,
    names: Option<CheckedFile>,
    runtime: Option<CheckedFile>,
    /// The first file with `.gnu_debugdata`, whose names are used if no file has `.symtab`.
    embedded: Option<CheckedFile>,
    /// Whether any file was read.
    has_read: bool,
    /// Whether a file passed [`check_file`].
    has_match: bool,
    findings: Vec<SymbolFinding>,
}

/// The selected files of one object.
struct SelectedFiles {
    /// The file with the symbol names.
    names: CheckedFile,
    /// The file with `.dynsym`, or the one from which `names` was extracted; `None` if `names` is used instead.
    runtime: Option<CheckedFile>,
    /// Whether `names` was extracted from `.gnu_debugdata` of `runtime`.
    is_extracted: bool,
}

impl SelectedFiles {
    /// Parses `names` and `runtime`.
    fn images(&self) -> Result<(ElfImage<'_>, Option<ElfImage<'_>>), String> {
        let names = ElfImage::parse(&self.names.bytes)?;
        let runtime = self.runtime.as_ref();
        let runtime = runtime
            .map(|file| ElfImage::parse(&file.bytes))
            .transpose()?;
        Ok((names, runtime))
    }
}

impl FileSearch {
    /// Adds local files until there are `names` and `runtime`. Of existing files that can't be read, reports only the object.
    fn run(&mut self, files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) {
        let id = self.id;
        let object_path = paths.under_symfs(request.path);
        let listed = candidates::of_user_object(files, paths, request, id.as_ref());
        for path in listed {
            if self.names.is_some() && self.runtime.is_some() {
                break;
            }
            let read = match request.image {
                Some(image) if path == object_path => Ok(image.clone()),
                _ => files.read(&path),
            };
            match read {
                Ok(bytes) => self.add_file(path, bytes),
                Err(error) if error.kind() != io::ErrorKind::NotFound && path == object_path => {
                    self.findings.push(unreadable(&path, &error));
                }
                Err(_) => {}
            }
        }
    }

    /// For user objects with a build-id, adds files from servers: the object if no local file passed [`check_file`], and its
    /// debug file if no file has `.symtab` or `.gnu_debugdata`.
    fn query_servers(
        &mut self,
        files: &dyn Files,
        paths: &SearchPaths,
        request: &ObjectRequest<'_>,
    ) {
        let Some(id) = self.id.filter(|_| request.kind == ObjectKind::User) else {
            return;
        };
        let fetch = |part| {
            let object = request.path;
            let build_id = &id;
            paths.fetch(
                files,
                &FileRequest {
                    build_id,
                    part,
                    object,
                },
            )
        };
        if !self.has_match
            && let Some((path, bytes)) = fetch(FilePart::Executable)
        {
            self.add_file(path, bytes);
        }
        if self.names.is_none()
            && self.embedded.is_none()
            && let Some((path, bytes)) = fetch(FilePart::Debuginfo)
        {
            self.add_file(path, bytes);
        }
    }

    fn add_file(&mut self, path: PathBuf, bytes: FileBytes) {
        self.has_read = true;
        match check_file(path, bytes, self.id.as_ref()) {
            // Reporting one mismatch is enough.
            Err(SymbolFinding::BuildIdMismatch { .. }) if self.knows_mismatch() => {}
            Err(finding) => self.findings.push(finding),
            Ok(file) => self.place(file),
        }
    }

    fn knows_mismatch(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| matches!(finding, SymbolFinding::BuildIdMismatch { .. }))
    }

    /// Uses `file` as each of `embedded`, `runtime` and `names` for which it is the first file with the required section.
    fn place(&mut self, file: CheckedFile) {
        self.has_match = true;
        if file.has_debug_data && self.embedded.is_none() {
            self.embedded = Some(file.clone());
        }
        if file.has_dynsym && self.runtime.is_none() {
            self.runtime = Some(file.clone());
        }
        if file.has_symtab && self.names.is_none() {
            self.names = Some(file);
        }
    }

    /// Selects from the files found; `None` if none of them has symbols.
    fn select(&mut self) -> Option<SelectedFiles> {
        if self.names.is_none()
            && let Some(holder) = self.embedded.take()
            && let Some(names) = self.extract(&holder)
        {
            return Some(SelectedFiles {
                names,
                runtime: Some(holder),
                is_extracted: true,
            });
        }
        let (names, runtime) = match self.names.take() {
            Some(names) => (names, self.runtime.take()),
            None => (self.runtime.take()?, None),
        };
        Some(SelectedFiles {
            names,
            runtime,
            is_extracted: false,
        })
    }

    /// Extracts the compressed ELF file in `.gnu_debugdata` of `holder`; `None` if it is damaged or has no `.symtab`.
    fn extract(&mut self, holder: &CheckedFile) -> Option<CheckedFile> {
        let image = ElfImage::parse(&holder.bytes).ok()?;
        let extracted = decompressed(image.debug_data()?).and_then(|bytes| {
            let bytes = FileBytes::from(bytes.into_owned());
            let any_build_id = None;
            check_file(holder.path.clone(), bytes, any_build_id)
                .map_err(|finding| finding.to_string())
        });
        match extracted {
            Ok(names) => names.has_symtab.then_some(names),
            Err(reason) => {
                self.findings.push(SymbolFinding::Damaged {
                    path: holder.path.clone(),
                    reason: format!(".gnu_debugdata: {reason}"),
                });
                None
            }
        }
    }

    /// The findings if no file was selected; at least one.
    fn into_findings(mut self, request: &ObjectRequest<'_>) -> Vec<SymbolFinding> {
        if self.findings.is_empty() {
            let path = request.path.to_owned();
            self.findings.push(match self.has_read {
                true => SymbolFinding::Stripped { path },
                false => SymbolFinding::NotFound { path },
            });
        }
        self.findings
    }
}

/// The recorded build-id. If none is recorded, the build-id of the object's current file, which identifies its debug file.
fn build_id_of_request(
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
    build_id_of_image(&ElfImage::parse(&bytes).ok()?)
}

/// Checks that the file at `path` is an ELF file, with the build-id `expected` if given.
fn check_file(
    path: PathBuf,
    bytes: FileBytes,
    expected: Option<&BuildId>,
) -> Result<CheckedFile, SymbolFinding> {
    let image = image_with_build_id(&path, &bytes, expected)?;
    let has_symtab = image.symtab().is_some();
    let has_dynsym = image.dynsym().is_some();
    let has_debug_data = image.debug_data().is_some();
    drop(image);
    Ok(CheckedFile {
        path,
        bytes,
        has_symtab,
        has_dynsym,
        has_debug_data,
    })
}
