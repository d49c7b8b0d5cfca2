//! The files on the disk and the buffers in front of them.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tempfile::tempdir;
use warplens_base::{DiskFiles, EntryKind, Files, NoFiles, OpenFiles, normalise};

fn text(files: &dyn Files, path: &Path) -> Option<String> {
    files.read(path).map(|file| file.text.to_string())
}

/// Writes a file that looks as if it had been there for a while.
fn write_old(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_mins(1))
        .unwrap();
}

#[test]
fn paths_are_normalised_as_text() {
    let table = [
        ("a/../b", "b"),
        ("/a/./b//c/", "/a/b/c"),
        ("/../a", "/a"),
        ("../../a/../b", "../../b"),
        ("a/..", "."),
        ("", "."),
        ("./x.cu", "x.cu"),
        ("/", "/"),
        ("/a b/ä/..", "/a b"),
    ];
    for (path, expected) in table {
        assert_eq!(
            normalise(Path::new(path)).to_str(),
            Some(expected),
            "{path}"
        );
    }
}

#[test]
fn what_is_no_text_is_not_read() {
    let folder = tempdir().unwrap();
    let files = DiskFiles::new();
    let of = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        assert!(files.exists(&path), "{name}");
        text(&files, &path)
    };
    assert_eq!(of("plain.cu", b"int x;\r\n").as_deref(), Some("int x;\r\n"));
    assert_eq!(of("empty.cu", b"").as_deref(), Some(""));
    // One character for one byte, so that columns stay.
    assert_eq!(of("latin.cu", b"// \xE4\n").as_deref(), Some("// ?\n"));
    assert_eq!(of("nul.cu", b"int\0x;"), None);
    let mut late = vec![b' '; 8 << 10];
    late.push(0);
    assert_eq!(
        of("late nul.cu", &late).map(|text| text.len()),
        Some(late.len())
    );
    assert_eq!(
        of("largest.cu", &vec![b' '; 8 << 20]).map(|text| text.len()),
        Some(8 << 20)
    );
    assert_eq!(of("too large.cu", &vec![b' '; (8 << 20) + 1]), None);
    assert!(!files.exists(folder.path()), "a folder is no file");
    assert!(!files.exists(&folder.path().join("none")));
    assert_eq!(text(&files, &folder.path().join("none")), None);
    assert_eq!(files.generation(), 0, "nothing changed");
}

#[test]
fn one_path_in_two_spellings_is_one_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.cu");
    fs::write(&path, "x").unwrap();
    let files = DiskFiles::new();
    let one = files.read(&path).unwrap();
    let other = files.read(&folder.path().join("no/../a.cu")).unwrap();
    assert!(Arc::ptr_eq(&one, &other));
    assert_eq!(&*one.path, normalise(&path));
}

#[test]
fn equal_texts_have_equal_hashes() {
    let folder = tempdir().unwrap();
    let files = DiskFiles::new();
    for (name, text) in [("a", "same"), ("b", "same"), ("c", "Same")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let hash = |name: &str| files.read(&folder.path().join(name)).unwrap().hash;
    assert_eq!(hash("a"), hash("b"));
    assert_ne!(hash("a"), hash("c"));
}

#[test]
fn a_change_on_the_disk_is_noticed_at_the_next_look() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.cu");
    write_old(&path, "one");
    let files = DiskFiles::new();
    assert_eq!(text(&files, &path).as_deref(), Some("one"));
    let before = files.generation();

    fs::write(&path, "three").unwrap();
    files.look_again();
    assert_eq!(text(&files, &path).as_deref(), Some("three"));
    assert!(files.generation() > before);
    let before = files.generation();

    // The same length within one tick of the file system's clock: the file is young, so it is read again.
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "tree!").unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    files.look_again();
    assert!(files.exists(&path));
    assert_eq!(text(&files, &path).as_deref(), Some("tree!"));
    assert!(files.generation() > before);
    let before = files.generation();

    fs::remove_file(&path).unwrap();
    files.look_again();
    assert_eq!(text(&files, &path), None);
    assert!(files.generation() > before);
    let before = files.generation();

    fs::write(&path, "back").unwrap();
    files.look_again();
    assert!(files.exists(&path));
    assert!(files.generation() > before);
    assert_eq!(text(&files, &path).as_deref(), Some("back"));
}

