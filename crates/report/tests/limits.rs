//! A limit with all its trials, all exclusions, and the refuting experiment, in every output.

mod support;

use report::terminal::{self, ladder};

const TRIED: &str = "one more thread: -0.7 %, so not the thread";
const EXCLUDED: &str = "processors: 34 % busy; the time of each request: one more thread: -0.7 %";
const UNDECIDED: &str = "to check, double the queue depth: the rate should rise";

#[test]
fn the_page_has_every_trial_and_exclusion() {
    let mut results = support::study();
    let page = report::html(&results).expect("a page");
    for wanted in [TRIED, EXCLUDED, UNDECIDED] {
        assert!(page.contains(&format!("{wanted}</li>")), "{wanted}");
    }
    assert_eq!(
        page.matches("<details open>").count(),
        1,
        "an unidentified limit is reported at once"
    );
    // A trial in the sentence is not repeated.
    let limits = &mut results.answer.as_mut().expect("an answer").limits;
    let unknown = limits
        .iter_mut()
        .find(|limit| limit.what == results::Bottleneck::Unknown)
        .expect("a limit with a trial");
    unknown.trials[0].tests_verdict = true;
    *unknown = unknown.clone().with_sentences();
    assert_eq!(report::html(&results).expect("a page").matches(TRIED).count(), 1);
}

#[test]
fn the_ladder_lists_exclusions_of_an_unknown_limit() {
    let results = support::study();
    let text = ladder(&results, 140, false);
    for wanted in [
        "Limit    plain writes of 64 KiB",
        &format!("Tried    {TRIED}"),
        &format!("Excluded {EXCLUDED}"),
    ] {
        assert!(text.contains(wanted), "{wanted}:\n{text}");
    }
    assert_eq!(
        text.matches("Excluded").count(),
        1,
        "a limit with a name needs no more than its sentence"
    );
}

#[test]
fn the_details_have_the_experiment_that_the_first_screen_leaves_out() {
    let results = support::study();
    let details = terminal::details(&results, 180, false);
    assert!(details.contains(UNDECIDED), "{details}");
    let screen = terminal::answer(&results, 180, false);
    assert!(
        screen.contains("writes are limited by the time of each request")
            && !screen.contains("to check"),
        "{screen}"
    );
}
