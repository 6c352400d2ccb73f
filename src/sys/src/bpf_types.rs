//! Type information (BTF) for BPF programs of one function, loaded by bpf(2). Only a program with type information has its full
//! name in symbol tables and can be traced.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

use crate::bpf_map::bpf;

/// `BPF_BTF_LOAD` (linux/bpf.h).
const BTF_LOAD: libc::c_int = 18;
/// The id of the function's type among the types of [`encode`].
pub(crate) const FUNCTION_TYPE_ID: u32 = 3;

/// The part of `union bpf_attr` that loads types.
#[repr(C)]
#[derive(Default)]
struct TypesAttr {
    btf: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    padding: u32,
}

/// Loads the types of a program with one function of this name, which may have letters, digits and `_`.
pub(crate) fn load_types(name: &str) -> io::Result<OwnedFd> {
    let types = encode(name);
    let mut attr = TypesAttr {
        btf: types.as_ptr().addr() as u64,
        size: u32::try_from(types.len()).map_err(io::Error::other)?,
        ..TypesAttr::default()
    };
    // SAFETY: the types live during the call and have the size that is passed; the result is a new descriptor without other
    // owner.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(BTF_LOAD, &mut attr)?)) }
}

/// Returns the BTF (linux/btf.h): the header, the types (`int`, `int ()` and the function) and the strings.
fn encode(name: &str) -> Vec<u8> {
    /// Magic number (two bytes), version 1, no flags.
    const MAGIC: [u8; 4] = if cfg!(target_endian = "little") {
        [0x9f, 0xeb, 1, 0]
    } else {
        [0xeb, 0x9f, 1, 0]
    };
    /// The size of the header in bytes.
    const HEADER: u32 = 24;
    /// Kinds in the upper byte: INT, FUNC_PROTO, FUNC.
    const INT: u32 = 1 << 24;
    const PROTO: u32 = 13 << 24;
    const FUNC: u32 = 12 << 24;
    /// `BTF_INT_SIGNED`, in the upper byte of the word that follows an INT.
    const SIGNED: u32 = 1 << 24;
    let strings = [b"\0int\0", name.as_bytes(), b"\0"].concat();
    // Type 1: the offset of its name, its kind, its size in bytes, its encoding and number of bits.
    let int = [1, INT, 4, SIGNED | 32];
    // Type 2: no name, its kind, the type of the result.
    let prototype = [0, PROTO, 1];
    // Type 3: the offset of its name, its kind, the type of its prototype.
    let function = [5, FUNC, 2];
    let types = [&int[..], &prototype, &function].concat();
    let types: Vec<u8> = types.into_iter().flat_map(u32::to_ne_bytes).collect();
    let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or_default();
    // The size of the header, offset and size of the types, offset and size of the strings. Offsets count from the header's end.
    let header = [HEADER, 0, size(&types), size(&types), size(&strings)];
    let header = header.map(u32::to_ne_bytes);
    [&MAGIC[..], &header.concat(), &types, &strings].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KprobeProgram;

    #[test]
    fn the_kernel_accepts_the_types() {
        // Skipped if bpf(2) loads no program, for example for lack of privileges.
        if KprobeProgram::empty().is_ok() {
            load_types("rperf_switch").unwrap();
            assert!(load_types("no name").is_err());
        }
    }
}
