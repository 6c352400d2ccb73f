//! Time between the wakeup of a task and the next switch on the wakeup's target CPU.

use rustc_hash::FxHashMap;

use super::{EventFields, ScriptSample};

/// The value of the minimum before the first latency, in nanoseconds, as in perf. Longer latencies do not raise it.
const INITIAL_MINIMUM: u64 = 1_000_000_000;

/// The index of `sched:sched_wakeup` in [`WakeupLatencies::EVENTS`].
const WAKEUP: usize = 0;

/// Latencies of wakeups.
#[derive(Debug)]
pub struct WakeupLatencies {
    /// By target CPU: the time in nanoseconds of the last wakeup since the CPU's last switch.
    pending: FxHashMap<i64, u64>,
    /// Number of latencies: switches on a CPU with a pending wakeup.
    pub count: u64,
    /// The sum of the latencies in nanoseconds.
    pub total: u64,
    /// The smallest latency in nanoseconds; 1 s if none is shorter.
    pub min: u64,
    /// The largest latency in nanoseconds.
    pub max: u64,
}

impl Default for WakeupLatencies {
    fn default() -> Self {
        Self {
            pending: FxHashMap::default(),
            count: 0,
            total: 0,
            min: INITIAL_MINIMUM,
            max: 0,
        }
    }
}

impl WakeupLatencies {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = &[
        EventFields {
            tracepoint: "sched:sched_wakeup",
            numbers: &["target_cpu"],
            text: None,
        },
        EventFields {
            tracepoint: "sched:sched_switch",
            numbers: &[],
            text: None,
        },
    ];

    /// Adds a wakeup or a switch.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if sample.kind == Some(WAKEUP) {
            self.pending.insert(sample.number(0), sample.time);
            return;
        }
        // A switch: the only other tracepoint of `EVENTS`.
        let Some(woken_at) = self.pending.remove(&i64::from(sample.cpu)) else {
            return;
        };
        let latency = sample.time.saturating_sub(woken_at);
        self.count += 1;
        self.total = self.total.saturating_add(latency);
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
    }
}
