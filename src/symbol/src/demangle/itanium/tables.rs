//! Codes of the Itanium C++ ABI (section 5.1, External Names) and their names in C++.

/// Code and name of builtin types.
pub(super) const BUILTINS: [(u8, &str); 21] = [
    (b'a', "signed char"),
    (b'b', "bool"),
    (b'c', "char"),
    (b'd', "double"),
    (b'e', "long double"),
    (b'f', "float"),
    (b'g', "__float128"),
    (b'h', "unsigned char"),
    (b'i', "int"),
    (b'j', "unsigned int"),
    (b'l', "long"),
    (b'm', "unsigned long"),
    (b'n', "__int128"),
    (b'o', "unsigned __int128"),
    (b's', "short"),
    (b't', "unsigned short"),
    (b'v', "void"),
    (b'w', "wchar_t"),
    (b'x', "long long"),
    (b'y', "unsigned long long"),
    (b'z', "..."),
];

/// Types whose code is `D` and this letter.
pub(super) const D_BUILTINS: [(u8, &str); 10] = [
    (b'a', "auto"),
    (b'c', "decltype(auto)"),
    (b'd', "decimal64"),
    (b'e', "decimal128"),
    (b'f', "decimal32"),
    (b'h', "half"),
    (b'i', "char32_t"),
    (b'n', "decltype(nullptr)"),
    (b's', "char16_t"),
    (b'u', "char8_t"),
];

/// Types whose literals are printed with a suffix instead of a cast, and the suffix.
pub(super) const LITERAL_SUFFIXES: [(&str, &str); 6] = [
    ("int", ""),
    ("unsigned int", "u"),
    ("long", "l"),
    ("unsigned long", "ul"),
    ("long long", "ll"),
    ("unsigned long long", "ull"),
];

/// Standard library abbreviations: the letter after `S`, the short name, the full name (printed before a constructor or
/// destructor), and the name of the class without scope, which a constructor or destructor repeats. `t` is the namespace itself.
pub(super) const STANDARD: [(u8, &str, &str, &str); 7] = [
    (b't', "std", "std", "std"),
    (b'a', "std::allocator", "std::allocator", "allocator"),
    (
        b'b',
        "std::basic_string",
        "std::basic_string",
        "basic_string",
    ),
    (
        b's',
        "std::string",
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
        "basic_string",
    ),
    (
        b'i',
        "std::istream",
        "std::basic_istream<char, std::char_traits<char> >",
        "basic_istream",
    ),
    (
        b'o',
        "std::ostream",
        "std::basic_ostream<char, std::char_traits<char> >",
        "basic_ostream",
    ),
    (
        b'd',
        "std::iostream",
        "std::basic_iostream<char, std::char_traits<char> >",
        "basic_iostream",
    ),
];

/// Operators: code, symbol in expressions (a word with one operand ends with a space, except `sizeof...`), and number of
/// operands. In the names of operator functions, the same symbol follows `operator`; the names with words (`operator new`) are
/// not taken from this table. Expressions with three operands other than `?:` are not supported: their entries (`dX`, `na`, `nw`)
/// have no effect.
pub(super) const OPERATORS: [(&str, &str, u8); 58] = [
    ("aN", "&=", 2),
    ("aS", "=", 2),
    ("aa", "&&", 2),
    ("ad", "&", 1),
    ("an", "&", 2),
    ("aw", "co_await ", 1),
    ("cl", "()", 2),
    ("cm", ",", 2),
    ("co", "~", 1),
    ("dV", "/=", 2),
    ("dX", "[...]=", 3),
    ("da", "delete[] ", 1),
    ("de", "*", 1),
    ("di", "=", 2),
    ("dl", "delete ", 1),
    ("ds", ".*", 2),
    ("dt", ".", 2),
    ("dv", "/", 2),
    ("dx", "]=", 2),
    ("eO", "^=", 2),
    ("eo", "^", 2),
    ("eq", "==", 2),
    ("ge", ">=", 2),
    ("gt", ">", 2),
    ("ix", "[]", 2),
    ("lS", "<<=", 2),
    ("le", "<=", 2),
    ("ls", "<<", 2),
    ("lt", "<", 2),
    ("mI", "-=", 2),
    ("mL", "*=", 2),
    ("mi", "-", 2),
    ("ml", "*", 2),
    ("mm", "--", 1),
    ("na", "new[]", 3),
    ("ne", "!=", 2),
    ("ng", "-", 1),
    ("nt", "!", 1),
    ("nw", "new", 3),
    ("oR", "|=", 2),
    ("oo", "||", 2),
    ("or", "|", 2),
    ("pL", "+=", 2),
    ("pl", "+", 2),
    ("pm", "->*", 2),
    ("pp", "++", 1),
    ("ps", "+", 1),
    ("pt", "->", 2),
    ("qu", "?", 3),
    ("rM", "%=", 2),
    ("rS", ">>=", 2),
    ("rm", "%", 2),
    ("rs", ">>", 2),
    ("ss", "<=>", 2),
    ("sP", "sizeof...", 1),
    ("sZ", "sizeof...", 1),
    ("st", "sizeof ", 1),
    ("sz", "sizeof ", 1),
];
