//! One run: a command, its input in the sandbox, and the accepted outcomes.

use crate::families;
use crate::random::Random;
use crate::sandbox::Sandbox;
use crate::seeds::Seeds;

/// A command, and the accepted outcomes.
#[derive(Debug, Default)]
pub(crate) struct Case {
    /// The kind of input: the family of the case.
    pub(crate) family: &'static str,
    /// The arguments.
    pub(crate) words: Vec<String>,
    /// The file for standard input; `None` is `/dev/null`.
    pub(crate) stdin: Option<String>,
    /// Additional environment variables.
    pub(crate) env: Vec<(&'static str, String)>,
    /// Files that must exist and not be empty if the command succeeds.
    pub(crate) outputs: Vec<String>,
    /// Files outside of the sandbox that are part of the input; they are removed afterwards.
    pub(crate) outside_files: Vec<String>,
    /// Why the command must print something to stderr even if it succeeds. `None` if it need not.
    pub(crate) must_report_error: Option<&'static str>,
    /// Whether the command may fail with a usage error, since the input may lack what its arguments name, such as events and
    /// fields.
    pub(crate) may_be_misused: bool,
    /// Whether the command may succeed without output.
    pub(crate) may_be_silent: bool,
}

impl Case {
    /// A case for a command line, split at blanks.
    pub(crate) fn new(family: &'static str, words: &str) -> Self {
        Self {
            family,
            words: words.split(' ').map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Makes a random case and writes its input to the sandbox. `commands` are those of [`CaseInputs`]: if there are any, all
    /// cases are damaged recordings.
    pub(crate) fn build(
        seeds: &Seeds,
        commands: &[String],
        sandbox: &Sandbox,
        random: &mut Random,
    ) -> Self {
        let build = match commands {
            [] => families::ALL[random.weighted(&families::WEIGHTS)],
            _ => families::DAMAGED_RECORDINGS,
        };
        build(&mut CaseInputs {
            seeds,
            commands,
            sandbox,
            random,
        })
    }

    /// Returns a shell command that repeats the case in its working directory. It sets the variables of `env`, but not those that
    /// [`execute::environment`](crate::execute::environment) sets for every run.
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

/// What a case is generated from, and the sandbox for its input.
#[derive(Debug)]
pub(crate) struct CaseInputs<'a> {
    pub(crate) seeds: &'a Seeds,
    /// Prefixes of the command lines to run, all of them with damaged recordings. If empty, all commands are run, with inputs of
    /// all families.
    pub(crate) commands: &'a [String],
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) random: &'a mut Random,
}
