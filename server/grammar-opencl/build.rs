//! Compiles the generated parser: of the repository's `grammars/opencl`, or of the copy that a package holds.

use std::env;
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let packaged = folder.join("grammar");
    let grammar = if packaged.exists() {
        packaged
    } else {
        folder.join("../../grammars/opencl")
    };
    let source = grammar.join("src");
    let parser = source.join("parser.c");
    println!("cargo:rerun-if-changed={}", parser.display());
    let mut build = cc::Build::new();
    // Other compilers read it as `-u tf-8`.
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|environment| environment == "msvc") {
        build.flag("-utf-8");
    }
    build
        .std("c11")
        .include(&source)
        .file(&parser)
        .flag_if_supported("-Wno-unused-parameter")
        .flag_if_supported("-Wno-unused-but-set-variable")
        .flag_if_supported("-Wno-trigraphs")
        .compile("warplens-grammar-opencl");
}
