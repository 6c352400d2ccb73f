//! Recordings, and the commands that read them.

use std::path::Path;

use crate::case::{Case, CaseInputs};
use crate::mutate;
use crate::random::Random;
use crate::recording::{self, Mutated, Recording};
use crate::sandbox::Sandbox;
use crate::seeds::Seed;
use crate::{elf, names};

/// Commands that only read the header.
const HEADER_ONLY: &[&str] = &[
    "evlist -v",
    "evlist -F --trace-fields",
    "evlist -g",
    "report --header-only -I",
    "script --header-only -I",
];

/// Commands that take a recording. `evlist`, and `buildid-list` without options, do not read its records.
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
    "report --stdio --inline -g --mark-truncated",
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
    "script --itrace=be --inline --mark-truncated",
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
    "diff perf.data perf.data",
    "diff -c cycles --cycles-hist perf.data perf.data",
    "diff --json perf.data perf.data",
    "heatmap -o out.svg",
    "histogram cpu-clock",
    "histogram --from sched:sched_switch --to syscalls:sys_enter_write --svg -o out.svg",
    "timechart -o out.svg",
    "timechart -o out.html -n 50 --highlight 1000",
    "timechart -o out.pftrace",
    "heatmap -o out.svg --rows 3 --from sched:sched_switch --to syscalls:sys_enter_write",
    "kmem stat --caller --alloc",
    "kmem stat --slab --page --caller --live --json",
    "kmem stat --slab --page --histogram",
    "kmem stat --slab --page --histogram --json",
    "kmem usage",
    "kmem usage --by caller,cache,cgroup,container,process --json",
    "kmem diff perf.data perf.data",
    "kmem diff --json perf.data perf.data",
    "kmem fragmentation",
    "kmem fragmentation --json",
    "lock contention -v",
    "lock report --json",
    "kwork latency",
    "kwork latency --json",
    "kwork report -S",
    "kwork report --json",
    "kwork timehist -g",
    "kwork top",
    "sched latency -p",
    "sched latency --json --histogram --antagonists",
    "sched latency --antagonists",
    "sched latency --histogram",
    "sched latency --percentiles",
    "sched diff perf.data perf.data",
    "sched diff --json perf.data earlier.data",
    "sched off-cpu --wakers",
    "sched off-cpu --json --wakers",
    "sched off-cpu --folded",
    "sched off-cpu -o out.svg",
    "sched perfetto -o out.pftrace",
    "sched replay -r 0",
    "sched map --task-name workload,sh --fuzzy-name",
    "sched timehist -I -s",
    "sched -D timehist",
    "sched stats report",
    "sched stats diff perf.data perf.data",
    "sched map --compact",
    "sched timehist -MVw",
    "sched timehist -n -S --state -P --show-prio",
    "archive perf.data",
    "archive --all perf.data",
    "stat report",
    "stat report -A -j",
    "stat report --per-socket -x ,",
    "stat report --per-thread",
    "inject -o copy.data",
    "inject -b -v -o copy.data",
    "inject --buildid-all -o -",
    "inject -B -o copy.data",
    "inject --mmap2-buildid-all -o copy.data",
    "inject --itrace=be --strip -o copy.data",
    "inject --jit -o copy.data",
    "inject -s -o copy.data",
    "inject --convert-callchain -o copy.data",
    "inject --aslr -o copy.data",
    "inject --redact -o copy.data",
];

/// A mutated recording, and a random command: one that begins with one of [`CaseInputs::commands`] if there are any, otherwise
/// any command. Those of [`HEADER_ONLY`] are run only in the latter case.
pub(crate) fn damaged(inputs: &mut CaseInputs<'_>) -> Case {
    let (seeds, random) = (inputs.seeds, &mut *inputs.random);
    let is_header_only = inputs.commands.is_empty() && random.one_in(20);
    let commands = if is_header_only {
        HEADER_ONLY
    } else {
        COMMANDS
    };
    let is_selected = |line: &&&str| {
        let mut selected = inputs.commands.iter();
        inputs.commands.is_empty() || selected.any(|command| line.starts_with(command))
    };
    let commands: Vec<&str> = commands.iter().filter(is_selected).copied().collect();
    assert!(!commands.is_empty(), "no command begins with a wanted word");
    let line = *random.pick(&commands);
    let seed = pick_for(line, inputs);
    let random = &mut *inputs.random;
    // Another recording, or the same: the source of parts for mutations, and the file `earlier.data`.
    let other = random.pick(&seeds.recordings);
    // Commands that create files whose names come from the recording.
    let names_files = ["archive", "per-event-dump", "annotated"]
        .iter()
        .any(|word| line.contains(word));
    let seed_bytes = match random.below(12) {
        0 => with_special_paths(&seed.bytes, inputs.sandbox, random),
        1..=6 if names_files => recording::renamed(&seed.bytes, random),
        _ => seed.bytes.clone(),
    };
    let mut mutated = recording::mutate(&seed_bytes, &other.bytes, random);
    // The description of damage in a record, from `recording::mutate`, begins like this.
    let is_in_records = mutated
        .must_report_error
        .is_some_and(|why| why.starts_with("a record"));
    let reads_records = !is_header_only && !line.starts_with("evlist") && line != "buildid-list";
    // No error is required if the command does not read the damaged record, or if the seed was not whole: an earlier fault may
    // hide the damage.
    if !seed.is_whole || is_in_records && !reads_records {
        mutated.must_report_error = None;
    }
    if line.contains("earlier") {
        inputs.sandbox.write("earlier.data", &other.bytes);
    }
    finish("recording", line, mutated, inputs)
}

