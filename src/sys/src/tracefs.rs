//! tracefs: the kernel's tracepoints and the data needed to read recorded ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::mounts::Mount;

/// The mount point on current systems.
const DEFAULT_MOUNT: &str = "/sys/kernel/tracing";
/// Size of the first read in bytes: `header_page` returns everything to the first read(2) and
/// nothing to later ones.
const FIRST_READ: usize = 64 << 10;

/// A tracefs at a root chosen by the caller.
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

    /// Finds the tracefs in `mounts`, the text of `/proc/self/mounts`. In order of preference: a tracefs at the default mount
    /// point, a tracefs elsewhere, the folder `tracing` of a debugfs. If neither tracefs nor debugfs is mounted, the
    /// default mount point is assumed.
    #[must_use]
    pub fn find(mounts: &str) -> Self {
        let mounted = |kind: &str| {
            let of_kind = Mount::all(mounts).filter(|mount| mount.kind == kind);
            let places = of_kind.map(|mount| mount.place);
            // The default mount point comes first: other mounts, such as those of a chroot environment, may be removed soon.
            let mut places = places.collect::<Vec<_>>();
            places.sort_by_key(|place| place != Path::new(DEFAULT_MOUNT));
            places.into_iter().next()
        };
        let through_debugfs = || mounted("debugfs").map(|root| root.join("tracing"));
        let root = mounted("tracefs").or_else(through_debugfs);
        Self::new(root.unwrap_or_else(|| DEFAULT_MOUNT.into()))
    }

    /// The mount point, or the folder `tracing` of a debugfs.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder `events`, which has a folder for each system.
    #[must_use]
    pub fn events_folder(&self) -> &Path {
        &self.events
    }

    /// The systems, in the order of the folder.
    ///
    /// # Errors
    /// What reading the folder reports: `NotFound` if tracefs is not mounted, `PermissionDenied` if
    /// the user may not read it.
    pub fn systems(&self) -> io::Result<Vec<String>> {
        folders(&self.events)
    }

    /// The names of the events of a system, in the order of the folder.
    ///
    /// # Errors
    /// What reading the folder reports; `NotFound` also if the system was removed meanwhile.
    pub fn event_names(&self, system: &str) -> io::Result<Vec<String>> {
        folders(&self.events.join(system)).map_err(removed_event)
    }

    /// The id of an event.
    ///
    /// # Errors
    /// What reading its `id` file reports; `NotFound` also if the event was removed meanwhile;
    /// `InvalidData` if the content is not a number.
    pub fn id(&self, system: &str, name: &str) -> io::Result<u64> {
        let path = self.events.join(system).join(name).join("id");
        let text = fs::read_to_string(path).map_err(removed_event)?;
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

    /// Appends a line to a command file such as `uprobe_events`.
    ///
    /// # Errors
    /// What opening and writing the file report: `InvalidInput` for a line that the kernel doesn't
    /// understand, `ResourceBusy` for an event in use.
    pub fn append(&self, path: &str, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.root.join(path))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Locks a file against other processes that use this function, until the returned file is
    /// dropped.
    ///
    /// # Errors
    /// What opening the file and flock(2) report.
    pub fn lock(&self, path: &str) -> io::Result<File> {
        let file = File::open(self.root.join(path))?;
        file.lock()?;
        Ok(file)
    }

    /// Reads a file by its path below the root, such as `events/header_page` or `printk_formats`.
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

/// Converts the kernel's errors for open files of removed events (`EINVAL`, `ENODEV`) to `NotFound`.
fn removed_event(error: io::Error) -> io::Error {
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
    fn tracefs_is_found_by_itself_or_through_debugfs() {
        let root = |mounts| Tracefs::find(mounts).root().to_owned();
        let debugfs = "none /debug debugfs rw 0 0\n";
        assert_eq!(root(debugfs), Path::new("/debug/tracing"));
        let both = format!("{debugfs}nodev /t tracefs rw,relatime 0 0\n");
        assert_eq!(root(&both), Path::new("/t"));
        assert_eq!(root("proc /proc proc rw 0 0\n"), Path::new(DEFAULT_MOUNT));
        let usual = format!("{both}nodev {DEFAULT_MOUNT} tracefs rw,relatime 0 0\n");
        assert_eq!(root(&usual), Path::new(DEFAULT_MOUNT));
        let blank = "nodev /my\\040t tracefs rw,relatime 0 0\n";
        assert_eq!(root(blank), Path::new("/my t"));
    }

    #[test]
    fn events_removed_while_reading_are_not_found() {
        let kind = |number| removed_event(io::Error::from_raw_os_error(number)).kind();
        assert_eq!(kind(libc::EINVAL), io::ErrorKind::NotFound);
        assert_eq!(kind(libc::ENODEV), io::ErrorKind::NotFound);
        assert_eq!(kind(libc::EACCES), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn reads_a_fake_tracefs() {
        let root = std::env::temp_dir().join(format!("rperf-tracefs-{}", std::process::id()));
        let event = root.join("events/sched/sched_switch");
        fs::create_dir_all(&event).unwrap();
        fs::write(root.join("events/sched/enable"), "0\n").unwrap();
        fs::write(event.join("id"), "372\n").unwrap();
        fs::write(event.join("format"), "name: sched_switch\n").unwrap();
        let tracefs = Tracefs::new(&root);
        assert_eq!(tracefs.systems().unwrap(), ["sched"]);
        assert_eq!(tracefs.event_names("sched").unwrap(), ["sched_switch"]);
        assert_eq!(tracefs.id("sched", "sched_switch").unwrap(), 372);
        let format = tracefs.format("sched", "sched_switch").unwrap();
        assert_eq!(format, b"name: sched_switch\n");
        let missing = tracefs.id("sched", "nosuch").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(root).unwrap();
    }
}
