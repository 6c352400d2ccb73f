//! Tracepoints of this machine, recorded by perf, printed by perf and by rperf.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use rperf_testkit::{Run, Scratch, real_perf, skip};
use rperf_tracepoint::typed::{EventLayout, TypedEvent};
use rperf_tracepoint::{Abi, KernelSymbols, PrintContext, PrintkFormats, Tracepoint};
use rperf_wire::{Attr, Endian, RawRecord, RecordKind, SampleLayout};

/// The events of each recording. Opening all of `syscalls:*` would take half a minute.
const EVENTS: [&str; 3] = [
    "sched:*,irq:*,timer:*,task:*,signal:*,workqueue:*,writeback:*,rcu:*,raw_syscalls:*",
    "kmem:*,block:*,ext4:*",
    "syscalls:*open*,syscalls:*read*,syscalls:*mmap*,syscalls:*stat*,syscalls:*exec*",
];

/// The fields of a sample that this test needs.
struct Sample {
    time: u64,
    /// Index of the event's attr in the file.
    event: usize,
    raw: Vec<u8>,
}

/// The 64-bit number at this offset.
fn word(file: &[u8], offset: u64) -> u64 {
    let offset = usize::try_from(offset).expect("offset");
    Endian::NATIVE.u64_at(file, offset).expect("a word")
}

fn slice(file: &[u8], offset: u64, size: u64) -> &[u8] {
    &file[offset as usize..][..size as usize]
}

/// Reads a perf.data file: the attr's config of each event, and the samples in time order.
fn read(file: &[u8]) -> (Vec<u64>, Vec<Sample>) {
    // The header has the size of an entry of the attrs section at 16, then offset and size of the sections of attrs and data.
    let (entry_size, attrs, attrs_size) = (word(file, 16), word(file, 24), word(file, 32));
    let mut configs = Vec::new();
    let mut event_of_id = HashMap::new();
    let mut layout = None;
    for index in 0..attrs_size / entry_size {
        let entry = slice(file, attrs + index * entry_size, entry_size);
        // An entry is the attr, and offset and size of the event's ids in the file.
        let attr_end = entry.len() - 16;
        let attr = Attr::decode(&entry[..attr_end], Endian::NATIVE).expect("attr");
        let (ids, size) = (
            word(entry, attr_end as u64),
            word(entry, attr_end as u64 + 8),
        );
        for offset in (ids..ids + size).step_by(8) {
            event_of_id.insert(word(file, offset), configs.len());
        }
        configs.push(attr.config);
        // perf records the same sample fields for all these events: the first attr describes every sample.
        layout.get_or_insert_with(|| SampleLayout::new(&attr));
    }
    let layout = layout.expect("an event");
    let data = slice(file, word(file, 40), word(file, 48));
    let mut samples = Vec::new();
    for (record, _) in RawRecord::all(data, Endian::NATIVE) {
        if record.kind == RecordKind::SAMPLE {
            let sample = layout.decode(record.body, Endian::NATIVE).expect("sample");
            samples.push(Sample {
                time: sample.time.expect("time"),
                event: event_of_id[&sample.id.expect("id")],
                raw: sample.raw.expect("raw").to_vec(),
            });
        }
    }
    samples.sort_by_key(|sample| sample.time);
    (configs, samples)
}

/// Kernel functions by address. Of several names for one address, the last in alphabetical order is used.
struct Kallsyms(Vec<(u64, String)>);

impl Kallsyms {
    fn read() -> Self {
        let text = std::fs::read_to_string("/proc/kallsyms").expect("kallsyms");
        let symbols = text.lines().filter_map(|line| {
            let (address, rest) = line.split_once(' ')?;
            let (kind, name) = rest.split_once(' ')?;
            let name = name.split('\t').next()?.to_owned();
            let address = u64::from_str_radix(address, 16).ok()?;
            "tTwW".contains(kind).then_some((address, name))
        });
        let mut symbols: Vec<_> = symbols.collect();
        symbols.sort();
        Self(symbols)
    }
}

impl KernelSymbols for Kallsyms {
    fn symbol_at(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        let (start, name) = self.0.get(after.checked_sub(1)?)?;
        Some((name, *start))
    }
}

/// Records `events` of the whole system while a script runs various programs; returns whether perf succeeded.
fn record(perf: &Path, events: &str, file: &Path) -> bool {
    let work = "ls -R /usr/share/doc/[a-l]* >/dev/null; echo x | cat >/dev/null; sleep 0.02; kill -0 $$; sync /tmp";
    let options = ["record", "-q", "-a", "-m", "4096", "-e", events, "-o"];
    let run = Run::new(perf).args(options).args([file.as_os_str()]);
    let run = run.args(["--", "sh", "-c", work]);
    // perf adds to the build-id cache in HOME: here, to one in the file's directory.
    let run = match file.parent() {
        Some(home) => run.env("HOME", home).finish(),
        None => run.finish(),
    };
    run.is_ok_and(|run| run.status == 0)
}

