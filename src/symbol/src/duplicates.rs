//! Selection between two symbols at the same address.

use crate::symbol::{Binding, Symbol};

/// Whether to keep `first`, which was inserted earlier, and drop `second`. As in perf, the displayed names are compared. They may
/// have to be demangled, so they are requested only if size and binding don't decide.
pub(crate) fn keeps_first<'n, N: AsRef<str> + 'n>(
    first: &Symbol,
    second: &Symbol,
    names: impl FnOnce() -> (N, N),
) -> bool {
    let by_rank = rank(first).cmp(&rank(second));
    if by_rank.is_ne() {
        return by_rank.is_gt();
    }
    let (first, second) = names();
    let (first, second) = (first.as_ref(), second.as_ref());
    let by_underscores = leading_underscores(second).cmp(&leading_underscores(first));
    let by_name = by_underscores.then(first.len().cmp(&second.len()));
    if by_name.is_ne() {
        return by_name.is_gt();
    }
    !is_syscall_alias(first)
}

/// Precedence: has a size, not weak, global, in this order.
fn rank(symbol: &Symbol) -> (bool, bool, bool) {
    (
        symbol.end > symbol.start,
        symbol.binding != Binding::Weak,
        symbol.binding == Binding::Global,
    )
}

/// Whether two mangled names are variants of one constructor or destructor (Itanium ABI: `C1`,
/// `C2`, `D0`…): compilers emit these in pairs at the same address, and both have the same source
/// name.
pub(crate) fn are_variants(first: &str, second: &str) -> bool {
    let (first, second) = (first.as_bytes(), second.as_bytes());
    let mut differing = (0..)
        .zip(first.iter().zip(second))
        .filter(|(_, (a, b))| a != b);
    let (Some((at, (a, b))), None) = (differing.next(), differing.next()) else {
        return false;
    };
    let four_from = |start: usize| first.get(start..start + 4);
    let is_structor = |around: &[u8]| {
        // After an S, the letter and the digit belong to the number of a substitution. `E` ends the qualified name, `B` begins
        // an ABI tag, `I` template arguments.
        matches!(around, [before, b'C' | b'D', _, b'E' | b'B' | b'I'] if *before != b'S')
    };
    first.len() == second.len()
        && first.starts_with(b"_Z")
        && a.is_ascii_digit()
        && b.is_ascii_digit()
        && usize::checked_sub(at, 2)
            .and_then(four_from)
            .is_some_and(is_structor)
}

fn leading_underscores(name: &str) -> usize {
    name.bytes().take_while(|&byte| byte == b'_').count()
}

/// The aliases of system calls in kernels before 4.17.
fn is_syscall_alias(name: &str) -> bool {
    name.starts_with("SyS") || name.starts_with("compat_SyS")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::NameAt;
    use crate::symbol::{NameForm, SymbolKind};

    fn symbol(size: u64, binding: Binding) -> Symbol {
        Symbol {
            start: 16,
            end: 16 + size,
            binding,
            kind: SymbolKind::Function,
            form: NameForm::Plain,
            name: NameAt::default(),
        }
    }

    #[test]
    fn each_rule_yields_to_the_one_before() {
        use Binding::{Global, Local, Weak};
        // The better and the worse symbol. Rules after the one that decides favour the worse.
        let cases = [
            ((1, Weak, "__a"), (0, Global, "longer")),
            ((1, Local, "__a"), (1, Weak, "longer")),
            ((1, Global, "__a"), (1, Local, "longer")),
            ((1, Global, "_a"), (1, Global, "__longer")),
            ((1, Global, "longer"), (1, Global, "short")),
            ((1, Global, "sys_x"), (1, Global, "SyS_x")),
        ];
        for (better, worse) in cases {
            let (b, w) = (symbol(better.0, better.1), symbol(worse.0, worse.1));
            assert!(
                keeps_first(&b, &w, || (better.2, worse.2)),
                "{better:?} {worse:?}"
            );
            assert!(
                !keeps_first(&w, &b, || (worse.2, better.2)),
                "{worse:?} {better:?}"
            );
        }
    }

    #[test]
    fn variants_of_a_constructor_have_one_name() {
        let name = |mangled: &str| crate::demangle::demangle(mangled).expect("a mangled name");
        for (first, second) in [
            ("_ZN3FooC1Ev", "_ZN3FooC2Ev"),
            ("_ZN3FooD0Ev", "_ZN3FooD2Ev"),
            ("_ZN3FooIiEC1B5cxx11Ei", "_ZN3FooIiEC2B5cxx11Ei"),
            ("_ZN3FooC1IiEET_", "_ZN3FooC2IiEET_"),
        ] {
            assert!(are_variants(first, second), "{first} {second}");
            assert_eq!(name(first), name(second));
        }
        for (first, second) in [
            ("_ZN3FooC1Ev", "_ZN3FooC1Ev"),
            ("_ZN3FooC1Ev", "_ZN3FooD1Ev"),
            ("_ZN3FooC1Ev", "_ZN3FooC2Evv"),
            ("_ZN2C1C1Ev", "_ZN2C2C2Ev"),
            ("C1E", "C2E"),
            ("_Z3fooSC1_", "_Z3fooSC2_"),
        ] {
            assert!(!are_variants(first, second), "{first} {second}");
        }
    }

    #[test]
    fn the_first_of_equal_symbols_is_kept() {
        let one = symbol(1, Binding::Global);
        assert!(keeps_first(&one, &one, || ("abc", "abd")));
    }
}
