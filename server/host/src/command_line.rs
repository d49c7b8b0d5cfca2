//! How programs read their arguments: numbers out of texts, comparisons of texts, `getopt`.

use std::rc::Rc;

use warplens_syntax::{BinaryOperator as Op, Node};

use super::arguments::Argument;
use super::leaving::Thrown;
use super::standard::nothing;
use super::state::Host;
use super::value::{Place, Step, Value, binary};
use warplens_hir::Source;
use warplens_ir::Type;

/// `std::string::npos`.
pub(super) const NPOS: Value = Value::Int(-1, 64, false);

impl Host<'_> {
    /// A function of the C or C++ library that makes something known of a text.
    pub(super) fn reading_call(&mut self, name: &str, arguments: &[Argument]) -> Option<Value> {
        self.running.as_ref()?;
        let whole = |at: usize| self.whole_text_in(&arguments.get(at)?.value);
        let base = |at: usize| {
            let given = arguments.get(at).map(|argument| argument.value.as_int());
            given
                .unwrap_or(Some(10))
                .and_then(|base| u32::try_from(base).ok())
        };
        Some(match name {
            "stoi" | "stol" | "stoll" | "stoul" | "stoull" | "stof" | "stod"
                if !begins_with_number(&whole(0)?, name.ends_with(['f', 'd'])) =>
            {
                self.throw(Thrown::of_library("invalid_argument"));
                Value::Unknown
            }
            "atoi" | "stoi" => integer(&whole(0)?, 10).map_or(Value::int(0), |value| {
                Value::Int(value, 64, true).converted(&Type::INT)
            }),
            "atol" | "atoll" | "strtol" | "strtoll" | "stol" | "stoll" => {
                let base = if name.starts_with("str") {
                    base(2)?
                } else {
                    10
                };
                Value::Int(integer(&whole(0)?, base).unwrap_or(0), 64, true)
            }
            "strtoul" | "strtoull" | "stoul" | "stoull" => {
                let base = if name.starts_with("str") {
                    base(2)?
                } else {
                    10
                };
                Value::Int(integer(&whole(0)?, base).unwrap_or(0), 64, false)
            }
            "atof" | "strtod" | "stod" => Value::Float(real(&whole(0)?), 64),
            "strtof" | "stof" => Value::Float(real(&whole(0)?), 64).converted(&Type::FLOAT),
            "strcmp" | "strcasecmp" => {
                let (a, b) = (whole(0)?, whole(1)?);
                Value::int(compare(&a, &b, name == "strcasecmp"))
            }
            "strncmp" | "strncasecmp" => {
                let (a, b) = (whole(0)?, whole(1)?);
                let most = usize::try_from(arguments.get(2)?.value.as_int()?).ok()?;
                let first = |text: &str| text.chars().take(most).collect::<String>();
                Value::int(compare(&first(&a), &first(&b), name != "strncmp"))
            }
            "strstr" => {
                let (a, b) = (whole(0)?, whole(1)?);
                match a.find(&*b) {
                    Some(at) => Value::Text(a[at..].into()),
                    None => Value::Int(0, 64, true),
                }
            }
            "strchr" | "strrchr" => {
                let text = whole(0)?;
                let wanted = char::from(u8::try_from(arguments.get(1)?.value.as_int()?).ok()?);
                let found = if name == "strchr" {
                    text.find(wanted)
                } else {
                    text.rfind(wanted)
                };
                match found {
                    Some(at) => Value::Text(text[at..].into()),
                    None => Value::Int(0, 64, true),
                }
            }
            "getenv" => {
                let name = whole(0)?;
                let environment = &self.running.as_ref()?.environment;
                let set = environment.iter().find(|(of, _)| **of == *name);
                Value::Text(set?.1.as_str().into())
            }
            "strdup" => Value::Text(whole(0)?),
            "isdigit" | "isalpha" | "isspace" | "tolower" | "toupper" => {
                let code = arguments.first()?.value.as_int()?;
                let c = u8::try_from(code).ok()?;
                match name {
                    "isdigit" => Value::truth(c.is_ascii_digit()),
                    "isalpha" => Value::truth(c.is_ascii_alphabetic()),
                    "isspace" => Value::truth(c.is_ascii_whitespace()),
                    "tolower" => Value::int(i64::from(c.to_ascii_lowercase())),
                    _ => Value::int(i64::from(c.to_ascii_uppercase())),
                }
            }
            "sscanf" => return self.scanned(arguments),
            "getline" => return self.next_line(arguments),
            "find" => return self.found(arguments),
            "strtok" => {
                let next = self.next_word(arguments);
                if let (None, Some(running)) = (&next, &mut self.running) {
                    running.words_left = None;
                }
                return next;
            }
            "from_chars" => {
                let to = arguments.get(2)?.place.clone()?;
                let is_real = matches!(self.type_at(&to, &self.read(&to)), Type::Float { .. });
                let base = arguments.get(3).map_or(Some(10), |_| base(3));
                match (whole(0), base) {
                    (Some(text), _) if is_real => self.write(&to, Value::Float(real(&text), 64)),
                    // What is no number leaves the variable as it is.
                    (Some(text), Some(base)) => {
                        if let Some(value) = integer(&text, base) {
                            self.write(&to, Value::Int(value, 64, true));
                        }
                    }
                    _ => self.forget_at(&to),
                }
                Value::Unknown
            }
            "checkCmdLineFlag"
            | "getCmdLineArgumentInt"
            | "getCmdLineArgumentFloat"
            | "getCmdLineArgumentString"
                if !self.index.by_name.contains_key(name) =>
            {
                return self.option_of_samples(name, arguments);
            }
            "getopt" => self.next_option(arguments, None),
            "getopt_long" | "getopt_long_only" => {
                let long = self.elements(&arguments.get(3)?.value);
                self.next_option(arguments, Some(&long))
            }
            _ => return None,
        })
    }

    /// What the helpers of the CUDA samples find of an option: `-n=1000`, `--n 1000` without its value.
    fn option_of_samples(&mut self, name: &str, arguments: &[Argument]) -> Option<Value> {
        let wanted = self.whole_text_in(&arguments.get(2)?.value)?;
        let count = usize::try_from(arguments.first()?.value.as_int()?).ok()?;
        let words = self.elements(&arguments.get(1)?.value);
        let mut found: Option<String> = None;
        for word in words.get(1..count)? {
            let word = self.whole_text_in(word)?;
            let word = word.trim_start_matches('-');
            let flag = word.split('=').next().unwrap_or(word);
            let same = match name {
                "checkCmdLineFlag" => flag.eq_ignore_ascii_case(&wanted),
                _ => (word.get(..wanted.len()))
                    .is_some_and(|begin| begin.eq_ignore_ascii_case(&wanted)),
            };
            if same {
                let rest = word.get(wanted.len()..).unwrap_or_default();
                found = Some(rest.strip_prefix('=').unwrap_or(rest).to_owned());
            }
        }
        let text = found.as_deref().unwrap_or_default();
        Some(match name {
            "getCmdLineArgumentInt" => {
                let value = integer(text, 10).unwrap_or(0);
                Value::Int(value, 64, true).converted(&Type::INT)
            }
            "getCmdLineArgumentFloat" => Value::Float(real(text), 64).converted(&Type::FLOAT),
            "getCmdLineArgumentString" => {
                if let Value::Address(to) = &arguments.get(3)?.value {
                    let value = match &found {
                        Some(text) => Value::Text(text.as_str().into()),
                        None => Value::Int(0, 64, true),
                    };
                    self.write(to, value);
                }
                Value::truth(found.is_some())
            }
            _ => Value::truth(found.is_some()),
        })
    }

    /// A name that the library declares, in a run.
    pub(super) fn library_name(&self, name: &str) -> Option<Value> {
        let running = self.running.as_ref()?;
        Some(match name {
            "optarg" => running.options.argument.clone(),
            "optind" => Value::int(running.options.next),
            "cudaSuccess"
            | "hipSuccess"
            | "CL_SUCCESS"
            | "CUDA_SUCCESS"
            | "EXIT_SUCCESS"
            | "no_argument"
            | "CUBLAS_STATUS_SUCCESS" => Value::int(0),
            "required_argument" | "EXIT_FAILURE" => Value::int(1),
            "optional_argument" => Value::int(2),
            "nullopt" => nothing(),
            "EOF" => Value::int(-1),
            "RAND_MAX" | "INT_MAX" => Value::int(i64::from(i32::MAX)),
            "INT_MIN" => Value::int(i64::from(i32::MIN)),
            "UINT_MAX" => Value::Int(i64::from(u32::MAX), 32, false),
            _ => return None,
        })
    }

    /// A method of a text.
    pub(super) fn text_method(
        &mut self,
        text: &str,
        name: &str,
        given: &[Argument],
    ) -> Option<Value> {
        self.running.as_ref()?;
        if text.contains(super::value::GAP) {
            return None;
        }
        let number =
            |at: usize| -> Option<usize> { usize::try_from(given.get(at)?.value.as_int()?).ok() };
        Some(match name {
            "size" | "length" => Value::Int(text.len() as i64, 64, false),
            "empty" => Value::truth(text.is_empty()),
            "compare" => {
                let other = self.whole_text_in(&given.last()?.value)?;
                let part = match given {
                    [_] => text,
                    [_, _, _] => {
                        let rest = text.get(number(0)?..)?;
                        rest.get(..number(1)?.min(rest.len()))?
                    }
                    _ => return None,
                };
                Value::int(compare(part, &other, false))
            }
            "find" | "rfind" => {
                let wanted = match &given.first()?.value {
                    Value::Int(code, 8, _) => char::from(u8::try_from(*code).ok()?).to_string(),
                    value => self.whole_text_in(value)?.to_string(),
                };
                let from = number(1).unwrap_or(0);
                let found = match name {
                    "find" => text.get(from..)?.find(&wanted).map(|at| at + from),
                    _ if given.len() > 1 => text.starts_with(&wanted).then_some(0),
                    _ => text.rfind(&wanted),
                };
                found.map_or(NPOS, |at| Value::Int(at as i64, 64, false))
            }
            "substr" => {
                let from = number(0)?;
                let rest = text.get(from..)?;
                let length = number(1).unwrap_or(rest.len()).min(rest.len());
                Value::Text(rest.get(..length)?.into())
            }
            "at" => Value::Text(text.into()).at(&Step::Index(Some(number(0)?))),
            "starts_with" | "ends_with" => {
                let other = self.whole_text_in(&given.first()?.value)?;
                Value::truth(if name == "starts_with" {
                    text.starts_with(&*other)
                } else {
                    text.ends_with(&*other)
                })
            }
            _ => return None,
        })
    }

    /// `std::find(first, last, value)`: where the value is between two elements of one array, else the last.
    fn found(&self, arguments: &[Argument]) -> Option<Value> {
        let [first, last, wanted] = arguments else {
            return None;
        };
        let (Value::Address(first), Value::Address(last)) = (&first.value, &last.value) else {
            return None;
        };
        if first.slot != last.slot {
            return None;
        }
        let (from, to) = (first.element()?, last.element()?);
        let elements = self.elements(&Value::Address(Place {
            slot: first.slot,
            path: Vec::new(),
        }));
        let mut at = to;
        for (number, element) in elements.get(from..to)?.iter().enumerate() {
            let texts = self
                .whole_text_in(element)
                .zip(self.whole_text_in(&wanted.value));
            let equal = match texts {
                Some((one, other)) => one == other,
                None => element.as_int()? == wanted.value.as_int()?,
            };
            if equal {
                at = from + number;
                break;
            }
        }
        Some(Value::Address(Place {
            slot: first.slot,
            path: vec![Step::Index(Some(at))],
        }))
    }

    /// `sscanf(text, "%d,%d", &m, &n)`: conversions, and the text between them, which must be there.
    fn scanned(&mut self, arguments: &[Argument]) -> Option<Value> {
        let text = self.whole_text_in(&arguments.first()?.value)?;
        let format = self.whole_text_in(&arguments.get(1)?.value)?;
        let mut places = arguments.get(2..)?.iter();
        let (mut rest, mut format): (&str, &str) = (&text, &format);
        let mut read = 0;
        while let Some(first) = format.chars().next() {
            format = &format[first.len_utf8()..];
            if first.is_whitespace() {
                rest = rest.trim_start();
                continue;
            }
            if first != '%' || format.starts_with('%') {
                let Some(behind) = rest.strip_prefix(first) else {
                    break;
                };
                rest = behind;
                format = format
                    .strip_prefix('%')
                    .filter(|_| first == '%')
                    .unwrap_or(format);
                continue;
            }
            let kind = format.trim_start_matches(['l', 'h', 'z']);
            let word = rest.trim_start();
            let is_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let end = match kind.chars().next()? {
                'd' | 'i' | 'u' => word.find(|c: char| !c.is_ascii_digit() && !"+-".contains(c)),
                'f' | 'g' | 'e' => word.find(|c| !is_number(c)),
                's' => word.find(char::is_whitespace),
                // A width, a set of characters, one that is left aside.
                _ => return None,
            };
            let (word, behind) = word.split_at(end.unwrap_or(word.len()));
            if word.is_empty() {
                break;
            }
            let value = match kind.chars().next()? {
                's' => Value::Text(word.into()),
                'd' | 'i' | 'u' => Value::Int(integer(word, 10)?, 64, true),
                _ => Value::Float(real(word), 64),
            };
            let Value::Address(place) = &places.next()?.value else {
                return None;
            };
            self.write(place, value);
            read += 1;
            rest = behind;
            format = &kind[1..];
        }
        Some(Value::int(read))
    }

    /// `strtok(text, " ,")`, and `strtok(NULL, …)` for the next word of the text.
    fn next_word(&mut self, arguments: &[Argument]) -> Option<Value> {
        let [from, separators] = arguments else {
            return None;
        };
        let separators = self.whole_text_in(&separators.value)?;
        let separators: Vec<char> = separators.chars().collect();
        let text = match &from.value {
            Value::Int(0, ..) => self.running.as_ref()?.words_left.clone()?,
            value => self.whole_text_in(value)?,
        };
        let word = text.trim_start_matches(separators.as_slice());
        let end = word.find(separators.as_slice()).unwrap_or(word.len());
        let (word, rest) = word.split_at(end);
        let running = self.running.as_mut()?;
        running.words_left = Some(rest.into());
        Some(if word.is_empty() {
            Value::Int(0, 64, true)
        } else {
            Value::Text(word.into())
        })
    }

    /// `std::getline(stream, line)`, `(stream, part, separator)`: what a stream of characters has until the next separator.
    /// Out: whether there was something left.
    fn next_line(&mut self, arguments: &[Argument]) -> Option<Value> {
        let [stream, line, rest @ ..] = arguments else {
            return None;
        };
        let (stream, line) = (stream.place.clone(), line.place.clone()?);
        let separator = match rest {
            [] => Some('\n'),
            [separator, ..] => separator
                .value
                .as_int()
                .and_then(|code| u8::try_from(code).ok())
                .map(char::from),
        };
        let text = stream
            .as_ref()
            .and_then(|stream| self.whole_text_in(&self.read(stream)));
        let (Some(text), Some(separator), Some(stream)) = (text, separator, &stream) else {
            self.forget_at(&line);
            if let Some(stream) = stream {
                self.forget_at(&stream);
            }
            return Some(Value::Unknown);
        };
        if text.is_empty() {
            // How it ended before decides whether the line is as it was.
            self.forget_at(&line);
            return Some(Value::FALSE);
        }
        let (first, rest) = text.split_once(separator).unwrap_or((&text, ""));
        self.write(&line, Value::Text(first.into()));
        self.write(stream, Value::Text(rest.into()));
        Some(Value::TRUE)
    }

    /// `stream >> variable`: the next word of the text, as the variable's type reads it. Out: what is left of the text.
    pub(super) fn read_from_text(
        &mut self,
        stream: &Value,
        left: Node,
        right: Node,
        source: Source,
    ) -> Value {
        let Some(place) = self.place(right, source) else {
            return Value::Unknown;
        };
        let text = self.whole_text_in(stream);
        let Some(text) = text else {
            self.forget_at(&place);
            return Value::Unknown;
        };
        let word = text.trim_start();
        let end = word.find(char::is_whitespace).unwrap_or(word.len());
        let (word, rest) = word.split_at(end);
        let value = match self.type_at(&place, &self.read(&place)) {
            Type::Int { bits: 8, .. } => word
                .bytes()
                .next()
                .map(|byte| Value::Int(i64::from(byte), 8, true)),
            Type::Int { .. } => integer(word, 10).map(|value| Value::Int(value, 64, true)),
            Type::Float { .. } => Some(Value::Float(real(word), 64)),
            _ => Some(Value::Text(word.into())),
        };
        self.write(&place, value.unwrap_or(Value::Unknown));
        let rest = Value::Text(rest.into());
        if let Some(stream) = self.place(left, source) {
            self.write(&stream, rest.clone());
        }
        rest
    }

    /// One step of `getopt`: the letter of the next option, -1 behind the last.
    fn next_option(&mut self, arguments: &[Argument], long: Option<&[Value]>) -> Value {
        let vector = arguments.get(1).map(|vector| self.elements(&vector.value));
        let count = arguments.first().and_then(|count| count.value.as_int());
        let letters = arguments.get(2);
        let letters = letters.and_then(|letters| self.whole_text_in(&letters.value));
        let (Some(vector), Some(count), Some(letters)) = (vector, count, letters) else {
            return Value::Unknown;
        };
        let word = |at: i64| -> Option<Rc<str>> {
            let word = usize::try_from(at).ok().filter(|_| at < count);
            vector.get(word?)?.text()
        };
        let Some(running) = &mut self.running else {
            return Value::Unknown;
        };
        let options = &mut running.options;
        options.argument = Value::Int(0, 64, true);
        // What is no option is passed over, as GNU's does, unless it is told not to.
        let is_plain = |word: &Rc<str>| !word.starts_with('-') || &**word == "-";
        while options.letter == 0 && word(options.next).is_some_and(|word| is_plain(&word)) {
            if letters.starts_with('+') {
                return Value::int(-1);
            }
            options.passed.extend(usize::try_from(options.next));
            options.next += 1;
        }
        let Some(current) = word(options.next) else {
            self.options_end(arguments, &vector);
            return Value::int(-1);
        };
        if &*current == "--" {
            options.next += 1;
            self.options_end(arguments, &vector);
            return Value::int(-1);
        }
        if options.letter == 0
            && let (Some(name), Some(long)) = (current.strip_prefix("--"), long)
        {
            options.next += 1;
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, None),
            };
            let field = |entry: &Value, at: usize, name: &str| match entry {
                Value::Record(_) => entry.at(&Step::Field(name.to_owned())),
                _ => entry.at(&Step::Index(Some(at))),
            };
            let known = |exact: bool| {
                long.iter().find(|entry| {
                    let of = field(entry, 0, "name").text();
                    of.is_some_and(|of| &*of == name || (!exact && of.starts_with(name)))
                })
            };
            let Some(entry) = known(true).or_else(|| known(false)) else {
                return Value::int(i64::from(b'?'));
            };
            if let Some(value) = value {
                options.argument = Value::Text(value.as_str().into());
            } else if field(entry, 1, "has_arg").as_int() == Some(1) {
                options.argument = word(options.next).map_or(Value::Unknown, Value::Text);
                options.next += 1;
            }
            let value = field(entry, 3, "val");
            if let Value::Address(flag) = field(entry, 2, "flag") {
                self.write(&flag, value);
                return Value::int(0);
            }
            return binary(Op::Add, &value, &Value::int(0));
        }
        let rest = &current[1 + options.letter.min(current.len() - 1)..];
        let Some(letter) = rest.chars().next() else {
            return Value::Unknown;
        };
        let at = letters.find(letter).filter(|_| letter != ':');
        let takes = at.is_some_and(|at| letters[at + letter.len_utf8()..].starts_with(':'));
        let behind = &rest[letter.len_utf8()..];
        if takes {
            let value = if behind.is_empty() {
                options.next += 1;
                word(options.next)
            } else {
                Some(behind.into())
            };
            options.argument = value.map_or(Value::Unknown, Value::Text);
            options.next += 1;
            options.letter = 0;
        } else if behind.is_empty() {
            options.next += 1;
            options.letter = 0;
        } else {
            options.letter += letter.len_utf8();
        }
        Value::int(match at {
            Some(_) => i64::from(letter as u32),
            None => i64::from(b'?'),
        })
    }
}

