//! The arguments that probes in the running kernel fetch, with types from BTF.

use super::Kernel;
use crate::definition::{Argument, ArgumentValue};
use crate::error::Error;
use crate::event::field_name;
use crate::field::{Dereference, ProbeField};
use crate::kernel_types::{BtfShape, Parameter};
use crate::object::all_or_nearest;
use crate::register;
use crate::search::{PathValue, raw_kernel_text};
use crate::shape::{TypeCategory, TypeShape as _};

/// A probe point at which the arguments of a definition are fetched.
pub(super) struct FetchPoint<'k, 'a> {
    pub(super) kernel: &'k Kernel<'a>,
    pub(super) function: &'k str,
    /// Offset from the function's entry in bytes.
    pub(super) offset: u64,
    pub(super) is_return: bool,
}

/// The parameters of a function, and its return type.
pub(super) type Signature<'b> = (Vec<Parameter<'b>>, Option<BtfShape<'b>>);

impl Kernel<'_> {
    /// Returns the signature of a function from BTF.
    pub(super) fn signature(&self, function: &str) -> Result<Signature<'_>, Error> {
        // Without BTF, only debug information of the kernel has the parameters.
        let types = self.types.ok_or(Error::NoKernelImage)?;
        // Only the exact name is looked up: variants made by the compiler, such as f.isra.0, may have other parameters.
        let mut prototypes = types.prototypes(function);
        prototypes.sort_unstable();
        prototypes.dedup();
        let unknown = |count| Error::NoSignature {
            function: function.to_owned(),
            count,
        };
        match prototypes.as_slice() {
            // A prototype that cannot be read counts as none (0).
            [prototype] => BtfShape::signature(types, *prototype, self.pointer_size())
                .ok_or_else(|| unknown(0)),
            several => Err(unknown(several.len())),
        }
    }
}

impl FetchPoint<'_, '_> {
    /// Returns the fields to fetch, in the order of the arguments.
    pub(super) fn fields(&self, arguments: &[Argument]) -> Result<Vec<ProbeField>, Error> {
        let mut fields = Vec::new();
        for argument in arguments {
            match &argument.value {
                ArgumentValue::Raw(text) => fields.push(self.raw(argument, text)?),
                ArgumentValue::Variable { name, .. } => fields.push(self.variable(argument, name)?),
                // BTF has no local variables, so `$vars` is the same as `$params`.
                ArgumentValue::Parameters | ArgumentValue::Variables => {
                    fields.extend(self.all(argument)?)
                }
            }
        }
        Ok(fields)
    }

    fn raw(&self, argument: &Argument, text: &str) -> Result<ProbeField, Error> {
        let architecture = self.kernel.architecture();
        let base = raw_kernel_text(architecture, text, self.is_return)?;
        let mut kind = argument.kind.clone();
        if text == "$retval" && kind.is_none() {
            kind = self.kind_of_return();
        }
        Ok(ProbeField {
            name: argument.name.clone(),
            base,
            reads: Vec::new(),
            kind,
        })
    }

    /// Returns the type of the return value, if BTF has it.
    fn kind_of_return(&self) -> Option<String> {
        let returned = self.kernel.signature(self.function).ok()?.1?;
        let (no_reads, is_user, cast) = (Vec::new(), false, None);
        let mut path = PathValue::new(returned, "$retval", no_reads, is_user);
        path.finish_with_type(cast).ok()?.0
    }

