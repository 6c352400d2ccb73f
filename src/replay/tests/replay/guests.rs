//! Host and guests use the same addresses and process ids without being mixed up. In records of guest modes, the pid is that of
//! the virtual machine's process on the host, and identifies the guest.

use rperf_replay::{Machine, Order, WorldBuilder};
use rperf_wire::{CpuMode, Encoder, Endian, Misc, Mmap, RawRecord, Record};

const ENDIAN: Endian = Endian::Little;
const START: u64 = 0x1000;

/// Adds a mapping of one page at `START` to the world (the processes and mappings by time). All records have the same time and
/// are ordered by `position`.
fn push_mmap(builder: &mut WorldBuilder, position: u64, mode: CpuMode, pid: i32, name: &str) {
    let record = Record::Mmap(Mmap {
        pid,
        tid: 0,
        start: START,
        len: 0x1000,
        pgoff: 0,
        filename: name.as_bytes(),
    });
    let mut body = Vec::new();
    record.encode_body(&mut Encoder::new(&mut body, ENDIAN));
    let (kind, _) = record.kind_and_misc();
    let raw = RawRecord {
        kind,
        misc: Misc(mode as u16),
        body: &body,
    };
    let time = 1;
    let order = Order { time, position };
    builder.push(order, &raw).expect("a whole record");
}

#[test]
fn machines_do_not_share_mappings() {
    let mut builder = WorldBuilder::new(ENDIAN);
    for (position, mode, pid, name) in [
        (1, CpuMode::Kernel, -1, "[kernel.kallsyms]_text"),
        (2, CpuMode::User, 100, "/bin/host"),
        (3, CpuMode::GuestKernel, 100, "[guest.kernel.kallsyms.100]"),
        (4, CpuMode::GuestUser, 100, "/bin/guest"),
        (5, CpuMode::GuestKernel, 200, "[guest.kernel.kallsyms.200]"),
    ] {
        push_mmap(&mut builder, position, mode, pid, name);
    }
    let world = builder.finish();
    let name = |machine, mode, pid| {
        let mapping = world.lookup(machine, mode, pid, Order::MAX, START + 8)?;
        Some(world.dso(world.mapping(mapping).dso).name.as_str())
    };
    let (one, two) = (Machine::Guest(100), Machine::Guest(200));
    let names = [
        name(Machine::Host, CpuMode::Kernel, 100),
        name(Machine::Host, CpuMode::User, 100),
        name(one, CpuMode::GuestKernel, 100),
        name(one, CpuMode::GuestUser, 100),
        name(two, CpuMode::GuestKernel, 200),
        name(two, CpuMode::GuestUser, 200),
        name(Machine::Host, CpuMode::User, 200),
    ];
    let expected = [
        // Without `_text`, the name of the reference symbol.
        Some("[kernel.kallsyms]"),
        Some("/bin/host"),
        Some("[guest.kernel.kallsyms.100]"),
        Some("/bin/guest"),
        Some("[guest.kernel.kallsyms.200]"),
        None,
        None,
    ];
    assert_eq!(names, expected);
}
