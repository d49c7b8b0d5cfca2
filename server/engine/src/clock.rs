//! The clock that a target runs at: its profile's, the user's, or what a limit on its power leaves.

use warplens_hardware::{CUBE_ROOT, Profile};

use crate::settings::Settings;
use crate::wire;

/// The GPU at the clock that the settings ask for; `None` where they ask for none.
///
/// # Errors
/// A limit on the power of a GPU of which nobody said what it may draw.
pub(crate) fn clocked(profile: &Profile, settings: &Settings) -> Result<Option<Profile>, String> {
    if let Some(clock) = settings.clock {
        return Ok(Some(profile.at_clock(clock.get())));
    }
    let Some(limit) = settings.power_limit else {
        return Ok(None);
    };
    let Some(clock) = profile.clock_within(limit.get()) else {
        return Err(format!(
            "powerLimit is left aside: the profile of {} does not say what the board may draw (`board_power_w`); `clock` \
             sets its clock",
            profile.id
        ));
    };
    let mut limited = profile.at_clock(clock);
    limited.limited_to_w = Some(limit.get());
    Ok(Some(limited))
}

/// That the clock was derived from a limit on the power.
pub(crate) fn assumed(profile: &Profile) -> Option<wire::Assumption> {
    let limit = profile.limited_to_w?;
    let most = profile.board_power_w?;
    Some(wire::Assumption {
        symbol: "SM clock".to_owned(),
        value: format!("{:.0} MHz", profile.sm_clock_mhz),
        source: format!("a limit of {limit} of {most} W: {CUBE_ROOT}"),
    })
}
