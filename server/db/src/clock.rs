//! The clock that a target runs at: its profile's, the user's, or what a limit on its power leaves.

use warplens_machine::{CUBE_ROOT, Profile};

use crate::settings::Settings;
use crate::wire;

/// The GPU at the clock that the settings ask for, `None` where they ask for none; and what could not be followed.
pub(crate) fn clocked(profile: &Profile, settings: &Settings) -> (Option<Profile>, Option<String>) {
    if let Some(clock) = settings.clock {
        return (Some(profile.at_clock(clock.get())), None);
    }
    let Some(limit) = settings.power_limit else {
        return (None, None);
    };
    let clock = profile.clock_within(limit.get());
    let problem = clock.is_none().then(|| {
        format!(
            "powerLimit is left aside: the profile of {} does not say what the board may draw (`board_power_w`); `clock` \
             sets its clock",
            profile.id
        )
    });
    let mut limited = profile.at_clock(clock.unwrap_or(profile.sm_clock_mhz));
    limited.limited_to_w = Some(limit.get());
    (Some(limited), problem)
}

/// That the clock was derived from a limit on the power, or could not be.
pub(crate) fn assumed(profile: &Profile) -> Option<wire::Assumption> {
    let limit = profile.limited_to_w?;
    let source = match profile.board_power_w {
        Some(most) => format!("a limit of {limit} of {most} W: {CUBE_ROOT}"),
        None => format!("the profile, which does not say what {limit} W are of"),
    };
    Some(wire::Assumption {
        symbol: "SM clock".to_owned(),
        value: format!("{:.0} MHz", profile.sm_clock_mhz),
        source,
    })
}
