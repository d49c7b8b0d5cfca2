//! Tables, aligned for a terminal or as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::escape::{escape, escape_markdown};
use crate::style::{Paint, Style, printable, truncate};

/// Which side a column's text keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    text: String,
    paint: Paint,
    /// Source code, which Markdown and HTML set apart.
    code: bool,
}

impl Cell {
    /// A cell of a given meaning.
    pub fn new(text: impl Into<String>, paint: Paint) -> Cell {
        Cell {
            text: text.into(),
            paint,
            code: false,
        }
    }

    /// A piece of source.
    pub fn code(text: impl Into<String>) -> Cell {
        Cell {
            code: true,
            ..Cell::new(text, Paint::Plain)
        }
    }

    fn markdown(&self) -> String {
        let text = self.text.replace('\n', " ");
        if self.code && !text.is_empty() {
            // Between backquotes nothing else has a meaning.
            format!("`{}`", printable(&text).replace('`', "'")).replace('|', "\\|")
        } else {
            escape_markdown(&text).replace('|', "\\|")
        }
    }

    fn html(&self) -> String {
        let text = escape(&self.text);
        let text = if self.code {
            format!("<code>{text}</code>")
        } else {
            text
        };
        match self.paint.class() {
            "" => text,
            class => format!("<span class=\"{class}\">{text}</span>"),
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text, Paint::Plain)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    Cells(Vec<Cell>),
    /// A heading across all columns, above its rows.
    Heading(String),
}

/// Rows under titled columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Row>,
    /// The column that gives way where the terminal is too narrow.
    elastic: Option<usize>,
    /// The elastic column has names, which are cut in the middle.
    names: bool,
    /// Columns that are left out where that is not enough, in this order.
    leaving: Vec<usize>,
}

/// Columns between two columns.
const GAP: usize = 2;
/// The elastic column never gets narrower than this.
const LEAST: usize = 12;
/// Nor than this while there are columns that may be left out.
const READABLE: usize = 24;

