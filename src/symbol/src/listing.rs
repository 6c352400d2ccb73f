//! Selection of a kernel symbol listing (`kallsyms`), and of the kernel's memory that belongs to it (`kcore`).
//!
//! Both are of the recorded boot if the listing has the recorded address of the kernel: with KASLR, that changes at each boot.

use std::path::{Path, PathBuf};

use object::Endianness;

use crate::build_id::{BuildId, build_id_of_notes};
use crate::files::Files;
use crate::kallsyms;
use crate::request::{ObjectRequest, SearchPaths};

/// Returns [`SearchPaths::kallsyms_override`] if given. Otherwise returns the listing of the kernel with the build-id of
/// `request`, or of the running kernel if `request` has none. `None` if there is no such listing. `request` is that of the
/// kernel, also if symbols of a module are needed.
///
/// With a build-id, the first of these listings is used:
/// - that of the running kernel, if this has the build-id, and its memory can be read and is of the recorded boot;
/// - the latest copy in `[kernel.kcore]` of the build-id cache with a copy of the memory of the recorded boot next to it;
/// - that of the running kernel, if this has the build-id;
/// - the copy in `[kernel.kallsyms]` of the build-id cache.
pub(crate) fn find(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
) -> Option<PathBuf> {
    if let Some(path) = &paths.kallsyms_override {
        return Some(path.clone());
    }
    let running = || Some(paths.kallsyms.clone());
    let Some(build_id) = request.build_id else {
        return running();
    };
    let is_running = is_running_kernel(files, paths, build_id);
    if is_running && memory_of(files, &paths.kallsyms, request).is_some() {
        return running();
    }
    if let Some(copy) = copied_with_memory(files, paths, request, build_id) {
        return Some(copy);
    }
    if is_running {
        return running();
    }
    let entry = paths
        .build_id_cache
        .as_ref()?
        .join("[kernel.kallsyms]")
        .join(build_id.to_string());
    // In old caches, the entry is not a directory but the listing itself.
    [entry.join("kallsyms"), entry]
        .into_iter()
        .find(|path| files.read(path).is_ok())
}

/// The `kcore` next to a listing named `kallsyms`, if it can be read and is of the recorded boot.
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

/// Whether the kernel with this build-id is running.
pub fn is_running_kernel(files: &dyn Files, paths: &SearchPaths, build_id: &BuildId) -> bool {
    let notes = files.read(&paths.kernel_notes).ok();
    let running = notes.and_then(|notes| build_id_of_notes(&notes, native_endian()));
    running.is_some_and(|running| running.matches(build_id))
}

/// The latest `CACHE/[kernel.kcore]/ID/TIME/kallsyms` with memory of the recorded boot.
fn copied_with_memory(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
    build_id: &BuildId,
) -> Option<PathBuf> {
    let cache = paths.build_id_cache.as_ref()?;
    let copies = cache.join("[kernel.kcore]").join(build_id.to_string());
    let mut copies = files.list(&copies).ok()?;
    copies.sort_unstable();
    let mut listings = copies.iter().rev().map(|copy| copy.join("kallsyms"));
    listings.find(|listing| memory_of(files, listing, request).is_some())
}

/// Whether the kernel's relocation symbol (`_text`, `_stext`) has the same address in `listing` as in the recording; `true` if
/// the recording does not have the address.
fn is_of_boot(files: &dyn Files, listing: &Path, request: &ObjectRequest<'_>) -> bool {
    let Some((symbol, recorded)) = request.relocation else {
        return true;
    };
    let source = files.open(listing);
    let address = source.and_then(|mut source| kallsyms::address_of(&mut *source, symbol));
    address.is_ok_and(|address| address == Some(recorded))
}

/// The byte order of this machine.
#[must_use]
pub fn native_endian() -> Endianness {
    if cfg!(target_endian = "big") {
        Endianness::Big
    } else {
        Endianness::Little
    }
}
