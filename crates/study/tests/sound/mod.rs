//! Every document of a test keeps the rules.

use results::Results;
use results::rules::check;

pub fn sound(results: Results) -> Results {
    let broken: Vec<String> = check(&results).iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{}: {}", results.target.name, broken.join("\n"));
    results
}
