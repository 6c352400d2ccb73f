//! The expression parser of `print fmt`.
//!
//! It builds the same trees as perf's libtraceevent, which are not always those of C: a new operator becomes the root if
//! it binds more loosely than the root, otherwise it goes to the root's right operand; an operand that is itself an
//! operation, parenthesised or not, is rotated to the root if it binds more loosely than the preceding operator; an
//! operator after `a ? b : c` applies to the whole conditional.

use super::lex::{Lexer, Token, TokenKind};
use super::tree::{Node, Operation};
use crate::FormatWarning;

/// Maximum nesting of operands and operators; the deepest expressions of a kernel have about 50 levels.
const MAX_DEPTH: usize = 400;

/// The `is_rotated` of [`Parser::continue_operations`] for operations that are never rotated.
const NOT_ROTATED: bool = false;

/// Parses the arguments of a `print fmt`.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    depth: usize,
}

pub(super) fn unexpected(expected: &'static str, token: Token) -> FormatWarning {
    FormatWarning::Unexpected {
        expected,
        found: token.text,
    }
}

/// Precedence of an operator; higher numbers bind more loosely. [`Operation::looseness`] differs: it is 0 for unary operators,
/// conditionals and indexing. `[` has none, as in current libtraceevent: after an operation (`a + b[0]`) or another index,
/// [`Parser::continue_operations`] rejects it.
fn looseness(operator: &str) -> Result<u8, FormatWarning> {
    Ok(match operator {
        "++" | "--" => 3,
        "~" | "!" => 4,
        "*" | "/" | "%" => 6,
        "+" | "-" => 7,
        "<<" | ">>" => 8,
        "<" | ">" | "<=" | ">=" => 9,
        "==" | "!=" => 10,
        "&" => 11,
        "^" => 12,
        "|" => 13,
        "&&" => 14,
        "||" => 15,
        "?" => 16,
        _ => return Err(FormatWarning::Operator(operator.to_owned())),
    })
}

/// Parses a `print fmt`: its format string, and the trees of its arguments.
pub(super) fn parse(text: &str) -> Result<(String, Vec<Node>), FormatWarning> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        depth: 0,
    };
    let format = parser.lexer.read_past_newlines();
    if format.kind != TokenKind::Text {
        return Err(unexpected("a format string", format));
    }
    let next = parser.lexer.read_past_newlines();
    let arguments = match next.kind {
        TokenKind::End => Vec::new(),
        _ if next.is_delimiter(",") => parser.arguments()?,
        _ => return Err(unexpected("a comma", next)),
    };
    Ok((format.text, arguments))
}

/// The format string of a `print fmt`, if it begins with one.
pub(super) fn format_text(text: &str) -> Option<String> {
    let format = Lexer::new(text).read_past_newlines();
    (format.kind == TokenKind::Text).then_some(format.text)
}

/// The arguments of a `print fmt`, parsed separately; `None` for invalid ones.
pub(super) fn arguments_one_by_one(text: &str) -> Vec<Option<Node>> {
    // The first part is the format string.
    let arguments = split_at_commas(text).skip(1);
    let parsed = arguments.map(|argument| {
        let mut parser = Parser {
            lexer: Lexer::new(argument),
            depth: 0,
        };
        let (node, next) = parser.expression().ok()?;
        (next.kind == TokenKind::End).then_some(node)
    });
    parsed.collect()
}

/// Splits a text at its commas, except those in double quotes, parentheses, brackets and braces.
fn split_at_commas(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_i32, false, false);
    text.split(move |c: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match c {
            '\\' if is_quoted => is_escaped = !was_escaped,
            '"' if !was_escaped => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '{' => depth = depth.saturating_add(1),
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && !is_quoted && depth == 0
    })
}

