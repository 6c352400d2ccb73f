//! Object files, and the commands that take one.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::case::{Case, CaseInputs};
use crate::elf;
use crate::mutate;
use crate::names;
use crate::random::Random;

/// Command lines for any object. In this list and the following ones, `|` is a blank within an argument.
const COMMANDS: &[&str] = &[
    "probe -x object -F",
    "probe -x object -F * --filter !_*",
    "probe -x object -D %*:*",
    "probe -x object -D malloc",
    "probe -x object -D 0x1000",
    "buildid-list -i object",
    "buildid-cache -v -a object",
    "buildid-cache -v -u object -l",
    "buildid-cache -v -a object -r object -p object -l --max-size 1K",
];

/// Command lines for programs compiled from tests/fuzz/seeds/program.cpp, and for the few objects from other sources that have no
/// list of their own.
const OF_PROGRAM: &[&str] = &[
    "probe -x object -L work",
    "probe -x object -L walk:0-40",
    "probe -x object -L program.cpp:30-60",
    "probe -x object -L work -s ../special",
    "probe -x object -V work",
    "probe -x object -V walk --range --externs",
    "probe -x object -V leaf --no-inlines",
    "probe -x object -V work+4",
    "probe -x object -D work",
    "probe -x object -D work*|$vars",
    "probe -x object -D work|it->name[2]|it->next->number|kind|count",
    "probe -x object -D leaf|twice|n",
    "probe -x object -D walk%return|$retval",
    "probe -x object -D program.cpp:45|step",
    "probe -x object -D program.cpp;sum*|$params",
    "probe -x object -D %sdt_demo:tick",
    "probe -x object -n --cache --add work",
];

/// Command lines for the program compiled from tests/hostile/workload.cpp, and objects derived from it.
const OF_WORKLOAD: &[&str] = &[
    "probe -x object -L main",
    "probe -x object -V main --externs",
    "probe -x object -V recursive --range",
    "probe -x object -D main:3|argc|argv[0]",
    "probe -x object -D recursive|depth|n|total",
    "probe -x object -D add|more",
    "probe -x object -n --cache --add a_function*",
];

/// Command lines for kernel modules.
const OF_MODULE: &[&str] = &[
    "probe -m object -F",
    "probe -m object -V work",
    "probe -m object -D work|$vars",
    "probe -m object -L walk",
    "buildid-list -i object",
    "buildid-cache -v -a object",
];

/// Command lines for the object called `seed`.
fn commands(seed: &str, random: &mut Random) -> &'static [&'static str] {
    let of_source = match seed {
        _ if seed.starts_with("module") => OF_MODULE,
        "workload" | "linked" | "linked.debug" | "mini" => OF_WORKLOAD,
        _ => OF_PROGRAM,
    };
    // OF_MODULE already includes the commands of COMMANDS that suit modules.
    if random.one_in(3) && of_source != OF_MODULE {
        return COMMANDS;
    }
    of_source
}

/// A mutated object, and a command that reads it.
pub(crate) fn damaged(inputs: &mut CaseInputs<'_>) -> Case {
    let (seeds, sandbox) = (inputs.seeds, inputs.sandbox);
    let random = &mut *inputs.random;
    let (Some(seed), Some(other)) = (
        random.try_pick(&seeds.objects),
        random.try_pick(&seeds.objects),
    ) else {
        return super::recordings::damaged(inputs);
    };
    let commands = commands(&seed.name, random);
    let line = *random.pick(commands);
    // The extension of a compressed module.
    let extension = seed
        .name
        .rsplit_once(".ko.")
        .map(|(_, extension)| extension);
    let name = match extension {
        Some(extension) => format!("object.ko.{extension}"),
        None if line.contains("-m object") => "object.ko".to_owned(),
        None => "object".to_owned(),
    };
    let mut case = Case::new("object", &line.replace("object", &name));
    for word in &mut case.words {
        *word = word.replace('|', " ");
    }
    case.may_be_silent = line.starts_with("buildid-cache");
    let mut bytes = elf::mutate(&seed.bytes, &other.bytes, random);
    if extension == Some("gz") && random.one_in(2) {
        // Mutated before the compression, so that decompression succeeds.
        bytes = match seeds.object("module") {
            Some(module) => gzip(&elf::mutate(&module.bytes, &other.bytes, random)),
            None => bytes,
        };
    }
    if random.one_in(20) {
        bytes = seed.bytes.clone();
        // The number of bytes that may change: gzip's magic number has two, and a change of the flags after it may be no error.
        let size = if extension == Some("gz") { 2 } else { 4 };
        bytes[random.below(size)] ^= 1 << random.below(8);
        case.must_report_error = Some("another magic number");
    }
    if let Some(split) = seeds
        .object("split-program.dwo")
        .filter(|_| seed.name == "split")
    {
        let mut split = split.bytes.clone();
        if random.one_in(2) {
            split = elf::mutate(&split, &other.bytes, random);
        }
        sandbox.write("split-program.dwo", split);
    }
    if line.contains(" -L") {
        let mut source = include_bytes!("../../fuzz/seeds/program.cpp").to_vec();
        if random.one_in(3) {
            mutate::text(&mut source, &seed.bytes, random);
        }
        sandbox.write("tests/fuzz/seeds/program.cpp", source);
    }
    // Not `buildid-list`: it accepts a FIFO (a recording from a pipe), and would wait for a writer. The others refuse one.
    if random.one_in(20) && !line.starts_with("buildid-list") {
        let special = random.pick(&[names::FIFO, names::LOOP, names::FOLDER]);
        for word in &mut case.words {
            *word = word.replace(&name, special);
        }
        case.must_report_error = None;
        case.may_be_misused = true;
    }
    sandbox.write(&name, bytes);
    case
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}
