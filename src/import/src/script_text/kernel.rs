//! The kernel's functions in a text of `perf script`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::frame::TextFrame;

/// Names of the kernel itself as an object begin like this.
const CORE: &str = "[kernel";
const PAGE: u64 = 0x1000;
/// Distance in bytes between the addresses that inlined functions get: the text has only the addresses of the functions that
/// contain them.
pub(super) const INLINED_DISTANCE: u64 = 16;
/// The name of code without a function: otherwise the function at the next lower address would be shown.
const UNKNOWN: &str = "[unknown]";

/// Functions and modules of the kernel.
#[derive(Debug, Default)]
pub(super) struct KernelCode<'t> {
    /// Name and module of each function by its start address. If the text has no offset in the function, the address of the frame
    /// takes the place of the start address. The module is `None` for the kernel itself and for unknown objects, which are taken
    /// for it.
    functions: BTreeMap<u64, (&'t str, Option<&'t str>)>,
    /// First and last address of each module and of the kernel itself (`None`).
    ranges: BTreeMap<Option<&'t str>, (u64, u64)>,
    /// Addresses of inlined functions; 0 before [`Self::finish`].
    inlined: BTreeMap<&'t str, u64>,
    /// Whether any function has a name.
    has_names: bool,
}

impl<'t> KernelCode<'t> {
    pub(super) fn add(&mut self, frame: &TextFrame<'t>) {
        let module = frame.object.filter(|object| !object.starts_with(CORE));
        let start = frame.address - frame.offset.unwrap_or_default();
        self.has_names |= frame.symbol.is_some();
        let name = frame.symbol.unwrap_or(UNKNOWN);
        self.functions.entry(start).or_insert((name, module));
        let (first, last) = self.ranges.entry(module).or_insert((start, start));
        *first = start.min(*first);
        *last = frame.address.max(*last);
    }

    pub(super) fn add_inlined(&mut self, frame: &TextFrame<'t>) {
        if let Some(symbol) = frame.symbol {
            self.has_names = true;
            self.inlined.insert(symbol, 0);
        }
    }

    /// Gives inlined functions addresses, and extends ranges to whole pages. Modules that overlap the kernel become part of it.
    pub(super) fn finish(&mut self) {
        for (first, last) in self.ranges.values_mut() {
            *first &= !(PAGE - 1);
            *last = (*last | (PAGE - 1)).max(*first);
        }
        match self.ranges.is_empty() {
            // All kernel frames of the text are inlined functions: these keep the addresses that they have in the text.
            true => self.inlined.clear(),
            false if self.inlined.is_empty() => {}
            false => self.place_inlined(),
        }
        let core = self.ranges.get(&None).copied();
        let overlaps = |(first, last): &(u64, u64)| {
            core.is_some_and(|(core_first, core_last)| *first <= core_last && core_first <= *last)
        };
        let ranges = std::mem::take(&mut self.ranges);
        let (overlapping, separate): (BTreeMap<_, _>, BTreeMap<_, _>) = ranges
            .into_iter()
            .partition(|(module, range)| module.is_some() && overlaps(range));
        self.ranges = separate;
        for (module, (first, last)) in overlapping {
            if let Some((core_first, core_last)) = self.ranges.get_mut(&None) {
                *core_first = first.min(*core_first);
                *core_last = last.max(*core_last);
            }
            let functions = self.functions.values_mut();
            let functions = functions.filter(|(_, owner)| *owner == module);
            functions.for_each(|(_, owner)| *owner = None);
        }
    }

    /// Gives inlined functions addresses after the kernel itself, and extends it to them.
    fn place_inlined(&mut self) {
        let size = self.inlined.len() as u64 * INLINED_DISTANCE;
        let start = self.free_start(size | (PAGE - 1));
        let mut next = start;
        for (name, address) in &mut self.inlined {
            *address = next;
            self.functions.entry(next).or_insert((name, None));
            next += INLINED_DISTANCE;
        }
        let (first, last) = self.ranges.entry(None).or_insert((start, next));
        *first = (*first).min(start);
        *last = (*last).max(next | (PAGE - 1));
    }

    /// The first address after the kernel itself at which `size` bytes are in no module. If the text has no frame of the kernel
    /// itself: the address after the last module.
    fn free_start(&self, size: u64) -> u64 {
        let core = self.ranges.get(&None).map(|(_, last)| *last);
        let mut end = core.unwrap_or_default();
        // In the order of their addresses.
        let mut modules: Vec<_> = self.ranges.values().collect();
        modules.sort_unstable();
        for (first, last) in modules {
            if core.is_none() || *first <= end.saturating_add(size) {
                end = end.max(*last);
            }
        }
        // A frame may have an address near the highest possible one: leave 4 GiB for the inlined functions.
        end.saturating_add(1).min(u64::MAX - (1 << 32))
    }

    /// Whether any function has a name.
    pub(super) fn has_names(&self) -> bool {
        self.has_names
    }

    /// The address of an inlined function.
    pub(super) fn inlined_address(&self, symbol: &str) -> Option<u64> {
        self.inlined.get(symbol).copied()
    }

    /// Name, first address and size of the modules.
    pub(super) fn modules(&self) -> impl Iterator<Item = (String, u64, u64)> {
        let modules = self.ranges.iter();
        modules.filter_map(|(module, (first, last))| {
            let name = module.as_ref()?.trim_matches(['[', ']']);
            let size = last.saturating_sub(*first).saturating_add(1);
            Some((format!("[{name}]"), *first, size))
        })
    }

    /// The functions as text of `/proc/kallsyms`, with the bounds of the kernel itself; `None` if the bounds are unknown.
    pub(super) fn kallsyms(&self) -> Option<String> {
        let (first, last) = self.ranges.get(&None)?;
        let mut text = String::new();
        let _ = writeln!(text, "{first:016x} T _stext");
        for (address, (name, module)) in &self.functions {
            let _ = match module {
                Some(module) => {
                    let module = module.trim_matches(['[', ']']);
                    writeln!(text, "{address:016x} t {name}\t[{module}]")
                }
                None => writeln!(text, "{address:016x} T {name}"),
            };
        }
        let _ = writeln!(text, "{:016x} T _etext", last.saturating_add(1));
        Some(text)
    }
}
