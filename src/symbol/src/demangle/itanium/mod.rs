//! C++ names of the Itanium ABI (itanium-cxx-abi.github.io), in the format of GNU's demangler.
//!
//! perf 6.1 shows functions without their own parameters, so parsing stops after the name. Other functions in the name (one
//! that contains a lambda, one that is a template argument) are shown with their parameters. Existing crates differ from GNU in
//! spelling (`(unsigned int)4` for `4u`, `_GLOBAL__N_1` for `(anonymous namespace)`), which
//! would rename many symbols of a C++ program.

mod expression;
mod name;
mod print;
mod tables;
mod types;

/// Maximum nesting.
const MAX_DEPTH: u32 = 256;

/// Maximum number of parsing steps, which multiply if alternatives are tried at each nesting level.
const MAX_STEPS: u32 = 1 << 18;

/// For [`Parser::encoding`]: the encoding is the whole mangled name, not a part of another.
const TOP_LEVEL: bool = true;

/// For [`Parser::substitution`]: a constructor or destructor may follow.
const IN_PREFIX: bool = true;

/// Index in [`Tree::nodes`].
type Id = usize;

/// A node of a parsed name.
#[derive(Debug, Clone)]
enum Node<'a> {
    /// Plain text: an identifier, a builtin type, an operator's name.
    Text(&'a str),
    /// `scope::name`.
    Scoped(Id, Id),
    /// `function::entity`, an entity declared inside a function.
    Local(Id, Id),
    /// `name<arguments>`.
    Template(Id, Vec<Id>),
    /// The template parameter of this number, from 0. (The numbers `N` in the comments below are stored as printed.)
    Parameter(usize),
    /// `{parm#N}`.
    FunctionParameter(usize),
    /// A constructor of the class with this name.
    Constructor(Id),
    /// A destructor of the class with this name.
    Destructor(Id),
    /// `operator TYPE`.
    Conversion(Id),
    /// A prefix before a name: `vtable for `.
    Special(&'a str, Id),
    /// `construction vtable for FIRST-in-SECOND`.
    ConstructionTable(Id, Id),
    /// `reference temporary #N for NAME`.
    Temporary(usize, Id),
    /// `name[abi:tag]`.
    Tagged(Id, &'a str),
    /// A qualifier after a type: ` const`.
    Qualified(Id, &'a str),
    /// A type with a vendor-specific attribute.
    Attributed(Id, &'a str),
    /// `*`, `&` or `&&` after a type.
    Indirect(Id, &'a str),
    /// `CLASS::*` after a type: class and type of the member.
    Member(Id, Id),
    /// A function type: return type, parameters, qualifiers.
    Function(Option<Id>, Vec<Id>, Vec<&'a str>),
    /// Name and function type.
    Typed(Id, Id),
    /// An array: dimension and element.
    Array(Option<Id>, Id),
    /// `element __vector(dimension)`: dimension and element.
    Vector(Id, Id),
    /// A literal: type, digits, and whether it is negative.
    Literal(Id, &'a str, bool),
    /// A parameter pack's values.
    Pack(Vec<Id>),
    /// A pattern repeated for each value of the packs in it.
    Expansion(Id),
    /// `{lambda(parameters)#N}`.
    Lambda(Vec<Id>, usize),
    /// `{unnamed type#N}`.
    Unnamed(usize),
    /// `{default arg#N}::name`.
    DefaultArgument(usize, Id),
    /// `decltype (expression)`.
    Decltype(Id),
    /// An operator before its operand.
    Unary(&'a str, Id),
    /// An operator after its operand.
    Postfix(&'a str, Id),
    /// An operator between its operands.
    Binary(&'a str, Id, Id),
    /// `a?b : c`.
    Conditional(Id, Id, Id),
    /// `function(arguments)`.
    Call(Id, Vec<Id>),
    /// `(type)(values)`.
    Cast(Id, Vec<Id>),
    /// `type{values}`.
    Braced(Option<Id>, Vec<Id>),
    /// `keyword (operand)`.
    Keyword(&'a str, Id),
    /// `sizeof...(pack)`, evaluated when printed.
    PackSize(Id),
}

/// All nodes of one name.
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
}

impl<'a> Tree<'a> {
    fn node(&self, id: Id) -> Option<&Node<'a>> {
        self.nodes.get(id)
    }
}

/// Parses a mangled name from left to right.
struct Parser<'a> {
    rest: &'a str,
    tree: Tree<'a>,
    /// The candidates for `S_`, `S0_`, ….
    substitutions: Vec<Id>,
    /// The last source name, which a constructor repeats.
    last_name: Option<Id>,
    depth: u32,
    steps: u32,
    /// Whether the type of a conversion operator is being parsed: template arguments may then belong to the operator.
    in_conversion: bool,
    /// Whether a scope after `sr` that begins with an identifier is parsed as a type first; otherwise as nested scopes first.
    types_first: bool,
}

/// Demangles `mangled`, which begins with `_Z`, without the parameters of the function.
pub(super) fn demangle(mangled: &str) -> Option<String> {
    if !mangled.is_ascii() {
        return None;
    }
    let rest = mangled.strip_prefix("_Z")?;
    let demangled = |types_first| {
        let mut parser = Parser {
            rest,
            tree: Tree { nodes: Vec::new() },
            substitutions: Vec::new(),
            last_name: None,
            depth: 0,
            steps: 0,
            in_conversion: false,
            types_first,
        };
        let name = parser.encoding(TOP_LEVEL)?;
        print::print(&parser.tree, name)
    };
    // Only the rest of the name shows which reading of a scope is right.
    demangled(false).or_else(|| match rest.contains("sr") {
        true => demangled(true),
        false => None,
    })
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.bytes().next()
    }

    /// Consumes `prefix` if present.
    fn skip_prefix(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, prefix: &str) -> Option<()> {
        self.skip_prefix(prefix).then_some(())
    }

    fn take(&mut self, len: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn add(&mut self, node: Node<'a>) -> Id {
        self.tree.nodes.push(node);
        self.tree.nodes.len() - 1
    }

    fn text(&mut self, text: &'a str) -> Id {
        self.add(Node::Text(text))
    }

    /// Digits of a decimal number, at least one.
    fn digits(&mut self) -> Option<&'a str> {
        let len = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if len == 0 { None } else { self.take(len) }
    }

    fn number(&mut self) -> Option<usize> {
        self.digits()?.parse().ok()
    }

    /// Parses the decimal index of a parameter or an unnamed entity: `_` is 0, `0_` is 1, … The result is less than
    /// `usize::MAX`, so that callers can add 1.
    fn index(&mut self) -> Option<usize> {
        if self.skip_prefix("_") {
            return Some(0);
        }
        let number = self.number()?;
        self.expect("_")?;
        number.checked_add(1).filter(|index| *index < usize::MAX)
    }

    /// Calls `read`. If it fails, nothing is consumed, and nodes and substitutions that it added are removed.
    fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let (rest, last_name) = (self.rest, self.last_name);
        let (substitutions, nodes) = (self.substitutions.len(), self.tree.nodes.len());
        let result = read(self);
        if result.is_none() {
            self.rest = rest;
            self.last_name = last_name;
            self.substitutions.truncate(substitutions);
            self.tree.nodes.truncate(nodes);
        }
        result
    }

    /// Calls `read` one level deeper; fails beyond the limits.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH || self.steps >= MAX_STEPS {
            return None;
        }
        self.depth += 1;
        self.steps += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}
