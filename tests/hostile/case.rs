//! One run: a command and its input, which lies in the sandbox.

use crate::families;
use crate::random::Random;
use crate::sandbox::Sandbox;
use crate::seeds::Seeds;

/// A command, and what may be said of its outcome.
#[derive(Debug, Default)]
pub(crate) struct Case {
    /// What its input is: the family of the case.
    pub(crate) family: &'static str,
    /// The words behind the name of the program.
    pub(crate) words: Vec<String>,
    /// The file that is its standard input.
    pub(crate) stdin: Option<String>,
    /// What its environment has in addition.
    pub(crate) env: Vec<(&'static str, String)>,
    /// Files that are there where it succeeds.
    pub(crate) outputs: Vec<String>,
    /// Files that it may have changed and that are not in the sandbox; they are removed.
    pub(crate) beside: Vec<String>,
    /// Why it must not succeed without a word on stderr, if it must not.
    pub(crate) must_complain: Option<&'static str>,
    /// Whether its words may mean nothing beside this input: names of events and fields that it lacks.
    pub(crate) may_be_misused: bool,
    /// Whether it may make files behind links that are its input.
    pub(crate) follows_links: bool,
    /// Whether it may print nothing where it succeeds.
    pub(crate) may_be_silent: bool,
}

impl Case {
    /// A command line, split at blanks.
    pub(crate) fn new(family: &'static str, words: &str) -> Self {
        Self {
            family,
            words: words.split(' ').map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// The case that `random` leads to, whose input is written to the sandbox.
    pub(crate) fn build(seeds: &Seeds, sandbox: &Sandbox, random: &mut Random) -> Self {
        let build = families::ALL[random.weighted(&families::WEIGHTS)];
        build(&mut Making {
            seeds,
            sandbox,
            random,
        })
    }

    /// The line for a shell that runs it again in its folder.
    pub(crate) fn shell_line(&self) -> String {
        let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
        let env = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={} ", quoted(value)));
        let words: Vec<String> = self.words.iter().map(quoted).collect();
        let stdin = self.stdin.as_ref().map(|name| format!(" <{name}"));
        format!(
            "{}rperf {}{}",
            env.collect::<String>(),
            words.join(" "),
            stdin.unwrap_or_default()
        )
    }
}

/// What a case is made with.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    pub(crate) seeds: &'a Seeds,
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) random: &'a mut Random,
}
