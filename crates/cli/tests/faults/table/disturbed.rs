use super::*;

const fn stutters(line: &'static str) -> crate::play::Step {
    Stutter(Stops::Signals, PLAIN, line, well(&["the program was stopped"]))
}

const fn is_frozen(line: &'static str) -> crate::play::Step {
    Stutter(Stops::Freezer("group"), IN_GROUP, line, well(&["the program was stopped"]))
}

section![
    "Disturbed measurements",
    "Time in which the program was stopped, held by a quota or without a processor is not the target's: each is said with its share.",
    stops_of_20_ms = Row {
        fault: "the program is stopped for 20 of each 40 ms (SIGSTOP and SIGCONT): the run is left out and repeated, and in the end doubted",
        given: &[Text(
            "pm",
            "set location {here}\nset number 20000\nset transactions 20000\nrun\nquit\n"
        )],
        steps: &[
            stutters("run {here} --size 1m --buffered --runtime 300ms --repeats 1 --max-repeats 1"),
            stutters(
                "run {here} --size 1m --buffered --op write --think 1ms --runtime 300ms --repeats 1 --max-repeats 1"
            ),
            stutters(
                "sweep {here} --size 1m --buffered --request 4k,64k --runtime 200ms --repeats 1 --max-repeats 1"
            ),
            stutters(
                "fio --name=a --directory={here} --size=1m --rw=randread --time_based --runtime=1 --cleanup"
            ),
            stutters("sqlio -kR -frandom --runtime 500ms -b64 -BY --size 1m {here}"),
            stutters("diskspd -d1 -W0 -b64K -c1M {here}"),
            stutters("metadata {here} --files 20000 --rounds 1"),
            stutters("postmark pm"),
        ],
        ..UNHARMED
    },
    frozen_for_20_ms = Row {
        fault: "the control group's freezer stops the program for 20 of each 40 ms",
        given: &[Group("group", Limit::Frozen)],
        steps: &[
            is_frozen(
                "run {here} --size 1m --buffered --runtime 300ms --repeats 1 --max-repeats 1"
            ),
            is_frozen(
                "fio --name=a --directory={here} --size=1m --rw=randread --time_based --runtime=1 --cleanup"
            ),
        ],
        ..UNHARMED
    },
    held_by_a_quota = Row {
        fault: "the control group's processor quota holds the program in most periods: the result says so, with how often",
        given: &[File("mine"), Group("group", Limit::Processor(20))],
        steps: &[Run(
            IN_GROUP,
            &[
                "run mine --buffered --runtime 1s --repeats 1 --max-repeats 1",
                "fio --name=a --filename=mine --rw=read --time_based --runtime=1",
                "diskspd -d1 -W0 -b64K mine",
            ],
            well(&["the processor quota of the control group held this program in"])
        )],
        ..UNHARMED
    },
];
