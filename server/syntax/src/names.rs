//! Words of C text where no tree is needed: in a declaration's head, in an expression as it is written.

/// True for what a word is made of, inside or at its end.
pub fn is_word_part(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The words and numbers of a text in order.
pub fn words_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character| !is_word_part(character))
        .filter(|word| !word.is_empty())
}

/// True where `word` is in `text` as a whole word; it may hold more than one, as `std::pair` does.
pub fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_word_part) && !text[at + word.len()..].starts_with(is_word_part)
    })
}

/// True for one identifier and nothing else.
pub fn is_identifier(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(is_word_part)
}

/// True for any spelling of `restrict` in a text: `__restrict__`, `__restrict`.
pub fn is_restrict(text: &str) -> bool {
    words_in(text).any(|word| word.trim_matches('_') == "restrict")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        let text = "const float *__restrict__ a, int b_2";
        let words = ["const", "float", "__restrict__", "a", "int", "b_2"];
        assert!(words_in(text).eq(words));
        assert!(has_word(text, "b_2") && !has_word(text, "b") && !has_word(text, "restrict"));
        assert!(has_word("std::pair<int, 2>", "std::pair") && !has_word("xstd::pair", "std::pair"));
        assert!(is_restrict(text) && !is_restrict("float *restricted"));
        assert!(is_identifier("_a1") && !is_identifier("1a") && !is_identifier("a.b"));
        assert!(!is_identifier(""));
    }
}
