//! `inject --redact` on generated recordings: no planted name or address is left, and shares do not change.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rperf_testkit::{Bytes, FileAttr, PerfFile, Run, Scratch};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::Endian;

use crate::kernel::rperf_in;

/// The beginning of every planted text.
const PLANTED: &str = "PLANTED";
/// The address of a breakpoint, and the event's id; that it equals [`TRACEPOINT`] has no meaning.
const BREAKPOINT: u64 = 0x5a5b_5c5d_5e58;
const BREAKPOINT_ID: u64 = 77;
/// An address of a program that is loaded at a fixed address, and one of a 32-bit program. Both are low, but are redacted
/// because of the name (`call_site`) and the type (`void *`) of their fields.
const FIXED_ADDRESS: u64 = 0x0047_a1bc;
const SHORT_ADDRESS: u32 = 0xf7e6_a1bc;
/// Ids of cpu-clock and of the tracepoint.
const IDS: [u64; 2] = [55, 56];
/// `config` of the tracepoint.
const TRACEPOINT: u64 = 77;
/// PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | CPU | RAW | IDENTIFIER
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 5 | 1 << 7 | 1 << 10 | 1 << 16;
/// Size of a mapping in bytes.
const LENGTH: u64 = 0x2_0000;

const FORMAT: &str = "\
name: planted_event
ID: 77
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:__data_loc char[] filename;\toffset:24;\tsize:4;\tsigned:0;
\tfield:int number;\toffset:28;\tsize:4;\tsigned:1;
\tfield:unsigned long value;\toffset:32;\tsize:8;\tsigned:0;
\tfield:u8 bytes[8];\toffset:40;\tsize:8;\tsigned:0;
\tfield:unsigned long call_site;\toffset:48;\tsize:8;\tsigned:0;
\tfield:void * short_pointer;\toffset:56;\tsize:4;\tsigned:0;

print fmt: \"comm=%s number=%d\", REC->comm, REC->number
";

/// A process: its name, the path and the address of its program, and its samples.
#[derive(Debug, Clone)]
struct Process {
    name: String,
    path: String,
    start: u64,
    /// Of each sample: offset in the program, CPU, and index of its event in [`IDS`].
    samples: Vec<(u64, u32, usize)>,
}

/// The content from which a recording is generated.
#[derive(Debug, Clone)]
struct Recorded {
    is_big_endian: bool,
    processes: Vec<Process>,
    /// Texts of header features, and of records other than those of the processes.
    texts: Vec<String>,
    /// Whether the samples of a process directly follow its task records; otherwise the task records of all processes are first.
    is_interleaved: bool,
}

/// [`PLANTED`], followed by at most `longest` characters.
fn text(longest: usize) -> impl Strategy<Value = String> {
    let pattern = format!("[a-zA-Z0-9 _.:é-]{{0,{longest}}}");
    let suffix = proptest::string::string_regex(&pattern).expect("a pattern");
    suffix.prop_map(|suffix| format!("{PLANTED}{suffix}"))
}

fn process() -> impl Strategy<Value = Process> {
    // Pages of addresses from 0x5000_0000_0000 on: lower numbers in raw data may be kept.
    let start_page = 0x5_0000_0000_u64..0x7_ffff_0000;
    let sample = (0..LENGTH, 0..4_u32, 0..IDS.len());
    let samples = proptest::collection::vec(sample, 1..20);
    (text(4), text(40), start_page, samples).prop_map(|(name, path, start_page, samples)| Process {
        name,
        path: format!("/{path}/{path}"),
        start: start_page << 12,
        samples,
    })
}

fn recorded() -> impl Strategy<Value = Recorded> {
    let processes = proptest::collection::vec(process(), 1..6);
    let texts = proptest::collection::vec(text(30), 8);
    (any::<bool>(), processes, texts, any::<bool>()).prop_map(
        |(is_big_endian, processes, texts, is_interleaved)| Recorded {
            is_big_endian,
            processes,
            texts,
            is_interleaved,
        },
    )
}

