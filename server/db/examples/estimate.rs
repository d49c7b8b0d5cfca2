//! What the kernels of a file are predicted to take: `cargo run --example estimate -- kernel.cu [GPU]`.

use std::path::Path;
use std::process::ExitCode;
use std::thread;

use warplens_db::settings::Settings;
use warplens_db::{
    Document, Engine, Language, ModelId, Overrides, Profiles, STACK, language_by_content, wire,
};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(file), gpu) = (words.next(), words.next()) else {
        eprintln!("which file? (estimate FILE [GPU])");
        return ExitCode::from(2);
    };
    // The analysis recurses as deep as the source nests.
    let asked = thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || estimate(Path::new(&file), gpu));
    match asked.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(answer))) => show(&answer),
        Ok(Ok(Err(why))) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn estimate(path: &Path, gpu: Option<String>) -> Result<wire::EstimateDocument, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let language = language_by_content(Language::from_path(path), &text);
    let settings = Settings {
        gpu,
        ..Settings::default()
    };
    Engine::new(Profiles::builtin()).estimate(
        &Document::new(&text, language),
        path,
        &settings,
        &Overrides::default(),
        &[],
        &[ModelId::Auto],
        &[],
    )
}

#[allow(clippy::print_stdout, reason = "a program of its own")]
fn show(answer: &wire::EstimateDocument) {
    for kernel in &answer.results {
        let auto = &kernel.estimates["auto"];
        let time = auto
            .time_ms
            .map_or("no time".to_owned(), |time| format!("{time:.4} ms"));
        let bound = auto.bottleneck.unwrap_or("unknown");
        println!(
            "{} on {}: {time}, bound by {bound}",
            kernel.kernel, kernel.gpu
        );
    }
}
