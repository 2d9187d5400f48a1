//! Links of a site that lead nowhere.

use crate::pages::joined;
use anyhow::{Context, Result};
use scraper::{Html, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let html = Html::parse_document(text);
        let every = Selector::parse("*").expect("a constant");
        let attributes = |name: &str| -> Vec<String> {
            html.select(&every)
                .filter_map(|one| one.value().attr(name))
                .map(str::to_owned)
                .collect()
        };
        let links = ["href", "src"].iter().flat_map(|name| attributes(name)).collect();
        Self { links, anchors: attributes("id").into_iter().collect() }
    }
}

/// As `page: link`; does not visit other sites.
pub(crate) fn broken(site: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    read_pages(site, &mut pages)?;
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            if !leads_somewhere(path, link, &pages) {
                let name = path.strip_prefix(site).unwrap_or(path);
                broken.push(format!("{}: {link}", name.display()));
            }
        }
    }
    Ok(broken)
}

fn read_pages(directory: &Path, pages: &mut BTreeMap<PathBuf, Page>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            read_pages(&path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            pages.insert(path, Page::parse(&text));
        }
    }
    Ok(())
}

fn leads_somewhere(from: &Path, link: &str, pages: &BTreeMap<PathBuf, Page>) -> bool {
    let scheme = link.split_once(':').is_some_and(|(scheme, _)| {
        scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one))
    });
    if scheme || link.starts_with("//") {
        return true;
    }
    let (name, anchor) = link.split_once('#').unwrap_or((link, ""));
    let name = name.split('?').next().unwrap_or_default();
    let target = if name.is_empty() { from.to_owned() } else { joined(from, name) };
    match pages.get(&target) {
        Some(page) => anchor.is_empty() || page.anchors.contains(anchor),
        None => target.exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_nothing_are_found() {
        let site = tempfile::tempdir().unwrap();
        let page = "<h1 id='title'>T</h1><a href='#title'>a</a><a href='#another'>b</a>\
            <img src='none.png'><a href='deeper/page.html#top'>c</a><a href='deeper/page.html#no'>d</a>\
            <a href='https://example.org/x'>e</a><a href='mailto:a@example.org'>f</a>\
            <code>[g](gone.md)</code><a href='page.html?x=1'>h</a>";
        fs::write(site.path().join("page.html"), page).unwrap();
        fs::create_dir(site.path().join("deeper")).unwrap();
        let deeper = "<p id=top><a href='../page.html#title'>up</a><a href='../gone.html'>up</a>";
        fs::write(site.path().join("deeper/page.html"), deeper).unwrap();
        let found = broken(site.path()).unwrap();
        let expected = [
            "deeper/page.html: ../gone.html",
            "page.html: #another",
            "page.html: deeper/page.html#no",
            "page.html: none.png",
        ];
        assert_eq!(found, expected);
    }
}
