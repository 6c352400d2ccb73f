//! Targets of probes in the kernel and its modules.

use super::Kernel;
use super::symbols::BASE;
use crate::event::ProbeTarget;
use crate::object::ProbeObject;
use crate::search::Probe;

/// Returns the target of a probe found in the image of the kernel or a module. In the image of the running kernel itself
/// (`is_running`, without `module`), it is relative to `_text`, because several functions may have the same name.
#[must_use]
pub fn kernel_image_target(
    object: &ProbeObject<'_>,
    probe: &Probe,
    module: Option<&str>,
    is_running: bool,
) -> ProbeTarget {
    let target = |symbol: &str, offset: u64| ProbeTarget::Kernel {
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
        return target(BASE, distance);
    }
    // A variant is a symbol with a suffix, such as `NAME.cold` or `NAME.isra.0`.
    match object.variant_symbol(probe) {
        Some((symbol, offset)) => target(&symbol, offset),
        None => target(&probe.symbol, probe.offset),
    }
}

impl Kernel<'_> {
    /// Returns the target of a probe found in kallsyms; `probe.file_offset` is an address.
    #[must_use]
    pub fn target(&self, probe: &Probe) -> ProbeTarget {
        let base = self.symbols.base().filter(|_| self.module.is_none());
        let distance = base.and_then(|base| probe.file_offset.checked_sub(base));
        let (symbol, offset) = match distance {
            Some(distance) => (BASE, distance),
            None => (probe.symbol.as_str(), probe.offset),
        };
        ProbeTarget::Kernel {
            module: self.module.map(str::to_owned),
            symbol: symbol.to_owned(),
            offset,
        }
    }
}
