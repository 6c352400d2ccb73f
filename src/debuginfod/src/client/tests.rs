//! Against servers on the loopback interface.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rperf_testkit::{Answer, HttpServer, Scratch};

use super::*;

/// What a client said.
#[derive(Default, Clone)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Watch for Heard {
    fn progress(&self, progress: &Progress<'_>) {
        if Some(progress.received) == progress.total {
            let object = progress.object.display();
            self.push(format!("{object}: all {} bytes", progress.received));
        }
    }

    fn ended(&self) {
        self.push("ended".to_owned());
    }

    fn failed(&self, error: &Error) {
        let source = std::error::Error::source(error);
        let source = source
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        self.push(format!("{error}{source}"));
    }
}

/// A file with a build-id: this program.
fn own() -> (Vec<u8>, BuildId) {
    let bytes = std::fs::read("/proc/self/exe").unwrap();
    let id = build_id_of_elf(&bytes).expect("tests are linked with a build-id");
    (bytes, id)
}

fn settings(servers: &[&str], cache: &Scratch) -> Settings {
    Settings {
        servers: Server::list(&servers.join(" ")).unwrap(),
        cache: cache.path().join("cache"),
        limits: Limits {
            stall: Some(Duration::from_secs(20)),
            ..Limits::default()
        },
        authorities: Vec::new(),
    }
}

fn wanted(build_id: &BuildId, part: Part) -> Wanted<'_> {
    Wanted {
        build_id,
        part,
        object: Path::new("/bin/prog"),
    }
}

#[test]
fn a_file_is_fetched_once_and_kept() {
    let (bytes, id) = own();
    let sent = bytes.clone();
    let modified = &["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"];
    let server = HttpServer::start(move |_| Answer::File(sent.clone(), modified)).unwrap();
    let (scratch, heard) = (Scratch::new(), Heard::default());
    let client = Client::new(settings(&[&server.url()], &scratch), heard.clone());
    let path = client
        .find(&wanted(&id, Part::Debuginfo))
        .expect("it is there");
    let expected = scratch.path().join(format!("cache/{id}/debuginfo"));
    assert_eq!(path, expected);
    assert!(std::fs::read(&path).unwrap() == bytes);
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let seconds = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(seconds.as_secs(), 784_111_777);
    let all = format!("/bin/prog: all {} bytes", bytes.len());
    assert_eq!(heard.take(), [all, "ended".to_owned()]);
    // Neither this client nor another asks again, not even one without servers.
    assert!(client.find(&wanted(&id, Part::Debuginfo)).is_some());
    let other = Client::new(settings(&[], &scratch), heard.clone());
    assert_eq!(other.find(&wanted(&id, Part::Debuginfo)), Some(path));
    assert_eq!(server.questions(), [format!("/buildid/{id}/debuginfo")]);
    assert_eq!(heard.take(), [""; 0]);
    assert!(client.find(&wanted(&id, Part::Executable)).is_some());
    assert_eq!(server.questions().len(), 2);
}

#[test]
fn the_next_server_is_asked_where_one_has_nothing() {
    let (bytes, id) = own();
    let empty = HttpServer::start(|_| Answer::Status(404)).unwrap();
    let full = HttpServer::start(move |_| Answer::File(bytes.clone(), &[])).unwrap();
    let (scratch, heard) = (Scratch::new(), Heard::default());
    let both = settings(&[&empty.url(), &full.url()], &scratch);
    let client = Client::new(both, heard.clone());
    assert!(client.find(&wanted(&id, Part::Debuginfo)).is_some());
    assert_eq!((empty.questions().len(), full.questions().len()), (1, 1));
    // What nobody has is noted, for elfutils and for the next run.
    let scratch = Scratch::new();
    for _ in 0..2 {
        let client = Client::new(settings(&[&empty.url()], &scratch), heard.clone());
        assert_eq!(client.find(&wanted(&id, Part::Debuginfo)), None);
        assert_eq!(client.find(&wanted(&id, Part::Debuginfo)), None);
    }
    assert_eq!(empty.questions().len(), 2);
    let note = scratch.path().join(format!("cache/{id}/debuginfo"));
    assert_eq!(std::fs::metadata(note).unwrap().len(), 0);
}

