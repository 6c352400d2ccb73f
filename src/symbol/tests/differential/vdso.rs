//! Symbols of the vdso, compared with perf. The test and perf each read it from their own memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rperf_symbol::{FileBytes, ObjectKind, ObjectRequest, SearchPaths, load};

use crate::perf_data::{Mapping, perf_is_here};
use crate::{Disk, assert_no_differences, differences, scratch};

/// This process's vdso.
fn own_vdso() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let mut image = vec![0; usize::try_from(end - start).ok()?];
    let memory = File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut image, start).ok()?;
    Some(image)
}

#[test]
fn the_vdso_has_perfs_symbols() {
    if !perf_is_here() {
        return;
    }
    let Some(image) = own_vdso() else {
        eprintln!("skipped: this process has no vdso");
        return;
    };
    let dir = scratch("vdso");
    let image = FileBytes::from(image);
    let request = ObjectRequest {
        image: Some(&image),
        ..ObjectRequest::new(Path::new("[vdso]"), ObjectKind::Vdso)
    };
    let loaded = load(&Disk, &SearchPaths::new(None), &request);
    assert!(!loaded.table.is_empty(), "{:?}", loaded.findings);
    // As in an MMAP record of a process. Any address serves: the vdso's symbols are found by their offsets in it.
    let mapping = Mapping {
        kernel: false,
        start: 0x7fff_f7fc_1000,
        len: image.len() as u64,
        pgoff: 0,
        name: "[vdso]",
    };
    // `&[]`: no further options of `perf script`.
    assert_no_differences("[vdso]", &differences(&loaded, &dir, &mapping, &[]));
}
