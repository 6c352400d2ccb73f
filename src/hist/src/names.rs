//! What ids are called: the one way from the numbers that aggregates work with to text.

use rperf_replay::{CommId, DsoId};
use rperf_resolve::SymbolId;
use rperf_symbol::Origin;

use crate::facts::Facts;
use crate::keys::{Subject, Thread};
use crate::payloads::PayloadId;
use crate::values::Value;

/// Names of a recording.
pub(crate) trait Names: Sync {
    /// A task's name.
    fn comm(&self, comm: CommId) -> &str;
    /// The last name of a thread.
    fn last_comm(&self, thread: Thread) -> &str;
    /// An object's short name, or the whole one where places are shown.
    fn dso(&self, dso: DsoId) -> &str;
    /// A function's name, demangled.
    fn symbol(&self, symbol: SymbolId) -> &str;
    /// Whether that function is inlined into the one whose range it has.
    fn is_inlined(&self, symbol: SymbolId) -> bool;
    /// Whether other functions had the same range at other times.
    fn shares_its_place(&self, symbol: SymbolId) -> bool {
        let _ = symbol;
        false
    }
    /// A place in the source, or what stands for it.
    fn line(&self, line: PayloadId) -> &str;
    /// What a tracepoint told.
    fn payload(&self, payload: PayloadId) -> &str;
    /// The place of that among all that tracepoints told, by bytes.
    fn payload_rank(&self, payload: PayloadId) -> u32;
    /// What the tracepoint's field of that subject held.
    fn field(&self, subject: &Subject<'_>) -> Option<&Value>;
    /// What else is known of a sample.
    fn facts(&self, subject: &Subject<'_>) -> &Facts;
    /// The path of a cgroup.
    fn cgroup(&self, id: u64) -> Option<&str>;
    /// The socket of a processor, -1 where that is not known.
    fn socket(&self, cpu: u32) -> i32;
    /// Whether times are shown to the nanosecond.
    fn shows_nanoseconds(&self) -> bool;
    /// Whether symbols are shown with the place where they were seen first, and with where they are from.
    fn shows_places(&self) -> bool {
        false
    }
    /// Where the symbols of an object are from.
    fn origin(&self, dso: DsoId) -> Option<Origin> {
        let _ = dso;
        None
    }
    /// Whether that symbol is a variable.
    fn is_data(&self, symbol: SymbolId) -> bool;
    /// Start and end of a function, in its object's own terms.
    fn range(&self, symbol: SymbolId) -> (u64, u64);
}
