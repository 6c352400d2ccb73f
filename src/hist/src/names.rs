//! Texts and other facts about what the ids in a recording identify: tasks, objects, symbols.

use rperf_replay::{CommId, DsoId};
use rperf_resolve::SymbolId;
use rperf_symbol::SymbolOrigin;

use crate::keys::{KeyInput, Thread};
use crate::payloads::TextId;
use crate::properties::Properties;
use crate::values::FieldValue;

/// The texts and other facts that belong to the ids in a recording, for sorting and for output.
pub(crate) trait RecordingNames: Sync {
    /// A task's name.
    fn comm(&self, comm: CommId) -> &str;
    /// The last name of a thread.
    fn last_comm(&self, thread: Thread) -> &str;
    /// An object's short name, or its full path if addresses are shown.
    fn dso(&self, dso: DsoId) -> &str;
    /// A function's name, demangled.
    fn symbol(&self, symbol: SymbolId) -> &str;
    /// Whether the function is inlined. An inlined function has the range of the function that contains it.
    fn is_inlined(&self, symbol: SymbolId) -> bool;
    /// Whether other functions may have had the same range of addresses at other times, as JIT-compiled ones may.
    fn shares_its_address(&self, symbol: SymbolId) -> bool {
        let _ = symbol;
        false
    }
    /// A source location, or the text shown if it is unknown.
    fn line(&self, line: TextId) -> &str;
    /// The payload of a tracepoint as text.
    fn payload(&self, payload: TextId) -> &str;
    /// The rank of a payload among all payloads, by bytes.
    fn payload_rank(&self, payload: TextId) -> u32;
    /// The value of the tracepoint field [`KeyInput::field_number`]; `None` for samples of other events.
    fn field(&self, input: &KeyInput<'_>) -> Option<&FieldValue>;
    /// The properties of a sample, such as its time. [`KeyInput::context`] has only their id.
    fn properties(&self, input: &KeyInput<'_>) -> &Properties;
    /// The path of a cgroup; `None` if unknown.
    fn cgroup(&self, id: u64) -> Option<&str>;
    /// The socket of a CPU, -1 if unknown.
    fn socket(&self, cpu: u32) -> i32;
    /// Whether times are shown to the nanosecond.
    fn shows_nanoseconds(&self) -> bool;
    /// Whether symbols are shown with an address and their origin ([`HistogramOptions::addresses`]).
    ///
    /// [`HistogramOptions::addresses`]: crate::HistogramOptions::addresses
    fn shows_addresses(&self) -> bool {
        false
    }
    /// The origin of an object's symbols; `None` if unknown.
    fn origin(&self, dso: DsoId) -> Option<SymbolOrigin> {
        let _ = dso;
        None
    }
    /// Whether the symbol is a variable.
    fn is_data(&self, symbol: SymbolId) -> bool;
    /// Start and end of a function or variable in its object.
    fn range(&self, symbol: SymbolId) -> (u64, u64);
}
