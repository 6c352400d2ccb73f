//! Counts and metrics as text.

use rperf_count::{CountedEvent, MetricValue, NumberFormat};

/// Returns the number of decimals of an event's counts: two if its scale is not an integer, otherwise none.
pub(super) fn decimals(event: &CountedEvent) -> usize {
    if event.scale.floor() == event.scale {
        0
    } else {
        2
    }
}

/// Returns a number with a separator between groups of three integer digits.
pub(super) fn grouped(number: &str, separator: &str) -> String {
    let end = number.find('.').unwrap_or(number.len());
    let (integer, rest) = number.split_at(end);
    if separator.is_empty() {
        return number.to_owned();
    }
    let digits = integer.trim_start_matches('-').len();
    let mut text = String::with_capacity(number.len() + digits / 3);
    let sign = integer.len() - digits;
    for (index, character) in integer.chars().enumerate() {
        let digits_left = integer.len() - index;
        if index > sign && digits_left.is_multiple_of(3) {
            text.push_str(separator);
        }
        text.push(character);
    }
    text.push_str(rest);
    text
}

/// Returns a metric's value, padded for the table, and with a percent sign if it is a percentage.
pub(super) fn padded(metric: &MetricValue) -> String {
    let value = metric.value;
    match metric.format {
        NumberFormat::Rate => format!("{value:8.3}"),
        // The blank is in the column of the percent sign.
        NumberFormat::Ratio => format!("{value:7.2} "),
        NumberFormat::Percent => format!("{value:7.2}%"),
        NumberFormat::FinePercent => format!("{value:8.3} %"),
        NumberFormat::Formula => format!("{value:8.2}"),
        NumberFormat::Scaled => format!("{value:8.1}"),
    }
}

/// Returns a metric's value without padding or percent sign.
pub(super) fn plain_number(metric: &MetricValue) -> String {
    let value = metric.value;
    match metric.format {
        NumberFormat::Rate | NumberFormat::FinePercent => format!("{value:.3}"),
        NumberFormat::Ratio | NumberFormat::Percent | NumberFormat::Formula => {
            format!("{value:.2}")
        }
        NumberFormat::Scaled => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_are_grouped_before_the_point() {
        let texts = ["0", "999", "1000", "1234567.25", "-123456", "-1234"];
        let grouped = texts.map(|text| grouped(text, ","));
        assert_eq!(
            grouped,
            ["0", "999", "1,000", "1,234,567.25", "-123,456", "-1,234"]
        );
    }
}
