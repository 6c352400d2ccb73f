//! `-u`: a user by name or number.

use std::path::Path;

use crate::cli::error::CliError;

/// perf's exit status for a user that does not exist (`-EINVAL`).
const NO_USER_STATUS: u8 = 234;
/// The user database. The other sources of nsswitch.conf(5) are ignored: a static program cannot load their libraries.
const PASSWD: &str = "/etc/passwd";
/// The maximum size of the user database, in bytes.
const MAX_PASSWD: u64 = 64 << 20;

/// Returns the uid of a user; a word that is not a user name must be a uid.
pub(crate) fn user(word: &str) -> Result<u32, CliError> {
    let passwd = rperf_safefs::read(Path::new(PASSWD), MAX_PASSWD).unwrap_or_default();
    let passwd = String::from_utf8_lossy(&passwd);
    lookup(&passwd, word)
        .or_else(|| word.parse().ok())
        .ok_or_else(|| {
            let error = CliError::message(NO_USER_STATUS, "Error:");
            error
                .detail(format!("Invalid User: {word}"))
                .hint(format!("{PASSWD} has no such user; give the uid"))
        })
}

fn lookup(passwd: &str, name: &str) -> Option<u32> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_user = fields.next() == Some(name);
        is_user.then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_user_names_are_found() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nbroken\ndaemon:x:1:1::/:/bin/sh\n";
        assert_eq!(lookup(passwd, "daemon"), Some(1));
        assert_eq!(lookup(passwd, "root"), Some(0));
        for missing in ["", "roo", "broken", "0"] {
            assert_eq!(lookup(passwd, missing), None, "{missing}");
        }
    }
}
