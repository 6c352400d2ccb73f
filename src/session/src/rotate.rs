//! Files that take turns (`--switch-output`), and names with the time (`--timestamp-filename`).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rperf_safefs::{Folder, Kind};
use rperf_sys::unused_name;

use crate::drain::Rings;
use crate::finish::{Closing, finish_file};
use crate::medium::Medium;
use crate::output::Replacement;
use crate::sink::{Sink, write_error};
use crate::start::Start;
use crate::synthesize::Records;
use crate::tally::Tally;
use crate::unlinked::Unlinked;
use crate::{Error, Happened, Rotation, Summary, Turn, Watch};

/// The turns of a recording.
pub(crate) struct Turns<'a> {
    pub(crate) rotation: Option<Rotation>,
    pub(crate) closing: Closing<'a>,
    pub(crate) start: Start<'a>,
    pub(crate) began: Instant,
    /// Bytes that were in files before this one.
    pub(crate) before: u64,
    /// What those files hold.
    pub(crate) earlier: Summary,
    /// Files that were written, oldest first.
    pub(crate) written: VecDeque<PathBuf>,
    /// SIGUSR2 came, an order, or an event that turns.
    pub(crate) asked: bool,
}

impl<'a> Turns<'a> {
    /// Begins with the first file.
    pub(crate) fn new(closing: Closing<'a>) -> Self {
        let start = Start {
            request: closing.request,
            opened: closing.opened,
        };
        Self {
            rotation: closing.request.rotation,
            closing,
            start,
            began: Instant::now(),
            before: 0,
            earlier: Summary::default(),
            written: VecDeque::new(),
            asked: false,
        }
    }
}

impl Turns<'_> {
    /// Milliseconds until a turn is due by time; -1 where none is.
    pub(crate) fn timeout(&self) -> i32 {
        let Some(Turn::Time(every)) = self.rotation.map(|rotation| rotation.turn) else {
            return -1;
        };
        let left = every.saturating_sub(self.began.elapsed());
        let millis = left.saturating_add(Duration::from_micros(999)).as_millis();
        i32::try_from(millis).unwrap_or(i32::MAX)
    }

    fn is_due(&mut self, bytes: u64) -> bool {
        match self.rotation.map(|rotation| rotation.turn) {
            None => false,
            Some(_) if std::mem::take(&mut self.asked) => true,
            Some(Turn::Signal) => false,
            Some(Turn::Size(size)) => bytes >= size,
            Some(Turn::Time(every)) => self.began.elapsed() >= every,
        }
    }

    /// Closes the file and begins the next where a turn is due.
    pub(crate) fn keep(
        &mut self,
        rings: &mut Rings,
        sink: &mut Sink,
        watch: &mut dyn Watch,
    ) -> Result<(), Error> {
        let bytes = sink.medium.bytes();
        if !self.is_due(bytes) {
            return Ok(());
        }
        let output = &self.closing.request.output;
        let (mut replacement, file) = Replacement::create(output, self.closing.request.naming)?;
        let medium = Medium::file(file, &self.closing.opened.descriptions).map_err(write_error)?;
        let next = Sink::new(
            medium,
            Tally::new(self.closing.opened.sample_type()),
            self.closing.request.compress,
        );
        rings.dump(sink)?;
        rings.flush(sink).map_err(write_error)?;
        self.end(sink)?;
        // At once: who ends while the full file is closed is in samples of the next.
        let mut records = self.running();
        let full = std::mem::replace(sink, next);
        self.earlier.add(&finish_file(&self.closing, full)?);
        self.before += bytes;
        self.written.push_back(stamp(output, watch)?);
        self.forget_oldest();
        replacement.commit()?;
        if !self.closing.request.tail_synthesize {
            sink.records(&mut records).map_err(write_error)?;
        }
        self.began = Instant::now();
        Ok(())
    }

    /// Tells at the end of a file what ran, if that is not told at its start.
    pub(crate) fn end(&self, sink: &mut Sink) -> Result<(), Error> {
        match self.closing.request.tail_synthesize {
            true => sink.records(&mut self.running()).map_err(write_error),
            false => Ok(()),
        }
    }

    /// What runs now.
    fn running(&self) -> Records {
        let mut records = Records::new(self.start.trailer());
        self.start.running(&mut records);
        records
    }

    /// The last file, whose name is to come, counts too.
    fn forget_oldest(&mut self) {
        let Some(most) = self.rotation.and_then(|rotation| rotation.keep) else {
            return;
        };
        let mut unlinked = Unlinked::default();
        while self.written.len() >= most {
            let Some(oldest) = self.written.pop_front() else {
                return;
            };
            if let Ok((folder, name)) = Folder::of(&oldest) {
                unlinked.keep(&folder, name);
                // Whoever took it away was faster.
                let _ = folder.remove_file(name);
            }
        }
    }
}

/// Adds the time to a file's name: `NAME.YYYYMMDDhhmmssNN`, the last two in hundredths of a second. Devices keep theirs.
pub(crate) fn stamp(path: &Path, watch: &mut dyn Watch) -> Result<PathBuf, Error> {
    let failed = |cause| Error::Output {
        path: path.to_owned(),
        cause,
    };
    let (folder, name) = Folder::of(path).map_err(failed)?;
    if !matches!(folder.kind(name), Ok(Some(Kind::File | Kind::Folder))) {
        return Ok(path.to_owned());
    }
    let stamped = unused_name(|time| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{time}"));
        name.into()
    });
    let renamed = stamped.file_name().unwrap_or(name);
    folder.rename(name, renamed).map_err(failed)?;
    watch.tell(Happened::Dumped { path: &stamped });
    Ok(stamped)
}
