//! `--debuginfod`: symbols and lines from a server on the loopback interface.

use std::fs;

use rperf_testkit::{HttpResponse, HttpServer, Outcome, Run, Scratch, skip};

use super::{rperf, without_notes};
use crate::kernel::rperf_in;

const PROGRAM: &str = "\
static volatile unsigned long sum;
static __attribute__((noinline)) void add_up(void)
{
    for (unsigned long i = 0; i < 100000000; i++)
        sum += i;
}
int main(void)
{
    add_up();
    return 0;
}
";

/// A stripped program and its debug file, as distributions package them, and a recording of the program.
struct StrippedProgram {
    scratch: Scratch,
    /// The build ID of the program, in hexadecimal.
    id: String,
    executable: Vec<u8>,
    debuginfo: Vec<u8>,
}

impl StrippedProgram {
    /// Builds and records the program; `None`, with a printed reason, if that is impossible.
    fn build_and_record(test: &str) -> Option<Self> {
        let scratch = Scratch::new();
        scratch.write("prog.c", PROGRAM).expect("a file");
        for words in [
            &["gcc", "-g", "-O1", "-Wl,--build-id", "-o", "prog", "prog.c"][..],
            &["objcopy", "--only-keep-debug", "prog", "prog.debug"],
            &["strip", "prog"],
        ] {
            let (tool, words) = words.split_first().expect("a tool");
            let outcome = Run::new(tool).args(words).within(scratch.path()).finish();
            if !outcome.as_ref().is_ok_and(|outcome| outcome.status == 0) {
                skip(test, &format!("{tool}: {outcome:?}"));
                return None;
            }
        }
        let words = [
            "record",
            "-o",
            "perf.data",
            "-q",
            "-N",
            "-e",
            "cpu-clock:u",
            "-F",
            "2000",
            "./prog",
        ];
        let recorded = rperf_in(&scratch, &words).finish().expect("rperf starts");
        if recorded.status != 0 {
            skip(test, &recorded.stderr);
            return None;
        }
        let listed = rperf(&["buildid-list", "-i", "prog"]).within(scratch.path());
        let id = listed.finish().expect("rperf starts").stdout;
        let bytes = |name| fs::read(scratch.path().join(name)).expect("it was made");
        Some(Self {
            id: id.trim().to_owned(),
            executable: bytes("prog"),
            debuginfo: bytes("prog.debug"),
            scratch,
        })
    }

    /// A server that has both files.
    fn server(&self) -> HttpServer {
        let files = [
            (self.url_path("executable"), self.executable.clone()),
            (self.url_path("debuginfo"), self.debuginfo.clone()),
        ];
        let server = HttpServer::start(move |path| {
            let file = files.iter().find(|(url_path, _)| url_path == path);
            file.map_or(HttpResponse::Status(404), |(_, bytes)| {
                HttpResponse::content(bytes.clone())
            })
        });
        server.expect("a server on the loopback interface")
    }

    /// The path of a file of the program in a server's URLs.
    fn url_path(&self, part: &str) -> String {
        format!("/buildid/{}/{part}", self.id)
    }

    fn run(&self, words: &[&str]) -> Outcome {
        let unchanged = |run| run;
        self.run_with(words, unchanged)
    }

    fn run_with(&self, words: &[&str], configure: impl Fn(Run) -> Run) -> Outcome {
        let run = configure(rperf_in(&self.scratch, words));
        let outcome = run.finish().expect("rperf starts");
        assert_eq!(outcome.status, 0, "{outcome:?}");
        outcome
    }
}

const REPORT: [&str; 5] = ["report", "-q", "--stdio", "-s", "sym"];

