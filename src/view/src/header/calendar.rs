//! Dates from seconds since 1970.

/// Seconds of a day.
const DAY: i64 = 86_400;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// Counted from 1970-01-01, a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// A date of the Gregorian calendar.
struct Date {
    year: i64,
    /// 1 to 12.
    month: i64,
    /// 1 to 31.
    day: i64,
}

/// The date of a day counted from 1 January 1970.
///
/// Years are counted from March to February, so that the leap day is the last day of a year. An era is 400 such years; all eras
/// are equally long. From March on, the lengths of months repeat: 31, 30, 31, 30, 31 days, 153 together; so month `m`, with 0 for
/// March, begins after `(153 * m + 2) / 5` days.
fn date(days: i64) -> Date {
    const DAYS_IN_ERA: i64 = 146_097;
    /// Days from 1 March 0000 to 1 January 1970.
    const DAYS_BEFORE_1970: i64 = 719_468;
    let days = days.saturating_add(DAYS_BEFORE_1970);
    let (era, day_of_era) = (days.div_euclid(DAYS_IN_ERA), days.rem_euclid(DAYS_IN_ERA));
    // 1,460 days are 4 years without their leap day, 36,524 are 100 years, 146,096 are 400 years without their last leap day.
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let month = (months_since_march + 2) % 12 + 1;
    Date {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month,
        day: day_of_year - (153 * months_since_march + 2) / 5 + 1,
    }
}

/// `07:53:31`, from seconds since 1970 plus the offset of the time zone.
#[must_use]
pub fn time_of_day(seconds: i64) -> String {
    let second = seconds.rem_euclid(DAY);
    format!(
        "{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn name<'a>(names: &[&'a str], index: i64) -> &'a str {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    names.get(index).copied().unwrap_or("???")
}

/// `Sat Nov 21 07:53:31 2026`, as ctime(3) without the newline, from seconds since 1970 plus the offset of the time zone.
pub(crate) fn ctime(seconds: i64) -> String {
    let days = seconds.div_euclid(DAY);
    let date = date(days);
    format!(
        "{} {} {:2} {} {}",
        name(&WEEKDAYS, days.rem_euclid(7)),
        name(&MONTHS, date.month - 1),
        date.day,
        time_of_day(seconds),
        date.year
    )
}

/// `2026-11-21 07:53:31`, from seconds since 1970 plus the offset of the time zone.
pub fn iso(seconds: i64) -> String {
    let date = date(seconds.div_euclid(DAY));
    format!(
        "{:04}-{:02}-{:02} {}",
        date.year,
        date.month,
        date.day,
        time_of_day(seconds)
    )
}

/// `20261121-075331`, for file names, from seconds since 1970 plus the offset of the time zone.
pub fn stamp(seconds: i64) -> String {
    iso(seconds).replace(['-', ':'], "").replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_has_only_digits_and_a_hyphen() {
        assert_eq!(stamp(1_000_000_000), "20010909-014640");
    }

    #[test]
    fn known_times_are_formatted() {
        assert_eq!(ctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(ctime(-1), "Wed Dec 31 23:59:59 1969");
        assert_eq!(ctime(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(iso(1_795_248_073), "2026-11-21 08:01:13");
        assert_eq!(iso(4_107_542_399), "2100-02-28 23:59:59");
        assert_eq!(iso(4_107_542_400), "2100-03-01 00:00:00");
    }

    #[test]
    fn days_follow_each_other() {
        // The years 1422 to 2517: more than two eras.
        let mut before = date(-200_000);
        for day in -199_999..200_000 {
            let next = date(day);
            let same_month = (next.year, next.month) == (before.year, before.month);
            assert!(if same_month {
                next.day == before.day + 1
            } else {
                next.day == 1
            });
            before = next;
        }
    }
}
