//! Demangling like perf 6.1: functions without parameter lists.

mod itanium;

/// The demangled `name`, or `None` if it isn't mangled in a known scheme, or is nested too deeply or too long when demangled.
pub fn demangle(name: &str) -> Option<String> {
    rust(name).or_else(|| cpp(name)).or_else(|| ocaml(name))
}

/// The start of the demangled `name`, as far as it can be determined without parsing all of it; possibly empty. `name` if it
/// certainly isn't mangled.
pub(crate) fn beginning(name: &str) -> &str {
    // An identifier is read only from names that begin with `_Z`; for the other mangled ones, the result is empty.
    let is_mangled = ["_Z", "_R", "ZN", "__ZN", "caml"]
        .iter()
        .any(|start| name.starts_with(start));
    match is_mangled {
        true => first_identifier(name).unwrap_or_default(),
        false => name,
    }
}

/// The first identifier of `_ZN3foo…` or `_Z3foo…`, up to an escape sequence of Rust names; `std::`
/// of `_ZNSt3foo…`, and `<` of Rust names like `_ZN…_$LT$…`. `None` for other names, and for other identifiers that
/// begin with `_`.
fn first_identifier(name: &str) -> Option<&str> {
    // Each `rest` is what follows the part of the name that has been read.
    let rest = name.strip_prefix("_Z")?;
    let nested = rest.strip_prefix('N');
    let rest = nested.map_or(rest, |inner| inner.trim_start_matches(['r', 'V', 'K']));
    if let Some(inner) = rest.strip_prefix("St") {
        return inner
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some("std::");
    }
    let digit_count = rest.find(|c: char| !c.is_ascii_digit())?;
    let (length, rest) = rest.split_at(digit_count);
    let identifier = rest.get(..length.parse().ok()?)?;
    let end = identifier.find(['$', '.']).unwrap_or(identifier.len());
    if identifier.starts_with("_$LT$") && through_rust_hash(name).is_some() {
        return Some("<");
    }
    // `_GLOBAL__N_1` is an anonymous namespace, and Rust's `_$` has no underscore when demangled.
    let plain = identifier.get(..end)?;
    (!plain.starts_with('_')).then_some(plain)
}

/// Legacy (`_ZN…17h<hash>E`) and v0 (`_R…`) names, without the hash. Copies made by the compiler
/// (`.cold`, `.llvm.123`) have the name of the original.
fn rust(name: &str) -> Option<String> {
    let original = if name.starts_with("_R") {
        name.split_once('.').map_or(name, |(original, _)| original)
    } else {
        through_rust_hash(name)?
    };
    let demangled = rustc_demangle::try_demangle(original).ok()?;
    Some(format!("{demangled:#}"))
}

/// A legacy Rust name up to its hash and the `E` after it, without a suffix like `.llvm.123`; `None` if there is no hash. The
/// hash is checked because otherwise any C++ variable in a namespace would be taken for a Rust name: neither has parameters
/// after the `E`.
fn through_rust_hash(name: &str) -> Option<&str> {
    let is_nested = ["_ZN", "ZN", "__ZN"]
        .iter()
        .any(|start| name.starts_with(start));
    if !is_nested {
        return None;
    }
    let hash_start = name.rfind("17h")? + "17h".len();
    let (hash, rest) = name.get(hash_start..)?.split_at_checked(16)?;
    let is_hexadecimal = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    let distinct = ('0'..='9')
        .chain('a'..='f')
        .filter(|&digit| hash.contains(digit))
        .count();
    let suffix = rest.strip_prefix('E')?;
    let ends = suffix.is_empty() || suffix.starts_with('.');
    // More than four distinct digits: GNU's heuristic against random matches. The result includes the `E` after the hash.
    (hash.chars().all(is_hexadecimal) && distinct > 4 && ends)
        .then(|| name.get(..=hash_start + 16))?
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    itanium::demangle(name)
}

