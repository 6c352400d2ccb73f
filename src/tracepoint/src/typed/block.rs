//! Block devices. Source: the kernel's `include/trace/events/block.h`.

use super::TextField;
use super::event::typed_event;

typed_event! {
    /// A request is issued to the device driver.
    BlockRqIssue(BlockRqIssueLayout) = "block:block_rq_issue" {
        /// Device number: the major number above 20 bits of minor number.
        dev: u32,
        /// First sector, in units of 512 bytes; 0 or all bits set for a request without sectors.
        sector: u64,
        /// Number of sectors.
        nr_sector: u32,
        /// Number of bytes of the request.
        bytes: Option<u32>,
        /// Kind of request in letters: `R`, `W`, `D`, `F`, `S`, `M`, ….
        rwbs: TextField,
        /// Name of the task that issues the request.
        comm: Option<TextField>,
        /// Command bytes of a passthrough request in hexadecimal, in older kernels; otherwise empty.
        cmd: Option<TextField>,
    }
}

typed_event! {
    /// A request is completed, fully or partially.
    BlockRqComplete(BlockRqCompleteLayout) = "block:block_rq_complete" {
        /// Device number: the major number above 20 bits of minor number.
        dev: u32,
        /// First sector, in units of 512 bytes; 0 or all bits set for a request without sectors.
        sector: u64,
        /// Number of sectors completed.
        nr_sector: u32,
        /// 0, or a negated errno. Older kernels name the field `errors`.
        error: Option<i32> as "error" | "errors",
        /// Kind of request in letters.
        rwbs: TextField,
        /// Command bytes of a passthrough request in hexadecimal, in older kernels; otherwise empty.
        cmd: Option<TextField>,
    }
}
