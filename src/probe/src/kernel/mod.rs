//! Probe points in the running kernel without its debug information: functions from kallsyms,
//! parameters and return types from BTF.

mod arguments;
mod place;
mod symbols;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use object::Architecture;
use rperf_names::is_pattern;

use crate::definition::{Definition, FunctionPlace, Point};
use crate::error::Error;
use crate::filter::NameFilter;
use crate::object::nearest;
use crate::search::{Probe, ProbePoints, SearchOptions, is_wanted};
use crate::shape::TypeShape as _;
use crate::show::{ListedPoint, ShownPlace, Variable};
use arguments::FetchPoint;
use rperf_btf::Btf;

pub use place::kernel_image_target;
pub use symbols::{KernelSymbol, KernelSymbolList};

/// The running kernel.
#[derive(Clone, Copy)]
pub struct Kernel<'a> {
    /// Its symbols.
    pub symbols: &'a KernelSymbolList<'a>,
    /// Its types, including those of the module; `None` if the kernel has no BTF.
    pub types: Option<&'a Btf<'a>>,
    /// The probed module; `None` for the kernel itself.
    pub module: Option<&'a str>,
    /// The machine name of uname(2).
    pub machine: &'a str,
}

impl Kernel<'_> {
    fn architecture(&self) -> Architecture {
        match self.machine {
            "x86_64" => Architecture::X86_64,
            "i386" | "i686" => Architecture::I386,
            "aarch64" => Architecture::Aarch64,
            _ => Architecture::Unknown,
        }
    }

    fn pointer_size(&self) -> u64 {
        match self.architecture() {
            Architecture::I386 => 4,
            _ => 8,
        }
    }

    /// Finds the probe points of `definition`. [`Probe::file_offset`] is the run-time address, or the
    /// offset in the function if the kernel hides addresses.
    ///
    /// # Errors
    ///
    /// There is no probe point or there are too many, an offset is beyond the end of its function, the probe point or a value
    /// needs debug information, or a value cannot be fetched.
    pub fn find(
        &self,
        definition: &Definition,
        options: &SearchOptions,
    ) -> Result<ProbePoints, Error> {
        let probes = match &definition.point {
            Point::Function {
                name,
                file: None,
                place,
            } => self.functions_named(definition, name, place)?,
            Point::Address { address, is_return } => {
                vec![self.at_address(definition, *address, *is_return)?]
            }
            // Other points need debug information, so an image of the kernel.
            _ => return Err(Error::NoKernelImage),
        };
        if probes.is_empty() {
            return Err(self.no_point(definition));
        }
        if probes.len() > options.max_probes {
            let limit = options.max_probes;
            return Err(Error::TooMany { limit });
        }
        let notes = Vec::new();
        Ok(ProbePoints { probes, notes })
    }

    fn functions_named(
        &self,
        definition: &Definition,
        name: &str,
        place: &FunctionPlace,
    ) -> Result<Vec<Probe>, Error> {
        let offset = match place {
            FunctionPlace::Offset(offset) => *offset,
            FunctionPlace::Return => 0,
            FunctionPlace::Source(_) => return Err(Error::NoKernelImage),
        };
        let mut probes: Vec<Probe> = Vec::new();
        for symbol in self.symbols.functions(self.module) {
            if !is_wanted(name, symbol.name) {
                continue;
            }
            let address = symbol.address;
            let size = self.symbols.size_of_symbol(address);
            if let Some(size) = size.filter(|size| offset >= *size) {
                return Err(Error::OffsetTooLarge {
                    function: symbol.name.to_owned(),
                    offset,
                    size,
                });
            }
            // An address of 0 is hidden: then aliases cannot be told from other functions.
            let is_alias =
                |probe: &Probe| address != 0 && probe.file_offset == address.wrapping_add(offset);
            // Aliases have one address, which is probed once.
            if probes.iter().any(is_alias) {
                continue;
            }
            probes.push(self.probe(definition, symbol, offset)?);
        }
        Ok(probes)
    }

    fn probe(
        &self,
        definition: &Definition,
        symbol: &KernelSymbol<'_>,
        offset: u64,
    ) -> Result<Probe, Error> {
        let is_return = definition.point.is_return();
        let point = FetchPoint {
            kernel: self,
            function: symbol.name,
            offset,
            is_return,
        };
        Ok(Probe {
            symbol: symbol.name.to_owned(),
            offset,
            name: symbol.name.to_owned(),
            provider: None,
            file_offset: symbol.address.wrapping_add(offset),
            semaphore: None,
            is_return,
            is_inlined: false,
            fields: point.fields(&definition.arguments)?,
        })
    }

    fn at_address(
        &self,
        definition: &Definition,
        address: u64,
        is_return: bool,
    ) -> Result<Probe, Error> {
        let function = self.symbols.at(address);
        let function = function.filter(|(symbol, _)| symbol.module == self.module);
        let (symbol, offset) = function.ok_or_else(|| Error::NoCode {
            address,
            path: "the kernel".into(),
        })?;
        if is_return && offset != 0 {
            return Err(Error::Unsupported {
                message: format!(
                    "{address:#x} is not the entry of a function, which %return needs"
                ),
                // No names to suggest.
                known: Vec::new(),
            });
        }
        let probe = self.probe(definition, &symbol, offset)?;
        let name = format!("abs_{address:x}");
        Ok(Probe { name, ..probe })
    }

    fn no_point(&self, definition: &Definition) -> Error {
        let point = definition.point.to_string();
        let Point::Function { name, .. } = &definition.point else {
            let nearest = Vec::new();
            return Error::NoPoint { point, nearest };
        };
        // The function may be in a module, or in the kernel instead of the requested module.
        let mut elsewhere = self.symbols.named(name).filter(|symbol| symbol.is_function);
        if let Some(symbol) = elsewhere.next()
            && !is_pattern(name)
        {
            let module = symbol.module.map(str::to_owned);
            let function = name.clone();
            return Error::OtherModule { function, module };
        }
        let names = self.symbols.functions(self.module);
        let names: Vec<String> = names.map(|symbol| symbol.name.to_owned()).collect();
        let nearest = nearest(name, &names);
        Error::NoPoint { point, nearest }
    }

    /// Returns the names of the functions of the module or the kernel itself that `filter` matches; without a filter, names with
    /// a leading underscore are omitted, as in perf.
    #[must_use]
    pub fn functions(&self, filter: Option<&NameFilter>) -> BTreeSet<String> {
        let names = self.symbols.functions(self.module);
        let names = names.map(|symbol| symbol.name);
        let matching = names.filter(|name| match filter {
            Some(filter) => filter.matches(name),
            None => !name.starts_with('_'),
        });
        matching.map(str::to_owned).collect()
    }

    /// Returns the parameters at every probe point of `definition`.
    ///
    /// # Errors
    ///
    /// Errors of [`Kernel::find`]; the probe point is not at the start of a function, or BTF does not
    /// have the function.
    pub fn variables(
        &self,
        definition: &Definition,
        options: &SearchOptions,
        filter: Option<&NameFilter>,
    ) -> Result<Vec<ListedPoint>, Error> {
        // Without its arguments, which are not listed and may be impossible to fetch.
        let definition = Definition {
            arguments: Vec::new(),
            ..definition.clone()
        };
        let points = self.find(&definition, options)?;
        let listed = points.probes.into_iter().map(|probe| {
            // Only debug information tells where parameters are after the entry.
            if probe.offset != 0 {
                return Err(Error::NoKernelImage);
            }
            let (parameters, _return_type) = self.signature(&probe.symbol)?;
            let named = parameters.iter().filter_map(|parameter| {
                let name = parameter.name()?;
                let is_wanted = filter.is_none_or(|filter| filter.matches(&name));
                is_wanted.then(|| Variable {
                    kind: parameter.spelled(),
                    name,
                    is_external: false,
                    is_available: true,
                    ranges: Vec::new(),
                })
            });
            let mut variables: Vec<Variable> = named.collect();
            variables.sort();
            Ok(ListedPoint {
                place: ShownPlace {
                    function: probe.symbol,
                    offset: 0,
                },
                variables,
                unrecordable: Vec::new(),
            })
        });
        listed.collect()
    }
}
