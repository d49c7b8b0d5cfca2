//! The embedded profiles, and what a user is told about a broken one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use warplens_machine::{GlobalRule, Profile, ProfileError, Profiles, RegisterScope};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hw-profiles")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .expect("it has a name")
        .to_string_lossy()
        .into_owned()
}

#[test]
fn every_file_is_embedded_reads_and_is_named_after_its_id() {
    let profiles = Profiles::builtin();
    let on_disk: Vec<String> = files(&folder()).iter().map(|path| stem(path)).collect();
    assert_eq!(profiles.ids().collect::<Vec<_>>(), on_disk);
    for path in files(&folder()) {
        let text = std::fs::read_to_string(&path).expect("readable");
        let profile =
            Profiles::from_toml(&path.to_string_lossy(), &text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(profile.id, stem(&path));
        assert_eq!(*profiles.get(&profile.id).expect("embedded"), profile);
    }
    assert_eq!(profiles.iter().count(), on_disk.len());
}

#[test]
fn every_architecture_file_is_named_after_its_architecture_and_used() {
    let used: BTreeSet<String> = Profiles::builtin()
        .iter()
        .map(|p| p.architecture.clone())
        .collect();
    for path in files(&folder().join("architectures")) {
        let text = std::fs::read_to_string(&path).expect("readable");
        assert!(
            text.contains(&format!("architecture = \"{}\"", stem(&path))),
            "{}",
            path.display()
        );
        assert!(
            used.contains(&stem(&path)),
            "{} is used by no GPU",
            path.display()
        );
    }
}

/// The public list of ids.
#[test]
fn every_gpu_that_users_are_promised_is_there() {
    let profiles = Profiles::builtin();
    let promised = "geforce-8800-gtx geforce-8800-gt quadro-fx-5600 gtx-280 tesla-c2070 tesla-k40c gtx-titan-x quadro-k600 \
                    gtx-645 quadro-k620 geforce-940m r9-fury gtx-1070 gtx-1080-ti tesla-p100 v100-pcie-16gb \
                    v100-sxm2-16gb titan-v t4 rtx-2080-ti titan-rtx rtx-3060-laptop rtx-3090 rtx-a4000 rtx-a6000 a40 \
                    a100-pcie-40gb a100-sxm4-40gb a100-sxm4-80gb l4 l40 l40s rtx-4090 h100-pcie h100-sxm5 h200-sxm b200 \
                    rtx-5090 jetson-orin mi50 mi100 mi210 mi250x mi300x radeon-pro-w6600 radeon-pro-w7800 rx-6900-xt \
                    rx-7900-xtx vega-fe arc-a770";
    assert_eq!(promised.split_whitespace().count(), 50);
    for id in promised.split_whitespace() {
        assert!(profiles.get(id).is_some(), "{id}");
    }
    assert!(profiles.get("no-such-gpu").is_none());
}

/// What the figures make of a device is what its data sheet states: single-precision operations, two a lane, in TFLOPS.
#[test]
fn peak_rates_are_those_of_the_data_sheets() {
    let profiles = Profiles::builtin();
    for (id, tflops) in [
        ("tesla-c2070", 1.03),
        ("gtx-580", 1.58),
        ("gtx-1080-ti", 11.3),
        ("tesla-p100", 9.3),
        ("v100-pcie-16gb", 14.1),
        ("t4", 8.1),
        ("titan-rtx", 16.3),
        ("rtx-3090", 35.6),
        ("rtx-a6000", 38.7),
        ("a40", 37.4),
        ("a100-sxm4-80gb", 19.5),
        ("l4", 30.3),
        ("l40", 90.5),
        ("l40s", 91.6),
        ("rtx-4090", 82.6),
        ("h100-pcie", 51.2),
        ("h200-sxm", 67.0),
        ("rtx-5090", 104.8),
        ("jetson-orin", 5.3),
        ("r9-fury", 7.2),
        ("vega-fe", 13.1),
        ("mi50", 13.3),
        ("mi100", 23.1),
        ("mi250x", 23.9),
        ("mi300x", 163.4),
        ("rx-6900-xt", 23.04),
        ("rx-7900-xtx", 61.4),
        ("radeon-pro-w6600", 10.4),
        ("radeon-pro-w7800", 45.2),
        ("arc-a770", 19.66),
    ] {
        let p = profiles.get(id).expect("embedded");
        let found = 2.0 * f64::from(p.sms) * p.fp32_lanes * p.sm_clock_mhz / 1e6;
        assert!((found / tflops - 1.0).abs() < 0.02, "{id}: {found}");
    }
}

#[test]
fn figures_of_the_papers() {
    let profiles = Profiles::builtin();
    let get = |id| profiles.get(id).expect("embedded");
    // Hong and Kim 2009, Tables 3 and 6.
    for (id, sms, bandwidth, mem_ld, uncoalesced) in [
        ("geforce-8800-gtx", 16, 86.4, 420.0, 10.0),
        ("quadro-fx-5600", 16, 76.8, 420.0, 10.0),
        ("gtx-280", 30, 141.7, 450.0, 40.0),
    ] {
        let p = get(id);
        assert_eq!(
            (p.sms, p.dram_bandwidth_gb_s, p.mem_ld),
            (sms, bandwidth, Some(mem_ld))
        );
        assert_eq!(p.departure_del_uncoal, Some(uncoalesced));
        assert_eq!(
            (p.departure_del_coal, p.issue_cycles),
            (Some(4.0), Some(4.0))
        );
        assert_eq!((p.register_scope, p.banks), (RegisterScope::Block, 16));
    }
    // Lai and Seznec 2011.
    let p = get("gtx-280");
    assert_eq!(
        (p.arithmetic_latency, p.fp64_latency, p.shared_latency),
        (24.0, Some(48.0), 38.0)
    );
    assert_eq!(p.compute_capability, Some((1, 3)));
    assert_eq!(p.global_rule, GlobalRule::HalfWarpSegments);
}

#[test]
fn the_gpus_of_wang() {
    // Wang et al. 2019, Table III: SMs, cores, clock in MHz.
    let profiles = Profiles::builtin();
    for (id, capability, sms, cores, clock) in [
        ("quadro-k600", (3, 0), 1, 192, 876.0),
        ("gtx-645", (3, 0), 3, 384, 824.0),
        ("quadro-k620", (5, 0), 3, 384, 1058.0),
        ("geforce-940m", (5, 0), 3, 384, 1072.0),
    ] {
        let p = profiles.get(id).expect("embedded");
        assert_eq!(p.compute_capability, Some(capability), "{id}");
        assert_eq!((p.sms, p.sm_clock_mhz), (sms, clock), "{id}");
        let lanes = f64::from(p.sms) * p.fp32_lanes;
        if id == "gtx-645" {
            // The table's cores are 128 an SM, which no Kepler has: it has 192 (CUDA guide), as the profile says.
            assert_eq!((cores / 3, lanes), (128, 3.0 * 192.0));
        } else {
            assert_eq!(lanes, f64::from(cores), "{id}");
        }
    }
}

#[test]
fn figures_of_the_guides() {
    let p = Profiles::builtin().get("a100-sxm4-40gb").expect("embedded");
    assert_eq!(
        (p.sms, p.max_warps_per_sm, p.max_blocks_per_sm),
        (108, 64, 32)
    );
    assert_eq!(
        (p.shared_per_sm, p.shared_per_block_max()),
        (164 * 1024, 163 * 1024)
    );
    assert_eq!(
        (p.shared_per_block, p.shared_reserved_per_block),
        (48 * 1024, 1024)
    );
    assert_eq!((p.max_block(), p.max_grid()[2]), ([1024, 1024, 64], 65_535));
    assert_eq!(p.figures()["sms"].value, 108.0);
    assert_eq!(p.figures()["shared_per_sm"].unit, "bytes");
    assert!((p.dram_bytes_per_cycle_per_sm() - 10.21).abs() < 0.01);
    assert_eq!(p.issue_per_clock(), 4.0);
}

#[test]
fn every_figure_has_a_source_and_no_figure_is_lost() {
    for profile in Profiles::builtin().iter() {
        for key in Profile::keys() {
            let figure = profile.figures().get(key.name);
            assert!(
                figure.is_some() || !key.required,
                "{}: {}",
                profile.id,
                key.name
            );
            if let Some(figure) = figure {
                assert_eq!(figure.unit, key.unit);
            }
        }
        for (key, figure) in profile.figures() {
            assert!(
                figure.source.len() > 5,
                "{}: {key}: {}",
                profile.id,
                figure.source
            );
            // An estimate says by which rule.
            let rule = ["estimated", "derived"]
                .iter()
                .find_map(|word| figure.source.strip_prefix(word));
            assert!(
                rule.is_none_or(|rule| rule.starts_with(": ")),
                "{}: {key}",
                profile.id
            );
            assert_eq!(figure.is_estimated(), rule.is_some());
        }
        assert_eq!(profile.rules().len(), 4);
        assert!(profile.rules().values().all(|rule| !rule.source.is_empty()));
    }
}

/// What a rule gives is not copied into a file: a GPU states only what was measured or published.
#[test]
fn no_file_states_what_a_rule_gives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hw-profiles");
    let mut files = 0;
    for folder in [folder.clone(), folder.join("architectures")] {
        for file in std::fs::read_dir(folder).expect("there").flatten() {
            let path = file.path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("readable");
            for key in Profile::keys()
                .iter()
                .filter(|key| key.derived_by().is_some())
            {
                let copied = format!("{} = {{ value = ", key.name);
                let line = text.lines().find(|line| line.starts_with(&copied));
                assert!(
                    line.is_none_or(|line| !line.contains("source = \"estimated: ")),
                    "{}: {line:?}",
                    path.display()
                );
            }
            files += 1;
        }
    }
    assert!(files > 60, "{files} files");
    let a100 = Profiles::builtin();
    let a100 = a100.get("a100-sxm4-40gb").expect("built in");
    assert_eq!(a100.figures()["mem_ld"].source, "derived: dram_latency");
}

