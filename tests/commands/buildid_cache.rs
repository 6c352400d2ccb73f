//! `rperf buildid-cache`: a cache that both tools share, messages, concurrent runs, copies of kcore, and limits.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use rperf_testkit::{Bytes, Outcome, Run, Scratch};

use super::generated_files::kcore;
use super::rperf;
use crate::tidy::root;
use crate::tools::{BOTH, Tool, Tools};

/// All paths below a folder, with the targets of links.
fn tree(root: &Path) -> Vec<(PathBuf, Option<PathBuf>)> {
    let mut paths = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry.expect("an entry can be read");
            let path = entry.path();
            if entry.file_type().expect("it has a type").is_dir() {
                folders.push(path.clone());
            }
            let relative = path.strip_prefix(root).expect("it is below").to_owned();
            paths.push((relative, fs::read_link(&path).ok()));
        }
    }
    paths.sort();
    paths
}

#[test]
fn both_tools_create_and_read_the_same_tree() {
    let Some(tools) = Tools::find_for("both_tools_create_and_read_the_same_tree") else {
        return;
    };
    let (cache, program) = (tools.path().join(".debug"), tools.path().join("prog"));
    fs::copy("/bin/sh", &program).expect("a program can be copied");
    let args = ["buildid-cache", "-a", "prog,/bin/ls"];
    let trees = BOTH.map(|tool| {
        let _ = fs::remove_dir_all(&cache);
        let outcome = tools.outcome(tool, &args);
        assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{tool:?}");
        tools.assert_same(&["buildid-cache", "-l"]);
        tree(&cache)
    });
    assert_eq!(trees[0], trees[1]);
    // One tool adds an object, the other removes it. perf leaves folders and links behind, so its tree is not checked.
    for (adds, removes) in [(Tool::Perf, Tool::Rperf), (Tool::Rperf, Tool::Perf)] {
        for option in ["-r", "-p"] {
            let _ = fs::remove_dir_all(&cache);
            assert_eq!(
                tools.outcome(adds, &["buildid-cache", "-a", "prog"]).status,
                0
            );
            let outcome = tools.outcome(removes, &["buildid-cache", option, "prog"]);
            assert_eq!(outcome.status, 0, "{outcome:?}");
            assert_eq!(tools.assert_same(&["buildid-cache", "-l"]), "");
            if removes == Tool::Rperf {
                assert_eq!(tree(&cache), []);
            }
        }
    }
}

/// USDT probes of added programs are listed by `rperf list`.
#[test]
fn usdt_probes_are_listed_from_the_cache() {
    let Some(tools) = Tools::find_for("usdt_probes_are_listed_from_the_cache") else {
        return;
    };
    let source = root().join("tests/workloads/marked.c");
    let compiled = Run::new("cc").args(["-O2", "-o", "marked"]).args([source]);
    let compiled = compiled.within(tools.path()).finish();
    assert_eq!(compiled.expect("cc starts").status, 0);
    let cache = tools.path().join(".debug");
    let probe_lists = BOTH.map(|tool| {
        let _ = fs::remove_dir_all(&cache);
        let added = tools.outcome(tool, &["buildid-cache", "-a", "marked"]);
        assert_eq!((added.status, &*added.stderr), (0, ""), "{tool:?}");
        let text = tools.assert_same(&["list", "sdt"]);
        let row = format!("  {:<50} [SDT event]", "sdt_demo:tick");
        assert_eq!(text.trim_end(), row, "{tool:?}");
        let files = tree(&cache);
        let list = files.iter().find(|(path, _)| path.ends_with("probes"));
        let list = cache.join(&list.expect("there is a list").0);
        let probes = fs::read_to_string(&list).expect("a text");
        // 'perf list' leaves an empty list, as written here, for objects that were never searched for USDT markers. rperf
        // fills it when the object is added again.
        fs::write(&list, "").expect("it is writable");
        let again = tools.outcome(tool, &["buildid-cache", "-a", "marked"]);
        if tool == Tool::Rperf {
            assert_eq!(again.status, 0, "{again:?}");
            assert_eq!(fs::read_to_string(list).expect("a text"), probes);
        }
        probes
    });
    let output = tools.outcome(Tool::Rperf, &["list", "-v", "sdt"]).stdout;
    let location = format!(
        "in {}: 1 location with ",
        tools.path().join("marked").display()
    );
    assert!(output.contains(&location), "{output}");
    let [theirs, ours] = probe_lists;
    assert!(theirs.contains("\np:sdt_demo/tick /"), "{theirs}");
    // perf omits arguments with constant values.
    assert_eq!(
        theirs.trim_end(),
        ours.replace(" arg3=\\9:u32", "").trim_end()
    );
}

