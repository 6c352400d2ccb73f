//! Expressions and literals, which occur in template arguments, in `decltype` and as dimensions of arrays and vectors.

use super::tables::OPERATORS;
use super::{IN_PREFIX, Id, Node, Parser, TOP_LEVEL};

impl<'a> Parser<'a> {
    pub(super) fn expression(&mut self) -> Option<Id> {
        self.nested(Self::expression_inner)
    }

    fn expression_inner(&mut self) -> Option<Id> {
        match self.rest.as_bytes() {
            [b'L', ..] => return self.literal(),
            [b'T', ..] => return self.template_parameter(),
            [b'0'..=b'9', ..] => return self.name(),
            _ => {}
        }
        // A leading `::`, which is not printed.
        self.skip_prefix("gs");
        match self.rest.get(..2)? {
            "sr" => self.scoped_expression(),
            "sp" => {
                self.take(2)?;
                let pattern = self.expression()?;
                Some(self.add(Node::Expansion(pattern)))
            }
            "fp" | "fL" => self.function_parameter(),
            "sZ" => {
                self.take(2)?;
                let pack = self.expression()?;
                Some(self.add(Node::PackSize(pack)))
            }
            "on" | "dn" => {
                self.take(2)?;
                self.name()
            }
            "tl" => {
                self.take(2)?;
                let class = self.parse_type()?;
                let values = self.expressions_to_end()?;
                Some(self.add(Node::Braced(Some(class), values)))
            }
            "il" => {
                self.take(2)?;
                let values = self.expressions_to_end()?;
                Some(self.add(Node::Braced(None, values)))
            }
            _ => self.operation(),
        }
    }

    fn expressions_to_end(&mut self) -> Option<Vec<Id>> {
        let mut values = Vec::new();
        while !self.skip_prefix("E") {
            values.push(self.expression()?);
        }
        Some(values)
    }

    /// `sr TYPE NAME [ARGUMENTS]`, or `sr [N] LEVEL+ E NAME [ARGUMENTS]`. A level is one scope, such as a namespace; the
    /// arguments are template arguments. In names by GCC, TYPE may be a class, so that both forms may begin with an identifier or
    /// `N`. With an identifier, levels are tried first, unless [`Parser::types_first`] is set.
    fn scoped_expression(&mut self) -> Option<Id> {
        self.expect("sr")?;
        let is_identifier = self.peek().is_some_and(|byte| byte.is_ascii_digit());
        let scopes = match is_identifier && !self.types_first {
            true => [Self::levels, Self::parse_type],
            false => [Self::parse_type, Self::levels],
        };
        let scoped = scopes
            .into_iter()
            .find_map(|scope| self.attempt(|p| p.name_in_scope(scope)))?;
        if self.peek() != Some(b'I') {
            return Some(scoped);
        }
        let arguments = self.template_arguments()?;
        Some(self.add(Node::Template(scoped, arguments)))
    }

    /// Parses a scope with `scope`, and then the name of a member or an operator (`on`) in it.
    fn name_in_scope(&mut self, scope: fn(&mut Self) -> Option<Id>) -> Option<Id> {
        let scope = self.nested(scope)?;
        self.skip_prefix("on");
        let name = match self.peek()? {
            b'0'..=b'9' => self.name_without_arguments()?,
            _ => self.operator_name()?,
        };
        Some(self.add(Node::Scoped(scope, name)))
    }

    /// Parses the names of nested scopes, each with optional template arguments, up to `E`. They are not substitution candidates.
    /// The first one may also be a template parameter or a substitution.
    fn levels(&mut self) -> Option<Id> {
        let mut prefix: Option<Id> = None;
        self.skip_prefix("N");
        while !self.skip_prefix("E") {
            let mut level = match self.peek()? {
                b'0'..=b'9' => self.name_without_arguments()?,
                b'T' if prefix.is_none() => self.template_parameter()?,
                b'S' if prefix.is_none() => self.substitution(!IN_PREFIX)?,
                _ => return None,
            };
            if let Some(scope) = prefix {
                level = self.add(Node::Scoped(scope, level));
            }
            if self.peek() == Some(b'I') {
                let arguments = self.template_arguments()?;
                level = self.add(Node::Template(level, arguments));
            }
            prefix = Some(level);
        }
        prefix
    }

