//! What programs are built with: OpenCL by `clBuildProgram` and `program.build` with their options, CUDA by a Makefile's commands.

use std::fs;

use warplens_base::DiskFiles;
use warplens_db::settings::Settings;
use warplens_db::{Cancel, Engine, FileAnalysis, Overrides, Project, language_by_content};
use warplens_machine::Profiles;
use warplens_syntax::{Document, Language};

/// The analysis of the first file, with the others beside it.
fn analyse(files: &[(&str, &str)]) -> FileAnalysis {
    analyse_with(files, &Settings::default())
}

fn analyse_with(files: &[(&str, &str)], settings: &Settings) -> FileAnalysis {
    let root = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    let project = Project::new(
        std::sync::Arc::new(DiskFiles::new()),
        vec![root.path().to_path_buf()],
    );
    let engine = Engine::with_project(Profiles::builtin(), project);
    let (name, text) = files[0];
    let path = root.path().join(name);
    let language = language_by_content(Language::from_path(&path), text);
    engine
        .analyze(
            &Document::new(text, language),
            &path,
            settings,
            &Overrides::default(),
            &Cancel::default(),
        )
        .expect("not cancelled")
}

/// Sectors of each access of the first kernel.
fn sectors(file: &FileAnalysis) -> Vec<Option<f64>> {
    let facts = &file.kernels[0].analysis.facts;
    assert_eq!(facts.not_understood, [], "everything is understood");
    facts
        .accesses
        .iter()
        .map(|access| access.transactions_per_request)
        .collect()
}

/// What is said about a name: value and where from.
fn said(file: &FileAnalysis, name: &str) -> Option<(String, String)> {
    file.kernels[0]
        .analysis
        .facts
        .assumptions
        .iter()
        .find(|assumption| assumption.symbol.kind() == name)
        .map(|assumption| (assumption.value.clone(), assumption.source.clone()))
}

const STRIDED: &str =
    "__kernel void strided(__global float *p) { p[get_global_id(0) * STRIDE] = 0; }\n";

/// A host that makes the kernel and builds it after these statements, with `options`.
fn host(statements: &str) -> String {
    format!(
        "#define CHECK(call) do {{ if ((call) != 0) abort(); }} while (0)\n\
         static const int width = 4;\n\
         int main(int argc, char **argv) {{\n\
         \x20 cl_program program = clCreateProgramWithSource(context, 1, &source, 0, &error);\n\
         \x20 {statements}\n\
         \x20 cl_kernel kernel = clCreateKernel(program, \"strided\", &error);\n\
         \x20 size_t global = 1 << 20, local = 128;\n\
         \x20 clEnqueueNDRangeKernel(queue, kernel, 1, 0, &global, &local, 0, 0, 0);\n}}\n"
    )
}

#[test]
fn an_option_that_the_host_builds_with_is_a_definition() {
    let host =
        host("CHECK(clBuildProgram(program, 1, &device, \"-cl-mad-enable -D STRIDE=32\", 0, 0));");
    let file = analyse(&[("k.cl", STRIDED), ("main.c", &host)]);
    assert_eq!(sectors(&file), [Some(32.0)]);
    assert_eq!(
        said(&file, "STRIDE"),
        Some(("32".into(), "build options, main.c:5".into()))
    );
}

#[test]
fn options_put_together_from_constants_are_read() {
    let built = "clBuildProgram(program, 1, &device, options, NULL, NULL);";
    for statements in [
        format!("char options[64]; sprintf(options, \"-DSTRIDE=%d -I.\", width); {built}"),
        format!("char options[64]; snprintf(options, sizeof(options), \"%s=%zu\", \"-D STRIDE\", sizeof(float)); {built}"),
        format!(
            "char options[64] = \"-I.\"; strcat(options, \" -D STRIDE\"); \
             sprintf(options + strlen(options), \"=%u\", 1 << 2); {built}"
        ),
        "std::string text = \"-D STRIDE=\"; text += std::to_string(width); \
         clBuildProgram(program, 1, &device, text.c_str(), NULL, NULL);"
            .to_owned(),
        "std::stringstream text; text << \" -DSTRIDE=\" << 2 * 2 << \" -DT=\" << argv[1]; \
         clBuildProgram(program, 0, NULL, text.str().c_str(), NULL, NULL);"
            .to_owned(),
        "const std::string name = std::string(\"STRI\") + \"DE\"; \
         program.build(devices, (\"-D \" + name + \"=4\").c_str());"
            .to_owned(),
        "std::ostringstream text; text << \"-DSTRIDE=\" << width; program.build({device}, text.str());".to_owned(),
        "clCompileProgram(program, 1, &device, \"-DSTRIDE=4\", 0, 0, 0, 0, 0);".to_owned(),
    ] {
        let file = analyse(&[("k.cl", STRIDED), ("main.cpp", &host(&statements))]);
        assert_eq!(sectors(&file), [Some(16.0)], "{statements}");
    }
}

