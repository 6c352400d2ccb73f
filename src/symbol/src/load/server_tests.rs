//! Tests of requests to servers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::build_id::BuildId;
use crate::elf::tiny::TinyElf;
use crate::files::{FilePart, FileRequest, MemoryFiles, Servers};
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::{load, object_images};

/// Local files, and a server that ignores the build-id of a request.
struct ServedFiles {
    files: MemoryFiles,
    paths: SearchPaths,
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    parts: Vec<FilePart>,
    requests: Mutex<Vec<FilePart>>,
}

impl Servers for Server {
    fn fetch(&self, request: &FileRequest<'_>) -> Option<PathBuf> {
        self.requests.lock().unwrap().push(request.part);
        let has = self.parts.contains(&request.part);
        has.then(|| served_path(request.part))
    }
}

fn served_path(part: FilePart) -> PathBuf {
    format!("/served/{part:?}").into()
}

impl ServedFiles {
    fn new(local: &[(&str, Vec<u8>)], parts: &[(FilePart, Vec<u8>)]) -> Self {
        let mut files = MemoryFiles::new();
        for (path, bytes) in local {
            files.insert(*path, bytes.clone());
        }
        for (part, bytes) in parts {
            files.insert(served_path(*part), bytes.clone());
        }
        let server = Arc::new(Server {
            parts: parts.iter().map(|(part, _)| *part).collect(),
            requests: Mutex::default(),
        });
        let no_cache = None;
        let mut paths = SearchPaths::new(no_cache);
        paths.servers = Some(server.clone());
        Self {
            files,
            paths,
            server,
        }
    }

    /// The requests to the server since the last call.
    fn requests(&self) -> Vec<FilePart> {
        std::mem::take(&mut self.server.requests.lock().unwrap())
    }
}

/// The build-id of [`TinyElf::default`].
const APP_ID: [u8; 20] = [0xab; 20];

/// The source of the symbols of `/bin/app`, their number, and the requests to the server.
fn loaded(served: &ServedFiles, kind: ObjectKind) -> (String, usize, Vec<FilePart>) {
    let id = BuildId::from_bytes(&APP_ID).unwrap();
    let request = ObjectRequest::new(Path::new("/bin/app"), kind).with_build_id(Some(&id));
    let loaded = load(&served.files, &served.paths, &request);
    let source = loaded.source.display().to_string();
    (source, loaded.table.len(), served.requests())
}

#[test]
fn servers_are_queried_for_missing_files() {
    use FilePart::{Debuginfo, Executable};
    let app = TinyElf::default().build();
    let other = TinyElf {
        build_id: [1; 20],
        ..TinyElf::default()
    };
    let right = [("/bin/app", app.clone())];
    let replaced = [("/bin/app", other.build())];
    let all = [(Executable, app.clone()), (Debuginfo, app.clone())];
    let user = |local: &[_], parts: &[_]| loaded(&ServedFiles::new(local, parts), ObjectKind::User);
    // 4: `TinyElf::default` has two symbols and two entries of `.plt`.
    assert_eq!(user(&right, &all), ("/bin/app".to_owned(), 4, vec![]));
    for local in [&[][..], &replaced] {
        let executable = ("/served/Executable".to_owned(), 4, vec![Executable]);
        assert_eq!(user(local, &all), executable);
        let debuginfo = (
            "/served/Debuginfo".to_owned(),
            4,
            vec![Executable, Debuginfo],
        );
        assert_eq!(user(local, &all[1..]), debuginfo);
        // Fetched files are checked like any other file.
        let wrong = [(Executable, other.build()), (Debuginfo, other.build())];
        assert_eq!(
            user(local, &wrong),
            (String::new(), 0, vec![Executable, Debuginfo])
        );
    }
    // A vDSO is not requested, and of a kernel only the debug file.
    let vdso = loaded(&ServedFiles::new(&[], &all), ObjectKind::Vdso);
    assert_eq!(vdso, (String::new(), 0, vec![]));
    let kernel = loaded(&ServedFiles::new(&[], &all), ObjectKind::Kernel);
    assert_eq!(
        (kernel.0.as_str(), kernel.2),
        ("/served/Debuginfo", vec![Debuginfo])
    );
}

#[test]
fn code_is_fetched_if_there_is_no_local_file() {
    let app = TinyElf::default().build();
    let id = BuildId::from_bytes(&APP_ID).unwrap();
    let request = ObjectRequest::new(Path::new("/bin/app"), ObjectKind::User);
    let code = |served: &ServedFiles, id| {
        let request = request.with_build_id(id);
        let found = object_images(&served.files, &served.paths, &request);
        found.code.map(|(path, _)| path)
    };
    let served = ServedFiles::new(&[], &[(FilePart::Executable, app)]);
    assert_eq!(code(&served, Some(&id)), Some("/served/Executable".into()));
    // Without a build-id, no request is possible.
    assert_eq!(code(&served, None), None);
    assert_eq!(served.requests(), [FilePart::Executable]);
}
