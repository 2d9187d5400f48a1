//! The page of a recorded application in a headless browser. Skipped without Chromium, unless
//! HALFPOWER_REQUIRE=all.

#[path = "support/browser.rs"]
mod browser;

use application::profile::{Profile, profile_of};
use apptrace::{Access, Event, Interface, Kind, OpenFile, Request, TracedFile};
use results::Program;

fn program() -> Program {
    Program { name: "halfpower".into(), version: "0".into(), arguments: Vec::new() }
}

fn profile() -> Profile {
    let names = ["/data/wal/00000001", "/data/<script>alert(1)</script>\u{1b}[31m"];
    let files = names.map(|name| {
        Event::File(TracedFile {
            name: name.into(),
            kind: Kind::Regular,
            size_bytes: Some(1 << 26),
        })
    });
    let request = |at_us: u64, file, access, offset, bytes: u64| {
        Event::Request(Request {
            at_ns: at_us * 1000,
            duration_ns: Some(400_000 + at_us % 7 * 100_000),
            thread: Some(0),
            file,
            access,
            interface: Interface::SystemCall,
            offset: Some(offset),
            bytes,
            result: Some(bytes as i64),
            open: OpenFile::default(),
        })
    };
    let requests = (0..2000_u64).flat_map(|number| {
        let at = number * 10_000;
        [
            request(at, 0, Access::Write, number * 8192, 8192),
            request(at + 1500, 0, Access::SyncData, 0, 0),
            request(at + 5000, 1, Access::Read, number * 7919 % 8192 * 8192, 8192),
        ]
    });
    profile_of(files.into_iter().chain(requests).map(Ok)).unwrap()
}

#[test]
fn names_never_become_markup() {
    let page = report::profile::html(&profile(), "app & co", &program()).unwrap();
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"));
    assert!(!page.contains('\u{1b}') && page.contains("app &amp; co"));
    // A map for each file and the bars; two courses, each for wide and for narrow pages.
    for (class, number) in [("course", 3), ("course wide", 2), ("course narrow", 2)] {
        assert_eq!(page.matches(&format!("<svg class=\"{class}\"")).count(), number, "{class}");
    }
    assert!(page.len() < 400_000, "{}", page.len());
}

#[test]
fn a_profile_in_both_widths_and_themes() {
    let chromium = match browser::browser() {
        Ok(chromium) => chromium,
        Err(why) => {
            let required = std::env::var("HALFPOWER_REQUIRE").as_deref() == Ok("all");
            assert!(!required, "HALFPOWER_REQUIRE=all and {why}");
            return eprintln!("skipped: {why}");
        }
    };
    let page = report::profile::html(&profile(), "app.hptrace", &program()).unwrap();
    for width in [1400, 400] {
        for dark in [false, true] {
            let seen = browser::look_at(&chromium, &page, width, dark);
            browser::check(&seen, width);
            assert_eq!(seen["tables"], 2, "{seen:#}");
        }
    }
}
