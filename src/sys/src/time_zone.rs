//! The zone of local time.

/// Seconds that local time is ahead of UTC at a moment (seconds since 1970): `TZ`, else
/// `/etc/localtime`; 0 where neither tells.
#[must_use]
pub fn utc_offset(moment: i64) -> i64 {
    // Of the width that the C library has for it; its name is about to change its meaning under musl.
    let moment = i64::into(moment);
    // SAFETY: tm consists of integers and a pointer, for which zeros are valid.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right type, and only `local` is written.
    let filled = unsafe { libc::localtime_r(&raw const moment, &raw mut local) };
    if filled.is_null() { 0 } else { local.tm_gmtoff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_zone_is_more_than_fifteen_hours_off() {
        assert!(utc_offset(1_700_000_000).abs() <= 15 * 3600);
    }
}
