//! Finds the files of an object, for callers that read more than its symbols.

use std::path::{Path, PathBuf};

use crate::build_id::build_id_of_image;
use crate::candidates;
use crate::elf::ElfImage;
use crate::files::{FileBytes, FilePart, FileRequest, Files};
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};

/// The files of one object.
#[derive(Debug, Clone, Default)]
pub struct ObjectImages {
    /// A file with the code: the mapped file, or another one with its build-id.
    pub code: Option<(PathBuf, FileBytes)>,
    /// A file without code, for its debug information.
    pub debug: Option<(PathBuf, FileBytes)>,
}

/// Finds the files of a user object or the vdso that have the recorded build-id, in perf's order for symbols. If none is
/// recorded, the build-id of the file at the object's path is used; if that has none either, build-ids are not compared.
/// If no file has the code of a user object whose build-id is known, the executable is fetched from a server (debuginfod). Files
/// that cannot be read or parsed are skipped.
pub fn object_images(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
) -> ObjectImages {
    let own = paths.under_symfs(request.path);
    // The caller may have the content of the object's own file already.
    let read = |path: &Path| match request.image {
        Some(image) if path == own => Some(image.clone()),
        _ => files.read(path).ok(),
    };
    let wanted = request.build_id.copied().or_else(|| {
        let bytes = read(&own)?;
        build_id_of_image(&ElfImage::parse(&bytes).ok()?)
    });
    let mut images = ObjectImages::default();
    let id = wanted.as_ref();
    for path in candidates::of_user_object(files, paths, request, id) {
        if images.code.is_some() && images.debug.is_some() {
            break;
        }
        let Some(bytes) = read(&path) else {
            continue;
        };
        let Ok(image) = ElfImage::parse(&bytes) else {
            continue;
        };
        let has_build_id = id.is_none_or(|wanted| {
            build_id_of_image(&image).is_some_and(|found| found.matches(wanted))
        });
        let slot = match image.has_code_contents() {
            true => &mut images.code,
            false => &mut images.debug,
        };
        // `image` borrows `bytes`, which are moved below.
        drop(image);
        if has_build_id {
            slot.get_or_insert((path, bytes));
        }
    }
    if images.code.is_none()
        && request.kind == ObjectKind::User
        && let Some(build_id) = id
    {
        let file_request = FileRequest {
            build_id,
            part: FilePart::Executable,
            object: request.path,
        };
        images.code = paths.fetch(files, &file_request);
    }
    images
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryFiles;

    #[test]
    fn files_of_another_build_and_other_formats_are_not_found() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let id = crate::build_id_of_elf(&own);
        let mut files = MemoryFiles::new();
        files.insert("/bin/own", own);
        files.insert("/bin/text", b"no ELF".to_vec());
        let no_cache = None;
        let paths = SearchPaths::new(no_cache);
        let code = |path: &str, id| {
            let request = ObjectRequest::new(Path::new(path), ObjectKind::User);
            let images = object_images(&files, &paths, &request.with_build_id(id));
            assert!(images.debug.is_none(), "{path}");
            images.code.map(|(path, _)| path)
        };
        let other = crate::BuildId::from_bytes(&[1; 20]);
        assert_eq!(code("/bin/own", None), Some("/bin/own".into()));
        assert_eq!(code("/bin/own", id.as_ref()), Some("/bin/own".into()));
        assert_eq!(code("/bin/own", other.as_ref()), None);
        assert_eq!(code("/bin/text", None), None);
        assert_eq!(code("/bin/gone", None), None);
    }
}