impl Host<'_> {
    /// Behind the last option: the words that were passed over lie behind it, in their order, and `optind` is the first of them.
    fn options_end(&mut self, arguments: &[Argument], words: &[Value]) {
        let Some(running) = &mut self.running else {
            return;
        };
        let options = &mut running.options;
        let passed = std::mem::take(&mut options.passed);
        let Ok(end) = usize::try_from(options.next) else {
            return;
        };
        if passed.is_empty() || end > words.len() {
            return;
        }
        options.next -= passed.len() as i64;
        let (before, rest) = words.split_at(end);
        let taken = before.iter().enumerate();
        let taken = taken.filter(|(at, _)| !passed.contains(at));
        let order: Vec<Value> = taken
            .map(|(_, word)| word)
            .chain(passed.iter().filter_map(|at| before.get(*at)))
            .chain(rest)
            .cloned()
            .collect();
        if let Some(Value::Address(place)) = arguments.get(1).map(|vector| vector.value.clone()) {
            self.write(&place, Value::list(order));
        }
    }
}

/// Whether a text begins with a number in ten digits; `real`: one with a point, or without digits, as `inf` is.
fn begins_with_number(text: &str, real: bool) -> bool {
    let text = text.trim_start();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = match digits.strip_prefix('.') {
        Some(rest) if real => rest,
        _ => digits,
    };
    let word = digits.get(..3).unwrap_or("").to_ascii_lowercase();
    digits.starts_with(|c: char| c.is_ascii_digit()) || real && matches!(&*word, "inf" | "nan")
}