impl Recorded {
    fn pid(index: usize) -> u32 {
        1000 + index as u32
    }

    /// Appends the trailer of records: task, time, CPU and id.
    fn trailer(bytes: Bytes, index: usize, time: u64) -> Bytes {
        let pid = Self::pid(index);
        bytes.u32(pid).u32(pid).u64(time).u32(0).u32(0).u64(IDS[0])
    }

    fn file(&self) -> Vec<u8> {
        let mut file = match self.is_big_endian {
            true => PerfFile::big_endian(),
            false => PerfFile::new(),
        };
        for ((kind, config), id) in [(1, 0), (2, TRACEPOINT)].into_iter().zip(IDS) {
            let attr = FileAttr {
                kind,
                config,
                period: 1000,
                sample_type: SAMPLE_TYPE,
                flags: FileAttr::SAMPLE_ID_ALL,
                ..FileAttr::default()
            };
            file.event(&attr, &[id]);
        }
        let breakpoint = FileAttr {
            kind: 5,
            config1: BREAKPOINT,
            period: 1,
            sample_type: SAMPLE_TYPE,
            flags: FileAttr::SAMPLE_ID_ALL,
            ..FileAttr::default()
        };
        file.event(&breakpoint, &[BREAKPOINT_ID]);
        for (index, process) in self.processes.iter().enumerate() {
            self.tasks(&mut file, index, process);
            if self.is_interleaved {
                self.samples(&mut file, index, process);
            }
        }
        if !self.is_interleaved {
            for (index, process) in self.processes.iter().enumerate() {
                self.samples(&mut file, index, process);
            }
        }
        self.others(&mut file);
        self.features(&mut file);
        file.finish()
    }

    /// Appends the task records of a process: COMM and MMAP.
    fn tasks(&self, file: &mut PerfFile, index: usize, process: &Process) {
        let pid = Self::pid(index);
        let comm = file.bytes().u32(pid).u32(pid).text(&process.name, 8);
        let comm = Self::trailer(comm, index, 5).done();
        file.record(PerfFile::COMM, 0, comm);
        let map = file.bytes().u32(pid).u32(pid);
        let map = map
            .u64(process.start)
            .u64(LENGTH)
            .u64(0)
            .text(&process.path, 8);
        let map = Self::trailer(map, index, 6).done();
        file.record(PerfFile::MMAP, PerfFile::USER, map);
    }

    fn samples(&self, file: &mut PerfFile, index: usize, process: &Process) {
        let pid = Self::pid(index);
        for (number, (offset, cpu, event)) in (0_u64..).zip(&process.samples) {
            let ip = process.start + offset;
            let raw = self.raw(file, index, ip);
            let body = file.bytes().u64(IDS[*event]).u64(ip).u32(pid).u32(pid);
            let body = body.u64(100 + number).u32(*cpu).u32(0);
            // The callchain: the number of entries, PERF_CONTEXT_USER, the sampled address, and a caller.
            let body = body
                .u64(3)
                .u64((-512_i64).cast_unsigned())
                .u64(ip)
                .u64(process.start + 8);
            let body = body.u32(raw.len() as u32).raw(raw).done();
            file.record(PerfFile::SAMPLE, PerfFile::USER, body);
        }
    }

    /// The data of the tracepoint, padded so that the sample is aligned; `address` is the value of the field `value`.
    fn raw(&self, file: &PerfFile, index: usize, address: u64) -> Vec<u8> {
        let name = self.processes[index].name.as_bytes();
        let name = &name[..name.len().min(15)];
        let path = &self.processes[index].path;
        let pid = Self::pid(index);
        let raw = file.bytes().u16(TRACEPOINT as u16).u16(0).u32(pid);
        let raw = raw.raw(name).raw(vec![0; 16 - name.len()]);
        let length = path.len() as u32 + 1;
        // `filename`: the length and the offset of the path, which follows the fields.
        let raw = raw
            .u32(length << 16 | 60)
            .u32(7)
            .u64(address)
            .raw("PLANTED!")
            .u64(FIXED_ADDRESS)
            .u32(SHORT_ADDRESS);
        let raw = raw.raw(path).raw([0]);
        // In the sample, the size of the raw data is before them, in 4 bytes.
        let padding = (4 + 8 - raw.len() % 8) % 8;
        raw.raw(vec![0; padding]).done()
    }

