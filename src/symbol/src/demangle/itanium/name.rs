//! Encodings and names.

use super::tables::{OPERATORS, STANDARD};
use super::{IN_PREFIX, Id, Node, Parser, TOP_LEVEL};

impl<'a> Parser<'a> {
    /// Parses a function, a variable, or a compiler-generated entity. At the `top` level, the rest
    /// after the name is not parsed.
    pub(super) fn encoding(&mut self, top: bool) -> Option<Id> {
        self.nested(|p| p.encoding_inner(top))
    }

    fn encoding_inner(&mut self, top: bool) -> Option<Id> {
        if matches!(self.peek(), Some(b'G' | b'T')) {
            return self.special_name();
        }
        let name = self.name()?;
        if top {
            return Some(self.without_qualifiers(name));
        }
        if matches!(self.peek(), None | Some(b'E')) {
            return Some(name);
        }
        let has_return_type = self.has_return_type(name);
        let function = self.bare_function(has_return_type)?;
        let name = self.move_qualifiers(name, function);
        Some(self.add(Node::Typed(name, function)))
    }

    /// Removes a function's qualifiers: they would be printed after its parameters, which are not
    /// printed here.
    fn without_qualifiers(&mut self, name: Id) -> Id {
        let mut bare = name;
        while let Some(&Node::Qualified(inner, _)) = self.tree.node(bare) {
            bare = inner;
        }
        match self.tree.node(bare) {
            Some(&Node::Local(function, entity)) => {
                let entity = self.without_qualifiers(entity);
                self.add(Node::Local(function, entity))
            }
            _ => bare,
        }
    }

    /// Moves the qualifiers of a member function from its name to its type `function`; returns the name without them.
    fn move_qualifiers(&mut self, name: Id, function: Id) -> Id {
        let mut qualifiers = Vec::new();
        let mut bare = name;
        while let Some(&Node::Qualified(inner, word)) = self.tree.node(bare) {
            qualifiers.push(word);
            bare = inner;
        }
        if let Some(&Node::Local(outer, entity)) = self.tree.node(bare) {
            let mut inner = entity;
            while let Some(&Node::Qualified(next, word)) = self.tree.node(inner) {
                qualifiers.push(word);
                inner = next;
            }
            if inner != entity {
                bare = self.add(Node::Local(outer, inner));
            }
        }
        if let Some(Node::Function(_, _, suffixes)) = self.tree.nodes.get_mut(function) {
            // Collected from the outside in, and printed from the inside out.
            suffixes.extend(qualifiers.into_iter().rev());
        }
        bare
    }

    /// Template functions have an encoded return type, except for constructors, destructors and
    /// conversions.
    fn has_return_type(&self, name: Id) -> bool {
        let mut inner = name;
        loop {
            match self.tree.node(inner) {
                Some(&Node::Qualified(next, _) | &Node::Local(_, next)) => inner = next,
                Some(&Node::Template(name, _)) => return !self.is_structor_or_conversion(name),
                _ => return false,
            }
        }
    }

    fn is_structor_or_conversion(&self, name: Id) -> bool {
        let mut inner = name;
        loop {
            match self.tree.node(inner) {
                Some(&Node::Scoped(_, next) | &Node::Local(_, next) | &Node::Tagged(next, _)) => {
                    inner = next;
                }
                Some(Node::Constructor(_) | Node::Destructor(_) | Node::Conversion(_)) => {
                    return true;
                }
                _ => return false,
            }
        }
    }

    fn special_name(&mut self) -> Option<Id> {
        let code = self.take(2)?;
        let words = match code {
            "TV" => "vtable for ",
            "TT" => "VTT for ",
            "TI" => "typeinfo for ",
            "TS" => "typeinfo name for ",
            "TF" => "typeinfo fn for ",
            "TJ" => "java Class for ",
            "TA" => {
                let argument = self.template_argument()?;
                return Some(self.add(Node::Special("template parameter object for ", argument)));
            }
            _ => return self.special_name_of_entity(code),
        };
        let subject = self.parse_type()?;
        Some(self.add(Node::Special(words, subject)))
    }

