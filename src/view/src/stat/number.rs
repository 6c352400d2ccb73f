//! Numbers of counts and metrics.

use rperf_count::{Event, Form, Metric};

/// Decimals of an event's counts: none, unless they are parts of its unit.
pub(super) fn decimals(event: &Event) -> usize {
    if event.scale.floor() == event.scale {
        0
    } else {
        2
    }
}

/// A number with something between groups of three digits before the point.
pub(super) fn grouped(number: &str, separator: &str) -> String {
    let end = number.find('.').unwrap_or(number.len());
    let (whole, rest) = number.split_at(end);
    if separator.is_empty() {
        return number.to_owned();
    }
    let digits = whole.trim_start_matches('-').len();
    let mut text = String::with_capacity(number.len() + digits / 3);
    let sign = whole.len() - digits;
    for (index, character) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if index > sign && left.is_multiple_of(3) {
            text.push_str(separator);
        }
        text.push(character);
    }
    text.push_str(rest);
    text
}

/// A metric's number as the table pads it.
pub(super) fn padded(metric: &Metric) -> String {
    let value = metric.value;
    match metric.form {
        Form::Rate => format!("{value:8.3}"),
        Form::Ratio => format!("{value:7.2} "),
        Form::Percent => format!("{value:7.2}%"),
        Form::FinePercent => format!("{value:8.3} %"),
        Form::Formula => format!("{value:8.2}"),
        Form::Scaled => format!("{value:8.1}"),
    }
}

/// A metric's number alone.
pub(super) fn bare(metric: &Metric) -> String {
    let value = metric.value;
    match metric.form {
        Form::Rate | Form::FinePercent => format!("{value:.3}"),
        Form::Ratio | Form::Percent | Form::Formula => format!("{value:.2}"),
        Form::Scaled => format!("{value:.1}"),
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