    /// Appends records with names, code and addresses that no sample refers to. Of these, the addresses in the kernel are not
    /// among the secrets.
    fn others(&self, file: &mut PerfFile) {
        let [cgroup, symbol, unknown, thread, event_cgroup, ..] = &self.texts[..] else {
            panic!("{} texts", self.texts.len());
        };
        let with_trailer = |bytes| Self::trailer(bytes, 0, 1000).done();
        // CGROUP
        let record = with_trailer(file.bytes().u64(9).text(&format!("/{cgroup}"), 8));
        file.record(19, 0, record);
        // KSYMBOL
        let ksymbol = file
            .bytes()
            .u64(0xffff_ffff_c000_0000)
            .u32(64)
            .u16(1)
            .u16(0);
        let record = with_trailer(ksymbol.text(symbol, 8));
        file.record(17, 0, record);
        // BPF_EVENT, whose tag is planted text.
        let record = with_trailer(file.bytes().u16(1).u16(0).u32(3).raw(PLANTED).raw([0]));
        file.record(18, 0, record);
        // TEXT_POKE, whose code is planted text.
        let poke = file.bytes().u64(0xffff_ffff_8100_0000).u16(8).u16(8);
        let record = with_trailer(poke.raw("PLANTED1PLANTED2").aligned(8));
        file.record(20, 0, record);
        // A record of an unknown type.
        let record = file.bytes().text(unknown, 8).done();
        file.record(250, 0, record);
        // THREAD_MAP: one thread, whose name is `PLANTED`.
        let name = &thread.as_bytes()[..7.min(thread.len())];
        let map = file
            .bytes()
            .u64(1)
            .u64(1000)
            .raw(name)
            .raw(vec![0; 16 - name.len()]);
        file.record(73, 0, map.done());
        // EVENT_UPDATE: the name of an event, and after a tab that of its cgroup, as rperf's `stat record` writes them.
        let update = file.bytes().u64(2).u64(IDS[0]);
        let record = update.text(&format!("cpu-clock\t{event_cgroup}"), 8).done();
        file.record(78, 0, record);
        // EVENT_UPDATE: the name of a breakpoint, with planted text in place of the address.
        let update = file.bytes().u64(2).u64(BREAKPOINT_ID);
        let record = update.text(&format!("mem:{PLANTED}"), 8).done();
        file.record(78, 0, record);
        // FINISHED_ROUND
        file.record(68, 0, []);
    }

    fn features(&self, file: &mut PerfFile) {
        let endian = match self.is_big_endian {
            true => Endian::Big,
            false => Endian::Little,
        };
        let (long_size, page_size) = (8, 4096);
        let mut formats = TracingDataBuilder::new(endian, long_size, page_size);
        formats.headers(b"page", b"event");
        formats.event("planted", FORMAT.as_bytes());
        file.feature(PerfFile::TRACING_DATA, formats.encode());
        let string = |file: &PerfFile, text: &str| {
            let padded = (text.len() + 1).next_multiple_of(64);
            let bytes = file.bytes().u32(padded as u32).raw(text);
            bytes.raw(vec![0; padded - text.len()]).done()
        };
        let [.., host, release, version] = &self.texts[..] else {
            panic!("{} texts", self.texts.len());
        };
        // HOSTNAME, OSRELEASE, VERSION
        for (number, text) in [(3, host), (4, release), (5, version)] {
            let content = string(file, text);
            file.feature(number, content);
        }
        file.machine("x86_64");
        // CMDLINE: number of words, and the words.
        let word = string(file, &format!("--{host}"));
        let content = file.bytes().u32(1).raw(word).done();
        file.feature(11, content);
        // An unknown feature.
        let content = string(file, version);
        file.feature(60, content);
    }

