//! A page in headless Chromium: layout and errors. The program's tests use it too.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub fn browser() -> Result<PathBuf, String> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|place| names.map(|name| place.join(name)))
        .find(|file| file.is_file());
    found.ok_or_else(|| "no Chromium is installed: install chromium".into())
}

pub struct Said {
    pub stdout: String,
    pub stderr: String,
}

pub fn browse(browser: &Path, page: &Path, directory: &Path, options: &[&str]) -> Said {
    let profile = tempfile::tempdir_in(directory).expect("a profile");
    let (stdout, stderr) = (profile.path().join("stdout"), profile.path().join("stderr"));
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--enable-logging=stderr",
        ])
        .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
        .args(options)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&stdout).expect("a file for its output"))
        .stderr(fs::File::create(&stderr).expect("a file for its messages"))
        .spawn()
        .expect("the browser starts");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the browser can be waited for") {
            break status;
        }
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().expect("the browser can be stopped");
            panic!(
                "the browser did not end within a minute; it said {}",
                fs::read_to_string(&stderr).unwrap_or_default()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let read =
        |file: &Path| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
    let said = Said { stdout: read(&stdout), stderr: read(&stderr) };
    assert!(status.success(), "the browser failed: {}", said.stderr);
    said
}

const COLLECT: &str = r#"<script>
window.wrong = [];
window.addEventListener("error", (event) => window.wrong.push(String(event.message)));
window.addEventListener("securitypolicyviolation", (event) => window.wrong.push("policy: " + event.violatedDirective));
for (const kind of ["error", "warn"]) console[kind] = (...texts) => window.wrong.push(texts.join(" "));
</script>"#;

/// Inspects the laid-out page and writes the result into it, as JSON that HTML serialisation leaves
/// unchanged.
const LOOK: &str = r#"<script>
addEventListener("load", () => {
  const seen = { wrong: window.wrong, width: innerWidth, wide: document.documentElement.scrollWidth, figures: [], theme: [] };
  const tip = document.getElementById("tip");
  const covers = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
  for (const figure of document.querySelectorAll("figure")) {
    const shown = Array.from(figure.querySelectorAll(".plot svg")).filter((svg) => svg.getBoundingClientRect().width > 0);
    const one = { id: figure.id, shown: shown.length, overlaps: [], outside: [], hover: "", keys: "" };
    seen.figures.push(one);
    if (shown.length !== 1) continue;
    const svg = shown[0];
    const box = svg.getBoundingClientRect();
    one.width = box.width;
    one.height = box.height;
    one.curves = svg.querySelectorAll(".curve").length;
    one.title = svg.querySelector("title").textContent;
    one.marks = svg.querySelectorAll("[data-at]").length;
    const texts = Array.from(svg.querySelectorAll("text"), (text) => [text.textContent, text.getBoundingClientRect()]);
    one.texts = texts.length;
    texts.forEach(([name, rect], place) => {
      if (rect.width === 0 || rect.height === 0) one.outside.push(name + " has no size");
      if (rect.left < box.left - 1 || rect.right > box.right + 1 || rect.top < box.top - 1 || rect.bottom > box.bottom + 1) one.outside.push(name);
      for (const [other, rect2] of texts.slice(0, place)) if (covers(rect, rect2)) one.overlaps.push(other + " | " + name);
    });
    const cover = Array.from(figure.querySelectorAll(".cover")).find((cover) => cover.getBoundingClientRect().width > 0);
    if (!cover) continue;
    const send = (kind, more) => cover.dispatchEvent(new PointerEvent(kind, { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, ...more }));
    send("pointermove");
    one.hover = tip.hasAttribute("data-on") && getComputedStyle(tip).visibility === "visible" ? tip.innerText : "";
    one.cross = getComputedStyle(svg.querySelector(".cross")).visibility;
    const at = tip.getBoundingClientRect();
    one.tipInside = at.left >= 0 && at.right <= innerWidth;
    send("pointerleave");
    one.gone = getComputedStyle(tip).visibility === "hidden";
    cover.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    one.keys = tip.hasAttribute("data-on") ? tip.innerText : "";
    cover.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  }
  const page = () => {
    const curve = document.querySelector(".curve");
    return getComputedStyle(document.body).backgroundColor + (curve ? " " + getComputedStyle(curve).color : "");
  };
  for (let turn = 0; turn < 4; turn++) {
    seen.theme.push(page());
    document.getElementById("theme").click();
  }
  seen.tables = document.querySelectorAll("table").length;
  seen.scripts = document.querySelectorAll("script").length;
  seen.images = document.querySelectorAll("img, iframe, object, embed, link").length;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen).replace(/[<>&\u00a0]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  parent.document.body.appendChild(out);
});
</script>"#;

