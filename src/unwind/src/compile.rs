//! Compilation of a row of call frame information (CFI) to a [`Step`].

use gimli::{
    BaseAddresses, CfaRule, Encoding, EndianSlice, FrameDescriptionEntry, Reader as _, Register,
    RegisterRule, RunTimeEndian, UnwindContext, UnwindExpression, UnwindSection,
};

use crate::expression::Expression;
use crate::step::{Cfa, RegisterLocation, Step};

/// Reader of section bytes.
pub(crate) type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// Returns the step from the frame at `address` to its caller, according to `entry` in `section`.
pub(crate) fn compile<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    entry: &FrameDescriptionEntry<Bytes<'a>>,
    context: &mut UnwindContext<usize>,
    address: u64,
) -> gimli::Result<Step> {
    let row = entry.unwind_info_for_address(section, bases, context, address)?;
    let encoding = entry.cie().encoding();
    let copied =
        |expression: &UnwindExpression<usize>| copied_expression(section, expression, encoding);
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Cfa::Register {
            register: number(*register)
                .ok_or(gimli::Error::UnsupportedRegister(register.0.into()))?,
            offset: *offset,
        },
        CfaRule::Expression(expression) => Cfa::Expression(copied(expression)?),
    };
    let mut saved = Vec::new();
    for (register, rule) in row.registers() {
        let Some(register) = number(*register) else {
            continue;
        };
        let place = match rule {
            RegisterRule::SameValue => continue,
            RegisterRule::Offset(offset) => RegisterLocation::AtCfa(*offset),
            RegisterRule::ValOffset(offset) => RegisterLocation::Cfa(*offset),
            RegisterRule::Register(other) => {
                number(*other).map_or(RegisterLocation::Undefined, RegisterLocation::Register)
            }
            RegisterRule::Expression(expression) => {
                RegisterLocation::AtExpression(copied(expression)?)
            }
            RegisterRule::ValExpression(expression) => {
                RegisterLocation::Expression(copied(expression)?)
            }
            RegisterRule::Constant(value) => RegisterLocation::Constant(*value),
            _ => RegisterLocation::Undefined,
        };
        saved.push((register, place));
    }
    Ok(Step {
        cfa,
        saved: saved.into_boxed_slice(),
        // Numbers above 255 are replaced by 255, which is not tracked either.
        return_address_register: number(entry.cie().return_address_register()).unwrap_or(u8::MAX),
        is_signal: entry.is_signal_trampoline(),
    })
}

/// Returns a DWARF register number. `None` for numbers above 255, which only special registers have; these are not tracked.
fn number(register: Register) -> Option<u8> {
    u8::try_from(register.0).ok()
}

/// Copies an expression from its section.
fn copied_expression<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    expression: &UnwindExpression<usize>,
    encoding: Encoding,
) -> gimli::Result<Expression> {
    let bytes = expression.get(section)?.0;
    Ok(Expression {
        bytes: bytes.slice().into(),
        endian: bytes.endian(),
        encoding,
    })
}
