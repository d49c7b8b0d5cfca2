//! Where includes lead, in small workspaces on the disk.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::{TempDir, tempdir};
use warplens_base::{
    Command, DiskFiles, Files as _, HeaderIndex, IncludeSearch, NoFiles, OpenFiles,
    is_system_header, split_command,
};

struct Workspace {
    folder: TempDir,
    files: DiskFiles,
    index: Arc<HeaderIndex>,
}

impl Workspace {
    fn new(paths: &[&str]) -> Self {
        let folder = tempdir().unwrap();
        let index = Arc::new(HeaderIndex::new(vec![folder.path().to_owned()]));
        let workspace = Self {
            folder,
            files: DiskFiles::new(),
            index,
        };
        for path in paths {
            workspace.write(path, "");
        }
        workspace
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A search with folders relative to the workspace.
    fn search(&self, quote_dirs: &[&str], dirs: &[&str]) -> IncludeSearch {
        let paths = |names: &[&str]| names.iter().map(|name| self.path(name)).collect();
        IncludeSearch::new(paths(quote_dirs), paths(dirs), Arc::clone(&self.index))
    }

    /// Where `include` (with its delimiters) in the file `from` leads, relative to the workspace.
    fn resolve(&self, search: &IncludeSearch, include: &str, from: &str) -> Option<String> {
        let system = include.starts_with('<');
        let spelled = &include[1..include.len() - 1];
        let found = search.resolve(&self.files, spelled, system, &self.path(from))?;
        let found = found.strip_prefix(self.folder.path()).unwrap_or(&found);
        Some(found.to_str().unwrap().replace('\\', "/"))
    }
}

#[test]
fn the_folders_are_searched_in_order() {
    let workspace = Workspace::new(&[
        "src/a.cu",
        "src/x.h",
        "quote/x.h",
        "quote/y.h",
        "inc/x.h",
        "inc/y.h",
        "inc/z.h",
        "late/z.h",
        "late/with space/w.h",
    ]);
    let search = workspace.search(&["quote"], &["inc", "late"]);
    let table = [
        ("\"x.h\"", Some("src/x.h")),
        ("\"y.h\"", Some("quote/y.h")),
        ("\"z.h\"", Some("inc/z.h")),
        ("<x.h>", Some("inc/x.h")),
        ("<y.h>", Some("inc/y.h")),
        ("\"../inc/x.h\"", Some("inc/x.h")),
        ("\"./x.h\"", Some("src/x.h")),
        ("\"with space/w.h\"", Some("late/with space/w.h")),
        ("\"with space\\w.h\"", Some("late/with space/w.h")),
        ("\" x.h \"", Some("src/x.h")),
        ("\"none.h\"", None),
        ("\"\"", None),
        ("\"..\"", None),
        ("\"/\"", None),
        ("\"a\0b.h\"", None),
    ];
    for (include, expected) in table {
        assert_eq!(
            workspace.resolve(&search, include, "src/a.cu").as_deref(),
            expected,
            "{include}"
        );
    }
}

#[test]
fn an_absolute_path_is_taken_as_it_is() {
    let workspace = Workspace::new(&["far/x.h", "src/far/x.h"]);
    let search = workspace.search(&[], &[]);
    let spelled = workspace.path("src/../far/x.h");
    let from = workspace.path("src/a.cu");
    for system in [false, true] {
        let found = search.resolve(&workspace.files, spelled.to_str().unwrap(), system, &from);
        assert_eq!(found, Some(workspace.path("far/x.h")));
        assert_eq!(
            search.resolve(&workspace.files, "/no/x.h", system, &from),
            None
        );
    }
}

#[test]
fn the_workspace_stands_in_for_folders_that_are_not_configured() {
    let workspace = Workspace::new(&[
        "one/src/a.cu",
        "one/include/lib/x.cuh",
        "two/include/lib/x.cuh",
        "two/src/deep/b.cu",
        "common/helper_cuda.h",
        "common/more/deeper/only.inl.h",
        "top.hip",
        "readme.txt",
        "z/same.h",
        "a/b/same.h",
    ]);
    let search = workspace.search(&[], &[]);
    let table = [
        ("<lib/x.cuh>", "one/src/a.cu", Some("one/include/lib/x.cuh")),
        (
            "\"lib/x.cuh\"",
            "two/src/deep/b.cu",
            Some("two/include/lib/x.cuh"),
        ),
        (
            "\"x.cuh\"",
            "two/src/deep/b.cu",
            Some("two/include/lib/x.cuh"),
        ),
        (
            "\"../../nowhere/../lib/x.cuh\"",
            "one/src/a.cu",
            Some("one/include/lib/x.cuh"),
        ),
        (
            "<helper_cuda.h>",
            "one/src/a.cu",
            Some("common/helper_cuda.h"),
        ),
        (
            "\"only.inl.h\"",
            "one/src/a.cu",
            Some("common/more/deeper/only.inl.h"),
        ),
        (
            "\"deeper/only.inl.h\"",
            "one/src/a.cu",
            Some("common/more/deeper/only.inl.h"),
        ),
        ("\"eeper/only.inl.h\"", "one/src/a.cu", None),
        ("\"top.hip\"", "one/src/a.cu", Some("top.hip")),
        ("\"readme.txt\"", "one/src/a.cu", None),
        // Equally far: the one that lies less deep.
        ("\"same.h\"", "one/src/a.cu", Some("z/same.h")),
        ("\"same.h\"", "a/c/d.cu", Some("a/b/same.h")),
    ];
    for (include, from, expected) in table {
        let found = workspace.resolve(&search, include, from);
        assert_eq!(found.as_deref(), expected, "{include} in {from}");
    }
}

#[test]
fn of_equally_close_headers_that_of_a_like_program_is_meant() {
    let workspace = Workspace::new(&[
        "src/aa/reference.h",
        "src/blur-cuda/reference.h",
        "src/blurred-cuda/reference.h",
        "src/blur-hip/main.cu",
    ]);
    let search = workspace.search(&[], &[]);
    let found = workspace.resolve(&search, "\"reference.h\"", "src/blur-hip/main.cu");
    assert_eq!(found.as_deref(), Some("src/blur-cuda/reference.h"));
}

#[test]
fn an_angled_include_beside_the_file_is_found_without_a_workspace() {
    let workspace = Workspace::new(&["src/x.cuh", "src/unistd.h"]);
    let search = IncludeSearch::new(vec![], vec![], Arc::new(HeaderIndex::new(vec![])));
    assert_eq!(
        workspace.resolve(&search, "<x.cuh>", "src/a.cu").as_deref(),
        Some("src/x.cuh")
    );
    assert_eq!(workspace.resolve(&search, "<unistd.h>", "src/a.cu"), None);
    assert_eq!(
        workspace
            .resolve(&search, "\"unistd.h\"", "src/a.cu")
            .as_deref(),
        Some("src/unistd.h")
    );
}

#[test]
fn a_header_that_wraps_its_namesake_does_not_find_itself() {
    let workspace = Workspace::new(&["include/lib/x.h", "src/lib/x.h"]);
    let search = workspace.search(&[], &[]);
    for _ in 0..2 {
        let found = workspace.resolve(&search, "\"lib/x.h\"", "include/lib/x.h");
        assert_eq!(found.as_deref(), Some("src/lib/x.h"));
        let found = workspace.resolve(&search, "\"lib/x.h\"", "include/lib/y.h");
        assert_eq!(found.as_deref(), Some("include/lib/x.h"));
    }
}

#[test]
fn system_headers_are_never_taken_from_the_workspace() {
    let workspace = Workspace::new(&[
        "fake/vector",
        "fake/math.h",
        "fake/thrust/sort.h",
        "fake/cuda_runtime.h",
        "src/math.h",
        "fake/CL/cl.h",
    ]);
    let search = workspace.search(&[], &[]);
    for include in [
        "<math.h>",
        "<thrust/sort.h>",
        "\"cuda_runtime.h\"",
        "\"CL/cl.h\"",
        "<vector>",
    ] {
        assert_eq!(
            workspace.resolve(&search, include, "other/a.cu"),
            None,
            "{include}"
        );
    }
    assert_eq!(
        workspace
            .resolve(&search, "\"math.h\"", "src/a.cu")
            .as_deref(),
        Some("src/math.h")
    );
    // A folder that was named counts for them too: the workspace may be thrust's own.
    let search = workspace.search(&[], &["fake"]);
    let found = workspace.resolve(&search, "<thrust/sort.h>", "other/a.cu");
    assert_eq!(found.as_deref(), Some("fake/thrust/sort.h"));
}

#[test]
fn ignored_and_hidden_files_are_not_in_the_index() {
    let workspace = Workspace::new(&[
        "gen/made.h",
        "kept/kept.h",
        ".cache/hidden.h",
        "kept/skipped.h",
    ]);
    workspace.write(".gitignore", "gen/\r\n");
    workspace.write("kept/.gitignore", "skipped.h\n");
    let search = workspace.search(&[], &[]);
    for (include, expected) in [
        ("\"made.h\"", None),
        ("\"hidden.h\"", None),
        ("\"skipped.h\"", None),
        ("\"kept.h\"", Some("kept/kept.h")),
    ] {
        assert_eq!(
            workspace.resolve(&search, include, "a.cu").as_deref(),
            expected,
            "{include}"
        );
    }
    // Named folders are not asked what git thinks of them.
    let search = workspace.search(&[], &["gen"]);
    assert_eq!(
        workspace.resolve(&search, "\"made.h\"", "a.cu").as_deref(),
        Some("gen/made.h")
    );
}

#[test]
fn the_index_is_built_once_and_again_when_told() {
    let workspace = Workspace::new(&["lib/one.cuh"]);
    let search = workspace.search(&[], &[]);
    assert_eq!(
        workspace
            .resolve(&search, "\"one.cuh\"", "src/a.cu")
            .as_deref(),
        Some("lib/one.cuh")
    );
    workspace.write("lib/two.cuh", "");
    assert_eq!(workspace.resolve(&search, "\"two.cuh\"", "src/a.cu"), None);
    workspace.index.refresh();
    assert_eq!(
        workspace
            .resolve(&search, "\"two.cuh\"", "src/a.cu")
            .as_deref(),
        Some("lib/two.cuh")
    );

    // What is gone is not offered, even before the index knows.
    fs::remove_file(workspace.path("lib/two.cuh")).unwrap();
    workspace.files.forget(&workspace.path("lib/two.cuh"));
    assert_eq!(workspace.resolve(&search, "\"two.cuh\"", "src/a.cu"), None);
}

#[test]
fn answers_are_kept_until_the_generation_grows() {
    let workspace = Workspace::new(&["src/a.cu", "inc/x.h"]);
    let files = OpenFiles::new(DiskFiles::new());
    let search = workspace.search(&[], &["inc"]);
    let from = workspace.path("src/a.cu");
    let resolve = || search.resolve(&files, "x.h", false, &from);
    assert_eq!(resolve(), Some(workspace.path("inc/x.h")));
    // An unsaved buffer beside the file comes first.
    files.set(&workspace.path("src/x.h"), "");
    assert_eq!(resolve(), Some(workspace.path("src/x.h")));
    files.close(&workspace.path("src/x.h"));
    assert_eq!(resolve(), Some(workspace.path("inc/x.h")));
    // Without a change of the generation the search is not repeated.
    let generation = files.generation();
    fs::remove_file(workspace.path("inc/x.h")).unwrap();
    assert_eq!(resolve(), Some(workspace.path("inc/x.h")));
    assert_eq!(files.generation(), generation);
    files.inner().forget(&workspace.path("inc/x.h"));
    assert_eq!(resolve(), None);
}

#[test]
fn the_search_of_a_command_has_its_folders() {
    let workspace = Workspace::new(&["q/x.h", "i/x.h", "i/y.h", "s/y.h"]);
    let line = "clang++ -isystem s -Ii -iquote q a.cu";
    let command = Command::read(&split_command(line), workspace.folder.path(), &NoFiles);
    let search = IncludeSearch::of_command(&command, Arc::clone(&workspace.index));
    assert_eq!(
        workspace.resolve(&search, "\"x.h\"", "src/a.cu").as_deref(),
        Some("q/x.h")
    );
    assert_eq!(
        workspace.resolve(&search, "<y.h>", "src/a.cu").as_deref(),
        Some("i/y.h")
    );
}

#[test]
fn many_folders_and_threads() {
    let paths: Vec<String> = (0..300)
        .map(|at| format!("d{}/e{at}/k.cuh", at % 7))
        .collect();
    let workspace = Workspace::new(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let search = workspace.search(&[], &[]);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (workspace, search) = (&workspace, &search);
            scope.spawn(move || {
                for at in (thread..300).step_by(3) {
                    let from = format!("d{}/e{at}/sub/a.cu", at % 7);
                    let found = workspace.resolve(search, "\"k.cuh\"", &from);
                    assert_eq!(found, Some(format!("d{}/e{at}/k.cuh", at % 7)));
                }
            });
        }
    });
}

