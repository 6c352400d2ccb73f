//! `rperf kallsyms NAME`: addresses of functions of the running kernel.

use std::io::Write as _;
use std::path::Path;

use clap::{Arg, ArgMatches, Command};
use rperf_symbol::SymbolTable;
use rperf_symbol::kallsyms::{Kallsyms, parse};
use rperf_sys::{Module, Proc, read_pseudo_file, uname};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::limits::kernel_addresses_hint;
use crate::cli::options::counter;

const ABOUT: &str = "\
Looks up functions of the running kernel and its modules by name and prints module, module file and address range. Names \
are separated by spaces or commas. The exit status is 1 if one of them is not found.";

const LISTING: &str = "/proc/kallsyms";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("kallsyms")
        .long_about(ABOUT)
        .arg(
            counter("verbose")
                .short('v')
                .help("print the number of symbols"),
        )
        .arg(Arg::new("names").num_args(0..).value_name("name"))
}

/// Prints the addresses of the functions.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let words = matches.get_many::<String>("names").unwrap_or_default();
    let names = words.flat_map(|word| word.split(','));
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        let program = context.program;
        let message = format!("{program} kallsyms: no function given");
        let hint = format!("'{program} kallsyms schedule' looks up a function");
        return Err(CliError::usage(message).hint(hint));
    }
    let listing = read_pseudo_file(LISTING)
        .map_err(|error| CliError::from(anyhow::Error::new(error).context(LISTING)))?;
    let no_relocation = None;
    let kallsyms = parse(&listing, no_relocation);
    if kallsyms.hidden {
        return Err(
            CliError::message(255, format!("{LISTING} does not show kernel addresses"))
                .hint(kernel_addresses_hint()),
        );
    }
    if context.verbosity(matches) > 0 {
        let modules = kallsyms.modules.iter().map(|module| module.table.len());
        context.note(format_args!(
            "{LISTING}: {} symbols of the kernel, {} of modules",
            kallsyms.kernel.len(),
            modules.sum::<usize>()
        ));
    }
    let modules_folder = format!("/lib/modules/{}", uname()?.release);
    // Without the list of modules, only the file names of modules are unknown.
    let modules = Proc::new("/proc").modules(Path::new(&modules_folder));
    let modules = modules.unwrap_or_default();
    let mut out = context.stdout();
    let mut all_found = true;
    for name in names {
        match location(name, &kallsyms, &modules) {
            Some(location) => writeln!(out, "{name}: {location}")?,
            None => {
                writeln!(out, "{name}: not found")?;
                all_found = false;
            }
        }
    }
    out.flush()?;
    Ok(match all_found {
        true => ExitStatus::Ok,
        false => ExitStatus::Failure(1),
    })
}

/// Returns module, file and address range. The range is there twice: Linux perf prints relocated and unrelocated addresses, which
/// are the same here.
fn location(name: &str, kallsyms: &Kallsyms, modules: &[Module]) -> Option<String> {
    if let Some(range) = range(name, &kallsyms.kernel) {
        return Some(format!("[kernel] [kernel.kallsyms] {range} ({range})"));
    }
    kallsyms.modules.iter().find_map(|symbols| {
        let range = range(name, &symbols.table)?;
        let bracketed = format!("[{}]", symbols.name);
        let mut modules = modules.iter();
        let module = modules.find(|module| *module.name == *symbols.name);
        let file = match module.and_then(|module| module.file.as_ref()) {
            Some(file) => file.display().to_string(),
            None => bracketed.clone(),
        };
        Some(format!("{bracketed} {file} {range} ({range})"))
    })
}

/// Returns `START-END`, the addresses of the function with this name; if there are several, of the one at the lowest address.
fn range(name: &str, table: &SymbolTable) -> Option<String> {
    let mut symbols = table.iter();
    let (_, symbol) = symbols.find(|(index, _)| table.raw_name(*index) == name)?;
    Some(format!("{:#x}-{:#x}", symbol.start, symbol.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
ffffffff81000000 T first
ffffffff81000040 t twice
ffffffff81000080 t twice
ffffffff810000c0 T last
ffffffffc0001000 t inside\t[mod]
ffffffffc0001020 t after\t[mod]
";

    #[test]
    fn kernel_and_module_functions_are_found_and_the_first_duplicate() {
        let kallsyms = parse(TEXT, None);
        let modules = [Module {
            name: "mod".to_owned(),
            start: 0,
            size: 0,
            file: Some("/lib/mod.ko".into()),
        }];
        let location = |name| location(name, &kallsyms, &modules);
        let kernel = "0xffffffff81000040-0xffffffff81000080";
        let kernel = format!("[kernel] [kernel.kallsyms] {kernel} ({kernel})");
        assert_eq!(location("twice"), Some(kernel));
        let module = "0xffffffffc0001000-0xffffffffc0001020";
        let module = format!("[mod] /lib/mod.ko {module} ({module})");
        assert_eq!(location("inside"), Some(module));
        assert_eq!(location("nowhere"), None);
    }
}
