//! The layout of Arm's tables (`ARM-software/data`): one file per processor.

use super::row::{BadValue, Row};
use super::{TableFinding, VendorEvent};

/// Parses `MIDR_EL1` in hexadecimal and returns its implementer (bits 12 to 19) and part number (bits 0 to 11), the
/// notation of these files (`0x41d0c`). `None` for the CPUID strings of other architectures.
pub(super) fn processor(cpuid: &str) -> Option<u64> {
    let midr = u64::from_str_radix(cpuid.strip_prefix("0x")?, 16).ok()?;
    let implementer = (midr >> 24) & 0xff;
    let part = (midr >> 4) & 0xfff;
    Some(implementer << 12 | part)
}

/// Whether a file with this member `cpuid` describes `processor`, a result of [`processor`].
pub(super) fn is_of(cpuid: &str, processor: u64) -> bool {
    let digits = cpuid.trim().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).is_ok_and(|number| number == processor)
}

/// Returns the events of the file `path`, which consists of `rows`.
pub(super) fn events(
    path: &str,
    rows: &[Row],
    topic: &str,
    findings: &mut Vec<TableFinding>,
) -> Vec<VendorEvent> {
    let mut events = Vec::new();
    for row in rows {
        let Some(name) = row.text("name") else {
            continue;
        };
        // These events are reserved for the driver.
        if row.is_set("for_driver") {
            continue;
        }
        match row.number("code") {
            Ok(Some(code)) => {
                let name = name.to_lowercase();
                let brief = row.text("description").map(str::to_owned);
                events.push(VendorEvent {
                    brief,
                    ..VendorEvent::new(name, format!("event={code:#x}"), topic)
                });
            }
            Ok(None) => findings.push(TableFinding::new(path, Some(name.to_owned()), "no `code'")),
            Err(BadValue { key, value }) => findings.push(TableFinding::new(
                path,
                Some(name.to_owned()),
                format!("`{key}' is `{value}', which is not a number"),
            )),
        }
    }
    events
}
