//! The expressions of configuration spaces: a subset of Python.
//!
//! Numbers, strings, Booleans, lists and list comprehensions; arithmetic, comparisons (chained as well), `and`, `or`, `not`,
//! `in`, `… if … else …`; `range`, `list`, `tuple`, `min`, `max`, `abs`, `len`, `sum`, `int`, `float`, `round`, `any`, `all`. Nothing else is
//! evaluated, and no Python is executed. Integers have 64 bits: overflow is an error, as is a list of more than
//! [`MOST_ITEMS`].

use std::collections::BTreeMap;
use std::fmt;

/// The most items of a list.
pub const MOST_ITEMS: usize = 1 << 20;

/// How deep expressions may nest, and how many operators they may chain.
const DEEPEST: usize = 50;
const MOST_OPERATORS: usize = 250;

/// The most nodes evaluated and items copied.
const MOST_STEPS: usize = 1 << 23;

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprValue {
    /// A whole number; `True` and `False` are 1 and 0.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// A string.
    Text(String),
    /// A list, a tuple or a range.
    List(Vec<ExprValue>),
}

impl ExprValue {
    /// Python's `bool(value)`.
    pub fn is_true(&self) -> bool {
        match self {
            ExprValue::Int(value) => *value != 0,
            ExprValue::Real(value) => *value != 0.0,
            ExprValue::Text(text) => !text.is_empty(),
            ExprValue::List(items) => !items.is_empty(),
        }
    }

    /// The number of values in it, itself included.
    fn size(&self) -> usize {
        match self {
            ExprValue::List(items) => 1 + items.iter().map(ExprValue::size).sum::<usize>(),
            _ => 1,
        }
    }

    fn real(&self) -> Option<f64> {
        match self {
            ExprValue::Int(value) => Some(*value as f64),
            ExprValue::Real(value) => Some(*value),
            ExprValue::Text(_) | ExprValue::List(_) => None,
        }
    }
}