    /// Parses what follows the code of a special name of a function or a variable, or of a construction vtable.
    fn special_name_of_entity(&mut self, code: &str) -> Option<Id> {
        let (words, subject) = match code {
            "Th" => {
                self.call_offset(b'h')?;
                ("non-virtual thunk to ", self.encoding(!TOP_LEVEL)?)
            }
            "Tv" => {
                self.call_offset(b'v')?;
                ("virtual thunk to ", self.encoding(!TOP_LEVEL)?)
            }
            "Tc" => {
                for _ in 0..2 {
                    let kind = self.take(1)?.bytes().next()?;
                    self.call_offset(kind)?;
                }
                ("covariant return thunk to ", self.encoding(!TOP_LEVEL)?)
            }
            "TH" => ("TLS init function for ", self.name()?),
            "TW" => ("TLS wrapper function for ", self.name()?),
            "GV" => ("guard variable for ", self.name()?),
            "GA" => ("hidden alias for ", self.encoding(!TOP_LEVEL)?),
            "TC" => return self.construction_table(),
            "GR" => {
                let name = self.name()?;
                // GNU's demangler reads a decimal number, not one in base 36 as in the ABI, and 0 if there is none.
                let number = self.number().unwrap_or(0);
                self.skip_prefix("_");
                return Some(self.add(Node::Temporary(number, name)));
            }
            "GT" => match self.take(1)? {
                "n" => ("non-transaction clone for ", self.encoding(!TOP_LEVEL)?),
                _ => ("transaction clone for ", self.encoding(!TOP_LEVEL)?),
            },
            _ => return None,
        };
        Some(self.add(Node::Special(words, subject)))
    }

    fn construction_table(&mut self) -> Option<Id> {
        let derived = self.parse_type()?;
        self.number()?;
        self.expect("_")?;
        let base = self.parse_type()?;
        Some(self.add(Node::ConstructionTable(base, derived)))
    }

    fn call_offset(&mut self, kind: u8) -> Option<()> {
        let numbers = match kind {
            b'h' => 1,
            b'v' => 2,
            _ => return None,
        };
        for _ in 0..numbers {
            self.skip_prefix("n");
            self.number()?;
            self.expect("_")?;
        }
        Some(())
    }

    pub(super) fn name(&mut self) -> Option<Id> {
        self.nested(Self::name_inner)
    }

    fn name_inner(&mut self) -> Option<Id> {
        let (name, is_substitution) = match self.peek()? {
            b'N' => return self.nested_name(),
            b'Z' => return self.local_name(),
            b'S' if self.rest.as_bytes().get(1) != Some(&b't') => {
                (self.substitution(!IN_PREFIX)?, true)
            }
            b'S' => {
                self.take(2)?;
                let std = self.text("std");
                let name = self.unqualified_name()?;
                (self.add(Node::Scoped(std, name)), false)
            }
            _ => (self.unqualified_name()?, false),
        };
        if self.peek() != Some(b'I') {
            return Some(name);
        }
        if !is_substitution {
            self.substitutions.push(name);
        }
        let arguments = self.template_arguments()?;
        Some(self.add(Node::Template(name, arguments)))
    }

    fn nested_name(&mut self) -> Option<Id> {
        self.expect("N")?;
        let mut qualifiers = self.cv_qualifiers();
        if self.skip_prefix("R") {
            qualifiers.push(" &");
        } else if self.skip_prefix("O") {
            qualifiers.push(" &&");
        }
        let mut name = self.prefix()?;
        self.expect("E")?;
        for qualifier in qualifiers {
            name = self.add(Node::Qualified(name, qualifier));
        }
        Some(name)
    }

