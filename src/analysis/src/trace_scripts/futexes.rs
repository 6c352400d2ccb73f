//! Time that threads wait in futex(2).

use rustc_hash::FxHashMap;

use super::{EventFields, FirstSeen, ScriptSample};

/// `FUTEX_WAIT` of futex(2).
const WAIT: i64 = 0;
/// `FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME`, flags of the operation.
const FLAGS: i64 = 128 | 256;

/// The position of `sys_enter_futex` in [`FutexWaits::EVENTS`].
const ENTER: usize = 0;

/// Waits of one thread for one futex.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WaitStatistics {
    /// Number of waits.
    pub count: u64,
    /// The average in nanoseconds, as in perf: half the sum of the last wait and the average before it, not the mean of all
    /// waits.
    pub average: f64,
    /// The longest wait in nanoseconds.
    pub max: u64,
    /// The shortest wait in nanoseconds.
    pub min: u64,
}

/// Waits for futexes, by thread and futex. Only `FUTEX_WAIT` counts, as in perf.
#[derive(Debug, Default)]
pub struct FutexWaits {
    /// By thread id: the address of the futex and the time in nanoseconds at which the wait began.
    waiting: FxHashMap<i64, (i64, u64)>,
    /// By thread id: its name when its latest wait began.
    comms: FxHashMap<i64, String>,
    /// By thread id and address of the futex.
    waits: FirstSeen<(i64, i64), WaitStatistics>,
}

impl FutexWaits {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = &[
        EventFields {
            tracepoint: "syscalls:sys_enter_futex",
            numbers: &["uaddr", "op"],
            text: None,
        },
        EventFields {
            tracepoint: "syscalls:sys_exit_futex",
            numbers: &[],
            text: None,
        },
    ];

    /// Adds a call or its return.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if sample.kind == Some(ENTER) {
            // Indices into `numbers` of `EVENTS`: 0 is `uaddr`, 1 is `op`.
            if sample.number(1) & !FLAGS == WAIT {
                self.comms.insert(sample.tid, sample.comm.to_owned());
                let began = (sample.number(0), sample.time);
                self.waiting.insert(sample.tid, began);
            }
            return;
        }
        // The return of a call: samples of other events (`kind` is `None`) are not passed to this function.
        let Some((futex, began)) = self.waiting.remove(&sample.tid) else {
            return;
        };
        let time = sample.time.saturating_sub(began);
        let statistics = self.waits.entry(&(sample.tid, futex));
        *statistics = match statistics.count {
            0 => WaitStatistics {
                count: 1,
                average: time as f64,
                max: time,
                min: time,
            },
            count => WaitStatistics {
                count: count + 1,
                average: (statistics.average + time as f64) / 2.0,
                max: statistics.max.max(time),
                min: statistics.min.min(time),
            },
        };
    }

    /// Returns the thread's name and id, the futex's address and the waits, in the order in which the first wait of
    /// each pair of thread and futex ended.
    pub fn rows(&self) -> impl Iterator<Item = (&str, i64, i64, &WaitStatistics)> {
        self.waits.iter().map(|(&(tid, futex), waits)| {
            let comm = self.comms.get(&tid);
            (comm.map_or("", String::as_str), tid, futex, waits)
        })
    }
}
