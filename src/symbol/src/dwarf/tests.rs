//! Tests that need no compiler: an object without debug information, and the conversion of file offsets (in and after segments)
//! and of run-time addresses of the kernel to addresses in the file.

use std::path::Path;

use super::*;
use crate::elf::Segment;
use crate::elf::tiny::TinyElf;
use crate::{FileBytes, MemoryFiles, ObjectKind, ObjectRequest, SearchPaths, load};

#[test]
fn an_object_without_debug_information_has_no_lines() {
    let path = Path::new("/tiny");
    let mut files = MemoryFiles::new();
    files.insert(path, FileBytes::from(TinyElf::default().build()));
    let no_cache = None;
    let paths = SearchPaths::new(no_cache);
    let loaded = load(&files, &paths, &ObjectRequest::new(path, ObjectKind::User));
    // Without a separate debug file, `debug` has the object's own file.
    let debug = loaded.debug.expect("it has a file");
    assert_eq!(debug.path(), path);
    let budget = Budget::new(1 << 20);
    assert!(LineIndex::open(&files, &paths, &debug, &budget).is_none());
}

#[test]
fn offsets_and_kernel_addresses_become_addresses_in_the_file() {
    let segment = |offset, address, memory_size| Segment {
        address,
        offset,
        file_size: memory_size,
        memory_size,
    };
    // The first segment ends with zero-filled memory, so its `memory_size` reaches over the file offset of the second one.
    // (`file_size` is too large here, but `in_file` does not use it.) 0x250 is in both segments, and 0x900 in none.
    let map = AddressMap::Segments(vec![
        segment(0, 0x1000, 0x300),
        segment(0x200, 0x5200, 0x100),
    ]);
    assert_eq!(map.in_file(0x10), 0x1010);
    assert_eq!(map.in_file(0x250), 0x5250);
    assert_eq!(map.in_file(0x900), 0x900);
    // The kernel runs at addresses above those in its file. An address below the shift wraps.
    assert_eq!(AddressMap::Shift(0x1000).in_file(0x1234), 0x234);
    assert_eq!(AddressMap::Shift(0x10).in_file(0), 0u64.wrapping_sub(0x10));
}
