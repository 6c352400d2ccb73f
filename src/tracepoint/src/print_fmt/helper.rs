//! Helper functions in a `print fmt`.

use super::lex::{Token, TokenKind};
use super::parse::{Parser, unexpected};
use super::tree::{Entry, Node, constant_text, entry_value};
use crate::FormatWarning;

impl Parser<'_> {
    /// Parses the arguments of `function` after its opening parenthesis. Also returns the token after the closing parenthesis.
    pub(super) fn call(&mut self, function: &str) -> Result<(Node, Token), FormatWarning> {
        match function {
            "__print_flags" => self.flags(),
            "__print_symbolic" => self.symbolic(),
            "__print_hex" => self.hex(" "),
            "__print_hex_str" => self.hex(""),
            "__print_array" => self.array(),
            "__get_str" | "__get_rel_str" => self.of_field(Node::Str),
            "__get_bitmask" | "__get_rel_bitmask" => self.of_field(Node::Bitmask),
            "__get_dynamic_array" | "__get_rel_dynamic_array" => self.of_field(Node::DynamicArray),
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => {
                self.of_field(Node::DynamicLength)
            }
            "__builtin_expect" => self.expectation(),
            _ => Err(FormatWarning::UnknownHelper(function.to_owned())),
        }
    }

    /// Parses a single argument, the name of a field. As in libtraceevent, does not skip a newline after the closing parenthesis.
    fn of_field(&mut self, make: fn(String) -> Node) -> Result<(Node, Token), FormatWarning> {
        let name = self.name()?;
        self.delimiter(")")?;
        Ok((make(name), self.lexer.read()))
    }

    /// Parses the arguments of `__print_flags(value, delimiter, table)`. Here `delimiter` is the text to print between names; in
    /// the rest of this file a delimiter is a token: a parenthesis or a comma.
    fn flags(&mut self) -> Result<(Node, Token), FormatWarning> {
        let value = self.expression_up_to(",")?;
        let mut next = self.lexer.read_past_newlines();
        // The delimiter may be omitted, but not the comma after it.
        let mut delimiter = String::new();
        if next.is_value() {
            delimiter = next.text;
            next = self.lexer.read_past_newlines();
        }
        if !next.is_delimiter(",") {
            return Err(unexpected("a comma", next));
        }
        let table = self.table()?;
        let node = Node::Flags {
            value,
            delimiter,
            table,
        };
        Ok((node, self.lexer.read_past_newlines()))
    }

    fn symbolic(&mut self) -> Result<(Node, Token), FormatWarning> {
        let value = self.expression_up_to(",")?;
        let table = self.table()?;
        Ok((
            Node::Symbolic { value, table },
            self.lexer.read_past_newlines(),
        ))
    }

    /// Parses the arguments of `__print_hex` or `__print_hex_str`, which print `separator` between bytes. As in
    /// libtraceevent, operators are not supported in these arguments, nor in those of `__print_array`.
    fn hex(&mut self, separator: &'static str) -> Result<(Node, Token), FormatWarning> {
        let bytes = self.operand_up_to(",")?;
        let count = self.operand_up_to(")")?;
        let node = Node::Hex {
            bytes,
            count,
            separator,
        };
        Ok((node, self.lexer.read_past_newlines()))
    }

    fn array(&mut self) -> Result<(Node, Token), FormatWarning> {
        let array = self.operand_up_to(",")?;
        let count = self.operand_up_to(",")?;
        let element_size = self.operand_up_to(")")?;
        let node = Node::Array {
            array,
            count,
            element_size,
        };
        Ok((node, self.lexer.read_past_newlines()))
    }

    /// Parses the arguments of `__builtin_expect(value, 0)`, which evaluates to `value`. As in libtraceevent, operators are
    /// not supported in them.
    fn expectation(&mut self) -> Result<(Node, Token), FormatWarning> {
        let (node, next) = self.operand()?;
        if !next.is_delimiter(",") {
            return Err(unexpected("a comma", next));
        }
        // The expected value: a number is a token of the same kind as a name.
        self.name()?;
        self.delimiter(")")?;
        Ok((node, self.lexer.read_past_newlines()))
    }

    /// Parses an expression and the delimiter after it.
    fn expression_up_to(&mut self, delimiter: &'static str) -> Result<Box<Node>, FormatWarning> {
        let (node, next) = self.expression()?;
        node_before(delimiter, node, next)
    }

    /// Parses an operand and the delimiter after it.
    fn operand_up_to(&mut self, delimiter: &'static str) -> Result<Box<Node>, FormatWarning> {
        let (node, next) = self.operand()?;
        node_before(delimiter, node, next)
    }

    /// Parses a table and the closing parenthesis of the call: `{ value, "name" }, …)`.
    fn table(&mut self) -> Result<Vec<Entry>, FormatWarning> {
        let mut table = Vec::new();
        loop {
            let open = self.lexer.read_past_newlines();
            if open.is_delimiter(")") {
                return Ok(table);
            }
            if !open.is_operator("{") {
                return Err(unexpected("{", open));
            }
            let (mut value, mut next) = self.operand()?;
            // [`Parser::operation`] includes all following operators and stops only at a `:`, which is then reported as a missing
            // comma.
            if next.kind == TokenKind::Operator {
                next = self.operation(&mut value, next)?;
            }
            if !next.is_delimiter(",") {
                return Err(unexpected("a comma", next));
            }
            let (name, close) = self.operand()?;
            if !close.is_operator("}") {
                return Err(unexpected("}", close));
            }
            table.push(Entry {
                value: entry_value(&constant_text(&value).ok_or(FormatWarning::NotConstant)?),
                name: constant_text(&name).ok_or(FormatWarning::NotConstant)?,
            });
            let next = self.lexer.read_past_newlines();
            if next.is_delimiter(")") {
                return Ok(table);
            }
            if !next.is_delimiter(",") {
                return Err(unexpected("a comma", next));
            }
        }
    }
}

/// Returns `node` if `next`, the token after it, is `delimiter`.
fn node_before(
    delimiter: &'static str,
    node: Node,
    next: Token,
) -> Result<Box<Node>, FormatWarning> {
    if next.is_delimiter(delimiter) {
        Ok(Box::new(node))
    } else {
        Err(unexpected(delimiter, next))
    }
}
