//! A page in headless Chromium: what is drawn, and what goes wrong.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The installed browser, or why there is none.
pub fn browser() -> Result<PathBuf, String> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).flat_map(|place| names.map(|name| place.join(name))).find(|file| file.is_file());
    found.ok_or_else(|| "no Chromium is installed".into())
}

/// Collects what goes wrong, before anything else of the page runs.
const COLLECT: &str = r#"<script>
window.wrong = [];
window.addEventListener("error", (event) => window.wrong.push(String(event.message)));
window.addEventListener("securitypolicyviolation", (event) => window.wrong.push("policy: " + event.violatedDirective));
for (const kind of ["error", "warn"]) console[kind] = (...texts) => window.wrong.push(texts.join(" "));
</script>"#;

/// Looks at the page as it is laid out, points at every figure, and writes what it sees into the page.
const LOOK: &str = r#"<script>
addEventListener("load", () => {
  const seen = { wrong: window.wrong, wide: document.documentElement.scrollWidth, tables: document.querySelectorAll("table").length, figures: [] };
  const tip = document.getElementById("tip");
  const covers = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
  for (const figure of document.querySelectorAll("figure")) {
    const shown = Array.from(figure.querySelectorAll(".plot svg")).filter((svg) => svg.getBoundingClientRect().width > 0);
    const one = { id: figure.id, shown: shown.length, overlaps: [], outside: [], hover: "" };
    seen.figures.push(one);
    if (shown.length !== 1) continue;
    const box = shown[0].getBoundingClientRect();
    one.curves = shown[0].querySelectorAll(".curve").length;
    one.marks = shown[0].querySelectorAll("[data-at]").length;
    const texts = Array.from(shown[0].querySelectorAll("text"), (text) => [text.textContent, text.getBoundingClientRect()]);
    texts.forEach(([name, rect], place) => {
      if (rect.left < box.left - 1 || rect.right > box.right + 1 || rect.top < box.top - 1 || rect.bottom > box.bottom + 1) one.outside.push(name);
      for (const [other, rect2] of texts.slice(0, place)) if (covers(rect, rect2)) one.overlaps.push(other + " | " + name);
    });
    const cover = Array.from(figure.querySelectorAll(".cover")).find((cover) => cover.getBoundingClientRect().width > 0);
    if (!cover) continue;
    cover.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
    one.hover = tip.hasAttribute("data-on") ? tip.innerText : "";
    cover.dispatchEvent(new PointerEvent("pointerleave", { bubbles: true }));
  }
  seen.loaded = document.querySelectorAll("img, iframe, object, embed, link").length;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen).replace(/[<>&\u00a0]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  document.body.appendChild(out);
});
</script>"#;

/// What the browser sees of a page in a window of this width.
pub fn look(browser: &Path, page: &Path, width: u32) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(page).unwrap();
    let text = text.replacen("<meta charset", &format!("{COLLECT}<meta charset"), 1).replacen("</body>", &format!("{LOOK}</body>"), 1);
    let file = directory.path().join("page.html");
    fs::write(&file, text).unwrap();
    let output = directory.path().join("stdout");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars"])
        .args(["--disable-component-update", "--disable-sync", "--dump-dom"])
        .arg(format!("--user-data-dir={}", directory.path().join("profile").display()))
        .arg(format!("--window-size={width},900"))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&output).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the browser did not end within a minute");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = fs::read_to_string(&output).unwrap();
    let start = said.find("<pre id=\"seen\">").expect("the page was looked at") + "<pre id=\"seen\">".len();
    let end = said[start..].find("</pre>").unwrap() + start;
    serde_json::from_str(&said[start..end]).unwrap()
}

/// All that must hold of any page: nothing goes wrong or is loaded, every figure is drawn once with texts beside each other and values where
/// one points. Gives the figures' names.
pub fn check(seen: &Value, width: u32) -> Vec<String> {
    assert_eq!(seen["wrong"], serde_json::json!([]), "nothing goes wrong");
    assert_eq!(seen["loaded"], 0, "nothing is loaded from elsewhere");
    assert!(seen["wide"].as_u64() <= Some(u64::from(width)), "the page does not scroll sideways: {}", seen["wide"]);
    let figures = seen["figures"].as_array().unwrap();
    for figure in figures {
        assert_eq!(figure["shown"], 1, "drawn once: {figure}");
        assert_eq!(figure["overlaps"], serde_json::json!([]), "{}", figure["id"]);
        assert_eq!(figure["outside"], serde_json::json!([]), "{}", figure["id"]);
        assert!(figure["marks"].as_u64() > Some(1), "{figure}");
        assert!(figure["hover"].as_str().unwrap().lines().count() >= 2, "values where one points: {figure}");
    }
    figures.iter().map(|figure| figure["id"].as_str().unwrap().to_owned()).collect()
}
