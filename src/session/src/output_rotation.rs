//! Output rotation (`--switch-output`), and output names with the time (`--timestamp-filename`).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rperf_safefs::{FileKind, Folder};
use rperf_sys::unused_path_with_time;

use crate::completion::{FileCompletion, finish_file};
use crate::counted_output::{CountedOutput, write_error};
use crate::drain::RingSet;
use crate::initial_records::InitialRecords;
use crate::output::Replacement;
use crate::output_stream::OutputStream;
use crate::record_stats::RecordStats;
use crate::synthesize::RecordBuffer;
use crate::unlinked::UnlinkedFiles;
use crate::{Error, RotationOptions, RotationTrigger, SessionNotice, SessionObserver, Summary};

/// State of the output rotation.
pub(crate) struct OutputRotation<'a> {
    pub(crate) rotation: Option<RotationOptions>,
    pub(crate) completion: FileCompletion<'a>,
    /// Synthesizes the first records of a file.
    pub(crate) initial_records: InitialRecords<'a>,
    /// When the current file was started.
    pub(crate) began: Instant,
    /// Total size of previous files in bytes.
    pub(crate) earlier_bytes: u64,
    /// Statistics of previous files.
    pub(crate) earlier: Summary,
    /// Complete files that are not removed yet, oldest first.
    pub(crate) written: VecDeque<PathBuf>,
    /// Whether SIGUSR2, a command or a trigger event requested a new file or a snapshot of traces.
    pub(crate) is_requested: bool,
}

impl<'a> OutputRotation<'a> {
    /// Starts with the first file.
    pub(crate) fn new(completion: FileCompletion<'a>) -> Self {
        let initial_records = InitialRecords {
            request: completion.request,
            opened: completion.opened,
        };
        Self {
            rotation: completion.request.output.rotation,
            completion,
            initial_records,
            began: Instant::now(),
            earlier_bytes: 0,
            earlier: Summary::default(),
            written: VecDeque::new(),
            is_requested: false,
        }
    }
}

impl OutputRotation<'_> {
    /// Returns the poll timeout: the milliseconds until the next file is due, rounded up; -1 (no limit) without
    /// [`RotationTrigger::Time`].
    pub(crate) fn timeout(&self) -> i32 {
        let Some(RotationTrigger::Time(every)) = self.rotation.map(|rotation| rotation.trigger)
        else {
            return -1;
        };
        let remaining = every.saturating_sub(self.began.elapsed());
        let millis = remaining
            .saturating_add(Duration::from_micros(999))
            .as_millis();
        i32::try_from(millis).unwrap_or(i32::MAX)
    }

    /// Whether the next file is due, when the current one has `bytes` bytes. Clears `is_requested`. Without rotation, leaves it
    /// unchanged: it then requests a snapshot of traces, which is not handled here.
    fn take_due(&mut self, bytes: u64) -> bool {
        match self.rotation.map(|rotation| rotation.trigger) {
            None => false,
            Some(_) if std::mem::take(&mut self.is_requested) => true,
            Some(RotationTrigger::Signal) => false,
            Some(RotationTrigger::Size(size)) => bytes >= size,
            Some(RotationTrigger::Time(every)) => self.began.elapsed() >= every,
        }
    }

    /// Completes the file and starts the next, if due.
    pub(crate) fn switch_if_due(
        &mut self,
        rings: &mut RingSet,
        sink: &mut CountedOutput,
        observer: &mut dyn SessionObserver,
    ) -> Result<(), Error> {
        if !self.take_due(sink.output_sink.bytes()) {
            return Ok(());
        }
        let output = &self.completion.request.output.path;
        let (mut replacement, file) =
            Replacement::create(output, self.completion.request.output.naming)?;
        let output_sink =
            OutputStream::file(file, &self.completion.opened.descriptions).map_err(write_error)?;
        let next = CountedOutput::new(
            output_sink,
            RecordStats::new(self.completion.opened.statistics_fields())
                .with_deleted_files(&self.completion.request.roots.proc),
            self.completion.request.output.compress,
        );
        rings.dump_overwrite_rings(sink)?;
        rings.flush(sink).map_err(write_error)?;
        self.write_tail_records(sink)?;
        // The running tasks are read before the old file is completed: tasks that exit meanwhile may have samples in the
        // next file.
        let at_end = self.completion.request.synthesis.at_end;
        let records = (!at_end).then(|| self.running_tasks());
        let full = std::mem::replace(sink, next);
        let finished = finish_file(&self.completion, full)?;
        self.earlier_bytes += finished.bytes;
        self.earlier.add(&finished);
        // A device is not renamed, and must not be removed.
        self.written.extend(stamp(output, observer)?);
        self.remove_oldest();
        replacement.commit()?;
        if let Some(mut records) = records {
            sink.write_records(&mut records).map_err(write_error)?;
        }
        self.began = Instant::now();
        Ok(())
    }

    /// Writes the records of running tasks, if requested at the end of each file (`--tail-synthesize`).
    pub(crate) fn write_tail_records(&self, sink: &mut CountedOutput) -> Result<(), Error> {
        match self.completion.request.synthesis.at_end {
            true => sink
                .write_records(&mut self.running_tasks())
                .map_err(write_error),
            false => Ok(()),
        }
    }

    /// Synthesizes records of the running tasks.
    fn running_tasks(&self) -> RecordBuffer {
        let mut records = RecordBuffer::new(self.initial_records.trailer_size());
        self.initial_records.synthesize_running(&mut records);
        records
    }

    /// Removes the oldest files, so that `max_files` remain, including the one that is started.
    fn remove_oldest(&mut self) {
        let Some(most) = self.rotation.and_then(|rotation| rotation.max_files) else {
            return;
        };
        // Keeps the removed files open until this function returns, then closes them in a separate thread: freeing a large file
        // is so slow that a ring may overflow.
        let mut unlinked = UnlinkedFiles::default();
        while self.written.len() >= most {
            let Some(oldest) = self.written.pop_front() else {
                return;
            };
            if let Ok((folder, name)) = Folder::parent_of(&oldest) {
                unlinked.keep(&folder, name);
                // The file may already have been removed.
                let _ = folder.remove_file(name);
            }
        }
    }
}

/// Appends the time to the name of a file or directory: `NAME.YYYYMMDDhhmmssNN`, with hundredths of a second. Returns the new
/// path; `None` for other outputs, such as devices, which are not renamed.
pub(crate) fn stamp(
    path: &Path,
    observer: &mut dyn SessionObserver,
) -> Result<Option<PathBuf>, Error> {
    let failed = |cause| Error::Output {
        path: path.to_owned(),
        cause,
    };
    let (folder, name) = Folder::parent_of(path).map_err(failed)?;
    if !matches!(
        folder.kind(name),
        Ok(Some(FileKind::File | FileKind::Folder))
    ) {
        return Ok(None);
    }
    let stamped = unused_path_with_time(|time| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{time}"));
        name.into()
    });
    let renamed = stamped.file_name().unwrap_or(name);
    folder.rename(name, renamed).map_err(failed)?;
    observer.on_event(SessionNotice::Dumped { path: &stamped });
    Ok(Some(stamped))
}
