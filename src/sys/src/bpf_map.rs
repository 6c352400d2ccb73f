//! BPF maps: bpf(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// `BPF_MAP_CREATE` and the following commands of linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const MAP_DELETE_ELEM: libc::c_int = 3;
const MAP_GET_NEXT_KEY: libc::c_int = 4;

/// `enum bpf_map_type` (linux/bpf.h), as far as used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BpfMapKind {
    /// `BPF_MAP_TYPE_HASH`.
    Hash,
    /// `BPF_MAP_TYPE_ARRAY`.
    Array,
    /// `BPF_MAP_TYPE_PERF_EVENT_ARRAY`: file descriptors of perf events.
    PerfEventArray,
    /// `BPF_MAP_TYPE_PERCPU_HASH`.
    PerCpuHash,
    /// `BPF_MAP_TYPE_PERCPU_ARRAY`.
    PerCpuArray,
    /// `BPF_MAP_TYPE_STACK_TRACE`: stacks by id. The helper `bpf_get_stackid` adds the kernel or user stack of the
    /// current task and returns the stack's id.
    StackTrace,
    /// `BPF_MAP_TYPE_LRU_HASH`: if it is full, the least recently used entries are removed.
    LruHash,
    /// `BPF_MAP_TYPE_CGROUP_ARRAY`: the file descriptors of cgroup directories (version 2).
    CgroupArray,
}

impl BpfMapKind {
    fn number(self) -> u32 {
        match self {
            Self::Hash => 1,
            Self::Array => 2,
            Self::PerfEventArray => 4,
            Self::PerCpuHash => 5,
            Self::PerCpuArray => 6,
            Self::StackTrace => 7,
            Self::CgroupArray => 8,
            Self::LruHash => 9,
        }
    }

    fn is_per_cpu(self) -> bool {
        matches!(self, Self::PerCpuHash | Self::PerCpuArray)
    }
}

/// The type and the sizes of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfMapShape {
    /// The type.
    pub kind: BpfMapKind,
    /// The size of a key in bytes; 4 unless the map is a hash table.
    pub key_size: u32,
    /// The size of a value in bytes.
    pub value_size: u32,
    /// The maximum number of entries.
    pub max_entries: u32,
}

/// The part of `union bpf_attr` that creates a map.
#[repr(C)]
#[derive(Default)]
struct CreateAttr {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

/// The part of `union bpf_attr` for commands on elements.
#[repr(C)]
#[derive(Default)]
struct ElementAttr {
    map_fd: u32,
    padding: u32,
    key: u64,
    /// The address of the value, or of the next key.
    value: u64,
    flags: u64,
}

/// Calls bpf(2).
///
/// # Safety
///
/// `T` must have the layout of the command's part of `union bpf_attr`, and the memory it points to must be valid for
/// what the command reads and writes.
pub(crate) unsafe fn bpf<T>(command: libc::c_int, attr: &mut T) -> io::Result<i32> {
    let attr: *mut T = attr;
    // SAFETY: as the caller guarantees; the size is that of the structure.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attr, size_of::<T>()) };
    match i32::try_from(result) {
        Ok(number) if number >= 0 => Ok(number),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A BPF map.
#[derive(Debug)]
pub struct BpfMap {
    fd: OwnedFd,
    key_size: usize,
    /// Size in bytes of what [`BpfMap::get`] returns and [`BpfMap::set`] takes: of one value, or for maps per CPU of the values
    /// of all possible CPUs, each padded to 8 bytes.
    full_value_size: usize,
}

impl BpfMap {
    /// Creates a map. Arrays of values are initially zeros; hash tables are empty. `possible_cpus` is the number of CPUs in
    /// `/sys/devices/system/cpu/possible`.
    ///
    /// # Errors
    /// What bpf(2) reports: `EPERM` without `CAP_BPF`, or before Linux 5.11 if `RLIMIT_MEMLOCK` is too low; `ENOMEM`;
    /// `EINVAL`.
    pub fn create(shape: BpfMapShape, possible_cpus: usize) -> io::Result<Self> {
        let mut attr = CreateAttr {
            map_type: shape.kind.number(),
            key_size: shape.key_size,
            value_size: shape.value_size,
            max_entries: shape.max_entries,
            map_flags: 0,
        };
        // SAFETY: the command reads numbers only, and its result is a new descriptor without other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &mut attr)?) };
        let size = |bytes: u32| usize::try_from(bytes).map_err(io::Error::other);
        let value_size = size(shape.value_size)?;
        let full_value_size = match shape.kind.is_per_cpu() {
            true => value_size.next_multiple_of(8).saturating_mul(possible_cpus),
            false => value_size,
        };
        Ok(Self {
            fd,
            key_size: size(shape.key_size)?,
            full_value_size,
        })
    }

    /// Returns the arguments of a command on the element with this key.
    fn element(&self, key: &[u8]) -> io::Result<ElementAttr> {
        if key.len() != self.key_size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(ElementAttr {
            map_fd: self.fd.as_raw_fd().cast_unsigned(),
            key: key.as_ptr().addr() as u64,
            ..ElementAttr::default()
        })
    }

    /// Returns the value of a key, for maps per CPU the values of all possible CPUs one after another; `None` without
    /// this key.
    ///
    /// # Errors
    /// What bpf(2) reports; [`io::ErrorKind::InvalidInput`] for a key of another size.
    pub fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0; self.full_value_size];
        let mut attr = self.element(key)?;
        attr.value = value.as_mut_ptr().addr() as u64;
        // SAFETY: the key has the map's size, and the kernel writes no more than the size of `value`.
        match unsafe { bpf(MAP_LOOKUP_ELEM, &mut attr) } {
            Ok(_) => Ok(Some(value)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets the value of a key. For maps per CPU, `value` has the values of all possible CPUs, each padded to 8 bytes.
    ///
    /// # Errors
    /// What bpf(2) reports: `E2BIG` if the map is full, or the key of an array is not below its size;
    /// [`io::ErrorKind::InvalidInput`] for other sizes than the map's.
    pub fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if value.len() != self.full_value_size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut attr = self.element(key)?;
        attr.value = value.as_ptr().addr() as u64;
        // SAFETY: key and value have the map's sizes and are only read.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut attr) }.map(drop)
    }

    /// Removes a key; nothing happens if there is none.
    ///
    /// # Errors
    /// What bpf(2) reports: `EINVAL` for arrays of values (`Array` and `PerCpuArray`), whose keys always exist;
    /// [`io::ErrorKind::InvalidInput`] for a key of another size.
    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        let mut attr = self.element(key)?;
        // SAFETY: the key has the map's size and is only read.
        match unsafe { bpf(MAP_DELETE_ELEM, &mut attr) } {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns all keys. Those that programs add or remove during the call may or may not be among them. If a program
    /// removes a key, others may be returned twice, since the kernel may begin again.
    ///
    /// # Errors
    /// What bpf(2) reports.
    pub fn keys(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut next = vec![0; self.key_size];
            let mut attr = ElementAttr {
                map_fd: self.fd.as_raw_fd().cast_unsigned(),
                // Without a key, the kernel returns the first one.
                key: keys.last().map_or(0, |key| key.as_ptr().addr() as u64),
                value: next.as_mut_ptr().addr() as u64,
                ..ElementAttr::default()
            };
            // SAFETY: both keys have the map's size; the kernel writes to the second.
            match unsafe { bpf(MAP_GET_NEXT_KEY, &mut attr) } {
                Ok(_) => keys.push(next),
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(keys),
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for BpfMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