/// A recording directory with three parts, one of which is damaged; parts may be missing.
pub(crate) fn directory(inputs: &mut CaseInputs<'_>) -> Case {
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
    let random = &mut *inputs.random;
    let line = *random.pick(COMMANDS);
    // The index of the part, not the function `damaged`.
    let damaged = random.below(PARTS.len());
    for (index, (name, valid)) in PARTS.into_iter().enumerate() {
        let mut bytes = valid.to_vec();
        // Only the file `data` has a header; the others have nothing but records.
        if index == damaged && index == 0 {
            bytes = recording::mutate(valid, valid, random).bytes;
        } else if index == damaged {
            for _ in 0..1 + random.below(4) {
                mutate::bytes(&mut bytes, PARTS[0].1, random);
            }
        }
        if !random.one_in(20) {
            inputs.sandbox.write(format!("perf.data/{name}"), bytes);
        }
    }
    let mut case = Case::new("directory", line);
    if line.contains("earlier") {
        inputs.sandbox.write("earlier.data", PARTS[0].1);
    }
    set_accepted_outcomes(&mut case, line);
    case
}

/// Sets the accepted outcomes of a command that reads a recording.
fn set_accepted_outcomes(case: &mut Case, line: &str) {
    // Not `annotated` (a folder) or `copy.data`: only `out.*` must exist after success.
    let is_output = |word: &&String| word.starts_with("out.");
    case.outputs
        .extend(case.words.iter().find(is_output).cloned());
    // Without matching samples there is nothing to print, as in perf.
    case.may_be_silent = true;
    // These sort keys select the fields of the recording's tracepoints. They may be unknown if the recording is damaged.
    let field_keys = ["trace_fields", "*.*"];
    case.may_be_misused = field_keys.iter().any(|word| line.contains(word));
}

/// A recording with some names replaced by paths of special files, of a file outside of the working directory, or of a jitdump.
fn with_special_paths(seed: &[u8], sandbox: &Sandbox, random: &mut Random) -> Vec<u8> {
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
    let paths = places.map(|place| {
        sandbox
            .working_directory()
            .join(place)
            .display()
            .to_string()
    });
    recording.rename(|random| random.pick(&paths).clone().into_bytes(), random);
    recording.bytes()
}

/// A case with these bytes as the recording, and a random command of [`COMMANDS`].
pub(super) fn any_command(
    family: &'static str,
    bytes: Vec<u8>,
    inputs: &mut CaseInputs<'_>,
) -> Case {
    let line = *inputs.random.pick(COMMANDS);
    if line.contains("earlier") {
        inputs.sandbox.write("earlier.data", &bytes);
    }
    let mutated = Mutated {
        bytes,
        must_report_error: None,
    };
    finish(family, line, mutated, inputs)
}

/// Picks a recording: in at least two of three cases one that suits the command, if there is one.
fn pick_for<'a>(line: &str, inputs: &mut CaseInputs<'a>) -> &'a Seed {
    let seeds = &inputs.seeds.recordings;
    // A part of the names of recordings that suit the command; the first match counts.
    let name_part = match line {
        _ if line.starts_with("sched stats") => "schedstat",
        _ if line.starts_with("stat") => "stat",
        _ if line.starts_with("kwork") => "work",
        _ if line.starts_with("kmem") => "allocations",
        _ if line.starts_with("sched") || line.starts_with("timechart") => "scheduler",
        _ if line.contains("itrace") => "bts",
        _ if line.contains("mem-mode") => "mem",
        _ if line.contains("br") || line.contains("cycles") => "branches",
        _ if line.contains("trace") => "calls",
        _ => "",
    };
    let fitting: Vec<_> = seeds
        .iter()
        .filter(|seed| seed.name.contains(name_part))
        .collect();
    match inputs.random.one_in(3) {
        false if !fitting.is_empty() => inputs.random.pick::<&_>(&fitting),
        _ => inputs.random.pick(seeds),
    }
}