#[test]
fn the_json_of_a_figure() {
    let p = Profiles::builtin().get("v100-sxm2-16gb").expect("embedded");
    let json = serde_json::to_value(&p.figures()["sms"]).expect("plain data");
    assert_eq!(
        json,
        serde_json::json!({"value": 80, "unit": "SMs", "source": "V100 data sheet"})
    );
    let json = serde_json::to_value(&p.figures()["issue_cycles"]).expect("plain data");
    assert_eq!(json["value"], serde_json::json!(0.5));
}

#[test]
fn a_misspelt_id_is_understood() {
    let profiles = Profiles::builtin();
    for (unknown, meant) in [
        ("a100", "a100-pcie-40gb"),
        ("a100-sxm-40gb", "a100-sxm4-40gb"),
        ("RTX 2080Ti", "rtx-2080-ti"),
        ("gtx280", "gtx-280"),
        ("h100", "h100-pcie"),
        ("tesla-k40", "tesla-k40c"),
        ("v100", "v100-pcie-16gb"),
        ("8800", "geforce-8800-gt"),
    ] {
        assert_eq!(profiles.near(unknown, 1), [meant], "{unknown}");
    }
    assert_eq!(
        profiles.near("A100", 3),
        ["a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm4-40gb"]
    );
    assert_eq!(profiles.near("h100", 9), ["h100-pcie", "h100-sxm5"]);
    assert_eq!(profiles.near("h100", 1), ["h100-pcie"]);
    // A model with a letter too many.
    assert_eq!(profiles.near("h1000", 9), ["h100-pcie", "h100-sxm5"]);
    assert_eq!(
        profiles.near("a100x", 2),
        ["a100-pcie-40gb", "a100-pcie-80gb"]
    );
    for unknown in ["", "voodoo-banshee", "-"] {
        assert_eq!(profiles.near(unknown, 1), [""; 0], "{unknown}");
    }
}

