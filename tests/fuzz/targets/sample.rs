//! Samples of any attr: a decoded sample is unchanged by encoding and decoding it again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_wire::{Attr, Encoder, Endian, SampleLayout};

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (big, size_beyond_ver0, bytes) = input;
    let endian = if big { Endian::Big } else { Endian::Little };
    let attr_size = Attr::SIZE_VER0 + usize::from(size_beyond_ver0);
    let (attr, body) = bytes.split_at(bytes.len().min(attr_size));
    let Ok(attr) = Attr::decode(attr, endian) else {
        return;
    };
    assert_eq!(
        Attr::decode(&attr.encode(endian), endian).as_ref(),
        Ok(&attr)
    );
    let layout = SampleLayout::new(&attr);
    let Ok(sample) = layout.decode(body, endian) else {
        return;
    };
    drop(sample.read.map(|read| read.values()));
    if let Some(stack) = sample.branch_stack {
        assert_eq!(stack.iter().count(), stack.len());
    }
    let mut encoded = Vec::new();
    layout.encode(&sample, &mut Encoder::new(&mut encoded, endian));
    assert_eq!(layout.decode(&encoded, endian), Ok(sample));
});
