//! A page of Markdown, as far as commands go.

/// What a page has of commands.
#[derive(Debug, Default)]
pub struct Page {
    pub blocks: Vec<Block>,
    /// Code within a line.
    pub spans: Vec<String>,
    /// Commands that no fence says the kind of.
    pub problems: Vec<String>,
}

/// A fenced block of commands.
#[derive(Debug)]
pub struct Block {
    text: String,
    console: bool,
    /// The status that its last command ends with.
    pub status: i32,
    pub not_run: bool,
}

impl Page {
    pub fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut lines = text.lines();
        // What the last comment before a block said, with nothing but empty lines between them.
        let mut said = String::new();
        while let Some(line) = lines.next() {
            if let Some(info) = line.trim_start().strip_prefix("```") {
                let indent = line.len() - line.trim_start().len();
                let within = lines
                    .by_ref()
                    .take_while(|line| !line.trim_start().starts_with("```"))
                    .map(|line| line.get(indent..).unwrap_or_default());
                let text: Vec<&str> = within.collect();
                if matches!(info, "sh" | "console") {
                    page.blocks.push(Block {
                        text: text.join("\n"),
                        console: info == "console",
                        status: said
                            .strip_prefix("exits ")
                            .map_or(0, |status| status.trim().parse().expect("a status")),
                        not_run: said.starts_with("not run: "),
                    });
                } else if matches!(info, "" | "bash" | "shell")
                    && text.iter().any(|line| command(line))
                {
                    page.problems
                        .push(format!("commands in a block that is not `sh`: {text:?}"));
                }
                said.clear();
            } else if let Some(comment) = line.trim().strip_prefix("<!-- ") {
                comment
                    .strip_suffix(" -->")
                    .unwrap_or_default()
                    .clone_into(&mut said);
            } else {
                if line.starts_with("    ") && command(line) {
                    page.problems
                        .push(format!("a command outside of an `sh` block: {line}"));
                }
                if !line.trim().is_empty() {
                    said.clear();
                }
                let spans = line.split('`').skip(1).step_by(2);
                page.spans.extend(spans.map(str::to_owned));
            }
        }
        page
    }
}

fn command(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("$ ");
    ["warplens ", "cargo ", "git "]
        .iter()
        .any(|name| line.starts_with(name))
}

impl Block {
    /// What is run, each with what it is said to print.
    pub fn steps(&self) -> Vec<(String, Option<String>)> {
        if !self.console {
            return vec![(self.text.clone(), None)];
        }
        let mut steps: Vec<(String, Option<String>)> = Vec::new();
        for line in self.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                steps.push((command.to_owned(), None));
            } else if let Some((_, shown)) = steps.last_mut() {
                let shown = shown.get_or_insert_default();
                shown.push_str(line);
                shown.push('\n');
            }
        }
        steps
    }

    /// Its lines that are commands, whole.
    pub fn commands(&self) -> Vec<String> {
        let whole = self.text.replace("\\\n", " ");
        let lines = whole
            .lines()
            .map(|line| line.trim_start().trim_start_matches("$ "));
        lines.map(str::to_owned).collect()
    }
}

/// True where a text is what is shown, whose lines `…` stand for any lines.
pub fn matches(shown: &str, text: &str) -> bool {
    fn lines(shown: &[&str], text: &[&str]) -> bool {
        match (shown.split_first(), text.split_first()) {
            (None, _) => text.is_empty(),
            (Some((&"…", rest)), _) => (0..=text.len()).any(|at| lines(rest, &text[at..])),
            (Some((line, rest)), Some((first, after))) => {
                line.trim_end() == first.trim_end() && lines(rest, after)
            }
            (Some(_), None) => false,
        }
    }
    let shown: Vec<&str> = shown.trim_end().lines().collect();
    let text: Vec<&str> = text.trim_end().lines().collect();
    lines(&shown, &text)
}

#[test]
fn blocks_are_read_with_what_is_said_of_them() {
    let page = Page::read(
        "`warplens gpus`\n\n<!-- exits 1 -->\n```sh\na\nb\n```\n\n<!-- not run: why -->\n\n```sh\nc \\\n  d\n```\n\n    warplens check\n\n\
         ```console\n$ e\nf\n$ g\n```\n",
    );
    assert_eq!(page.spans, ["warplens gpus"]);
    assert_eq!(page.problems.len(), 1);
    assert_eq!((page.blocks[0].status, page.blocks[0].not_run), (1, false));
    assert_eq!(page.blocks[0].steps(), [("a\nb".to_owned(), None)]);
    assert!(page.blocks[1].not_run);
    assert_eq!(page.blocks[1].commands(), ["c    d"]);
    let shown = Some("f\n".to_owned());
    assert_eq!(
        page.blocks[2].steps(),
        [("e".to_owned(), shown), ("g".to_owned(), None)]
    );
}

#[test]
fn what_is_left_out_may_be_anything() {
    assert!(matches("a\n…\nd\n", "a\nb\nc\nd\n"));
    assert!(matches("a\n…\n", "a\nb\n"));
    assert!(matches("…\nb\n", "a\nb\n"));
    assert!(!matches("a\n…\nd\n", "a\nb\n"));
    assert!(!matches("a\nb\n", "a\n"));
    assert!(!matches("a\n", "a\nb\n"));
}