/// A number of C at the beginning of a text.
fn integer(text: &str, base: u32) -> Option<i64> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let (digits, base) = match (hexadecimal, base) {
        (Some(digits), 0 | 16) => (digits, 16),
        (None, 0) if digits.starts_with('0') => (digits, 8),
        (_, 0) => (digits, 10),
        (_, base) => (digits, base),
    };
    if !(2..=36).contains(&base) {
        return None;
    }
    let end = digits
        .find(|c: char| !c.is_digit(base))
        .unwrap_or(digits.len());
    let value = i64::from_str_radix(&digits[..end], base).ok()?;
    Some(if negative { -value } else { value })
}

/// The same for a floating-point number; 0 where there is none.
fn real(text: &str) -> f64 {
    let text = text.trim_start();
    let longest = text
        .char_indices()
        .take_while(|(_, c)| c.is_ascii_digit() || "+-.eE".contains(*c))
        .map(|(at, c)| at + c.len_utf8())
        .last()
        .unwrap_or(0);
    (1..=longest)
        .rev()
        .find_map(|end| text[..end].parse().ok())
        .unwrap_or(0.0)
}

fn compare(a: &str, b: &str, ignore_case: bool) -> i64 {
    let order = if ignore_case {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    } else {
        a.cmp(b)
    };
    order as i64
}