impl fmt::Display for ExprValue {
    /// As Python prints it, texts without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExprValue::Int(value) => write!(f, "{value}"),
            ExprValue::Real(value) if value.fract() == 0.0 && value.abs() < 1e16 => {
                write!(f, "{value:.1}")
            }
            ExprValue::Real(value) => write!(f, "{value}"),
            ExprValue::Text(text) => f.write_str(text),
            ExprValue::List(items) => {
                let items: Vec<String> = items.iter().map(ExprValue::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

/// A node of the syntax tree.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Constant(ExprValue),
    Name(String),
    List(Vec<Node>),
    /// `item for name in items if condition`.
    Comprehension(Box<Node>, String, Box<Node>, Option<Box<Node>>),
    Negate(Box<Node>),
    Not(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    /// Each operand with the comparison to the next.
    Chain(Box<Node>, Vec<(Comparison, Node)>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    /// Then, condition, otherwise.
    Choice(Box<Node>, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
    Item(Box<Node>, Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    ShiftLeft,
    ShiftRight,
    BitAnd,
    BitOr,
    BitXor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    NotIn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Range,
    List,
    Minimum,
    Maximum,
    Absolute,
    Length,
    Sum,
    Whole,
    Real,
    Round,
    Any,
    All,
}

impl Function {
    fn named(name: &str) -> Option<Function> {
        Some(match name {
            "range" => Function::Range,
            "list" | "tuple" => Function::List,
            "min" => Function::Minimum,
            "max" => Function::Maximum,
            "abs" => Function::Absolute,
            "len" => Function::Length,
            "sum" => Function::Sum,
            "int" => Function::Whole,
            "float" => Function::Real,
            "round" => Function::Round,
            "any" => Function::Any,
            "all" => Function::All,
            _ => return None,
        })
    }
}

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    node: Node,
}

impl Expression {
    /// Reads one.
    ///
    /// # Errors
    /// One line: what is not understood and where.
    pub fn read(text: &str) -> Result<Expression, String> {
        let tokens = tokens(text).map_err(|why| format!("`{text}`: {why}"))?;
        let mut parser = Parser {
            tokens: &tokens,
            at: 0,
            depth: 0,
            operators: 0,
        };
        let node = parser.choice().and_then(|node| match parser.peek() {
            None => Ok(node),
            Some(token) => Err(format!("unexpected {token}")),
        });
        match node {
            Ok(node) => Ok(Expression {
                text: text.to_owned(),
                node,
            }),
            Err(why) => Err(format!("`{text}`: {why}")),
        }
    }

    /// The names that it depends on.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.node.names(&mut Vec::new(), &mut names);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Its value where names have these values.
    ///
    /// # Errors
    /// One line: a name without a value, a division by zero, a number that does not fit, operands of a wrong kind.
    pub fn evaluate(&self, names: &BTreeMap<String, ExprValue>) -> Result<ExprValue, String> {
        let mut scope = Scope {
            outer: names,
            inner: Vec::new(),
            steps: 0,
        };
        scope
            .value(&self.node)
            .map_err(|why| format!("`{}`: {why}", self.text))
    }
}

impl Node {
    fn names<'a>(&'a self, bound: &mut Vec<&'a str>, found: &mut Vec<&'a str>) {
        match self {
            Node::Constant(_) => {}
            Node::Name(name) => {
                if !bound.contains(&name.as_str()) {
                    found.push(name);
                }
            }
            Node::List(items) | Node::Call(_, items) => {
                for item in items {
                    item.names(bound, found);
                }
            }
            Node::Comprehension(item, name, items, condition) => {
                items.names(bound, found);
                bound.push(name);
                item.names(bound, found);
                if let Some(condition) = condition {
                    condition.names(bound, found);
                }
                bound.pop();
            }
            Node::Negate(a) | Node::Not(a) => a.names(bound, found),
            Node::Binary(_, a, b) | Node::And(a, b) | Node::Or(a, b) | Node::Item(a, b) => {
                a.names(bound, found);
                b.names(bound, found);
            }
            Node::Chain(first, rest) => {
                first.names(bound, found);
                for (_, node) in rest {
                    node.names(bound, found);
                }
            }
            Node::Choice(a, b, c) => {
                for node in [a, b, c] {
                    node.names(bound, found);
                }
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(ExprValue),
    Text(String),
    Name(String),
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Number(value) => write!(f, "`{value}`"),
            Token::Text(text) => write!(f, "\"{text}\""),
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
        }
    }
}

/// Longer ones first.
const SIGNS: [&str; 24] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "(", ")",
    "[", "]", ",", "&", "|", "^", ":",
];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length =
            |keep: &dyn Fn(char) -> bool| rest.find(|letter| !keep(letter)).unwrap_or(rest.len());
        let (token, used) = if first.is_ascii_digit()
            || first == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit())
        {
            number(rest)?
        } else if first.is_alphabetic() || first == '_' {
            let used = length(&|letter| letter.is_alphanumeric() || letter == '_');
            (Token::Name(rest[..used].to_owned()), used)
        } else if first == '"' || first == '\'' {
            let end = rest[1..].find(first).ok_or("an unterminated string")?;
            (Token::Text(rest[1..=end].to_owned()), end + 2)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("unexpected `{first}`"))?;
            (Token::Sign(sign), sign.len())
        };
        tokens.push(token);
        rest = rest[used..].trim_start();
    }
    Ok(tokens)
}

