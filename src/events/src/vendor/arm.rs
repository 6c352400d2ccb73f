//! The layout of Arm's tables (`ARM-software/data`): one file per processor.

use super::row::Row;
use super::{TableFinding, VendorEvent};

/// Parses `MIDR_EL1` in hexadecimal, and packs its implementer and part number as these files do: `0x41d0c` is implementer
/// 0x41, part 0xd0c. `None` for the CPUID strings of other architectures.
pub(super) fn processor(cpuid: &str) -> Option<u64> {
    let midr = u64::from_str_radix(cpuid.strip_prefix("0x")?, 16).ok()?;
    let implementer = (midr >> 24) & 0xff;
    let part = (midr >> 4) & 0xfff;
    Some(implementer << 12 | part)
}

/// Whether a file describes `processor`, a result of [`processor`]. `file_cpuid` is the value of the file's member `cpuid`.
pub(super) fn is_of(file_cpuid: &str, processor: u64) -> bool {
    let digits = file_cpuid.trim().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).is_ok_and(|number| number == processor)
}

/// Returns the events of `rows`, the content of the file `path`; `topic` is their heading in listings. Rows with a name but
/// without a usable `code` are added to `findings`; rows without a name are skipped.
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
            Err(bad) => {
                let name = Some(name.to_owned());
                findings.push(TableFinding::new(path, name, bad.to_string()));
            }
        }
    }
    events
}
