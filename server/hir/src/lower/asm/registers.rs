//! Registers of a piece of assembly: what it declares, and the variables that they are.
//!
//! A declaration alone makes no variable: `r<4096>` declares as many registers as code could want, of which it names few.

use rustc_hash::FxHashMap;

use warplens_ir::{Type, VarId};

/// Digits of the number in a register's name, at most.
const MOST_DIGITS: usize = 9;

/// A declaration of `.reg`.
struct Declared {
    /// `n` in `r<n>`, which is `r0` and so on; 1 for one name.
    count: u64,
    ty: Type,
    order: usize,
}

/// Registers by name.
#[derive(Default)]
pub(super) struct Registers<'t> {
    declared: FxHashMap<Key<'t>, Declared>,
    /// By the name and its declaration: another scope may declare the name again. 0: by none that was seen.
    variables: FxHashMap<(&'t str, usize), VarId>,
    declarations: usize,
    /// For each scope that is open: what its declarations hide.
    hidden: Vec<Vec<(Key<'t>, Option<Declared>)>>,
}

/// The name, or what is in front of the number, and which of these it is.
type Key<'t> = (&'t str, bool);

impl<'t> Registers<'t> {
    /// `{`.
    pub(super) fn open(&mut self) {
        self.hidden.push(Vec::new());
    }

    /// `}`: names mean what they did before its scope.
    pub(super) fn close(&mut self) {
        // The last declaration of a name hides the one before it.
        for (key, before) in self.hidden.pop().unwrap_or_default().into_iter().rev() {
            match before {
                Some(before) => self.declared.insert(key, before),
                None => self.declared.remove(&key),
            };
        }
    }

    /// `r`, `%r`, `r<4>`.
    pub(super) fn declare(&mut self, name: &'t str, ty: Type) {
        let name = name.trim_start_matches('%');
        let numbered = name.split_once('<').and_then(|(prefix, count)| {
            let count = count.trim_end_matches('>').trim().parse().ok()?;
            Some((prefix.trim_end(), count))
        });
        self.declarations += 1;
        let (key, count) = match numbered {
            Some((prefix, count)) => ((prefix, true), count),
            None => ((name, false), 1),
        };
        let order = self.declarations;
        let before = self.declared.insert(key, Declared { count, ty, order });
        if let Some(scope) = self.hidden.last_mut() {
            scope.push((key, before));
        }
    }

    /// The declaration that a name belongs to: the last one of those in scope.
    fn declaration(&self, name: &'t str) -> Option<&Declared> {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let numbered = (1..=digits.min(MOST_DIGITS)).filter_map(|digits| {
            let (prefix, number) = name.split_at(name.len() - digits);
            if number.len() > 1 && number.starts_with('0') {
                return None;
            }
            let number: u64 = number.parse().ok()?;
            let declared = self.declared.get(&(prefix, true))?;
            (number < declared.count).then_some(declared)
        });
        let plain = self.declared.get(&(name, false));
        numbered.chain(plain).max_by_key(|declared| declared.order)
    }

    /// The type that a register was declared with.
    pub(super) fn declared(&self, name: &'t str) -> Option<&Type> {
        self.declaration(name).map(|declared| &declared.ty)
    }

    /// The variable that a register is, where it has one.
    pub(super) fn variable(&self, name: &'t str) -> Option<VarId> {
        let order = self.declaration(name).map_or(0, |declared| declared.order);
        self.variables.get(&(name, order)).copied()
    }

    pub(super) fn keep(&mut self, name: &'t str, variable: VarId) {
        let order = self.declaration(name).map_or(0, |declared| declared.order);
        self.variables.insert((name, order), variable);
    }
}
