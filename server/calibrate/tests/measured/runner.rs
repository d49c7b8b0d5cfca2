//! The runner with fake compilers and benchmarks: whole runs, resumption, and failures.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use warplens_calibrate::{Failure, Interface, Measurements, Plan, Progress, measure};

const DEVICE: &str = r#"{"device":{"name":"Stand-in GPU","vendor":"nvidia","architecture":"sm_90","driver":"13.0","properties":{"sms":132}}}"#;

/// What every benchmark of a machine in order prints.
const STEADY: &str = r#"echo "{\"bench\":\"$1\",\"parameters\":{},\"unit\":\"cycles\",\"repetitions\":[10,10,10.1]}""#;

struct Stand {
    folder: tempfile::TempDir,
}

impl Stand {
    /// A compiler whose programs run `body` for every benchmark; `$1` is its name, `$HERE` a folder that stays.
    fn new(body: &str) -> Stand {
        Stand::with(&format!(
            "if [ \"$1\" = device ]; then echo '{DEVICE}'; exit 0; fi\n{body}"
        ))
    }

    fn with(program: &str) -> Stand {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display();
        let compiler = format!(
            "#!/bin/sh\n\
             if [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release 13.0'; exit 0; fi\n\
             echo \"$@\" >> '{here}/compiled'\n\
             while [ \"$1\" != -o ]; do shift; done\n\
             cp '{here}/program' \"$2\"\n"
        );
        write(&folder.path().join("nvcc"), &compiler);
        write(
            &folder.path().join("program"),
            &format!("#!/bin/sh\nHERE='{here}'\n{program}\n"),
        );
        Stand { folder }
    }