    fn prefix(&mut self) -> Option<Id> {
        let mut prefix: Option<Id> = None;
        loop {
            let first = self.peek()?;
            if first == b'E' {
                return prefix;
            }
            if first == b'M' && prefix.is_some() {
                // The name so far is a data member whose initializer contains a closure.
                self.take(1)?;
                continue;
            }
            prefix = Some(match (first, prefix) {
                (b'I', Some(name)) => {
                    let arguments = self.template_arguments()?;
                    self.add(Node::Template(name, arguments))
                }
                (b'S', None) => self.substitution(IN_PREFIX)?,
                (b'T', None) => self.template_parameter()?,
                (b'D', None) if self.rest.starts_with("DT") || self.rest.starts_with("Dt") => {
                    self.parse_type()?
                }
                (_, None) => self.unqualified_name()?,
                (_, Some(scope)) => {
                    let name = self.unqualified_name()?;
                    self.add(Node::Scoped(scope, name))
                }
            });
            // A substitution is in the list already; an abbreviation (`Sa`) is not added. The whole name, if it is that of a
            // type, is added by the parser of types.
            if first != b'S' && self.peek() != Some(b'E') {
                self.substitutions.extend(prefix);
            }
        }
    }

    fn local_name(&mut self) -> Option<Id> {
        self.expect("Z")?;
        let function = self.encoding(!TOP_LEVEL)?;
        // The return type isn't shown.
        if let Some(&Node::Typed(_, kind)) = self.tree.node(function)
            && let Some(Node::Function(returns, ..)) = self.tree.nodes.get_mut(kind)
        {
            *returns = None;
        }
        self.expect("E")?;
        if self.skip_prefix("s") {
            self.discriminator();
            let entity = self.text("string literal");
            return Some(self.add(Node::Local(function, entity)));
        }
        let entity = if self.skip_prefix("d") {
            let number = self.index()?;
            let name = self.name()?;
            self.add(Node::DefaultArgument(number + 1, name))
        } else {
            let name = self.name()?;
            self.discriminator();
            name
        };
        Some(self.add(Node::Local(function, entity)))
    }

    /// Skips `_3` or `__12_`, which distinguishes equal names, if present.
    fn discriminator(&mut self) {
        let before = self.rest;
        if self.skip_prefix("__") {
            if self.digits().is_none() || !self.skip_prefix("_") {
                self.rest = before;
            }
        } else if self.skip_prefix("_") && self.digits().is_none() {
            self.rest = before;
        }
    }

    fn unqualified_name(&mut self) -> Option<Id> {
        let mut name = match self.peek()? {
            b'0'..=b'9' => self.source_name()?,
            b'L' => {
                // Internal linkage, which is not printed.
                self.take(1)?;
                let name = self.source_name()?;
                self.discriminator();
                name
            }
            // Structured bindings (`DC`) are not supported.
            b'C' | b'D' if !self.rest.starts_with("DC") => self.constructor_or_destructor()?,
            b'U' => self.closure_or_unnamed()?,
            b'a'..=b'z' => self.operator_name()?,
            _ => return None,
        };
        while self.skip_prefix("B") {
            let tag = self.identifier()?;
            name = self.add(Node::Tagged(name, tag));
        }
        Some(name)
    }