impl Parser<'_> {
    /// Parses the arguments after the format string and its comma, to the end.
    fn arguments(&mut self) -> Result<Vec<Node>, FormatWarning> {
        let mut arguments = Vec::new();
        loop {
            let (mut node, mut next) = self.operand()?;
            let had_operator = next.kind == TokenKind::Operator;
            if had_operator {
                next = self.operation(&mut node, next)?;
            }
            arguments.push(node);
            if next.kind == TokenKind::Newline {
                next = self.lexer.read_past_newlines();
            }
            // As in libtraceevent, any token separates arguments after an operation; otherwise only a comma does.
            if next.kind == TokenKind::End || !(had_operator || next.is_delimiter(",")) {
                return Ok(arguments);
            }
        }
    }

    /// Parses one operand. One that begins with a unary operator includes all following operators. Also returns the next
    /// token.
    pub(super) fn operand(&mut self) -> Result<(Node, Token), FormatWarning> {
        let token = self.lexer.read();
        self.operand_at(token)
    }

    /// Parses one operand and all following operators. A `:` outside of a conditional, at which [`Parser::operation`] stops, is
    /// an error.
    pub(super) fn expression(&mut self) -> Result<(Node, Token), FormatWarning> {
        let (mut node, mut next) = self.operand()?;
        while next.kind == TokenKind::Operator {
            next = self.operation(&mut node, next)?;
        }
        Ok((node, next))
    }

    fn operand_at(&mut self, token: Token) -> Result<(Node, Token), FormatWarning> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(FormatWarning::TooDeep);
        }
        let result = match token.kind {
            TokenKind::Item if token.text == "REC" => self.record_field(),
            TokenKind::Item => self.atom_or_call(token),
            // A character is treated as text, whose value is that of its leading digits.
            TokenKind::Text | TokenKind::Character => {
                Ok((Node::Atom(token.text), self.lexer.read_past_newlines()))
            }
            TokenKind::Delimiter if token.text == "(" => self.parenthesis(),
            TokenKind::Operator | TokenKind::Delimiter => self.unary(token),
            TokenKind::Newline | TokenKind::End => Err(unexpected("an argument", token)),
        };
        self.depth -= 1;
        result
    }

    /// Parses `->name` after `REC`.
    fn record_field(&mut self) -> Result<(Node, Token), FormatWarning> {
        let arrow = self.lexer.read_past_newlines();
        if !arrow.is_operator("->") {
            return Err(unexpected("->", arrow));
        }
        let name = self.name()?;
        Ok((Node::Field(name), self.lexer.read()))
    }

    /// Parses the name of a field.
    pub(super) fn name(&mut self) -> Result<String, FormatWarning> {
        let token = self.lexer.read();
        match token.kind {
            TokenKind::Item => Ok(token.text),
            _ => Err(unexpected("a field", token)),
        }
    }

    /// Reads the delimiter `text`.
    pub(super) fn delimiter(&mut self, text: &'static str) -> Result<(), FormatWarning> {
        let token = self.lexer.read();
        if token.is_delimiter(text) {
            Ok(())
        } else {
            Err(unexpected(text, token))
        }
    }

    fn atom_or_call(&mut self, first: Token) -> Result<(Node, Token), FormatWarning> {
        let mut next = self.lexer.read_past_newlines();
        if next.is_delimiter("(") {
            return self.call(&first.text);
        }
        // Type names may have several words.
        let mut atom = first.text;
        while next.kind == TokenKind::Item {
            atom.push(' ');
            atom.push_str(&next.text);
            next = self.lexer.read_past_newlines();
        }
        Ok((Node::Atom(atom), next))
    }

    /// Parses the rest after `(`: an expression in parentheses, or a cast with its operand.
    fn parenthesis(&mut self) -> Result<(Node, Token), FormatWarning> {
        let (mut node, mut next) = self.operand()?;
        if next.kind == TokenKind::Operator {
            next = self.operation(&mut node, next)?;
        }
        if !next.is_delimiter(")") {
            return Err(unexpected(")", next));
        }
        let next = self.lexer.read_past_newlines();
        // Only a value or `(` directly after the parenthesis makes it a cast.
        if !next.is_value() && !next.is_delimiter("(") {
            return Ok((node, next));
        }
        let Node::Atom(type_name) = node else {
            return Err(unexpected("an operator", next));
        };
        let (operand, next) = self.operand_at(next)?;
        let operand = Box::new(operand);
        Ok((Node::Cast { type_name, operand }, next))
    }

    /// Parses the operand of the unary operator `token`, and all following operators.
    fn unary(&mut self, token: Token) -> Result<(Node, Token), FormatWarning> {
        if !matches!(token.text.as_str(), "~" | "!" | "+" | "-") {
            return Err(FormatWarning::Operator(token.text));
        }
        let (right, next) = self.operand()?;
        let mut node = Node::Operation(Box::new(Operation {
            operator: token.text,
            looseness: 0,
            left: Node::Null,
            right,
        }));
        let next = self.continue_operations(&mut node, next, NOT_ROTATED)?;
        Ok((node, next))
    }

    /// Applies `operator`, which follows `node`, and all following operators. Returns the next
    /// token, a `:` if that ends the operations.
    pub(super) fn operation(
        &mut self,
        node: &mut Node,
        operator: Token,
    ) -> Result<Token, FormatWarning> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(FormatWarning::TooDeep);
        }
        let result = match operator.text.as_str() {
            "?" => self.condition(node, operator),
            "[" => self.index(node, operator),
            ">>" | "<<" | "&" | "|" | "&&" | "||" | "-" | "+" | "*" | "^" | "/" | "%" | "<"
            | ">" | "<=" | ">=" | "==" | "!=" => self.binary(node, operator),
            _ => Err(FormatWarning::Operator(operator.text)),
        };
        self.depth -= 1;
        result
    }

    /// Applies the operators that follow `node`, a complete operation, and begin with `next`. Returns the token after them.
    /// `is_rotated` tells whether [`Parser::binary`] made the right operand the root.
    fn continue_operations(
        &mut self,
        node: &mut Node,
        next: Token,
        is_rotated: bool,
    ) -> Result<Token, FormatWarning> {
        if next.kind != TokenKind::Operator || next.text == ":" {
            return Ok(next);
        }
        let looseness = looseness(&next.text)?;
        match node {
            Node::Operation(operation) if looseness <= operation.looseness => {
                // libtraceevent continues with the node that it created for the right operand; after a rotation, that node
                // is the root's left operand.
                let operation = operation.as_mut();
                let continued = if is_rotated {
                    &mut operation.left
                } else {
                    &mut operation.right
                };
                self.operation(continued, next)
            }
            _ => self.operation(node, next),
        }
    }

    /// Parses the right operand of a binary operator after `node`, and all following operators. In a cast, `*` belongs to
    /// the type.
    fn binary(&mut self, node: &mut Node, operator: Token) -> Result<Token, FormatWarning> {
        let looseness_here = looseness(&operator.text)?;
        let next = self.lexer.read_past_newlines();
        if operator.text == "*" && next.is_delimiter(")") {
            // A pointer type inside a cast.
            let Node::Atom(type_name) = node else {
                return Err(FormatWarning::Operator(operator.text));
            };
            type_name.push_str(" *");
            return Ok(next);
        }
        let (right, next) = self.operand_at(next)?;
        let mut operation = Operation {
            operator: operator.text,
            looseness: looseness_here,
            left: std::mem::take(node),
            right: Node::Null,
        };
        let is_rotated = match right {
            // Rotation: the right operand becomes the root. The operator is compared, not `root.looseness`, which is 0 for
            // a conditional: a conditional is rotated too.
            Node::Operation(mut root)
                if looseness(&root.operator).is_ok_and(|looser| looser > looseness_here) =>
            {
                operation.right = std::mem::take(&mut root.left);
                root.left = Node::Operation(Box::new(operation));
                *node = Node::Operation(root);
                true
            }
            right => {
                operation.right = right;
                *node = Node::Operation(Box::new(operation));
                false
            }
        };
        self.continue_operations(node, next, is_rotated)
    }

    /// Parses the rest of `node ? left : right`, and all following operators.
    fn condition(&mut self, node: &mut Node, operator: Token) -> Result<Token, FormatWarning> {
        let (mut left, mut next) = self.operand()?;
        while next.kind == TokenKind::Operator && next.text != ":" {
            next = self.operation(&mut left, next)?;
        }
        if !next.is_operator(":") {
            return Err(unexpected(":", next));
        }
        let (right, after) = self.operand()?;
        let branches = Operation {
            operator: next.text,
            looseness: 0,
            left,
            right,
        };
        *node = Node::Operation(Box::new(Operation {
            operator: operator.text,
            looseness: 0,
            left: std::mem::take(node),
            right: Node::Operation(Box::new(branches)),
        }));
        self.continue_operations(node, after, NOT_ROTATED)
    }

    /// Parses the rest of `node[right]`, and all following operators. As in libtraceevent, the index is one operand.
    fn index(&mut self, node: &mut Node, operator: Token) -> Result<Token, FormatWarning> {
        let (right, next) = self.operand()?;
        if !next.is_operator("]") {
            return Err(unexpected("]", next));
        }
        *node = Node::Operation(Box::new(Operation {
            operator: operator.text,
            looseness: 0,
            left: std::mem::take(node),
            right,
        }));
        let next = self.lexer.read_past_newlines();
        self.continue_operations(node, next, NOT_ROTATED)
    }
}
