//! What is asked of servers, and when. Tests only.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::build_id::BuildId;
use crate::elf::tiny::Tiny;
use crate::files::{MemoryFiles, Part, Servers, Wanted};
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::{images, load};

/// Files at hand, and a server that has some parts of every object.
struct Served {
    files: MemoryFiles,
    paths: SearchPaths,
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    parts: Vec<Part>,
    asked: Mutex<Vec<Part>>,
}

impl Servers for Server {
    fn fetch(&self, wanted: &Wanted<'_>) -> Option<PathBuf> {
        self.asked.lock().unwrap().push(wanted.part);
        let has = self.parts.contains(&wanted.part);
        has.then(|| place(wanted.part))
    }
}

fn place(part: Part) -> PathBuf {
    format!("/served/{part:?}").into()
}

impl Served {
    fn new(at_hand: &[(&str, Vec<u8>)], parts: &[(Part, Vec<u8>)]) -> Self {
        let mut files = MemoryFiles::new();
        for (path, bytes) in at_hand {
            files.insert(*path, bytes.clone());
        }
        for (part, bytes) in parts {
            files.insert(place(*part), bytes.clone());
        }
        let server = Arc::new(Server {
            parts: parts.iter().map(|(part, _)| *part).collect(),
            asked: Mutex::default(),
        });
        let mut paths = SearchPaths::new(None);
        paths.servers = Some(server.clone());
        Self {
            files,
            paths,
            server,
        }
    }

    fn asked(&self) -> Vec<Part> {
        std::mem::take(&mut self.server.asked.lock().unwrap())
    }
}

/// What the symbols of `/bin/app` were read from, how many there are, and what was asked for.
fn loaded(served: &Served, kind: ObjectKind) -> (String, usize, Vec<Part>) {
    let id = BuildId::from_bytes(&[0xab; 20]).unwrap();
    let request = ObjectRequest::new(Path::new("/bin/app"), kind).with_build_id(Some(&id));
    let loaded = load(&served.files, &served.paths, &request);
    let source = loaded.source.display().to_string();
    (source, loaded.table.len(), served.asked())
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
    let code = |served: &Served, id| {
        let request = request.with_build_id(id);
        let found = images(&served.files, &served.paths, &request);
        found.code.map(|(path, _)| path)
    };
    let served = Served::new(&[], &[(Part::Executable, app)]);
    assert_eq!(code(&served, Some(&id)), Some("/served/Executable".into()));
    // Without a build-id there is nothing to ask for.
    assert_eq!(code(&served, None), None);
    assert_eq!(served.asked(), [Part::Executable]);
}
