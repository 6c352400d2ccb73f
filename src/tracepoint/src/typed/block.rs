//! Requests to block devices. Source: the kernel's `include/trace/events/block.h`.

use super::Text;
use super::event::typed_event;

typed_event! {
    /// A request goes to the driver of its device.
    BlockRqIssue(BlockRqIssueLayout) = "block:block_rq_issue" {
        /// The device: major number above 20 bits of minor number.
        dev: u32,
        /// First sector, of 512 bytes; all bits set for requests that have none.
        sector: u64,
        /// Sectors.
        nr_sector: u32,
        /// Bytes.
        bytes: Option<u32>,
        /// What it does, in letters: `R`, `W`, `D`, `F`, `S`, `M`, ….
        rwbs: Text,
        /// Name of the task that issued it.
        comm: Option<Text>,
        /// Bytes of the command that came from user space, in hexadecimal; usually none.
        cmd: Option<Text>,
    }
}

typed_event! {
    /// A request, or the first part of one, is done.
    BlockRqComplete(BlockRqCompleteLayout) = "block:block_rq_complete" {
        /// The device: major number above 20 bits of minor number.
        dev: u32,
        /// First sector, of 512 bytes.
        sector: u64,
        /// Sectors.
        nr_sector: u32,
        /// 0, or a negative error number.
        error: Option<i32> as "error" | "errors",
        /// What it did, in letters.
        rwbs: Text,
        /// Bytes of the command that came from user space, in hexadecimal; usually none.
        cmd: Option<Text>,
    }
}
