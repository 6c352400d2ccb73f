//! Locating the debug information of a loaded object among its files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::frame_cache::FrameCache;
use super::interner::Interner;
use super::sections::{DebugFile, SectionSet};
use super::source::DebugSource;
use super::units::DebugObject;
use super::{Budget, LineIndex, LookupFindings, UnitSlots};
use crate::build_id::{BuildId, build_id_of_elf};
use crate::candidates;
use crate::files::{FilePart, FileRequest, Files};
use crate::finding::SymbolFinding;
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};

impl LineIndex {
    /// Opens the debug information of an object: that of the file its symbols came from, if it has any; otherwise, for user
    /// objects and kernel modules, that of the first of their other files that has the right build-id and debug information.
    /// `None` if no file has any.
    pub fn open(
        files: &dyn Files,
        paths: &SearchPaths,
        source: &DebugSource,
        budget: &Arc<Budget>,
    ) -> Option<Self> {
        let mut findings = LookupFindings::default();
        let object = find_object(files, paths, source, SectionSet::Main, &mut findings)?;
        Some(Self {
            units: UnitSlots::new(budget, object.index.len(), object.size()),
            object,
            addresses: source.addresses.clone(),
            functions: Interner::default(),
            files: Interner::default(),
            demangle: match source.kind {
                ObjectKind::Kernel | ObjectKind::KernelModule => paths.demangle_kernel,
                _ => paths.demangle,
            },
            frame_cache: FrameCache::default(),
            findings: Mutex::new(findings),
        })
    }
}

/// The debug information of a loaded object in all its files. Damage of the main file, and of candidates for it, is stored in
/// `findings`; damage of the alternate file and of the package is ignored.
pub(super) fn find_object(
    files: &dyn Files,
    paths: &SearchPaths,
    source: &DebugSource,
    section_set: SectionSet,
    findings: &mut LookupFindings,
) -> Option<DebugObject> {
    let main = find_main(files, paths, source, section_set, findings)?;
    let alternate = find_alternate(files, paths, &main);
    let package = find_package(files, &main.path);
    let (object, damage) = DebugObject::new(main, alternate, package);
    if let Some(error) = damage {
        let path = object.main.path.clone();
        let reason = format!("damaged debug information: {error}");
        findings.damage = Some(SymbolFinding::Damaged { path, reason });
    }
    Some(object)
}

fn find_main(
    files: &dyn Files,
    paths: &SearchPaths,
    source: &DebugSource,
    section_set: SectionSet,
    findings: &mut LookupFindings,
) -> Option<DebugFile> {
    let mut take = |path: &Path, bytes| match DebugFile::parse(path, bytes, section_set) {
        Ok(file) => Some(file).filter(DebugFile::has_units),
        Err(reason) => {
            let path = path.to_owned();
            findings
                .damage
                .get_or_insert(SymbolFinding::Damaged { path, reason });
            None
        }
    };
    if let Some(file) = take(&source.path, source.bytes.clone()) {
        return Some(file);
    }
    // Only for these kinds, separate debug files are searched. For the kernel and the vdso, only the file that their symbols
    // came from is used. Objects of other kinds have no debug information.
    if !matches!(source.kind, ObjectKind::User | ObjectKind::KernelModule) {
        return None;
    }
    // Without a build-id, it is unknown whether another file belongs to this object.
    let id = source.build_id.as_ref()?;
    let request = ObjectRequest::new(&source.object, source.kind);
    // A kernel module has the same candidates as a user object: those of another build are excluded by their build-id.
    let others = candidates::of_user_object(files, paths, &request, Some(id));
    let at_hand = others
        .into_iter()
        .filter(|path| *path != source.path)
        .find_map(|path| {
            let bytes = files.read(&path).ok()?;
            let has_same_id = build_id_of_elf(&bytes).is_some_and(|found| found.matches(id));
            has_same_id.then(|| take(&path, bytes)).flatten()
        });
    at_hand.or_else(|| {
        let (path, bytes) = paths.fetch(files, &debuginfo_request(id, &source.object))?;
        take(&path, bytes)
    })
}

/// The file named by `.gnu_debugaltlink`: an installed one with its build-id, the one at its path (which may be relative to the
/// referring file), or one from a server.
fn find_alternate(files: &dyn Files, paths: &SearchPaths, main: &DebugFile) -> Option<DebugFile> {
    let (link, id) = main.alternate.as_ref()?;
    let wanted = BuildId::from_bytes(id);
    let main_folder = main.path.parent().unwrap_or(Path::new(""));
    let by_id = wanted
        .iter()
        .flat_map(|id| candidates::installed_by_id(paths, id));
    let by_path = [main_folder.join(link), paths.under_symfs(link)];
    let at_hand = by_id.chain(by_path).find_map(|path| {
        let bytes = files.read(&path).ok()?;
        let found = build_id_of_elf(&bytes);
        let has_same_id =
            wanted.is_none_or(|wanted| found.is_some_and(|found| found.matches(&wanted)));
        if !has_same_id {
            return None;
        }
        DebugFile::parse(&path, bytes, SectionSet::Main).ok()
    });
    at_hand.or_else(|| {
        let (path, bytes) = paths.fetch(files, &debuginfo_request(wanted.as_ref()?, link))?;
        DebugFile::parse(&path, bytes, SectionSet::Main).ok()
    })
}

fn debuginfo_request<'a>(build_id: &'a BuildId, object: &'a Path) -> FileRequest<'a> {
    FileRequest {
        build_id,
        part: FilePart::Debuginfo,
        object,
    }
}

/// The package of split units (`.dwp`) next to the main file.
fn find_package(files: &dyn Files, main_path: &Path) -> Option<DebugFile> {
    let mut path = main_path.as_os_str().to_owned();
    path.push(".dwp");
    let path = PathBuf::from(path);
    let bytes = files.read(&path).ok()?;
    DebugFile::parse(&path, bytes, SectionSet::Split).ok()
}
