//! Memory of a process that was copied when a call was made.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The memory that an argument points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedBytes<'a> {
    /// Index of the argument, from 0.
    pub argument: usize,
    /// The bytes; those of a text without its NUL.
    pub bytes: &'a [u8],
    /// Whether the memory is longer than what was copied.
    pub is_truncated: bool,
    /// Whether it was read after the call had begun: another thread may have changed it since.
    pub is_late: bool,
}

/// Writes bytes in quotes, as C would: `"a\n\377"`, followed by `...` if they are truncated.
///
/// # Errors
/// Errors of `to`.
pub fn write_quoted(to: &mut dyn Write, bytes: &[u8], is_truncated: bool) -> io::Result<()> {
    to.write_all(b"\"")?;
    for byte in bytes {
        match byte {
            b'"' => to.write_all(b"\\\"")?,
            b'\\' => to.write_all(b"\\\\")?,
            b'\n' => to.write_all(b"\\n")?,
            b'\t' => to.write_all(b"\\t")?,
            b'\r' => to.write_all(b"\\r")?,
            0x20..=0x7e => to.write_all(&[*byte])?,
            _ => write!(to, "\\{byte:03o}")?,
        }
    }
    to.write_all(if is_truncated { b"\"..." } else { b"\"" })
}

/// Writes a socket address (`struct sockaddr` in the byte order of this machine) as `{ .family: INET, port: 53, addr: 127.0.0.1 }`; `None` if it is too
/// short for its family or the family has no text.
pub(crate) fn socket_address(bytes: &[u8]) -> Option<String> {
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    match u16::from_ne_bytes(*family) {
        1 => {
            let mut text = Vec::new();
            let end = rest.iter().skip(1).position(|byte| *byte == 0);
            let path = rest.get(..end.map_or(rest.len(), |end| end + 1))?;
            write_quoted(&mut text, path, false).ok()?;
            Some(format!(
                "{{ .family: LOCAL, path: {} }}",
                String::from_utf8_lossy(&text)
            ))
        }
        2 => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let address = Ipv4Addr::from(*rest.first_chunk::<4>()?);
            let port = u16::from_be_bytes(*port);
            Some(format!(
                "{{ .family: INET, port: {port}, addr: {address} }}"
            ))
        }
        10 => {
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let address = Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?);
            let port = u16::from_be_bytes(*port);
            Some(format!(
                "{{ .family: INET6, port: {port}, addr: {address} }}"
            ))
        }
        16 => Some("{ .family: NETLINK }".to_owned()),
        _ => None,
    }
}

/// Returns a `struct timespec` of 64 bits per field as `{ .tv_sec: 1, .tv_nsec: 0 }`.
pub(crate) fn timespec(bytes: &[u8]) -> Option<String> {
    let (seconds, rest) = bytes.split_first_chunk::<8>()?;
    let nanos = i64::from_ne_bytes(*rest.first_chunk::<8>()?);
    let seconds = i64::from_ne_bytes(*seconds);
    Some(format!("{{ .tv_sec: {seconds}, .tv_nsec: {nanos} }}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_is_quoted() {
        let mut text = Vec::new();
        write_quoted(&mut text, b"a\"\\\n\x1b\xff", true).unwrap();
        assert_eq!(text, b"\"a\\\"\\\\\\n\\033\\377\"...");
    }

    #[test]
    fn socket_addresses() {
        let mut inet = 2u16.to_ne_bytes().to_vec();
        inet.extend([0, 53, 127, 0, 0, 1]);
        let expected = "{ .family: INET, port: 53, addr: 127.0.0.1 }";
        assert_eq!(socket_address(&inet).as_deref(), Some(expected));
        assert_eq!(socket_address(&inet[..7]), None);
        let mut local = 1u16.to_ne_bytes().to_vec();
        local.extend(b"/run/x\0junk");
        let expected = "{ .family: LOCAL, path: \"/run/x\" }";
        assert_eq!(socket_address(&local).as_deref(), Some(expected));
    }
}
