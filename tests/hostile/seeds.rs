//! Input to mutate: files in the tree, most of them valid, and files that are compiled and recorded once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rperf_testkit::{Bytes, record as record_bytes, recording_candidates, skip_for_lack_of};

use crate::execute;

/// The maximum size of recordings in the tree, in bytes; recordings made here may have four times as many.
const MAX_SEED_BYTES: u64 = 64 << 10;

/// A file to mutate: valid if it was made here; files in the tree may be damaged.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Whether the seed is a recording in which `data check` finds no fault. False for objects, dumps and images.
    pub(crate) is_whole: bool,
}

/// All seeds.
#[derive(Debug)]
pub(crate) struct Seeds {
    /// The recordings made here, and all small files in the folders of recordings in the tree, some of which are no recordings.
    pub(crate) recordings: Vec<Seed>,
    pub(crate) objects: Vec<Seed>,
    /// Jitdump files.
    pub(crate) dumps: Vec<Seed>,
    /// Kernel images, which are not among `objects`.
    pub(crate) images: Vec<Seed>,
    /// The path of the workload, as it is in the recordings of it.
    pub(crate) workload: String,
}

/// The recordings to make of the workload: name, and options. `%` is replaced by the path of the workload. If a name begins with
/// `pipe`, the recording is written in pipe mode.
const RECORDINGS: [(&str, &str); 19] = [
    ("graphs", "-e cpu-clock:u -F 2000 -g"),
    ("stacks", "-e cpu-clock:u -F 1000 --call-graph dwarf,512"),
    ("packed", "-e cpu-clock:u -F 5000 -g -z"),
    (
        "group",
        "-e {cpu-clock:u,task-clock:u} -F 2000 -s -T -P --sample-cpu",
    ),
    (
        "all",
        "-e cpu-clock:u -F 1000 -d -W --code-page-size --data-page-size --transaction -R",
    ),
    (
        "tasks",
        "-e cpu-clock:u -F 1000 --all-cgroups --namespaces --switch-events --buildid-mmap",
    ),
    ("registers", "-e cpu-clock:u -F 1000 -I --user-regs"),
    ("kernel", "-e cpu-clock -F 3000 -g"),
    ("counted", "-e {cpu-clock:u,page-faults:u}:S -F 1000"),
    (
        "calls",
        "-e syscalls:sys_enter_write,syscalls:sys_exit_write,sched:sched_switch -c 1 -g -R",
    ),
    (
        "scheduler",
        "-a -R -g -c 1 -e sched:sched_switch,sched:sched_stat_runtime,sched:sched_waking,sched:sched_wakeup_new,\
         sched:sched_migrate_task,sched:sched_process_fork",
    ),
    (
        "work",
        "-a -R -g -c 1 -e irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_raise,irq:softirq_entry,irq:softirq_exit,\
         workqueue:workqueue_activate_work,workqueue:workqueue_execute_start,workqueue:workqueue_execute_end,\
         sched:sched_switch",
    ),
    (
        "allocations",
        "-R -g -T --sample-cpu --all-cgroups -c 1 -e kmem:kmalloc,kmem:kfree,kmem:kmem_cache_alloc,kmem:kmem_cache_free,\
         kmem:mm_page_alloc,kmem:mm_page_free,kmem:mm_page_alloc_extfrag",
    ),
    ("waits", "-e cpu-clock:u -F 1000 --off-cpu"),
    ("clock", "-e cpu-clock:u -F 1000 -k monotonic --latency"),
    ("own", "-e cpu-clock:u -F 1000 -g --probe %:recursive"),
    ("pipe", "-e cpu-clock:u -F 1000 -g"),
    ("pipe-packed", "-e cpu-clock:u -F 5000 -g -z"),
    ("pipe-calls", "-e syscalls:sys_enter_write -c 1 -R"),
];

/// The freestanding programs to compile: name, source and options.
const PROGRAMS: [(&str, &str, &str); 8] = [
    ("plain", "tests/fuzz/seeds/program.cpp", "-g -O1 -static"),
    (
        "old",
        "tests/fuzz/seeds/program.cpp",
        "-gdwarf-4 -O2 -fdebug-types-section -static",
    ),
    (
        "split",
        "tests/fuzz/seeds/program.cpp",
        "-g -gsplit-dwarf -O2 -static",
    ),
    (
        "shared",
        "tests/fuzz/seeds/program.cpp",
        "-gdwarf-2 -O2 -fPIC -shared -gno-as-loc-support",
    ),
    (
        "packed",
        "tests/fuzz/seeds/program.cpp",
        "-g -gz -O2 -static",
    ),
    (
        "narrow",
        "tests/fuzz/seeds/program.cpp",
        "-m32 -g -O1 -static",
    ),
    ("module", "tests/fuzz/seeds/program.cpp", "-g -O2 -r"),
    (
        "vmlinux",
        "tests/hostile/kernel.c",
        "-g -O2 -static -no-pie -mcmodel=kernel -fno-pic -Wl,-Ttext=0xffffffff81000000 -Wl,-e,_stext",
    ),
];