#[test]
fn missing_objects_are_listed() {
    let Some(tools) = Tools::find_for("missing_objects_are_listed") else {
        return;
    };
    let args = ["-e", "cpu-clock", "-F", "20000", "ls", "/usr/bin"];
    let file = tools
        .record(Tool::Perf, "missing-objects", &args)
        .expect("perf records");
    let all = tools
        .outcome(Tool::Rperf, &["buildid-list", "-i", &file])
        .stdout;
    assert!(all.lines().count() > 1, "{all}");
    let missing = |args: &[&str]| {
        let args = [&["buildid-cache", "-M", &file], args].concat();
        let outcome = tools.outcome(Tool::Rperf, &args);
        assert_eq!((outcome.status, &*outcome.stderr), (0, ""));
        outcome.stdout
    };
    // perf has filled the cache while recording, except for the vdso, which has no file.
    let remaining = missing(&[]);
    assert!(
        remaining.lines().all(|line| line.ends_with(" [vdso]")),
        "{remaining}"
    );
    fs::remove_dir_all(tools.path().join(".debug")).expect("there is a cache");
    assert_eq!(missing(&[]), all);
}

/// Runs `rperf buildid-cache` in a folder that is also its home.
fn run(scratch: &Scratch, args: &[&str]) -> Outcome {
    let run = rperf(&[&["buildid-cache"], args].concat());
    let run = run.within(scratch.path()).env("HOME", scratch.path());
    run.finish().expect("rperf starts")
}

#[test]
fn verbose_prints_each_change() {
    let scratch = Scratch::new();
    let program = scratch.path().join("prog");
    fs::copy("/bin/sh", &program).expect("a program can be copied");
    let listed = rperf(&["buildid-list", "-i", "prog"]).within(scratch.path());
    let id = listed.finish().expect("rperf starts").stdout;
    let id = id.trim();
    let home = scratch.path().display();
    for (args, message) in [
        (&["-v", "-a", "prog"][..], format!("Adding {id} prog: Ok\n")),
        (&["-v", "-u", "prog"], format!("Updating {id} prog: Ok\n")),
        (&["-v", "-r", "prog"], format!("Removing {id} prog: Ok\n")),
        (
            &["-v", "-r", "prog"],
            format!("Couldn't remove prog: {id} is not in the cache\n"),
        ),
        (
            &["-v", "-p", "prog"],
            "Couldn't purge prog: no build of it is cached\n".to_owned(),
        ),
    ] {
        let outcome = run(&scratch, args);
        let stderr = format!("build-id cache: {home}/.debug\n{message}");
        assert_eq!((outcome.stdout.as_str(), outcome.stderr), ("", stderr));
        assert_eq!(outcome.status, i32::from(message.starts_with("Couldn't")));
    }
    assert_eq!(run(&scratch, &["-a", "prog"]).status, 0);
    let cached = scratch.path().join(".debug/.build-id");
    let cached = cached.join(&id[..2]).join(&id[2..]).join("elf");
    let links = fs::metadata(&cached).expect("it is cached").nlink();
    assert_eq!(links, 2, "one file under two names");
    let purged = run(&scratch, &["-P"]);
    assert_eq!((purged.status, &*purged.stderr), (0, ""));
    assert_eq!(tree(&scratch.path().join(".debug")), []);
}

