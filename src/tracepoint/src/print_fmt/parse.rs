//! The expression parser of `print fmt`.
//!
//! It builds the trees that perf's library builds, which are not always those of C: a new operator
//! is attached to the root when it binds more loosely than the root's, else to its right operand;
//! an operand that is itself an operation, parenthesised or not, is rotated to the root when it
//! binds more loosely than the operator before it; what follows `a ? b : c` applies to the whole.

use super::lex::{Kind, Lexer, Token};
use super::tree::{Node, Operation};
use crate::Warning;

/// Nesting beyond this is refused; the deepest expressions of a kernel nest about 50 deep.
const MAX_DEPTH: usize = 400;

/// Reads the arguments of one `print fmt`.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
    depth: usize,
}

pub(super) fn unexpected(expected: &'static str, token: Token) -> Warning {
    Warning::Unexpected {
        expected,
        found: token.text,
    }
}

/// How loosely a binary operator binds.
fn looseness(operator: &str) -> Result<u8, Warning> {
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
        _ => return Err(Warning::Operator(operator.to_owned())),
    })
}

/// Splits `print fmt` into its format string and its arguments.
pub(super) fn parse(text: &str) -> Result<(String, Vec<Node>), Warning> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        depth: 0,
    };
    let format = parser.lexer.read_item();
    if format.kind != Kind::Text {
        return Err(unexpected("a format string", format));
    }
    let next = parser.lexer.read_item();
    let arguments = match next.kind {
        Kind::End => Vec::new(),
        _ if next.is_delimiter(",") => parser.arguments()?,
        _ => return Err(unexpected("a comma", next)),
    };
    Ok((format.text, arguments))
}

/// The arguments of a `print fmt`, each parsed by itself; those that cannot be are left out.
pub(super) fn arguments_one_by_one(text: &str) -> Vec<Node> {
    let arguments = split_at_commas(text).skip(1);
    let parsed = arguments.filter_map(|argument| {
        let mut parser = Parser {
            lexer: Lexer::new(argument),
            depth: 0,
        };
        let (node, next) = parser.expression().ok()?;
        (next.kind == Kind::End).then_some(node)
    });
    parsed.collect()
}

