//! The symbols of the recorded kernel, as text of `/proc/kallsyms`.

use rperf_perfdata::feature::BuildIdEntry;
use rperf_wire::{Encoder, Endian, Misc};

use crate::digest::digest;

/// The kernel's name in the list of build-ids.
const NAME: &str = "[kernel.kallsyms]";

/// The symbols of the recorded kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSymbols<'d> {
    /// Text of `/proc/kallsyms`.
    pub text: &'d [u8],
    /// Hash of `text`, used as the kernel's build-id: the imported formats have no build-ids.
    pub build_id: [u8; 20],
    /// First address of the kernel's code, and its size in bytes.
    pub(super) range: (u64, u64),
    /// The symbol at the first address. It follows the kernel's name in the MMAP record.
    symbol: &'static str,
}

impl<'d> KernelSymbols<'d> {
    /// Finds the code of the kernel; `None` if the address of its start or end is missing or hidden (0), or if the end is not
    /// above the start.
    pub(crate) fn new(text: &'d [u8]) -> Option<Self> {
        let lines = text.split(|byte| *byte == b'\n');
        let address_of = |symbol: &[u8]| {
            let mut lines = lines.clone();
            lines.find_map(|line| {
                let line = line.trim_ascii();
                // `name` is the end of the line, as long as `symbol` and the blank before it.
                let (before, name) =
                    line.split_at_checked(line.len().checked_sub(symbol.len() + 1)?)?;
                let address = before.split(|byte| *byte == b' ').next()?;
                let address = u64::from_str_radix(str::from_utf8(address).ok()?, 16).ok()?;
                (name.trim_ascii() == symbol && address > 0).then_some(address)
            })
        };
        let mut symbols = ["_text", "_stext"].into_iter();
        let (symbol, start) =
            symbols.find_map(|symbol| Some((symbol, address_of(symbol.as_bytes())?)))?;
        let end = address_of(b"_etext").filter(|end| *end > start)?;
        Some(Self {
            text,
            build_id: digest(text),
            range: (start, end - start),
            symbol,
        })
    }

    pub(crate) fn build_id_entry(&self) -> BuildIdEntry {
        BuildIdEntry {
            pid: -1,
            misc: Misc::KERNEL,
            build_id: self.build_id,
            size: 20,
            filename: NAME.to_owned(),
        }
    }

    /// Appends the body of the kernel's MMAP record, without a trailer: the caller adds the `sample_id` fields.
    pub(crate) fn encode_mapping(&self, endian: Endian, out: &mut Vec<u8>) {
        let mut to = Encoder::new(out, endian);
        let (pid, tid) = (u32::MAX, 0);
        to.u32(pid);
        to.u32(tid);
        let (start, size) = self.range;
        // `pgoff` is the address of the symbol in the mapping's name: readers compute the relocation from it.
        for word in [start, size, start] {
            to.u64(word);
        }
        let name = format!("{NAME}{}", self.symbol);
        to.bytes(name.as_bytes());
        to.zeros((name.len() + 1).next_multiple_of(8) - name.len());
    }
}
