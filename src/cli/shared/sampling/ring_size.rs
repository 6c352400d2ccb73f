//! `-m`: the sizes of ring buffers and AUX areas, in pages or bytes. `--mmap-flush`: when ring buffers are drained.

use clap::ArgMatches;
use rperf_sys::page_size;

use super::size;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Returns the data pages of each ring buffer, rounded up to a power of two; `None` if not given.
pub(crate) fn pages(matches: &ArgMatches, context: &Context) -> Result<Option<usize>, CliError> {
    let (rings, _) = sizes(matches);
    rings.map_or(Ok(None), |word| rounded(word, context).map(Some))
}

/// Returns the pages of each AUX area, given after a comma; `None` if not given.
pub(crate) fn area_pages(
    matches: &ArgMatches,
    context: &Context,
) -> Result<Option<usize>, CliError> {
    let (_, areas) = sizes(matches);
    areas.map_or(Ok(None), |word| rounded(word, context).map(Some))
}

/// Splits the value `RINGS`, `RINGS,AREAS` or `,AREAS` into the sizes of ring buffers and AUX areas.
fn sizes(matches: &ArgMatches) -> (Option<&str>, Option<&str>) {
    let Some(word) = matches.get_one::<String>("mmap-pages") else {
        return (None, None);
    };
    match word.split_once(',') {
        None => (Some(word), None),
        Some((rings, areas)) => (Some(rings).filter(|word| !word.is_empty()), Some(areas)),
    }
}

/// Returns a size in pages, rounded up to a power of two. Prints a note if it was rounded.
fn rounded(word: &str, context: &Context) -> Result<usize, CliError> {
    let invalid = || {
        CliError::usage("Invalid argument for --mmap_pages/-m")
            .hint("give pages (512) or bytes with a unit (512K, 8M)")
    };
    let requested = parse(word).ok_or_else(invalid)?;
    let pages = requested
        .max(1)
        .checked_next_power_of_two()
        .ok_or_else(invalid)?;
    let bytes = pages.checked_mul(page_size()).ok_or_else(invalid)?;
    if pages != requested {
        context.note(format_args!(
            "rounding mmap pages size to {} ({pages} pages)",
            human(bytes)
        ));
    }
    Ok(pages)
}

/// Parses `--mmap-flush`: the minimum number of bytes in a ring buffer to drain it while recording; 1 by default.
pub(crate) fn flush(matches: &ArgMatches) -> Result<u64, CliError> {
    let Some(word) = matches.get_one::<String>("mmap-flush") else {
        return Ok(1);
    };
    size::bytes(word).ok_or_else(|| {
        CliError::usage(format!("--mmap-flush: '{word}' is not a size"))
            .hint("give bytes: 4096, 64K, 1M")
    })
}

/// Parses a number of pages, or of bytes with the suffix `B`, `K`, `M` or `G` (upper or lower case), rounded up to pages.
fn parse(word: &str) -> Option<usize> {
    match size::scaled(word) {
        // Without a suffix: pages.
        None => word.parse().ok(),
        // With a suffix; `bytes` is `None` if the number before it is invalid.
        Some(bytes) => Some(usize::try_from(bytes?).ok()?.div_ceil(page_size())),
    }
}

/// Formats a size with the largest unit that fits, rounded down.
pub(crate) fn human(bytes: usize) -> String {
    let unit = [('G', 30), ('M', 20), ('K', 10)]
        .into_iter()
        .find(|(_, shift)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes}B"),
        |(letter, shift)| format!("{}{letter}", bytes >> shift),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_bytes() {
        let page = page_size();
        assert_eq!((parse("512"), parse("0")), (Some(512), Some(0)));
        assert_eq!(parse("8M"), Some((8 << 20) / page));
        assert_eq!((parse("1k"), parse("1B")), (Some(1), Some(1)));
        for bad in ["", "K", "x", "1.5M", "-1", "99999999999G", "1,2"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_use_the_largest_unit() {
        assert_eq!(
            [human(16 << 10), human(8 << 20), human(100)],
            ["16K", "8M", "100B"]
        );
    }
}