fn number(text: &str) -> Result<(Token, usize), String> {
    let digits = |from: usize| {
        let rest = &text[from..];
        from + rest
            .find(|letter: char| !letter.is_ascii_digit() && letter != '_')
            .unwrap_or(rest.len())
    };
    let whole = digits(0);
    let mut end = whole;
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let signed = end + 1 + usize::from(text[end + 1..].starts_with(['+', '-']));
        if digits(signed) > signed {
            end = digits(signed);
        }
    }
    let plain = text[..end].replace('_', "");
    let value = if end == whole {
        plain.parse().map(ExprValue::Int).ok()
    } else {
        plain.parse().map(ExprValue::Real).ok()
    };
    let value = value.ok_or_else(|| format!("`{}` is not a number of 64 bits", &text[..end]))?;
    Ok((Token::Number(value), end))
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    operators: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if found == keyword)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        self.at += usize::from(found);
        found
    }

    /// One more operator that nests what is on its left.
    fn operator(&mut self) -> Result<(), String> {
        self.operators += 1;
        if self.operators > MOST_OPERATORS {
            return Err(format!("more than {MOST_OPERATORS} operators"));
        }
        Ok(())
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.sign(sign) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(token) => format!("expected `{sign}`, found {token}"),
            None => format!("`{sign}` is missing at its end"),
        })
    }

    fn choice(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("nested too deep".to_owned());
        }
        let mut node = self.or()?;
        if self.keyword("if") {
            let condition = self.or()?;
            if !self.keyword("else") {
                return Err("`if` without `else`".to_owned());
            }
            let otherwise = self.choice()?;
            node = Node::Choice(Box::new(node), Box::new(condition), Box::new(otherwise));
        }
        self.depth -= 1;
        Ok(node)
    }

    fn or(&mut self) -> Result<Node, String> {
        let mut node = self.and()?;
        while self.keyword("or") {
            self.operator()?;
            node = Node::Or(Box::new(node), Box::new(self.and()?));
        }
        Ok(node)
    }

    fn and(&mut self) -> Result<Node, String> {
        let mut node = self.not()?;
        while self.keyword("and") {
            self.operator()?;
            node = Node::And(Box::new(node), Box::new(self.not()?));
        }
        Ok(node)
    }

    fn not(&mut self) -> Result<Node, String> {
        let mut times = 0;
        while self.keyword("not") {
            self.operator()?;
            times += 1;
        }
        let mut node = self.comparison()?;
        for _ in 0..times {
            node = Node::Not(Box::new(node));
        }
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Node, String> {
        let first = self.binary(0)?;
        let mut rest = Vec::new();
        loop {
            let signs = [
                ("==", Comparison::Equal),
                ("!=", Comparison::Unequal),
                ("<=", Comparison::AtMost),
                (">=", Comparison::AtLeast),
                ("<", Comparison::Less),
                (">", Comparison::Greater),
            ];
            let sign = signs.into_iter().find(|(sign, _)| self.is_sign(sign));
            let comparison = if let Some((_, comparison)) = sign {
                self.at += 1;
                comparison
            } else if self.keyword("in") {
                Comparison::In
            } else if self.is_keyword("not")
                && matches!(self.tokens.get(self.at + 1), Some(Token::Name(keyword)) if keyword == "in")
            {
                self.at += 2;
                Comparison::NotIn
            } else {
                break;
            };
            rest.push((comparison, self.binary(0)?));
        }
        Ok(if rest.is_empty() {
            first
        } else {
            Node::Chain(Box::new(first), rest)
        })
    }

    /// Parses operators of this precedence and higher.
    fn binary(&mut self, level: usize) -> Result<Node, String> {
        const LEVELS: [&[(&str, Operator)]; 6] = [
            &[("|", Operator::BitOr)],
            &[("^", Operator::BitXor)],
            &[("&", Operator::BitAnd)],
            &[("<<", Operator::ShiftLeft), (">>", Operator::ShiftRight)],
            &[("+", Operator::Add), ("-", Operator::Subtract)],
            &[
                ("*", Operator::Multiply),
                ("//", Operator::FloorDivide),
                ("/", Operator::Divide),
                ("%", Operator::Remainder),
            ],
        ];
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut node = self.binary(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.is_sign(sign)) {
            self.at += 1;
            self.operator()?;
            let right = self.binary(level + 1)?;
            node = Node::Binary(*operator, Box::new(node), Box::new(right));
        }
        Ok(node)
    }

    fn unary(&mut self) -> Result<Node, String> {
        let mut negative = false;
        loop {
            if self.sign("-") {
                negative = !negative;
            } else if !self.sign("+") {
                break;
            }
        }
        let node = self.power()?;
        Ok(if negative {
            Node::Negate(Box::new(node))
        } else {
            node
        })
    }

    fn power(&mut self) -> Result<Node, String> {
        let base = self.item()?;
        if self.sign("**") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err("nested too deep".to_owned());
            }
            let exponent = self.unary()?;
            self.depth -= 1;
            return Ok(Node::Binary(
                Operator::Power,
                Box::new(base),
                Box::new(exponent),
            ));
        }
        Ok(base)
    }

    fn item(&mut self) -> Result<Node, String> {
        let mut node = self.atom()?;
        while self.sign("[") {
            self.operator()?;
            let index = self.choice()?;
            self.expect("]")?;
            node = Node::Item(Box::new(node), Box::new(index));
        }
        Ok(node)
    }

    fn atom(&mut self) -> Result<Node, String> {
        let token = self.peek().cloned().ok_or("it ends too early")?;
        self.at += 1;
        match token {
            Token::Number(value) => Ok(Node::Constant(value)),
            Token::Text(text) => Ok(Node::Constant(ExprValue::Text(text))),
            Token::Sign("(") => {
                if self.sign(")") {
                    return Ok(Node::List(Vec::new()));
                }
                let first = self.choice()?;
                if self.is_keyword("for") {
                    let all = self.comprehension(first)?;
                    self.expect(")")?;
                    return Ok(all);
                }
                if !self.is_sign(",") {
                    self.expect(")")?;
                    return Ok(first);
                }
                let mut items = vec![first];
                while self.sign(",") && !self.is_sign(")") {
                    items.push(self.choice()?);
                }
                self.expect(")")?;
                Ok(Node::List(items))
            }
            Token::Sign("[") => {
                let items = self.items("]")?;
                Ok(items)
            }
            Token::Name(name) => match name.as_str() {
                "True" => Ok(Node::Constant(ExprValue::Int(1))),
                "False" => Ok(Node::Constant(ExprValue::Int(0))),
                "if" | "else" | "for" | "in" | "and" | "or" | "not" | "lambda" => {
                    Err(format!("unexpected `{name}`"))
                }
                _ if self.sign("(") => {
                    let function = Function::named(&name)
                        .ok_or_else(|| format!("`{name}` is not a known function"))?;
                    let Node::List(arguments) = self.items(")")? else {
                        return Err(
                            "a comprehension as all arguments: put it in brackets".to_owned()
                        );
                    };
                    Ok(Node::Call(function, arguments))
                }
                _ => Ok(Node::Name(name)),
            },
            Token::Sign(_) => Err(format!("unexpected {token}")),
        }
    }

    /// Parses the items of a list up to its closing bracket.
    fn items(&mut self, close: &'static str) -> Result<Node, String> {
        let mut items = Vec::new();
        while !self.is_sign(close) {
            let item = self.choice()?;
            if self.is_keyword("for") {
                let all = self.comprehension(item)?;
                self.expect(close)?;
                // A function's one argument may be a comprehension without brackets.
                return Ok(if close == ")" {
                    Node::List(vec![all])
                } else {
                    all
                });
            }
            items.push(item);
            if !self.sign(",") {
                break;
            }
        }
        self.expect(close)?;
        Ok(Node::List(items))
    }

    fn comprehension(&mut self, item: Node) -> Result<Node, String> {
        self.at += 1;
        let Some(Token::Name(name)) = self.peek().cloned() else {
            return Err("`for` without a name".to_owned());
        };
        self.at += 1;
        if !self.keyword("in") {
            return Err("`for` without `in`".to_owned());
        }
        let items = self.or()?;
        let condition = if self.keyword("if") {
            Some(Box::new(self.or()?))
        } else {
            None
        };
        Ok(Node::Comprehension(
            Box::new(item),
            name,
            Box::new(items),
            condition,
        ))
    }
}