#[test]
fn options_are_followed_into_the_function_that_builds() {
    let host = "static cl_program compile(cl_context c, const char *source, const char *extra) {\n\
                \x20 cl_program program = clCreateProgramWithSource(c, 1, &source, 0, 0);\n\
                \x20 std::string all = std::string(\"-cl-fast-relaxed-math \") + extra;\n\
                \x20 clBuildProgram(program, 0, 0, all.c_str(), 0, 0);\n\
                \x20 return program;\n}\n\
                int main() {\n  cl_program p = compile(context, text, \"-D STRIDE=16\");\n\
                \x20 cl_kernel k = clCreateKernel(p, \"strided\", 0);\n}\n";
    let file = analyse(&[("k.cl", STRIDED), ("main.cpp", host)]);
    assert_eq!(sectors(&file), [Some(32.0)], "64 bytes from lane to lane");
}

#[test]
fn what_cannot_be_read_stays_an_assumption() {
    for statements in [
        "char options[64]; sprintf(options, \"-D STRIDE=%s\", argv[1]); clBuildProgram(program, 0, 0, options, 0, 0);",
        "char options[64] = \"-D STRIDE=4\"; change(options); clBuildProgram(program, 0, 0, options, 0, 0);",
        "std::string o = \"-DSTRIDE=1\"; if (more()) o += \"6\"; clBuildProgram(program, 0, 0, o.c_str(), 0, 0);",
    ] {
        let file = analyse(&[("k.cl", STRIDED), ("main.cpp", &host(statements))]);
        assert_eq!(sectors(&file), [None], "{statements}");
        let (_, source) = said(&file, "STRIDE").expect("listed");
        assert_eq!(source, "-D STRIDE=…", "{statements}");
    }
}

#[test]
fn of_several_builds_the_first_is_taken_and_said_to_be() {
    let host = host(
        "clBuildProgram(program, 0, 0, \"-D STRIDE=2\", 0, 0);\n\
         clBuildProgram(program, 0, 0, \"-D STRIDE=4\", 0, 0);",
    );
    let file = analyse(&[("k.cl", STRIDED), ("main.c", &host)]);
    assert_eq!(sectors(&file), [Some(8.0)]);
    let (value, source) = said(&file, "STRIDE").expect("listed");
    assert_eq!(
        (value.as_str(), source.as_str()),
        ("2", "build options, main.c:5, the first of several builds")
    );
}

#[test]
fn each_program_has_the_options_it_is_built_with() {
    let host = "int main() {\n\
                \x20 cl_program other = make(\"other.cl\"), own = make(\"k.cl\");\n\
                \x20 clBuildProgram(other, 0, 0, \"-D STRIDE=2\", 0, 0);\n\
                \x20 clBuildProgram(own, 0, 0, \"-D STRIDE=8\", 0, 0);\n\
                \x20 cl_kernel a = clCreateKernel(other, \"another\", 0);\n\
                \x20 cl_kernel b = clCreateKernel(own, \"strided\", 0);\n}\n";
    let file = analyse(&[("k.cl", STRIDED), ("main.c", host)]);
    assert_eq!(sectors(&file), [Some(32.0)]);
}

#[test]
fn the_users_own_definition_counts_more() {
    let host = host("clBuildProgram(program, 0, 0, \"-D STRIDE=32\", 0, 0);");
    let mut settings = Settings::default();
    settings.defines.insert("STRIDE".to_owned(), "2".to_owned());
    let file = analyse_with(&[("k.cl", STRIDED), ("main.c", &host)], &settings);
    assert_eq!(sectors(&file), [Some(8.0)]);
    assert_eq!(said(&file, "STRIDE"), None);
}

#[test]
fn a_program_in_a_string_literal_is_built_with_its_hosts_options() {
    let host = "const int STRIDE = 1;\n\
                const char *text = R\"(\n\
                __kernel void strided(__global float *p) { p[get_global_id(0) * STRIDE] = 0; }\n\
                )\";\n\
                int main() {\n\
                \x20 cl_program program = clCreateProgramWithSource(context, 1, &text, 0, 0);\n\
                \x20 clBuildProgram(program, 0, 0, \"-DSTRIDE=4\", 0, 0);\n\
                \x20 cl_kernel kernel = clCreateKernel(program, \"strided\", 0);\n}\n";
    let file = analyse(&[("main.cpp", host)]);
    assert_eq!(sectors(&file), [Some(16.0)]);
    assert_eq!(
        said(&file, "STRIDE"),
        Some(("4".into(), "build options, main.cpp:7".into()))
    );
}

