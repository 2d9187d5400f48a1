//! The documentation is a book: its summary has every page, and every link leads somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if fenced || line.starts_with("    ") {
            continue;
        }
        // Every second part is code.
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        found.extend(plain.split("](").skip(1).filter_map(|rest| {
            let (target, _) = rest.split_once(')')?;
            Some(target.split(' ').next().unwrap_or_default().to_owned())
        }));
    }
    found
}

/// Returns the anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|one| one.is_alphanumeric() || " -_".contains(*one));
        kept.map(|one| if one == ' ' { '-' } else { one }).collect()
    };
    text.lines().filter(|line| line.starts_with('#')).map(heading).collect()
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(format!("{REPOSITORY}/docs")).unwrap();
    let mut pages: Vec<PathBuf> = docs
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.extend(
        ["README.md", "CONTRIBUTING.md", "contrib/README.md", "python/README.md"]
            .map(|name| Path::new(REPOSITORY).join(name)),
    );
    pages
}

fn broken(page: &Path) -> Vec<String> {
    let text = read(page);
    let mut broken = Vec::new();
    for link in links(&text) {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (name, anchor) = link.split_once('#').map_or((&*link, None), |(a, b)| (a, Some(b)));
        let target =
            if name.is_empty() { page.to_owned() } else { page.parent().unwrap().join(name) };
        let there = match anchor {
            _ if !target.exists() => false,
            Some(anchor) => anchors(&read(&target)).contains(anchor),
            None => true,
        };
        if !there {
            broken.push(format!("{}: {link}", page.display()));
        }
    }
    broken
}

#[test]
fn every_link_leads_somewhere() {
    let broken: Vec<String> = pages().iter().flat_map(|page| broken(page)).collect();
    assert_eq!(broken, [""; 0]);
}

#[test]
fn the_summary_has_every_page_once() {
    let docs = Path::new(REPOSITORY).join("docs");
    let mut listed = links(&read(&docs.join("SUMMARY.md")));
    listed.sort();
    let mut there: Vec<String> = pages()
        .iter()
        .filter(|page| page.parent() == Some(&docs))
        .map(|page| page.file_name().unwrap().to_string_lossy().into_owned())
        .filter(|name| name != "SUMMARY.md")
        .collect();
    there.sort();
    assert_eq!(listed, there);
    assert!(read(&Path::new(REPOSITORY).join("book.toml")).contains("\nsrc = \"docs\"\n"));
}

#[test]
fn links_to_nothing_are_found() {
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("page.md");
    let text = "# A title: one\n[a](#a-title-one) [b](#another) ![c](none.png) `[d](code)`\n[e](page.md) [f](https://example.org)\n";
    fs::write(&page, text).unwrap();
    let broken = broken(&page);
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert!(broken[0].ends_with("#another") && broken[1].ends_with("none.png"));
}