    fn plan(&self) -> Plan {
        Plan {
            interface: Interface::Cuda,
            compiler: self.path("nvcc"),
            device: 0,
            file: self.path("measurements.json"),
            fresh: false,
            budget: Duration::from_mins(4),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self) -> Result<Measurements, Failure> {
        measure(&self.plan(), &AtomicBool::new(false), &mut |_| ())
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_run_measures_everything_once_and_a_second_one_nothing_more() {
    let stand = Stand::new(&format!("echo $1 >> $HERE/ran\n{STEADY}"));
    let mut seen: Vec<Progress> = Vec::new();
    let quiet = AtomicBool::new(false);
    let measured = measure(&stand.plan(), &quiet, &mut |progress| {
        seen.push(progress.clone());
    })
    .unwrap();
    let benches: Vec<&str> = Interface::Cuda.benches().map(|bench| bench.name).collect();
    assert_eq!(measured.finished, benches);
    assert_eq!(stand.lines("ran"), benches);
    assert_eq!(
        measured.device.compiler,
        "Cuda compilation tools, release 13.0"
    );
    assert_eq!(measured.remarks, Vec::<String>::new());
    assert_eq!(
        Measurements::read(&stand.path("measurements.json")).unwrap(),
        measured
    );
    // For the architecture that the device has, each program once.
    let compiled = stand.lines("compiled");
    assert!(
        compiled[1..]
            .iter()
            .all(|line| line.contains("-arch=sm_90")),
        "{compiled:?}"
    );
    assert_eq!(compiled.len(), 8);
    assert!(seen.windows(2).all(|two| two[0].done <= two[1].done));
    assert_eq!(seen.last().map(|last| last.done), Some(benches.len()));

    assert_eq!(stand.run().unwrap(), measured);
    assert_eq!(stand.lines("ran").len(), benches.len());
}

#[test]
fn a_run_that_is_stopped_goes_on_where_it_was() {
    let stand = Stand::new(&format!(
        "[ $1 = barrier ] && [ ! -e $HERE/again ] && sleep 60\n{STEADY}"
    ));
    let cancelled = AtomicBool::new(false);
    let begun = std::time::Instant::now();
    let stopped = measure(&stand.plan(), &cancelled, &mut |progress| {
        if progress.doing.contains("barrier") {
            cancelled.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(stopped, Err(Failure::Cancelled));
    assert!(begun.elapsed() < Duration::from_secs(30));
    let kept = Measurements::read(&stand.path("measurements.json")).unwrap();
    assert!(kept.has("shared_conflict") && !kept.has("barrier"));
    std::fs::write(stand.path("again"), "").unwrap();
    let whole = stand.run().unwrap();
    assert_eq!(whole.finished.len(), Interface::Cuda.benches().count());
    let barriers = whole
        .samples
        .iter()
        .filter(|sample| sample.bench == "barrier");
    assert_eq!(barriers.count(), 1);
}

#[test]
fn unsteady_figures_are_measured_again_and_then_reported() {
    // The first try of launch is unsteady, every one of atomic.
    let stand = Stand::new(&format!(
        "echo $1 >> $HERE/ran\n\
         if [ $1 = atomic ] || ([ $1 = launch ] && [ $(grep -c launch $HERE/ran) = 1 ]); then\n\
           echo \"{{\\\"bench\\\":\\\"$1\\\",\\\"parameters\\\":{{}},\\\"unit\\\":\\\"ns\\\",\\\"repetitions\\\":[10,14,18,25]}}\"\n\
         else {STEADY}; fi"
    ));
    let measured = stand.run().unwrap();
    let tries = |bench: &str| {
        stand
            .lines("ran")
            .iter()
            .filter(|line| *line == bench)
            .count()
    };
    assert_eq!(
        (tries("atomic"), tries("launch"), tries("barrier")),
        (3, 2, 1)
    );
    assert_eq!(measured.remarks.len(), 1, "{:?}", measured.remarks);
    assert!(
        measured.remarks[0].starts_with("atomic: unsteady"),
        "{:?}",
        measured.remarks
    );
}

#[test]
fn a_clock_that_moved_is_said() {
    let stand = Stand::new(
        "clock=1980; [ $1 = clock_after ] && clock=1410\n\
         echo \"{\\\"bench\\\":\\\"$1\\\",\\\"unit\\\":\\\"MHz\\\",\\\"repetitions\\\":[$clock,$clock]}\"",
    );
    stand.run().unwrap();
    let measured = stand.run().unwrap();
    assert_eq!(measured.remarks.len(), 1, "{:?}", measured.remarks);
    assert!(
        measured
            .remarks
            .iter()
            .any(|line| line.contains("from 1980 to 1410 MHz"))
    );
}

#[test]
fn a_benchmark_that_fails_or_prints_junk_costs_itself_alone() {
    let stand = Stand::new(&format!(
        "case $1 in\n\
         barrier) echo 'CHECK(x): an illegal memory access was encountered' >&2; exit 4;;\n\
         launch) echo 'hello {{\"bench\":'; echo '\\377\\376'; exit 0;;\n\
         latency_shared) exit 9;;\n\
         *) echo junk; {STEADY};; esac"
    ));
    let measured = stand.run().unwrap();
    for bench in ["barrier", "launch", "latency_shared"] {
        assert!(!measured.has(bench), "{bench}");
    }
    assert!(measured.has("linear"));
    let remarks = measured.remarks.join("\n");
    for word in [
        "barrier: barrier failed: CHECK(x)",
        "launch failed: it printed no figures",
        "exit status 9",
    ] {
        assert!(remarks.contains(word), "{word}: {remarks}");
    }
    // A rerun tries these again, and says once what is wrong.
    assert_eq!(stand.run().unwrap().remarks.len(), measured.remarks.len());
}

#[test]
fn what_ends_a_run_is_said_in_words() {
    let no_gpu = Stand::with("echo 'no GPU: no CUDA-capable device is detected' >&2; exit 3");
    assert_eq!(
        no_gpu.run(),
        Err(Failure::NoDevice {
            interface: "cuda",
            why: "no CUDA-capable device is detected".to_owned()
        })
    );

    let refused =
        Stand::new("echo 'ERR_NVGPUCTRPERM: no permission for performance counters' >&2; exit 4");
    let said = refused.run().unwrap_err().to_string();
    assert!(
        said.contains("the driver refuses") && said.contains("ERR_NVGPUCTRPERM"),
        "{said}"
    );

    let mute = Stand::with("echo nonsense");
    assert!(matches!(mute.run(), Err(Failure::Description(_))));

    let evil = Stand::with(&format!(
        "echo '{}'",
        DEVICE.replace("sm_90", "sm_90 --run x")
    ));
    assert!(matches!(evil.run(), Err(Failure::Description(_))));

    let all_fail = Stand::new("echo 'error: out of memory' >&2; exit 4");
    assert!(
        all_fail
            .run()
            .unwrap_err()
            .to_string()
            .contains("out of memory")
    );

    let no_compiler = Stand::new(STEADY);
    let mut plan = no_compiler.plan();
    plan.compiler = no_compiler.path("missing/nvcc");
    let quiet = AtomicBool::new(false);
    let said = measure(&plan, &quiet, &mut |_| ()).unwrap_err().to_string();
    assert!(said.contains("compiler cannot be executed"), "{said}");

    let broken = Stand::new(STEADY);
    write(
        &broken.path("nvcc"),
        "#!/bin/sh\necho 'device.cu(3): error: no such thing' >&2\nexit 1\n",
    );
    let said = broken.run().unwrap_err().to_string();
    assert!(
        said.contains("device.cu does not compile: device.cu(3): error"),
        "{said}"
    );
}

#[test]
fn a_file_of_another_device_or_a_place_that_cannot_be_written_is_refused() {
    let stand = Stand::new(STEADY);
    let mut other = stand.run().unwrap();
    other.device.name = "Another GPU".to_owned();
    other.write(&stand.path("measurements.json")).unwrap();
    let said = stand.run().unwrap_err().to_string();
    assert!(
        said.contains("Another GPU") && said.contains("--fresh"),
        "{said}"
    );
    let quiet = AtomicBool::new(false);
    let fresh = Plan {
        fresh: true,
        ..stand.plan()
    };
    assert_eq!(
        measure(&fresh, &quiet, &mut |_| ()).unwrap().device.name,
        "Stand-in GPU"
    );

    let nowhere = Plan {
        file: stand.path("no/such/folder.json"),
        ..stand.plan()
    };
    let said = measure(&nowhere, &quiet, &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(said.contains("cannot be written"), "{said}");

    std::fs::write(stand.path("measurements.json"), "{").unwrap();
    let said = stand.run().unwrap_err().to_string();
    assert!(
        said.contains("line 1") && said.contains("--fresh"),
        "{said}"
    );
}

#[test]
fn no_benchmark_is_begun_when_the_time_is_over() {
    let stand = Stand::new(STEADY);
    let quiet = AtomicBool::new(false);
    let short = Plan {
        budget: Duration::ZERO,
        ..stand.plan()
    };
    let measured = measure(&short, &quiet, &mut |_| ()).unwrap();
    assert!(measured.finished.is_empty());
    assert!(
        measured.remarks[0].starts_with("out of time"),
        "{:?}",
        measured.remarks
    );
    assert!(stand.run().unwrap().remarks.is_empty());
}
