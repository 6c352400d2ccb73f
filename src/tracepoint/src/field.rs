//! One field of a tracepoint.

/// A `field:` line of a format file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of one line"
)]
pub struct Field {
    /// Name without brackets.
    pub name: String,
    /// C type as written, brackets included (`char[16]`, `__data_loc char[]`, `void *`).
    pub type_name: String,
    /// Offset in the raw record, in bytes.
    pub offset: usize,
    /// Size in the raw record, in bytes; for dynamic fields, without their data.
    pub size: usize,
    /// Size of one element in bytes, 0 if unknown; equal to `size` unless the field is an array or dynamic.
    pub element_size: usize,
    /// Whether it is signed; false if the line has no `signed:`, as in old kernels.
    pub is_signed: bool,
    /// Whether it is an array.
    pub is_array: bool,
    /// Whether the field (`__data_loc` or `__rel_loc`) holds the location of its data: an offset and a length, in very old
    /// kernels only an offset.
    pub is_dynamic: bool,
    /// Whether the offset of a dynamic field is relative to the end of the field (`__rel_loc`).
    pub is_relative: bool,
    /// Whether it is an array of bytes that usually contains text.
    pub is_string: bool,
    /// Whether the type is a pointer.
    pub is_pointer: bool,
    /// Whether the type contains `long`.
    pub is_long: bool,
}