impl Table {
    /// An empty table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Table {
        Table {
            columns: columns
                .iter()
                .map(|(title, align)| ((*title).to_owned(), *align))
                .collect(),
            rows: Vec::new(),
            elastic: None,
            names: false,
            leaving: Vec::new(),
        }
    }

    /// Lets one column be cut where the terminal is too narrow.
    #[must_use]
    pub fn elastic(mut self, column: usize) -> Table {
        self.elastic = Some(column);
        self
    }

    /// The same of a column of names: their middle is cut, so that they stay different; and of the other columns these are left out,
    /// in this order, where that is not enough.
    #[must_use]
    pub fn elastic_names(mut self, column: usize, leaving: &[usize]) -> Table {
        self.elastic = Some(column);
        self.names = true;
        self.leaving = leaving.to_vec();
        self
    }

    /// Adds a row; missing cells stay empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().take(self.columns.len()).collect();
        row.resize(self.columns.len(), Cell::from(""));
        self.rows.push(Row::Cells(row));
    }

    /// Adds a line across all columns, about the rows that follow.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Heading(text.into()));
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Text under its titles, each line indented by `indent` columns and ended.
    pub fn render(&self, style: Style, indent: usize) -> String {
        let widths = self.widths(style, indent);
        let head = self.head(&widths);
        let line = |out: &mut String, cells: &[Cell]| {
            self.line(out, cells, &widths, head, style, indent);
        };
        let mut out = String::new();
        let titles = self
            .columns
            .iter()
            .map(|(title, _)| Cell::new(title.clone(), Paint::Quiet));
        line(&mut out, &titles.collect::<Vec<_>>());
        for row in &self.rows {
            match row {
                Row::Cells(cells) => line(&mut out, cells),
                Row::Heading(text) => {
                    out.push_str(&" ".repeat(indent));
                    let room = style.width.map(|width| width.saturating_sub(indent));
                    let text = room.map_or_else(|| text.clone(), |room| truncate(text, room));
                    style.push(&mut out, Paint::Strong, &text);
                    out.push('\n');
                }
            }
        }
        out
    }

    /// Letters at the beginning of names that are cut: as many as at their end, unless other names stay apart then that do not so.
    fn head(&self, widths: &[Option<usize>]) -> usize {
        let (Some(column), true) = (self.elastic, self.names) else {
            return usize::MAX;
        };
        let width = widths.get(column).copied().flatten().unwrap_or_default();
        let names = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => cells.get(column).map(|cell| cell.text.as_str()),
            Row::Heading(_) => None,
        });
        let names: BTreeSet<&str> = names.collect();
        let apart = |head: usize| {
            let cut = names.iter().map(|name| without_middle(name, width, head));
            cut.collect::<BTreeSet<String>>().len()
        };
        let middle = width / 2;
        let heads = (0..=middle).flat_map(|away| [middle - away, middle + away]);
        let within = heads.filter(|head| *head < width.max(1));
        // The first of the best.
        let best = within.rev().max_by_key(|head| apart(*head));
        best.unwrap_or(middle)
    }

    fn line(
        &self,
        out: &mut String,
        row: &[Cell],
        widths: &[Option<usize>],
        head: usize,
        style: Style,
        indent: usize,
    ) {
        let mut line = " ".repeat(indent);
        let mut pending = 0;
        for (column, ((cell, width), (_, align))) in
            row.iter().zip(widths).zip(&self.columns).enumerate()
        {
            let Some(width) = *width else { continue };
            let text = if self.names && self.elastic == Some(column) {
                without_middle(&cell.text, width, head)
            } else {
                truncate(&cell.text, width)
            };
            let fill = width.saturating_sub(text.chars().count());
            let (before, after) = match align {
                Align::Left => (0, fill),
                Align::Right => (fill, 0),
            };
            if text.is_empty() {
                pending += before + after + GAP;
            } else {
                line.push_str(&" ".repeat(pending + before));
                style.push(&mut line, cell.paint, &text);
                pending = after + GAP;
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }

    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        in_markdown(self.markdown_cells())
    }

    /// The same with columns that are aligned where the text is shown as it is and marks of code are hidden, as Neovim does.
    pub fn aligned_markdown(&self) -> String {
        let shown = |cell: &str| cell.chars().filter(|c| *c != '`').count();
        let mut lines = self.markdown_cells();
        for (column, (_, align)) in self.columns.iter().enumerate() {
            let all = lines.iter().filter_map(|cells| cells.get(column));
            let width = all.map(|cell| shown(cell)).max().unwrap_or(0);
            for (at, cells) in lines.iter_mut().enumerate() {
                let Some(cell) = cells.get_mut(column) else {
                    continue;
                };
                let missing = width - shown(cell);
                // The second line is the rule.
                let filling = if at == 1 { "-" } else { " " }.repeat(missing);
                *cell = match align {
                    Align::Left => format!("{cell}{filling}"),
                    Align::Right => format!("{filling}{cell}"),
                };
            }
        }
        in_markdown(lines)
    }

    /// The lines of the table in Markdown: titles, the rule below them, rows.
    fn markdown_cells(&self) -> Vec<Vec<String>> {
        let escape = |text: &str| escape_markdown(&text.replace('\n', " ")).replace('|', "\\|");
        let titles = self.columns.iter().map(|(title, _)| escape(title));
        let rule = self.columns.iter().map(|(_, align)| match align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        });
        let rows = self.rows.iter().map(|row| match row {
            Row::Cells(cells) => cells.iter().map(Cell::markdown).collect(),
            Row::Heading(text) => vec![format!("**{}**", escape(text))],
        });
        [titles.collect(), rule.collect()]
            .into_iter()
            .chain(rows)
            .collect()
    }

    /// The table in HTML, all text escaped. Numbers are of class `n`, meanings are classes by their name.
    pub fn html(&self) -> String {
        let side = |align: Align| match align {
            Align::Left => "",
            Align::Right => " class=\"n\"",
        };
        let mut out = String::from("<div class=\"wide\"><table>\n<thead><tr>");
        for (title, align) in &self.columns {
            let _ = write!(out, "<th{}>{}</th>", side(*align), escape(title));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            match row {
                Row::Cells(cells) => {
                    for (cell, (_, align)) in cells.iter().zip(&self.columns) {
                        let _ = write!(out, "<td{}>{}</td>", side(*align), cell.html());
                    }
                }
                Row::Heading(text) => {
                    let span = self.columns.len();
                    let _ = write!(out, "<th colspan=\"{span}\">{}</th>", escape(text));
                }
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }

    /// The width of each column; `None` of one that is left out.
    fn widths(&self, style: Style, indent: usize) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> = self
            .columns
            .iter()
            .map(|(title, _)| Some(title.chars().count()))
            .collect();
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(Some(cell.text.chars().count()));
            }
        }
        let (Some(limit), Some(elastic)) = (style.width, self.elastic) else {
            return widths;
        };
        let excess = |widths: &[Option<usize>]| {
            let shown = widths.iter().flatten().count();
            let total = indent + widths.iter().flatten().sum::<usize>() + GAP * (shown - 1);
            total.saturating_sub(limit)
        };
        let natural = widths.get(elastic).copied().flatten().unwrap_or_default();
        for column in &self.leaving {
            if excess(&widths) <= natural.saturating_sub(READABLE.min(natural)) {
                break;
            }
            if let Some(width) = widths.get_mut(*column) {
                *width = None;
            }
        }
        let excess = excess(&widths);
        if let Some(width) = widths.get_mut(elastic) {
            *width = Some(natural.saturating_sub(excess).max(LEAST.min(natural)));
        }
        widths
    }
}

/// A name of at most that many letters: where it is longer, its first `head` and its last ones.
fn without_middle(name: &str, width: usize, head: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width {
        return name.to_owned();
    }
    let head = head.min(width.saturating_sub(1));
    let tail = width.saturating_sub(head + 1).min(letters.len());
    let (first, last) = (letters.iter().take(head), &letters[letters.len() - tail..]);
    first.chain(&['…']).chain(last).collect()
}

