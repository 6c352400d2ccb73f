//! The NUMA nodes on which a thread's memory is allocated: set_mempolicy(2).

use std::io;
use std::ptr;

/// `MPOL_DEFAULT` and `MPOL_BIND` (linux/mempolicy.h).
const DEFAULT: libc::c_int = 0;
const BIND: libc::c_int = 2;

/// Allocates further memory of the calling thread, and of threads that it starts, on this node only; `None` restores the
/// default policy.
///
/// # Errors
/// What set_mempolicy(2) reports: `EINVAL` if the machine has no such node, `ENOSYS` without NUMA.
pub fn bind_memory(node: Option<u32>) -> io::Result<()> {
    let word_bits = u64::BITS as usize;
    let mut mask = vec![0_u64; node.map_or(0, |node| node as usize / word_bits + 1)];
    if let (Some(word), Some(node)) = (mask.last_mut(), node) {
        *word = 1 << (node % u64::BITS);
    }
    let mode = if node.is_some() { BIND } else { DEFAULT };
    let mask_start = match node {
        Some(_) => mask.as_ptr(),
        None => ptr::null(),
    };
    // The kernel uses one bit less than the number passed.
    let bit_count = if mask.is_empty() {
        0
    } else {
        mask.len() * word_bits + 1
    };
    // SAFETY: the mask has at least as many bits as the kernel reads; for the default policy the pointer is null and no bits are
    // read.
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask_start, bit_count) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that memory can be used afterwards, but not on which node it is.
    #[test]
    fn memory_can_be_bound_to_existing_nodes_only() {
        std::thread::spawn(|| match bind_memory(Some(0)) {
            Ok(()) => {
                assert_eq!(
                    vec![1_u8; 1 << 20]
                        .iter()
                        .filter(|byte| **byte == 1)
                        .count(),
                    1 << 20
                );
                // Far above the number of any existing node.
                let missing = bind_memory(Some(1000)).unwrap_err();
                assert_eq!(missing.raw_os_error(), Some(libc::EINVAL));
                bind_memory(None).unwrap();
            }
            // A kernel without NUMA, or a sandbox.
            Err(error) => {
                let code = error.raw_os_error();
                assert!(matches!(code, Some(libc::ENOSYS | libc::EPERM)), "{error}");
            }
        })
        .join()
        .unwrap();
    }
}
