//! Factor and unit of counts and metrics: `ScaleUnit` in tables, `NAME.scale` and `NAME.unit` in sysfs.

/// A factor and a unit, in the formats of tables (`6.4e-05MiB`, `100%`) and sysfs (`NAME.scale`,
/// `NAME.unit`).
#[derive(Debug, Clone, PartialEq)]
pub struct UnitScale {
    /// The factor; 1 if not given.
    pub factor: f64,
    /// The unit, often empty.
    pub unit: String,
}

impl UnitScale {
    /// Parses a factor followed by a unit; both are optional.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let (factor, unit) = leading_number(text).unwrap_or((1.0, text));
        Self {
            factor,
            unit: unit.trim().to_owned(),
        }
    }

    /// Parses the contents of `NAME.scale` and `NAME.unit`; `None` if there is neither a finite factor nor a unit.
    #[must_use]
    pub fn of_files(scale: Option<&str>, unit: Option<&str>) -> Option<Self> {
        let factor = scale.and_then(|text| text.trim().parse::<f64>().ok());
        let factor = factor.filter(|factor| factor.is_finite());
        (factor.is_some() || unit.is_some()).then(|| Self {
            factor: factor.unwrap_or(1.0),
            unit: unit.unwrap_or_default().trim().to_owned(),
        })
    }
}

/// The longest number at the start of a text, and the rest; `None` if the text does not start with a number.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E');
    let max_end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    // The longest prefix that is a number: all of `1e` in `1elements` can be part of a number, but only `1` is one.
    (1..=max_end).rev().find_map(|end| {
        let (number, rest) = text.split_at_checked(end)?;
        Some((number.parse().ok()?, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_and_units() {
        for (text, factor, unit) in [
            ("100%", 100.0, "%"),
            ("6.103515625E-5MiB", 6.103515625e-5, "MiB"),
            ("1MB/s", 1.0, "MB/s"),
            ("1per_instr", 1.0, "per_instr"),
            ("1elements", 1.0, "elements"),
            ("64Bytes", 64.0, "Bytes"),
            ("MiB", 1.0, "MiB"),
            ("", 1.0, ""),
        ] {
            let scale = UnitScale::parse(text);
            assert_eq!(
                (scale.factor, scale.unit.as_str()),
                (factor, unit),
                "{text}"
            );
        }
        let files = |scale, unit| UnitScale::of_files(scale, unit);
        let joules = UnitScale {
            factor: 2.5e-10,
            unit: "Joules".to_owned(),
        };
        assert_eq!(files(Some("2.5e-10\n"), Some("Joules")), Some(joules));
        assert_eq!(files(None, None), None);
        assert_eq!(files(Some("x"), None), None);
    }
}
