//! Mappings of the kernel and its modules.

use rperf_sys::{KernelText, Module, page_size};
use rperf_wire::{Misc, Mmap, Record};

use super::RecordBuffer;

/// Appends an MMAP record of the kernel's text. The file name ends with the symbol at the start of the text, and the page offset
/// is that symbol's address. Readers compare it with the symbol's address in their own kallsyms, since the kernel may be
/// relocated at each boot.
pub(crate) fn kernel_map(to: &mut RecordBuffer, text: &KernelText) {
    let filename = format!("[kernel.kallsyms]{}", text.symbol);
    let mmap = Mmap {
        pid: -1,
        tid: 0,
        start: text.start,
        len: text.end.saturating_sub(text.start),
        pgoff: text.start,
        filename: filename.as_bytes(),
    };
    // `kernel`: a record of a type that the kernel, too, writes. `Misc::KERNEL`: the mapping is in kernel space.
    to.kernel(&Record::Mmap(mmap), Misc::KERNEL);
}

/// Appends an MMAP record of each loaded module.
pub(crate) fn modules(to: &mut RecordBuffer, modules: &[Module]) {
    for module in modules {
        let bracketed = format!("[{}]", module.name);
        let path = module
            .file
            .as_ref()
            .map(|path| path.as_os_str().as_encoded_bytes());
        let mmap = Mmap {
            pid: -1,
            tid: 0,
            start: module.start,
            len: module.size.next_multiple_of(page_size() as u64),
            pgoff: 0,
            filename: path.unwrap_or(bracketed.as_bytes()),
        };
        to.kernel(&Record::Mmap(mmap), Misc::KERNEL);
    }
}