#[test]
fn real_tracepoints_print_as_in_perf() {
    let test = "real_tracepoints_print_as_in_perf";
    let Some(perf) = real_perf() else {
        return skip(test, "no perf");
    };
    let tracefs = Path::new("/sys/kernel/tracing");
    let Ok(printk) = std::fs::read_to_string(tracefs.join("printk_formats")) else {
        return skip(test, "tracefs cannot be read");
    };
    let scratch = Scratch::new();
    let symbols = Kallsyms::read();
    let printk = PrintkFormats::parse(&printk);
    let context = PrintContext {
        symbols: &symbols,
        printk: &printk,
    };
    let tracepoints = machine_tracepoints(tracefs);
    let mut recorded = 0;
    // Tracepoints whose typed fields were compared with the printed text.
    let mut typed = BTreeSet::new();
    for events in EVENTS {
        let path = scratch.path().join("perf.data");
        // perf fails if the kernel has none of the events of a pattern, such as `ext4:*`.
        if !record(&perf, events, &path) {
            continue;
        }
        let (configs, samples) = read(&std::fs::read(&path).expect("recording"));
        let layouts = configs.iter().map(|config| {
            let tracepoint = &tracepoints[config];
            // `None` for the many tracepoints without a typed event.
            let layout = EventLayout::resolve(tracepoint).expect("fields of a current kernel");
            (tracepoint, layout)
        });
        let layouts: Vec<_> = layouts.collect();
        let mut ours = Vec::new();
        for sample in &samples {
            let (tracepoint, layout) = &layouts[sample.event];
            let start = ours.len();
            tracepoint
                .print_fmt()
                .write(&sample.raw, &context, &mut ours);
            if let Some(layout) = layout {
                let event = layout.read(&sample.raw).expect("a whole sample");
                if let Some(text) = typed_text(event) {
                    assert_eq!(text, String::from_utf8_lossy(&ours[start..]));
                    typed.insert(tracepoint.name());
                }
            }
            ours.push(b'\n');
        }
        recorded += samples.len();
        compare(&perf_text(&perf, &path), &String::from_utf8_lossy(&ours));
    }
    assert!(recorded > 0, "nothing was recorded");
    for name in ["sched:sched_switch", "raw_syscalls:sys_enter"] {
        assert!(typed.contains(name), "{name} is not among {typed:?}");
    }
}

/// The text of an event from its typed fields; `None` for events whose text is not built here.
fn typed_text(event: TypedEvent<'_>) -> Option<String> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Some(match event {
        TypedEvent::SchedSwitch(event) => format!(
            "prev_comm={} prev_pid={} prev_prio={} prev_state={} ==> next_comm={} next_pid={} next_prio={}",
            text(event.prev_comm()),
            event.prev_pid(),
            event.prev_prio(),
            event.prev_state(),
            text(event.next_comm()),
            event.next_pid(),
            event.next_prio(),
        ),
        TypedEvent::SchedMigrateTask(event) => format!(
            "comm={} pid={} prio={} orig_cpu={} dest_cpu={}",
            text(event.comm()),
            event.pid(),
            event.prio(),
            event.orig_cpu(),
            event.dest_cpu(),
        ),
        TypedEvent::SchedProcessExec(event) => format!(
            "filename={} pid={} old_pid={}",
            text(event.filename()),
            event.pid(),
            event.old_pid(),
        ),
        TypedEvent::SysEnter(event) => {
            let args: Vec<String> = event.args().iter().map(|arg| format!("{arg:x}")).collect();
            format!("NR {} ({})", event.id(), args.join(", "))
        }
        TypedEvent::SysExit(event) => format!("NR {} = {}", event.id(), event.ret()),
        TypedEvent::SoftirqEntry(event) => {
            format!("vec={} [action={}]", event.vec().value, event.vec())
        }
        _ => return None,
    })
}

fn perf_text(perf: &Path, file: &Path) -> String {
    let run = Run::new(perf).args(["script", "-f", "-F", "trace", "-i"]);
    let run = run.args([file.as_os_str()]).finish();
    run.expect("perf script").stdout
}

/// Compares the sorted lines: perf prints the samples of one FINISHED_ROUND after another, so a late sample may be out of time
/// order, whereas [`read`] sorts all samples by time.
fn compare(perf: &str, ours: &str) {
    let sorted = |text: &str| {
        let lines = text.lines().map(|line| line.trim_end().to_owned());
        let mut lines: Vec<_> = lines.collect();
        lines.sort_unstable();
        lines
    };
    let (perf, ours) = (sorted(perf), sorted(ours));
    assert_eq!(perf.len(), ours.len());
    let different = perf.iter().zip(&ours).filter(|(perf, ours)| perf != ours);
    let different = different.map(|(perf, ours)| format!("perf: {perf}\nours: {ours}"));
    let different: Vec<_> = different.take(20).collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// All readable tracepoints of the machine by id.
fn machine_tracepoints(tracefs: &Path) -> HashMap<u64, Tracepoint> {
    let mut tracepoints = HashMap::new();
    let systems = std::fs::read_dir(tracefs.join("events")).expect("events");
    for system in systems.flatten() {
        let Ok(events) = std::fs::read_dir(system.path()) else {
            continue;
        };
        for event in events.flatten() {
            if let Ok(text) = std::fs::read(event.path().join("format")) {
                let system = system.file_name();
                let tracepoint = Tracepoint::parse(&system.to_string_lossy(), &text, Abi::NATIVE);
                let tracepoint = tracepoint.expect("the kernel's description");
                tracepoints.insert(tracepoint.format.id, tracepoint);
            }
        }
    }
    tracepoints
}
