use super::*;

section![
    "Input",
    "Options that make no sense are refused with exit code 2 and a sentence that names the value, before anything is made.",
    no_sense = Row {
        fault: "numbers that are negative, too large, or none",
        given: &[],
        steps: &[run(
            &[
                "run . --size nonsense",
                "run . --size 4x",
                "run . --request 9g",
                "run . --depth -1",
                "run . --threads 9999",
                "run . --engine warp",
                "sweep . --request 4k,8k,16k,32k,64k,128k,256k,512k,1m,2m --depth 1,2,3,4,5,6,7,8,9,10 --threads 1,2,3,4,5,6,7,8,9,10 --offset 0,1k,2k,3k,4k,5k,6k,7k,8k,9k --pattern seq,random --op read,write,mix --hint none,sequential",
                "run . --pattern zigzag",
                "study . --budget soon",
                "study . --budget 1s",
                "iozone -s -5",
                "iozone -r 99999999999999999999g",
                "iozone -t -1",
                "iozone -i 99999999999999999999",
                "sqlio -t-3 .",
                "sqlio -b99999999999999999999 .",
                "sqlio -s0 .",
                "diskspd -b-4K .",
                "diskspd -c99999999999999999999T -d1 .",
                "diskspd -t0 .",
                "diskspd -w101 .",
                "fio --name=a --size=-1",
                "fio --name=a --size=99999999999999999999g",
                "fio --name=a --size=1m --numjobs=-1",
                "metadata --files -1",
                "tune . --knob =8",
                "tune . --knob depth=",
                "tune twin:gateway-1997 --knob depth=0 --yes",
                "tune . --until 0%",
                "tune . --budget soon",
                "compare --a . --b . --until 101%",
                "compare --a . --b '. --depth -1'",
                "compare --a .",
                "check . --slower fast",
                "stack . --budget 1s",
                "metadata --file-bytes 99999999999999999999",
            ],
            refused(&[])
        )],
        ..UNHARMED
    },
    noise = Row {
        fault: "files of jobs, parameters, profiles, results and machines hold noise",
        given: &[
            Noise("noise"),
            Text("empty", ""),
            Text("nul", "[a]\nsize=1m\0\nfilename=x\0y 4\n")
        ],
        steps: &[run(
            &[
                "fio noise",
                "fio empty",
                "fio nul",
                "sqlio -kR -frandom -s1 -Fnoise",
                "sqlio -kR -frandom -s1 -Fempty",
                "sqlio -kR -frandom -s1 -Fnul",
                "diskspd -Xnoise",
                "diskspd -Xempty",
                "diskspd -Xnul",
                "report noise",
                "report empty",
                "report nul",
                "verify noise",
                "postmark noise --json no/way",
                "compare noise noise",
                "compare empty nul",
                "compare --columns a,b noise",
                "history show 1 --history noise",
                "check . --history noise",
                "compare --a {blank}{blank} --b '",
                "run twin:noise.toml",
                "twin show noise",
            ],
            refused(&[])
        )],
        ..UNHARMED
    },
    other_documents = Row {
        fault: "documents of another program or of a later version",
        given: &[
            Text("notes.json", "[1, 2]"),
            Text("later.json", "{open}\"schema\": \"halfpower.results/99\"{close}")
        ],
        steps: &[run(
            &["report notes.json", "report later.json", "compare notes.json later.json"],
            refused(&["notes.json|later.json"])
        )],
        ..UNHARMED
    },
];