/// Names and their values: the innermost binding counts.
struct Scope<'a> {
    outer: &'a BTreeMap<String, ExprValue>,
    inner: Vec<(String, ExprValue)>,
    steps: usize,
}

const TOO_LARGE: &str = "a number that does not fit into 64 bits";

impl Scope<'_> {
    fn value(&mut self, node: &Node) -> Result<ExprValue, String> {
        self.work(1)?;
        Ok(match node {
            Node::Constant(value) => value.clone(),
            Node::Name(name) => {
                let inner = self.inner.iter().rev().find(|(bound, _)| bound == name);
                let value = inner
                    .map(|(_, value)| value)
                    .or_else(|| self.outer.get(name));
                let value = value.cloned();
                let value = value.ok_or_else(|| format!("`{name}` has no value"))?;
                self.work(value.size())?;
                value
            }
            Node::List(items) => ExprValue::List(self.values(items)?),
            Node::Comprehension(item, name, items, condition) => {
                let ExprValue::List(items) = self.value(items)? else {
                    return Err("`for` needs a list".to_owned());
                };
                let mut all = Vec::new();
                for one in items {
                    self.inner.push((name.clone(), one));
                    let taken = match condition {
                        Some(condition) => self.value(condition)?.is_true(),
                        None => true,
                    };
                    if taken {
                        all.push(self.value(item)?);
                    }
                    self.inner.pop();
                }
                ExprValue::List(all)
            }
            Node::Negate(a) => match self.value(a)? {
                ExprValue::Int(value) => ExprValue::Int(value.checked_neg().ok_or(TOO_LARGE)?),
                ExprValue::Real(value) => ExprValue::Real(-value),
                other => return Err(format!("`-` of {other}")),
            },
            Node::Not(a) => ExprValue::Int(i64::from(!self.value(a)?.is_true())),
            Node::Binary(operator, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                binary(*operator, a, b)?
            }
            Node::Chain(first, rest) => {
                let mut left = self.value(first)?;
                for (comparison, right) in rest {
                    let right = self.value(right)?;
                    if !holds(*comparison, &left, &right)? {
                        return Ok(ExprValue::Int(0));
                    }
                    left = right;
                }
                ExprValue::Int(1)
            }
            Node::And(a, b) => {
                let a = self.value(a)?;
                if a.is_true() { self.value(b)? } else { a }
            }
            Node::Or(a, b) => {
                let a = self.value(a)?;
                if a.is_true() { a } else { self.value(b)? }
            }
            Node::Choice(then, condition, otherwise) => {
                if self.value(condition)?.is_true() {
                    self.value(then)?
                } else {
                    self.value(otherwise)?
                }
            }
            Node::Call(function, arguments) => call(*function, self.values(arguments)?)?,
            Node::Item(list, index) => {
                let (ExprValue::List(items), ExprValue::Int(index)) =
                    (self.value(list)?, self.value(index)?)
                else {
                    return Err("`[…]` needs a list and an integer".to_owned());
                };
                let from_end = if index < 0 { items.len() as i64 } else { 0 };
                let at = usize::try_from(index.saturating_add(from_end)).ok();
                at.and_then(|at| items.get(at).cloned())
                    .ok_or_else(|| format!("no item {index} of {}", items.len()))?
            }
        })
    }

    /// Counts evaluation steps and stops beyond the limit.
    fn work(&mut self, steps: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MOST_STEPS {
            return Err("too many evaluation steps".to_owned());
        }
        Ok(())
    }

    fn values(&mut self, nodes: &[Node]) -> Result<Vec<ExprValue>, String> {
        nodes.iter().map(|node| self.value(node)).collect()
    }
}

