//! What a trace asks of symbol tables.

use rperf_replay::{Sample, World};

/// Names the code of samples and the memory of page faults. `world` is the one at the time of the sample.
pub trait AddressNames: Send + Sync {
    /// Returns the frames of a sample's stack, innermost first; `None` if the sample has no callchain.
    fn stack(&self, world: &World, sample: &Sample<'_>) -> Option<Vec<String>>;

    /// Returns the text of a page fault: `[function+0x1] => object@0x23 (d.)`.
    fn fault(&self, world: &World, sample: &Sample<'_>) -> String;

    /// Forgets ids of mappings: those of the next `world` are different.
    fn forget_mappings(&self) {}
}

/// Names values of enumerations.
pub trait EnumerationNames: std::fmt::Debug + Send + Sync {
    /// Returns the name of a value of `enum ENUMERATION`.
    fn name(&self, enumeration: &str, value: i64) -> Option<&str>;
}

/// How stacks and page faults are read.
#[derive(Default)]
pub struct AddressOptions {
    /// What names them; `None` for neither.
    pub names: Option<Box<dyn AddressNames>>,
    /// Whether samples of page faults are shown as such, instead of as events without fields.
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
