//! Notes on code whose names are unknown: objects without symbols, and missing perf maps.

use rperf_names::first_names;
use rperf_replay::{Dso, DsoId, DsoKind};
use rperf_resolve::Resolver;
use rperf_symbol::SymbolFinding;

/// Maximum number of objects that a note names.
const MAX_NAMES: usize = 3;

/// Returns notes, each followed by a hint, on the objects with at least one address that was looked up and has no symbol.
pub(super) fn notes(resolver: &Resolver<'_>) -> Vec<String> {
    let mut objects = Vec::new();
    let mut kernel_reason = None;
    let mut perf_maps = Vec::new();
    for id in resolver.objects_lacking_names() {
        let dso = resolver.world().dso(id);
        if let DsoKind::PerfMap(pid) = dso.kind {
            if is_missing(resolver, id) {
                perf_maps.push(format!("/tmp/perf-{pid}.map"));
            }
            continue;
        }
        // A vdso normally has only exported names.
        let is_usual = |finding: &SymbolFinding| {
            matches!(dso.kind, DsoKind::Vdso | DsoKind::Vdso32)
                && matches!(finding, SymbolFinding::OnlyDynamic { .. })
        };
        // The findings are in the order in which files were tried: the last one counts.
        let mut findings = resolver.findings_of(id).iter().rev();
        let last_reason = findings.find_map(|finding| match is_usual(finding) {
            true => None,
            false => reason(finding),
        });
        match last_reason {
            // All kernel code (the kernel, modules and BPF programs) has one note, with the reason of the last such object.
            Some(reason) if dso.is_kernel() => kernel_reason = Some(reason),
            Some(reason) => objects.push(format!("{} ({reason})", name(dso))),
            None => {}
        }
    }
    let mut notes = Vec::new();
    if let Some(list) = list(objects) {
        notes.push(format!("functions without names: {list}"));
        notes.push(
            "hint: install the packages with their debug symbols, or get them from servers with --debuginfod"
                .to_owned(),
        );
    }
    if let Some(reason) = kernel_reason {
        notes.push(format!("kernel functions without names: {reason}"));
        notes.push(
            "hint: record with kernel.kptr_restrict at 0, or give the kernel's image with -k, or its symbols with --kallsyms"
                .to_owned(),
        );
    }
    if let Some(list) = list(perf_maps) {
        notes.push(format!("Failed to open {list}, continuing without symbols"));
        notes.push(
            "hint: the runtime writes the file: java -XX:+DumpPerfMapAtExit, node --perf-basic-prof, python3 -X perf".to_owned(),
        );
    }
    notes
}

/// Whether the process has neither a perf map nor a JIT dump, or only an empty one. Unusable ones are not missing: they have
/// findings, which are reported.
fn is_missing(resolver: &Resolver<'_>, perf_map: DsoId) -> bool {
    resolver.symbol_file(perf_map).is_none() && resolver.findings_of(perf_map).is_empty()
}

/// Returns the reason why functions of an object have no names; `None` for findings that are reported by other warnings.
fn reason(finding: &SymbolFinding) -> Option<String> {
    Some(match finding {
        SymbolFinding::NotFound { .. } => "not found".to_owned(),
        SymbolFinding::Unreadable { reason, .. } | SymbolFinding::Damaged { reason, .. } => {
            reason.clone()
        }
        SymbolFinding::Stripped { .. } => "stripped".to_owned(),
        SymbolFinding::OnlyDynamic { .. } => "only exported names".to_owned(),
        SymbolFinding::KernelAddressesHidden { .. }
        | SymbolFinding::NoKernelSymbols { .. }
        | SymbolFinding::NoRelocationSymbol { .. } => finding.to_string(),
        _ => return None,
    })
}

fn name(dso: &Dso) -> &str {
    match dso.kind {
        DsoKind::User => &dso.long_name,
        _ => &dso.short_name,
    }
}

/// Returns the first few names in sorted order, and how many more there are; `None` if there are no names.
fn list(mut names: Vec<String>) -> Option<String> {
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| first_names(&names, MAX_NAMES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_short() {
        let listed = |names: &[&str]| list(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(listed(&[]), None);
        assert_eq!(listed(&["b", "a", "b"]).as_deref(), Some("a, b"));
        let many = listed(&["e", "d", "c", "b", "a"]);
        assert_eq!(many.as_deref(), Some("a, b, c and 2 more"));
    }
}