#[test]
fn a_new_time_stamp_alone_changes_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.cu");
    write_old(&path, "same");
    let files = DiskFiles::new();
    assert_eq!(text(&files, &path).as_deref(), Some("same"));
    fs::write(&path, "same").unwrap();
    files.look_again();
    let generation = files.generation();
    assert_eq!(text(&files, &path).as_deref(), Some("same"));
    assert_eq!(files.generation(), generation);
}

#[test]
fn forgetting_asks_the_disk_at_once() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.cu");
    let files = DiskFiles::new();
    assert!(!files.exists(&path));
    write_old(&path, "one");
    assert!(
        !files.exists(&path),
        "a negative answer is kept until it is told to be out of date"
    );
    files.forget(&folder.path().join("./a.cu"));
    assert_eq!(files.generation(), 1);
    assert_eq!(text(&files, &path).as_deref(), Some("one"));
    write_old(&path, "two");
    files.forget(&path);
    assert_eq!(text(&files, &path).as_deref(), Some("two"));
}

#[test]
fn the_cache_is_bounded() {
    let folder = tempdir().unwrap();
    let files = DiskFiles::new();
    let large = " ".repeat(7 << 20);
    let paths: Vec<PathBuf> = (0..12)
        .map(|at| folder.path().join(format!("{at}.cu")))
        .collect();
    for path in &paths {
        write_old(path, &large);
        assert!(files.read(path).is_some());
    }
    // The first was given up: nothing else holds it, so it is read anew, and that is no change.
    let first = files.read(&paths[0]).unwrap();
    assert_eq!(first.text.len(), large.len());
    assert_eq!(files.generation(), 0);
    let weak: Vec<_> = paths
        .iter()
        .map(|path| Arc::downgrade(&files.read(path).unwrap()))
        .collect();
    let kept = weak.iter().filter(|file| file.strong_count() > 0).count();
    assert!((1..=9).contains(&kept), "{kept} files of 7 MiB are kept");

    // Given up and changed: the change is noticed all the same.
    let gone = weak
        .iter()
        .position(|file| file.strong_count() == 0)
        .unwrap();
    write_old(&paths[gone], "other");
    assert_eq!(text(&files, &paths[gone]).as_deref(), Some("other"));
    assert_eq!(files.generation(), 1);
}

#[test]
fn the_paths_remembered_are_bounded() {
    let folder = tempdir().unwrap();
    let files = DiskFiles::new();
    let asked = |range: std::ops::Range<u32>| {
        range.for_each(|at| assert!(!files.exists(&folder.path().join(at.to_string()))));
    };
    asked(0..200_000);
    assert_eq!(files.generation(), 0);
    // Some are given up. Who relies on what was said of those must ask again.
    asked(200_000..200_001);
    assert_eq!(files.generation(), 1);
    asked(200_001..201_000);
    assert_eq!(files.generation(), 1, "not for each path");
}

#[test]
fn open_buffers_stand_in_front_of_the_disk() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.cu");
    write_old(&path, "disk");
    let files = OpenFiles::new(DiskFiles::new());
    assert_eq!(text(&files, &path).as_deref(), Some("disk"));

    let mut last = files.generation();
    let mut changed = |files: &OpenFiles<DiskFiles>| {
        let grown = files.generation() > last;
        last = files.generation();
        grown
    };
    files.set(&folder.path().join("./a.cu"), "typed");
    assert!(changed(&files));
    assert_eq!(text(&files, &path).as_deref(), Some("typed"));
    files.set(&path, "typed");
    assert!(!changed(&files), "the same text again");
    files.set(&path, "typed more");
    assert!(changed(&files));
    files.close(&path);
    assert!(changed(&files));
    assert_eq!(text(&files, &path).as_deref(), Some("disk"));
    files.close(&path);
    assert!(!changed(&files), "it was closed already");
    files.inner().forget(&path);
    assert!(changed(&files));

    let unsaved = folder.path().join("unsaved.cu");
    assert!(!files.exists(&unsaved));
    files.set(&unsaved, "\0 any text");
    assert!(files.exists(&unsaved));
    assert_eq!(text(&files, &unsaved).as_deref(), Some("\0 any text"));
}

#[test]
fn no_files_has_none() {
    assert!(NoFiles.read(Path::new("/")).is_none());
    assert!(!NoFiles.exists(Path::new("/etc/passwd")));
    assert_eq!(NoFiles.generation(), 0);
}

