//! The kind of an archive's member, determined from its path alone. `ID` is a build-id in hexadecimal.
//!
//! ```text
//! perf.data                a recording of this or any other name, in any directory of the archive
//! NAME/ID/FILE             a file of an object: FILE is elf, debug, kallsyms or vdso;
//!                          NAME is the object's path, [kernel.kallsyms] or [vdso]
//! NAME/ID/probes           the list of the object's USDT probes: never unpacked, since it determines where probes are placed
//! .build-id/xx/yyyy…       the link to NAME/ID
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Names of the files of an object that are unpacked.
const FILES: [&str; 4] = ["elf", "debug", "kallsyms", "vdso"];
/// The list of an object's probes.
const PROBES: &str = "probes";

/// A file of an object: `NAME/ID/FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectFile {
    /// `NAME/ID`, relative to the cache directory.
    pub(super) folder: PathBuf,
    /// The build-id in hexadecimal.
    pub(super) id: String,
    /// `elf`, `debug`, `kallsyms` or `vdso`.
    pub(super) file: String,
}

impl ObjectFile {
    /// Whether the content has a build-id, which must match the one in the path.
    pub(super) fn has_build_id(&self) -> bool {
        self.file != "kallsyms"
    }
}

/// The kind of a member.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArchiveMember {
    /// A file of an object.
    Object(ObjectFile),
    /// A list of probes, which is not unpacked.
    Probes,
    /// Anything else: a recording of this name, if it has a recording's header.
    Recording(PathBuf),
}

/// Returns the kind of the regular file or hard link at `path`, or why it is skipped.
pub(super) fn member(path: &Path) -> Result<ArchiveMember, &'static str> {
    let names = plain_components(path).ok_or("its path leads out of the directory")?;
    if let [.., id, file] = names[..]
        && let Some(id) = id.to_str().filter(|id| is_id(id))
    {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        return match file.to_str() {
            // The build-id must be preceded by a name.
            _ if names.len() < 3 => Err("the object has no name"),
            Some(PROBES) => Ok(ArchiveMember::Probes),
            Some(name) if FILES.contains(&name) => Ok(ArchiveMember::Object(ObjectFile {
                folder,
                id: id.to_owned(),
                file: name.to_owned(),
            })),
            _ => Err("not a file of the build-id cache"),
        };
    }
    // The member's directories are those of the machine where the archive was packed; only the file name is used.
    let name = names.last().copied().unwrap_or_default();
    let is_hidden = name.as_bytes().starts_with(b".");
    let has_control = name.to_string_lossy().chars().any(char::is_control);
    match is_hidden || has_control {
        true => Err("not the file name of a recording"),
        false => Ok(ArchiveMember::Recording(name.into())),
    }
}

/// Returns the directory `NAME/ID` and the build-id of the symbolic link at `path` (`.build-id/xx/yyyy…`) to `target`
/// (`../../NAME/ID`), or why the link is skipped.
pub(super) fn linked_object(path: &Path, target: &Path) -> Result<(PathBuf, String), &'static str> {
    let names = plain_components(path).ok_or("its path leads out of the directory")?;
    let id = match names[..] {
        [links, first, rest] if links == ".build-id" && first.len() == 2 => {
            format!("{}{}", first.to_string_lossy(), rest.to_string_lossy())
        }
        _ => return Err("unexpected symbolic link"),
    };
    let folder = target.strip_prefix("../..").ok();
    let folder = folder.filter(|folder| {
        let names = plain_components(folder).unwrap_or_default();
        names.len() >= 2 && names.last().is_some_and(|last| **last == *id)
    });
    match folder.filter(|_| is_id(&id)) {
        Some(folder) => Ok((folder.to_owned(), id)),
        None => Err("the link does not lead to an object with its build-id"),
    }
}

/// The components of a path, without `.`; `None` if it is empty, absolute or contains `..`.
fn plain_components(path: &Path) -> Option<Vec<&OsStr>> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!names.is_empty()).then_some(names)
}

/// Whether this is a build-id in hexadecimal, of 8 to 64 digits.
fn is_id(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_hexdigit();
    (8..=64).contains(&text.len()) && text.bytes().all(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_kinds_are_determined_by_path() {
        let id = "ab".repeat(20);
        let object = |folder: String, file: &str| {
            Ok(ArchiveMember::Object(ObjectFile {
                folder: folder.into(),
                id: id.clone(),
                file: file.to_owned(),
            }))
        };
        let parsed = |path: String| member(Path::new(&path));
        assert_eq!(
            parsed(format!("usr/bin/ls/{id}/elf")),
            object(format!("usr/bin/ls/{id}"), "elf")
        );
        assert_eq!(
            parsed(format!("./[vdso]/{id}/vdso")),
            object(format!("./[vdso]/{id}"), "vdso")
        );
        assert_eq!(parsed(format!("ls/{id}/probes")), Ok(ArchiveMember::Probes));
        for name in ["perf.data", "home/me/perf.data", "./perf.data"] {
            assert_eq!(
                parsed(name.to_owned()),
                Ok(ArchiveMember::Recording("perf.data".into()))
            );
        }
        for path in [
            format!("{id}/elf"),
            format!("ls/{id}/.bashrc"),
            format!("ls/{id}/authorized_keys"),
            format!("../ls/{id}/elf"),
            "../perf.data".to_owned(),
            "/perf.data".to_owned(),
            ".perfconfig".to_owned(),
            "home/.perfconfig".to_owned(),
            "perf\x1b.data".to_owned(),
            String::new(),
        ] {
            assert!(parsed(path.clone()).is_err(), "{path}");
        }
    }

    #[test]
    fn links_lead_to_their_object() {
        let id = "ab".repeat(20);
        let link = format!(".build-id/ab/{}", &id[2..]);
        let to = |target: String| linked_object(Path::new(&link), Path::new(&target));
        assert_eq!(
            to(format!("../../usr/ls/{id}")),
            Ok((format!("usr/ls/{id}").into(), id.clone()))
        );
        for target in [
            format!("../../../usr/{id}"),
            format!("/usr/{id}"),
            format!("../../{id}"),
            format!("../../usr/../{id}"),
            "../../usr/ls/abcd".to_owned(),
        ] {
            assert!(to(target.clone()).is_err(), "{target}");
        }
        assert!(linked_object(Path::new("way"), Path::new("/etc")).is_err());
    }
}