#[test]
fn servers_provide_names_and_lines() {
    const TEST: &str = "commands::debuginfod::servers_provide_names_and_lines";
    let Some(program) = StrippedProgram::build_and_record(TEST) else {
        return;
    };
    let server = program.server();
    let option = format!("--debuginfod={}", server.url());
    let has_name = |outcome: &Outcome| outcome.stdout.contains("[.] add_up");
    assert!(!has_name(&program.run(&REPORT)));
    assert!(!has_name(&program.run_with(&REPORT, |run| {
        run.env("DEBUGINFOD_URLS", server.url())
    })));
    assert_eq!(server.requested_paths(), [""; 0], "no request was sent");
    let fetched = program.run(&[&REPORT[..], &[&option]].concat());
    assert!(has_name(&fetched), "{fetched:?}");
    assert_eq!(fetched.stderr, "");
    assert!(
        server
            .requested_paths()
            .contains(&program.url_path("debuginfo"))
    );
    assert!(
        !server
            .requested_paths()
            .contains(&program.url_path("executable")),
        "that file is on this machine"
    );
    // Downloaded files are put into the cache that libdebuginfod uses.
    let cached = format!(".cache/debuginfod_client/{}/debuginfo", program.id);
    assert!(program.scratch.path().join(cached).is_file());
    let before = server.requested_paths().len();
    assert_eq!(program.run(&[&REPORT[..], &[&option]].concat()), fetched);
    assert_eq!(server.requested_paths().len(), before);
    // Without the program, and with the servers given by the environment; blanks around a URL are ignored.
    fs::remove_file(program.scratch.path().join("prog")).expect("it is there");
    let words = ["script", "-F", "ip,sym,srcline", "--debuginfod"];
    let cache = program.scratch.path().join("another/cache");
    let script = program.run_with(&words, |run| {
        let run = run.env("DEBUGINFOD_URLS", format!(" {} ", server.url()));
        run.env("DEBUGINFOD_CACHE_PATH", &cache)
    });
    assert!(script.stdout.contains(" add_up\n  prog.c:"), "{script:?}");
    for part in ["debuginfo", "executable"] {
        assert!(cache.join(&program.id).join(part).is_file(), "{part}");
    }
}

#[test]
fn debug_files_of_objects_added_to_the_cache_are_downloaded() {
    const TEST: &str =
        "commands::debuginfod::debug_files_of_objects_added_to_the_cache_are_downloaded";
    let Some(program) = StrippedProgram::build_and_record(TEST) else {
        return;
    };
    let server = program.server();
    let (first, rest) = program.id.split_at(2);
    // In the build-id cache, not in the cache of downloads.
    let cached = program.scratch.path().join(".debug/.build-id");
    let cached = cached.join(first).join(rest).join("debug");
    let settings = format!("[buildid-cache]\n\tdebuginfod = {}\n", server.url());
    let config = program.scratch.write("config", settings);
    let config = config.expect("a file");
    let add = ["buildid-cache", "-a", "prog"];
    for (option, config) in [
        (&[][..], Some(&config)),
        (&[&*format!("--debuginfod={}", server.url())], None),
    ] {
        let words = [&add[..], option].concat();
        let outcome = program.run_with(&words, |run| match config {
            Some(config) => run.env("PERF_CONFIG", config),
            None => run,
        });
        assert_eq!((&*outcome.stdout, &*outcome.stderr), ("", ""));
        assert!(fs::read(&cached).expect("it is there") == program.debuginfo);
        // Removes all objects from the build-id cache.
        program.run(&["buildid-cache", "-P"]);
    }
    // One request: the second time, the file is in the cache of downloads, which `-P` does not clear.
    assert_eq!(server.requested_paths(), [program.url_path("debuginfo")]);
}

#[test]
fn an_unreachable_server_is_reported_once() {
    const TEST: &str = "commands::debuginfod::an_unreachable_server_is_reported_once";
    let Some(program) = StrippedProgram::build_and_record(TEST) else {
        return;
    };
    let without = program.run(&REPORT);
    // The server is dropped here, which stops it.
    let stopped = program.server().url();
    let option = format!("--debuginfod={stopped}");
    let outcome = program.run(&[&REPORT[..], &[&option]].concat());
    assert_eq!(outcome.stdout, without.stdout);
    // -q suppresses warnings.
    assert_eq!(outcome.stderr, "");
    let outcome = program.run(&["report", "--stdio", &option]);
    let message =
        format!("Warning: debuginfod server {stopped} cannot be used: Connection refused\n");
    assert_eq!(without_notes(&outcome.stderr), message);
}

#[test]
fn invalid_server_urls_are_refused() {
    let scratch = Scratch::new();
    let refused = |words: &[&str]| {
        let outcome = rperf_in(&scratch, words).finish().expect("rperf starts");
        assert_eq!((outcome.status, &*outcome.stdout), (129, ""), "{outcome:?}");
        outcome.stderr
    };
    let none = "--debuginfod: no server given\nhint: give one with --debuginfod=URL, or set DEBUGINFOD_URLS\n";
    assert_eq!(refused(&["report", "--debuginfod"]), none);
    let bad = "'ftp://one' is not the address of a debuginfod server: it begins with neither http:// nor https://\n";
    assert_eq!(refused(&["script", "--debuginfod=ftp://one"]), bad);
}
