//! The small tables that are part of the program, for machines without the vendors' own: what architectures define for
//! all their processors, and the top level of the top-down method where it is four slots wide.

use std::io;

use super::Folder;

/// Their files, sorted.
const FILES: [(&str, &str); 6] = [
    (
        "arm64/architectural/pipeline.json",
        include_str!("../../tables/arm64/architectural/pipeline.json"),
    ),
    (
        "arm64/mapfile.csv",
        include_str!("../../tables/arm64/mapfile.csv"),
    ),
    (
        "x86/amd/pipeline.json",
        include_str!("../../tables/x86/amd/pipeline.json"),
    ),
    (
        "x86/architectural/pipeline.json",
        include_str!("../../tables/x86/architectural/pipeline.json"),
    ),
    (
        "x86/mapfile.csv",
        include_str!("../../tables/x86/mapfile.csv"),
    ),
    (
        "x86/skylake/pipeline.json",
        include_str!("../../tables/x86/skylake/pipeline.json"),
    ),
];

/// The folder of these tables.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn;

impl Folder for BuiltIn {
    fn read(&self, path: &str) -> io::Result<String> {
        let found = FILES.iter().find(|(name, _)| *name == path);
        let (_, text) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok((*text).to_owned())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let mut names = Vec::new();
        for (name, _) in FILES {
            let inside = match path {
                "" => Some(name),
                folder => name
                    .strip_prefix(folder)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            let Some(inside) = inside else { continue };
            names.push(match inside.split_once('/') {
                Some((folder, _)) => format!("{folder}/"),
                None => inside.to_owned(),
            });
        }
        names.dedup();
        names
    }
}
