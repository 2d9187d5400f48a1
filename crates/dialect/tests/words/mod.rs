//! A command line as its words.

pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}
