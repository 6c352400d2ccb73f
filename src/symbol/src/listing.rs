//! Which listing of a kernel's symbols is to be read, and which copy of its memory belongs to it.

use std::path::{Path, PathBuf};

use object::Endianness;

use crate::build_id::{BuildId, build_id_of_notes};
use crate::files::Files;
use crate::kallsyms;
use crate::request::{ObjectRequest, SearchPaths};

/// The listing of the kernel with the build-id wanted; of the running one, if that isn't known.
///
/// A copy in the build-id cache that was taken together with the kernel's memory goes before the running kernel's listing,
/// unless that one's memory can be read.
pub(crate) fn find(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
) -> Option<PathBuf> {
    if let Some(path) = &paths.kallsyms_override {
        return Some(path.clone());
    }
    let running = || Some(paths.kallsyms.clone());
    let Some(wanted) = request.build_id else {
        return running();
    };
    let is_running = is_running(files, paths, wanted);
    if is_running && memory_of(files, &paths.kallsyms, request).is_some() {
        return running();
    }
    if let Some(copy) = copied_with_memory(files, paths, request, wanted) {
        return Some(copy);
    }
    if is_running {
        return running();
    }
    let entry = paths
        .build_id_cache
        .as_ref()?
        .join("[kernel.kallsyms]")
        .join(wanted.to_string());
    // Old caches kept the file itself under the id.
    [entry.join("kallsyms"), entry]
        .into_iter()
        .find(|path| files.read(path).is_ok())
}

/// The `kcore` beside a listing, if it can be read and is of the boot that was recorded.
pub(crate) fn memory_of(
    files: &dyn Files,
    listing: &Path,
    request: &ObjectRequest<'_>,
) -> Option<PathBuf> {
    if listing.file_name()? != "kallsyms" {
        return None;
    }
    let memory = listing.with_file_name("kcore");
    let mut start = [0; 1];
    let is_readable = files.read_at(&memory, 0, &mut start).ok()? == 1;
    (is_readable && is_of_boot(files, listing, request)).then_some(memory)
}

/// Whether the kernel with the build-id `wanted` is the one that runs.
pub fn is_running(files: &dyn Files, paths: &SearchPaths, wanted: &BuildId) -> bool {
    let notes = files.read(&paths.kernel_notes).ok();
    let running = notes.and_then(|notes| build_id_of_notes(&notes, native_endian()));
    running.is_some_and(|running| running.matches(wanted))
}

/// `CACHE/[kernel.kcore]/ID/TIME/kallsyms`, of several the latest.
fn copied_with_memory(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
    wanted: &BuildId,
) -> Option<PathBuf> {
    let cache = paths.build_id_cache.as_ref()?;
    let copies = cache.join("[kernel.kcore]").join(wanted.to_string());
    let mut copies = files.list(&copies).ok()?;
    copies.sort_unstable();
    let mut listings = copies.iter().rev().map(|copy| copy.join("kallsyms"));
    listings.find(|listing| memory_of(files, listing, request).is_some())
}

/// Whether the kernel was at the same address when `listing` was made as when it was recorded.
fn is_of_boot(files: &dyn Files, listing: &Path, request: &ObjectRequest<'_>) -> bool {
    let Some((symbol, recorded)) = request.relocation else {
        return true;
    };
    let source = files.open(listing);
    let address = source.and_then(|mut source| kallsyms::address_of(&mut *source, symbol));
    address.is_ok_and(|address| address == Some(recorded))
}

/// The byte order of the machine that runs us, which `/sys/kernel/notes` has.
#[must_use]
pub fn native_endian() -> Endianness {
    if cfg!(target_endian = "big") {
        Endianness::Big
    } else {
        Endianness::Little
    }
}