/// Several processes change and list one cache concurrently: all files in it are complete.
#[test]
fn concurrent_runs_leave_complete_files() {
    let scratch = Scratch::new();
    // The cache gets a hard link to `prog`. Files of the system are copied if they are on another file system.
    fs::copy("/bin/ls", scratch.path().join("prog")).expect("a program can be copied");
    let adds = ["-a", "prog,/bin/sh,/bin/cat"];
    assert_eq!(run(&scratch, &adds).status, 0);
    let cache = scratch.path().join(".debug");
    let expected = tree(&cache);
    assert_eq!(run(&scratch, &["-P"]).status, 0);

    let run_concurrently = |args: &'static [&'static str]| {
        let all: Vec<Outcome> = thread::scope(|scope| {
            let workers: Vec<_> = (0..6)
                .map(|_| scope.spawn(|| run(&scratch, args)))
                .collect();
            let results = workers.into_iter().map(|worker| worker.join());
            results.map(|result| result.expect("no panic")).collect()
        });
        for outcome in all {
            assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{args:?}");
        }
    };
    run_concurrently(&["-a", "prog,/bin/sh,/bin/cat"]);
    assert_eq!(tree(&cache), expected);
    let record = ["record", "-q", "-e", "cpu-clock", "-F", "20000", "-o"];
    thread::scope(|scope| {
        for file in ["first.data", "second.data", "third.data"] {
            let args = [&record[..], &[file, "ls", "/usr/bin"]].concat();
            let scratch = &scratch;
            scope.spawn(move || {
                let run = rperf(&args).within(scratch.path());
                let outcome = run.env("HOME", scratch.path()).finish();
                let outcome = outcome.expect("rperf starts");
                assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{args:?}");
            });
        }
        scope.spawn(|| run(&scratch, &["-u", "prog,/bin/sh"]));
        scope.spawn(|| run(&scratch, &["-l"]));
    });
    let listed = run(&scratch, &["-l"]).stdout;
    assert!(listed.lines().count() > 1, "{listed}");
    for line in listed.lines() {
        let (id, path) = line.split_once(' ').expect("an id and a path");
        // The kernel and the vdso have no file.
        if path.starts_with('/') {
            let cached = cache.join(".build-id").join(&id[..2]).join(&id[2..]);
            let cached = fs::read(cached.join("elf")).expect("it is cached");
            assert!(cached == fs::read(path).expect("it is there"), "{line}");
        }
    }
    let is_content = |name: &OsStr| {
        let names = ["elf", "debug", "kallsyms", "vdso", "probes"];
        names.iter().any(|known| name == *known)
    };
    for (path, target) in tree(&cache) {
        let file = cache.join(&path);
        assert!(file.exists(), "{} is a dangling link", path.display());
        let name = path.file_name().expect("a name");
        let is_expected = target.is_some() || file.is_dir() || is_content(name);
        assert!(is_expected, "{}", path.display());
    }
}

#[test]
fn files_are_read_in_the_namespace_of_a_process() {
    let scratch = Scratch::new();
    let program = fs::canonicalize("/bin/sh").expect("there is a shell");
    let own_pid = std::process::id().to_string();
    for add in [
        &["--target-ns", &own_pid, "-a", "/bin/sh"][..],
        &["-a", "/bin/sh"],
    ] {
        let outcome = run(&scratch, add);
        assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{add:?}");
        let listed = run(&scratch, &["-l"]).stdout;
        let named = format!(" {}\n", program.display());
        assert!(
            listed.ends_with(&named) && listed.lines().count() == 1,
            "{listed}"
        );
    }
    let removed = run(&scratch, &["--target-ns", &own_pid, "-r", "/bin/sh"]);
    assert_eq!((removed.status, &*run(&scratch, &["-l"]).stdout), (0, ""));
    // There is no such process: pid_max is at most 4194304.
    let no_process = run(&scratch, &["--target-ns", "4194305", "-a", "/bin/sh"]);
    let stderr = "--target-ns 4194305: No such file or directory\n";
    assert_eq!((no_process.status, &*no_process.stderr), (1, stderr));
}

