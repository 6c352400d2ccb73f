//! Recordings, and the commands that read them.

use std::path::Path;

use crate::case::{Case, Making};
use crate::mutate;
use crate::random::Random;
use crate::recording::{self, Mutated, Recording};
use crate::sandbox::Sandbox;
use crate::seeds::Seed;
use crate::{elf, names};

/// Commands that look at nothing behind the header.
const HEADER_ONLY: &[&str] = &[
    "evlist -v",
    "evlist -F --trace-fields",
    "evlist -g",
    "report --header-only -I",
    "script --header-only -I",
];

/// Commands that read all of a recording.
const COMMANDS: &[&str] = &[
    "report --stdio",
    "report --stdio -s comm,dso,sym,srcline,srcfile",
    "report --stdio -s pid,tid,tgid,cpu,socket,time,parallelism,cgroup_id,cgroup,comm_nodigit",
    "report --stdio -s symoff,symbol_size,dso_size,code_page_size,weight,ins_lat,transaction,trace",
    "report --stdio --no-children -g fractal,0.1,caller,function,percent",
    "report --stdio -g folded,address,count -F overhead,sample,period,sym",
    "report --stdio -G -g flat,srcline --max-stack 5",
    "report -D",
    "report -D --disable-order",
    "report --stats",
    "report --tasks",
    "report --mmaps",
    "report --stdio --header -I -T --pretty raw",
    "report --stdio -b",
    "report --stdio -b -s symbol_from,symbol_to,dso_from,addr_to,srcline_from,mispredict,in_tx,abort,cycles",
    "report --stdio --total-cycles",
    "report --stdio --branch-history",
    "report --stdio --mem-mode",
    "report --stdio --mem-mode -s mem,tlb,snoop,locked,blocked,symbol_daddr,symbol_iaddr,dso_daddr,phys_daddr,dcacheline,data_page_size",
    "report --stdio --itrace=be",
    "report --stdio --inline -g --mark-cut",
    "report --stdio --latency",
    "report --stdio -H -s comm,dso,sym",
    "report --stdio --group -n --show-total-period -t ;",
    "report --stdio --raw-trace -s trace_fields",
    "report --stdio -s time,sym --time-quantum 1ns",
    "report --stdio -s *.*",
    "report --stdio -p main -x -s parent,sym --ignore-callees recursive",
    "report --stdio --time 10%-90% -C 0-3 -c workload -v",
    "report --stdio --show-ref-call-graph --show-cpu-utilization --percentage relative",
    "script",
    "script -v --show-task-events --show-mmap-events --show-switch-events --show-lost-events",
    "script -D",
    "script --dump-unsorted-raw-trace",
    "script --json",
    "script --itrace=be --inline --mark-cut",
    "script -F comm,tid,pid,time,cpu,event,trace,ip,sym,dso,addr,symoff,period",
    "script -F iregs,uregs,flags,data_src,weight,bpf-output,callindent,synth,phys_addr",
    "script -F brstack,brstacksym,brstackoff,brstackinsn,brstackinsnlen,brstackdisasm --max-blocks 9",
    "script -F ip,sym,insn,insnlen,disasm,srcline,srccode,dsoff",
    "script -F misc,tod,metric,ipc,data_page_size,code_page_size,ins_lat,retire_lat,cgroup,machine_pid,vcpu",
    "script --per-event-dump",
    "script --ns --reltime --deltatime --full-source-path -F +srcline",
    "script --show-namespace-events --show-cgroup-events --show-bpf-events --show-text-poke-events",
    "script -L --stop-bt main --addr-range 100 -S 0x1000",
    "annotate --stdio",
    "annotate --stdio2 -l -P",
    "annotate --stdio --asm-raw -n --group --skip-missing --hot 3",
    "annotate -o annotated --stdio",
    "evlist",
    "buildid-list",
    "buildid-list -H -v",
    "buildid-cache -v -M perf.data",
    "data check",
    "data convert --to-json out.json",
    "data convert --to-firefox out.firefox",
    "data convert --to-firefox out.gz --inline",
    "data convert --to-folded out.folded",
    "data convert --to-perfetto out.perfetto",
    "data convert --to-pprof out.pprof",
    "data convert --to-speedscope out.speedscope",
    "flamegraph -o out.svg",
    "flamegraph --folded --marks -o out.folded --inline",
    "flamegraph --format json -o out.json --reverse --root tid --weight period",
    "flamegraph --diff earlier.data -o out.svg --normalize",
    "heatmap -o out.svg",
    "heatmap -o out.svg --rows 3 --from sched:sched_switch --to syscalls:sys_enter_write",
    "archive perf.data",
    "archive --all perf.data",
    "stat report",
    "stat report -A -j",
    "stat report --per-socket -x ,",
    "stat report --per-thread",
];