/// Files that shell commands make in the folder of the objects, most of them from the programs: name, and command.
const DERIVED: [(&str, &str); 7] = [
    ("module.ko.gz", "gzip -c module >module.ko.gz"),
    ("module.ko.xz", "xz -c --check=crc32 module >module.ko.xz"),
    ("module.ko.zst", "zstd -q -c module >module.ko.zst"),
    (
        "deep",
        "{ for i in $(seq 200); do printf 'namespace n%d { ' $i; done; printf 'int work(int x) { return x; }'; \
           for i in $(seq 200); do printf ' }'; done; for i in $(seq 200); do printf '\nstruct S%d {' $i; done; printf 'int last;'; \
           for i in $(seq 200); do printf '} m%d; ' $i; done; printf '\nint leaf(int x) { '; \
           for i in $(seq 800); do printf '{ volatile int v%d = x; ' $i; done; \
           for i in $(seq 800); do printf '} '; done; printf ' return x; }\n'; } >deep.cpp && \
         c++ -g -fno-eliminate-unused-debug-types -c -o deep deep.cpp && rm deep.cpp",
    ),
    ("zstd", "objcopy --compress-debug-sections=zstd plain zstd"),
    (
        "linked",
        "objcopy --only-keep-debug workload linked.debug && objcopy -S --add-gnu-debuglink=linked.debug workload linked",
    ),
    (
        "mini",
        "objcopy --strip-debug workload part && xz -f part && \
         objcopy -S --add-section .gnu_debugdata=part.xz workload mini; rm -f part.xz",
    ),
];

impl Seeds {
    /// The seeds in the tree, and those in `folder`, which are made first if they are incomplete.
    pub(crate) fn load(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("a folder can be made");
        let lock = fs::File::create(folder.join("lock")).expect("a file can be made");
        // One process makes the seeds; others wait.
        lock.lock().expect("a file can be locked");
        let seed_folder = folder.join("seeds");
        if !seed_folder.join("complete").exists() {
            let _ = fs::remove_dir_all(&seed_folder);
            make(&seed_folder);
            fs::write(seed_folder.join("complete"), "").expect("a file can be written");
        }
        let mut seeds = Self {
            recordings: read(&seed_folder.join("recordings")),
            objects: read(&seed_folder.join("objects")),
            dumps: read(&seed_folder.join("dumps")),
            images: Vec::new(),
            workload: seed_folder.join("objects/workload").display().to_string(),
        };
        let of_tree = recording_candidates(MAX_SEED_BYTES);
        assert!(!of_tree.is_empty(), "there are recordings in the tree");
        seeds
            .recordings
            .extend(of_tree.iter().map(|path| seed(path)));
        for recording in &mut seeds.recordings {
            recording.is_whole = is_whole(&recording.bytes);
        }
        let (images, objects) = seeds
            .objects
            .into_iter()
            .partition(|seed| seed.name == "vmlinux");
        (seeds.images, seeds.objects) = (images, objects);
        seeds
    }

    /// The object of this name.
    pub(crate) fn object(&self, name: &str) -> Option<&Seed> {
        self.objects.iter().find(|seed| seed.name == name)
    }
}

fn seed(path: &Path) -> Seed {
    let name = path.file_name().unwrap_or_default();
    Seed {
        name: name.to_string_lossy().into_owned(),
        bytes: fs::read(path).expect("a file that was listed"),
        // `Seeds::load` sets it for recordings.
        is_whole: false,
    }
}

fn read(folder: &Path) -> Vec<Seed> {
    let listed = fs::read_dir(folder).expect("a folder that was made");
    let mut paths: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.is_file())
        .map(|path| seed(path))
        .collect()
}

fn is_whole(bytes: &[u8]) -> bool {
    let scratch = rperf_testkit::Scratch::new();
    let path = scratch
        .write("perf.data", bytes)
        .expect("a file can be written");
    let checked = Command::new(execute::BINARY)
        .args(["data", "check", "-f", "-q"])
        .arg(path)
        .output();
    checked.is_ok_and(|done| done.status.success())
}

/// Runs a program for at most a minute. If it fails, prints `failure` and the error; the test continues without the seed.
fn attempt(command: &mut Command, failure: &str) {
    let done = execute::finish(command, Duration::from_secs(60));
    if let Err(error) = done {
        skip_for_lack_of("hostile", &format!("{failure} ({error}): its seeds"));
    }
}