#[test]
fn files_that_cannot_be_added_are_named_and_the_rest_is_added() {
    let scratch = Scratch::new();
    scratch.write("text", "no program").expect("a file");
    let outcome = run(&scratch, &["-a", "nofile,text,/bin/sh"]);
    let stderr =
        "Couldn't add nofile: No such file or directory\nCouldn't add text: it has no build-id\n";
    assert_eq!((outcome.status, &*outcome.stderr), (1, stderr));
    assert_eq!(run(&scratch, &["-l"]).stdout.lines().count(), 1);
    let nothing = run(&scratch, &[]);
    assert_eq!((nothing.status, &*nothing.stdout), (129, ""));
    let no_cache = rperf(&["--buildid-dir", "/dev/null", "buildid-cache", "-l"]);
    let no_cache = no_cache.finish().expect("rperf starts");
    assert_eq!((no_cache.status, &*no_cache.stdout), (255, ""));
    assert!(no_cache.stderr.starts_with(
        "no build-id cache: its directory is unknown, or it is disabled (/dev/null)\n"
    ));
}

/// The files of kcore copies in the cache: path with the timestamp masked, mode, content.
fn kcore_copies(cache: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let is_time = |name: &str| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_digit());
    let files = tree(cache)
        .into_iter()
        .filter(|(below, _)| cache.join(below).is_file());
    files
        .map(|(below, _)| {
            let path = cache.join(&below);
            let parts = below
                .components()
                .map(|part| part.as_os_str().to_string_lossy());
            let parts = parts.map(|part| if is_time(&part) { "TIME".into() } else { part });
            let name: Vec<_> = parts.collect();
            let mode = fs::metadata(&path).expect("it is there").mode();
            (
                name.join("/"),
                mode,
                fs::read(&path).expect("it can be read"),
            )
        })
        .collect()
}

#[test]
fn kcore_is_cached_as_perf_does() {
    let Some(tools) = Tools::find_for("kcore_is_cached_as_perf_does") else {
        return;
    };
    let root = tools.path().join("root");
    fs::create_dir_all(root.join("sys/kernel")).expect("a folder in scratch");
    fs::create_dir_all(root.join("proc")).expect("a folder in scratch");
    // A build-id note: n_namesz, n_descsz, NT_GNU_BUILD_ID, name and build-id.
    let notes = Bytes::new()
        .u32(4)
        .u32(20)
        .u32(3)
        .raw(b"GNU\0")
        .raw([0xab; 20]);
    let listing =
        "ffffffff81000010 T _stext\nffffffff81002008 T _etext\nffffffffc0005000 t f\t[m]\n";
    let modules = "m 8192 0 - Live 0xffffffffc0004000\n";
    let write = |path: &str, bytes: &[u8]| fs::write(root.join(path), bytes).expect("a file");
    write("sys/kernel/notes", &notes.done());
    write("proc/kallsyms", listing.as_bytes());
    write("proc/modules", modules.as_bytes());
    // The module's two pages are in `module_segment`, at 0x4000.
    let bytes = |len: usize| (0..len).map(|at| (at >> 4) as u8).collect();
    let module_segment = (0xffff_ffff_c000_0000, bytes(0x10000));
    let kernel_segment = (0xffff_ffff_8100_0000, bytes(0x3800));
    write("proc/kcore", &kcore(&[kernel_segment, module_segment]));
    let cache = tools.path().join(".debug");
    let add = ["buildid-cache", "-v", "-k", "root/proc/kcore"];
    let copies = BOTH.map(|tool| {
        let _ = fs::remove_dir_all(&cache);
        for message in [
            "kcore added to build-id cache directory ",
            "same kcore found in ",
        ] {
            let outcome = tools.outcome(tool, &add);
            assert_eq!(outcome.status, 0, "{tool:?}");
            assert!(
                outcome.stderr.contains(message),
                "{tool:?} {}",
                outcome.stderr
            );
        }
        kcore_copies(&cache)
    });
    let [perf, rperf] = &copies;
    assert_eq!((perf.len(), rperf.len()), (3, 3));
    for (theirs, ours) in perf.iter().zip(rperf) {
        assert_eq!((&theirs.0, theirs.1), (&ours.0, ours.1));
        assert!(theirs.2 == ours.2, "{} differs", ours.0);
    }
    // -f adds another copy of the same kcore.
    let again = [&add[..], &["-f"]].concat();
    assert_eq!(tools.outcome(Tool::Rperf, &again).status, 0);
    assert_eq!(kcore_copies(&cache).len(), 6);
    let missing = tools.outcome(Tool::Rperf, &["buildid-cache", "-k", "gone/kcore"]);
    assert_eq!(missing.status, 1, "{missing:?}");
    assert!(
        missing.stderr.contains("Couldn't add gone/kcore: "),
        "{missing:?}"
    );
}