/// A mutated recording and any command.
pub(crate) fn damaged(making: &mut Making<'_>) -> Case {
    let (seeds, random) = (making.seeds, &mut *making.random);
    let is_header_only = random.one_in(20);
    let commands = if is_header_only {
        HEADER_ONLY
    } else {
        COMMANDS
    };
    let words = *random.pick(commands);
    let seed = pick_for(words, making);
    let random = &mut *making.random;
    let other = random.pick(&seeds.recordings);
    let seed_bytes = match random.one_in(12) {
        true => misled(&seed.bytes, making.sandbox, random),
        false => seed.bytes.clone(),
    };
    let mut mutated = recording::mutate(&seed_bytes, &other.bytes, random);
    let is_of_records = mutated
        .must_complain
        .is_some_and(|why| why.starts_with("a record"));
    let reads_records = !is_header_only && !words.starts_with("evlist") && words != "buildid-list";
    if !seed.is_whole || is_of_records && !reads_records {
        mutated.must_complain = None;
    }
    if words.contains("earlier") {
        making.sandbox.write("earlier.data", &other.bytes);
    }
    finish("recording", words, mutated, making)
}

/// A directory with a recording in three parts, one of which is damaged.
pub(crate) fn directory(making: &mut Making<'_>) -> Case {
    const PARTS: [(&str, &[u8]); 3] = [
        (
            "data",
            include_bytes!("../../fixtures/x86_64/directory.data/data"),
        ),
        (
            "data.0",
            include_bytes!("../../fixtures/x86_64/directory.data/data.0"),
        ),
        (
            "data.1",
            include_bytes!("../../fixtures/x86_64/directory.data/data.1"),
        ),
    ];
    let random = &mut *making.random;
    let words = *random.pick(COMMANDS);
    let damaged = random.below(PARTS.len());
    for (index, (name, sound)) in PARTS.into_iter().enumerate() {
        let mut bytes = sound.to_vec();
        if index == damaged && index == 0 {
            bytes = recording::mutate(sound, sound, random).bytes;
        } else if index == damaged {
            for _ in 0..1 + random.below(4) {
                mutate::bytes(&mut bytes, PARTS[0].1, random);
            }
        }
        if !random.one_in(20) {
            making.sandbox.write(format!("perf.data/{name}"), bytes);
        }
    }
    let mut case = Case::new("directory", words);
    if words.contains("earlier") {
        making.sandbox.write("earlier.data", PARTS[0].1);
    }
    options(&mut case, words);
    case
}

/// What is known of the outcome of a command that reads a recording.
fn options(case: &mut Case, words: &str) {
    let is_output = |word: &&String| word.starts_with("out.");
    case.outputs
        .extend(case.words.iter().find(is_output).cloned());
    // Without samples, or without anything of the kind, there is nothing to print, as in perf.
    case.may_be_silent = true;
    let depends = ["trace_fields", "*.*", "--per-event-dump"];
    case.may_be_misused = depends.iter().any(|word| words.contains(word));
}

/// A recording whose mapped files are no regular files, or outside.
fn misled(seed: &[u8], sandbox: &Sandbox, random: &mut Random) -> Vec<u8> {
    let Some(mut recording) = Recording::parse(seed) else {
        return seed.to_vec();
    };
    let places = [
        names::FIFO,
        names::LOOP,
        names::FOLDER,
        "../outside/keep",
        "jit-7.dump",
    ];
    let paths = places.map(|place| sandbox.run().join(place).display().to_string());
    recording.rename(|random| random.pick(&paths).clone().into_bytes(), random);
    recording.bytes()
}

/// These bytes, and any command.
pub(super) fn any_command(family: &'static str, bytes: Vec<u8>, making: &mut Making<'_>) -> Case {
    let words = *making.random.pick(COMMANDS);
    if words.contains("earlier") {
        making.sandbox.write("earlier.data", &bytes);
    }
    let mutated = Mutated {
        bytes,
        must_complain: None,
    };
    finish(family, words, mutated, making)
}

/// Commands are of more use with some recordings.
fn pick_for<'a>(words: &str, making: &mut Making<'a>) -> &'a Seed {
    let seeds = &making.seeds.recordings;
    let wanted = match words {
        _ if words.starts_with("stat") => "stat",
        _ if words.contains("itrace") => "bts",
        _ if words.contains("mem-mode") => "mem",
        _ if words.contains("br") || words.contains("cycles") => "branches",
        _ if words.contains("trace") => "calls",
        _ => "",
    };
    let fitting: Vec<_> = seeds
        .iter()
        .filter(|seed| seed.name.contains(wanted))
        .collect();
    match making.random.one_in(3) {
        false if !fitting.is_empty() => making.random.pick::<&_>(&fitting),
        _ => making.random.pick(seeds),
    }
}

