//! Descriptions of loaded BPF programs, and their type information (BTF): bpf(2).

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::bpf_map::bpf;

// Commands of linux/bpf.h.
pub(crate) const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BTF_GET_FD_BY_ID: libc::c_int = 19;
/// The size in bytes of `struct bpf_prog_info` up to `attach_btf_id` (Linux 6.0).
const INFO_SIZE: usize = 232;
/// The size in bytes of `struct bpf_btf_info` (Linux 5.11).
const BTF_INFO_SIZE: usize = 32;
/// The offset in `struct bpf_btf_info` of the data's address.
const BTF_ADDRESS: usize = 0;
/// The offset in `struct bpf_btf_info` of the data's size.
const BTF_SIZE: usize = 8;

/// An array that `struct bpf_prog_info` points to, and the offsets of the structure's fields that describe it.
struct InfoArray {
    /// The array's number in `enum perf_bpil_array_types`: its bit in [`BpfProgramInfo::array_mask`].
    bit: u32,
    /// The offset of the field with the number of elements.
    count: usize,
    element: ElementSize,
    /// The offset of the field with the array's address.
    pointer: usize,
}

/// The size of an array's elements in bytes.
enum ElementSize {
    Fixed(usize),
    /// The offset of the field with the size.
    Field(usize),
}

/// The arrays that are read, in the order of their numbers. BPF instructions (1) and ids of maps (2) are not read. Arguments
/// are in the order of the fields of [`InfoArray`].
const ARRAYS: [InfoArray; 7] = [
    // Machine code.
    InfoArray::new(0, 16, ElementSize::Fixed(1), 24),
    // Addresses of functions.
    InfoArray::new(3, 104, ElementSize::Fixed(8), 112),
    // Sizes of functions.
    InfoArray::new(4, 108, ElementSize::Fixed(4), 120),
    // Types of functions.
    InfoArray::new(5, 144, ElementSize::Field(132), 136),
    // Source lines of BPF instructions.
    InfoArray::new(6, 148, ElementSize::Field(172), 152),
    // Source lines of machine code.
    InfoArray::new(7, 168, ElementSize::Field(176), 160),
    // Tags of functions.
    InfoArray::new(8, 180, ElementSize::Fixed(8), 184),
];

impl InfoArray {
    const fn new(bit: u32, count: usize, element: ElementSize, pointer: usize) -> Self {
        Self {
            bit,
            count,
            element,
            pointer,
        }
    }

    /// The size in bytes; `None` if this kernel's structure does not have the array.
    fn size(&self, info: &[u8]) -> Option<usize> {
        info.get(self.pointer..self.pointer + 8)?;
        let element = match self.element {
            ElementSize::Fixed(size) => size,
            ElementSize::Field(at) => number(info, at)?,
        };
        number(info, self.count)?.checked_mul(element)
    }
}

/// The description of a loaded program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfProgramInfo {
    /// The arrays in `data`, one bit for each (`enum perf_bpil_array_types`).
    pub array_mask: u64,
    /// `struct bpf_prog_info`, with offsets in `data` instead of the pointers to these arrays.
    pub info: Vec<u8>,
    /// The arrays, each padded to 8 bytes.
    pub data: Vec<u8>,
}

/// The part of `union bpf_attr` that opens an object by its id.
#[repr(C)]
#[derive(Default)]
struct IdAttr {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

/// The part of `union bpf_attr` for `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
#[derive(Default)]
struct InfoAttr {
    fd: u32,
    size: u32,
    info: u64,
}

/// Returns the description of a loaded program; `None` if there is none with this id.
///
/// # Errors
/// What bpf(2) reports: `EPERM` without `CAP_SYS_ADMIN`; [`io::ErrorKind::InvalidData`] if the sizes of the arrays change
/// during the call.
pub fn bpf_program_info(id: u32) -> io::Result<Option<BpfProgramInfo>> {
    let Some(program) = open_by_id(PROG_GET_FD_BY_ID, id)? else {
        return Ok(None);
    };
    // The structure with the sizes of the arrays, but without pointers.
    let mut without_arrays = vec![0; INFO_SIZE];
    // SAFETY: without sizes of arrays, the kernel writes to the structure only.
    unsafe { object_info(&program, &mut without_arrays) }?;
    // The structure for the second call: zeros, except the counts, element sizes and addresses of the arrays that are read.
    let mut info = vec![0; without_arrays.len()];
    let (mut array_mask, mut length, mut places) = (0, 0_usize, Vec::new());
    for array in &ARRAYS {
        let Some(size) = array.size(&without_arrays) else {
            continue;
        };
        array_mask |= 1 << array.bit;
        copy(&without_arrays, &mut info, array.count);
        if let ElementSize::Field(at) = array.element {
            copy(&without_arrays, &mut info, at);
        }
        places.push((array, length, size));
        length += size.next_multiple_of(8);
    }
    let mut data = vec![0_u8; length];
    let start = data.as_mut_ptr();
    for (array, offset, size) in &places {
        if *size > 0 {
            let address = start.wrapping_add(*offset).addr() as u64;
            put(&mut info, array.pointer, &address.to_ne_bytes());
        }
    }
    // SAFETY: each pointer refers to memory of `data` for as many elements as the structure says, which the kernel does not
    // exceed.
    unsafe { object_info(&program, &mut info) }?;
    for (array, offset, size) in places {
        if array.size(&info) != Some(size) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        put(&mut info, array.pointer, &(offset as u64).to_ne_bytes());
    }
    Ok(Some(BpfProgramInfo {
        array_mask,
        info,
        data,
    }))
}

/// Returns the loaded type information (BTF) with this id: header, types and strings (linux/btf.h); `None` if there is none.
///
/// # Errors
/// What bpf(2) reports: `EPERM` without `CAP_SYS_ADMIN`.
pub fn bpf_type_info(id: u32) -> io::Result<Option<Vec<u8>>> {
    let Some(types) = open_by_id(BTF_GET_FD_BY_ID, id)? else {
        return Ok(None);
    };
    let mut info = vec![0; BTF_INFO_SIZE];
    // SAFETY: without a size of types, the kernel writes to the structure only.
    unsafe { object_info(&types, &mut info) }?;
    let size = number(&info, BTF_SIZE).unwrap_or_default();
    let mut data = vec![0_u8; size];
    let mut info = vec![0; info.len()];
    put(
        &mut info,
        BTF_ADDRESS,
        &(data.as_mut_ptr().addr() as u64).to_ne_bytes(),
    );
    let length = u32::try_from(size).map_err(io::Error::other)?;
    put(&mut info, BTF_SIZE, &length.to_ne_bytes());
    // SAFETY: the pointer refers to `data`, whose size is passed.
    unsafe { object_info(&types, &mut info) }?;
    Ok(Some(data))
}

/// Opens an object; `None` if there is none with this id.
pub(crate) fn open_by_id(command: libc::c_int, id: u32) -> io::Result<Option<OwnedFd>> {
    let mut attr = IdAttr {
        id,
        ..IdAttr::default()
    };
    // SAFETY: the command reads numbers only, and its result is a new descriptor without other owner.
    match unsafe { bpf(command, &mut attr) } {
        // SAFETY: as above.
        Ok(fd) => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) })),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fills `info`, whose size becomes that of the kernel's structure if that is smaller.