proptest! {
    #[test]
    fn normal_paths_stay(path in "[./a ]{0,16}") {
        let once = normalise(Path::new(&path));
        prop_assert_eq!(normalise(&once), once.clone());
        let parts: Vec<_> = once.components().collect();
        for pair in parts.windows(2) {
            prop_assert!(pair[1] != Component::ParentDir || pair[0] == Component::ParentDir);
        }
        prop_assert!(parts == [Component::CurDir] || !parts.contains(&Component::CurDir));
        prop_assert_eq!(once.is_absolute(), path.starts_with('/'));
        // A cache keyed by normal paths sees one file however it is spelled.
        let files = OpenFiles::new(NoFiles);
        files.set(Path::new(&path), "x");
        prop_assert!(files.exists(&once) && files.exists(Path::new(&path)));
    }
}

#[test]
fn folders_are_listed_in_order_with_what_is_open_in_them() {
    let folder = tempdir().unwrap();
    for name in ["b.cu", "a.cu", "inner/c.cu"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let files = OpenFiles::new(DiskFiles::new());
    let names = |files: &OpenFiles<DiskFiles>| {
        let entries = files.list(folder.path());
        let name = |entry: &warplens_base::Entry| {
            let name = entry.path.file_name().unwrap().to_string_lossy();
            (name.into_owned(), entry.kind == EntryKind::Folder)
        };
        entries.iter().map(name).collect::<Vec<_>>()
    };
    let named = |names: &[(&str, bool)]| {
        let owned = |(name, folder): &(&str, bool)| ((*name).to_owned(), *folder);
        names.iter().map(owned).collect::<Vec<_>>()
    };
    let before = named(&[("a.cu", false), ("b.cu", false), ("inner", true)]);
    assert_eq!(names(&files), before);
    files.set(&folder.path().join("aa.cu"), "unsaved");
    files.set(&folder.path().join("b.cu"), "typed");
    let open = named(&[
        ("a.cu", false),
        ("aa.cu", false),
        ("b.cu", false),
        ("inner", true),
    ]);
    assert_eq!(names(&files), open);
    files.close(&folder.path().join("aa.cu"));
    fs::remove_file(folder.path().join("a.cu")).unwrap();
    assert_eq!(names(&files), before, "no change was reported");
    files.look_again();
    assert_eq!(names(&files), named(&[("b.cu", false), ("inner", true)]));
    assert_eq!(files.list(&folder.path().join("none")).len(), 0);
}

#[test]
fn typing_in_a_buffer_that_was_not_read_changes_no_answer() {
    let files = OpenFiles::new(NoFiles);
    let path = Path::new("/a/b.cu");
    assert!(files.set(path, "opened"));
    let (generation, existence) = (files.generation(), files.existence());
    assert!(!files.set(path, "typed"));
    assert_eq!(files.generation(), generation);
    assert_eq!(text(&files, path).as_deref(), Some("typed"));
    assert!(files.set(path, "typed more"));
    assert!(files.generation() > generation);
    assert_eq!(files.existence(), existence, "the file is still there");
}

#[test]
fn texts_that_changed_are_told_one_by_one() {
    let files = OpenFiles::new(NoFiles);
    let [a, b] = ["/p/a.cu", "/p/b.cu"].map(Path::new);
    files.set(a, "1");
    files.set(b, "1");
    let before = files.generation();
    assert_eq!(files.changed_since(before), Some(Vec::new()));
    // A text that was not read changes no answer.
    files.set(a, "2");
    assert_eq!(files.changed_since(before), Some(Vec::new()));
    for text in ["3", "4"] {
        files.read(a);
        files.set(a, text);
    }
    assert_eq!(files.changed_since(before), Some(vec![a.to_owned()]));
    files.read(b);
    files.set(b, "2");
    assert_eq!(
        files.changed_since(before),
        Some(vec![a.to_owned(), b.to_owned()])
    );
    // A file that is new is more than a text.
    files.set(Path::new("/p/c.cu"), "1");
    assert_eq!(files.changed_since(before), None);
    assert_eq!(files.changed_since(files.generation()), Some(Vec::new()));
}

#[test]
fn a_text_that_was_read_on_the_disk_before_it_was_opened_counts_as_read() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.cu");
    write_old(&path, "disk");
    let files = OpenFiles::new(DiskFiles::new());
    assert_eq!(text(&files, &path).as_deref(), Some("disk"));
    assert!(!files.set(&path, "disk"), "no reader has another text");
    let generation = files.generation();
    assert!(
        files.set(&path, "typed"),
        "who read the disk's has an old one"
    );
    assert!(files.generation() > generation);
    assert!(
        !files.set(&path, "typed more"),
        "no reader has what was typed"
    );
}