/// Makes the case of a command line and writes its recording. The command reads it by default, with `-i perf.data`, or from
/// standard input.
fn finish(family: &'static str, line: &str, mutated: Mutated, inputs: &mut CaseInputs<'_>) -> Case {
    let mut case = Case::new(family, line);
    case.must_report_error = mutated.must_report_error;
    // Whether `-i` may be added: not if the arguments name the recordings. `report --header-only` is tested without it.
    let takes_input = ![
        "archive",
        "buildid-cache",
        "diff",
        "kmem diff",
        "sched diff",
        "sched stats diff",
        "report --header",
    ]
    .iter()
    .any(|word| line.starts_with(word));
    if takes_input && inputs.random.one_in(6) {
        case.stdin = Some("perf.data".to_owned());
        case.words.extend(["-i".to_owned(), "-".to_owned()]);
    } else if takes_input && inputs.random.one_in(2) {
        case.words.extend(["-i".to_owned(), "perf.data".to_owned()]);
    }
    set_accepted_outcomes(&mut case, line);
    inputs.sandbox.write("perf.data", mutated.bytes);
    case
}

/// Commands that also read objects.
const WITH_OBJECTS: &[&str] = &[
    "report --stdio -s dso,sym,srcline --inline",
    "report --stdio -g srcline -s sym,symoff,symbol_size,dso_size",
    "report --stdio -v",
    "script -F ip,sym,symoff,dso,srcline,insn,disasm --inline",
    "script --inline --mark-truncated -F +srccode",
    "script -v",
    "annotate --stdio -l",
    "annotate --stdio2 --asm-raw",
    "annotate -o annotated",
    "annotate -o annotated --stdio2 a_function_whose_name_has_room_for_the_names_of_files_that_lead_elsewhere",
    "flamegraph --folded -o out.folded --inline",
    "data convert --to-pprof out.pprof --inline",
    "data convert --to-firefox out.firefox --inline",
];

/// Beginnings of the names of recordings in which the mutated object takes the place of the recorded program, the workload.
const OF_WORKLOAD: [&str; 6] = ["graphs", "stacks", "packed", "own", "pipe", "kernel"];

/// A recording, and a mutated object at a place where it is looked up.
pub(crate) fn with_mutated_object(inputs: &mut CaseInputs<'_>) -> Case {
    let seeds = inputs.seeds;
    let random = &mut *inputs.random;
    let is_of_workload = |seed: &&Seed| OF_WORKLOAD.iter().any(|name| seed.name.starts_with(name));
    let recordings: Vec<&Seed> = seeds.recordings.iter().filter(is_of_workload).collect();
    let objects = ["workload", "linked", "mini"].map(|name| seeds.object(name));
    // The inner `None`: the object could not be built here.
    let (Some(recording), Some(Some(object))) =
        (random.try_pick(&recordings), random.try_pick(&objects))
    else {
        return damaged(inputs);
    };
    let mut line = (*random.pick(WITH_OBJECTS)).to_owned();
    let mut mutated = Mutated {
        bytes: recording.bytes.clone(),
        must_report_error: None,
    };
    let place = match random.below(3) {
        0 => {
            line += " --symfs files";
            format!("files{}", seeds.workload)
        }
        1 => {
            let path = inputs
                .sandbox
                .working_directory()
                .join("object")
                .display()
                .to_string();
            if let Some(mut recording) = Recording::parse(&mutated.bytes) {
                recording.redirect(&seeds.workload, &path);
                mutated.bytes = recording.bytes();
            }
            "object".to_owned()
        }
        _ => {
            let id = elf::build_id(&object.bytes).unwrap_or_else(|| "0".repeat(40));
            format!("home/.debug/.build-id/{}/{}/elf", &id[..2], &id[2..])
        }
    };
    put_object(object, Path::new(&place), inputs);
    let random = &mut *inputs.random;
    if line.starts_with("annotate") && random.one_in(5) {
        line += &format!(" --prefix {}", names::FOLDER);
    }
    // Sometimes the recording is mutated, too.
    if random.one_in(4) {
        let no_other: &[u8] = &[];
        mutate::bytes(&mut mutated.bytes, no_other, random);
    }
    finish("object of a recording", &line, mutated, inputs)
}

/// Writes a mutated object to `place`, and beside it the mutated debug file that some objects link to.
fn put_object(object: &Seed, place: &Path, inputs: &mut CaseInputs<'_>) {
    let (seeds, random) = (inputs.seeds, &mut *inputs.random);
    let other = random.pick(&seeds.objects);
    let mutated = match random.one_in(5) {
        // The workload has a function whose name begins with this, and is long enough for most hostile names.
        true => elf::with_hostile_symbols(&object.bytes, "a_function", random),
        false => elf::mutate(&object.bytes, &other.bytes, random),
    };
    inputs.sandbox.write(place, mutated);
    if let Some(debug) = seeds.object("linked.debug") {
        let mutated = elf::mutate(&debug.bytes, &other.bytes, random);
        inputs
            .sandbox
            .write(place.with_file_name("linked.debug"), mutated);
    }
}
