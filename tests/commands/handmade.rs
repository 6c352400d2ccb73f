//! Files of one event, made record by record: every kind that no machine records on demand.

use rperf_testkit::Bytes;

/// The id that the event's records carry.
pub(super) const ID: u64 = 55;
/// `sample_id_all`.
const SAMPLE_ID_ALL: u64 = 1 << 18;
const ATTR: usize = 128;

/// The event's attr, as far as it shapes its samples.
#[derive(Debug, Clone, Default)]
pub(super) struct Attr {
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) branch: u64,
    pub(super) regs_user: u64,
    pub(super) regs_intr: u64,
    /// Records other than samples have no trailer.
    pub(super) bare: bool,
}

/// A record with its header.
pub(super) fn record(kind: u32, misc: u16, body: Bytes) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("a short record");
    let header = Bytes::new().u32(kind).u16(misc).u16(size);
    header.raw(body.done()).done()
}

/// A file of cpu-clock with a period of 1000, made on a machine of this kind.
pub(super) fn file(attr: &Attr, machine: &str, records: &[u8]) -> Vec<u8> {
    let flags = if attr.bare { 0 } else { SAMPLE_ID_ALL };
    let encoded = Bytes::new().u32(1).u32(128).u64(0).u64(1000);
    let encoded = encoded.u64(attr.sample_type).u64(attr.read_format);
    let encoded = encoded.u64(flags).raw([0; 24]).u64(attr.branch);
    let encoded = encoded.u64(attr.regs_user).u64(0).u64(attr.regs_intr);
    let encoded = encoded.raw([0; ATTR - 104]);
    let (attrs, ids) = (104, 104 + ATTR as u64 + 16);
    let data = ids + 8;
    let size = records.len() as u64;
    const ARCH: u64 = 1 << 6;
    let file = Bytes::new().raw("PERFILE2").u64(104).u64(ATTR as u64 + 16);
    let file = file.u64(attrs).u64(ATTR as u64 + 16).u64(data).u64(size);
    let file = file.raw([0; 16]).u64(ARCH).raw([0; 24]);
    let file = file
        .raw(encoded.done())
        .u64(ids)
        .u64(8)
        .u64(ID)
        .raw(records);
    let name = Bytes::new().u32(64).raw(machine);
    let padded = [name.done(), vec![0; 64 - machine.len()]].concat();
    let file = file.u64(data + size + 16).u64(padded.len() as u64);
    file.raw(padded).done()
}

/// The memory of a kernel as `/proc/kcore` shows it: these bytes at these addresses.
pub(super) fn kcore(segments: &[(u64, Vec<u8>)]) -> Vec<u8> {
    const PAGE: usize = 0x1000;
    let count = u16::try_from(segments.len()).expect("a few segments");
    let header = Bytes::new().raw(b"\x7fELF\x02\x01\x01").raw([0; 9]);
    let header = header.u16(4).u16(62).u32(1).u64(0).u64(64).u64(0).u32(0);
    let mut header = header.u16(64).u16(56).u16(count).u16(0).u16(0).u16(0);
    let mut content = Vec::new();
    for (address, bytes) in segments {
        let (offset, size) = ((PAGE + content.len()) as u64, bytes.len() as u64);
        header = header.u32(1).u32(7).u64(offset).u64(*address).u64(0);
        header = header.u64(size).u64(size).u64(PAGE as u64);
        content.extend(bytes);
        content.resize(content.len().next_multiple_of(PAGE), 0);
    }
    let mut file = header.done();
    file.resize(PAGE, 0);
    file.extend(content);
    file
}
