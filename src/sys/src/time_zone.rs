//! The zone of local time.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HUNDREDTH: Duration = Duration::from_millis(10);

/// Seconds that local time is ahead of UTC at a moment (seconds since 1970): `TZ`, else
/// `/etc/localtime`; 0 where neither tells.
#[must_use]
pub fn utc_offset(moment: i64) -> i64 {
    local(moment).map_or(0, |local| local.tm_gmtoff)
}

/// The first name that `path` makes, out of this moment or of one after it, that nothing has yet. It is given local time as digits to the
/// hundredth of a second, `2026112102053102`, as perf names files and folders that come one after the other.
pub fn unused_name(path: impl Fn(&str) -> PathBuf) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut now = now.unwrap_or_default();
    loop {
        let seconds = i64::try_from(now.as_secs()).unwrap_or_default();
        let hundredths = now.subsec_millis() / 10;
        let path = path(&format!("{}{hundredths:02}", local_digits(seconds)));
        if !path.exists() {
            return path;
        }
        // They may come faster than their names can tell.
        now += HUNDREDTH;
    }
}

/// Local date and time of a moment as digits, `20261121020531`; those of 1970 where they can't be had.
fn local_digits(moment: i64) -> String {
    let Some(local) = local(moment) else {
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

fn local(moment: i64) -> Option<libc::tm> {
    // Of the width that the C library has for it; its name is about to change its meaning under musl.
    let moment = i64::into(moment);
    // SAFETY: tm consists of integers and a pointer, for which zeros are valid.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right type, and only `local` is written.
    let filled = unsafe { libc::localtime_r(&raw const moment, &raw mut local) };
    (!filled.is_null()).then_some(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_of_local_time() {
        let moment = 1_700_000_000 - utc_offset(1_700_000_000);
        assert_eq!(local_digits(moment), "20231114221320");
    }

    #[test]
    fn no_zone_is_more_than_fifteen_hours_off() {
        assert!(utc_offset(1_700_000_000).abs() <= 15 * 3600);
    }
}
