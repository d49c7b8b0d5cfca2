//! Namespaces: where something is declared, and which of several declarations of that name is meant.

use std::sync::Arc;

use warplens_syntax::{Field, Kind, Node};

/// The namespaces around a declaration, `a::b`; empty at file scope. Inline ones and those without a name are looked
/// through.
pub type Space = Arc<str>;

/// A name where it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'a> {
    /// The name without its qualifiers.
    pub last: &'a str,
    /// Its qualifiers.
    path: &'a str,
    /// The namespaces in which it is written.
    around: &'a str,
}

/// Nearness of what a `using` or the end of the qualifiers leads to.
const LED_TO: usize = 1;

impl<'a> Name<'a> {
    /// A name with its qualifiers, written in these namespaces.
    pub fn new(written: &'a str, around: &'a str) -> Name<'a> {
        let written = written.trim();
        let (path, last) = written.rsplit_once("::").unwrap_or(("", written));
        let outermost = written.starts_with("::");
        Name {
            last: last.trim(),
            path: path.trim_start_matches("::").trim(),
            around: if outermost { "" } else { around },
        }
    }

    /// The same name with these qualifiers.
    pub fn within(self, path: &'a str) -> Name<'a> {
        Name { path, ..self }
    }

    /// Its qualifiers, `a::b`.
    pub fn path(self) -> &'a str {
        self.path
    }

    /// True where its qualifiers may be namespaces: an instance of a template is none.
    pub fn is_in_namespaces(self) -> bool {
        !self.path.contains('<')
    }

    /// How near a declaration in `space` is: 0 where it is in none of the namespaces that are looked in. They are
    /// looked in from the inside out ([basic.lookup.unqual], [namespace.qual]).
    pub fn nearness(self, space: &str) -> usize {
        let mut around = self.around;
        loop {
            if is_joined(space, around, self.path) {
                return LED_TO + 1 + around.len();
            }
            if around.is_empty() {
                break;
            }
            around = around.rsplit_once("::").map_or("", |(outer, _)| outer);
        }
        // `cuda::std` and the library of this compiler are one.
        let standard = is_standard(self.path) && is_standard(space);
        usize::from(standard || ends(space, self.path)) * LED_TO
    }

    /// The nearness that nothing exceeds.
    pub fn nearest(self) -> usize {
        LED_TO + 1 + self.around.len()
    }
}

/// Which of these namespaces holds what is named so in the namespaces `around`; nothing where that is not told.
pub fn nearest<'s>(written: &str, around: &str, spaces: &[&'s str]) -> Option<&'s str> {
    let name = Name::new(written, around);
    let ranked = spaces.iter().map(|space| (name.nearness(space), *space));
    let best = ranked.max_by_key(|(nearness, _)| *nearness)?;
    (best.0 > 0).then_some(best.1)
}

/// The namespaces around a node.
pub fn namespaces_around(node: Node, text: &str) -> Space {
    let mut around = Space::from("");
    let mut at = node;
    while let Some(parent) = at.parent() {
        if parent.kind() == Kind::NamespaceDefinition
            && let Some(name) = namespace_name(parent, text)
        {
            around = joined(&name, &around);
        }
        at = parent;
    }
    around
}

/// The name of a namespace that is not looked through.
pub(crate) fn namespace_name(namespace: Node, text: &str) -> Option<String> {
    let name = namespace.field(Field::Name)?;
    let inline = text[namespace.byte_range()].starts_with("inline");
    (!inline).then(|| text[name.byte_range()].split_whitespace().collect())
}

/// True where `space` is `around::path`.
fn is_joined(space: &str, around: &str, path: &str) -> bool {
    match (around, path) {
        ("", only) | (only, "") => space == only,
        _ => space
            .strip_prefix(around)
            .and_then(|rest| rest.strip_prefix("::"))
            .is_some_and(|rest| rest == path),
    }
}

/// True for a namespace of the standard library.
pub(crate) fn is_standard(space: &str) -> bool {
    space.split("::").any(|part| part == "std")
}

/// `inner` in the namespaces `outer`.
pub(crate) fn joined(outer: &str, inner: &str) -> Space {
    match (outer, inner) {
        ("", only) | (only, "") => only.into(),
        _ => format!("{outer}::{inner}").into(),
    }
}