    /// The beginning of planted texts, and planted addresses as they are stored.
    fn secrets(&self) -> Vec<Vec<u8>> {
        let mut secrets = vec![PLANTED.as_bytes().to_vec()];
        for process in &self.processes {
            let addresses = process
                .samples
                .iter()
                .map(|(offset, ..)| process.start + offset);
            let addresses = addresses.chain([process.start, process.start + 8]);
            secrets.extend(addresses.map(|address| match self.is_big_endian {
                true => address.to_be_bytes().to_vec(),
                false => address.to_le_bytes().to_vec(),
            }));
        }
        for address in [BREAKPOINT, FIXED_ADDRESS] {
            secrets.push(match self.is_big_endian {
                true => address.to_be_bytes().to_vec(),
                false => address.to_le_bytes().to_vec(),
            });
        }
        secrets.push(match self.is_big_endian {
            true => SHORT_ADDRESS.to_be_bytes().to_vec(),
            false => SHORT_ADDRESS.to_le_bytes().to_vec(),
        });
        secrets
    }
}

/// The first column of a report by `key`, largest first.
fn shares(scratch: &Scratch, file: &str, key: &str) -> Vec<String> {
    let words = [
        "report",
        "--stdio",
        "-q",
        "-g",
        "none",
        "--no-children",
        "-s",
        key,
        "-i",
        file,
    ];
    let outcome = rperf_in(scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let rows = outcome
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    rows.map(str::to_owned).collect()
}

/// Redaction does not change the shares of processes, objects and CPUs either.
#[test]
fn nothing_planted_is_left_in_generated_recordings() {
    let config = Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let result = runner.run(&recorded(), |recorded| {
        let scratch = Scratch::new();
        scratch.write("in.data", recorded.file()).expect("a file");
        let bytes = std::fs::read(scratch.path().join("in.data")).expect("the file");
        let contains = |bytes: &[u8], secret: &[u8]| memchr::memmem::find(bytes, secret).is_some();
        let secrets = recorded.secrets();
        prop_assert!(
            secrets.iter().all(|secret| contains(&bytes, secret)),
            "the input has all secrets"
        );
        let program = env!("CARGO_BIN_EXE_rperf");
        for (output, line) in [
            (
                "out.data",
                format!("{program} inject --redact -i in.data -o out.data"),
            ),
            (
                "pipe.data",
                format!("{program} inject -i in.data | {program} inject --redact >pipe.data"),
            ),
        ] {
            let shell = Run::new("sh").args(["-c", &line]).within(scratch.path());
            let outcome = shell.finish().expect("a shell starts");
            // The field `value` is neither declared as an address nor named like one: only numbers from 0x500000000000 on are
            // taken for addresses of programs, and a note says that lower ones are kept.
            let has_note = outcome
                .stderr
                .contains("keeps numbers below 0x500000000000");
            prop_assert_eq!((outcome.status, has_note), (0, true), "{}", line);
            let bytes = std::fs::read(scratch.path().join(output)).expect("the output");
            for secret in &secrets {
                let shown = String::from_utf8_lossy(secret);
                prop_assert!(
                    !contains(&bytes, secret),
                    "{:?} ({}) in {}",
                    secret,
                    shown,
                    output
                );
            }
            for key in ["comm", "dso", "pid,cpu", "comm,dso"] {
                let [before, after] = ["in.data", output].map(|file| shares(&scratch, file, key));
                prop_assert!(!before.is_empty());
                prop_assert_eq!(before, after, "{} {}", key, output);
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
