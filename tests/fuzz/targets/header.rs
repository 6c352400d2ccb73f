//! Header, attrs and feature table: any bytes are parsed or refused, and a rewritten recording has the same content.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use rperf_perfdata::{FeatureId, FileHeader, PerfData};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = FileHeader::decode(bytes) {
        // `encode` writes the 104-byte header of a file, not the 16-byte one of pipe mode.
        if !header.is_pipe() {
            assert_eq!(FileHeader::decode(&header.encode()), Ok(header));
        }
    }
    let Ok(before) = PerfData::parse(bytes) else {
        return;
    };
    // The recording with its Intel BTS trace, if any, converted to samples; the result is not examined.
    before.with_branches().expect("memory");
    let (_, copy) = before.rewrite(Cursor::new(Vec::new())).expect("memory");
    let copy = copy.into_inner();
    // A data size of 0 marks the file of a killed recorder, whose data extend to the end of the file. A copy without records
    // is therefore read with its features as data, and cannot be compared.
    if before.data().is_empty() {
        return;
    }
    let after = PerfData::parse(&copy).expect("a file that was written");
    assert_eq!(before.events(), after.events());
    assert_eq!(before.data(), after.data());
    // The section of AUXTRACE has file offsets, which may change.
    for feature in before
        .header()
        .present()
        .filter(|id| *id != FeatureId::AUXTRACE)
    {
        let (old, new) = (
            before.features().raw(feature),
            after.features().raw(feature),
        );
        assert_eq!(old, new, "{feature}");
    }
});
