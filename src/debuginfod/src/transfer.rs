//! Download of one file from one server.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use ureq::Agent;
use ureq::http::HeaderMap;

use crate::error::Error;
use crate::settings::{DownloadLimits, Server};

/// Bytes that must arrive within [`DownloadLimits::stall`].
const MIN_BYTES_PER_STALL: u64 = 100 << 10;

/// A download.
pub(crate) struct DownloadTransfer<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) server: &'a Server,
    pub(crate) url: &'a str,
    pub(crate) limits: DownloadLimits,
    /// Path of the file that is written to, for messages.
    pub(crate) temporary: &'a Path,
}

/// Result of a download.
pub(crate) enum Received {
    /// A complete file, with its modification time if the server sent it.
    Complete(Option<SystemTime>),
    /// The server has no such file.
    NotFound,
}

impl DownloadTransfer<'_> {
    /// Downloads the file and writes it to `into`. `progress` gets the number of bytes received so far, and the
    /// total number if the server sent it.
    ///
    /// # Errors
    ///
    /// Unreachable servers, unexpected responses, time and size limits, and write errors.
    pub(crate) fn run(
        &self,
        into: &mut File,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Received, Error> {
        let started = Instant::now();
        let mut request = self.agent.get(self.url);
        if let Some(limit) = self.limits.size {
            request = request.header("X-DEBUGINFOD-MAXSIZE", limit.to_string());
        }
        let response = request.call().map_err(|error| self.explain(error))?;
        match response.status().as_u16() {
            200 => {}
            404 => return Ok(Received::NotFound),
            // Not acceptable: exceeds the requested maximum size.
            406 if self.limits.size.is_some() => return Err(self.too_large()),
            status => {
                let server = self.server.to_string();
                return Err(Error::Status { server, status });
            }
        }
        let headers = response.headers();
        let total = total(headers);
        let modified = header(headers, "last-modified").and_then(date);
        if total.is_some_and(|total| self.limits.size.is_some_and(|limit| total > limit)) {
            return Err(self.too_large());
        }
        let mut body = response.into_body().into_reader();
        let mut speed = SpeedCheck::new(started, self.limits.stall);
        let mut buffer = vec![0; 64 << 10];
        progress(0, total);
        loop {
            let length = match body.read(&mut buffer) {
                Ok(0) => return Ok(Received::Complete(modified)),
                Ok(length) => length,
                Err(error) => return Err(self.explain(error.into())),
            };
            let chunk = buffer.get(..length).unwrap_or_default();
            into.write_all(chunk).map_err(|source| Error::Cache {
                path: self.temporary.to_owned(),
                source,
            })?;
            let received = speed.add(length);
            progress(received, total);
            self.check(received, &speed)?;
        }
    }

    /// Checks the limits.
    fn check(&self, received: u64, speed: &SpeedCheck) -> Result<(), Error> {
        if self.limits.size.is_some_and(|limit| received > limit) {
            return Err(self.too_large());
        }
        if let Some(after) = self.limits.total_time
            && speed.started.elapsed() > after
        {
            return Err(self.too_long(after));
        }
        match self.limits.stall {
            Some(within) if speed.is_slow() => Err(self.slow(within)),
            _ => Ok(()),
        }
    }

    fn too_large(&self) -> Error {
        Error::TooLarge {
            url: self.url.to_owned(),
            limit: self.limits.size.unwrap_or(u64::MAX),
        }
    }

    fn too_long(&self, after: Duration) -> Error {
        let url = self.url.to_owned();
        Error::TooLong { url, after }
    }

    fn slow(&self, within: Duration) -> Error {
        let server = self.server.to_string();
        Error::Slow { server, within }
    }

    /// Converts a connection error.
    fn explain(&self, error: ureq::Error) -> Error {
        match (error, self.limits.total_time, self.limits.stall) {
            // The global timeout limits the whole download; all other timeouts limit a step of it by `limits.stall`.
            (ureq::Error::Timeout(ureq::Timeout::Global), Some(after), _) => self.too_long(after),
            (ureq::Error::Timeout(_), _, Some(within)) => self.slow(within),
            // Passes the inner error: `ureq::Error::Io` would put `io: ` before its message.
            (ureq::Error::Io(error), ..) => self.unreachable(Box::new(error)),
            (error, ..) => self.unreachable(Box::new(error)),
        }
    }

    fn unreachable(&self, source: Box<dyn std::error::Error + Send + Sync>) -> Error {
        let server = self.server.to_string();
        Error::Unreachable { server, source }
    }
}

/// Measures the speed of a download, to detect that it stalls.
struct SpeedCheck {
    /// Time at which the request was sent.
    started: Instant,
    stall: Option<Duration>,
    received: u64,
    /// Start time of the current measurement, and the bytes received before it. A measurement ends when
    /// [`MIN_BYTES_PER_STALL`] have arrived in it.
    mark: (Instant, u64),
}

impl SpeedCheck {
    fn new(started: Instant, stall: Option<Duration>) -> Self {
        Self {
            started,
            stall,
            received: 0,
            mark: (started, 0),
        }
    }

    /// Adds received bytes and returns the number of all bytes received so far.
    fn add(&mut self, length: usize) -> u64 {
        self.received = self.received.saturating_add(length as u64);
        if self.received - self.mark.1 >= MIN_BYTES_PER_STALL {
            self.mark = (Instant::now(), self.received);
        }
        self.received
    }

    fn is_slow(&self) -> bool {
        self.stall
            .is_some_and(|stall| self.mark.0.elapsed() > stall)
    }
}

/// The size of the decompressed file, if the server sent it.
fn total(headers: &HeaderMap) -> Option<u64> {
    let number = |name| header(headers, name)?.trim().parse().ok();
    let is_compressed = headers.contains_key("content-encoding");
    number("x-debuginfod-size").or_else(|| number("content-length").filter(|_| !is_compressed))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Parses an HTTP date (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = text.split_once(", ")?.1.split([' ', ':']);
    let number = |words: &mut dyn Iterator<Item = &str>| words.next()?.parse::<u64>().ok();
    let day = number(&mut words)?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year = number(&mut words).filter(|year| (1970..10_000).contains(year))?;
    let (hour, minute) = (number(&mut words)?, number(&mut words)?);
    let second = number(&mut words)?;
    if !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // With years starting in March, the leap day is the last day, and months have 153 days per five (31 + 30 + 31 + 30 + 31).
    let (years, months) = match month {
        0 | 1 => (year - 1, month + 10),
        _ => (year, month - 2),
    };
    let leap_days = years / 4 - years / 100 + years / 400;
    let days = years * 365 + leap_days + (months * 153 + 2) / 5 + day - 1;
    // Days from 1 March of year 0 to 1970.
    let days = days.checked_sub(719_468)?;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_are_parsed() {
        let seconds = |text| {
            let time = date(text)?;
            Some(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
        };
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Fri, 31 Dec 2021 23:59:59 GMT", 1_640_995_199),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "Sun, 06 Nov",
            "Sun, 0 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 18446744073709551615 08:49:37 GMT",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