fn binary(operator: Operator, a: ExprValue, b: ExprValue) -> Result<ExprValue, String> {
    use Operator::{
        Add, BitAnd, BitOr, BitXor, Divide, FloorDivide, Multiply, Power, Remainder, ShiftLeft,
        ShiftRight, Subtract,
    };
    match (operator, a, b) {
        (Divide | FloorDivide | Remainder, _, ExprValue::Int(0)) => {
            Err("a division by zero".to_owned())
        }
        (_, ExprValue::Int(a), ExprValue::Int(b)) if operator != Divide => {
            let whole = match operator {
                Add => a.checked_add(b),
                Subtract => a.checked_sub(b),
                Multiply => a.checked_mul(b),
                // Rounded down, and the remainder has the sign of the divisor.
                FloorDivide => a.checked_div_euclid(b).and_then(|quotient| {
                    quotient.checked_sub(i64::from(b < 0 && a.rem_euclid(b) != 0))
                }),
                Remainder => a.checked_rem(b).map(|rest| {
                    if rest != 0 && (rest < 0) != (b < 0) {
                        rest + b
                    } else {
                        rest
                    }
                }),
                Power if b < 0 => return real(operator, a as f64, b as f64),
                Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
                ShiftLeft => u32::try_from(b)
                    .ok()
                    .filter(|b| *b < 63)
                    .and_then(|b| a.checked_mul(1 << b)),
                ShiftRight => u32::try_from(b).ok().map(|b| a >> b.min(63)),
                BitAnd => Some(a & b),
                BitOr => Some(a | b),
                BitXor => Some(a ^ b),
                Divide => None,
            };
            whole
                .map(ExprValue::Int)
                .ok_or_else(|| TOO_LARGE.to_owned())
        }
        (Add, ExprValue::List(mut a), ExprValue::List(b)) => {
            a.extend(b);
            few(a)
        }
        (Add, ExprValue::Text(a), ExprValue::Text(b)) => Ok(ExprValue::Text(a + &b)),
        (Multiply, ExprValue::List(items), ExprValue::Int(times))
        | (Multiply, ExprValue::Int(times), ExprValue::List(items)) => {
            let times = usize::try_from(times).unwrap_or(0);
            if items.len().saturating_mul(times) > MOST_ITEMS {
                return Err(format!("a list of more than {MOST_ITEMS} items"));
            }
            Ok(ExprValue::List(
                std::iter::repeat_n(items, times).flatten().collect(),
            ))
        }
        (operator, a, b) => match (a.real(), b.real()) {
            (Some(a), Some(b)) => real(operator, a, b),
            _ => Err(format!("this operator does not take {a} and {b}")),
        },
    }
}

