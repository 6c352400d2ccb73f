//! What the kernel is told of a place of its own.

use super::Kernel;
use super::symbols::BASE;
use crate::event::Target;
use crate::object::Object;
use crate::search::Probe;

/// The target of a probe that was found in the image of the kernel or of a module. In the running kernel places are counted from
/// its start: names may stand for several functions.
#[must_use]
pub fn place_in_kernel(
    object: &Object<'_>,
    probe: &Probe,
    module: Option<&str>,
    is_running: bool,
) -> Target {
    let named = |symbol: &str, offset: u64| Target::Kernel {
        module: module.map(str::to_owned),
        symbol: symbol.to_owned(),
        offset,
    };
    if is_running
        && module.is_none()
        && let Some(base) = object.symbol(BASE)
        && let Some(address) = object.address_of(probe.file_offset)
        && let Some(distance) = address.checked_sub(base)
    {
        return named(BASE, distance);
    }
    match object.apart(probe) {
        Some((symbol, offset)) => named(&symbol, offset),
        None => named(&probe.symbol, probe.offset),
    }
}

impl Kernel<'_> {
    /// The target of a probe that was found by what the kernel tells of itself.
    #[must_use]
    pub fn target(&self, probe: &Probe) -> Target {
        let base = self.symbols.base().filter(|_| self.module.is_none());
        let distance = base.and_then(|base| probe.file_offset.checked_sub(base));
        let (symbol, offset) = match distance {
            Some(distance) => (BASE, distance),
            None => (probe.symbol.as_str(), probe.offset),
        };
        Target::Kernel {
            module: self.module.map(str::to_owned),
            symbol: symbol.to_owned(),
            offset,
        }
    }
}
