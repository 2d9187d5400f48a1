//! Other machines' `/proc`, `/sys` and `/dev`, stored as text because they depend on symbolic
//! links.
//!
//! `[dir]` is the directory of the lines below it; `file = text` is a file (`\n` and `\t` are
//! escapes), `link -> /path` a symbolic link, `dir/` a directory. Paths are the machine's own.

use host::facts::Roots;
use std::path::Path;

pub struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    pub fn new(name: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/sysfs")
            .join(name)
            .with_extension("tree");
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tree = Self { dir: tempfile::tempdir().unwrap() };
        let mut section = String::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((link, target)) = line.split_once(" -> ") {
                let target =
                    tree.dir.path().join(target.strip_prefix('/').expect("targets are absolute"));
                std::os::unix::fs::symlink(target, tree.made(&section, link)).unwrap();
            } else if let Some((file, content)) = line.split_once(" = ") {
                let content = content.replace("\\n", "\n").replace("\\t", "\t") + "\n";
                std::fs::write(tree.made(&section, file), content).unwrap();
            } else {
                let dir =
                    line.strip_suffix('/').unwrap_or_else(|| panic!("no line of a tree: {line}"));
                std::fs::create_dir_all(tree.made(&section, dir)).unwrap();
            }
        }
        tree
    }

    pub fn roots(&self) -> Roots {
        Roots::below(self.dir.path())
    }

    /// `path` is that on the machine, without the leading slash.
    pub fn write(&self, path: &str, content: &str) {
        std::fs::write(self.made("", path), content).unwrap();
    }

    fn made(&self, section: &str, name: &str) -> std::path::PathBuf {
        let path = self.dir.path().join(section).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}
