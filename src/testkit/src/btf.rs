//! Builds the BTF of a kernel or of a module.

/// A BTF blob under construction.
#[derive(Debug, Default)]
pub struct Blob {
    strings: Vec<u8>,
    types: Vec<u8>,
    /// For a module, the number of types of the kernel; otherwise 0.
    kernel_types: u32,
    /// For a module, the size in bytes of the strings of the kernel; otherwise 0.
    kernel_strings: u32,
    /// The number of types in this blob.
    count: u32,
}

impl Blob {
    /// Creates a blob of the kernel, without types.
    #[must_use]
    pub fn new() -> Self {
        Self {
            strings: vec![0],
            ..Self::default()
        }
    }

    /// Creates a blob of a module, without types: its ids and string offsets continue those of this blob, the kernel's.
    #[must_use]
    pub fn module(&self) -> Self {
        Self {
            kernel_types: self.count,
            kernel_strings: self.strings.len() as u32,
            ..Self::new()
        }
    }

    /// Adds a string and returns its offset.
    pub fn text(&mut self, text: &str) -> u32 {
        let offset = self.kernel_strings + self.strings.len() as u32;
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
        offset
    }

    /// Adds a `struct btf_type` and returns its id. `info` is the kind, the number of members or parameters, and in bit 31 the
    /// `kind_flag`. `size_or_type` is the size in bytes or, for kinds such as pointers, the id of the type referred to.
    /// `details` are the words that follow the structure.
    pub fn add(&mut self, name: &str, info: u32, size_or_type: u32, details: &[u32]) -> u32 {
        let name = if name.is_empty() { 0 } else { self.text(name) };
        let words = [name, info, size_or_type]
            .into_iter()
            .chain(details.iter().copied());
        self.types.extend(words.flat_map(u32::to_le_bytes));
        self.count += 1;
        self.kernel_types + self.count
    }

    /// Returns the content of a file of `/sys/kernel/btf`, little-endian.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        // The size of the header, the offset and size of the types, and the offset and size of the strings.
        let words = [24, 0, types, types, strings];
        bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(&self.types);
        bytes.extend(&self.strings);
        bytes
    }
}

/// `BTF_KIND_INT`, shifted for `info` of [`Blob::add`].
pub const INT: u32 = 1 << 24;
/// `BTF_KIND_PTR`, shifted for `info` of [`Blob::add`].
pub const POINTER: u32 = 2 << 24;
/// `BTF_KIND_ARRAY`, shifted for `info` of [`Blob::add`].
pub const ARRAY: u32 = 3 << 24;
/// `BTF_KIND_STRUCT`, shifted for `info` of [`Blob::add`].
pub const STRUCT: u32 = 4 << 24;
/// `BTF_KIND_UNION`, shifted for `info` of [`Blob::add`].
pub const UNION: u32 = 5 << 24;
/// `BTF_KIND_ENUM`, shifted for `info` of [`Blob::add`].
pub const ENUM: u32 = 6 << 24;
/// `BTF_KIND_ENUM64`, shifted for `info` of [`Blob::add`].
pub const ENUM64: u32 = 19 << 24;
/// `BTF_KIND_TYPEDEF`, shifted for `info` of [`Blob::add`].
pub const TYPEDEF: u32 = 8 << 24;
/// `BTF_KIND_CONST`, shifted for `info` of [`Blob::add`].
pub const CONST: u32 = 10 << 24;
/// `BTF_KIND_FUNC`, shifted for `info` of [`Blob::add`].
pub const FUNCTION: u32 = 12 << 24;
/// `BTF_KIND_FUNC_PROTO`, shifted for `info` of [`Blob::add`].
pub const PROTOTYPE: u32 = 13 << 24;
/// `BTF_INT_SIGNED` in the detail of an integer. The low byte of the detail is the number of bits.
pub const SIGNED: u32 = 1 << 24;

/// Builds the types of `long vfs_read(const struct file *file, size_t count, struct file by_value, int last)`.
#[must_use]
pub fn kernel() -> Blob {
    let mut blob = Blob::new();
    let int = blob.add("int", INT, 4, &[SIGNED | 32]);
    let long = blob.add("long int", INT, 8, &[SIGNED | 64]);
    let character = blob.add("char", INT, 1, &[SIGNED | 8]);
    // The details of arrays are the type of the elements, the type of the index and the number of elements.
    let array = blob.add("", ARRAY, 0, &[character, int, 16]);
    let row = blob.add("", ARRAY, 0, &[int, int, 4]);
    let table = blob.add("", ARRAY, 0, &[row, int, 3]);
    let [name, table_name, flag] = ["name", "table", "flag"].map(|name| blob.text(name));
    // `flag` is a bit field: 3 bits at offset 5.
    let inner_members = [flag, int, 3 << 24 | 5];
    let inner = blob.add("", STRUCT | 1 << 31 | 1, 4, &inner_members);
    // Name, type and offset in bits of each member; the last member, the struct with `flag`, has no name.
    let members = [name, array, 64, table_name, table, 192, 0, inner, 0];
    let file = blob.add("file", STRUCT | 3, 72, &members);
    let const_file = blob.add("", CONST, file, &[]);
    let pointer = blob.add("", POINTER, const_file, &[]);
    let unsigned = blob.add("long unsigned int", INT, 8, &[64]);
    let size = blob.add("size_t", TYPEDEF, unsigned, &[]);
    let names = ["file", "count", "by_value", "last"].map(|name| blob.text(name));
    let parameters = [
        names[0], pointer, names[1], size, names[2], file, names[3], int,
    ];
    let prototype = blob.add("", PROTOTYPE | 4, long, &parameters);
    blob.add("vfs_read", FUNCTION, prototype, &[]);
    blob
}
