//! cluster/size: a launch in clusters that cannot happen: too many blocks of a cluster, or a grid that leaves some over.

use crate::rule::{Look, Rule, State, When};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "cluster/size",
    title: "a cluster of blocks that the launch cannot have",
    severity: "warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Blocks of a cluster that every GPU with clusters has room for (CUDA C++ Programming Guide, "Thread Block Clusters").
const PORTABLE: u64 = 8;
/// Blocks of a cluster that a program may ask for (`cudaFuncAttributeNonPortableClusterSizeAllowed`).
const MOST: u64 = 16;
/// The first architecture with clusters.
const SINCE: (u32, u32) = (9, 0);

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let Some(cluster) = ctx.cluster else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut told = |place: Place, message: String| {
        findings.push(Finding {
            rule: RULE.id,
            severity: Severity::Warning,
            place,
            message,
            gain: 1.0,
            related: Vec::new(),
            access: None,
            shared_array: None,
            cure: None,
        });
    };
    let blocks: u64 = cluster.iter().product();
    let written = cluster.map(|extent| extent.to_string()).join(" x ");
    if ctx
        .profile
        .compute_capability
        .is_some_and(|own| own < SINCE)
    {
        told(
            Place::Kernel,
            format!(
                "clusters need sm_90: the target is {}\na cluster of {written} blocks; {} is {}, which has no clusters",
                ctx.profile.architecture, ctx.profile.name, ctx.profile.architecture
            ),
        );
        return findings;
    }
    if blocks > MOST {
        told(
            Place::Launch,
            format!(
                "make the cluster smaller, else the launch fails ({blocks} blocks, at most {MOST})\n\
                 a cluster of {written} blocks: a program may ask for {PORTABLE}, and for {MOST} where the GPU has room"
            ),
        );
        return findings;
    }
    if blocks > PORTABLE && ctx.allows_large_clusters == Some(false) {
        told(
            Place::Launch,
            format!(
                "allow clusters of {blocks} blocks before this launch, else it fails (at most {PORTABLE})\n\
                 a cluster of {written} blocks: more than {PORTABLE} need \
                 `cudaFuncAttributeNonPortableClusterSizeAllowed`, which the program that launches does not set"
            ),
        );
    }
    let launch = &ctx.facts.launch;
    if launch.grid_source.is_assumption() {
        return findings;
    }
    let axes = ["x", "y", "z"]
        .into_iter()
        .zip(launch.grid.into_iter().zip(cluster));
    for (axis, (grid, cluster)) in axes {
        if !grid.is_multiple_of(cluster) {
            let next = grid.next_multiple_of(cluster);
            told(
                Place::Launch,
                format!(
                    "launch {next} blocks along {axis}, else the launch fails ({grid} is no multiple of {cluster})\n\
                     the grid has {grid} blocks along {axis} and a cluster {cluster}: a grid is whole clusters"
                ),
            );
        }
    }
    findings
}
