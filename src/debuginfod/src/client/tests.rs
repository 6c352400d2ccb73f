//! Tests with servers on the loopback interface.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rperf_testkit::{HttpResponse, HttpServer, Scratch};

use super::*;

/// Records the callbacks of a client.
#[derive(Default, Clone)]
struct RecordedCallbacks(Arc<Mutex<Vec<String>>>);

impl RecordedCallbacks {
    fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl DownloadObserver for RecordedCallbacks {
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

/// A file with a build-id: the executable of the tests.
fn executable() -> (Vec<u8>, BuildId) {
    let bytes = std::fs::read("/proc/self/exe").unwrap();
    let id = build_id_of_elf(&bytes).expect("tests are linked with a build-id");
    (bytes, id)
}

fn settings(servers: &[&str], cache: &Scratch) -> Settings {
    Settings {
        servers: Server::list(&servers.join(" ")).unwrap(),
        cache: cache.path().join("cache"),
        limits: DownloadLimits {
            // Less than the default of 90 s, so that a test with a hanging download fails sooner.
            stall: Some(Duration::from_secs(20)),
            ..DownloadLimits::default()
        },
        authorities: Vec::new(),
    }
}

fn wanted(build_id: &BuildId, part: FilePart) -> FileRequest<'_> {
    FileRequest {
        build_id,
        part,
        object: Path::new("/bin/prog"),
    }
}

#[test]
fn a_file_is_fetched_once_and_cached() {
    let (bytes, id) = executable();
    let sent = bytes.clone();
    let headers = &["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"];
    let server = HttpServer::start(move |_| HttpResponse::File(sent.clone(), headers)).unwrap();
    let (scratch, callbacks) = (Scratch::new(), RecordedCallbacks::default());
    let client = Client::new(settings(&[&server.url()], &scratch), callbacks.clone());
    let path = client
        .find(&wanted(&id, FilePart::Debuginfo))
        .expect("it is there");
    let expected = scratch.path().join(format!("cache/{id}/debuginfo"));
    assert_eq!(path, expected);
    assert!(std::fs::read(&path).unwrap() == bytes);
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let seconds = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(seconds.as_secs(), 784_111_777);
    let all = format!("/bin/prog: all {} bytes", bytes.len());
    assert_eq!(callbacks.take(), [all, "ended".to_owned()]);
    // The file is not requested again: this client and another, which has no servers, find it in the cache.
    assert!(client.find(&wanted(&id, FilePart::Debuginfo)).is_some());
    let other = Client::new(settings(&[], &scratch), callbacks.clone());
    assert_eq!(other.find(&wanted(&id, FilePart::Debuginfo)), Some(path));
    assert_eq!(
        server.requested_paths(),
        [format!("/buildid/{id}/debuginfo")]
    );
    assert_eq!(callbacks.take(), [""; 0]);
    assert!(client.find(&wanted(&id, FilePart::Executable)).is_some());
    assert_eq!(server.requested_paths().len(), 2);
}

#[test]
fn the_next_server_is_queried_after_a_404_and_missing_files_are_cached() {
    let (bytes, id) = executable();
    let empty = HttpServer::start(|_| HttpResponse::Status(404)).unwrap();
    let full = HttpServer::start(move |_| HttpResponse::content(bytes.clone())).unwrap();
    let (scratch, callbacks) = (Scratch::new(), RecordedCallbacks::default());
    let both = settings(&[&empty.url(), &full.url()], &scratch);
    let client = Client::new(both, callbacks.clone());
    assert!(client.find(&wanted(&id, FilePart::Debuginfo)).is_some());
    assert_eq!(
        (empty.requested_paths().len(), full.requested_paths().len()),
        (1, 1)
    );
    // A missing file is cached as such, for elfutils and for the next run.
    let scratch = Scratch::new();
    for _ in 0..2 {
        let client = Client::new(settings(&[&empty.url()], &scratch), callbacks.clone());
        assert_eq!(client.find(&wanted(&id, FilePart::Debuginfo)), None);
        assert_eq!(client.find(&wanted(&id, FilePart::Debuginfo)), None);
    }
    // One request in the first part of the test, and one by the first client of the loop: the second finds the cached miss.
    assert_eq!(empty.requested_paths().len(), 2);
    let miss = scratch.path().join(format!("cache/{id}/debuginfo"));
    assert_eq!(std::fs::metadata(miss).unwrap().len(), 0);
}

#[test]
fn wrong_and_truncated_files_are_not_cached() {
    let (bytes, _) = executable();
    let sent = bytes.clone();
    let other = BuildId::from_bytes(&[7; 20]).unwrap();
    let wrong = HttpServer::start(move |_| HttpResponse::content(bytes.clone())).unwrap();
    let truncated = HttpServer::start(move |_| HttpResponse::Half(sent.clone())).unwrap();
    let text = HttpServer::start(|_| HttpResponse::content(b"<html>".to_vec())).unwrap();
    let (scratch, callbacks) = (Scratch::new(), RecordedCallbacks::default());
    for (server, message) in [
        (&wrong, "its build-id is "),
        (&truncated, "cannot be used: "),
        (&text, "its build-id is missing"),
    ] {
        let client = Client::new(settings(&[&server.url()], &scratch), callbacks.clone());
        assert_eq!(client.find(&wanted(&other, FilePart::Debuginfo)), None);
        assert_eq!(client.find(&wanted(&other, FilePart::Debuginfo)), None);
        let lines = callbacks.take();
        let found: Vec<_> = lines.iter().filter(|line| line.contains(message)).collect();
        assert_eq!(found.len(), 1, "{lines:?}");
        assert_eq!(server.requested_paths().len(), 1);
        assert!(!scratch.path().join(format!("cache/{other}")).exists());
    }
}

#[test]
fn a_failing_server_is_reported_once_and_skipped() {
    let (bytes, id) = executable();
    let broken = HttpServer::start(|_| HttpResponse::Status(500)).unwrap();
    let good = HttpServer::start(move |_| HttpResponse::content(bytes.clone())).unwrap();
    // Nothing listens on the port of a stopped server.
    let stopped = HttpServer::start(|_| HttpResponse::Silence).unwrap().url();
    let (scratch, callbacks) = (Scratch::new(), RecordedCallbacks::default());
    let servers = settings(&[&stopped, &broken.url(), &good.url()], &scratch);
    let client = Client::new(servers, callbacks.clone());
    assert!(client.find(&wanted(&id, FilePart::Debuginfo)).is_some());
    assert!(client.find(&wanted(&id, FilePart::Executable)).is_some());
    let mut lines = callbacks.take();
    lines.retain(|line| line.starts_with("debuginfod"));
    assert!(
        matches!(&lines[..], [first, second] if first.contains("Connection refused") && second.ends_with("it answers with status 500")),
        "{lines:?}"
    );
    assert_eq!(broken.requested_paths().len(), 1);
}

#[test]
fn misses_are_not_cached_after_a_server_has_failed() {
    let (_, id) = executable();
    let broken = HttpServer::start(|_| HttpResponse::Status(500)).unwrap();
    let empty = HttpServer::start(|_| HttpResponse::Status(404)).unwrap();
    let (scratch, callbacks) = (Scratch::new(), RecordedCallbacks::default());
    let servers = settings(&[&broken.url(), &empty.url()], &scratch);
    let client = Client::new(servers, callbacks.clone());
    // The second file is requested only from the server that has not failed.
    for part in [FilePart::Debuginfo, FilePart::Executable] {
        assert_eq!(client.find(&wanted(&id, part)), None);
    }
    assert_eq!(broken.requested_paths().len(), 1);
    assert_eq!(empty.requested_paths().len(), 2);
    let folder = scratch.path().join(format!("cache/{id}"));
    assert!(!folder.exists(), "{folder:?}");
}

#[test]
fn time_and_size_are_limited() {
    let (bytes, id) = executable();
    let size = bytes.len() as u64;
    let silent = HttpServer::start(|_| HttpResponse::Silence).unwrap();
    let slow = HttpServer::start(|_| HttpResponse::SlowBytes).unwrap();
    let good = HttpServer::start(move |_| HttpResponse::content(bytes.clone())).unwrap();
    let short = Duration::from_millis(300);
    let cases = [
        (
            &silent,
            DownloadLimits {
                stall: Some(short),
                ..DownloadLimits::default()
            },
            "less than 100 kB in 0.3 s",
        ),
        (
            &slow,
            DownloadLimits {
                stall: Some(short),
                ..DownloadLimits::default()
            },
            "less than 100 kB in 0.3 s",
        ),
        (
            &slow,
            DownloadLimits {
                total_time: Some(short),
                ..DownloadLimits::default()
            },
            "not complete after 0.3 s",
        ),
        (
            &good,
            DownloadLimits {
                size: Some(size - 1),
                ..DownloadLimits::default()
            },
            "larger than",
        ),
    ];
    for (server, limits, message) in cases {
        let (scratch, callbacks) = (Scratch::new(), RecordedCallbacks::default());
        let settings = settings(&[&server.url()], &scratch);
        let client = Client::new(Settings { limits, ..settings }, callbacks.clone());
        let started = Instant::now();
        assert_eq!(client.find(&wanted(&id, FilePart::Debuginfo)), None);
        // Far less than the default `stall` of 90 s.
        assert!(started.elapsed() < Duration::from_secs(15));
        let lines = callbacks.take();
        assert!(lines.iter().any(|line| line.contains(message)), "{lines:?}");
    }
}

#[test]
fn an_unwritable_cache_ends_the_search() {
    let (bytes, id) = executable();
    let server = HttpServer::start(move |_| HttpResponse::content(bytes.clone())).unwrap();
    let (scratch, callbacks) = (Scratch::new(), RecordedCallbacks::default());
    // The folder of the cache cannot be created: a file has its name.
    scratch.write("cache", "a file").unwrap();
    let client = Client::new(settings(&[&server.url()], &scratch), callbacks.clone());
    assert_eq!(client.find(&wanted(&id, FilePart::Debuginfo)), None);
    assert_eq!(client.find(&wanted(&id, FilePart::Executable)), None);
    let lines = callbacks.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(server.requested_paths().len(), 0);
}

#[test]
fn build_ids_are_queried_without_padding() {
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
