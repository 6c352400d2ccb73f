//! The class `data` of the Python module `perf`: a recording in a file, a directory or a pipe.

use std::fs::Metadata;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyPermissionError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rperf_input::{
    DirectoryFile, HEADER_FILE_NAME, PartError, RecordingBytes, Spool, UnpackedRecords,
};
use rperf_perfdata::PerfData;
use rperf_safefs::{Folder, FoundFile, is_trusted_owner};

use crate::error::{file_error, value_error};

/// The default path of a recording.
const DEFAULT: &str = "perf.data";
/// The name of the standard input.
const STDIN: &str = "-";
/// The path of the standard input.
const STDIN_PATH: &str = "/proc/self/fd/0";

/// An open recording.
#[derive(Debug)]
pub(crate) struct RecordingFile {
    pub(crate) path: PathBuf,
    bytes: RecordingBytes,
    /// If the recording is a directory, its files except the one with the header; otherwise none.
    parts: Vec<DirectoryFile>,
    /// Folder for temporary files.
    temporary: PathBuf,
    /// The records, if they are compressed or in several files; set when they are first read.
    unpacked: OnceLock<UnpackedRecords>,
}

/// A recording: the file, directory or pipe that `perf record` has written.
#[pyclass(frozen, name = "data", module = "perf")]
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) recording: Arc<RecordingFile>,
}

#[pymethods]
impl Data {
    /// Opens the recording at `path`, a file, a directory or a pipe (`-` is the standard input), by default `perf.data`. Files of
    /// users other than the current one and root are refused unless `force` is set.
    #[new]
    #[pyo3(signature = (path = None, *, force = false))]
    fn new(py: Python<'_>, path: Option<PathBuf>, force: bool) -> PyResult<Self> {
        let path = path.unwrap_or_else(|| DEFAULT.into());
        let temporary = py.import("tempfile")?.call_method0("gettempdir")?;
        let temporary: PathBuf = temporary.extract()?;
        let recording = py.detach(|| RecordingFile::open(path, temporary, force))?;
        Ok(Self {
            recording: Arc::new(recording),
        })
    }

    /// The path, as given.
    #[getter]
    fn path(&self) -> &Path {
        &self.recording.path
    }

    /// The recording's header: `hostname`, `os_release`, `arch`, `cpu`, `command_line`, `version` of the recording program,
    /// `first_time` and `last_time` in nanoseconds of the recording's clock, and `wall_offset`, which added to a time of this
    /// clock gives the nanoseconds since 1970. Values that are not recorded are `None`.
    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let data = self.recording.parse()?;
        let features = data.features();
        let times = features.sample_time();
        let offset = features.clock_data().map(|clock| {
            let offset = clock.wall_clock.wrapping_sub(clock.clockid_time);
            offset.cast_signed()
        });
        let dict = PyDict::new(py);
        dict.set_item("hostname", features.hostname())?;
        dict.set_item("os_release", features.os_release())?;
        dict.set_item("arch", features.arch())?;
        dict.set_item("cpu", features.cpudesc())?;
        dict.set_item("command_line", features.cmdline())?;
        dict.set_item("version", features.version())?;
        dict.set_item("first_time", times.map(|(first, _)| first))?;
        dict.set_item("last_time", times.map(|(_, last)| last))?;
        dict.set_item("wall_offset", offset)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("perf.data({:?})", self.recording.path.display().to_string())
    }
}

/// The exception for an error of [`DirectoryFile::of_directory`], which requires these conversions.
struct OpenError(PyErr);

impl From<PartError> for OpenError {
    fn from(error: PartError) -> Self {
        Self(file_error(&error.path, &error.cause))
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self(error.into())
    }
}

impl RecordingFile {
    fn open(path: PathBuf, temporary: PathBuf, force: bool) -> PyResult<Self> {
        // A file that is truncated while it is read must not end the interpreter.
        rperf_sys::handle_truncated_files()?;
        let path_to_open = match path.to_str() == Some(STDIN) {
            true => PathBuf::from(STDIN_PATH),
            false => path.clone(),
        };
        let failed = |error: &io::Error| file_error(&path, error);
        let mut file = FoundFile::find(&path_to_open).map_err(|error| failed(&error))?;
        let mut parts = Vec::new();
        if file.metadata().is_dir() {
            let folder = Folder::open(&path_to_open).map_err(|error| failed(&error))?;
            let header = path.join(HEADER_FILE_NAME);
            file = folder
                .find(HEADER_FILE_NAME.as_ref())
                .map_err(|error| file_error(&header, &error))?;
            let check_part = |metadata: &Metadata| check(&path, metadata, force).map_err(OpenError);
            parts = DirectoryFile::of_directory(&folder, check_part).map_err(|error| error.0)?;
        }
        check(&path, file.metadata(), force)?;
        let bytes = match file.is_fifo() {
            true => spooled(&file, &temporary),
            false => file
                .for_reading()
                .and_then(|file| rperf_sys::map_open_file(&file))
                .map(RecordingBytes::Mapped),
        };
        let recording = Self {
            bytes: bytes.map_err(|error| failed(&error))?,
            path,
            parts,
            temporary,
            unpacked: OnceLock::new(),
        };
        // Reports an invalid header now.
        recording.parse()?;
        Ok(recording)
    }

    fn parse(&self) -> PyResult<PerfData<'_>> {
        PerfData::parse(&self.bytes).map_err(|cause| {
            value_error(format!(
                "incompatible file format ({}): {cause}",
                self.path.display()
            ))
        })
    }

    /// Reads header, events and features, and unpacks the records if necessary, on up to `threads` threads.
    pub(crate) fn read(&self, threads: NonZeroUsize) -> PyResult<PerfData<'_>> {
        let data = self.parse()?;
        if self.parts.is_empty() && !data.is_compressed() {
            return Ok(data);
        }
        let unpacked = match self.unpacked.get() {
            Some(unpacked) => unpacked,
            None => {
                let spool = Spool::new(self.temporary.clone());
                let fresh = UnpackedRecords::new(&data, &self.parts, threads, spool);
                let fresh = fresh.map_err(|error| file_error(&self.temporary, &error))?;
                self.unpacked.get_or_init(|| fresh)
            }
        };
        // The summary: how many records were compressed, and the first error of unpacking them.
        Ok(data.with_records(&unpacked.records, unpacked.summary.clone()))
    }

    /// The message about the first error of unpacking the records, if it is in one of `parts`: a damaged file of the directory.
    pub(crate) fn part_damage(&self) -> Option<&str> {
        self.unpacked.get()?.damage.as_deref()
    }
}

/// Reads a pipe to its end.
fn spooled(file: &FoundFile, temporary: &Path) -> io::Result<RecordingBytes> {
    let mut pipe = file.for_reading_any_type()?;
    let mut spool = Spool::new(temporary.to_owned());
    io::copy(&mut pipe, &mut spool)?;
    spool.finish()
}

/// Refuses empty files and, without `force`, files of users other than the current one and root.
fn check(path: &Path, metadata: &Metadata, force: bool) -> PyResult<()> {
    use std::os::unix::fs::MetadataExt as _;

    let path = path.display();
    if !is_trusted_owner(metadata.uid()) && !force {
        return Err(PyPermissionError::new_err(format!(
            "File {path} not owned by current user or root\nhint: perf.data(path, force=True) reads it"
        )));
    }
    if metadata.is_file() && metadata.len() == 0 {
        return Err(value_error(format!(
            "zero-sized data ({path}), nothing to do!\nhint: the recording was interrupted before data were written; record again"
        )));
    }
    Ok(())
}