    /// Returns the function's parameters; an error for the requested value `name` if the probe point is not the entry.
    fn entry_parameters(&self, name: &str) -> Result<Vec<Parameter<'_>>, Error> {
        if self.offset == 0 && !self.is_return {
            return Ok(self.kernel.signature(self.function)?.0);
        }
        // After the entry, parameters may be anywhere.
        Err(Error::NoVariable {
            name: name.to_owned(),
            place: self.function.to_owned(),
            reason: Some(
                "without debug information of the kernel, parameters are known only at the entry of functions"
                    .to_owned(),
            ),
            elsewhere: vec![self.function.to_owned()],
            known: Vec::new(),
        })
    }

    fn variable(&self, argument: &Argument, name: &str) -> Result<ProbeField, Error> {
        let parameters = self.entry_parameters(name)?;
        let is_named = |parameter: &Parameter<'_>| parameter.name().as_deref() == Some(name);
        let index = parameters.iter().position(is_named);
        let Some(index) = index else {
            let known: Vec<String> = parameters.iter().filter_map(Parameter::name).collect();
            return Err(Error::NoVariable {
                name: name.to_owned(),
                place: self.function.to_owned(),
                reason: None,
                elsewhere: Vec::new(),
                known: all_or_nearest(name, known),
            });
        };
        self.field(argument, &parameters, index)
    }

    /// Returns the fields of all parameters that can be recorded.
    fn all(&self, argument: &Argument) -> Result<Vec<ProbeField>, Error> {
        let parameters = self.entry_parameters(&argument.text)?;
        let fields = parameters
            .iter()
            .enumerate()
            .filter_map(|(index, parameter)| {
                let name = parameter.name()?;
                let single = Argument {
                    text: name.clone(),
                    name: Some(field_name(&name)),
                    value: ArgumentValue::Variable {
                        name,
                        members: Vec::new(),
                    },
                    ..argument.clone()
                };
                self.field(&single, &parameters, index).ok()
            });
        Ok(fields.collect())
    }

    /// Returns the field of parameter `index`, from which `argument` may access members.
    fn field(
        &self,
        argument: &Argument,
        parameters: &[Parameter<'_>],
        index: usize,
    ) -> Result<ProbeField, Error> {
        let ArgumentValue::Variable { name, members } = &argument.value else {
            // Never returned: callers only pass variables.
            return Err(Error::NoKernelImage);
        };
        let (base, reads) = self
            .location(parameters, index)
            .ok_or_else(|| Error::NoVariable {
                name: name.clone(),
                place: self.function.to_owned(),
                reason: Some(
                    "its register is unknown, for example because it is a structure passed by value, or follows one"
                        .to_owned(),
                ),
                elsewhere: Vec::new(),
                known: Vec::new(),
            })?;
        let variable = *parameters.get(index).ok_or(Error::NoKernelImage)?;
        let mut path = PathValue::new(variable, name, reads, argument.is_user);
        path.apply_all(members)?;
        let (kind, _) = path.finish_with_type(argument.kind.as_deref())?;
        Ok(ProbeField {
            name: argument.field_name(),
            base,
            reads: path.reads,
            kind,
        })
    }

    /// Returns the location of a parameter in the calling convention: a register, or memory at an offset from the stack
    /// pointer. `None` on architectures other than x86_64 and arm64, or if this or an earlier parameter has an unknown size, is
    /// larger than a pointer, or is a structure passed by value.
    fn location(
        &self,
        parameters: &[Parameter<'_>],
        index: usize,
    ) -> Option<(String, Vec<Dereference>)> {
        let architecture = self.kernel.architecture();
        let pointer = self.kernel.pointer_size();
        let fits_register = |parameter: &Parameter<'_>| {
            parameter.real_type().is_some_and(|real_type| {
                let size = real_type.byte_size();
                size.is_some_and(|size| size <= pointer) && real_type.kind() != TypeCategory::Record
            })
        };
        if !parameters.get(..=index)?.iter().all(fits_register) {
            return None;
        }
        if let Some(register) = register::parameter(architecture, index + 1) {
            return Some((register.to_owned(), Vec::new()));
        }
        let (first_offset, register_count) = register::stack_parameters(architecture)?;
        let stack_index = i64::try_from(index.checked_sub(register_count)?).ok()?;
        let read = Dereference {
            // On x86_64 and arm64, each parameter has a stack slot of 8 bytes.
            offset: first_offset + stack_index * 8,
            is_user: false,
        };
        Some(("%sp".to_owned(), vec![read]))
    }
}
