//! A web server on the loopback interface, for tests of downloads.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The server's answer to a request.
#[derive(Debug, Clone)]
pub enum HttpResponse {
    /// This status, without content.
    Status(u16),
    /// Status 200 with these bytes and these additional header lines.
    File(Vec<u8>, &'static [&'static str]),
    /// Status 200 with the first half of these bytes, although `Content-Length` is the number of all.
    Half(Vec<u8>),
    /// Status 200, then a byte every 20 ms until the client disconnects or the server is dropped.
    SlowBytes,
    /// No answer. The connection stays open until the server is dropped.
    Silence,
}

impl HttpResponse {
    /// Status 200 with these bytes, without additional header lines.
    #[must_use]
    pub fn content(bytes: Vec<u8>) -> Self {
        Self::File(bytes, &[])
    }
}

/// A server that runs until dropped. Each request has its own connection.
pub struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    answer: Box<dyn Fn(&str) -> HttpResponse + Send + Sync>,
    requested_paths: Mutex<Vec<String>>,
    request_bodies: Mutex<Vec<Vec<u8>>>,
    is_stopped: AtomicBool,
}

impl HttpServer {
    /// Starts a server that answers a request with what `answer` returns for its path.
    ///
    /// # Errors
    ///
    /// The socket cannot be created.
    pub fn start(
        answer: impl Fn(&str) -> HttpResponse + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            requested_paths: Mutex::default(),
            request_bodies: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let acceptor_shared = Arc::clone(&shared);
        let acceptor = thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if acceptor_shared.is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let connection_shared = Arc::clone(&acceptor_shared);
                // Errors are ignored: clients may disconnect at any time.
                thread::spawn(move || connection_shared.serve(connection).ok());
            }
        });
        Ok(Self {
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }

    /// Returns the server's URL, with its address and port.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the paths requested so far, in order.
    pub fn requested_paths(&self) -> Vec<String> {
        let requested_paths = self.shared.requested_paths.lock();
        requested_paths
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the bodies of the requests so far, in order; empty for requests without one.
    pub fn request_bodies(&self) -> Vec<Vec<u8>> {
        let request_bodies = self.shared.request_bodies.lock();
        request_bodies
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    /// Reads a request, notes its path and body, and answers it.
    fn serve(&self, mut connection: TcpStream) -> std::io::Result<()> {
        let mut input = BufReader::new(connection.try_clone()?);
        let mut lines = input.by_ref().lines();
        let request_line = lines.next().transpose()?.unwrap_or_default();
        let path = request_line
            .split(' ')
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        let mut length = 0;
        while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        // The body is read even if no test needs it: closing a connection with unread data may lose the answer.
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        let request_bodies = self.request_bodies.lock();
        request_bodies
            .unwrap_or_else(PoisonError::into_inner)
            .push(body);
        let requested_paths = self.requested_paths.lock();
        requested_paths
            .unwrap_or_else(PoisonError::into_inner)
            .push(path.clone());
        let answer = (self.answer)(&path);
        match answer {
            HttpResponse::Status(status) => {
                write!(
                    connection,
                    "HTTP/1.1 {status} Status\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
            }
            HttpResponse::File(bytes, headers) => {
                head(&mut connection, bytes.len(), headers)?;
                connection.write_all(&bytes)
            }
            HttpResponse::Half(bytes) => {
                head(&mut connection, bytes.len(), &[])?;
                connection.write_all(&bytes[..bytes.len() / 2])
            }
            HttpResponse::SlowBytes => {
                // More bytes than a test waits for.
                let content_length = 1 << 20;
                head(&mut connection, content_length, &[])?;
                self.until_stopped(|| connection.write_all(b"."))
            }
            HttpResponse::Silence => {
                let send_nothing = || Ok(());
                self.until_stopped(send_nothing)
            }
        }
    }

    /// Repeats `act` every 20 ms until the server is dropped or `act` fails.
    fn until_stopped(&self, mut act: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
        while !self.is_stopped.load(Ordering::Relaxed) {
            act()?;
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Writes a header with status 200 and these additional lines.
fn head(connection: &mut TcpStream, length: usize, headers: &[&str]) -> std::io::Result<()> {
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n"
    )?;
    for header in headers {
        write!(connection, "{header}\r\n")?;
    }
    connection.write_all(b"\r\n")
}
