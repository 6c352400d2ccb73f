//! Uploads that are repeated while a server is busy or unreachable.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rperf_names::counted;
use ureq::Agent;
use ureq::http::Response;

use crate::client::{AgentError, ClientLimits, agent, check_thread_start};

/// Delays before further attempts, unless the server sends `Retry-After`.
const DELAYS: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
/// Maximum delay; a longer `Retry-After` is shortened to it.
const MAX_DELAY: Duration = Duration::from_secs(30);
/// Maximum size of an answer in bytes; a larger one is taken as empty.
const MAX_ANSWER: u64 = 64 << 10;
/// Maximum length of the line of an answer in [`UploadError::Refused`], in characters.
const MAX_LINE_LENGTH: usize = 200;
/// Time limit for each step of a request.
const STEP: Duration = Duration::from_secs(30);

/// Error of an upload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UploadError {
    /// The HTTP agent cannot be created, or no thread can be started.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// No answer was received: the last attempt failed while it connected, sent the data or waited for the answer.
    #[error("{url}: no answer in {}", counted(*attempts as u64, "attempt"))]
    Unreachable {
        /// The address to which the data were sent.
        url: String,
        /// Number of attempts.
        attempts: usize,
        /// The last failure.
        source: Box<ureq::Error>,
    },
    /// The server was busy at the last attempt.
    #[error("{url}: answered with status {status} in {}", counted(*attempts as u64, "attempt"))]
    Busy {
        /// The address to which the data were sent.
        url: String,
        /// Status of the last answer.
        status: u16,
        /// Number of attempts.
        attempts: usize,
    },
    /// The server answered with a status that means neither success nor that it is busy.
    #[error("{url}: answered with status {status}{}", detail(.answer))]
    Refused {
        /// The address to which the data were sent.
        url: String,
        /// Status of the answer.
        status: u16,
        /// First line of the answer, at most 200 characters; empty if the answer is not UTF-8 or the line has control characters.
        answer: String,
    },
}

fn detail(answer: &str) -> String {
    match answer {
        "" => String::new(),
        answer => format!(": {answer}"),
    }
}

/// Data for a server, sent with POST.
#[derive(Debug, Clone)]
pub struct Upload<'u> {
    /// Address of the service, `http://` or `https://`.
    pub url: &'u str,
    /// Names and values of header lines.
    pub headers: &'u [(&'u str, &'u str)],
    /// The data.
    pub body: &'u [u8],
    /// Certificate bundles (PEM), of which the first readable one is used for https.
    pub authorities: &'u [PathBuf],
}

/// The result of one attempt.
enum Attempt {
    /// The data were accepted, with this answer.
    Accepted(Vec<u8>),
    /// A further attempt may succeed.
    Failed {
        error: UploadError,
        /// The delay that the server asks for, if any.
        retry_after: Option<Duration>,
    },
}

impl Upload<'_> {
    /// Sends the data. If the server is busy or unreachable, tries again, at most four times. Before each delay,
    /// `before_retry` is called with the error and the delay. Returns the server's answer, which is empty if it is too large
    /// or cannot be read.
    ///
    /// # Errors
    ///
    /// [`UploadError`] if no agent can be created, the last attempt failed, or the server refused the data.
    pub fn send(
        &self,
        before_retry: &mut dyn FnMut(&UploadError, Duration),
    ) -> Result<Vec<u8>, UploadError> {
        let limits = ClientLimits {
            step: Some(STEP),
            total: None,
        };
        let is_encrypted = self.url.starts_with("https://");
        let agent = agent(limits, is_encrypted.then_some(self.authorities))?;
        let mut delays = DELAYS.into_iter();
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.attempt(&agent, attempts)? {
                Attempt::Accepted(answer) => return Ok(answer),
                Attempt::Failed { error, retry_after } => {
                    let Some(delay) = delays.next() else {
                        return Err(error);
                    };
                    let delay = retry_after.unwrap_or(delay).min(MAX_DELAY);
                    before_retry(&error, delay);
                    thread::sleep(delay);
                }
            }
        }
    }

    /// Sends the data once. `attempts` is the number of attempts so far, including this one. An error ends the upload; after
    /// [`Attempt::Failed`] another attempt may follow.
    fn attempt(&self, agent: &Agent, attempts: usize) -> Result<Attempt, UploadError> {
        // The agent resolves host names in a thread, and would panic if it could not start one.
        check_thread_start()?;
        let mut request = agent.post(self.url);
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        let url = self.url.to_owned();
        let mut response = match request.send(self.body) {
            Ok(response) => response,
            Err(source) => {
                let source = Box::new(source);
                let error = UploadError::Unreachable {
                    url,
                    attempts,
                    source,
                };
                return Ok(Attempt::Failed {
                    error,
                    retry_after: None,
                });
            }
        };
        let status = response.status().as_u16();
        // The status is enough: an answer that cannot be read is taken as empty.
        let body = response.body_mut().with_config().limit(MAX_ANSWER);
        let answer = body.read_to_vec().unwrap_or_default();
        match status {
            200..300 => Ok(Attempt::Accepted(answer)),
            // Too many requests, or the service is temporarily unavailable, perhaps behind a proxy.
            429 | 502..=504 => {
                let error = UploadError::Busy {
                    url,
                    status,
                    attempts,
                };
                Ok(Attempt::Failed {
                    error,
                    retry_after: retry_after(&response),
                })
            }
            status => Err(UploadError::Refused {
                url,
                status,
                answer: first_line(&answer),
            }),
        }
    }
}