#[test]
fn what_is_not_what_was_asked_for_is_not_kept() {
    let (bytes, _) = own();
    let half = bytes.clone();
    let other = BuildId::from_bytes(&[7; 20]).unwrap();
    let wrong = HttpServer::start(move |_| Answer::File(bytes.clone(), &[])).unwrap();
    let cut = HttpServer::start(move |_| Answer::Half(half.clone())).unwrap();
    let text = HttpServer::start(|_| Answer::File(b"<html>".to_vec(), &[])).unwrap();
    let (scratch, heard) = (Scratch::new(), Heard::default());
    for (server, said) in [
        (&wrong, "its build-id is "),
        (&cut, "cannot be used: "),
        (&text, "its build-id is missing"),
    ] {
        let client = Client::new(settings(&[&server.url()], &scratch), heard.clone());
        assert_eq!(client.find(&wanted(&other, Part::Debuginfo)), None);
        assert_eq!(client.find(&wanted(&other, Part::Debuginfo)), None);
        let lines = heard.take();
        let found: Vec<_> = lines.iter().filter(|line| line.contains(said)).collect();
        assert_eq!(found.len(), 1, "{lines:?}");
        assert_eq!(server.questions().len(), 1);
        assert!(!scratch.path().join(format!("cache/{other}")).exists());
    }
}

#[test]
fn a_server_that_fails_is_said_once_and_left_alone() {
    let (bytes, id) = own();
    let broken = HttpServer::start(|_| Answer::Status(500)).unwrap();
    let good = HttpServer::start(move |_| Answer::File(bytes.clone(), &[])).unwrap();
    // Nobody listens where a server was a moment ago.
    let gone = HttpServer::start(|_| Answer::Silence).unwrap().url();
    let (scratch, heard) = (Scratch::new(), Heard::default());
    let servers = settings(&[&gone, &broken.url(), &good.url()], &scratch);
    let client = Client::new(servers, heard.clone());
    assert!(client.find(&wanted(&id, Part::Debuginfo)).is_some());
    assert!(client.find(&wanted(&id, Part::Executable)).is_some());
    let mut lines = heard.take();
    lines.retain(|line| line.starts_with("debuginfod"));
    assert!(
        matches!(&lines[..], [first, second] if first.contains("Connection refused") && second.ends_with("it answers with status 500")),
        "{lines:?}"
    );
    assert_eq!(broken.questions().len(), 1);
}

#[test]
fn time_and_size_are_limited() {
    let (bytes, id) = own();
    let size = bytes.len() as u64;
    let silent = HttpServer::start(|_| Answer::Silence).unwrap();
    let slow = HttpServer::start(|_| Answer::Drops).unwrap();
    let good = HttpServer::start(move |_| Answer::File(bytes.clone(), &[])).unwrap();
    let short = Duration::from_millis(300);
    let cases = [
        (
            &silent,
            Limits {
                stall: Some(short),
                ..Limits::default()
            },
            "less than 100 kB in 0.3 s",
        ),
        (
            &slow,
            Limits {
                stall: Some(short),
                ..Limits::default()
            },
            "less than 100 kB in 0.3 s",
        ),
        (
            &slow,
            Limits {
                whole: Some(short),
                ..Limits::default()
            },
            "not complete after 0.3 s",
        ),
        (
            &good,
            Limits {
                size: Some(size - 1),
                ..Limits::default()
            },
            "larger than",
        ),
    ];
    for (server, limits, said) in cases {
        let (scratch, heard) = (Scratch::new(), Heard::default());
        let settings = settings(&[&server.url()], &scratch);
        let client = Client::new(Settings { limits, ..settings }, heard.clone());
        let started = Instant::now();
        assert_eq!(client.find(&wanted(&id, Part::Debuginfo)), None);
        assert!(started.elapsed() < Duration::from_secs(15));
        let lines = heard.take();
        assert!(lines.iter().any(|line| line.contains(said)), "{lines:?}");
    }
}

#[test]
fn a_cache_that_cannot_be_written_ends_the_search() {
    let (bytes, id) = own();
    let server = HttpServer::start(move |_| Answer::File(bytes.clone(), &[])).unwrap();
    let (scratch, heard) = (Scratch::new(), Heard::default());
    scratch.write("cache", "a file").unwrap();
    let client = Client::new(settings(&[&server.url()], &scratch), heard.clone());
    assert_eq!(client.find(&wanted(&id, Part::Debuginfo)), None);
    assert_eq!(client.find(&wanted(&id, Part::Executable)), None);
    let lines = heard.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(server.questions().len(), 0);
}

#[test]
fn padding_is_no_part_of_a_build_id() {
    let query = |bytes: &[u8]| query_id(&BuildId::from_bytes(bytes).unwrap());
    let mut padded = [0xab; 20];
    assert_eq!(query(&padded), "ab".repeat(20));
    padded[16..].fill(0);
    assert_eq!(query(&padded), "ab".repeat(16));
    padded[8..].fill(0);
    assert_eq!(query(&padded), "ab".repeat(8));
    assert_eq!(query(&[0xab; 8]), "ab".repeat(8));
    assert_eq!(query(&[0xab, 0xcd]), "abcd");
}
