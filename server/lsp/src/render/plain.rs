//! Our Markdown as plain text, for clients that show it as it comes.

/// Columns between two columns of a table.
const GAP: usize = 2;

/// Headings, paragraphs and lists without their marks, tables in columns. Source keeps its own asterisks and bars.
pub fn text(markdown: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in markdown.lines() {
        let row = line
            .strip_prefix('|')
            .and_then(|rest| rest.trim_end().strip_suffix('|'));
        if let Some(row) = row {
            // The rule below a table's head.
            if !row.chars().all(|c| matches!(c, '-' | ':' | '|' | ' ')) || row.trim().is_empty() {
                rows.push(
                    cells(row)
                        .iter()
                        .map(|cell| unmarked(cell.trim()))
                        .collect(),
                );
            }
            continue;
        }
        out.append(&mut columns(&std::mem::take(&mut rows)));
        let rule = line.trim() == "---";
        let heading = line.trim_start_matches('#');
        let line = if heading.starts_with(' ') {
            heading.trim_start()
        } else {
            line
        };
        out.push(if rule { String::new() } else { unmarked(line) });
    }
    out.append(&mut columns(&rows));
    // What was a rule between blank lines is one blank line.
    out.dedup_by(|after, before| after.is_empty() && before.is_empty());
    out.join("\n").trim().to_owned()
}

/// The cells of a row: a bar behind a backslash is text.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in row.chars() {
        let cell = cells.last_mut();
        match (c, cell) {
            ('\\', _) if !escaped => {
                escaped = true;
                continue;
            }
            ('|', _) if !escaped => cells.push(String::new()),
            (c, Some(cell)) => {
                if escaped && c != '|' {
                    cell.push('\\');
                }
                cell.push(c);
            }
            (_, None) => {}
        }
        escaped = false;
    }
    cells
}

/// Removes the marks of code and strong text; text inside code stays unchanged.
fn unmarked(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let pieces = pieces.map(|(index, piece)| {
        if index % 2 == 0 {
            piece.replace("**", "")
        } else {
            piece.to_owned()
        }
    });
    pieces.collect()
}

/// The rows of a table, cell below cell.
fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(column) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:<width$}{:GAP$}", ""));
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_and_tables_stand_in_columns() {
        let markdown = "## `copy` on A100\n\n**76 %** of `copy`\n\n\
                        | access | cost |\n| --- | ---: |\n| load `in[i]` | 4 |\n| store `**out` | 32 of 4 sectors |\n\n\
                        ---\n\n- `a \\| b`: exact\n- `a**b`: **bold**\n";
        assert_eq!(
            text(markdown),
            "copy on A100\n\n76 % of copy\n\n\
             access       cost\n\
             load in[i]   4\n\
             store **out  32 of 4 sectors\n\n\
             - a \\| b: exact\n- a**b: bold"
        );
    }

    #[test]
    fn a_bar_in_a_cell_is_text() {
        assert_eq!(
            text("| if | lanes |\n| --- | --- |\n| `a \\|\\| b` | uniform |\n"),
            "if      lanes\na || b  uniform"
        );
        assert_eq!(text("| `x \\\\ y` | 2 |"), "x \\\\ y  2");
    }

    #[test]
    fn any_text_is_taken() {
        for odd in [
            "",
            "|",
            "||",
            "| |",
            "---",
            "`",
            "**",
            "#",
            "\\|",
            "|\\|",
            "é🚀 | `|`",
        ] {
            let once = text(odd);
            assert!(
                once.len() <= odd.len() + GAP * odd.len(),
                "{odd:?}: {once:?}"
            );
        }
    }
}
