//! Settings of a client: servers and limits.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;

/// Settings of a client, which the caller takes from options, configuration and environment.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The servers, in the order in which they are queried.
    pub servers: Vec<Server>,
    /// The cache, shared with elfutils (`$DEBUGINFOD_CACHE_PATH`).
    pub cache: PathBuf,
    /// Limits of downloads.
    pub limits: DownloadLimits,
    /// Certificate bundles (PEM) to verify https servers: the first readable one is used.
    pub authorities: Vec<PathBuf>,
}

/// Limits of a download; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadLimits {
    /// Time limit of a step (`$DEBUGINFOD_TIMEOUT`). The steps are resolving the host name, connecting, receiving the header of
    /// the response, and receiving each 100 KiB of the file. The time of the first 100 KiB begins with the request.
    pub stall: Option<Duration>,
    /// Time limit for the download of a file (`$DEBUGINFOD_MAXTIME`).
    pub total_time: Option<Duration>,
    /// Size limit of a file in bytes (`$DEBUGINFOD_MAXSIZE`).
    pub size: Option<u64>,
}

impl Default for DownloadLimits {
    /// The limits of elfutils: a download may stall for 90 seconds; total time and size are not limited.
    fn default() -> Self {
        Self {
            stall: Some(Duration::from_secs(90)),
            total_time: None,
            size: None,
        }
    }
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    url: String,
}

impl Server {
    /// Parses a whitespace-separated list of servers, as in `DEBUGINFOD_URLS`. An address without a scheme gets `http://`. The
    /// list may contain words that control signature checks (`ima:…`).
    ///
    /// # Errors
    ///
    /// [`Error::BadUrl`] for words that are not http or https addresses, [`Error::Signatures`]
    /// for `ima:` words other than `ima:ignore` and `ima:permissive`.
    pub fn list(words: &str) -> Result<Vec<Self>, Error> {
        let mut servers = Vec::new();
        for word in words.split_whitespace() {
            match word.strip_prefix("ima:") {
                Some("ignore" | "permissive") => {}
                Some(_) => {
                    let word = word.to_owned();
                    return Err(Error::Signatures { word });
                }
                None => servers.push(Self::parse(word)?),
            }
        }
        Ok(servers)
    }

    fn parse(word: &str) -> Result<Self, Error> {
        let bad = |reason| Error::BadUrl {
            url: word.to_owned(),
            reason,
        };
        let url = match word.split_once("://") {
            None => format!("http://{word}"),
            Some(("http" | "https", _)) => word.to_owned(),
            Some(_) => return Err(bad("it begins with neither http:// nor https://")),
        };
        let parsed: Result<ureq::http::Uri, _> = url.parse();
        let has_host = parsed.is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        // An address may already end with `/buildid`, which `url_of` appends.
        let base = url.trim_end_matches('/');
        let base = base.strip_suffix("/buildid").unwrap_or(base);
        match has_host {
            true => Ok(Self {
                url: base.to_owned(),
            }),
            false => Err(bad("it names no host")),
        }
    }

    /// Whether the server uses https.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// The URL of a file of the object with this build-id.
    pub(crate) fn url_of(&self, id: &str, part: &str) -> String {
        format!("{}/buildid/{id}/{part}", self.url)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &str) -> Result<Vec<String>, String> {
        let servers = Server::list(words).map_err(|error| error.to_string())?;
        Ok(servers.iter().map(Server::to_string).collect())
    }

    #[test]
    fn addresses_are_split_and_normalized() {
        let words = " https://one/  http://two:8002/buildid\nthree:80 ima:permissive";
        let expected = ["https://one", "http://two:8002", "http://three:80"];
        assert_eq!(list(words), Ok(expected.map(str::to_owned).to_vec()));
        assert_eq!(list("  "), Ok(Vec::new()));
        let url = Server::list("http://a/b/").unwrap()[0].url_of("ab12", "debuginfo");
        assert_eq!(url, "http://a/b/buildid/ab12/debuginfo");
    }

    #[test]
    fn invalid_words_are_errors() {
        // The blank in the last one separates two servers: only the second, which has a control character, is invalid.
        for word in ["ftp://one", "http://", "https:///x", "http://a b\u{1}"] {
            let error = list(word).unwrap_err();
            assert!(
                error.contains("not the address of a debuginfod server"),
                "{error}"
            );
        }
        let error = list("https://one ima:enforcing").unwrap_err();
        assert!(
            error.contains("'ima:enforcing' is not supported"),
            "{error}"
        );
    }
}