/// `--max-age` removes objects that were not used for the given time, and `--max-size` removes objects until the cache is no
/// larger than the given size. The remaining size is printed.
#[test]
fn caches_are_limited_by_size_and_age() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let run = |args: &[&str]| run(&scratch, args);
    for (name, size) in [("old", 300_000), ("new", 200_000)] {
        let source = format!("char data[{size}] = {{ 1 }}; int main(void) {{ return 0; }}\n");
        fs::write(folder.join("data.c"), source).expect("a source");
        let args = ["-Wl,--build-id", "-o", name, "data.c"];
        let compiler = std::process::Command::new("cc")
            .args(args)
            .current_dir(folder)
            .status();
        assert!(compiler.expect("a compiler").success());
        assert_eq!(run(&["-a", name]).status, 0);
    }
    // The files in the cache are hard links to the programs, which get these times too.
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let times = fs::FileTimes::new()
        .set_accessed(long_ago)
        .set_modified(long_ago);
    for (path, _) in tree(&folder.join(".debug")) {
        let path = folder.join(".debug").join(path);
        let is_old = path.display().to_string().contains("/old/") && path.is_file();
        if is_old {
            let file = fs::File::options().write(true).open(path).expect("a file");
            file.set_times(times).expect("its times");
        }
    }
    // Each printed size is rounded up to 0.1 MB.
    let within_limit = run(&["--max-size", "1G"]);
    let message = "build-id cache: 2 objects, 0.6 MB; removed: 0 objects, 0.0 MB\n";
    assert_eq!((within_limit.status, &*within_limit.stderr), (0, message));
    let none_too_old = run(&["--max-age", "20000d"]);
    assert!(
        none_too_old
            .stderr
            .ends_with("removed: 0 objects, 0.0 MB\n"),
        "{}",
        none_too_old.stderr
    );
    let one_too_old = run(&["-v", "--max-age", "30d"]);
    assert_eq!(one_too_old.status, 0, "{}", one_too_old.stderr);
    assert!(
        one_too_old
            .stderr
            .contains("/old: Ok\nbuild-id cache: 1 object, 0.3 MB; removed: 1 object, 0.4 MB\n"),
        "{}",
        one_too_old.stderr
    );
    let remaining = run(&["-l"]).stdout;
    assert!(
        remaining.ends_with("/new\n") && remaining.lines().count() == 1,
        "{remaining}"
    );
    let too_large = run(&["--max-size", "100k"]);
    let message = "build-id cache: 0 objects, 0.0 MB; removed: 1 object, 0.3 MB\n";
    assert_eq!((too_large.status, &*too_large.stderr), (0, message));
    assert_eq!(run(&["-l"]).stdout, "");
}

#[test]
fn invalid_limits_are_refused() {
    let scratch = Scratch::new();
    for (option, value) in [("--max-age", "30"), ("--max-size", "none")] {
        let refused = run(&scratch, &[option, value]);
        assert_eq!(refused.status, 129, "{refused:?}");
        assert!(refused.stderr.starts_with(option), "{refused:?}");
    }
}
