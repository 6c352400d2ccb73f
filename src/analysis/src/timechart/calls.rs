//! System calls that read, write, send, receive, synchronize or poll.

use rperf_tracepoint::typed::{SysEnterIo, SysExitIo};
use rustc_hash::FxHashMap;

use super::{TimeGrid, Timeline, TimelinePiece};
use crate::{SpanCounts, Spans};

/// The number of states of a [`TaskCalls`] timeline: the kinds, and [`CallKind::FAILED_STATE`].
pub const CALL_STATES: usize = 7;

/// `-EAGAIN`: there is nothing to read, or no room to write.
const AGAIN: i64 = -11;

/// The kind of operation of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// Reads a file, a pipe or a device.
    Read,
    /// Writes to a file, a pipe or a device.
    Write,
    /// Receives from a socket.
    Receive,
    /// Sends to a socket.
    Send,
    /// Writes cached data to a device.
    Sync,
    /// Waits for events of files.
    Poll,
}

impl CallKind {
    /// All kinds, each at the index that [`CallKind::state`] returns.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Receive,
        Self::Send,
        Self::Sync,
        Self::Poll,
    ];
    /// The number of the state of failed calls of any kind.
    pub const FAILED_STATE: usize = 6;

    /// Returns the kind of the call whose entry or return `tracepoint` reports; `None` if it is not drawn.
    fn of(tracepoint: &str) -> Option<Self> {
        let (_, event) = tracepoint.split_once(':')?;
        let call = event
            .strip_prefix("sys_enter_")
            .or_else(|| event.strip_prefix("sys_exit_"))?;
        Some(match call {
            "read" | "pread64" | "readv" | "preadv" => Self::Read,
            "write" | "pwrite64" | "writev" | "pwritev" => Self::Write,
            "recvfrom" | "recvmmsg" | "recvmsg" => Self::Receive,
            "sendto" | "sendmsg" | "sendmmsg" => Self::Send,
            "sync" | "sync_file_range" | "fsync" | "msync" => Self::Sync,
            "epoll_pwait" | "epoll_wait" | "poll" | "ppoll" | "pselect6" | "select" => Self::Poll,
            _ => return None,
        })
    }

    /// Returns the number of the state in a timeline.
    #[must_use]
    pub fn state(self) -> usize {
        self as usize
    }
}

/// The options for drawing calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallOptions {
    /// Whether calls that fail with EAGAIN are skipped.
    pub skip_eagain: bool,
    /// Calls shorter than this many nanoseconds are drawn this long, but only up to the start of the next call.
    pub min_time: u64,
    /// Successive calls of one state are drawn as one if at most this many nanoseconds are between them; 0 merges none.
    pub merge_distance: u64,
}

/// The calls of one task.
#[derive(Debug, Default)]
pub struct TaskCalls {
    /// The calls, with the bytes read or written.
    pub timeline: Timeline<CALL_STATES, u64>,
    /// Bytes read or received, without those of recvmmsg(2), which returns the number of messages.
    pub bytes_in: u64,
    /// Bytes written or sent, without those of sendmmsg(2), which returns the number of messages.
    pub bytes_out: u64,
    /// The number of calls.
    pub count: u64,
    /// Nanoseconds in calls other than polls. Failed polls are included, since all failed calls have one state,
    /// [`CallKind::FAILED_STATE`].
    pub nanos: u64,
    /// The last call, which is not in `timeline` yet: the next one may be merged with it.
    last: Option<FinishedCall>,
}

/// A call that ended, or several calls that are drawn as one.
#[derive(Debug, Clone, Copy)]
pub(super) struct FinishedCall {
    pub(super) from: u64,
    pub(super) to: u64,
    state: usize,
    bytes: u64,
}