/// OCaml: `camlModule__name_123`, with `$xx` for other characters.
fn ocaml(name: &str) -> Option<String> {
    let rest = name.strip_prefix("caml")?;
    if !rest.starts_with(|first: char| first.is_ascii_uppercase()) {
        return None;
    }
    let mut bytes = rest.as_bytes();
    let mut demangled = Vec::with_capacity(bytes.len());
    loop {
        match bytes {
            [] => return String::from_utf8(demangled).ok(),
            [b'_', b'_', after @ ..] => {
                demangled.push(b'.');
                bytes = after;
            }
            [b'$', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default();
                demangled.extend(u8::try_from(digit(*high) << 4 | digit(*low)).ok());
                bytes = after;
            }
            [byte, after @ ..] => {
                demangled.push(*byte);
                bytes = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{beginning, demangle};

    /// Mangled and demangled names. Those of C++ and Rust are demangled as by c++filt -p -i of binutils 2.40.
    const KNOWN: &[(&str, &str)] = &[
        ("_ZN3foo3barEv", "foo::bar"),
        ("_ZNK3foo3barEi.isra.0", "foo::bar"),
        ("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f"),
        (
            "_ZNSt6vectorISsSaISsEE9push_backERKSs",
            "std::vector<std::string, std::allocator<std::string> >::push_back",
        ),
        (
            "_ZNSsC1Ev",
            "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string",
        ),
        ("_ZNSi5tellgEv", "std::istream::tellg"),
        ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()"),
        (
            "_ZZN1A1fEiENKUlT_E0_clIcEEDaS0_",
            "A::f(int)::{lambda(auto:1)#2}::operator()<char>",
        ),
        (
            "_Z1fILj4ELm5ELi3ELln1ELb1ELc120EEvv",
            "f<4u, 5ul, 3, -1l, true, (char)120>",
        ),
        ("_Z1fIXppLi1EEEvv", "f<(1)++>"),
        ("_Z1fIXpp_Li1EEEvv", "f<++(1)>"),
        ("_Z1fIXmmplLi1ELi2EEEvv", "f<((1)+(2))-->"),
        ("_Z1fIJEEvv", "f<>"),
        ("_Z1fIiJEEvv", "f<int>"),
        ("_Z1fIJilEEvDpT_", "f<int, long>"),
        ("_Z1fIPFivEEvT_", "f<int (*)()>"),
        ("_Z1fIM1AKFivEEvT_", "f<int (A::*)() const>"),
        ("_Z1fIRA3_iEvT_", "f<int (&) [3]>"),
        ("_ZlsIcERSoS0_T_", "operator<< <char>"),
        ("_ZN1AcvbEv", "A::operator bool"),
        ("_ZTV1A", "vtable for A"),
        ("_ZTC1A0_1B", "construction vtable for B-in-A"),
        ("_ZThn16_N1A1fEv", "non-virtual thunk to A::f()"),
        ("_ZGVZ1fvE1x", "guard variable for f()::x"),
        ("_ZGR1x0_", "reference temporary #0 for x"),
        (
            "_ZGTtNSt11logic_errorC1EPKc",
            "transaction clone for std::logic_error::logic_error(char const*)",
        ),
        ("_ZN1AD0Ev", "A::~A"),
        ("_ZN1fB5cxx11Ev", "f[abi:cxx11]"),
        (
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
            "core::fmt::Write::write_fmt",
        ),
        (
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.77",
            "core::fmt::Write::write_fmt",
        ),
        ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
        ("_RNvCs1234_7mycrate3foo.cold", "mycrate::foo"),
        ("camlStdlib__List__map_123", "Stdlib.List.map_123"),
        ("camlFoo__$2b$2b_9", "Foo.++_9"),
        (
            "_Z1fISsB5cxx11PS_S1_EvT_",
            "f<std::string[abi:cxx11], f*, f*>",
        ),
        // Functions that are restricted by `enable_if` or `decltype`, from GCC 12.
        (
            "_ZZ1hIN2ns1AEEDTadsrT_onplES2_ENKUliE_clEi",
            "h<ns::A>(ns::A)::{lambda(int)#1}::operator()",
        ),
        (
            "_ZZ1mIiENSt9enable_ifIXsr3fooIT_E5valueE3barE4typeES2_ENKUliE_clEi",
            "m<int>(int)::{lambda(int)#1}::operator()",
        ),
        (
            "_ZZ1nIiENSt9enable_ifIXsrN2ns4deepIT_EE5valueE3barE4typeES3_ENKUliE_clEi",
            "n<int>(int)::{lambda(int)#1}::operator()",
        ),
        (
            "_ZZ1oIiENSt9enable_ifIXsrN2ns4deepIT_E2inE5valueE3barE4typeES3_ENKUliE_clEi",
            "o<int>(int)::{lambda(int)#1}::operator()",
        ),
        (
            "_ZZ1pIN2ns1AEEDTclsrT_1fLi1EEES2_ENKUliE_clEi",
            "p<ns::A>(ns::A)::{lambda(int)#1}::operator()",
        ),
        (
            "_ZZ1qIiENSt9enable_ifIXaantsrSt7is_sameIT_cE5valuesrSt11is_integralIS2_E5valueEDTplfp_Li1EEE4typeES2_ENKUliE_clEi",
            "q<int>(int)::{lambda(int)#1}::operator()",
        ),
        (
            "_ZZ1kIiENSt9enable_ifIXsrSt11is_integralIT_E5valueEiE4typeES2_ENKUliE_clEi",
            "k<int>(int)::{lambda(int)#1}::operator()",
        ),
    ];

    #[test]
    fn known_names_are_demangled() {
        for (mangled, demangled) in KNOWN {
            assert_eq!(demangle(mangled).as_deref(), Some(*demangled), "{mangled}");
        }
    }

    /// GNU's demangler does not know this expression.
    #[test]
    fn type_ids_are_demangled() {
        let demangled = demangle("_Z1fIXtiiEEvv");
        assert_eq!(demangled.as_deref(), Some("f<typeid (int)>"));
    }

    /// The prefixes are the results of [`beginning`].
    #[test]
    fn prefixes_match_the_demangled_name() {
        for (mangled, demangled) in KNOWN {
            let start = beginning(mangled);
            assert!(demangled.starts_with(start), "{start} {demangled}");
        }
        for (name, expected) in [
            ("main", "main"),
            ("_ZNK3foo3barEv", "foo"),
            ("_Z3barv", "bar"),
            ("_ZN12_GLOBAL__N_11fEv", ""),
            ("_ZN24_$LT$u8$u20$as$u20$T$GT$1f17h0123456789abcdefE", "<"),
            ("_ZN24_$LT$u8$u20$as$u20$T$GT$1fEv", ""),
            ("_ZN10a$LT$b$GT$1f17h0123456789abcdefE", "a"),
            ("_ZNSt6vectorIiE1fEv", "std::"),
            ("_ZNSsC1Ev", ""),
            ("_ZN99short", ""),
            ("_RNvCs1234_7mycrate3foo", ""),
        ] {
            assert_eq!(beginning(name), expected, "{name}");
            let demangled = demangle(name).unwrap_or_else(|| name.to_owned());
            assert!(demangled.starts_with(expected), "{demangled}");
        }
    }

    #[test]
    fn other_names_are_not_demangled() {
        for name in [
            "",
            "main",
            "_Z",
            "_ZN",
            "_start",
            "__Z3foov",
            "caml_main",
            "_ZN3foo",
            "_Z9999999999999999999a",
            "_ZS_",
            "_ZSxE",
            "_Zé",
        ] {
            assert_eq!(demangle(name), None, "{name}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let deep = format!("_Z1fI{}iE", "P".repeat(100_000));
        assert_eq!(demangle(&deep), None);
        // `S_` is `f`, `S0_` is `A`, and `S1_` to `SZ_`, `S10_` and so on are the types, in base 36.
        // Each type is a function type whose two parameters both have the previous type: the text doubles each time.
        let types: String = (0..40)
            .map(|n| format!("FvS{0}_S{0}_E", base_36(n)))
            .collect();
        assert_eq!(demangle(&format!("_Z1fI1A{types}E")), None);
        // The types are arguments of an attribute, which are not printed. `Dp` repeats the last type for each value of a pack:
        // the search for a pack in it is bounded, too.
        let last = base_36(40);
        let searched = format!("_Z1fIU1xI1A{types}EDpS{last}_E");
        assert_eq!(demangle(&searched), None);
    }

    /// Each level is parsed in two ways, so the time would double with each level if the number of steps had no limit.
    #[test]
    fn trying_twice_at_each_level_ends() {
        assert_eq!(demangle(&format!("_ZN1A{}", "cvT_I".repeat(80))), None);
        assert_eq!(demangle(&format!("_Z1fI{}", "Xsr1AI".repeat(80))), None);
    }

    /// The number in a substitution `S<number>_`.
    fn base_36(number: u32) -> String {
        let digit = |n| char::from_digit(n, 36).map(|c| c.to_ascii_uppercase());
        let high = digit(number / 36).filter(|&high| high != '0');
        high.into_iter().chain(digit(number % 36)).collect()
    }

    #[test]
    fn a_few_shared_types_are_expanded() {
        let demangled = "f<A, void (A, A), void (void (A, A), void (A, A))>";
        assert_eq!(
            demangle("_Z1fI1AFvS0_S0_EFvS1_S1_EE").as_deref(),
            Some(demangled)
        );
    }

    proptest! {
        #[test]
        fn no_name_panics(name in "_Z[NSTIJEKPROFMXLCDUGABZa-z0-9_]{0,40}") {
            demangle(&name);
        }

        #[test]
        fn beginnings_are_prefixes(name in "_ZN?[VK]?(St)?[1-4][a-z_$.]{1,4}[NSTIJEKPROFMXLCDUGABZa-z0-9_]{0,20}E?") {
            if let Some(demangled) = demangle(&name) {
                prop_assert!(demangled.starts_with(beginning(&name)), "{name} {demangled}");
            }
        }

        #[test]
        fn known_names_with_a_changed_byte_do_not_panic(which in 0..KNOWN.len(), at in 0usize..80, byte in 32u8..127) {
            let mut name = KNOWN[which].0.as_bytes().to_vec();
            let at = at % name.len();
            name[at] = byte;
            demangle(&String::from_utf8_lossy(&name));
        }
    }
}
