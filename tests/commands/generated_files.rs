//! Generated perf.data files of one event, with records that a test cannot make the kernel write, and a generated `/proc/kcore`.

pub(super) use rperf_testkit::record;
use rperf_testkit::{Bytes, FileAttr, PerfFile};

/// The event's id in its samples and in the trailers of other records.
pub(super) const ID: u64 = 55;

/// The event's attr, as far as it determines the format of records.
#[derive(Debug, Clone, Default)]
pub(super) struct Attr {
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    /// `branch_sample_type`.
    pub(super) branches: u64,
    pub(super) regs_user: u64,
    pub(super) regs_intr: u64,
    /// Whether `sample_id_all` is cleared: records other than samples have no trailer.
    pub(super) no_sample_id_all: bool,
}

/// A recording of cpu-clock with a period of 1000 ns, from the architecture `machine`.
pub(super) fn file(attr: &Attr, machine: &str, records: &[u8]) -> Vec<u8> {
    let encoded = FileAttr {
        kind: 1,
        period: 1000,
        sample_type: attr.sample_type,
        read_format: attr.read_format,
        flags: if attr.no_sample_id_all {
            0
        } else {
            FileAttr::SAMPLE_ID_ALL
        },
        branches: attr.branches,
        regs_user: attr.regs_user,
        regs_intr: attr.regs_intr,
        ..FileAttr::default()
    };
    let mut file = PerfFile::new();
    file.event(&encoded, &[ID])
        .records(records)
        .machine(machine);
    file.finish()
}

/// Kernel memory in the format of `/proc/kcore`: these bytes at these addresses.
pub(super) fn kcore(segments: &[(u64, Vec<u8>)]) -> Vec<u8> {
    const PAGE: usize = 0x1000;
    let count = u16::try_from(segments.len()).expect("a few segments");
    // Elf64_Ehdr of ET_CORE and EM_X86_64; the program headers follow it.
    let header = Bytes::new().raw(b"\x7fELF\x02\x01\x01").raw([0; 9]);
    let header = header.u16(4).u16(62).u32(1).u64(0).u64(64).u64(0).u32(0);
    let mut header = header.u16(64).u16(56).u16(count).u16(0).u16(0).u16(0);
    let mut content = Vec::new();
    for (address, bytes) in segments {
        let (offset, size) = ((PAGE + content.len()) as u64, bytes.len() as u64);
        // Elf64_Phdr of PT_LOAD.
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
