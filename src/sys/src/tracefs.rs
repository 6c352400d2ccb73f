//! tracefs: the kernel's tracepoints, and what readers of recorded ones need to know.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Where it is mounted on every current system.
const USUAL: &str = "/sys/kernel/tracing";
/// Bytes of a first read: `header_page` gives all it has to the first read(2) and nothing to a second.
const FIRST_READ: usize = 64 << 10;

/// A tracefs at a root of the caller's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracefs {
    root: PathBuf,
    events: PathBuf,
}

impl Tracefs {
    /// The tracefs mounted at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            events: root.join("events"),
            root,
        }
    }

    /// The tracefs that `mounts`, the text of `/proc/self/mounts`, names: mounted by itself or seen through
    /// debugfs; else the place where it belongs.
    #[must_use]
    pub fn find(mounts: &str) -> Self {
        let mounted = |kind: &str| {
            mounts.lines().find_map(|line| {
                let mut words = line.split(' ').skip(1);
                let place = words.next()?;
                (words.next() == Some(kind)).then(|| PathBuf::from(place))
            })
        };
        let through_debugfs = || mounted("debugfs").map(|root| root.join("tracing"));
        let root = mounted("tracefs").or_else(through_debugfs);
        Self::new(root.unwrap_or_else(|| USUAL.into()))
    }

    /// Where it is mounted.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of all systems.
    #[must_use]
    pub fn events(&self) -> &Path {
        &self.events
    }

    /// The systems, in the order of the folder.
    ///
    /// # Errors
    /// What reading the folder reports: `NotFound` where tracefs is not mounted, `PermissionDenied` where the user
    /// may not read it.
    pub fn systems(&self) -> io::Result<Vec<String>> {
        folders(&self.events)
    }

    /// The events of a system, in the order of the folder.
    ///
    /// # Errors
    /// What reading the folder reports: `NotFound`, too, where the system was taken away while it was read.
    pub fn names(&self, system: &str) -> io::Result<Vec<String>> {
        folders(&self.events.join(system)).map_err(gone)
    }

    /// The number of an event.
    ///
    /// # Errors
    /// What reading its `id` file reports: `NotFound`, too, where the event was taken away while it was read; and
    /// `InvalidData` when that is no number.
    pub fn id(&self, system: &str, name: &str) -> io::Result<u64> {
        let path = self.events.join(system).join(name).join("id");
        let text = fs::read_to_string(path).map_err(gone)?;
        let id = text.trim_end().parse();
        id.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// The text of the `format` file of an event.
    ///
    /// # Errors
    /// What reading reports.
    pub fn format(&self, system: &str, name: &str) -> io::Result<Vec<u8>> {
        read(&self.events.join(system).join(name).join("format"))
    }

    /// Writes a line to a file that takes commands, such as `uprobe_events`.
    ///
    /// # Errors
    /// What the kernel makes of it: `InvalidInput` for a line it does not understand, `ResourceBusy` for an event in use.
    pub fn append(&self, path: &str, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.root.join(path))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Keeps others who ask for the same file here out until what is returned is dropped.
    ///
    /// # Errors
    /// What opening the file and flock(2) report.
    pub fn lock(&self, path: &str) -> io::Result<File> {
        let file = File::open(self.root.join(path))?;
        file.lock()?;
        Ok(file)
    }

    /// A file by its path below the root, such as `events/header_page` or `printk_formats`.
    ///
    /// # Errors
    /// What reading reports.
    pub fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        read(&self.root.join(path))
    }
}

fn folders(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.extend(entry.file_name().into_string().ok());
        }
    }
    Ok(names)
}

/// A folder or file that is open keeps its name when it is taken away, but is no longer what it was to the kernel.
fn gone(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENODEV) => io::ErrorKind::NotFound.into(),
        _ => error,
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; FIRST_READ];
    let size = file.read(&mut bytes)?;
    bytes.truncate(size);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_by_itself_or_through_debugfs() {
        let root = |mounts| Tracefs::find(mounts).root().to_owned();
        let debugfs = "none /debug debugfs rw 0 0\n";
        assert_eq!(root(debugfs), Path::new("/debug/tracing"));
        let both = format!("{debugfs}nodev /t tracefs rw,relatime 0 0\n");
        assert_eq!(root(&both), Path::new("/t"));
        assert_eq!(root("proc /proc proc rw 0 0\n"), Path::new(USUAL));
    }

    #[test]
    fn what_was_taken_away_while_it_was_read_is_not_there() {
        let kind = |number| gone(io::Error::from_raw_os_error(number)).kind();
        assert_eq!(kind(libc::EINVAL), io::ErrorKind::NotFound);
        assert_eq!(kind(libc::ENODEV), io::ErrorKind::NotFound);
        assert_eq!(kind(libc::EACCES), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn reads_a_made_up_tracefs() {
        let root = std::env::temp_dir().join(format!("rperf-tracefs-{}", std::process::id()));
        let event = root.join("events/sched/sched_switch");
        fs::create_dir_all(&event).unwrap();
        fs::write(root.join("events/sched/enable"), "0\n").unwrap();
        fs::write(event.join("id"), "372\n").unwrap();
        fs::write(event.join("format"), "name: sched_switch\n").unwrap();
        let tracefs = Tracefs::new(&root);
        assert_eq!(tracefs.systems().unwrap(), ["sched"]);
        assert_eq!(tracefs.names("sched").unwrap(), ["sched_switch"]);
        assert_eq!(tracefs.id("sched", "sched_switch").unwrap(), 372);
        let format = tracefs.format("sched", "sched_switch").unwrap();
        assert_eq!(format, b"name: sched_switch\n");
        let missing = tracefs.id("sched", "nosuch").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(root).unwrap();
    }
}