    /// Parses an identifier. Template arguments after it are left to the caller.
    fn name_without_arguments(&mut self) -> Option<Id> {
        let identifier = self.identifier()?;
        Some(self.text(identifier))
    }

    /// `fpT` (`this`), `fp [QUALIFIERS] INDEX`, or `fL LEVEL p [QUALIFIERS] INDEX`. The level, here the nesting depth of function
    /// declarators, and the qualifiers are not printed.
    fn function_parameter(&mut self) -> Option<Id> {
        if self.skip_prefix("fpT") {
            return Some(self.text("this"));
        }
        if self.skip_prefix("fL") {
            self.number()?;
            self.expect("p")?;
        } else {
            self.expect("fp")?;
        }
        self.cv_qualifiers();
        let number = self.index()?;
        Some(self.add(Node::FunctionParameter(number + 1)))
    }

    fn operation(&mut self) -> Option<Id> {
        let code = self.take(2)?;
        match code {
            "cv" => return self.cast(),
            "cl" => {
                let function = self.expression()?;
                let arguments = self.expressions_to_end()?;
                return Some(self.add(Node::Call(function, arguments)));
            }
            "st" | "at" | "ti" => {
                let operand = self.parse_type()?;
                let keyword = match code {
                    "st" => "sizeof ",
                    "at" => "alignof ",
                    _ => "typeid ",
                };
                return Some(self.add(Node::Keyword(keyword, operand)));
            }
            "sz" | "az" | "nx" => {
                let operand = self.expression()?;
                let keyword = match code {
                    "sz" => "sizeof ",
                    "az" => "alignof ",
                    // Without a blank before the parenthesis, as in c++filt.
                    _ => "noexcept",
                };
                return Some(self.add(Node::Keyword(keyword, operand)));
            }
            _ => {}
        }
        let (_, symbol, operands) = OPERATORS.into_iter().find(|entry| entry.0 == code)?;
        match operands {
            1 => {
                // `_` marks the prefix operator.
                let is_postfix = matches!(code, "pp" | "mm") && !self.skip_prefix("_");
                let operand = self.expression()?;
                Some(self.add(match is_postfix {
                    true => Node::Postfix(symbol, operand),
                    false => Node::Unary(symbol, operand),
                }))
            }
            2 => {
                let left = self.expression()?;
                let right = match code {
                    "dt" | "pt" => self.member_name()?,
                    _ => self.expression()?,
                };
                Some(self.add(Node::Binary(symbol, left, right)))
            }
            _ if code == "qu" => {
                let condition = self.expression()?;
                let yes = self.expression()?;
                let no = self.expression()?;
                Some(self.add(Node::Conditional(condition, yes, no)))
            }
            _ => None,
        }
    }

    /// Parses what follows `.` or `->`: a name with optional template arguments, or an expression.
    fn member_name(&mut self) -> Option<Id> {
        if !matches!(self.peek()?, b'0'..=b'9' | b'o' | b'd') {
            return self.expression();
        }
        let name = if self.skip_prefix("on") || self.skip_prefix("dn") {
            self.name()?
        } else {
            self.name_without_arguments()?
        };
        if self.peek() != Some(b'I') {
            return Some(name);
        }
        let arguments = self.template_arguments()?;
        Some(self.add(Node::Template(name, arguments)))
    }

    fn cast(&mut self) -> Option<Id> {
        let target = self.parse_type()?;
        let values = if self.skip_prefix("_") {
            self.expressions_to_end()?
        } else {
            vec![self.expression()?]
        };
        Some(self.add(Node::Cast(target, values)))
    }

    /// `L TYPE VALUE E`, or `L _Z ENCODING E` (also without `_`).
    pub(super) fn literal(&mut self) -> Option<Id> {
        self.expect("L")?;
        if self.skip_prefix("_Z") || self.skip_prefix("Z") {
            let entity = self.encoding(!TOP_LEVEL)?;
            self.expect("E")?;
            return Some(entity);
        }
        let kind = self.parse_type()?;
        let negative = self.skip_prefix("n");
        let end = self.rest.find('E')?;
        let digits = self.take(end)?;
        self.expect("E")?;
        Some(self.add(Node::Literal(kind, digits, negative)))
    }
}
