//! Symbols of kallsyms, the running kernel's and generated ones, compared with perf.

use std::fmt::Write as _;
use std::path::Path;

use rperf_symbol::{ObjectKind, ObjectRequest, SearchPaths, load};

use crate::perf_data::{Mapping, perf_is_here};
use crate::{Disk, assert_no_differences, differences, scratch};

/// The address of `_text` in generated listings.
const TEXT: u64 = 0xffff_ffff_8100_0000;

/// Compares the symbols of the kernel in `listing`, without those of modules. The recording has `_text` at
/// `text`, which may differ from its address in `listing`.
fn compare(dir: &Path, listing: &Path, text: u64, title: &str) {
    let mut paths = SearchPaths::new(None);
    paths.kallsyms_override = Some(listing.to_owned());
    let request = ObjectRequest {
        relocation: Some(("_text", text)),
        ..ObjectRequest::new(Path::new("[kernel.kallsyms]_text"), ObjectKind::Kernel)
    };
    let loaded = load(&Disk, &paths, &request);
    assert!(!loaded.table.is_empty(), "{title}: {:?}", loaded.findings);
    let mapping = Mapping {
        kernel: true,
        start: text,
        // Larger than any kernel.
        len: 0x3000_0000,
        pgoff: text,
        name: "[kernel.kallsyms]_text",
    };
    let options = ["--kallsyms", listing.to_str().expect("a printable path")];
    assert_no_differences(title, &differences(&loaded, dir, &mapping, &options));
}

#[test]
fn the_running_kernel_has_perfs_symbols() {
    if !perf_is_here() {
        return;
    }
    let Ok(listing) = std::fs::read_to_string("/proc/kallsyms") else {
        eprintln!("skipped: no /proc/kallsyms");
        return;
    };
    let text = listing
        .lines()
        .find_map(|line| line.strip_suffix(" T _text"));
    let text = text.and_then(|address| u64::from_str_radix(address, 16).ok());
    let Some(text) = text.filter(|&text| text != 0) else {
        eprintln!("skipped: kernel addresses are hidden");
        return;
    };
    let dir = scratch("running-kernel");
    let copy = dir.join("listing");
    std::fs::write(&copy, &listing).expect("the listing is copied");
    compare(&dir, &copy, text, "/proc/kallsyms");
}

#[test]
fn synthetic_listings_have_perfs_symbols() {
    if !perf_is_here() {
        return;
    }
    let dir = scratch("listings");
    // A title, and the lines after `_text`, with hexadecimal offsets from it instead of addresses.
    let cases = [
        (
            "two names at one address",
            "10 T first\n10 T second_and_longer\n20 T next",
        ),
        ("a weak name last", "10 T strong\n10 W weak\n20 t next"),
        (
            "data and read-only data",
            "10 t code\n18 D data\n20 R constant\n28 B zeros\n30 V weak_object\n38 A absolute\n40 t after",
        ),
        (
            "a module after the kernel",
            "10 T last\n100000 t inside\t[other]",
        ),
        (
            "a kernel symbol after a module",
            "10 T last\n100000 t inside\t[other]\n200000 t late",
        ),
        ("mapping symbols", "10 t $x\n14 t $d.1\n20 t named"),
        ("out of order", "40 t fourth\n20 t second\n30 t third"),
        (
            "invalid lines",
            "10 t good\nnot hexadecimal\n20 tt bad\n30 t better\n28\n",
        ),
    ];
    for (title, lines) in cases {
        for moved in [0, 0x20_0000] {
            let mut listing = format!("{TEXT:016x} T _text\n");
            for line in lines.lines() {
                let (offset, rest) = line.split_once(' ').unwrap_or((line, ""));
                match u64::from_str_radix(offset, 16) {
                    Ok(offset) if rest.is_empty() => writeln!(listing, "{:016x}", TEXT + offset),
                    Ok(offset) => writeln!(listing, "{:016x} {rest}", TEXT + offset),
                    Err(_) => writeln!(listing, "{line}"),
                }
                .expect("text is written");
            }
            let path = dir.join("listing");
            std::fs::write(&path, listing).expect("the listing is written");
            compare(
                &dir,
                &path,
                TEXT + moved,
                &format!("{title}, moved by {moved:#x}"),
            );
        }
    }
}
