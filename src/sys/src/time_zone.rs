//! The local time zone, and file names that contain the local time.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HUNDREDTH: Duration = Duration::from_millis(10);

/// Returns the offset of local time from UTC in seconds at `seconds` since 1970, from `TZ` or
/// `/etc/localtime`; 0 without either.
#[must_use]
pub fn utc_offset(seconds: i64) -> i64 {
    local(seconds).map_or(0, |local| local.tm_gmtoff)
}

/// Returns the first path returned by `path_at` that doesn't exist, for the current time or a later one.
/// `path_at` gets the local time as digits down to hundredths of a second, `2026112102053102`, as in perf's
/// names of rotated files and folders.
pub fn unused_path_with_time(path_at: impl Fn(&str) -> PathBuf) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut time = now.unwrap_or_default();
    loop {
        let seconds = i64::try_from(time.as_secs()).unwrap_or_default();
        let hundredths = time.subsec_millis() / 10;
        let path = path_at(&format!("{}{hundredths:02}", local_digits(seconds)));
        if !path.exists() {
            return path;
        }
        // A file of this hundredth of a second exists: try the next one.
        time += HUNDREDTH;
    }
}

/// Local date and time as digits, `20261121020531`; those of 1970 if the conversion
/// fails.
fn local_digits(seconds: i64) -> String {
    let Some(local) = local(seconds) else {
        return "19700101000000".to_owned();
    };
    format!(
        "{:04}{:02}{:02}{:02}{:02}{:02}",
        local.tm_year + 1900,
        local.tm_mon + 1,
        local.tm_mday,
        local.tm_hour,
        local.tm_min,
        local.tm_sec
    )
}

fn local(seconds: i64) -> Option<libc::tm> {
    // Converted to `time_t` without naming this type, which the libc crate deprecates under musl since the type will change.
    let seconds = i64::into(seconds);
    // SAFETY: tm consists of integers and a pointer, for which zeros are valid.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers point to live values of the right type, and only `local` is written.
    let result = unsafe { libc::localtime_r(&raw const seconds, &raw mut local) };
    (!result.is_null()).then_some(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_of_local_time() {
        // 1,700,000,000 is 2023-11-14 22:13:20 UTC; at `seconds`, local clocks show these digits.
        let seconds = 1_700_000_000 - utc_offset(1_700_000_000);
        assert_eq!(local_digits(seconds), "20231114221320");
    }

    #[test]
    fn the_local_zone_is_at_most_fifteen_hours_off() {
        // Zones reach from UTC-12 to UTC+14; the limit leaves an hour more.
        assert!(utc_offset(1_700_000_000).abs() <= 15 * 3600);
    }
}