/// Puts the page in a frame of a phone's width, which the browser's own window cannot have.
fn framed(page: String, width: u32) -> String {
    if width >= NARROWEST_WINDOW {
        return page;
    }
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!doctype html><meta name=\"color-scheme\" content=\"light dark\"><iframe width=\"{width}\" height=\"900\" style=\"border:0\" srcdoc=\"{page}\"></iframe>"
    )
}

const NARROWEST_WINDOW: u32 = 500;

pub fn look_at(browser: &Path, page: &str, width: u32, dark: bool) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    let page = page.replacen("<meta charset", &format!("{COLLECT}<meta charset"), 1).replacen(
        "</body>",
        &format!("{LOOK}</body>"),
        1,
    );
    let file = directory.path().join("report.html");
    fs::write(&file, framed(page, width)).expect("the page is written");
    let size = format!("--window-size={width},900");
    let scheme = format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 });
    let said = browse(browser, &file, directory.path(), &["--dump-dom", &size, &scheme]);
    let console: Vec<&str> = said.stderr.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "the console is quiet: {console:#?}");
    let start = said.stdout.find("<pre id=\"seen\">").expect("the page was looked at")
        + "<pre id=\"seen\">".len();
    let end = said.stdout[start..].find("</pre>").expect("it ends") + start;
    serde_json::from_str(&said.stdout[start..end]).expect("JSON")
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the names of the figures.
pub fn check(seen: &Value, width: u32) -> Vec<&str> {
    assert_eq!(seen["wrong"], serde_json::json!([]), "nothing goes wrong at {width}");
    assert_eq!(seen["width"], width, "the window is as wide as asked");
    assert!(
        seen["wide"].as_u64() <= Some(u64::from(width)),
        "the page does not scroll sideways at {width}: {}",
        seen["wide"]
    );
    assert_eq!(seen["images"], 0, "nothing is loaded from elsewhere");
    assert_eq!(seen["scripts"], 4, "no name became a script: the page has two, and two look at it");
    let all = seen["figures"].as_array().expect("figures");
    for figure in all {
        let id = text(&figure["id"]);
        assert_eq!(figure["shown"], 1, "{id} is drawn once at {width}");
        assert!(
            figure["width"].as_f64() > Some(200.0) && figure["height"].as_f64() > Some(120.0),
            "{id} has a size: {figure}"
        );
        assert_eq!(
            figure["overlaps"],
            serde_json::json!([]),
            "no text of {id} covers another at {width}"
        );
        assert_eq!(
            figure["outside"],
            serde_json::json!([]),
            "all texts of {id} are within it at {width}"
        );
        assert!(figure["texts"].as_u64() > Some(5) && !text(&figure["title"]).is_empty());
        if figure["marks"].as_u64() > Some(0) {
            assert!(
                text(&figure["hover"]).lines().count() >= 2,
                "{id} shows values where one points: {figure}"
            );
            assert_eq!(figure["cross"], "visible", "{id}");
            assert_eq!(figure["tipInside"], true, "{id}: the values stay within the window");
            assert_eq!(figure["gone"], true, "{id}: the values go with the pointer");
            assert!(!text(&figure["keys"]).is_empty(), "{id} shows values to the keyboard");
        }
    }
    all.iter().map(|figure| text(&figure["id"])).collect()
}
