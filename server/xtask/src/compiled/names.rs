//! Symbols of kernels, as far as names and plain template arguments stand in them.

/// A kernel's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub plain: String,
    /// Template arguments; none where one of them is neither a number nor a type of the language.
    pub arguments: Option<Vec<String>>,
}

impl Name {
    /// The name in a symbol as the Itanium ABI mangles it. A name without mangling is itself.
    pub fn of(symbol: &str) -> Name {
        let plain = Name {
            plain: symbol.to_owned(),
            arguments: Some(Vec::new()),
        };
        let Some(mut rest) = symbol.strip_prefix("_Z") else {
            return plain;
        };
        let nested = rest.starts_with('N');
        if nested {
            rest = &rest[1..];
        }
        let mut found = plain;
        loop {
            // A function of this file only.
            rest = rest.strip_prefix('L').unwrap_or(rest);
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let Ok(length) = rest[..digits].parse::<usize>() else {
                return found;
            };
            let Some(name) = rest.get(digits..digits + length) else {
                return found;
            };
            rest = &rest[digits + length..];
            let mut arguments = Some(Vec::new());
            if let Some(inside) = rest.strip_prefix('I') {
                match read_arguments(inside) {
                    Some((read, behind)) => {
                        arguments = Some(read);
                        rest = behind;
                    }
                    None => arguments = None,
                }
            }
            let open = arguments.is_none();
            found = Name {
                plain: name.to_owned(),
                arguments,
            };
            // What follows arguments that were not read cannot be told from them.
            if !nested || open {
                return found;
            }
        }
    }

    /// As it is shown.
    pub fn shown(&self) -> String {
        match &self.arguments {
            None => format!("{}<…>", self.plain),
            Some(all) if all.is_empty() => self.plain.clone(),
            Some(all) => format!("{}<{}>", self.plain, all.join(", ")),
        }
    }
}

/// Arguments up to their `E`, and what follows.
fn read_arguments(mut text: &str) -> Option<(Vec<String>, &str)> {
    let mut found = Vec::new();
    loop {
        if let Some(behind) = text.strip_prefix('E') {
            return Some((found, behind));
        }
        if let Some(literal) = text.strip_prefix('L') {
            let ty = literal.chars().next()?;
            type_name(ty)?;
            let (value, behind) = literal[1..].split_once('E')?;
            let value = value.replace('n', "-");
            value.parse::<i64>().ok()?;
            found.push(match (ty, value.as_str()) {
                ('b', "0") => "false".to_owned(),
                ('b', _) => "true".to_owned(),
                _ => value,
            });
            text = behind;
            continue;
        }
        let ty = text.chars().next()?;
        found.push(type_name(ty)?.to_owned());
        text = &text[ty.len_utf8()..];
    }
}

fn type_name(letter: char) -> Option<&'static str> {
    Some(match letter {
        'b' => "bool",
        'c' => "char",
        'a' => "signed char",
        'h' => "unsigned char",
        's' => "short",
        't' => "unsigned short",
        'i' => "int",
        'j' => "unsigned int",
        'l' => "long",
        'm' => "unsigned long",
        'x' => "long long",
        'y' => "unsigned long long",
        'f' => "float",
        'd' => "double",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_plain_arguments_are_read_from_symbols() {
        let shown = |symbol: &str| Name::of(symbol).shown();
        assert_eq!(shown("_Z15transpose_naivePKfPfi"), "transpose_naive");
        assert_eq!(shown("scan"), "scan");
        assert_eq!(shown("_ZN2ns4scanIfLi32EEEvPT_"), "scan<float, 32>");
        assert_eq!(shown("_ZN12_GLOBAL__N_14scanEPf"), "scan");
        assert_eq!(shown("_ZL4scanPf"), "scan");
        assert_eq!(shown("_Z4scanILb1ELin2EEvv"), "scan<true, -2>");
        assert_eq!(shown("_Z4scanI6float4EvPT_"), "scan<…>");
        // Cut off: as far as it goes.
        assert_eq!(shown("_Z99scan"), "_Z99scan");
    }
}