/// The delay in `Retry-After`; `None` if the header is missing, or is a date instead of a number of seconds.
fn retry_after<T>(response: &Response<T>) -> Option<Duration> {
    let value = response.headers().get("retry-after")?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// The first line of an answer, at most [`MAX_LINE_LENGTH`] characters; empty if the answer is not UTF-8 or the line has control
/// characters.
fn first_line(answer: &[u8]) -> String {
    let text = str::from_utf8(answer).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    if line.contains(char::is_control) {
        return String::new();
    }
    line.chars().take(MAX_LINE_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rperf_testkit::{HttpResponse, HttpServer};

    use super::*;

    /// Sends data to a server that gives these answers in turn, and then the last one again. Returns the result, the delays, and
    /// the number of requests.
    fn sent(answers: Vec<HttpResponse>) -> (Result<Vec<u8>, String>, Vec<Duration>, usize) {
        let answers = Mutex::new(answers);
        let server = HttpServer::start(move |_| {
            let mut answers = answers.lock().unwrap();
            match answers.len() {
                1 => answers[0].clone(),
                _ => answers.remove(0),
            }
        });
        let server = server.unwrap();
        let url = server.url();
        let upload = Upload {
            url: &url,
            headers: &[("Content-Type", "text/plain")],
            body: b"data",
            authorities: &[],
        };
        let mut waited = Vec::new();
        let result = upload.send(&mut |_, delay| waited.push(delay));
        let result = result.map_err(|error| error.to_string().replace(&url, "URL"));
        (result, waited, server.requested_paths().len())
    }

    #[test]
    fn a_busy_server_is_asked_again() {
        // Status 200 with this content, without additional header lines.
        let accepted = HttpResponse::content(b"thanks".to_vec());
        let (result, waited, requests) = sent(vec![HttpResponse::Status(503), accepted]);
        assert_eq!(result, Ok(b"thanks".to_vec()));
        assert_eq!((waited, requests), (vec![DELAYS[0]], 2));
    }

    #[test]
    fn a_refusal_is_final() {
        let (result, waited, requests) = sent(vec![HttpResponse::Status(404)]);
        assert_eq!(result, Err("URL: answered with status 404".to_owned()));
        assert_eq!((waited.len(), requests), (0, 1));
    }

    #[test]
    fn attempts_are_limited() {
        let (result, waited, requests) = sent(vec![HttpResponse::Status(503)]);
        let expected = "URL: answered with status 503 in 5 attempts";
        assert_eq!(result, Err(expected.to_owned()));
        assert_eq!((&waited[..], requests), (&DELAYS[..], 5));
    }

    #[test]
    fn one_attempt_is_no_plural() {
        let error = UploadError::Busy {
            url: "URL".to_owned(),
            status: 503,
            attempts: 1,
        };
        let expected = "URL: answered with status 503 in 1 attempt";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn answers_are_shown_if_they_are_text() {
        assert_eq!(first_line(b"too large\nmore"), "too large");
        assert_eq!(first_line(b"\x1b[31mred"), "");
        assert_eq!(first_line(&[0xff]), "");
    }
}