/// Lines of cells as a table of Markdown.
fn in_markdown(lines: Vec<Vec<String>>) -> String {
    let mut out = String::new();
    for cells in lines {
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_markdown_has_its_columns_one_below_the_other() {
        let mut table = Table::new(&[("access", Align::Left), ("requests", Align::Right)]);
        table.row([Cell::from("`in[i]`"), "32,768".into()]);
        table.row(["a".into(), "4".into()]);
        let shown = table.aligned_markdown().replace('`', "");
        let widths: Vec<usize> = shown.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{shown}");
        let plain = |text: &str| text.replace([' ', '-'], "");
        assert_eq!(plain(&table.aligned_markdown()), plain(&table.markdown()));
    }

    fn sample() -> Table {
        let mut table = Table::new(&[("name", Align::Left), ("sectors", Align::Right)]).elastic(0);
        table.row(["in[threadIdx.x * 32]".into(), "32".into()]);
        table.row(["out[i]".into(), Cell::new("4", Paint::Good)]);
        table
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            sample().render(Style::PLAIN, 2),
            "  name                  sectors\n  in[threadIdx.x * 32]       32\n  out[i]                      4\n"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_elastic_column_only() {
        let text = sample().render(
            Style {
                colour: false,
                width: Some(24),
            },
            0,
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 24),
            "{text}"
        );
        assert!(
            text.contains("in[threadIdx.x…") || text.contains("in[threadIdx.…"),
            "{text}"
        );
        assert!(text.contains("32"));
    }

    #[test]
    fn names_are_cut_where_they_stay_different_and_columns_leave() {
        let columns = [
            ("kernel", Align::Left),
            ("time", Align::Right),
            ("limit", Align::Left),
            ("MWP/CWP", Align::Right),
        ];
        let mut table = Table::new(&columns).elastic_names(0, &[3, 2]);
        table.heading("a/folder/with/a/long/name/kernels.cu on a100-sxm4-40gb");
        for name in [
            "reduce_rows_of_a_matrix_float4",
            "reduce_rows_of_a_matrix_float2",
            "reduce_cols_of_a_matrix_float4",
        ] {
            table.row([
                name.into(),
                "1.20 ms".into(),
                "registers".into(),
                "11.1/64".into(),
            ]);
        }
        let narrow = |width| {
            let width = Some(width);
            table.render(
                Style {
                    colour: false,
                    width,
                },
                0,
            )
        };
        for width in [24, 34, 44, 54, 80] {
            let text = narrow(width);
            let mut lines: Vec<&str> = text.lines().skip(2).collect();
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            assert!(lines.iter().all(|line| line.contains("1.20 ms")), "{text}");
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len(), 3, "{text}");
        }
        assert!(narrow(80).contains("MWP/CWP") && !narrow(44).contains("MWP/CWP"));
        assert!(narrow(44).contains("limit") || narrow(44).contains("float4"));
    }

    #[test]
    fn colour_does_not_move_columns() {
        let plain = sample().render(Style::PLAIN, 0);
        let coloured = sample().render(
            Style {
                colour: true,
                width: None,
            },
            0,
        );
        let mut bare = String::new();
        let mut chars = coloured.chars();
        while let Some(c) = chars.next() {
            if c == '\x1b' {
                chars.by_ref().find(|c| *c == 'm');
            } else {
                bare.push(c);
            }
        }
        assert_eq!(bare, plain);
    }

    #[test]
    fn a_heading_stands_across_and_moves_no_column() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.heading("a heading wider than every column");
        table.row(["x".into(), "1".into()]);
        assert_eq!(
            table.render(Style::PLAIN, 0),
            "name  n\na heading wider than every column\nx     1\n"
        );
    }

    #[test]
    fn markdown_escapes_bars() {
        let mut table = Table::new(&[("cause", Align::Left), ("share", Align::Right)]);
        table.row(["a | b".into(), "41 %".into()]);
        assert_eq!(
            table.markdown(),
            "| cause | share |\n| --- | ---: |\n| a \\| b | 41 % |\n"
        );
    }

    #[test]
    fn source_is_code_where_stars_would_mean_something() {
        let mut table = Table::new(&[("access", Align::Left)]);
        table.row([Cell::code("a[i*n | j*m]")]);
        assert!(table.markdown().contains("| `a[i*n \\| j*m]` |"));
        assert!(table.html().contains("<td><code>a[i*n | j*m]</code></td>"));
        assert!(table.render(Style::PLAIN, 0).contains("\na[i*n | j*m]\n"));
    }

    #[test]
    fn no_cell_becomes_markup() {
        let mut table = Table::new(&[("<title>", Align::Right)]);
        table.row([Cell::new("<script>'\"&</script>", Paint::Warning)]);
        table.heading("<b>");
        let html = table.html();
        assert!(
            html.contains("<th class=\"n\">&lt;title&gt;</th>"),
            "{html}"
        );
        let cell = "<td class=\"n\"><span class=\"warning\">&lt;script&gt;&#39;&quot;&amp;&lt;/script&gt;</span></td>";
        assert!(html.contains(cell), "{html}");
        assert!(html.contains("<th colspan=\"1\">&lt;b&gt;</th>"), "{html}");
    }
}
