//! Tests with a server on the loopback interface that uses a test certificate: `tests/localhost.pem`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use rperf_testkit::Scratch;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use ureq::Agent;

use super::*;

const CERTIFICATE: &[u8] = include_bytes!("../../tests/localhost.pem");
const KEY: &[u8] = include_bytes!("../../tests/localhost.key");

/// Starts a server that responds "hello" to one request and exits.
fn server() -> SocketAddr {
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls_graviola::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || -> std::io::Result<()> {
        let (connection, _) = listener.accept()?;
        let session = ServerConnection::new(Arc::new(config)).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(session, connection);
        let mut request = Vec::new();
        let mut buffer = [0; 1024];
        while !request.ends_with(b"\r\n\r\n") {
            let length = stream.read(&mut buffer)?;
            request.extend_from_slice(&buffer[..length]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    });
    address
}

/// The body of the response to a client that trusts only the certificates in `trusted`, or the client's error.
fn get(address: SocketAddr, trusted: &[u8]) -> Result<String, String> {
    let scratch = Scratch::new();
    // The first readable bundle is used: the missing one is skipped.
    let missing = scratch.path().join("missing.pem");
    let bundle = scratch.write("bundle.pem", trusted).unwrap();
    let config = with_tls(Agent::config_builder(), &[missing, bundle]);
    let agent: Agent = config.map_err(|error| error.to_string())?.build().into();
    let response = agent.get(format!("https://localhost:{}/", address.port()));
    let mut response = response.call().map_err(|error| error.to_string())?;
    let text = response.body_mut().read_to_string();
    text.map_err(|error| error.to_string())
}

#[test]
fn only_trusted_certificates_are_accepted() {
    assert_eq!(get(server(), CERTIFICATE).as_deref(), Ok("hello"));
    let installed = "/etc/ssl/certs/ca-certificates.crt";
    if let Ok(others) = std::fs::read(installed) {
        let error = get(server(), &others).unwrap_err();
        assert!(error.contains("certificate"), "{error}");
    }
    // A readable bundle without certificates: fails before the client connects.
    let error = get(server(), b"no certificates").unwrap_err();
    assert!(
        error.starts_with("https is not available: no CA certificates in "),
        "{error}"
    );
}
