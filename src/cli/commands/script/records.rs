//! Records other than samples, in the sample output: `--show-task-events` and the like.

use clap::ArgMatches;
use rperf_lines::{BranchFlags, SampleLine};
use rperf_replay::{Machine, NonSampleRecord, Order, World};
use rperf_resolve::AddressContext;
use rperf_view::script::{ScriptBlock, write_record, write_text_poke};
use rperf_wire::{CpuMode, Record, RecordKind, TextPoke};

use super::text::SampleText;
use crate::cli::options::flag;

/// The records that each option shows.
const RECORDS_BY_OPTION: [(&str, &[RecordKind]); 9] = [
    (
        "show-task-events",
        &[RecordKind::COMM, RecordKind::FORK, RecordKind::EXIT],
    ),
    ("show-mmap-events", &[RecordKind::MMAP, RecordKind::MMAP2]),
    (
        "show-switch-events",
        &[RecordKind::SWITCH, RecordKind::SWITCH_CPU_WIDE],
    ),
    ("show-namespace-events", &[RecordKind::NAMESPACES]),
    ("show-cgroup-events", &[RecordKind::CGROUP]),
    ("show-lost-events", &[RecordKind::LOST]),
    ("show-round-events", &[RecordKind::FINISHED_ROUND]),
    (
        "show-bpf-events",
        &[RecordKind::KSYMBOL, RecordKind::BPF_EVENT],
    ),
    ("show-text-poke-events", &[RecordKind::TEXT_POKE]),
];

/// The types of records selected by the options.
pub(super) fn requested(matches: &ArgMatches) -> Vec<RecordKind> {
    let given = RECORDS_BY_OPTION
        .iter()
        .filter(|(option, _)| flag(matches, option) == Some(true));
    given.flat_map(|(_, kinds)| kinds.iter().copied()).collect()
}

/// The thread that a record is about; `None` if it is that of the record's sample id.
fn subject_tid(record: &Record<'_>) -> Option<u32> {
    Some(match record {
        Record::Comm(comm) => comm.tid,
        Record::Fork(task) | Record::Exit(task) => task.tid,
        Record::Mmap(mapped) => mapped.tid,
        Record::Mmap2(mapped) => mapped.mmap.tid,
        Record::Namespaces(entered) => entered.tid,
        _ => return None,
    })
}

impl SampleText<'_, '_> {
    /// Appends a record as text. Kernel records are preceded by task, CPU and time, as samples are; those of CPUs that are not
    /// selected are omitted.
    pub(super) fn non_sample(
        &self,
        world: &World,
        source: &NonSampleRecord<'_>,
        block: &mut ScriptBlock,
    ) {
        // Records that can't be decoded are skipped. When the recording was opened, they were counted in its diagnostics.
        let Ok(record) = Record::decode(&source.raw, self.plan.endian) else {
            return;
        };
        // The record may set the task's name, so the name just after the record (at the next position) is shown. For EXIT, which
        // ends the task, it is the name just before.
        let mut named_at = source.order;
        named_at.position += u64::from(!matches!(record, Record::Exit(_)));
        let (pid, tid) = source.id.pid_tid.unwrap_or((u32::MAX, u32::MAX));
        let named_tid = subject_tid(&record).unwrap_or(tid);
        let line = SampleLine {
            comm: world.comm(world.comm_at(named_tid, named_at)),
            pid,
            tid,
            cpu: source.id.cpu.unwrap_or(u32::MAX),
            time: source.id.time.unwrap_or(u64::MAX),
            period: 0,
            misc: source.raw.misc,
            branch_flags: BranchFlags::default(),
        };
        if self.plan.separates_samples {
            // A part is the output of one sample or record.
            let sampled_event = None;
            block.begin_part(sampled_event);
        }
        let kind = source.raw.kind;
        // User records are those that perf itself writes.
        if !kind.is_user() {
            if !self.plan.filter.accepts_cpu(line.cpu) {
                return;
            }
            let event = source.event.map(|event| event.0 as usize);
            if let Some(event) = event.and_then(|event| self.plan.events.get(event)) {
                event.layout.common_fields(&line, kind, block);
            }
        }
        match &record {
            Record::TextPoke(poke) => self.text_poke(poke, source.order, &mut block.text),
            _ => write_record(&record, kind, source.raw.misc, &mut block.text),
        }
    }

    fn text_poke(&self, poke: &TextPoke<'_>, order: Order, out: &mut Vec<u8>) {
        let at = AddressContext {
            machine: Machine::Host,
            pid: 0,
            order,
        };
        let frame = self.resolver.locate(at, CpuMode::Kernel, poke.addr);
        write_text_poke(poke, self.lines.resolved(&frame).symbol.as_ref(), out);
    }
}
