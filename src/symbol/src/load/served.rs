//! What is asked of servers, and when. Tests only.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::build_id::BuildId;
use crate::elf::tiny::Tiny;
use crate::files::{FileBytes, Files, MemoryFiles, Part, Wanted};
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::{images, load};

/// Files at hand, and a server that has some parts of every object.
struct Served {
    at_hand: MemoryFiles,
    parts: Vec<(Part, FileBytes)>,
    asked: Mutex<Vec<Part>>,
}

impl Served {
    fn new(at_hand: &[(&str, Vec<u8>)], parts: &[(Part, Vec<u8>)]) -> Self {
        let mut files = MemoryFiles::new();
        for (path, bytes) in at_hand {
            files.insert(*path, bytes.clone());
        }
        let parts = parts
            .iter()
            .map(|(part, bytes)| (*part, bytes.clone().into()));
        Self {
            at_hand: files,
            parts: parts.collect(),
            asked: Mutex::default(),
        }
    }
}

impl Files for Served {
    fn read(&self, path: &Path) -> io::Result<FileBytes> {
        self.at_hand.read(path)
    }

    fn fetch(&self, wanted: &Wanted<'_>) -> Option<(PathBuf, FileBytes)> {
        self.asked.lock().unwrap().push(wanted.part);
        let (_, bytes) = self.parts.iter().find(|(part, _)| *part == wanted.part)?;
        Some((format!("/served/{:?}", wanted.part).into(), bytes.clone()))
    }
}

/// What the symbols of `/bin/app` were read from, how many there are, and what was asked for.
fn loaded(files: &Served, kind: ObjectKind) -> (String, usize, Vec<Part>) {
    let id = BuildId::from_bytes(&[0xab; 20]).unwrap();
    let request = ObjectRequest::new(Path::new("/bin/app"), kind).with_build_id(Some(&id));
    let loaded = load(files, &SearchPaths::new(None), &request);
    let asked = std::mem::take(&mut *files.asked.lock().unwrap());
    (
        loaded.source.display().to_string(),
        loaded.table.len(),
        asked,
    )
}

#[test]
fn servers_are_asked_for_what_is_not_at_hand() {
    use Part::{Debuginfo, Executable};
    let app = Tiny::default().build();
    let other = Tiny {
        build_id: [1; 20],
        ..Tiny::default()
    };
    let here = [("/bin/app", app.clone())];
    let replaced = [("/bin/app", other.build())];
    let all = [(Executable, app.clone()), (Debuginfo, app.clone())];
    let user = |at_hand: &[_], parts: &[_]| loaded(&Served::new(at_hand, parts), ObjectKind::User);
    assert_eq!(user(&here, &all), ("/bin/app".to_owned(), 4, vec![]));
    for at_hand in [&[][..], &replaced] {
        let executable = ("/served/Executable".to_owned(), 4, vec![Executable]);
        assert_eq!(user(at_hand, &all), executable);
        let debuginfo = (
            "/served/Debuginfo".to_owned(),
            4,
            vec![Executable, Debuginfo],
        );
        assert_eq!(user(at_hand, &all[1..]), debuginfo);
        // What comes is looked at like any other file.
        let wrong = [(Executable, other.build()), (Debuginfo, other.build())];
        assert_eq!(
            user(at_hand, &wrong),
            (String::new(), 0, vec![Executable, Debuginfo])
        );
    }
    let vdso = loaded(&Served::new(&[], &all), ObjectKind::Vdso);
    assert_eq!(vdso, (String::new(), 0, vec![]));
    let kernel = loaded(&Served::new(&[], &all), ObjectKind::Kernel);
    assert_eq!(
        (kernel.0.as_str(), kernel.2),
        ("/served/Debuginfo", vec![Debuginfo])
    );
}

#[test]
fn code_is_fetched_where_it_is_not_at_hand() {
    let app = Tiny::default().build();
    let id = BuildId::from_bytes(&[0xab; 20]).unwrap();
    let request = ObjectRequest::new(Path::new("/bin/app"), ObjectKind::User);
    let code = |files: &Served, id| {
        let found = images(files, &SearchPaths::new(None), &request.with_build_id(id));
        found.code.map(|(path, _)| path)
    };
    let files = Served::new(&[], &[(Part::Executable, app)]);
    assert_eq!(code(&files, Some(&id)), Some("/served/Executable".into()));
    // Without a build-id there is nothing to ask for.
    assert_eq!(code(&files, None), None);
    assert_eq!(*files.asked.lock().unwrap(), [Part::Executable]);
}
