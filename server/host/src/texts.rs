//! Texts that a host program puts together: `sprintf`, `strcat`, `std::string`, string streams.
//!
//! What is not known of a text is a gap in it: what is around the gap still counts.

use std::rc::Rc;
use warplens_syntax::{Field, Kind};

use super::arguments::Argument;
use super::nodes::text;
use super::state::Host;
use super::value::{GAP, Place, Value, joined, spelled};
use warplens_hir::Source;

/// Letters of a text that is made of one letter.
const LONGEST: usize = 4_096;

impl Host<'_> {
    /// A function of the C library that reads or writes a text, or makes one of a number.
    pub(super) fn text_call(
        &mut self,
        name: &str,
        arguments: &[Argument],
        source: Source,
    ) -> Option<Value> {
        let (written, appends) = match name {
            "to_string" => {
                let [number] = arguments else { return None };
                return Some(Value::Text(spelled(&number.value, true).into()));
            }
            "strlen" => {
                let text = self.whole_text_in(&arguments.first()?.value);
                return Some(text.map_or(Value::Unknown, |text| {
                    Value::Int(text.len() as i64, 64, false)
                }));
            }
            // These read only.
            "strcmp" | "strncmp" | "strstr" | "strchr" | "strtok" | "puts" | "fputs" | "atoi" => {
                return Some(Value::Unknown);
            }
            "sprintf" | "asprintf" => (self.formatted(arguments.get(1..)?), false),
            "snprintf" | "sprintf_s" | "_snprintf" => (self.formatted(arguments.get(2..)?), false),
            "strcpy" | "strncpy" | "strcat" | "strncat" => {
                let from = self.text_in(&arguments.get(1)?.value);
                (
                    from.unwrap_or_else(|| GAP.to_string().into()),
                    name.ends_with("cat"),
                )
            }
            _ => return None,
        };
        let target = arguments.first()?;
        let (place, behind) = self.written(target, source)?;
        let value = if appends || behind {
            let before = self.read(&place);
            let before = before.text().unwrap_or_else(|| GAP.to_string().into());
            joined(&before, &written)
        } else {
            Value::Text(written)
        };
        self.write(&place, value);
        Some(Value::Unknown)
    }

    /// `std::string()`, `(text)`, `(text, from, length)` of a string, `(characters, length)`, `(count, 'c')`.
    pub(super) fn made_text(&self, values: &[Value]) -> Option<Value> {
        let number = |at: usize| usize::try_from(values.get(at)?.as_int()?).ok();
        let Some((first, others)) = values.split_first() else {
            return Some(Value::Text("".into()));
        };
        if others.is_empty() {
            return self.text_in(first).map(Value::Text);
        }
        if let (Value::Int(count, ..), [Value::Int(code, ..)]) = (first, others) {
            let count = usize::try_from(*count)
                .ok()
                .filter(|count| *count < LONGEST)?;
            let letter = char::from(u8::try_from(*code).ok()?);
            return Some(Value::Text(letter.to_string().repeat(count).into()));
        }
        let text = self.whole_text_in(first)?;
        // A string's own part, or the first characters behind a pointer.
        let (from, length) = match others {
            [_] if matches!(first, Value::Address(_)) => (number(1)?, text.len()),
            [_] => (0, number(1)?),
            _ => (number(1)?, number(2)?),
        };
        let rest = text.get(from..)?;
        let part = rest.get(..length.min(rest.len()))?;
        Some(Value::Text(part.into()))
    }

    /// The text that a value is or points to.
    pub(super) fn text_in(&self, value: &Value) -> Option<Rc<str>> {
        match value {
            Value::Address(place) => self.read(place).text(),
            value => value.text(),
        }
    }

    /// The same where all of it is known.
    pub(super) fn whole_text_in(&self, value: &Value) -> Option<Rc<str>> {
        self.text_in(value).filter(|text| !text.contains(GAP))
    }

    /// Where a function writes to, and whether behind what is there: `buffer + strlen(buffer)`.
    fn written(&mut self, target: &Argument, source: Source) -> Option<(Place, bool)> {
        if let Value::Address(place) = &target.value {
            return Some((place.clone(), false));
        }
        if let Some(place) = &target.place {
            return Some((place.clone(), false));
        }
        let node = target
            .node
            .filter(|node| node.kind() == Kind::BinaryExpression)?;
        let left = node.field(Field::Left)?;
        let right = node.field(Field::Right)?;
        let place = self.place(left, source)?;
        let place = match self.read(&place) {
            Value::Address(pointed) => pointed,
            _ => place,
        };
        // Somewhere in the middle: what is there afterwards is not known.
        if !text(right, source).contains("strlen") {
            self.forget_at(&place);
        }
        Some((place, true))
    }

    /// What `printf` makes of a format and its arguments.
    fn formatted(&self, arguments: &[Argument]) -> Rc<str> {
        let gap = || GAP.to_string().into();
        let Some((format, mut rest)) = arguments.split_first() else {
            return gap();
        };
        let Some(format) = self.text_in(&format.value) else {
            return gap();
        };
        let mut out = String::new();
        let mut parts = format.split('%');
        out.push_str(parts.next().unwrap_or_default());
        while let Some(part) = parts.next() {
            if part.is_empty() {
                // `%%`, and what follows it.
                out.push('%');
                out.push_str(parts.next().unwrap_or_default());
                continue;
            }
            let end = part.find(|c: char| c.is_ascii_alphabetic() && !"hlLqjzt".contains(c));
            let Some(end) = end else {
                out.push(GAP);
                continue;
            };
            let plain = part[..end].chars().all(|c| c.is_ascii_alphabetic());
            let value = match rest.split_first() {
                Some((first, others)) => {
                    rest = others;
                    &first.value
                }
                None => &Value::Unknown,
            };
            match (&part[end..=end], value) {
                ("s", value) if plain => {
                    let text = self.text_in(value);
                    out.push_str(&text.unwrap_or_else(gap));
                }
                ("d" | "i" | "u", Value::Int(value, ..)) if plain => {
                    out.push_str(&value.to_string());
                }
                ("f", Value::Float(value, _)) if plain => {
                    out.push_str(&spelled(&Value::Float(*value, 64), true));
                }
                _ => out.push(GAP),
            }
            out.push_str(&part[end + 1..]);
        }
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::{GAP, common};
    use crate::value::Value;

    #[test]
    fn what_two_texts_share_ends_with_a_word() {
        let text = |value: Value| value.text().map(|text| text.replace(GAP, "?"));
        let shared = |a: &str, b: &str| text(common(a, b)).unwrap_or_default();
        assert_eq!(shared("-D A=1 -D B=2", "-D A=1 -D B=3"), "-D A=1 -D  ?");
        assert_eq!(shared("-D A=1", "-D A=1 -D B"), "-D A=1 ?");
        assert_eq!(shared("-D A=1", "-D A=10"), "-D  ?");
        assert_eq!(shared("one", "two"), " ?");
    }
}
