//! The type of the file from which an object's symbols were loaded.

use std::path::Path;

use crate::candidates::{in_mount_namespaces, undeleted};
use crate::load::LoadedSymbols;
use crate::request::{ObjectKind, ObjectRequest, SearchPaths, join_below};

/// Where the symbols of an object were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolOrigin {
    /// A listing of the kernel's symbols.
    Kallsyms,
    /// An image of the kernel, or its debug file from a server.
    Vmlinux,
    /// A module file named `*.ko`, or a file without extension, such as the copy of a module in the build-id cache.
    Module,
    /// A module file with another extension, such as `.ko.xz`.
    CompressedModule,
    /// A perf map or jitdump of JIT-compiled code.
    Jit,
    /// The object itself, also in the mount namespace of a process that mapped it.
    Object,
    /// The copy in the build-id cache.
    Cache,
    /// The debug file in the build-id cache.
    CacheDebug,
    /// The debug file in `.build-id` below a debug directory.
    BuildId,
    /// Any other file: the debug file named by the object's `.gnu_debuglink`, or a file from a server.
    DebugLink,
    /// The object's path with `.debug` appended, in a debug directory such as `/usr/lib/debug`, as on Fedora.
    FedoraDebugInfo,
    /// The object's path in a debug directory, as on Ubuntu.
    UbuntuDebugInfo,
    /// The object's path without `/usr`, in a debug directory.
    MixedUpUbuntuDebugInfo,
    /// The debug file in the directory `.debug` next to the object, as with OpenEmbedded.
    OpenEmbeddedDebugInfo,
}

impl SymbolOrigin {
    /// The origin of loaded symbols; `None` if there are none.
    #[must_use]
    pub fn of(
        loaded: &LoadedSymbols,
        request: &ObjectRequest<'_>,
        paths: &SearchPaths,
    ) -> Option<Self> {
        if loaded.table.is_empty() {
            return None;
        }
        // Only symbols of ELF files come with a source of debug information.
        let is_kallsyms = loaded.debug.is_none();
        Some(match request.kind {
            ObjectKind::PerfMap => Self::Jit,
            ObjectKind::Kernel | ObjectKind::KernelModule if is_kallsyms => Self::Kallsyms,
            ObjectKind::Kernel => Self::Vmlinux,
            ObjectKind::KernelModule => match loaded.source.extension() {
                Some(extension) if extension != "ko" => Self::CompressedModule,
                _ => Self::Module,
            },
            _ if in_mount_namespaces(paths, request).any(|path| path == loaded.source) => {
                Self::Object
            }
            _ => Self::of_user_object(&loaded.source, request.path, paths),
        })
    }

    fn of_user_object(source: &Path, object: &Path, paths: &SearchPaths) -> Self {
        let is_at = |path: &Path| source == paths.under_symfs(path);
        if is_at(object) || undeleted(object).is_some_and(is_at) {
            return Self::Object;
        }
        let cache = paths.build_id_cache.as_deref();
        if cache.is_some_and(|cache| source.starts_with(cache)) {
            return match source.file_name() {
                Some(name) if name == "debug" => Self::CacheDebug,
                _ => Self::Cache,
            };
        }
        for root in paths.debug_dirs.iter().map(|root| paths.under_symfs(root)) {
            let mirrored = join_below(&root, object);
            if source.starts_with(root.join(".build-id")) {
                return Self::BuildId;
            } else if source == mirrored {
                return Self::UbuntuDebugInfo;
            } else if source.with_extension("") == mirrored {
                return Self::FedoraDebugInfo;
            } else if let Ok(below_usr) = object.strip_prefix("/usr")
                && source == join_below(&root, below_usr)
            {
                return Self::MixedUpUbuntuDebugInfo;
            }
        }
        let folder = paths
            .under_symfs(object)
            .parent()
            .map(|dir| dir.join(".debug"));
        match folder.zip(object.file_name()) {
            Some((folder, name)) if source == folder.join(name) => Self::OpenEmbeddedDebugInfo,
            _ => Self::DebugLink,
        }
    }

    /// The letter shown by `perf report --verbose`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Kallsyms => 'k',
            Self::Vmlinux => 'v',
            Self::Module => 'K',
            Self::CompressedModule => 'm',
            Self::Jit => 'j',
            Self::Object => 'd',
            Self::Cache => 'B',
            Self::CacheDebug => 'D',
            Self::BuildId => 'b',
            Self::DebugLink => 'l',
            Self::FedoraDebugInfo => 'f',
            Self::UbuntuDebugInfo => 'u',
            Self::MixedUpUbuntuDebugInfo => 'x',
            Self::OpenEmbeddedDebugInfo => 'o',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_of_user_objects_have_perfs_letters() {
        let paths = SearchPaths::new(Some("/home/.debug".into()));
        let letter = |source: &str, object: &str| {
            SymbolOrigin::of_user_object(Path::new(source), Path::new(object), &paths).letter()
        };
        for (source, expected) in [
            ("/usr/lib/libz.so.1", 'd'),
            ("/home/.debug/.build-id/12/34/elf", 'B'),
            ("/home/.debug/.build-id/12/34/debug", 'D'),
            ("/usr/lib/debug/.build-id/12/34.debug", 'b'),
            ("/usr/lib/debug/usr/lib/libz.so.1", 'u'),
            ("/usr/lib/debug/usr/lib/libz.so.1.debug", 'f'),
            ("/usr/lib/debug/lib/libz.so.1", 'x'),
            ("/usr/lib/.debug/libz.so.1", 'o'),
            ("/usr/lib/libz.debug", 'l'),
        ] {
            assert_eq!(letter(source, "/usr/lib/libz.so.1"), expected, "{source}");
        }
    }
}
