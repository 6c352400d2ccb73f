//! Results as JUnit XML.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use super::environment::TestEnding;
use super::runner::FinishedTest;
use crate::cli::error::CliError;

/// Writes the results of `tests` to the file `path`.
pub(super) fn write(path: &Path, tests: &[FinishedTest]) -> Result<(), CliError> {
    let text = document(tests);
    let written = rperf_safefs::write_atomic(path, |file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        CliError::from(
            anyhow::Error::new(error).context(format!("failed to write {}", path.display())),
        )
    })
}

fn document(tests: &[FinishedTest]) -> String {
    let count = |is_counted: fn(&TestEnding) -> bool| {
        let endings = tests.iter().filter_map(|test| test.ending.as_ref());
        endings.filter(|ending| is_counted(ending)).count()
    };
    let failures = count(|ending| matches!(ending, TestEnding::Failed(_)));
    let skipped = count(|ending| matches!(ending, TestEnding::Skip(_)));
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<testsuites>\n  <testsuite name=\"rperf\" tests=\"{}\" failures=\"{failures}\" \
         skipped=\"{skipped}\">\n",
        tests.len()
    );
    for test in tests {
        let result = match &test.ending {
            // Passed.
            None => String::new(),
            Some(TestEnding::Skip(reason)) => {
                format!("      <skipped message=\"{}\"/>\n", escaped(reason))
            }
            Some(TestEnding::Failed(reason)) => {
                let details = escaped(&test.details);
                format!(
                    "      <failure message=\"{}\">{details}</failure>\n",
                    escaped(reason)
                )
            }
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "    <testcase classname=\"rperf\" name=\"{}\" time=\"{:.3}\">\n{result}    </testcase>",
            escaped(test.name),
            test.time.as_secs_f64()
        );
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// Escapes text for attributes and elements. Control characters other than newline and tab become question marks, and
/// so do U+FFFE and U+FFFF, which XML does not allow.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            letter if letter.is_control() => out.push('?'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_are_counted_and_names_escaped() {
        let test = |ending| FinishedTest {
            name: "a & b",
            number: 1,
            ending,
            details: "x < \x1b\n".to_owned(),
            time: Duration::from_millis(1500),
        };
        let tests = [
            test(None),
            test(Some(TestEnding::Skip("no \"PMU\"".to_owned()))),
            test(Some(TestEnding::Failed("broken".to_owned()))),
        ];
        let text = document(&tests);
        for part in [
            "tests=\"3\" failures=\"1\" skipped=\"1\">",
            "name=\"a &amp; b\" time=\"1.500\">\n    </testcase>",
            "<skipped message=\"no &quot;PMU&quot;\"/>",
            "<failure message=\"broken\">x &lt; ?\n</failure>",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
