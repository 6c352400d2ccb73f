//! Names in source form, as perf 6.1 prints them: functions without parameter lists.

use cpp_demangle::{DemangleOptions, ParseOptions};

/// How deep a C++ name may nest before it is shown as it stands.
const RECURSION_LIMIT: u32 = 192;

/// The source form of `name`, or `None` where it isn't mangled in a way we know.
pub fn demangle(name: &str) -> Option<String> {
    rust(name).or_else(|| cpp(name)).or_else(|| ocaml(name))
}

/// Legacy (`_ZN…17h<hash>E`) and v0 (`_R…`) names, without the hash.
fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    Some(format!("{demangled:#}"))
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    // A copy made by the compiler (`.isra.0`, `.cold`) is shown under the name of the original.
    let mangled = name.split(['.', '@']).next().unwrap_or(name);
    let parse = ParseOptions::default().recursion_limit(RECURSION_LIMIT);
    let symbol = cpp_demangle::Symbol::new_with_options(mangled, &parse).ok()?;
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(RECURSION_LIMIT);
    symbol.demangle(&options).ok()
}

/// OCaml: `camlModule__name_123`, with `$xx` for other characters.
fn ocaml(name: &str) -> Option<String> {
    let rest = name.strip_prefix("caml")?;
    if !rest.starts_with(|first: char| first.is_ascii_uppercase()) {
        return None;
    }
    let mut bytes = rest.as_bytes();
    let mut shown = Vec::with_capacity(bytes.len());
    loop {
        match bytes {
            [] => return String::from_utf8(shown).ok(),
            [b'_', b'_', after @ ..] => {
                shown.push(b'.');
                bytes = after;
            }
            [b'$', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default();
                shown.extend(u8::try_from(digit(*high) << 4 | digit(*low)).ok());
                bytes = after;
            }
            [byte, after @ ..] => {
                shown.push(*byte);
                bytes = after;
            }
        }
    }
}