/// Cuts a text at its commas, except those in quotes and in brackets of any kind.
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
    fn arguments(&mut self) -> Result<Vec<Node>, Warning> {
        let mut arguments = Vec::new();
        loop {
            let (mut node, mut next) = self.operand()?;
            let had_operator = next.kind == Kind::Operator;
            if had_operator {
                next = self.operation(&mut node, next)?;
            }
            arguments.push(node);
            if next.kind == Kind::Newline {
                next = self.lexer.read_item();
            }
            // Behind an operation anything separates arguments; elsewhere only a comma does.
            if next.kind == Kind::End || !(had_operator || next.is_delimiter(",")) {
                return Ok(arguments);
            }
        }
    }

    /// Reads one operand. Also returns the token behind it.
    pub(super) fn operand(&mut self) -> Result<(Node, Token), Warning> {
        let token = self.lexer.read();
        self.operand_at(token)
    }

    /// Reads one operand and all operators behind it.
    pub(super) fn expression(&mut self) -> Result<(Node, Token), Warning> {
        let (mut node, mut next) = self.operand()?;
        while next.kind == Kind::Operator {
            next = self.operation(&mut node, next)?;
        }
        Ok((node, next))
    }

    fn operand_at(&mut self, token: Token) -> Result<(Node, Token), Warning> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Warning::TooDeep);
        }
        let result = match token.kind {
            Kind::Item if token.text == "REC" => self.record_field(),
            Kind::Item => self.atom_or_call(token),
            // A character counts as text, whose value is that of the digits it starts with.
            Kind::Text | Kind::Character => Ok((Node::Atom(token.text), self.lexer.read_item())),
            Kind::Delimiter if token.text == "(" => self.parenthesis(),
            Kind::Operator | Kind::Delimiter => self.unary(token),
            Kind::Newline | Kind::End => Err(unexpected("an argument", token)),
        };
        self.depth -= 1;
        result
    }

    fn record_field(&mut self) -> Result<(Node, Token), Warning> {
        let arrow = self.lexer.read_item();
        if !arrow.is_operator("->") {
            return Err(unexpected("->", arrow));
        }
        let name = self.name()?;
        Ok((Node::Field(name), self.lexer.read()))
    }

    /// Reads the name of a field.
    pub(super) fn name(&mut self) -> Result<String, Warning> {
        let token = self.lexer.read();
        match token.kind {
            Kind::Item => Ok(token.text),
            _ => Err(unexpected("a field", token)),
        }
    }

    /// Reads `text`, the delimiter that must follow.
    pub(super) fn delimiter(&mut self, text: &'static str) -> Result<(), Warning> {
        let token = self.lexer.read();
        if token.is_delimiter(text) {
            Ok(())
        } else {
            Err(unexpected(text, token))
        }
    }

    fn atom_or_call(&mut self, first: Token) -> Result<(Node, Token), Warning> {
        let mut next = self.lexer.read_item();
        if next.is_delimiter("(") {
            return self.call(&first.text);
        }
        // Names of types have more than one word.
        let mut atom = first.text;
        while next.kind == Kind::Item {
            atom.push(' ');
            atom.push_str(&next.text);
            next = self.lexer.read_item();
        }
        Ok((Node::Atom(atom), next))
    }

    /// Reads what follows `(`: an expression, or a type that casts what follows.
    fn parenthesis(&mut self) -> Result<(Node, Token), Warning> {
        let (mut node, mut next) = self.operand()?;
        if next.kind == Kind::Operator {
            next = self.operation(&mut node, next)?;
        }
        if !next.is_delimiter(")") {
            return Err(unexpected(")", next));
        }
        let next = self.lexer.read_item();
        if !next.is_value() && !next.is_delimiter("(") {
            return Ok((node, next));
        }
        let Node::Atom(type_name) = node else {
            return Err(unexpected("an operator", next));
        };
        let (item, next) = self.operand_at(next)?;
        let item = Box::new(item);
        Ok((Node::Cast { type_name, item }, next))
    }

    fn unary(&mut self, token: Token) -> Result<(Node, Token), Warning> {
        if !matches!(token.text.as_str(), "~" | "!" | "+" | "-") {
            return Err(Warning::Operator(token.text));
        }
        let (right, next) = self.operand()?;
        let mut node = Node::Operation(Box::new(Operation {
            operator: token.text,
            looseness: 0,
            left: Node::Null,
            right,
        }));
        let next = self.rest(&mut node, next, false)?;
        Ok((node, next))
    }

    /// Applies `operator`, which follows `node`, and all that follow it. Returns the token
    /// behind, a `:` if one ends the operations.
    pub(super) fn operation(&mut self, node: &mut Node, operator: Token) -> Result<Token, Warning> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Warning::TooDeep);
        }
        let next = match operator.text.as_str() {
            "?" => self.condition(node, operator),
            "[" => self.index(node, operator),
            ">>" | "<<" | "&" | "|" | "&&" | "||" | "-" | "+" | "*" | "^" | "/" | "%" | "<"
            | ">" | "<=" | ">=" | "==" | "!=" => self.binary(node, operator),
            _ => Err(Warning::Operator(operator.text)),
        };
        self.depth -= 1;
        next
    }

    /// Continues behind an operation that is complete.
    fn rest(&mut self, node: &mut Node, next: Token, is_rotated: bool) -> Result<Token, Warning> {
        if next.kind != Kind::Operator || next.text == ":" {
            return Ok(next);
        }
        let looseness = looseness(&next.text)?;
        match node {
            Node::Operation(operation) if looseness <= operation.looseness => {
                // The operand that was read last; a rotation has moved it to the left.
                let operation = operation.as_mut();
                let last = if is_rotated {
                    &mut operation.left
                } else {
                    &mut operation.right
                };
                self.operation(last, next)
            }
            _ => self.operation(node, next),
        }
    }

    fn binary(&mut self, node: &mut Node, operator: Token) -> Result<Token, Warning> {
        let looseness_here = looseness(&operator.text)?;
        let next = self.lexer.read_item();
        if operator.text == "*" && next.is_delimiter(")") {
            // A pointer type inside a cast.
            let Node::Atom(type_name) = node else {
                return Err(Warning::Operator(operator.text));
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
            Node::Operation(mut root)
                if looseness(&root.operator).is_ok_and(|it| it > looseness_here) =>
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
        self.rest(node, next, is_rotated)
    }

    fn condition(&mut self, node: &mut Node, operator: Token) -> Result<Token, Warning> {
        let (mut left, mut next) = self.operand()?;
        while next.kind == Kind::Operator && next.text != ":" {
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
        self.rest(node, after, false)
    }

    fn index(&mut self, node: &mut Node, operator: Token) -> Result<Token, Warning> {
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
        let next = self.lexer.read_item();
        self.rest(node, next, false)
    }
}
