//! Names for addresses: symbol tables out of ELF files, kallsyms and perf maps, with the answers that Linux perf 6.1 gives.
//!
//! [`load()`] turns an [`ObjectRequest`] into a [`SymbolTable`]. Bytes come from a [`Files`] provider; the crate opens no
//! file, reads no environment, and knows nothing of perf.data.
//!
//! **Invariants.** No input makes it panic. Choices between symbols are made on whole tables, before any lookup, so a
//! lookup is a pure function of table and address. Names stay in the object's file and are demangled when shown.

mod build_id;
mod builder;
mod candidates;
mod choice;
pub mod demangle;
pub mod dwarf;
mod elf;
mod files;
mod finding;
mod images;
pub mod jit_dump;
pub mod kallsyms;
mod kernel;
mod kernel_code;
mod listing;
mod load;
mod names;
mod origin;
mod overlaps;
pub mod perf_map;
mod request;
mod symbol;
mod table;
mod tree;
mod unpack;

pub use build_id::{BuildId, build_id_of_elf, build_id_of_notes, has_probes};
pub use candidates::cache_entry;
pub use dwarf::{Budget, DebugInfo, DebugSource, DebugUnit, Lines, Sift, Sought, SourceFrame};
pub use elf::CodeLayout;
pub use files::{FileBytes, Files, MemoryFiles, Part, Servers, Wanted};
pub use finding::Finding;
pub use images::{Images, images};
pub use kernel_code::{KernelCode, KernelMemory, kernel_code};
pub use listing::{is_running as is_running_kernel, native_endian};
pub use load::{Loaded, Located, jit_dump as jit_dump_of, load};
pub use object::Endianness;
pub use origin::Origin;
pub use request::{ObjectKind, ObjectRequest, SearchPaths};
pub use symbol::{Binding, Symbol, SymbolKind};
pub use table::{AddressSpace, SymbolIndex, SymbolTable};
pub use unpack::unpack_section;
