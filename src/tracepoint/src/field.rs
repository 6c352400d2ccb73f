//! One field of a tracepoint.

/// A `field:` line of a format file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of one line"
)]
pub struct Field {
    /// Name, without brackets.
    pub name: String,
    /// C type as written, brackets included (`char[16]`, `__data_loc char[]`, `void *`).
    pub type_name: String,
    /// Bytes from the start of the raw record.
    pub offset: usize,
    /// Bytes in the raw record; 4 for dynamic ones, whose bytes lie elsewhere.
    pub size: usize,
    /// Bytes of one element; equal to `size` where the field is no array, 0 where unknown.
    pub element_size: usize,
    /// Whether it is signed.
    pub is_signed: bool,
    /// Whether the type has brackets.
    pub is_array: bool,
    /// Whether the field holds offset and length of data further on (`__data_loc`, `__rel_loc`).
    pub is_dynamic: bool,
    /// Whether the offset of a dynamic field counts from the field's own end (`__rel_loc`).
    pub is_relative: bool,
    /// Whether it is an array of bytes that usually holds text.
    pub is_string: bool,
    /// Whether the type is a pointer.
    pub is_pointer: bool,
    /// Whether the type contains `long`; such numbers are shown in hexadecimal.
    pub is_long: bool,
}