fn real(operator: Operator, a: f64, b: f64) -> Result<ExprValue, String> {
    let value = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::FloorDivide => (a / b).floor(),
        Operator::Remainder => a - b * (a / b).floor(),
        Operator::Power => a.powf(b),
        _ => return Err("a bit operation needs integers".to_owned()),
    };
    if value.is_finite() {
        Ok(ExprValue::Real(value))
    } else {
        Err("a division by zero, or a number too large".to_owned())
    }
}

fn few(items: Vec<ExprValue>) -> Result<ExprValue, String> {
    if items.len() > MOST_ITEMS {
        return Err(format!("a list of more than {MOST_ITEMS} items"));
    }
    Ok(ExprValue::List(items))
}

fn equal(a: &ExprValue, b: &ExprValue) -> bool {
    match (a, b) {
        (ExprValue::Int(a), ExprValue::Int(b)) => a == b,
        (ExprValue::List(a), ExprValue::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (ExprValue::Text(a), ExprValue::Text(b)) => a == b,
        _ => a.real().zip(b.real()).is_some_and(|(a, b)| a == b),
    }
}

fn holds(comparison: Comparison, a: &ExprValue, b: &ExprValue) -> Result<bool, String> {
    let order = match (a, b) {
        (ExprValue::Int(a), ExprValue::Int(b)) => Some(a.cmp(b)),
        (ExprValue::Text(a), ExprValue::Text(b)) => Some(a.cmp(b)),
        _ => a.real().zip(b.real()).and_then(|(a, b)| a.partial_cmp(&b)),
    };
    let ordered = || order.ok_or_else(|| format!("{a} and {b} have no order"));
    Ok(match comparison {
        Comparison::Equal => equal(a, b),
        Comparison::Unequal => !equal(a, b),
        Comparison::Less => ordered()?.is_lt(),
        Comparison::AtMost => ordered()?.is_le(),
        Comparison::Greater => ordered()?.is_gt(),
        Comparison::AtLeast => ordered()?.is_ge(),
        Comparison::In | Comparison::NotIn => {
            let within = match (a, b) {
                (a, ExprValue::List(items)) => items.iter().any(|item| equal(a, item)),
                (ExprValue::Text(a), ExprValue::Text(b)) => b.contains(a.as_str()),
                _ => return Err(format!("`in` needs a list, not {b}")),
            };
            within == (comparison == Comparison::In)
        }
    })
}

fn call(function: Function, mut arguments: Vec<ExprValue>) -> Result<ExprValue, String> {
    let one_list = |arguments: Vec<ExprValue>| match <[ExprValue; 1]>::try_from(arguments) {
        Ok([ExprValue::List(items)]) => Some(items),
        _ => None,
    };
    match function {
        Function::Range => {
            let whole: Option<Vec<i64>> = arguments
                .iter()
                .map(|one| match one {
                    ExprValue::Int(value) => Some(*value),
                    _ => None,
                })
                .collect();
            let (from, to, by) = match whole.as_deref() {
                Some([to]) => (0, *to, 1),
                Some([from, to]) => (*from, *to, 1),
                Some([from, to, by]) if *by != 0 => (*from, *to, *by),
                _ => return Err("`range` takes one to three whole numbers".to_owned()),
            };
            let mut items = Vec::new();
            let mut at = from;
            while if by > 0 { at < to } else { at > to } {
                items.push(ExprValue::Int(at));
                if items.len() > MOST_ITEMS {
                    break;
                }
                let Some(next) = at.checked_add(by) else {
                    break;
                };
                at = next;
            }
            few(items)
        }
        Function::List => one_list(arguments)
            .map(ExprValue::List)
            .ok_or_else(|| "`list` needs a list".to_owned()),
        Function::Minimum | Function::Maximum => {
            if let [ExprValue::List(items)] = arguments.as_mut_slice() {
                arguments = std::mem::take(items);
            }
            let wanted = if function == Function::Minimum {
                Comparison::Less
            } else {
                Comparison::Greater
            };
            let mut all = arguments.into_iter();
            let mut best = all.next().ok_or("`min` or `max` of an empty list")?;
            for one in all {
                if holds(wanted, &one, &best)? {
                    best = one;
                }
            }
            Ok(best)
        }
        Function::Length => {
            let count = one_list(arguments).ok_or("`len` needs a list")?;
            Ok(ExprValue::Int(count.len() as i64))
        }
        Function::Sum => {
            let items = one_list(arguments).ok_or("`sum` needs a list")?;
            items.into_iter().try_fold(ExprValue::Int(0), |sum, item| {
                binary(Operator::Add, sum, item)
            })
        }
        Function::Any | Function::All => {
            let items = one_list(arguments).ok_or("`any` and `all` need a list")?;
            let found = if function == Function::Any {
                items.iter().any(ExprValue::is_true)
            } else {
                items.iter().all(ExprValue::is_true)
            };
            Ok(ExprValue::Int(i64::from(found)))
        }
        Function::Absolute | Function::Whole | Function::Real | Function::Round => {
            let [one] = <[ExprValue; 1]>::try_from(arguments)
                .map_err(|_| "this function takes one number".to_owned())?;
            let value = match &one {
                ExprValue::Text(text) => text.trim().parse().ok(),
                other => other.real(),
            };
            let value = value.ok_or_else(|| format!("{one} is not a number"))?;
            match (function, one) {
                (Function::Absolute, ExprValue::Int(whole)) => {
                    Ok(ExprValue::Int(whole.checked_abs().ok_or(TOO_LARGE)?))
                }
                (Function::Absolute, _) => Ok(ExprValue::Real(value.abs())),
                (Function::Real, _) => Ok(ExprValue::Real(value)),
                (_, ExprValue::Int(whole)) => Ok(ExprValue::Int(whole)),
                (function, _) => {
                    let whole = if function == Function::Round {
                        value.round_ties_even()
                    } else {
                        value.trunc()
                    };
                    if whole.abs() < 9e18 {
                        Ok(ExprValue::Int(whole as i64))
                    } else {
                        Err(TOO_LARGE.to_owned())
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> String {
        let names = BTreeMap::from([
            ("block_size_x".to_owned(), ExprValue::Int(32)),
            ("tile".to_owned(), ExprValue::Int(3)),
        ]);
        match Expression::read(text).and_then(|one| one.evaluate(&names)) {
            Ok(value) => value.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn what_python_says() {
        for (text, value) in [
            ("1 + 2 * 3", "7"),
            ("-7 // 2", "-4"),
            ("7 // -2", "-4"),
            ("-7 % 3", "2"),
            ("7 % -3", "-2"),
            ("-8 // -2", "4"),
            ("2 ** 3 ** 2", "512"),
            ("-2 ** 2", "-4"),
            ("2 ** -1", "0.5"),
            ("7 / 2", "3.5"),
            ("6 / 2", "3.0"),
            ("32 <= block_size_x * tile <= 1024", "1"),
            ("32 <= block_size_x * 100 <= 1024", "0"),
            ("block_size_x % 32 == 0 and not tile > 4", "1"),
            ("block_size_x == 31 or tile", "3"),
            ("[32 * i for i in range(1, 4)]", "[32, 64, 96]"),
            ("[1] + [2 * i for i in range(1, 3)]", "[1, 2, 4]"),
            ("[i for i in range(1, 10) if 8 % i == 0]", "[1, 2, 4, 8]"),
            ("[1, 2] + list(range(32, 97, 32))", "[1, 2, 32, 64, 96]"),
            ("tile in (1, 3)", "1"),
            ("tile not in [1, 3]", "0"),
            ("4 if tile > 2 else 5", "4"),
            ("max(1, tile, 2) + min([4, 2])", "5"),
            ("(1 << 4) | 3", "19"),
            ("[5, 6, 7][-1]", "7"),
            ("any(i == tile for i in [1, 3])", "1"),
            ("int(7.9) + round(2.5) + abs(-3)", "12"),
            ("'a' + \"b\"", "ab"),
            ("1_000", "1000"),
            ("1.5e3", "1500.0"),
        ] {
            assert_eq!(of(text), value, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, part) in [
            ("1 / 0", "division by zero"),
            ("5 % 0", "division by zero"),
            ("nothing + 1", "`nothing` has no value"),
            ("__import__('os')", "not a known function"),
            ("os.system('ls')", "unexpected `.`"),
            ("open('x')", "not a known function"),
            ("(1 + 2", "`)` is missing"),
            ("1 +", "ends too early"),
            ("9223372036854775807 + 1", "does not fit"),
            ("range(10 ** 12)", "more than"),
            (
                "[[j for j in range(10 ** 6)] for i in range(10 ** 6)]",
                "too many",
            ),
            ("2 ** 400", "does not fit"),
            ("lambda x: x", "unexpected `lambda`"),
            ("1 ~ 2", "unexpected `~`"),
            ("'a' < 1", "no order"),
            ("[1][3]", "no item 3"),
        ] {
            let found = of(text);
            assert!(found.starts_with("error: "), "{text}: {found}");
            assert!(found.contains(part), "{text}: {found}");
        }
    }

    #[test]
    fn names_are_those_that_are_not_bound_inside() {
        let one = Expression::read("[i * a for i in range(b)] + [c]").unwrap();
        assert_eq!(one.names(), ["a", "b", "c"]);
    }

    #[test]
    fn deep_nests_end_in_words() {
        for text in [
            "(".repeat(100_000),
            "-".repeat(100_000),
            "2 ** ".repeat(10_000),
            "not ".repeat(100_000),
            "1 or ".repeat(100_000),
            "1 + ".repeat(100_000),
        ] {
            assert!(Expression::read(&text).is_err());
        }
        // As much as is allowed can be evaluated.
        for text in ["1 or ", "1 + ", "not ", "1 if 0 else ", "("] {
            let times = if text == "(" || text.contains("if") {
                DEEPEST - 1
            } else {
                MOST_OPERATORS
            };
            let close = if text == "(" {
                ")".repeat(times)
            } else {
                String::new()
            };
            let found = of(&format!("{}1{close}", text.repeat(times)));
            assert!(!found.starts_with("error"), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[-+*/%()<>=!a-c0-9 \\[\\],.'&|^:]{0,40}") {
            let _ = of(&text);
        }

        #[test]
        fn floors_are_floors(a in -50_i64..50, b in -9_i64..9) {
            prop_assume!(b != 0);
            let floor = (a as f64 / b as f64).floor() as i64;
            prop_assert_eq!(of(&format!("{a} // {b}")), floor.to_string());
            prop_assert_eq!(of(&format!("{a} % {b}")), (a - b * floor).to_string());
        }
    }
}
