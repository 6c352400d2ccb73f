//! The copy of `/proc/kallsyms` in the build-id cache, which later commands read.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rperf_testkit::{Scratch, skip};

use crate::kernel::{is_root, record_in, rperf_in};

const COPY: &str = ".debug/.rperf-kallsyms";

fn report(scratch: &Scratch) -> String {
    let words = ["report", "--stdio", "-s", "sym", "-i", "perf.data"];
    let outcome = rperf_in(scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    outcome.stdout
}

#[test]
fn reports_with_a_valid_a_damaged_and_no_copy_are_the_same() {
    const TEST: &str = "reports_with_a_valid_a_damaged_and_no_copy_are_the_same";
    if !is_root() {
        return skip(TEST, "needs root, to see the kernel's addresses");
    }
    let scratch = Scratch::new();
    let workload = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=4000"];
    let options = ["-q", "-N", "-e", "cpu-clock:k", "-F", "5000", "--"];
    let outcome = record_in(&scratch, &options, &workload);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let cache = scratch.path().join(".debug");
    let _ = fs::remove_dir_all(&cache);
    let expected = report(&scratch);
    assert!(expected.contains("[k] "), "{expected}");
    assert!(!cache.exists(), "the folder is not created");

    // Now that the folder exists, the report also writes the copy, and the next one reads it.
    fs::create_dir(&cache).unwrap();
    assert_eq!(report(&scratch), expected);
    let copy = scratch.path().join(COPY);
    let mode = fs::metadata(&copy).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let contents = read(&copy);
    let listing = read(Path::new("/proc/kallsyms"));
    assert_eq!(of_kernel(split(&contents).1), of_kernel(&listing));
    assert_eq!(report(&scratch), expected);

    // Names of functions are changed: the checksum in the first line reveals the change, and the copy is replaced.
    let (_, text) = split(&contents);
    fs::write(&copy, contents.replace('_', "x")).unwrap();
    assert_eq!(report(&scratch), expected);
    assert_eq!(of_kernel(split(&read(&copy)).1), of_kernel(text));

    // A report with names that only the copy contains has read the copy. Another test may load a BPF program meanwhile, which
    // makes the copy invalid.
    let is_read = (0..10).any(|_| {
        let contents = read(&copy);
        fs::write(&copy, with_other_names(&contents)).unwrap();
        report(&scratch).contains("renamed_")
    });
    assert!(is_read);
}

fn read(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap()).expect("text")
}

/// Returns the lines of the kernel itself, without modules and BPF programs: another test may load a BPF program.
fn of_kernel(listing: &str) -> Vec<&str> {
    listing.lines().filter(|line| !line.contains('[')).collect()
}

/// Splits off the first line, the header of a copy.
fn split(copy: &str) -> (&str, &str) {
    copy.split_once('\n').expect("a first line")
}

/// Returns a valid copy of the same kernel whose local functions are called `renamed_…`. Global functions keep their names: the
/// kernel's address is derived from one of them.
fn with_other_names(copy: &str) -> String {
    let (header, text) = split(copy);
    let text = text.replace(" t ", " t renamed_");
    let mut sum = flate2::Crc::new();
    sum.update(text.as_bytes());
    // The header ends with the length and the checksum of the text. `key` is what is before: the format, and what identifies the
    // boot and the loaded modules and BPF programs.
    let words: Vec<&str> = header.split(' ').collect();
    let (key, _) = words.split_at(words.len() - 2);
    format!(
        "{} {:x} {:08x}\n{text}",
        key.join(" "),
        text.len(),
        sum.sum()
    )
}
