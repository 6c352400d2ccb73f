//! Markers at the outer end of truncated stacks: pseudo-functions named after the cause.

use std::path::PathBuf;

use rperf_replay::DsoId;
use rperf_symbol::perf_map;
use rperf_unwind::TruncationCause;
use rperf_wire::PERF_CONTEXT_MAX;

use crate::frame::{Frame, Level, SymbolId};
use crate::object::LoadedObject;

/// The object of the markers, which is not in the World (processes and mappings by time).
pub(crate) const MARKER_DSO: DsoId = DsoId(u32::MAX);
/// The first of the addresses used for causes: just below the context markers of callchains, where
/// there is no code.
const FIRST_CAUSE: u64 = PERF_CONTEXT_MAX - 0x100;

/// The address that represents, in a callchain, the frames missing because of `cause`.
pub(crate) fn marker_address(cause: TruncationCause) -> u64 {
    let number = TruncationCause::ALL
        .iter()
        .position(|other| *other == cause);
    FIRST_CAUSE + number.unwrap_or_default() as u64
}

/// The markers as symbols of an object.
pub(crate) fn marker_object() -> LoadedObject {
    let lines = TruncationCause::ALL
        .map(|cause| format!("{:x} 1 [stack truncated {cause}]\n", marker_address(cause)));
    let table = perf_map::parse(lines.concat().as_bytes()).table;
    LoadedObject::new(table, PathBuf::new(), Vec::new())
}

/// The frame at `ip` if it is the address of one of `markers`.
pub(crate) fn marker_frame(markers: &LoadedObject, ip: u64) -> Option<Frame> {
    let jit_function = None;
    let index = markers.find(ip, jit_function)?;
    let symbol = SymbolId {
        dso: MARKER_DSO,
        index,
    };
    Some(Frame {
        symbol: Some(symbol),
        ..Frame::unknown(ip, Level::User)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_marker() {
        let markers = marker_object();
        for cause in TruncationCause::ALL {
            let frame = marker_frame(&markers, marker_address(cause)).unwrap();
            let name = markers.name(frame.symbol.unwrap().index);
            assert_eq!(name, format!("[stack truncated {cause}]"));
            assert!(marker_address(cause) < PERF_CONTEXT_MAX);
        }
        assert_eq!(marker_frame(&markers, FIRST_CAUSE - 1), None);
        assert_eq!(
            marker_frame(&markers, FIRST_CAUSE + TruncationCause::ALL.len() as u64),
            None
        );
    }
}
