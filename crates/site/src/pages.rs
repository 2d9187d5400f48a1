//! The book's pages, and the repository's files to which they link.

use anyhow::{Context, Result, bail};
use mdbook_driver::book::{Book, BookItem, Chapter};
use pulldown_cmark::{Event, Options, Parser, Tag};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

const DOCS: &str = "docs";

/// For files outside `docs/`.
const REPOSITORY: &str = "repository";

/// Adds linked Markdown files outside `docs/` as chapters at the end, and adapts the links. Returns
/// other linked files: path in the repository, place in the site.
pub(crate) fn complete(book: &mut Book, repository: &Path) -> Result<BTreeMap<PathBuf, PathBuf>> {
    let mut linked = Linked { repository, pages: Vec::new(), files: BTreeMap::new() };
    let mut failed = None;
    book.for_each_chapter_mut(|chapter| {
        let Some(path) = &chapter.path else { return };
        match linked.rewritten(&chapter.content, &Path::new(DOCS).join(path)) {
            Ok(content) => chapter.content = content,
            Err(error) => failed = failed.take().or(Some(error)),
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let mut done = 0;
    while let Some(path) = linked.pages.get(done).cloned() {
        done += 1;
        let file = repository.join(&path);
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.map_or_else(|| path.display().to_string(), str::to_owned);
        let content = linked.rewritten(&text, &path)?;
        if done == 1 {
            book.push_item(BookItem::PartTitle("Raw tables and files".into()));
        }
        book.push_item(Chapter::new(&title, content, place(&path), Vec::new()));
    }
    Ok(linked.files)
}

struct Linked<'a> {
    repository: &'a Path,
    pages: Vec<PathBuf>,
    files: BTreeMap<PathBuf, PathBuf>,
}

impl Linked<'_> {
    fn rewritten(&mut self, text: &str, from: &Path) -> Result<String> {
        let mut changed = text.to_owned();
        // From the end, so that earlier places stay.
        let mut links: Vec<_> =
            Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter().collect();
        links.reverse();
        for (event, range) in links {
            let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event
            else {
                continue;
            };
            let Some(target) = self.target(&dest_url, from)? else { continue };
            let Some(at) = text[range.clone()].rfind(&*dest_url) else {
                bail!("{}: the link {dest_url} is not written out", from.display());
            };
            let at = range.start + at;
            changed.replace_range(at..at + dest_url.len(), &target);
        }
        Ok(changed)
    }

    /// `None` if the link needs no change.
    fn target(&mut self, link: &str, from: &Path) -> Result<Option<String>> {
        let (name, anchor) =
            link.split_once('#').map_or((link, None), |(name, anchor)| (name, Some(anchor)));
        if name.is_empty() || name.contains(':') || name.starts_with("//") {
            return Ok(None);
        }
        let target = joined(from, name);
        if from.starts_with(DOCS) && target.starts_with(DOCS) {
            return Ok(None);
        }
        if !self.repository.join(&target).is_file() {
            bail!("{}: {link} is no file: link to a file, or write the name alone", from.display());
        }
        let to = place(&target);
        if !target.starts_with(DOCS) {
            if target.extension().is_some_and(|end| end == "md") {
                if !self.pages.contains(&target) {
                    self.pages.push(target);
                }
            } else {
                self.files.insert(target, to.clone());
            }
        }
        let anchor = anchor.map_or_else(String::new, |anchor| format!("#{anchor}"));
        Ok(Some(format!("{}{anchor}", relative(&place(from), &to))))
    }
}

/// The book would make a README its directory's index, without adapting the links to it.
fn place(path: &Path) -> PathBuf {
    if path.ends_with("README.md") {
        return Path::new(REPOSITORY).join(path.with_file_name("about.md"));
    }
    path.strip_prefix(DOCS).map_or_else(|_| Path::new(REPOSITORY).join(path), Path::to_owned)
}

pub(crate) fn joined(from: &Path, name: &str) -> PathBuf {
    let mut path = from.parent().unwrap_or(from).to_owned();
    for part in Path::new(name).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

fn relative(from: &Path, to: &Path) -> String {
    let ups = from.components().count() - 1;
    format!("{}{}", "../".repeat(ups), to.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_right_in_the_site() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("docs/page.md", "");
        write("docs/other.md", "");
        write("data/table.md", "# A table\n[up](../docs/other.md#there) `[x](../no)`");
        write("schema/one.json", "{}");
        let text = "[a](other.md#x) [b](../data/table.md#y) [c](../schema/one.json) [d](https://example.org) [e](#here)";
        let mut book = Book::new();
        book.push_item(Chapter::new("Page", text.into(), "page.md", Vec::new()));
        let files = complete(&mut book, place.path()).unwrap();
        let texts: Vec<&str> = book.chapters().map(|chapter| &*chapter.content).collect();
        assert_eq!(
            texts,
            [
                "[a](other.md#x) [b](repository/data/table.md#y) [c](repository/schema/one.json) [d](https://example.org) [e](#here)",
                "# A table\n[up](../../other.md#there) `[x](../no)`",
            ]
        );
        assert_eq!(book.chapters().nth(1).unwrap().name, "A table");
        let files: Vec<_> = files.into_iter().collect();
        assert_eq!(files, [("schema/one.json".into(), "repository/schema/one.json".into())]);
    }

    #[test]
    fn a_link_to_no_file_is_an_error_that_names_page_and_link() {
        let place = tempfile::tempdir().unwrap();
        let mut book = Book::new();
        book.push_item(Chapter::new("Page", "[a](../gone)".into(), "page.md", Vec::new()));
        let error = complete(&mut book, place.path()).unwrap_err();
        assert!(error.to_string().starts_with("docs/page.md: ../gone is no file"), "{error}");
    }
}
