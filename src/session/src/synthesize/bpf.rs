//! BPF programs that are already loaded.

use rperf_perfdata::feature::BpfSymbol;
use rperf_sys::{Proc, bpf_program_ids, page_size};
use rperf_wire::{BpfEvent, Endian, Ksymbol, Misc, Record};

use super::RecordBuffer;
use crate::bpf_programs::{BpfPrograms, LOADED};

/// `PERF_RECORD_KSYMBOL_TYPE_BPF`.
const BPF: u16 = 1;
/// XDP, TRACING, STRUCT_OPS, EXT and LSM (`enum bpf_prog_type`): types of programs that are called through an image, which is
/// generated code (a dispatcher or trampoline) with a symbol.
const WITH_IMAGES: [u32; 5] = [6, 26, 27, 28, 29];

/// Appends KSYMBOL of each function of the loaded programs, and of the images that call programs. With `with_events`, also
/// appends BPF_EVENT of each program. Programs that this user may not read, or whose addresses are hidden, are skipped.
pub(crate) fn bpf_programs(to: &mut RecordBuffer, proc: &Proc, with_events: bool) {
    let mut programs = BpfPrograms::default();
    let mut has_images = false;
    for id in bpf_program_ids().unwrap_or_default() {
        let Some((program, types)) = programs.describe(id) else {
            continue;
        };
        has_images |= WITH_IMAGES.contains(&program.kind(Endian::NATIVE));
        let symbols = program.symbols(types, Endian::NATIVE).unwrap_or_default();
        if symbols.iter().any(|symbol| symbol.function.address == 0) {
            continue;
        }
        for BpfSymbol { name, function } in &symbols {
            ksymbol(to, name.as_bytes(), function.address, function.size);
        }
        if with_events && !symbols.is_empty() {
            let event = BpfEvent {
                event_type: LOADED,
                flags: 0,
                id,
                tag: program.tag(),
            };
            to.kernel(&Record::BpfEvent(event), Misc::KERNEL);
        }
    }
    if has_images {
        images(to, proc);
    }
}

/// Appends KSYMBOL of the images. The size of an image is unknown, but at most a page: a page is recorded.
fn images(to: &mut RecordBuffer, proc: &Proc) {
    let size = u32::try_from(page_size()).unwrap_or(u32::MAX);
    for image in proc.bpf_images().unwrap_or_default() {
        ksymbol(to, image.name.as_bytes(), image.address, size);
    }
}

fn ksymbol(to: &mut RecordBuffer, name: &[u8], addr: u64, len: u32) {
    let symbol = Ksymbol {
        addr,
        len,
        ksym_type: BPF,
        flags: 0,
        name,
    };
    to.kernel(&Record::Ksymbol(symbol), Misc::KERNEL);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd as _, AsRawFd as _};

    use crate::synthesize::tests::split;
    use rperf_sys::KprobeProgram;
    use rperf_wire::RecordKind;

    #[test]
    fn a_loaded_program_has_a_symbol_and_an_event() {
        let Ok(program) = KprobeProgram::empty() else {
            return;
        };
        // Other tests load programs, too, so this one is found by its id.
        let fdinfo = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
        let fdinfo = std::fs::read_to_string(fdinfo).unwrap();
        let id = fdinfo
            .lines()
            .find_map(|line| line.strip_prefix("prog_id:\t"));
        let id: u32 = id.unwrap().parse().unwrap();
        let synthesized = |with_events| {
            // As for events with TID and TIME.
            let trailer_size = 16;
            let mut records = RecordBuffer::new(trailer_size);
            bpf_programs(&mut records, &Proc::new("/proc"), with_events);
            records.take()
        };
        let with_events = true;
        let bytes = synthesized(with_events);
        let records = split(&bytes);
        let records = records.iter();
        let records = records.map(|record| Record::decode(record, Endian::NATIVE).unwrap());
        let records: Vec<Record<'_>> = records.collect();
        let pair = records.windows(2).find_map(|pair| match pair {
            [Record::Ksymbol(symbol), Record::BpfEvent(event)] if event.id == id => {
                Some((symbol, event))
            }
            _ => None,
        });
        let (symbol, event) = pair.unwrap();
        let tag: String = event.tag.iter().map(|byte| format!("{byte:02x}")).collect();
        // The program has no name.
        assert_eq!(symbol.name, format!("bpf_prog_{tag}").as_bytes());
        assert!(symbol.addr != 0 && symbol.len > 0);
        let mut programs = BpfPrograms::default();
        let (program, _) = programs.describe(id).unwrap();
        assert_eq!(program.tag(), event.tag);
        let with_events = false;
        let bytes = synthesized(with_events);
        assert!(
            split(&bytes)
                .iter()
                .all(|record| record.kind == RecordKind::KSYMBOL)
        );
    }
}
