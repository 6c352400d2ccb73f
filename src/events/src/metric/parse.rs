//! Formulas out of text.

use std::ops::Range;

use super::error::MetricError;
use super::expr::{Expr, Operator};
use super::token::{Placed, Token, Wrong, tokens};

/// Binary operators from the loosest to the closest; those of one level group to the left.
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

/// Brackets, signs and choices within each other; more of them are nobody's formula.
const DEPTH: usize = 100;

impl Expr {
    /// Reads a formula.
    ///
    /// # Errors
    /// [`MetricError::Syntax`] with the first place that does not fit.
    pub fn parse(formula: &str) -> Result<Self, MetricError> {
        let parsed = tokens(formula).and_then(|tokens| {
            Parser {
                tokens,
                at: 0,
                depth: 0,
            }
            .whole()
        });
        parsed.map_err(|Wrong { position, reason }| MetricError::Syntax {
            metric: String::new(),
            formula: formula.to_owned(),
            position,
            reason,
        })
    }
}

struct Parser {
    /// The last one is the end.
    tokens: Vec<Placed>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn whole(mut self) -> Result<Expr, Wrong> {
        let expr = self.choice()?;
        match self.peek() {
            Token::End => Ok(expr),
            _ => Err(self.wrong("expected an operator")),
        }
    }

    fn choice(&mut self) -> Result<Expr, Wrong> {
        self.deeper()?;
        let then = self.level(&LEVELS)?;
        let expr = if self.takes_word("if") {
            let condition = self.level(&LEVELS)?;
            if !self.takes_word("else") {
                return Err(self.wrong("expected `else'"));
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

    fn level(&mut self, levels: &[&[(char, Operator)]]) -> Result<Expr, Wrong> {
        let Some((operators, closer)) = levels.split_first() else {
            return self.signed();
        };
        let mut left = self.level(closer)?;
        while let Token::Mark(mark) = *self.peek()
            && let Some((_, operator)) = operators.iter().find(|(sign, _)| *sign == mark)
        {
            self.at += 1;
            let right = self.level(closer)?;
            left = Expr::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Expr, Wrong> {
        if !self.takes('-') {
            return self.value();
        }
        self.deeper()?;
        let inner = self.signed()?;
        self.depth -= 1;
        Ok(Expr::Negative(Box::new(inner)))
    }

    fn value(&mut self) -> Result<Expr, Wrong> {
        let Placed { token, position } = self.placed();
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
                Err(self.wrong("expected a number, an event or a metric"))
            }
            Token::Name(name) => {
                self.at += 1;
                match *self.peek() {
                    Token::Mark('(') => self.function(&name, position),
                    _ => Ok(Expr::Name(name)),
                }
            }
            _ => Err(self.wrong("expected a number, an event or a metric")),
        }
    }

    /// What follows the name of a function.
    fn function(&mut self, name: &str, position: Range<usize>) -> Result<Expr, Wrong> {
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
                    let reason = format!("there is no function `{name}'");
                    return Err(Wrong { position, reason });
                }
            }
        };
        self.expect(')')?;
        Ok(expr)
    }

    fn name(&mut self) -> Result<String, Wrong> {
        match self.placed().token {
            Token::Name(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.wrong("expected a name")),
        }
    }

    fn deeper(&mut self) -> Result<(), Wrong> {
        self.depth += 1;
        match self.depth > DEPTH {
            true => Err(self.wrong("too many brackets")),
            false => Ok(()),
        }
    }

    fn peek(&self) -> &Token {
        let placed = self.tokens.get(self.at);
        placed.map_or(&Token::End, |placed| &placed.token)
    }

    fn placed(&self) -> Placed {
        self.tokens.get(self.at).cloned().unwrap_or(Placed {
            token: Token::End,
            position: 0..0,
        })
    }

    fn takes(&mut self, mark: char) -> bool {
        let is = *self.peek() == Token::Mark(mark);
        self.at += usize::from(is);
        is
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Token::Name(name) if name == word);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, mark: char) -> Result<(), Wrong> {
        match self.takes(mark) {
            true => Ok(()),
            false => Err(self.wrong(&format!("expected `{mark}'"))),
        }
    }

    fn wrong(&self, reason: &str) -> Wrong {
        Wrong {
            position: self.placed().position,
            reason: reason.to_owned(),
        }
    }
}