impl TaskCalls {
    /// Adds a call. Draws the previous call, unless the two are merged.
    pub(super) fn add(&mut self, call: FinishedCall, options: CallOptions, grid: &TimeGrid) {
        self.count += 1;
        let inward = [CallKind::Read.state(), CallKind::Receive.state()];
        match inward.contains(&call.state) {
            true => self.bytes_in = self.bytes_in.saturating_add(call.bytes),
            // Calls that neither read nor write, and failed calls, have no bytes.
            false => self.bytes_out = self.bytes_out.saturating_add(call.bytes),
        }
        if call.state != CallKind::Poll.state() {
            self.nanos = self.nanos.saturating_add(call.to.saturating_sub(call.from));
        }
        if let Some(last) = &mut self.last
            && options.merge_distance > 0
            && last.state == call.state
            && call.from.saturating_sub(last.to) <= options.merge_distance
        {
            last.to = last.to.max(call.to);
            last.bytes = last.bytes.saturating_add(call.bytes);
            return;
        }
        self.flush(call.from, options, grid);
        self.last = Some(call);
    }

    /// Draws the last call. A call shorter than [`CallOptions::min_time`] is widened, at most to `next`: the start of the next
    /// call, or the end of the chart.
    pub(super) fn flush(&mut self, next: u64, options: CallOptions, grid: &TimeGrid) {
        if let Some(last) = self.last.take() {
            let widened = last.from.saturating_add(options.min_time).min(next);
            let to = widened.max(last.to);
            let piece = TimelinePiece::one(last.from, to, last.state, last.bytes);
            self.timeline.push(grid, piece);
        }
    }
}

/// Matches entries and returns of system calls.
#[derive(Debug, Default)]
pub(super) struct CallSpans {
    /// The open call of each thread; the data are its kind, `None` if it is not drawn.
    spans: Spans<u32, Option<CallKind>>,
    /// The kind of each tracepoint; `None` for calls that are not drawn.
    kinds: FxHashMap<&'static str, Option<CallKind>>,
}

impl CallSpans {
    pub(super) fn enter(&mut self, time: u64, tid: u32, event: &SysEnterIo<'_>) {
        // A call that is not drawn begins a span, too. Otherwise its return would count as one without an entry, or would end an
        // earlier call of the thread, whose own return was lost.
        let kind = self.kind(event.tracepoint());
        self.spans.begin(tid, time, kind);
    }

    /// Returns the call that ended; `None` if its entry is missing, or if the call is not drawn: it has no [`CallKind`], or
    /// [`CallOptions::skip_eagain`] skips it.
    pub(super) fn exit(
        &mut self,
        time: u64,
        tid: u32,
        event: &SysExitIo<'_>,
        options: CallOptions,
    ) -> Option<FinishedCall> {
        let kind = self.kind(event.tracepoint());
        let span = self.spans.end(&tid, time)?;
        let (kind, ret) = (kind?, event.ret());
        // If the kinds differ, the entry is one of another call: records were lost.
        let is_same_kind = span.data == Some(kind);
        if !is_same_kind || (ret == AGAIN && options.skip_eagain) {
            return None;
        }
        // recvmmsg and sendmmsg return the number of messages.
        let is_size = !matches!(kind, CallKind::Sync | CallKind::Poll)
            && !event.tracepoint().ends_with("mmsg");
        Some(FinishedCall {
            from: span.begin,
            to: time,
            state: if ret < 0 {
                CallKind::FAILED_STATE
            } else {
                kind.state()
            },
            bytes: u64::try_from(ret).unwrap_or(0) * u64::from(is_size),
        })
    }

    pub(super) fn lost(&mut self) {
        self.spans.lost();
    }

    pub(super) fn counts(&self) -> SpanCounts {
        self.spans.counts()
    }

    /// Returns the calls that have not returned, as if they ended at `time`, sorted by thread.
    pub(super) fn open_calls(&self, time: u64) -> Vec<(u32, FinishedCall)> {
        let open = self.spans.open_spans().filter_map(|(tid, span)| {
            let call = FinishedCall {
                from: span.begin,
                to: time,
                state: span.data?.state(),
                bytes: 0,
            };
            Some((*tid, call))
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable_by_key(|(tid, _)| *tid);
        open
    }

    fn kind(&mut self, tracepoint: &'static str) -> Option<CallKind> {
        let known = self.kinds.entry(tracepoint);
        *known.or_insert_with(|| CallKind::of(tracepoint))
    }
}