/// A recording of `sched stats record`: two readings of two CPUs with a domain each, in schedstat version 17, without events.
fn statistics() -> Vec<u8> {
    const SCHEDSTAT_CPU: u32 = 85;
    const SCHEDSTAT_DOMAIN: u32 = 86;
    let mut records = Vec::new();
    for time in [1000_u64, 1500] {
        for cpu in 0..2_u32 {
            // The version, and padding (for a CPU) or the number of the domain.
            let fields = || Bytes::new().u64(time).u32(cpu).u16(17).u16(0);
            let words = |count: u32| (0..count).flat_map(|word| (word + 1).to_le_bytes());
            // Six counters of one word each, and three of two words.
            let counters: Vec<u8> = words(12).collect();
            records.extend(record_bytes(SCHEDSTAT_CPU, 0, fields().raw(counters)));
            // 45 counters of one word each, padded to a multiple of 8 bytes.
            let mut counters: Vec<u8> = words(45).collect();
            counters.resize(184, 0);
            records.extend(record_bytes(SCHEDSTAT_DOMAIN, 0, fields().raw(counters)));
        }
    }
    let (header_size, data_size) = (104, records.len() as u64);
    // The header, with an attr size of 160; then the sections of attrs (empty) and of data, both right after the header.
    let file = Bytes::new().raw("PERFILE2").u64(header_size).u64(160);
    let file = file.u64(header_size).u64(0).u64(header_size).u64(data_size);
    // No event types and no features.
    file.raw([0; 16 + 32]).raw(records).done()
}

/// Compiles and records all seeds in `folder`.
fn make(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["objects", "recordings", "dumps"] {
        fs::create_dir_all(folder.join(name)).expect("a folder can be made");
    }
    let objects = folder.join("objects");
    let compile = |source: &str, name: &str, options: &str| {
        let mut compiler = Command::new("c++");
        if source.ends_with(".c") {
            compiler = Command::new("cc");
        }
        // Source paths and the compilation directory become relative: to the working directory of rperf when it reads a mutated
        // seed.
        let prefixes =
            [root, &objects].map(|path| format!("-ffile-prefix-map={}=.", path.display()));
        compiler
            .args(options.split(' '))
            .args(prefixes)
            .args(["-Wl,--build-id", "-o", name]);
        compiler.arg(root.join(source)).current_dir(&objects);
        attempt(
            &mut compiler,
            &format!("{source} cannot be compiled to {name}"),
        );
    };
    fs::write(folder.join("recordings/schedstat"), statistics()).expect("a file can be written");
    compile(
        "tests/hostile/workload.cpp",
        "workload",
        "-g -O1 -fno-omit-frame-pointer",
    );
    compile("tests/workloads/jitdump.c", "jitdump", "-g -O1");
    for (name, source, options) in PROGRAMS {
        let freestanding = "-ffreestanding -nostdlib";
        compile(source, name, &format!("{options} {freestanding}"));
    }
    for (name, command) in DERIVED {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&objects);
        attempt(&mut shell, &format!("{name} cannot be made"));
    }
    record(folder);
}

/// Records programs, and removes recordings that are too large. The last argument of a program determines how long it runs: for
/// the workload the number of rounds, for `jitdump` milliseconds.
fn record(folder: &Path) {
    let workload = folder.join("objects/workload");
    let recordings = folder.join("recordings");
    let rperf = |line: &str| {
        let mut rperf = Command::new(execute::BINARY);
        rperf
            .args(line.split(' '))
            .env("PERF_CONFIG", "/dev/null")
            .current_dir(folder);
        rperf
    };
    for (name, options) in RECORDINGS {
        let file = format!("recordings/{name}.data");
        let options = options.replace('%', &workload.display().to_string());
        let mut command = match name.starts_with("pipe") {
            true => {
                let mut shell = Command::new("sh");
                let line = format!(
                    "'{}' record -q -N {options} -o - '{}' 40 >{file}",
                    execute::BINARY,
                    workload.display()
                );
                shell.args(["-c", &line]).env("PERF_CONFIG", "/dev/null");
                shell.current_dir(folder);
                shell
            }
            false => {
                let mut command = rperf(&format!("record -q -N {options} -o {file}"));
                command.arg(&workload).arg("40");
                command
            }
        };
        attempt(&mut command, &format!("no recording with {options}"));
    }
    let stat =
        "stat record -o recordings/stat.data -e cpu-clock,page-faults,context-switches -I 10";
    for (name, options) in [("stat", ""), ("stat-cpus", " -a -A")] {
        let line = stat.replace("stat.data", &format!("{name}.data"));
        let mut command = rperf(&format!("{line}{options}"));
        command.arg(&workload).arg("20");
        attempt(&mut command, &format!("no recording of {name}"));
    }
    let mut jitted = rperf(
        "record -q -N -o recordings/jit.data -k mono -e cpu-clock:u -F 999 --call-graph dwarf,512",
    );
    jitted
        .arg(folder.join("objects/jitdump"))
        .arg(folder.join("dumps"))
        .arg("30");
    attempt(&mut jitted, "no dump of a run-time compiler");
    for entry in fs::read_dir(recordings)
        .expect("a folder of our own")
        .flatten()
    {
        let is_too_large = entry
            .metadata()
            .is_ok_and(|file| file.len() > 4 * MAX_SEED_BYTES);
        if is_too_large {
            let _ = fs::remove_file(entry.path());
        }
    }
}
