//! What measuring changed: a profile beside another, figure by figure.

use warplens_machine::Profile;

/// One figure that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The profile's key.
    pub key: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The other profile's value.
    pub from: Option<f64>,
    /// This one's.
    pub to: Option<f64>,
    /// Where this one's comes from.
    pub source: String,
}

impl Change {
    /// This one's value over the other's.
    pub fn ratio(&self) -> Option<f64> {
        let (from, to) = self.from.zip(self.to)?;
        (from != 0.0).then(|| to / from)
    }
}

/// The figures in which `measured` differs from `other`, in the order of the schema.
pub fn changes(measured: &Profile, other: &Profile) -> Vec<Change> {
    let keys = Profile::keys().iter();
    let all = keys.map(|spec| {
        let figure = measured.figures().get(spec.name);
        Change {
            key: spec.name,
            unit: spec.unit,
            from: other.figures().get(spec.name).map(|figure| figure.value),
            to: figure.map(|figure| figure.value),
            source: figure.map_or_else(String::new, |figure| figure.source.clone()),
        }
    });
    all.filter(|change| change.from != change.to).collect()
}
