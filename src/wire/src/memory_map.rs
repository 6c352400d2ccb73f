//! Bits of mmap(2) in records of mappings (`include/uapi/asm-generic/mman-common.h`, `include/uapi/linux/mman.h`).

/// `prot`: pages may be read.
pub const PROT_READ: u32 = 1;
/// `prot`: pages may be written.
pub const PROT_WRITE: u32 = 2;
/// `prot`: pages may be executed.
pub const PROT_EXEC: u32 = 4;

/// `flags`: writes are shared with other processes.
pub const MAP_SHARED: u32 = 1;
/// `flags`: writes are private (copy-on-write).
pub const MAP_PRIVATE: u32 = 2;
