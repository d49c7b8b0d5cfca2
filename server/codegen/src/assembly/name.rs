//! Names as linkers know them, as far as kernels are told apart by them.

/// A kernel's name in the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Name {
    /// Without namespaces and arguments.
    pub plain: String,
    /// Template arguments that are numbers or fundamental types; others are empty.
    pub template_arguments: Vec<String>,
}

impl Name {
    /// Reads a name of the Itanium ABI; one that is not mangled is the name itself.
    pub fn of_mangled(mangled: &str) -> Name {
        let whole = || Name {
            plain: mangled.to_owned(),
            ..Name::default()
        };
        let Some(rest) = mangled.strip_prefix("_Z") else {
            return whole();
        };
        let nested = rest.starts_with('N');
        let mut rest = rest.strip_prefix('N').unwrap_or(rest);
        let mut plain = None;
        // Behind a name that is in no other come the parameters, classes among them.
        while nested || plain.is_none() {
            rest = rest.trim_start_matches(['r', 'V', 'K', 'L']);
            if let Some(after) = rest.strip_prefix("St") {
                rest = after;
                continue;
            }
            let Some((name, after)) = source_name(rest) else {
                break;
            };
            plain = Some(name);
            rest = after;
        }
        let Some(plain) = plain else {
            return whole();
        };
        Name {
            plain: plain.to_owned(),
            template_arguments: rest.strip_prefix('I').map_or_else(Vec::new, arguments),
        }
    }
}

/// `3foo…`: the length, the name and what is behind.
fn source_name(text: &str) -> Option<(&str, &str)> {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let length: usize = text.strip_suffix(behind)?.parse().ok()?;
    behind.split_at_checked(length)
}

/// Template arguments up to the first one of another kind, which hides where the next begins.
fn arguments(mut rest: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Bounded: names are not trusted.
    while found.len() < 64 {
        let mut after = rest.chars();
        match after.next() {
            None | Some('E') => break,
            // A literal: its type, its digits. Those of enumerations begin with a name.
            Some('L') => {
                let kind = after.next();
                let Some((digits, behind)) = after.as_str().split_once('E') else {
                    break;
                };
                if kind.and_then(fundamental).is_none() {
                    break;
                }
                found.push(match (kind, digits.strip_prefix('n')) {
                    (Some('b'), _) => (digits != "0").to_string(),
                    (_, Some(digits)) => format!("-{digits}"),
                    (_, None) => digits.to_owned(),
                });
                rest = behind;
            }
            Some(letter) => match fundamental(letter) {
                Some(name) => {
                    found.push(name.to_owned());
                    rest = after.as_str();
                }
                // A class: its name, where it has no arguments itself.
                None => match source_name(rest) {
                    Some((name, behind)) if !behind.starts_with('I') => {
                        found.push(name.to_owned());
                        rest = behind;
                    }
                    _ => break,
                },
            },
        }
    }
    found
}

fn fundamental(letter: char) -> Option<&'static str> {
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
