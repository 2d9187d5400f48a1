//! Builds the documentation as a site: `halfpower-site REPOSITORY REPORT DIRECTORY`.
//!
//! REPORT is the directory of a study, whose report the site embeds. A link that leads nowhere is
//! an error. `packaging/site/build` runs the study and this program.

mod links;
mod pages;

use anyhow::{Context, Result, bail};
use mdbook_driver::MDBook;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

const EXAMPLE: &str = "example";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [repository, report, directory] = arguments.as_slice() else {
        eprintln!("usage: halfpower-site REPOSITORY REPORT DIRECTORY");
        return ExitCode::from(2);
    };
    match build(Path::new(repository), Path::new(report), Path::new(directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("halfpower-site: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The directory must not exist yet.
fn build(repository: &Path, report: &Path, directory: &Path) -> Result<()> {
    if directory.exists() {
        bail!("{} exists: remove it, or name another directory", directory.display());
    }
    let mut book =
        MDBook::load(repository).with_context(|| format!("{} is no book", repository.display()))?;
    // The book takes a relative directory as one of the repository's.
    book.config.build.build_dir = std::path::absolute(directory)?;
    let files = pages::complete(&mut book.book, repository)?;
    book.build().context("building the book")?;
    for (from, to) in files {
        copy(&repository.join(from), &directory.join(to))?;
    }
    for name in ["report.html", "results.json"] {
        copy(&report.join(name), &directory.join(EXAMPLE).join(name))?;
    }
    let broken = links::broken(directory)?;
    if !broken.is_empty() {
        bail!("links that lead nowhere:\n{}", broken.join("\n"));
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    #[test]
    fn the_documentation_builds_and_every_link_leads_somewhere() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("report.html"), "<title>report</title>").unwrap();
        fs::write(place.path().join("results.json"), "{}").unwrap();
        let site = place.path().join("site");
        build(Path::new(REPOSITORY), place.path(), &site).unwrap();
        let first = fs::read_to_string(site.join("index.html")).unwrap();
        assert!(first.contains("Getting started"), "{first}");
        let example = fs::read_to_string(site.join("example.html")).unwrap();
        assert!(example.contains("src=\"example/report.html\""), "{example}");
    }

    #[test]
    fn an_existing_directory_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let error = build(Path::new(REPOSITORY), place.path(), place.path()).unwrap_err();
        assert!(error.to_string().contains("exists: remove it"), "{error}");
    }
}
