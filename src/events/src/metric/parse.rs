//! Parser of formulas.

use std::ops::Range;

use super::error::MetricError;
use super::expr::{Expr, Operator};
use super::token::{FormulaFault, PlacedToken, Token, tokens};

/// Binary operators by precedence, loosest first; all are left-associative.
const LEVELS: [&[(char, Operator)]; 6] = [
    &[('|', Operator::Or)],
    &[('^', Operator::Xor)],
    &[('&', Operator::And)],
    &[('<', Operator::Less), ('>', Operator::Greater)],
    &[('+', Operator::Add), ('-', Operator::Subtract)],
    &[
        ('*', Operator::Multiply),
        ('/', Operator::Divide),
        ('%', Operator::Remainder),
    ],
];

/// Functions of two values.
const FUNCTIONS: [(&str, Operator); 3] = [
    ("min", Operator::Minimum),
    ("max", Operator::Maximum),
    ("d_ratio", Operator::Ratio),
];

/// Maximum nesting of brackets, arguments, signs and conditionals.
const MAX_DEPTH: usize = 100;
/// Maximum number of tokens, including the end marker. It also limits the depth of trees without nesting in the formula: the tree
/// of `1 + 1 + ...` has a level per operator.
const MAX_TOKENS: usize = 1024;

impl Expr {
    /// Parses a formula.
    ///
    /// # Errors
    /// [`MetricError::Syntax`] with the first error.
    pub fn parse(formula: &str) -> Result<Self, MetricError> {
        let parsed = tokens(formula).and_then(|tokens| {
            Parser {
                tokens,
                at: 0,
                depth: 0,
            }
            .parse_all()
        });
        parsed.map_err(|FormulaFault { position, reason }| MetricError::Syntax {
            // A caller that parses the formula of a metric adds its name.
            metric: String::new(),
            formula: formula.to_owned(),
            position,
            reason,
        })
    }
}

struct Parser {
    /// The last one is the end marker.
    tokens: Vec<PlacedToken>,
    /// The index of the next token.
    at: usize,
    /// The current nesting.
    depth: usize,
}

impl Parser {
    fn parse_all(mut self) -> Result<Expr, FormulaFault> {
        if let Some(PlacedToken { position, .. }) = self.tokens.get(MAX_TOKENS) {
            return Err(FormulaFault {
                position: position.clone(),
                reason: "the formula is too long".to_owned(),
            });
        }
        let expr = self.choice()?;
        match self.peek() {
            Token::End => Ok(expr),
            _ => Err(self.fault("expected an operator")),
        }
    }

    /// Parses `then if condition else otherwise`, or an expression without a condition.
    fn choice(&mut self) -> Result<Expr, FormulaFault> {
        self.deeper()?;
        let then = self.level(&LEVELS)?;
        let expr = if self.takes_word("if") {
            let condition = self.level(&LEVELS)?;
            if !self.takes_word("else") {
                return Err(self.fault("expected `else'"));
            }
            Expr::Choice {
                condition: Box::new(condition),
                then: Box::new(then),
                otherwise: Box::new(self.choice()?),
            }
        } else {
            then
        };
        self.depth -= 1;
        Ok(expr)
    }

    /// Parses operations with the operators of `levels`, loosest first.
    fn level(&mut self, levels: &[&[(char, Operator)]]) -> Result<Expr, FormulaFault> {
        let Some((operators, tighter)) = levels.split_first() else {
            return self.signed();
        };
        let mut left = self.level(tighter)?;
        while let Token::Mark(mark) = *self.peek()
            && let Some((_, operator)) = operators.iter().find(|(sign, _)| *sign == mark)
        {
            self.at += 1;
            let right = self.level(tighter)?;
            left = Expr::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// Parses a value with any number of minus signs.
    fn signed(&mut self) -> Result<Expr, FormulaFault> {
        if !self.takes('-') {
            return self.value();
        }
        self.deeper()?;
        let inner = self.signed()?;
        self.depth -= 1;
        Ok(Expr::Negative(Box::new(inner)))
    }

    /// Parses a number, a literal such as `#smt_on`, an expression in brackets, a name or a function call.
    fn value(&mut self) -> Result<Expr, FormulaFault> {
        let PlacedToken { token, position } = self.placed();
        match token {
            Token::Number(value) => {
                self.at += 1;
                Ok(Expr::Number(value))
            }
            Token::Literal(name) => {
                self.at += 1;
                Ok(Expr::Literal(name))
            }
            Token::Mark('(') => {
                self.at += 1;
                let inner = self.choice()?;
                self.expect(')')?;
                Ok(inner)
            }
            Token::Name(name) if name == "if" || name == "else" => {
                Err(self.fault("expected a number, an event or a metric"))
            }
            Token::Name(name) => {
                self.at += 1;
                match *self.peek() {
                    Token::Mark('(') => self.function(&name, position),
                    _ => Ok(Expr::Name(name)),
                }
            }
            _ => Err(self.fault("expected a number, an event or a metric")),
        }
    }

    /// Parses the call of the function `name`, from the opening bracket on. `position` is that of the name.
    fn function(&mut self, name: &str, position: Range<usize>) -> Result<Expr, FormulaFault> {
        self.at += 1;
        let expr = if let Some((_, operator)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
            let left = self.choice()?;
            self.expect(',')?;
            let right = self.choice()?;
            Expr::Binary(*operator, Box::new(left), Box::new(right))
        } else {
            match name {
                "source_count" => Expr::Sources(self.name()?),
                "has_event" => Expr::Has(self.name()?),
                "strcmp_cpuid_str" => Expr::Processor(self.name()?),
                _ => {
                    let reason = format!("unknown function `{name}'");
                    return Err(FormulaFault { position, reason });
                }
            }
        };
        self.expect(')')?;
        Ok(expr)
    }

    fn name(&mut self) -> Result<String, FormulaFault> {
        match self.placed().token {
            Token::Name(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.fault("expected a name")),
        }
    }

    /// Counts one more level of nesting.
    fn deeper(&mut self) -> Result<(), FormulaFault> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => Err(self.fault("too many brackets")),
            false => Ok(()),
        }
    }

    fn peek(&self) -> &Token {
        let placed = self.tokens.get(self.at);
        placed.map_or(&Token::End, |placed| &placed.token)
    }

    /// The next token with its position; does not consume it.
    fn placed(&self) -> PlacedToken {
        self.tokens.get(self.at).cloned().unwrap_or(PlacedToken {
            token: Token::End,
            position: 0..0,
        })
    }

    /// Consumes the next token if it is this mark.
    fn takes(&mut self, mark: char) -> bool {
        let is_next = *self.peek() == Token::Mark(mark);
        self.at += usize::from(is_next);
        is_next
    }

    /// Consumes the next token if it is this word.
    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Name(name) if name == word);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, mark: char) -> Result<(), FormulaFault> {
        match self.takes(mark) {
            true => Ok(()),
            false => Err(self.fault(&format!("expected `{mark}'"))),
        }
    }

    fn fault(&self, reason: &str) -> FormulaFault {
        FormulaFault {
            position: self.placed().position,
            reason: reason.to_owned(),
        }
    }
}