#[test]
fn a_gpu_is_named_as_people_name_it() {
    let profiles = Profiles::builtin();
    for (name, meant) in [
        ("rtx-3090", "rtx-3090"),
        ("RTX 3090", "rtx-3090"),
        ("3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("rtx2080ti", "rtx-2080-ti"),
        ("a100", "a100-sxm4-40gb"),
        ("A100 PCIe", "a100-pcie-40gb"),
        ("a100-80gb", "a100-pcie-80gb"),
        ("h100", "h100-sxm5"),
        ("H100 PCIe", "h100-pcie"),
        ("h200", "h200-sxm"),
        ("v100", "v100-sxm2-16gb"),
        ("p100", "tesla-p100"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("7900 XTX", "rx-7900-xtx"),
        ("w6600", "radeon-pro-w6600"),
        ("AMD Instinct MI300X", "mi300x"),
        ("a770", "arc-a770"),
        ("sm_90", "h100-sxm5"),
        ("sm_90a", "h100-sxm5"),
        ("compute_80", "a100-sxm4-40gb"),
        ("gfx942", "mi300x"),
        ("Tesla T4", "t4"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("mi300", "mi300x"),
        ("k40", "tesla-k40c"),
        ("gtx-1080", "gtx-1080-ti"),
        ("hopper", "h100-sxm5"),
        ("Ampere", "a100-sxm4-40gb"),
        ("8.0", "a100-sxm4-40gb"),
        ("8.6", "rtx-a6000"),
    ] {
        let found = profiles.named(name);
        assert_eq!(
            found.map(|found| found.id.clone()),
            Some(meant.to_owned()),
            "{name}"
        );
    }
    // A memory or a board that no profile has: what a driver names so is like another one, what a user names so is a mistake.
    for (name, like) in [
        ("Tesla V100-SXM2-32GB", "v100-sxm2-16gb"),
        ("NVIDIA H100 NVL", "h100-sxm5"),
        ("a100-sxm4-41gb", "a100-sxm4-40gb"),
    ] {
        let (found, is_it) = profiles.meant(name).expect("like another");
        assert_eq!((&*found.id, is_it), (like, false), "{name}");
        assert!(profiles.named(name).is_none(), "{name}");
    }
    // Each of these names several models or none.
    for name in [
        "",
        "rtx 2070",
        "mi2",
        "k6",
        "titan",
        "v10",
        "NVIDIA A10",
        "NVIDIA A10G",
        "40gb",
        "pcie",
        "rtx",
        "nvidia",
        "sm_",
        "gfx",
        "8.",
        ".0",
        "9.9",
    ] {
        assert_eq!(profiles.named(name), None, "{name}");
    }
}

#[test]
fn a_gpu_that_is_only_like_another_is_told_from_it() {
    let profiles = Profiles::builtin();
    let is_it = |name: &str| profiles.meant(name).map(|(_, is_it)| is_it);
    for name in [
        "t4",
        "Tesla T4",
        "NVIDIA A100 80GB PCIe",
        "NVIDIA H100 80GB HBM3",
        "RTX 3090",
    ] {
        assert_eq!(is_it(name), Some(true), "{name}");
    }
    for name in ["Tesla V100-SXM2-32GB", "NVIDIA H100 NVL", "gtx-1080", "8.0"] {
        assert_eq!(is_it(name), Some(false), "{name}");
    }
    let of = |capability: &str| profiles.of_capability(capability).map(|one| one.id.clone());
    assert_eq!(of("8.6").as_deref(), Some("rtx-a6000"));
    assert_eq!(
        of("8.8").as_deref(),
        Some("jetson-orin"),
        "the nearest before it"
    );
    assert_eq!(of("10.3").as_deref(), Some("b200"));
    assert_eq!(of("99.0"), None);
    assert_eq!(of("eight"), None);
}

#[test]
fn a_gpu_has_a_plain_name_and_a_models() {
    let profiles = Profiles::builtin();
    for (id, plain, model) in [
        ("a100-sxm4-40gb", "A100 SXM4 40GB", "A100"),
        ("h100-pcie", "H100 PCIe 80GB", "H100"),
        ("rtx-3090", "GeForce RTX 3090", "GeForce RTX 3090"),
        ("mi300x", "Instinct MI300X", "Instinct MI300X"),
        ("arc-a770", "Arc A770 16GB", "Arc A770"),
    ] {
        let gpu = profiles.get(id).expect("built in");
        assert_eq!((gpu.plain_name(), gpu.model_name()), (plain, model));
    }
}

#[test]
fn the_largest_of_an_architecture_stands_for_it() {
    let profiles = Profiles::builtin();
    for (architecture, id) in [
        ("sm_70", "v100-sxm2-16gb"),
        ("sm_80", "a100-sxm4-40gb"),
        ("sm_86", "rtx-a6000"),
        ("sm_90", "h100-sxm5"),
        ("gfx90a", "mi250x"),
    ] {
        let found = profiles.largest(|profile| profile.architecture == architecture);
        assert_eq!(found.expect("embedded").id, id);
    }
    assert_eq!(profiles.largest(|profile| profile.sms > 4000), None);
}

#[test]
fn a_profile_of_the_user_is_added_and_replaces() {
    let mut profiles = Profiles::builtin();
    let before = profiles.ids().count();
    let text = device()
        .replace("a100-sxm4-40gb", "our-a100")
        .replace("value = 108", "value = 98");
    profiles.insert(Profiles::from_toml("our-a100.toml", &text).expect("it is complete"));
    assert_eq!(profiles.ids().count(), before + 1);
    assert_eq!(profiles.get("our-a100").expect("added").sms, 98);
    let text = device().replace("value = 108", "value = 100");
    profiles.insert(Profiles::from_toml("mine.toml", &text).expect("it is complete"));
    assert_eq!(profiles.ids().count(), before + 1);
    assert_eq!(profiles.get("a100-sxm4-40gb").expect("replaced").sms, 100);
}

// ---- Broken files ----

fn device() -> String {
    std::fs::read_to_string(folder().join("a100-sxm4-40gb.toml")).expect("readable")
}

/// The error for a file in which `line` is in place of the line that starts with `key`.
fn refused(key: &str, line: &str) -> (ProfileError, String) {
    let mut found = false;
    let mut text = String::new();
    for old in device().lines() {
        let here = old.starts_with(&format!("{key} ="));
        found |= here;
        text += if here { line } else { old };
        text += "\n";
    }
    if !found {
        text = format!("{}\n{line}\n", device());
    }
    let error = Profiles::from_toml("gpus/mine.toml", &text).expect_err(line);
    assert_eq!(error.file, "gpus/mine.toml");
    (error, text)
}

/// Key, the text at the error's place, and the message.
fn told(key: &str, line: &str) -> (String, String, String) {
    let (error, text) = refused(key, line);
    let at = error
        .span
        .clone()
        .map_or(String::new(), |span| text[span].to_owned());
    (error.key.clone().unwrap_or_default(), at, error.to_string())
}

#[test]
fn the_unchanged_file_is_accepted() {
    assert!(Profiles::from_toml("x.toml", &device()).is_ok());
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_likely_one() {
    let (key, at, message) = told("nothing", "l2_byte = { value = 1, source = \"x\" }");
    assert_eq!((key.as_str(), at.as_str()), ("l2_byte", "l2_byte"));
    assert!(
        message.contains("gpus/mine.toml:") && message.contains("`l2_bytes` is"),
        "{message}"
    );
    let (_, _, message) = told("nothing", "colour = { value = 1, source = \"x\" }");
    assert!(message.contains("README"), "{message}");
}

#[test]
fn a_missing_key_is_named_with_what_to_write() {
    let (key, at, message) = told("sms", "");
    assert_eq!((key.as_str(), at.as_str()), ("sms", ""));
    assert_eq!(
        message,
        "gpus/mine.toml: sms: is missing; add `sms = { value = <SMs>, source = \"…\" }`"
    );
    for key in ["id", "name", "architecture"] {
        let (named, _, message) = told(key, "");
        assert_eq!(named, key);
        assert!(message.contains(&format!("add `{key} = ")), "{message}");
    }
    let (_, _, message) = told(
        "architecture",
        "architecture = \"sm_99\"\nvendor = \"nvidia\"",
    );
    assert!(message.contains("missing"), "{message}");
}

#[test]
fn an_architecture_that_is_not_embedded_must_be_spelt_out() {
    let text: String = device().replace("\"sm_80\"", "\"sm_99\"\nvendor = \"nvidia\"")
        + "coalescing = { value = \"sectors-32\", source = \"x\" }\n\
           bank_mode = { value = \"whole-warp\", source = \"x\" }\n\
           register_scope = { value = \"warp\", source = \"x\" }\n\
           kernel_arguments = { value = \"constant\", source = \"x\" }\n";
    let error = Profiles::from_toml("x.toml", &text).expect_err("most keys are missing");
    assert_eq!(error.key.as_deref(), Some("warp_size"));
    assert!(
        error
            .problem
            .contains("no embedded architecture is called `sm_99`"),
        "{error}"
    );
}

#[test]
fn impossible_values_are_refused_where_they_stand() {
    let figure = |key: &str, value: &str| {
        told(
            key,
            &format!("{key} = {{ value = {value}, source = \"x\" }}"),
        )
    };
    for (name, value, right) in [
        ("sms", "0", "a whole number from 1 to 4096"),
        ("sms", "-3", "a whole number from 1 to 4096"),
        ("sms", "1.5", "a whole number"),
        ("sms", "\"many\"", "a whole number"),
        ("sms", "99999999999999999999999", "a whole number"),
        ("sm_clock_mhz", "nan", "a number from 50"),
        ("sm_clock_mhz", "inf", "a number from 50"),
        ("dram_bandwidth_gb_s", "-1555", "(GB/s)"),
        ("dram_efficiency", "1.2", "from 0.05 to 1 (fraction)"),
        ("warp_size", "48", "16, 32 or 64"),
        ("banks", "20", "16 or 32"),
        ("register_unit", "0", "a whole number from 1"),
        (
            "shared_per_block",
            "200000",
            "at most `shared_per_sm`, which is 167936",
        ),
        (
            "shared_per_block_opt_in",
            "16384",
            "at least `shared_per_block`, which is 49152",
        ),
        ("max_threads_per_block", "4096", "at most the 2048 threads"),
        ("sub_partitions", "3", "must divide `registers_per_sm`"),
        ("sm_clock_mhz", "0", "a number from 50"),
        (
            "registers_per_sm",
            "65537",
            "must be a multiple of `register_unit`, which is 256",
        ),
        (
            "register_unit",
            "192",
            "must divide `registers_per_sm`, which is 65536",
        ),
        (
            "shared_per_sm",
            "167939",
            "must be a multiple of `shared_unit`, which is 128",
        ),
        (
            "max_registers_per_thread",
            "600",
            "must be at most 512: a warp of 32 lanes",
        ),
        (
            "max_blocks_per_sm",
            "65",
            "at most `max_warps_per_sm`, which is 64",
        ),
        (
            "barriers_per_sm",
            "33",
            "at most `max_blocks_per_sm`, which is 32",
        ),
        ("warp_granularity", "65", "a whole number from 1 to 64"),
        (
            "max_block_z",
            "2048",
            "at most `max_threads_per_block`, which is 1024",
        ),
        (
            "l1_bytes",
            "41943041",
            "at most `l2_bytes`, which is 41943040",
        ),
        ("l2_bytes", "1024", "at least `l1_bytes`, which is 196608"),
        ("l2_latency", "575", "at most `dram_latency`, which is 574"),
        ("l2_latency", "35", "at least `l1_latency`, which is 36"),
        ("l1_latency", "214", "at most `l2_latency`, which is 213"),
        ("dram_latency", "200", "at least `l2_latency`, which is 213"),
        (
            "shared_latency",
            "600",
            "at most `dram_latency`, which is 574",
        ),
        (
            "dram_bandwidth_gb_s",
            "5000",
            "at most `l2_bandwidth_gb_s`, which is 4619",
        ),
        ("fp64_lanes", "65", "at most `fp32_lanes`, which is 64"),
        ("sfu_lanes", "65", "at most `fp32_lanes`, which is 64"),
        ("int_mul_lanes", "65", "at most `int_lanes`, which is 64"),
        (
            "cache_line_bytes",
            "16",
            "must be at least 32: `coalescing`",
        ),
        (
            "shared_bandwidth_b_clk",
            "257",
            "must be at most 256: 32 banks",
        ),
    ] {
        let (key, at, message) = figure(name, value);
        assert_eq!((key.as_str(), at.as_str()), (name, value), "{message}");
        assert!(message.contains(right), "{name} = {value}: {message}");
    }
}

#[test]
fn a_figure_without_source_or_with_more_than_it_may_have_is_refused() {
    let (key, _, message) = told("sms", "sms = { value = 108 }");
    assert_eq!(key, "sms.source");
    assert!(message.contains("where the figure comes from"), "{message}");
    let (key, at, _) = told("sms", "sms = { value = 108, source = \"  \" }");
    assert_eq!((key.as_str(), at.as_str()), ("sms.source", "\"  \""));
    let (key, _, message) = told(
        "sms",
        "sms = { value = 108, source = \"x\", unit = \"SMs\" }",
    );
    assert_eq!(key, "sms.unit");
    assert!(message.contains("the key fixes the unit"), "{message}");
    let (key, _, message) = told("sms", "sms = 108");
    assert_eq!(key, "sms");
    assert!(
        message.contains("sms = { value = <SMs>, source = \"…\" }"),
        "{message}"
    );
    let (key, _, _) = told("sms", "sms = { source = \"x\" }");
    assert_eq!(key, "sms");
}

#[test]
fn names_that_do_not_exist_are_refused_with_the_choices() {
    for (line, key, right) in [
        (
            "coalescing = { value = \"sectors\", source = \"x\" }",
            "coalescing",
            "`sectors-32`",
        ),
        (
            "bank_mode = { value = \"odd\", source = \"x\" }",
            "bank_mode",
            "`kepler-4-byte`",
        ),
        (
            "register_scope = { value = 1, source = \"x\" }",
            "register_scope",
            "`block` or `warp`",
        ),
        (
            "kernel_arguments = { value = \"\", source = \"x\" }",
            "kernel_arguments",
            "`shared`",
        ),
        ("vendor = \"3dfx\"", "vendor", "`nvidia`, `amd` or `intel`"),
        (
            "compute_capability = \"eight\"",
            "compute_capability",
            "\"8.0\"",
        ),
        ("compute_capability = 8.0", "compute_capability", "a text"),
    ] {
        let line = format!("{line}\n{}", "# rest");
        let mut text = device();
        text = text.replacen("schema = 1", &format!("schema = 1\n{line}"), 1);
        let error = Profiles::from_toml("x.toml", &text).expect_err(&line);
        assert_eq!(error.key.as_deref(), Some(key));
        assert!(error.problem.contains(right), "{error}");
        assert_eq!(error.line, 3, "{error}");
    }
}

#[test]
fn ids_schemas_and_syntax() {
    let (key, at, message) = told("id", "id = \"A100 big\"");
    assert_eq!((key.as_str(), at.as_str()), ("id", "\"A100 big\""));
    assert!(
        message.contains("lower-case letters, digits and hyphens"),
        "{message}"
    );
    let (key, at, message) = told("schema", "schema = 2");
    assert_eq!((key.as_str(), at.as_str()), ("schema", "2"));
    assert!(message.contains("must be 1"), "{message}");
    assert_eq!(told("schema", "").0, "schema");
    let (error, _) = refused("sms", "sms = { value = ");
    assert_eq!(error.key, None);
    assert!(error.span.is_some() && error.line > 1, "{error}");
    // Twice the same key.
    let (error, _) = refused("nothing", "sms = { value = 1, source = \"x\" }");
    assert!(error.span.is_some(), "{error}");
}

#[test]
fn lines_and_columns_count_characters_from_one() {
    let text = "schema = 1\nname = \"Gerät\"\nid = \"x\"\n\"ä\" = { a = 1, b = 2 }\n";
    let error = Profiles::from_toml("x.toml", text).expect_err("unknown key");
    assert_eq!((error.line, error.column), (4, 1));
    let text = "schema = 1\narchitecture = \"sm_80\"\nsms = { source = \"ä\", value = 0 }\n";
    let error = Profiles::from_toml("x.toml", text).expect_err("no SM");
    assert_eq!((error.line, error.column), (3, 31));
}
