mod support;
#[test]
fn write() {
    for (name, results) in [("study", support::study()), ("sweep", support::sweep()), ("run", support::run())] {
        let page = report::html(&results).expect("a page");
        println!("{name} {} bytes", page.len());
        std::fs::write(format!("/work/tmp/report-{name}.html"), page).unwrap();
    }
}
