//! The folders of fio's dialect know only those below them.

use std::fs;
use std::path::Path;

const LAYERS: [&str; 4] = ["options", "plan", "run", "report"];

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn a_folder_imports_only_folders_below_it() {
    let fio = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fio");
    for (index, layer) in LAYERS.iter().enumerate() {
        let mut files = Vec::new();
        sources(&fio.join(layer), &mut files);
        assert!(!files.is_empty(), "{layer} has files");
        for (path, text) in files {
            for above in &LAYERS[index + 1..] {
                assert!(
                    !text.contains(&format!("crate::fio::{above}::")),
                    "{path} uses {above}, which is above {layer}"
                );
            }
        }
    }
}
