//! The folder in which commands run, and its surroundings, which must not change.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of one worker:
///
/// ```text
/// run/      the working directory, with the input; new for each run
/// outside/  files that must not change
/// special/  files that are not regular
/// ```
#[derive(Debug)]
pub(crate) struct Sandbox {
    root: PathBuf,
    /// What [`list_around`] returned last.
    before: Vec<String>,
}

impl Sandbox {
    pub(crate) fn new(root: PathBuf) -> Self {
        for folder in ["run", "special/folder"] {
            fs::create_dir_all(root.join(folder)).expect("a folder can be made");
        }
        symlink("loop", root.join("special/loop")).expect("a link can be made");
        let fifo = root.join("special/fifo");
        let status = Command::new("mkfifo").arg(&fifo).status();
        assert!(status.expect("mkfifo starts").success());
        restore_outside(&root);
        let before = list_around(&root);
        Self { root, before }
    }

    /// The working directory.
    pub(crate) fn working_directory(&self) -> PathBuf {
        self.root.join("run")
    }

    /// Recreates the working directory, with a home and a folder for temporary files.
    pub(crate) fn renew(&self) {
        let directory = self.working_directory();
        // A command may have removed the permission to delete files.
        if fs::remove_dir_all(&directory).is_err() {
            let arguments = ["-R", "u+rwx"];
            let _ = Command::new("chmod")
                .args(arguments)
                .arg(&directory)
                .status();
            fs::remove_dir_all(&directory).expect("the working directory can be removed");
        }
        for folder in ["home", "tmp"] {
            fs::create_dir_all(directory.join(folder)).expect("a folder can be made");
        }
    }

    /// Writes a file into the working directory.
    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.working_directory().join(name);
        let folder = path.parent().expect("a file in a folder");
        fs::create_dir_all(folder).expect("a folder can be made");
        fs::write(path, bytes).expect("a file can be written");
    }

    /// The changes outside of the working directory since the last call, or since the sandbox was created. If there are any,
    /// `outside` is restored.
    pub(crate) fn changes(&mut self) -> Vec<String> {
        let now = list_around(&self.root);
        if now == self.before {
            return Vec::new();
        }
        let removed = self.before.iter().filter(|line| !now.contains(line));
        let new = now.iter().filter(|line| !self.before.contains(line));
        let changes = removed.map(|line| format!("gone: {line}"));
        let changes = changes
            .chain(new.map(|line| format!("new: {line}")))
            .collect();
        restore_outside(&self.root);
        self.before = list_around(&self.root);
        changes
    }

    /// Copies the working directory to `to`, for inspection.
    pub(crate) fn keep(&self, to: &Path) {
        let _ = fs::remove_dir_all(to);
        let folder = to.parent().expect("a folder");
        fs::create_dir_all(folder).expect("a folder can be made");
        let mut copy = Command::new("cp");
        copy.args(["-a", "--"])
            .arg(self.working_directory())
            .arg(to);
        assert!(copy.status().expect("cp starts").success());
    }
}

/// Recreates `outside`.
fn restore_outside(root: &Path) {
    let outside = root.join("outside");
    let _ = fs::remove_dir_all(&outside);
    fs::create_dir_all(outside.join("folder")).expect("a folder can be made");
    for name in ["keep", "folder/inner"] {
        fs::write(outside.join(name), "kept\n").expect("a file can be written");
    }
}

/// One line with path and metadata for each file and folder of the sandbox: of the working directory only path and mode, and
/// nothing of its contents.
fn list_around(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)
            .expect("a folder can be read")
            .flatten()
        {
            let (path, file) = (entry.path(), entry.metadata());
            let Ok(file) = file else { continue };
            let is_working_directory = path == root.join("run");
            let time_and_links = match is_working_directory {
                true => (0, 0, 0),
                false => (file.mtime(), file.mtime_nsec(), file.nlink()),
            };
            let size = if is_working_directory { 0 } else { file.size() };
            lines.push(format!(
                "{} {:o} {size} {time_and_links:?}",
                path.display(),
                file.mode()
            ));
            if file.is_dir() && !is_working_directory {
                folders.push(path);
            }
        }
    }
    lines.sort();
    lines
}

#[test]
fn changes_outside_the_working_directory_are_detected() {
    let scratch = rperf_testkit::Scratch::new();
    let mut sandbox = Sandbox::new(scratch.path().join("one"));
    sandbox.renew();
    sandbox.write("in/side", "text");
    assert_eq!(sandbox.changes(), Vec::<String>::new());
    fs::write(sandbox.working_directory().join("../outside/new"), "").expect("written");
    let changes = sandbox.changes();
    assert!(changes.iter().any(|line| line.contains("outside/new")));
    assert_eq!(sandbox.changes(), Vec::<String>::new());
    let keep = sandbox.working_directory().join("../outside/keep");
    // A link inside of the working directory changes the number of links of the file outside.
    fs::hard_link(&keep, sandbox.working_directory().join("link")).expect("linked");
    assert!(sandbox.changes().iter().any(|line| line.contains("keep")));
}
