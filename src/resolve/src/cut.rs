//! Marks at the outer ends of stacks that lack frames: functions of no object, called after what went missing.

use std::path::PathBuf;

use rperf_replay::DsoId;
use rperf_symbol::perf_map;
use rperf_unwind::Cause;
use rperf_wire::PERF_CONTEXT_MAX;

use crate::frame::{Frame, Level, SymbolId};
use crate::object::Object;

/// The object of the marks, which is none of the World's.
pub(crate) const MARKS: DsoId = DsoId(u32::MAX);
/// The first of the addresses that stand for causes: right below the markers of callchains, where no code is.
const FIRST: u64 = PERF_CONTEXT_MAX - 0x100;

/// The address that stands in a callchain for frames that are missing.
pub(crate) fn address(cause: Cause) -> u64 {
    let number = Cause::ALL.iter().position(|other| *other == cause);
    FIRST + number.unwrap_or_default() as u64
}

/// The marks as functions of an object.
pub(crate) fn object() -> Object {
    let lines = Cause::ALL.map(|cause| format!("{:x} 1 [stack cut {cause}]\n", address(cause)));
    let table = perf_map::parse(lines.concat().as_bytes()).table;
    Object::new(table, PathBuf::new(), Vec::new())
}

/// The frame at `ip` if it is one of the `marks`.
pub(crate) fn frame(marks: &Object, ip: u64) -> Option<Frame> {
    let index = marks.find(ip, None)?;
    let symbol = SymbolId { dso: MARKS, index };
    Some(Frame {
        symbol: Some(symbol),
        ..Frame::unknown(ip, Level::User)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_mark() {
        let marks = object();
        for cause in Cause::ALL {
            let frame = frame(&marks, address(cause)).unwrap();
            let name = marks.name(frame.symbol.unwrap().index);
            assert_eq!(name, format!("[stack cut {cause}]"));
            assert!(address(cause) < PERF_CONTEXT_MAX);
        }
        assert_eq!(frame(&marks, FIRST - 1), None);
        assert_eq!(frame(&marks, FIRST + Cause::ALL.len() as u64), None);
    }
}
