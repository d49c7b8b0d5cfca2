//! Text into words, as shells and compilers cut it.

/// Cuts a command into words, as a POSIX shell does: quotes, backslashes, no expansions, no operators. The
/// text may stop in the middle of a quotation.
///
/// A command whose program is given with a drive letter and backslashes is cut by the rules of Windows:
/// there a backslash is an ordinary character unless a double quote follows.
///
/// ```
/// let words = warplens_base::split_command(r#"nvcc -D "NAME=\"a b\"" 'x y.cu'"#);
/// assert_eq!(words, ["nvcc", "-D", r#"NAME="a b""#, "x y.cu"]);
/// ```
pub fn split_command(command: &str) -> Vec<String> {
    let program = command.trim_start().trim_start_matches('"').as_bytes();
    match program {
        [drive, b':', b'\\', ..] if drive.is_ascii_alphabetic() => split_windows(command),
        _ => split_posix(command),
    }
}

pub(super) fn split_posix(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    // None between words; an empty pair of quotes is a word.
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|&c| c != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => match chars.next() {
                            Some('\n') => {}
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => word.push('\\'),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') => {}
                Some('\r') if chars.peek() == Some(&'\n') => {
                    chars.next();
                }
                Some(c) => word.get_or_insert_default().push(c),
                None => word.get_or_insert_default().push('\\'),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

pub(super) fn split_windows(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_ascii_whitespace() && !quoted => words.extend(word.take()),
            '"' => {
                let word = word.get_or_insert_default();
                if quoted && chars.peek() == Some(&'"') {
                    chars.next();
                    word.push('"');
                } else {
                    quoted = !quoted;
                }
            }
            '\\' => {
                let mut count = 1;
                while chars.next_if_eq(&'\\').is_some() {
                    count += 1;
                }
                let word = word.get_or_insert_default();
                if chars.peek() == Some(&'"') {
                    word.extend(std::iter::repeat_n('\\', count / 2));
                    if count % 2 == 1 {
                        chars.next();
                        word.push('"');
                    }
                } else {
                    word.extend(std::iter::repeat_n('\\', count));
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Cuts nvcc's lists at their commas. Quotes protect a comma and stay; `\,` is a comma.
pub(super) fn split_list(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == ',' && quote.is_none() {
            pieces.push(String::new());
            continue;
        }
        if let Some(piece) = pieces.last_mut() {
            if c == '\\' && chars.next_if_eq(&',').is_some() {
                piece.push(',');
                continue;
            }
            piece.push(c);
            if c == '\\' {
                // An escaped quote neither opens nor closes.
                piece.extend(chars.next());
                continue;
            }
        }
        if matches!(c, '"' | '\'') {
            quote = match quote {
                None => Some(c),
                Some(open) if open == c => None,
                other => other,
            };
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posix_words() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  a  b\tc\r\nd ", &["a", "b", "c", "d"]),
            ("a''b '' \"\"", &["ab", "", ""]),
            ("-DX='a b'", &["-DX=a b"]),
            (r#"-DX="a \"b\" \c \\ \$""#, &[r#"-DX=a "b" \c \ $"#]),
            (r"a\ b \'c\'", &["a b", "'c'"]),
            (r#"-DV=\\\"1\\\""#, &[r#"-DV=\"1\""#]),
            ("one\\\ntwo", &["onetwo"]),
            ("one \\\r\n two", &["one", "two"]),
            ("'open", &["open"]),
            ("\"open\\", &["open\\"]),
            ("end\\", &["end\\"]),
        ];
        for (text, words) in table {
            assert_eq!(split_posix(text), *words, "{text:?}");
        }
    }

    #[test]
    fn windows_words() {
        let table: &[(&str, &[&str])] = &[
            (r"C:\a\nvcc.exe -c x.cu", &[r"C:\a\nvcc.exe", "-c", "x.cu"]),
            (
                r#""C:\Program Files\nvcc.exe" "-DX=a b""#,
                &[r"C:\Program Files\nvcc.exe", "-DX=a b"],
            ),
            (r#"C:\n -DV=\"1\""#, &[r"C:\n", r#"-DV="1""#]),
            (r#"C:\n "d\\" e"#, &[r"C:\n", r"d\", "e"]),
            (r#"C:\n "a""b""#, &[r"C:\n", r#"a"b"#]),
            (r"C:\n 'a b'", &[r"C:\n", "'a", "b'"]),
        ];
        for (text, words) in table {
            assert_eq!(split_command(text), *words, "{text:?}");
        }
    }

    #[test]
    fn lists() {
        let table: &[(&str, &[&str])] = &[
            ("", &[""]),
            ("a,b", &["a", "b"]),
            (r#"S="a,b",c"#, &[r#"S="a,b""#, "c"]),
            (r"X=1\,2,Y", &["X=1,2", "Y"]),
            (r#"S=\"a,b"#, &[r#"S=\"a"#, "b"]),
            (r"a\", &[r"a\"]),
        ];
        for (text, pieces) in table {
            assert_eq!(split_list(text), *pieces, "{text:?}");
        }
    }
}