fn finish(family: &'static str, words: &str, mutated: Mutated, making: &mut Making<'_>) -> Case {
    let mut case = Case::new(family, words);
    case.must_complain = mutated.must_complain;
    let takes_input = !["archive", "buildid-cache", "report --header"]
        .iter()
        .any(|word| words.starts_with(word));
    if takes_input && making.random.one_in(6) {
        case.stdin = Some("perf.data".to_owned());
        case.words.extend(["-i".to_owned(), "-".to_owned()]);
    } else if takes_input && making.random.one_in(2) {
        case.words.extend(["-i".to_owned(), "perf.data".to_owned()]);
    }
    options(&mut case, words);
    making.sandbox.write("perf.data", mutated.bytes);
    case
}

/// Commands that read objects, too.
const WITH_OBJECTS: &[&str] = &[
    "report --stdio -s dso,sym,srcline --inline",
    "report --stdio -g srcline -s sym,symoff,symbol_size,dso_size",
    "report --stdio -v",
    "script -F ip,sym,symoff,dso,srcline,insn,disasm --inline",
    "script --inline --mark-cut -F +srccode",
    "script -v",
    "annotate --stdio -l",
    "annotate --stdio2 --asm-raw",
    "annotate -o annotated",
    "flamegraph --folded -o out.folded --inline",
    "data convert --to-pprof out.pprof --inline",
    "data convert --to-firefox out.firefox --inline",
];

/// Recordings of the program that is an object here.
const OF_WORKLOAD: [&str; 6] = ["graphs", "stacks", "packed", "own", "pipe", "kernel"];

/// A recording with a mutated object, in a place where it is looked for.
pub(crate) fn beside_an_object(making: &mut Making<'_>) -> Case {
    let seeds = making.seeds;
    let random = &mut *making.random;
    let named = |seed: &&Seed| OF_WORKLOAD.iter().any(|name| seed.name.starts_with(name));
    let recordings: Vec<&Seed> = seeds.recordings.iter().filter(named).collect();
    let objects = ["workload", "linked", "mini"].map(|name| seeds.object(name));
    let (Some(recording), Some(Some(object))) =
        (random.try_pick(&recordings), random.try_pick(&objects))
    else {
        return damaged(making);
    };
    let mut words = (*random.pick(WITH_OBJECTS)).to_owned();
    let mut mutated = Mutated {
        bytes: recording.bytes.clone(),
        must_complain: None,
    };
    let place = match random.below(3) {
        0 => {
            words += " --symfs files";
            format!("files{}", seeds.workload)
        }
        1 => {
            let path = making.sandbox.run().join("object").display().to_string();
            if let Some(mut recording) = Recording::parse(&mutated.bytes) {
                recording.redirect(&seeds.workload, &path);
                mutated.bytes = recording.bytes();
            }
            "object".to_owned()
        }
        _ => {
            let id = build_id(&object.bytes);
            format!("home/.debug/.build-id/{}/{}/elf", &id[..2], &id[2..])
        }
    };
    put_object(object, Path::new(&place), making);
    let random = &mut *making.random;
    if words.starts_with("annotate") && random.one_in(5) {
        words += &format!(" --prefix {}", names::FOLDER);
    }
    if random.one_in(4) {
        mutate::bytes(&mut mutated.bytes, &[], random);
    }
    finish("object of a recording", &words, mutated, making)
}

/// Writes a mutated object, with the file that some link to.
fn put_object(object: &Seed, place: &Path, making: &mut Making<'_>) {
    let (seeds, random) = (making.seeds, &mut *making.random);
    let other = random.pick(&seeds.objects);
    let mutated = elf::mutate(&object.bytes, &other.bytes, random);
    making.sandbox.write(place, mutated);
    if let Some(debug) = seeds.object("linked.debug") {
        let mutated = elf::mutate(&debug.bytes, &other.bytes, random);
        making
            .sandbox
            .write(place.with_file_name("linked.debug"), mutated);
    }
}

/// The build-id of a file with one, in hexadecimal.
fn build_id(bytes: &[u8]) -> String {
    let note = bytes
        .windows(16)
        .position(|window| window == b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0");
    let id = note
        .and_then(|at| bytes.get(at + 16..at + 36))
        .unwrap_or(&[0; 20]);
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