    pub(super) fn identifier(&mut self) -> Option<&'a str> {
        let len = self.number()?;
        self.take(len)
    }

    fn source_name(&mut self) -> Option<Id> {
        let text = self.identifier()?;
        let after_global = text
            .strip_prefix("_GLOBAL_")
            .and_then(|rest| rest.strip_prefix(['.', '_', '$']));
        let text = match after_global {
            Some(rest) if rest.starts_with('N') => "(anonymous namespace)",
            _ => text,
        };
        let name = self.text(text);
        self.last_name = Some(name);
        Some(name)
    }

    fn constructor_or_destructor(&mut self) -> Option<Id> {
        let class = self.last_name?;
        match self.take(2)? {
            "CI" => {
                // An inherited constructor; the base class is not printed.
                self.take(1)?;
                self.parse_type()?;
                Some(self.add(Node::Constructor(class)))
            }
            "C1" | "C2" | "C3" | "C4" | "C5" => Some(self.add(Node::Constructor(class))),
            "D0" | "D1" | "D2" | "D4" | "D5" => Some(self.add(Node::Destructor(class))),
            _ => None,
        }
    }

    fn closure_or_unnamed(&mut self) -> Option<Id> {
        if self.skip_prefix("Ut") {
            let number = self.index()?;
            let name = self.add(Node::Unnamed(number + 1));
            self.substitutions.push(name);
            return Some(name);
        }
        self.expect("Ul")?;
        let parameters = self.parameters()?;
        self.expect("E")?;
        let number = self.index()?;
        Some(self.add(Node::Lambda(parameters, number + 1)))
    }

    pub(super) fn operator_name(&mut self) -> Option<Id> {
        if self.skip_prefix("cv") {
            let outer = std::mem::replace(&mut self.in_conversion, true);
            let target = self.parse_type();
            self.in_conversion = outer;
            return Some(self.add(Node::Conversion(target?)));
        }
        if self.skip_prefix("li") {
            let name = self.source_name()?;
            return Some(self.add(Node::Special("operator\"\" ", name)));
        }
        let code = self.take(2)?;
        let words = operator_words(code)?;
        Some(self.text(words))
    }

    /// Parses `S…`: a substitution, or a standard library abbreviation. With `in_prefix`, a constructor or destructor may
    /// follow; before one, the full name is printed.
    pub(super) fn substitution(&mut self, in_prefix: bool) -> Option<Id> {
        self.expect("S")?;
        if matches!(self.peek()?, b'_' | b'0'..=b'9' | b'A'..=b'Z') {
            let end = self.rest.find('_')?;
            let digits = self.take(end)?;
            self.take(1)?;
            let number = match digits {
                "" => 0,
                digits => usize::from_str_radix(digits, 36).ok()?.checked_add(1)?,
            };
            return self.substitutions.get(number).copied();
        }
        let code = self.take(1)?.bytes().next()?;
        let (_, short, long, bare) = STANDARD.into_iter().find(|entry| entry.0 == code)?;
        let full = in_prefix && matches!(self.peek(), Some(b'C' | b'D'));
        if code != b't' {
            self.last_name = Some(self.text(bare));
        }
        let mut name = self.text(if full { long } else { short });
        if self.peek() == Some(b'B') {
            while self.skip_prefix("B") {
                let tag = self.identifier()?;
                name = self.add(Node::Tagged(name, tag));
            }
            self.substitutions.push(name);
        }
        Some(name)
    }
}

/// Returns the name of the operator function with this two-letter code, such as `operator+` for `pl`.
fn operator_words(code: &str) -> Option<&'static str> {
    Some(match code {
        "nw" => "operator new",
        "na" => "operator new[]",
        "dl" => "operator delete",
        "da" => "operator delete[]",
        "aw" => "operator co_await",
        _ => {
            let (_, symbol, _) = OPERATORS.into_iter().find(|entry| entry.0 == code)?;
            return OPERATOR_NAMES
                .into_iter()
                .find(|name| name.strip_prefix("operator") == Some(symbol));
        }
    })
}

/// The names of operator functions: `operator` and the symbol in [`OPERATORS`]. They are static, as the nodes borrow their text.
const OPERATOR_NAMES: [&str; 43] = [
    "operator&=",
    "operator=",
    "operator&&",
    "operator&",
    "operator()",
    "operator,",
    "operator~",
    "operator/=",
    "operator*",
    "operator/",
    "operator^=",
    "operator^",
    "operator==",
    "operator>=",
    "operator>",
    "operator[]",
    "operator<<=",
    "operator<=",
    "operator<<",
    "operator<",
    "operator-=",
    "operator*=",
    "operator-",
    "operator--",
    "operator!=",
    "operator!",
    "operator|=",
    "operator||",
    "operator|",
    "operator+=",
    "operator+",
    "operator->*",
    "operator++",
    "operator->",
    "operator?",
    "operator%=",
    "operator>>=",
    "operator%",
    "operator>>",
    "operator<=>",
    "operator.*",
    "operator.",
    "operator]=",
];
