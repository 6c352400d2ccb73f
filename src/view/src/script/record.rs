//! Records other than samples as text: one line each, except for namespaces and code changes.

use rperf_lines::SymbolOffset;
use rperf_wire::{
    Cgroup, Misc, Mmap, Mmap2, MmapId, Namespaces, Record, RecordKind, Switch, Task, TextPoke,
};

/// Names of the namespaces, in the order of `NET_NS_INDEX` and the following constants in linux/perf_event.h.
const NAMESPACES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];
/// Namespaces per line.
const NAMESPACES_PER_LINE: usize = 4;
/// `PROT_READ`, `PROT_WRITE`, `PROT_EXEC` of mmap(2).
const PROTECTION: [(u32, u8); 3] = [(1, b'r'), (2, b'w'), (4, b'x')];
/// Changed bytes per line.
const BYTES_PER_LINE: usize = 16;
/// `MAP_SHARED` of mmap(2).
const SHARED: u32 = 1;

/// Appends a record as text, such as `PERF_RECORD_COMM exec: calc:873/873`, and a newline. Types without a text here have only
/// their name, or their number if the name is unknown. For code changes, see [`write_text_poke`].
pub fn write_record(record: &Record<'_>, kind: RecordKind, misc: Misc, out: &mut Vec<u8>) {
    out.extend_from_slice(b"PERF_RECORD_");
    match kind.name() {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => put(out, &kind.0.to_string()),
    }
    match record {
        Record::Comm(comm) => {
            let exec = misc.contains(Misc::COMM_EXEC);
            put(out, if exec { " exec: " } else { ": " });
            out.extend_from_slice(comm.comm);
            put(out, &format!(":{}/{}", signed(comm.pid), signed(comm.tid)));
        }
        Record::Fork(fields) | Record::Exit(fields) => put(out, &task(fields)),
        Record::Mmap(mapped) => {
            let data = misc.contains(Misc::MMAP_DATA);
            let access = if data { "r" } else { "x" };
            put(out, &format!(" {}]: {access} ", mapped_range(mapped)));
            out.extend_from_slice(mapped.filename);
        }
        Record::Mmap2(mapped) => mmap2(mapped, out),
        Record::Namespaces(fields) => put(out, &namespaces(fields)),
        Record::Cgroup(Cgroup { id, path }) => {
            put(out, &format!(" cgroup: {id} "));
            out.extend_from_slice(path);
        }
        Record::Switch(fields) => put(out, &switch(fields, misc)),
        Record::Lost(lost) => put(out, &format!(" lost {}", lost.lost)),
        Record::Ksymbol(symbol) => {
            let (addr, len, kind, flags) =
                (symbol.addr, symbol.len, symbol.ksym_type, symbol.flags);
            put(
                out,
                &format!(" addr {addr:x} len {len} type {kind} flags 0x{flags:x} name "),
            );
            out.extend_from_slice(symbol.name);
        }
        Record::BpfEvent(event) => {
            let (kind, flags, id) = (event.event_type, event.flags, event.id);
            put(out, &format!(" type {kind}, flags {flags}, id {id}"));
        }
        _ => {}
    }
    out.push(b'\n');
}

/// Appends a change of kernel code in the function `symbol`: the line `PERF_RECORD_TEXT_POKE ffffffff81000000 start+0x0 old len 5
/// new len 5`, then lines of the old and of the new bytes.
pub fn write_text_poke(poke: &TextPoke<'_>, symbol: Option<&SymbolOffset<'_>>, out: &mut Vec<u8>) {
    put(out, "PERF_RECORD_TEXT_POKE");
    put(out, &text_poke(poke, symbol));
}

