//! Types and template arguments.

use super::tables::{BUILTINS, D_BUILTINS};
use super::{Id, Node, Parser};

impl<'a> Parser<'a> {
    /// Parses a type; `None` also if types are nested too deeply. Adds the type and those in it to the substitutions, as the ABI
    /// says.
    pub(super) fn parse_type(&mut self) -> Option<Id> {
        self.nested(Self::type_inner)
    }

    fn type_inner(&mut self) -> Option<Id> {
        let first = self.peek()?;
        let builtin = BUILTINS.into_iter().find(|entry| entry.0 == first);
        if let Some((_, name)) = builtin {
            self.take(1)?;
            return Some(self.text(name));
        }
        // The functions after `return` add to the substitutions themselves, since not all types that they parse are candidates.
        let id = match first {
            b'r' | b'V' | b'K' => self.qualified_type()?,
            b'u' => {
                self.take(1)?;
                let name = self.identifier()?;
                self.text(name)
            }
            b'F' => self.function_type()?,
            b'A' => self.array_type()?,
            b'M' => self.member_type()?,
            b'T' => self.template_parameter_type()?,
            b'S' => return self.substituted_type(),
            b'P' => self.indirect_type("*")?,
            b'R' => self.indirect_type("&")?,
            b'O' => self.indirect_type("&&")?,
            b'C' => self.indirect_type(" _Complex")?,
            b'G' => self.indirect_type(" _Imaginary")?,
            b'U' if !self.is_closure_or_unnamed() => self.vendor_qualified()?,
            b'D' => return self.d_type(),
            _ => self.name()?,
        };
        self.substitutions.push(id);
        Some(id)
    }

    pub(super) fn cv_qualifiers(&mut self) -> Vec<&'a str> {
        let mut qualifiers = Vec::new();
        loop {
            qualifiers.push(match self.peek() {
                Some(b'r') => " restrict",
                Some(b'V') => " volatile",
                Some(b'K') => " const",
                _ => break,
            });
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        // Qualifiers are encoded from the outside in, and printed from the inside out.
        qualifiers.reverse();
        qualifiers
    }

    fn qualified_type(&mut self) -> Option<Id> {
        let qualifiers = self.cv_qualifiers();
        if self.peek() == Some(b'F') {
            let function = self.function_type()?;
            if let Some(Node::Function(_, _, suffixes)) = self.tree.nodes.get_mut(function) {
                suffixes.extend(qualifiers);
            }
            return Some(function);
        }
        let mut id = self.parse_type()?;
        for qualifier in qualifiers {
            id = self.add(Node::Qualified(id, qualifier));
        }
        Some(id)
    }

    fn indirect_type(&mut self, sign: &'a str) -> Option<Id> {
        self.take(1)?;
        let target = self.parse_type()?;
        Some(self.add(Node::Indirect(target, sign)))
    }

    fn is_closure_or_unnamed(&self) -> bool {
        self.rest.starts_with("Ul") || self.rest.starts_with("Ut")
    }

    fn vendor_qualified(&mut self) -> Option<Id> {
        self.take(1)?;
        let attribute = self.identifier()?;
        // The arguments of the attribute are not printed.
        if self.peek() == Some(b'I') {
            self.template_arguments()?;
        }
        let inner = self.parse_type()?;
        Some(self.add(Node::Attributed(inner, attribute)))
    }

    fn function_type(&mut self) -> Option<Id> {
        self.expect("F")?;
        // `extern "C"`, which is not printed.
        self.skip_prefix("Y");
        let has_return_type = true;
        let function = self.bare_function(has_return_type)?;
        let reference = match self.peek()? {
            b'R' => Some(" &"),
            b'O' => Some(" &&"),
            _ => None,
        };
        if reference.is_some() {
            self.take(1)?;
        }
        self.expect("E")?;
        if let Some(Node::Function(_, _, suffixes)) = self.tree.nodes.get_mut(function) {
            suffixes.extend(reference);
        }
        Some(function)
    }

    /// Parses the return type, if `has_return_type` is set or `J` follows, and the parameters.
    pub(super) fn bare_function(&mut self, has_return_type: bool) -> Option<Id> {
        let has_return_type = has_return_type || self.skip_prefix("J");
        let returned = if has_return_type {
            Some(self.parse_type()?)
        } else {
            None
        };
        let parameters = self.parameters()?;
        Some(self.add(Node::Function(returned, parameters, Vec::new())))
    }

    /// Parses types up to the end of the parameter list; none, or a single `void`, means no parameters.
    pub(super) fn parameters(&mut self) -> Option<Vec<Id>> {
        let mut parameters = Vec::new();
        // The list ends before `E`, a reference qualifier with `E`, a suffix such as `.cold`, or at the end of the name.
        while !matches!(self.peek(), None | Some(b'E' | b'.'))
            && !self.rest.starts_with("RE")
            && !self.rest.starts_with("OE")
        {
            parameters.push(self.parse_type()?);
        }
        if let [only] = parameters.as_slice()
            && matches!(self.tree.node(*only), Some(Node::Text("void")))
        {
            parameters.clear();
        }
        Some(parameters)
    }

    fn array_type(&mut self) -> Option<Id> {
        self.expect("A")?;
        let dimension = match self.peek()? {
            b'_' => None,
            b'0'..=b'9' => {
                let digits = self.digits()?;
                Some(self.text(digits))
            }
            _ => Some(self.expression()?),
        };
        self.expect("_")?;
        let element = self.parse_type()?;
        Some(self.add(Node::Array(dimension, element)))
    }

