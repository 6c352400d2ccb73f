//! Names of the requests of ioctl(2).

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::OnceLock;

/// The known requests: a hexadecimal number and a name in each line.
const REQUESTS: &str = include_str!("../ioctls.txt");

/// Writes the name of a request; if it is unknown, its parts: direction, type, number and size (asm-generic/ioctl.h).
pub(crate) fn write_request(to: &mut dyn Write, request: u64) -> io::Result<()> {
    if let Some(name) = names().get(&request) {
        return to.write_all(name.as_bytes());
    }
    let part = |shift: u32, bits: u32| (request >> shift) & ((1 << bits) - 1);
    // The direction of the data, from the program's view: _IOW writes to the kernel.
    let direction = match part(30, 2) {
        0 => "0",
        1 => "WRITE",
        2 => "READ",
        _ => "READ|WRITE",
    };
    write!(
        to,
        "({direction}, {:#x}, {:#x}, {:#x})",
        part(8, 8),
        part(0, 8),
        part(16, 14)
    )
}

fn names() -> &'static HashMap<u64, &'static str> {
    static NAMES: OnceLock<HashMap<u64, &'static str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let rows = REQUESTS.lines().filter_map(|row| row.split_once(' '));
        let rows = rows.filter_map(|(number, name)| {
            let digits = number.strip_prefix("0x")?;
            Some((u64::from_str_radix(digits, 16).ok()?, name))
        });
        rows.collect()
    })
}
