//! Offsets in the running kernel's structures, by which BPF programs find their members.

use std::path::Path;

use rperf_bpf::Error;
use rperf_btf::Btf;

use crate::cli::pmus::SYSFS;

/// Returns the kernel's type information (BTF); `None` if there is none, or if it cannot be read.
pub(crate) fn kernel_types() -> Option<Vec<u8>> {
    rperf_sys::kernel_file(Path::new(SYSFS).join("kernel/btf/vmlinux")).ok()
}

/// Returns the offset in bytes of each (structure, member).
///
/// # Errors
///
/// [`Error::NoBtf`]: the kernel has no type information, or not of these members, or an offset exceeds 65,535.
pub(crate) fn member_offsets<const N: usize>(
    members: [(&str, &str); N],
) -> Result<[u16; N], Error> {
    let bytes = kernel_types().ok_or(Error::NoBtf)?;
    let types = Btf::parse(&bytes).map_err(|_| Error::NoBtf)?;
    let mut offsets = [0; N];
    for (offset, (structure, member)) in offsets.iter_mut().zip(members) {
        let found = types.member_offset(structure, member);
        let found = found.and_then(|found| u16::try_from(found).ok());
        *offset = found.ok_or(Error::NoBtf)?;
    }
    Ok(offsets)
}