/// Returns the text of [`write_text_poke`] without the record's name.
pub(crate) fn text_poke(poke: &TextPoke<'_>, symbol: Option<&SymbolOffset<'_>>) -> String {
    let symbol = symbol.map(|symbol| format!("{}+{:#x}", symbol.name, symbol.offset));
    let (address, old, new) = (poke.addr, poke.old.len(), poke.new.len());
    let symbol = symbol.unwrap_or_default();
    let mut text = format!(" {address:x} {symbol} old len {old} new len {new}\n");
    for (name, bytes) in [("Old", poke.old), ("New", poke.new)] {
        for bytes in bytes.chunks(BYTES_PER_LINE) {
            let hex: String = bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
            text += &format!("            {name} bytes:{hex}\n");
        }
    }
    text
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Returns an id as the kernel's `pid_t`, which is signed.
fn signed(id: u32) -> i32 {
    id.cast_signed()
}

fn task(fields: &Task) -> String {
    let [pid, tid, ppid, ptid] = [fields.pid, fields.tid, fields.ppid, fields.ptid].map(signed);
    format!("({pid}:{tid}):({ppid}:{ptid})")
}

/// Formats like `%#x` of C: 0 has no prefix.
fn hexadecimal(value: u64) -> String {
    match value {
        0 => "0".to_owned(),
        _ => format!("{value:#x}"),
    }
}

/// Returns `pid/tid: [start(length) @ offset`; the caller appends the closing bracket.
fn mapped_range(mapped: &Mmap<'_>) -> String {
    let [start, length, offset] = [mapped.start, mapped.len, mapped.pgoff].map(hexadecimal);
    let (pid, tid) = (mapped.pid, signed(mapped.tid));
    format!("{pid}/{tid}: [{start}({length}) @ {offset}")
}

fn mmap2(mapped: &Mmap2<'_>, out: &mut Vec<u8>) {
    put(out, &format!(" {} ", mapped_range(&mapped.mmap)));
    match &mapped.id {
        MmapId::Inode {
            major,
            minor,
            inode,
            generation,
        } => put(
            out,
            &format!("{major:02x}:{minor:02x} {inode} {generation}"),
        ),
        MmapId::BuildId { size, bytes } => {
            let bytes = bytes.get(..usize::from(*size)).unwrap_or(bytes);
            put(out, "<");
            for byte in bytes {
                put(out, &format!("{byte:02x}"));
            }
            put(out, ">");
        }
    }
    put(out, "]: ");
    out.extend(PROTECTION.map(|(bit, letter)| if mapped.prot & bit == 0 { b'-' } else { letter }));
    out.push(if mapped.flags & SHARED == 0 {
        b'p'
    } else {
        b's'
    });
    out.push(b' ');
    out.extend_from_slice(mapped.mmap.filename);
}

fn namespaces(fields: &Namespaces) -> String {
    let (pid, tid, count) = (signed(fields.pid), signed(fields.tid), fields.links.len());
    let mut text = format!(" {pid}/{tid} - nr_namespaces: {count}\n\t\t[");
    for (index, link) in fields.links.iter().enumerate() {
        if index > 0 {
            text.push_str(if index % NAMESPACES_PER_LINE == 0 {
                ", \n\t\t "
            } else {
                ", "
            });
        }
        let name = NAMESPACES.get(index).unwrap_or(&"UNKNOWN");
        let inode = hexadecimal(link.inode);
        text.push_str(&format!("{index}/{name}: {}/{inode}", link.dev));
    }
    text.push(']');
    text
}

fn switch(fields: &Switch, misc: Misc) -> String {
    let is_out = misc.contains(Misc::SWITCH_OUT);
    let how = match (is_out, misc.contains(Misc::SWITCH_OUT_PREEMPT)) {
        (false, _) => "IN",
        (true, false) => "OUT",
        (true, true) => "OUT preempt",
    };
    match fields.next_prev {
        None => format!(" {how:11}"),
        Some((pid, tid)) => {
            let other = if is_out { "next" } else { "prev" };
            format!(
                " {how:11}  {other} pid/tid: {:5}/{:<5}",
                signed(pid),
                signed(tid)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use rperf_wire::{BpfEvent, Comm, Ksymbol, Namespace};

    use super::*;

    fn text(record: &Record<'_>, kind: RecordKind, misc: u16) -> String {
        let mut out = Vec::new();
        write_record(record, kind, Misc(misc), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tasks_and_switches() {
        let comm = Record::Comm(Comm {
            pid: 873,
            tid: 874,
            comm: b"calc",
        });
        assert_eq!(
            text(&comm, RecordKind::COMM, 0),
            "PERF_RECORD_COMM: calc:873/874\n"
        );
        assert_eq!(
            text(&comm, RecordKind::COMM, Misc::COMM_EXEC.0),
            "PERF_RECORD_COMM exec: calc:873/874\n"
        );
        let fork = Record::Fork(Task {
            pid: 1,
            ppid: 2,
            tid: 3,
            ptid: u32::MAX,
            time: 9,
        });
        assert_eq!(
            text(&fork, RecordKind::FORK, 0),
            "PERF_RECORD_FORK(1:3):(2:-1)\n"
        );
        let switch = Record::Switch(Switch { next_prev: None });
        let preempted = Misc::SWITCH_OUT.0 | Misc::SWITCH_OUT_PREEMPT.0;
        assert_eq!(
            text(&switch, RecordKind::SWITCH, preempted),
            "PERF_RECORD_SWITCH OUT preempt\n"
        );
        let switch = Record::Switch(Switch {
            next_prev: Some((12, 13)),
        });
        assert_eq!(
            text(&switch, RecordKind::SWITCH_CPU_WIDE, 0),
            "PERF_RECORD_SWITCH_CPU_WIDE IN           prev pid/tid:    12/13   \n"
        );
    }

    #[test]
    fn mappings() {
        let mmap = Mmap {
            pid: -1,
            tid: 0,
            start: 0xffff,
            len: 0x10,
            pgoff: 0,
            filename: b"[kernel.kallsyms]_text",
        };
        assert_eq!(
            text(&Record::Mmap(mmap), RecordKind::MMAP, Misc::KERNEL.0),
            "PERF_RECORD_MMAP -1/0: [0xffff(0x10) @ 0]: x [kernel.kallsyms]_text\n"
        );
        let inode = MmapId::Inode {
            major: 0xfe,
            minor: 0,
            inode: 77,
            generation: 5,
        };
        let mut bytes = [0; 20];
        bytes[0] = 0xab;
        for (id, shown) in [
            (inode, "fe:00 77 5"),
            (MmapId::BuildId { size: 2, bytes }, "<ab00>"),
        ] {
            let mapped = Mmap2 {
                mmap,
                id,
                prot: 5,
                flags: 2,
            };
            assert_eq!(
                text(&Record::Mmap2(mapped), RecordKind::MMAP2, Misc::USER.0),
                format!(
                    "PERF_RECORD_MMAP2 -1/0: [0xffff(0x10) @ 0 {shown}]: r-xp [kernel.kallsyms]_text\n"
                )
            );
        }
    }

    #[test]
    fn namespaces_have_four_in_a_line() {
        let links = vec![Namespace { dev: 4, inode: 0 }; 8];
        let record = Record::Namespaces(Namespaces {
            pid: 1,
            tid: 2,
            links,
        });
        assert_eq!(
            text(&record, RecordKind::NAMESPACES, 0),
            "PERF_RECORD_NAMESPACES 1/2 - nr_namespaces: 8\n\
             \t\t[0/net: 4/0, 1/uts: 4/0, 2/ipc: 4/0, 3/pid: 4/0, \n\
             \t\t 4/user: 4/0, 5/mnt: 4/0, 6/cgroup: 4/0, 7/UNKNOWN: 4/0]\n"
        );
    }

    /// Also a record of which only the name is shown.
    #[test]
    fn kernel_symbols_and_programs() {
        let symbol = Record::Ksymbol(Ksymbol {
            addr: 0xffff_0010,
            len: 44,
            ksym_type: 1,
            flags: 0,
            name: b"bpf_prog_6deef7357e7b4530",
        });
        assert_eq!(
            text(&symbol, RecordKind::KSYMBOL, 0),
            "PERF_RECORD_KSYMBOL addr ffff0010 len 44 type 1 flags 0x0 name bpf_prog_6deef7357e7b4530\n"
        );
        let program = Record::BpfEvent(BpfEvent {
            event_type: 1,
            flags: 0,
            id: 9,
            tag: [0; 8],
        });
        assert_eq!(
            text(&program, RecordKind::BPF_EVENT, 0),
            "PERF_RECORD_BPF_EVENT type 1, flags 0, id 9\n"
        );
        assert_eq!(
            text(
                &Record::Other(RecordKind::FINISHED_ROUND),
                RecordKind::FINISHED_ROUND,
                0
            ),
            "PERF_RECORD_FINISHED_ROUND\n"
        );
    }
}
