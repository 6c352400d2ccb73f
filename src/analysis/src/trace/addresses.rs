//! The names of addresses and of enumeration values that a trace prints.

use rperf_replay::{Sample, World};

/// Names addresses of code in stacks, and of code and memory in page faults. `world` has the processes and
/// mappings at each time.
pub trait AddressNames: Send + Sync {
    /// Returns the frames of a sample's stack, innermost first; `None` if the sample has no callchain.
    fn stack(&self, world: &World, sample: &Sample<'_>) -> Option<Vec<String>>;

    /// Returns the code and the accessed memory of a page fault: `[function+0x1] => object@0x23 (d.)`. In the
    /// parentheses: `d` if the memory is in a known mapping, otherwise `?`; then the letter of the code's level
    /// (`.`: user) as in `report`.
    fn fault(&self, world: &World, sample: &Sample<'_>) -> String;

    /// To be called after `world` was pruned (data of ended processes was removed during live tracing): forgets the ids of all
    /// mappings, and the objects that were removed. Does nothing by default.
    fn forget_mappings(&self, _world: &World) {}
}

/// Names values of enumerations.
pub trait EnumerationNames: std::fmt::Debug + Send + Sync {
    /// Returns the name of a value of `enum ENUMERATION`; `None` if the type or the value is unknown.
    fn name(&self, enumeration: &str, value: i64) -> Option<&str>;
}

/// How stacks and page faults are decoded.
#[derive(Default)]
pub struct AddressOptions {
    /// Names the addresses of stacks and page faults. If `None`, samples have no stacks, and page faults only have the address of
    /// the code.
    pub names: Option<Box<dyn AddressNames>>,
    /// Whether samples of page faults become `TraceRecord::Fault`, instead of `TraceRecord::Event` without fields.
    pub shows_faults: bool,
}

impl std::fmt::Debug for AddressOptions {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("AddressOptions")
            .field("has_names", &self.names.is_some())
            .field("shows_faults", &self.shows_faults)
            .finish()
    }
}