///
/// # Safety
///
/// Pointers in `info` must refer to memory of the sizes in `info`.
unsafe fn object_info(object: &OwnedFd, info: &mut Vec<u8>) -> io::Result<()> {
    let mut attr = InfoAttr {
        fd: object.as_raw_fd().cast_unsigned(),
        size: u32::try_from(info.len()).map_err(io::Error::other)?,
        info: info.as_mut_ptr().addr() as u64,
    };
    // SAFETY: the kernel writes at most `attr.size` bytes to `info`; its pointers are valid, as the caller guarantees.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut attr) }?;
    info.truncate(attr.size as usize);
    Ok(())
}

/// Returns the BTF id of the type of a program's first function; `None` without type information (BTF).
pub(crate) fn first_function_type_id(program: &BpfProgramInfo) -> Option<u32> {
    // `btf_id`, `nr_func_info`, and `func_info`, which is an offset in `data`.
    let (btf, count) = (number(&program.info, 128)?, number(&program.info, 144)?);
    let functions = number(&program.info, 136)?;
    if btf == 0 || count == 0 {
        return None;
    }
    // An element has the offset of an instruction, and the BTF id of the type of the function that begins there.
    u32::try_from(number(&program.data, functions.checked_add(4)?)?).ok()
}

/// Returns the 32-bit number at an offset.
fn number(info: &[u8], at: usize) -> Option<usize> {
    let bytes = info.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_ne_bytes(*bytes)).ok()
}

/// Copies the 32-bit number at an offset to the same offset of `to`.
fn copy(from: &[u8], to: &mut [u8], at: usize) {
    if let Some(bytes) = from.get(at..at + 4) {
        put(to, at, bytes);
    }
}

fn put(info: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = info.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    use crate::{KprobeProgram, bpf_program_ids};

    #[test]
    fn the_code_of_a_loaded_program_is_described() {
        let Ok(program) = KprobeProgram::empty() else {
            return;
        };
        let path = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
        let fdinfo = std::fs::read_to_string(path).unwrap();
        let id = fdinfo
            .lines()
            .find_map(|line| line.strip_prefix("prog_id:\t"));
        let id: u32 = id.unwrap().parse().unwrap();
        assert!(bpf_program_ids().unwrap().contains(&id));
        let program = bpf_program_info(id).unwrap().unwrap();
        assert_eq!(number(&program.info, 4), usize::try_from(id).ok());
        // The numbers passed to `number`, and those in parentheses here, are offsets in the structure: 4 has the program's id.
        // There is one function (104), whose size (120) is that of all machine code (16). The addresses of functions (112) follow
        // the padded machine code in `data`.
        let code = number(&program.info, 16).unwrap();
        assert_eq!(number(&program.info, 104), Some(1));
        assert_eq!(number(&program.info, 112), Some(code.next_multiple_of(8)));
        let lengths = number(&program.info, 120).unwrap();
        assert_eq!(number(&program.data, lengths), Some(code));
        // The last array is the tag of the only function: that of the program (bytes 8 to 15). The bits of `array_mask` are those
        // of all of `ARRAYS`.
        assert_eq!(program.data[program.data.len() - 8..], program.info[8..16]);
        assert_eq!(program.array_mask, 0x1f9);
    }

    #[test]
    fn ids_without_object_have_no_description() {
        if KprobeProgram::empty().is_err() {
            return;
        }
        assert_eq!(bpf_program_info(u32::MAX).unwrap(), None);
        assert_eq!(bpf_type_info(u32::MAX).unwrap(), None);
    }
}
