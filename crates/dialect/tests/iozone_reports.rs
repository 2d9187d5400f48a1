//! IOzone's texts from fixed figures, and what follows from published ones.

use dialect::iozone::{
    Cell, Child, IozoneResult, Measured, Options, Surface, Test, Throughput, banner, cliffs, excel,
    extra, header, parse, row, spreadsheet, surfaces, throughput_block, throughput_intro,
};
use results::Point;

const KIB: u64 = 1024;

fn options(line: &str) -> Options {
    parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>()).unwrap()
}

fn measured(options: &Options, cell: Cell, test: Test) -> Measured {
    let place = options.passes().iter().position(|one| *one == test).unwrap() as u64 + 1;
    let kib = place * 1000
        + u64::from(cell.file_bytes.ilog2()) * 100
        + u64::from(cell.record_bytes.ilog2());
    let rate = (kib * KIB) as f64;
    Measured {
        cell,
        test,
        runs_bytes_per_s: vec![rate, rate * 1.1, rate * 0.9],
        operations_per_s: rate / cell.record_bytes as f64,
        cpu_percent: 12.5,
        point: Point::failed(options.workload(cell, test, false), "figures of a test"),
    }
}

fn result(options: &Options) -> IozoneResult {
    let cells: Vec<Measured> = options
        .cells()
        .into_iter()
        .flat_map(|cell| {
            options.passes().into_iter().map(move |test| measured(options, cell, test))
        })
        .collect();
    let surfaces = surfaces(&cells);
    IozoneResult {
        interrupted: false,
        command: options.to_string(),
        cells,
        throughput: Vec::new(),
        surfaces,
        cliffs: Vec::new(),
        warnings: vec!["so it is".into()],
        target: None,
    }
}

fn page(line: &str) -> String {
    let options = options(line);
    let result = result(&options);
    let mut text = banner(&options, 1_074_115_928) + &header(&options);
    for cell in options.cells() {
        text += &row(&options, cell, &result.cells);
    }
    text + "\niozone test complete.\n" + &excel(&options, &result) + &extra(&result)
}

#[test]
fn the_automatic_mode_in_the_originals_columns() {
    insta::assert_snapshot!(page("-a -n 64k -g 128k -q 32k -R"));
}

#[test]
fn columns_of_tests_that_were_skipped_are_blank() {
    insta::assert_snapshot!(page("-s 64k -r 4k -i 0 -i 2 -i 5 -i 9 -i 12 -O"));
}

#[test]
fn the_throughput_mode_in_the_originals_words() {
    let options = options("-t 2 -s 1m -r 64k -i 0 -i 1 -+u -R");
    let one = |test, slower: u64| Throughput {
        test,
        children: vec![
            Child { bytes: 1 << 20, elapsed_ns: 500_000_000, operations: 16 },
            Child { bytes: 1 << 19, elapsed_ns: slower, operations: 8 },
        ],
        elapsed_ns: 600_000_000,
        runs_bytes_per_s: vec![3e6, 3.3e6],
        cpu_ns: 300_000_000,
        points: Vec::new(),
    };
    let throughput = vec![one(Test::Write, 500_000_000), one(Test::Reread, 250_000_000)];
    let mut text = throughput_intro(&options, options.cells()[0], 2);
    throughput.iter().for_each(|one| text += &throughput_block(&options, one));
    let result = IozoneResult {
        interrupted: false,
        command: String::new(),
        cells: Vec::new(),
        throughput,
        surfaces: Vec::new(),
        cliffs: Vec::new(),
        warnings: Vec::new(),
        target: None,
    };
    text += &excel(&options, &result);
    text += &extra(&result);
    insta::assert_snapshot!(text);
    let sheet = spreadsheet(&options, &result);
    let has = |bytes: &[u8]| sheet.windows(bytes.len()).any(|part| part == bytes);
    assert!(
        has(b"Initial write") && has(&3072f64.to_le_bytes()) && has(&4096f64.to_le_bytes()),
        "titles and figures"
    );
}

/// Write rates in KB/s, published for a volume behind a 256 MB memory cache with lazy writes; files
/// of 4 MB to 512 MB.
#[test]
fn the_published_cliff_is_found_where_the_file_outgrows_the_cache() {
    let files: Vec<u64> = (2..10).map(|power| (1 << power) << 20).collect();
    let rates =
        [279_746.0, 264_110.0, 250_322.0, 238_930.0, 234_544.0, 234_552.0, 227_792.0, 41_262.0];
    let surface = Surface {
        test: Test::Write,
        file_bytes: files,
        record_bytes: vec![16 << 20],
        kib_per_s: rates.iter().map(|rate| vec![Some(*rate)]).collect(),
    };
    let found = cliffs(std::slice::from_ref(&surface), 1 << 30, false);
    assert_eq!(
        (found[0].last_fast_file_bytes, found[0].first_slow_file_bytes),
        (256 << 20, 512 << 20)
    );
    insta::assert_snapshot!(found[0].sentence, @"writer: up to 273 MiB/s with files of at most 256 MiB and no more than 40.3 MiB/s from 512 MiB on: between the two sizes the file outgrows the page cache that the memory has room for.");
    // The same machine without the cache has no such cliff at that size.
    let flat = Surface {
        kib_per_s: vec![vec![Some(22_000.0)], vec![Some(20_789.0)]],
        file_bytes: vec![256 << 20, 512 << 20],
        ..surface
    };
    assert_eq!(cliffs(&[flat], 1 << 30, false), []);
}

#[test]
fn the_spreadsheet_has_a_cell_for_each_figure() {
    let options = options("-a -n 64k -g 64k -i 1");
    let sheet = spreadsheet(&options, &result(&options));
    let mut kinds = Vec::new();
    let mut at = 0;
    while at < sheet.len() {
        let word = |at: usize| u16::from_le_bytes([sheet[at], sheet[at + 1]]);
        kinds.push(word(at));
        at += 4 + usize::from(word(at + 2));
    }
    let count = |kind: u16| kinds.iter().filter(|one| **one == kind).count();
    // Two lines above two tables: a title, five record sizes, the file size, five figures.
    assert_eq!((kinds[0], kinds[kinds.len() - 1], count(4), count(3)), (9, 10, 2 + 2, 2 * 11));
    let text = String::from_utf8_lossy(&sheet);
    for label in [
        "Command line used: iozone -a",
        "The top row is records sizes",
        "Reader Report",
        "Re-Reader Report",
    ] {
        assert!(text.contains(label), "{label}");
    }
}

#[test]
fn a_surface_has_nothing_where_nothing_was_measured() {
    let options = options("-a -n 4k -g 8k -i 1");
    let surface = &result(&options).surfaces[0];
    assert_eq!(surface.record_bytes, [4096, 8192]);
    assert_eq!(surface.kib_per_s[0][1], None);
    assert!(surface.kib_per_s[1].iter().all(Option::is_some));
}