#[test]
fn known_and_unknown_headers() {
    let system = [
        "stdio.h",
        "math.h",
        "cmath",
        "vector",
        "type_traits",
        "bits/stdc++.h",
        "unistd.h",
        "sys/time.h",
        "sys\\time.h",
        "pthread.h",
        "windows.h",
        "immintrin.h",
        "cuda.h",
        "cuda_runtime.h",
        "cuda_fp16.h",
        "cuda_bf16.hpp",
        "cuda_pipeline.h",
        "cublas_v2.h",
        "cublasLt.h",
        "cusolverDn.h",
        "curand_kernel.h",
        "cudnn.h",
        "cudnn_ops_v8.h",
        "nppi.h",
        "cooperative_groups.h",
        "cooperative_groups/reduce.h",
        "mma.h",
        "sm_20_atomic_functions.h",
        "device_launch_parameters.h",
        "cuda/std/array",
        "cuda/barrier",
        "cuda/std/detail/x.h",
        "nv/target",
        "thrust/device_vector.h",
        "cub/cub.cuh",
        "hip/hip_runtime.h",
        "hip/amd_detail/x.h",
        "hip/math_functions.h",
        "rocblas/rocblas.h",
        "CL/cl.h",
        "CL/opencl.hpp",
        "OpenCL/opencl.h",
        "omp.h",
        "mpi.h",
        "nccl.h",
        "nvToolsExt.h",
        "nvtx3/nvtx3.hpp",
        "opencl-c.h",
        "net/if.h",
    ];
    for name in system {
        assert!(is_system_header(name), "{name}");
    }
    let own = [
        "",
        "a.h",
        "helper_cuda.h",
        "cuda_utils.h",
        "cuda_helper.cuh",
        "cuda/kernels.cuh",
        "hip/kernels.h",
        "common/math.h",
        "vector.h",
        "vectors",
        "kernel.cu",
        "utils/vector",
        "net/layer.h",
        "cub.cuh",
        "mycub/cub.cuh",
        "cutlass/gemm.h",
        "npp",
        "sm_80.h",
        "/",
    ];
    for name in own {
        assert!(!is_system_header(name), "{name}");
    }
}
