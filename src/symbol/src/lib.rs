//! Names of addresses: symbol tables from ELF files, kallsyms, perf maps and jitdump files; source lines and inlined functions
//! from DWARF.
//!
//! [`load()`] returns the [`LoadedSymbols`] of an [`ObjectRequest`]. Files are read through a [`Files`]
//! provider; the crate opens no files, reads no environment variables, and doesn't depend on
//! perf.data.
//!
//! **Invariants.** No input makes the crate panic. A lookup is a pure function of table and address: the choice
//! among the symbols at one address is made when that address is first used, but does not depend on earlier
//! lookups.

mod build_id;
mod builder;
mod candidates;
pub mod demangle;
mod duplicates;
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
mod ties;
mod tree;
mod unpack;

pub use build_id::{BuildId, build_id_of_elf, build_id_of_notes, has_usdt_probes};
pub use candidates::cache_entry;
pub use dwarf::{
    Budget, DebugInfo, DebugSource, DebugUnit, FunctionQuery, LineIndex, SourceFrame, UnitPrefilter,
};
pub use elf::CodeLayout;
pub use files::{FileBytes, FilePart, FileRequest, Files, MemoryFiles, Servers};
pub use finding::SymbolFinding;
pub use images::{ObjectImages, object_images};
pub use kernel_code::{KernelCode, KernelMemory, kernel_code};
pub use listing::{is_running_kernel, native_endian};
pub use load::{LoadedSymbols, ObjectFiles, jit_dump as jit_dump_of, load};
pub use object::Endianness;
pub use origin::SymbolOrigin;
pub use request::{ObjectKind, ObjectRequest, SearchPaths};
pub use symbol::{Binding, Symbol, SymbolKind};
pub use table::{AddressKind, SymbolIndex, SymbolTable};
pub use unpack::unpack_section;