    fn member_type(&mut self) -> Option<Id> {
        self.expect("M")?;
        let class = self.parse_type()?;
        let member = self.parse_type()?;
        Some(self.add(Node::Member(class, member)))
    }

    fn template_parameter_type(&mut self) -> Option<Id> {
        // struct, union or enum before a name.
        if self.skip_prefix("Ts") || self.skip_prefix("Tu") || self.skip_prefix("Te") {
            return self.name();
        }
        let parameter = self.template_parameter()?;
        if self.peek() != Some(b'I') {
            return Some(parameter);
        }
        if self.in_conversion {
            return Some(self.with_conversion_arguments(parameter));
        }
        self.substitutions.push(parameter);
        let arguments = self.template_arguments()?;
        Some(self.add(Node::Template(parameter, arguments)))
    }

    /// Parses the `I…E` after `cvT_` if a second argument list follows it: the first list then belongs to the type. A single
    /// list belongs to the conversion operator and is not consumed. Returns the type.
    fn with_conversion_arguments(&mut self, parameter: Id) -> Id {
        let template = self.attempt(|p| {
            p.substitutions.push(parameter);
            let arguments = p.template_arguments()?;
            (p.peek() == Some(b'I')).then(|| p.add(Node::Template(parameter, arguments)))
        });
        template.unwrap_or(parameter)
    }

    pub(super) fn template_parameter(&mut self) -> Option<Id> {
        self.expect("T")?;
        let number = self.index()?;
        Some(self.add(Node::Parameter(number)))
    }

    fn substituted_type(&mut self) -> Option<Id> {
        let second = self.rest.as_bytes().get(1)?;
        if !matches!(second, b'_' | b'0'..=b'9' | b'A'..=b'Z') {
            // `Sa`, `Ss` and the like are not added to the substitutions, unless template arguments or an ABI tag follow.
            let is_abbreviation = matches!(second, b'a' | b'b' | b's' | b'i' | b'o' | b'd');
            let is_extended = matches!(self.rest.as_bytes().get(2), Some(b'I' | b'B'));
            let id = self.name()?;
            // A name that ends with its ABI tag has been added already.
            let is_added = self.substitutions.last() == Some(&id);
            if (!is_abbreviation || is_extended) && !is_added {
                self.substitutions.push(id);
            }
            return Some(id);
        }
        // No constructor or destructor name follows a type.
        let in_prefix = false;
        let id = self.substitution(in_prefix)?;
        if self.peek() != Some(b'I') {
            return Some(id);
        }
        let arguments = self.template_arguments()?;
        let id = self.add(Node::Template(id, arguments));
        self.substitutions.push(id);
        Some(id)
    }

    fn d_type(&mut self) -> Option<Id> {
        let second = *self.rest.as_bytes().get(1)?;
        if let Some((_, name)) = D_BUILTINS.into_iter().find(|entry| entry.0 == second) {
            self.take(2)?;
            return Some(self.text(name));
        }
        let id = match second {
            b't' | b'T' => {
                self.take(2)?;
                let expression = self.expression()?;
                self.expect("E")?;
                self.add(Node::Decltype(expression))
            }
            b'p' => {
                self.take(2)?;
                let pattern = self.parse_type()?;
                self.add(Node::Expansion(pattern))
            }
            b'v' => self.vector_type()?,
            b'o' => {
                self.take(2)?;
                let function = self.function_type()?;
                if let Some(Node::Function(_, _, suffixes)) = self.tree.nodes.get_mut(function) {
                    suffixes.push(" noexcept");
                }
                function
            }
            // As a builtin type, it is not added to the substitutions.
            b'F' => return self.float_type(),
            _ => return None,
        };
        self.substitutions.push(id);
        Some(id)
    }

    fn vector_type(&mut self) -> Option<Id> {
        self.expect("Dv")?;
        let dimension = if self.skip_prefix("_") {
            self.expression()?
        } else {
            let digits = self.digits()?;
            self.text(digits)
        };
        self.expect("_")?;
        let element = self.parse_type()?;
        Some(self.add(Node::Vector(dimension, element)))
    }

    fn float_type(&mut self) -> Option<Id> {
        self.expect("DF")?;
        let name = match (self.digits()?, self.take(1)?) {
            ("16", "_") => "_Float16",
            ("32", "_") => "_Float32",
            ("64", "_") => "_Float64",
            ("128", "_") => "_Float128",
            ("16", "b") => "std::bfloat16_t",
            ("32", "x") => "_Float32x",
            ("64", "x") => "_Float64x",
            _ => return None,
        };
        Some(self.text(name))
    }

    /// Parses `I…E`, or `J…E` for a pack.
    pub(super) fn template_arguments(&mut self) -> Option<Vec<Id>> {
        if !self.skip_prefix("I") {
            self.expect("J")?;
        }
        // A constructor or destructor (`C1`, `D1`) after the arguments repeats the class name, which is before them. The names in
        // the arguments overwrite `last_name`, so it is restored.
        let last_name = self.last_name;
        let mut arguments = Vec::new();
        while !self.skip_prefix("E") {
            arguments.push(self.template_argument()?);
        }
        self.last_name = last_name;
        Some(arguments)
    }

    pub(super) fn template_argument(&mut self) -> Option<Id> {
        match self.peek()? {
            b'X' => {
                self.take(1)?;
                let expression = self.expression()?;
                self.expect("E")?;
                Some(expression)
            }
            b'L' => self.literal(),
            // A pack. Older compilers encode it as `I…E`.
            b'I' | b'J' => {
                let values = self.nested(Self::template_arguments)?;
                Some(self.add(Node::Pack(values)))
            }
            _ => self.parse_type(),
        }
    }
}
