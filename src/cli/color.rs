//! Whether output is coloured: decided by an option, `color.ui` of a config file, `NO_COLOR` and the terminal, in this order.

use rperf_view::terminal::Csi;

use crate::cli::config::boolean;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Returns the introducer of escape sequences if output on stdout is coloured, otherwise `None`. `option` is the long name of the
/// command's option for colours, without dashes, and `value` its value, if given.
///
/// # Errors
///
/// Status 129: the value is not `always`, `never`, `auto` or a boolean.
pub(crate) fn color_csi(
    context: &Context,
    option: &str,
    value: Option<&str>,
) -> Result<Option<Csi>, CliError> {
    let csi = |is_colored: bool| is_colored.then(|| context.output.csi());
    let supports = || supports_colors(context);
    if let Some(value) = value {
        let mode = mode(value).ok_or_else(|| {
            CliError::usage(format!(
                "--{option} {value}: expected always, never or auto"
            ))
        })?;
        // The option overrides `NO_COLOR`, even with `auto`: then only the terminal decides.
        return Ok(csi(mode.unwrap_or_else(supports)));
    }
    // `always` and `never` in a config file override `NO_COLOR`, but `auto` doesn't. An unknown mode was reported when the file
    // was read, and counts as `auto`.
    let configured = context.config.text("color.ui").and_then(mode).flatten();
    let by_default = || supports() && context.var("NO_COLOR").is_none();
    Ok(csi(configured.unwrap_or_else(by_default)))
}

/// Parses a mode: `Some(Some(is_colored))`, or `Some(None)` for `auto`: the terminal decides. `None` if the mode is unknown.
fn mode(word: &str) -> Option<Option<bool>> {
    match word {
        "always" => Some(Some(true)),
        "never" => Some(Some(false)),
        "auto" => Some(None),
        // As in perf, a true boolean means `auto`.
        word => boolean(word).map(|on| (!on).then_some(false)),
    }
}

/// Whether stdout is a terminal that supports colours.
fn supports_colors(context: &Context) -> bool {
    let has_colors = context.var("TERM").is_some_and(|term| term != "dumb");
    context.output.is_terminal() && has_colors
}

#[cfg(test)]
mod tests {
    use super::mode;

    #[test]
    fn modes_are_words_or_booleans() {
        assert_eq!(mode("always"), Some(Some(true)));
        assert_eq!(mode("never"), Some(Some(false)));
        assert_eq!(mode("false"), Some(Some(false)));
        assert_eq!(mode("true"), Some(None));
        assert_eq!(mode("auto"), Some(None));
        assert_eq!(mode("red"), None);
    }
}