#[test]
fn a_makefile_says_what_its_compiler_defines_and_where_headers_are() {
    let kernel = "#include \"sizes.h\"\n\
                  __global__ void k(float *a) { a[threadIdx.x * STRIDE * WIDTH] = 1.f; }\n";
    let header = "#pragma once\n#define WIDTH 4\n";
    let makefile = "CFLAGS := -arch=sm_60 -I../shared\n\
                    ifneq ($(WIDE),yes)\n  CFLAGS += -DSTRIDE=2\nendif\n\
                    %.o: %.cu\n\tnvcc $(CFLAGS) -c $< -o $@\n";
    let files = [
        ("code/k.cu", kernel),
        ("shared/sizes.h", header),
        ("code/Makefile", makefile),
    ];
    let file = analyse(&files);
    assert_eq!(sectors(&file), [Some(32.0)]);
    assert_eq!(said(&file, "macro"), None);
    // It says nothing of the GPU that the program is to run on.
    assert_eq!(file.profile.id, analyse(&files[..1]).profile.id);
    // Without it the stride is not known.
    let alone = analyse(&files[..2]);
    assert_eq!(sectors(&alone), [None]);
}

const TILED: &str = "#ifndef TS\n#define TS 8\n#endif\n\
    __kernel void mm(__global const float *a, __global float *c, int n) {\n\
    \x20 __local float tile[TS][TS];\n\
    \x20 tile[get_local_id(1)][get_local_id(0)] = a[get_global_id(1) * n + get_global_id(0)];\n\
    \x20 barrier(CLK_LOCAL_MEM_FENCE);\n\
    \x20 c[get_global_id(1) * n + get_global_id(0)] = tile[get_local_id(0)][get_local_id(1)];\n}\n";

#[test]
fn options_that_a_run_puts_together_define_what_it_says() {
    for (options, given) in [
        (
            "sprintf(options, \"-DTS=%d\", ts); build(program, options);",
            "-t 32",
        ),
        (
            "snprintf(options, sizeof options, \"-DTS=%d -cl-mad-enable\", ts); build(program, options);",
            "-t 32",
        ),
        ("strcpy(options, \"-DTS=32\"); build(program, options);", ""),
        ("build(program, \"-D TS=32\");", ""),
    ] {
        let host = format!(
            "#include <CL/cl.h>\n\
             void build(cl_program program, const char *options) {{\n\
             \x20 if (clBuildProgram(program, 0, NULL, options, NULL, NULL) != CL_SUCCESS) exit(1);\n}}\n\
             int main(int argc, char **argv) {{\n\
             \x20 int ts = 16; char options[64];\n\
             \x20 for (int i = 1; i < argc; i++) if (!strcmp(argv[i], \"-t\")) ts = atoi(argv[++i]);\n\
             \x20 cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);\n\
             \x20 {options}\n\
             \x20 cl_kernel kernel = clCreateKernel(program, \"mm\", NULL);\n\
             \x20 size_t global[2] = {{1024, 1024}}, local[2] = {{(size_t)ts, (size_t)ts}};\n\
             \x20 clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 0, NULL, NULL);\n}}\n"
        );
        let makefile = format!("run: main\n\t./main {given}\n");
        let root = tempfile::tempdir().expect("a folder");
        for (name, text) in [
            ("main.c", &*host),
            ("mm.cl", TILED),
            ("Makefile", &makefile),
        ] {
            std::fs::write(root.path().join(name), text).expect("written");
        }
        let files = std::sync::Arc::new(warplens_base::DiskFiles::new());
        let project = warplens_db::Project::new(files, vec![root.path().to_path_buf()]);
        let file = Engine::with_project(Profiles::builtin(), project)
            .analyze(
                &Document::new(TILED, Language::OpenCl),
                &root.path().join("mm.cl"),
                &Settings::default(),
                &Overrides::default(),
                &Cancel::default(),
            )
            .expect("not cancelled");
        let facts = &file.kernels[0].analysis.facts;
        assert_eq!(facts.static_shared_bytes, 32 * 32 * 4, "{options}");
        let said = facts
            .assumptions
            .iter()
            .any(|one| one.symbol.is_named("TS") && one.value == "32");
        assert!(said, "{options}: {:?}", facts.assumptions);
    }
}
