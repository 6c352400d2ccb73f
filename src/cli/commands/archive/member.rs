//! What a member of an archive may be, told from its path alone.
//!
//! ```text
//! perf.data                a recording, in any folder of the archive
//! NAME/ID/elf              a file of an object; NAME is its path, or [kernel.kallsyms], [vdso]
//! NAME/ID/probes           a list of its USDT probes: never unpacked, since it says where probes are placed
//! .build-id/xx/yyyy…       the link to NAME/ID
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Names of the files of an object.
const FILES: [&str; 4] = ["elf", "debug", "kallsyms", "vdso"];
/// The list of an object's probes.
const PROBES: &str = "probes";

/// A file of an object: `NAME/ID/FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectFile {
    /// `NAME/ID`, below the cache's folder.
    pub(super) folder: PathBuf,
    /// The build-id in hexadecimal.
    pub(super) id: String,
    /// `elf`, `debug`, `kallsyms` or `vdso`.
    pub(super) file: String,
}

impl ObjectFile {
    /// Whether its content has a build-id, which must be the one of its folder.
    pub(super) fn has_build_id(&self) -> bool {
        self.file != "kallsyms"
    }
}

/// What a member is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Member {
    /// A file of an object.
    Object(ObjectFile),
    /// A list of probes.
    Probes,
    /// Anything else: a recording, by this name, if it begins like one.
    Recording(PathBuf),
}

/// Says what the regular member at `path` is, or why it is left out.
pub(super) fn member(path: &Path) -> Result<Member, &'static str> {
    let names = plain(path).ok_or("a path that leads elsewhere")?;
    if let [.., id, file] = names[..]
        && let Some(id) = id.to_str().filter(|id| is_id(id))
    {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        return match file.to_str() {
            // A name is needed between the cache and the build-id.
            _ if names.len() < 3 => Err("an object without a name"),
            Some(PROBES) => Ok(Member::Probes),
            Some(name) if FILES.contains(&name) => Ok(Member::Object(ObjectFile {
                folder,
                id: id.to_owned(),
                file: name.to_owned(),
            })),
            _ => Err("not a file that objects have"),
        };
    }
    // Folders are those of the other machine.
    let name = names.last().copied().unwrap_or_default();
    let is_hidden = name.as_bytes().starts_with(b".");
    let is_odd = name.to_string_lossy().chars().any(char::is_control);
    match is_hidden || is_odd {
        true => Err("not a name that recordings have"),
        false => Ok(Member::Recording(name.into())),
    }
}

/// The folder `NAME/ID` that a link of the archive leads to, with its build-id: `.build-id/xx/yyyy…` to `../../NAME/ID`.
pub(super) fn linked(path: &Path, target: &Path) -> Result<(PathBuf, String), &'static str> {
    let names = plain(path).ok_or("a path that leads elsewhere")?;
    let id = match names[..] {
        [links, first, rest] if links == ".build-id" && first.len() == 2 => {
            format!("{}{}", first.to_string_lossy(), rest.to_string_lossy())
        }
        _ => return Err("a link at this place"),
    };
    let folder = target.strip_prefix("../..").ok();
    let folder = folder.filter(|folder| {
        let names = plain(folder).unwrap_or_default();
        names.len() >= 2 && names.last().is_some_and(|last| **last == *id)
    });
    match folder.filter(|_| is_id(&id)) {
        Some(folder) => Ok((folder.to_owned(), id)),
        None => Err("a link that leads elsewhere"),
    }
}

/// The names of a path that has nothing else; `.` doesn't count.
fn plain(path: &Path) -> Option<Vec<&OsStr>> {
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

/// Whether this is a build-id in hexadecimal.
fn is_id(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_hexdigit();
    (8..=64).contains(&text.len()) && text.bytes().all(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_say_what_members_are() {
        let id = "ab".repeat(20);
        let object = |folder: String, file: &str| {
            Ok(Member::Object(ObjectFile {
                folder: folder.into(),
                id: id.clone(),
                file: file.to_owned(),
            }))
        };
        let told = |path: String| member(Path::new(&path));
        assert_eq!(
            told(format!("usr/bin/ls/{id}/elf")),
            object(format!("usr/bin/ls/{id}"), "elf")
        );
        assert_eq!(
            told(format!("./[vdso]/{id}/vdso")),
            object(format!("./[vdso]/{id}"), "vdso")
        );
        assert_eq!(told(format!("ls/{id}/probes")), Ok(Member::Probes));
        for name in ["perf.data", "home/me/perf.data", "./perf.data"] {
            assert_eq!(
                told(name.to_owned()),
                Ok(Member::Recording("perf.data".into()))
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
            assert!(told(path.clone()).is_err(), "{path}");
        }
    }

    #[test]
    fn links_lead_to_their_object() {
        let id = "ab".repeat(20);
        let own = format!(".build-id/ab/{}", &id[2..]);
        let to = |target: String| linked(Path::new(&own), Path::new(&target));
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
        assert!(linked(Path::new("way"), Path::new("/etc")).is_err());
    }
}