/// A `using`, or another name of a namespace, and where it leads.
#[derive(Debug, Clone)]
pub(crate) struct Used {
    /// The namespaces in which it is written.
    pub around: Space,
    pub leads: Leads,
}

/// Where a `using` leads.
#[derive(Debug, Clone)]
pub(crate) enum Leads {
    /// `using namespace a::b;`
    Namespace(String),
    /// `using a::b::name;`
    Name { path: String, last: String },
    /// `namespace alias = a::b;`
    Alias { alias: String, path: String },
}

impl Used {
    /// True where it makes a declaration in `space` one that `name` may mean.
    pub fn leads(&self, name: Name, space: &str) -> bool {
        // What a namespace uses is found in it: `torch::x` where `torch` uses `at`.
        let is_asked = name.path.is_empty() || ends(&self.around, name.path);
        match &self.leads {
            Leads::Namespace(path) => is_asked && ends(space, path),
            Leads::Name { path, last } => is_asked && last == name.last && ends(space, path),
            Leads::Alias { alias, path } => match name.path.strip_prefix(alias.as_str()) {
                Some("") => ends(space, path),
                Some(rest) => rest
                    .strip_prefix("::")
                    .is_some_and(|rest| ends(space, &joined(path, rest))),
                None => false,
            },
        }
    }
}

/// True where these namespaces are `path`, or end with it.
fn ends(space: &str, path: &str) -> bool {
    !path.is_empty()
        && space
            .strip_suffix(path)
            .is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_from_the_inside_out() {
        let name = Name::new("x", "a::b");
        assert!(name.nearness("a::b") > name.nearness("a"));
        assert!(name.nearness("a") > name.nearness(""));
        assert!(name.nearness("") > LED_TO);
        assert_eq!(name.nearness("c"), 0);
        assert_eq!(name.nearness("a::bc"), 0);
        assert_eq!(name.nearness("a::b"), name.nearest());
    }

    #[test]
    fn qualifiers_are_relative_to_the_namespaces_around_or_to_file_scope() {
        let name = Name::new("c::x", "a::b");
        assert_eq!((name.path(), name.last), ("c", "x"));
        assert!(name.nearness("a::b::c") > name.nearness("a::c"));
        assert!(name.nearness("a::c") > name.nearness("c"));
        assert!(name.nearness("c") > LED_TO);
        assert_eq!(name.nearness("d::c"), LED_TO);
        assert_eq!(name.nearness("a"), 0);
        assert_eq!(Name::new("::x", "a").nearness("a"), 0);
        assert!(Name::new("::x", "a").nearness("") > LED_TO);
        assert!(Name::new("::c::x", "a").nearness("c") > LED_TO);
    }

    #[test]
    fn a_using_leads_to_a_namespace() {
        let used = |around: &str, leads: Leads| Used {
            around: around.into(),
            leads,
        };
        let all = used("", Leads::Namespace("b".to_owned()));
        assert!(all.leads(Name::new("x", ""), "a::b"));
        assert!(!all.leads(Name::new("c::x", ""), "a::b"));
        assert!(!all.leads(Name::new("x", ""), "a::bb"));
        let within = used("torch", Leads::Namespace("at".to_owned()));
        assert!(within.leads(Name::new("torch::x", ""), "at"));
        assert!(!within.leads(Name::new("other::x", ""), "at"));
        let leads = Leads::Name {
            path: "a".to_owned(),
            last: "x".to_owned(),
        };
        let one = used("c", leads);
        assert!(one.leads(Name::new("x", ""), "a"));
        assert!(one.leads(Name::new("c::x", ""), "a"));
        assert!(!one.leads(Name::new("y", ""), "a"));
        let leads = Leads::Alias {
            alias: "s".to_owned(),
            path: "a::b".to_owned(),
        };
        let short = used("", leads);
        assert!(short.leads(Name::new("s::x", ""), "a::b"));
        assert!(short.leads(Name::new("s::c::x", ""), "a::b::c"));
        assert!(!short.leads(Name::new("st::x", ""), "a::b"));
    }
}
