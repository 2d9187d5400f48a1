//! The text of `--help`.

/// The supported options.
pub const HELP: &str = "\
IOzone: file size against record size, in the language and with the report of IOzone 3

Usage: halfpower iozone [OPTIONS]

  -a           every file size (64k to 512m) with every record size (4k to 16m)
  -A  -z       small records with large files too
  -s SIZE      file size; SIZE is in kB or has k, m, g
  -n -g SIZE   smallest and largest file of -a
  -r SIZE      record size
  -y -q SIZE   smallest and largest record of -a
  -i N         test, may be repeated: 0 write/rewrite, 1 read/reread, 2 random read/write, 3 backward read, 4 record rewrite,
               5 strided read, 6 fwrite/refwrite, 7 fread/refread, 8 mix (with -t), 9 pwrite, 10 pread, 11 pwritev, 12 preadv
  -f NAME      test file, a directory to make it in, or twin:NAME (a simulated machine) [default: iozone.tmp]
  -F NAMES     test files, one a process of -t
  -t N         throughput mode with N processes; -l and -u give a range
  -+m FILE     the processes of -t run where FILE says: a client a line, its name, working directory, path of iozone [and test file];
               each must be this computer; -+h NAME is accepted
  -T           threads (here they always are)
  -I           past the page cache (O_DIRECT)
  -o  -+D      each write on stable storage before it counts (O_DSYNC)
  -e           the way to stable storage counts
  -c           closing counts (not timed apart)
  -H -k N      asynchronous requests, N deep
  -B           mapped memory
  -O  -N       operations per second; microseconds an operation
  -R           tables for a spreadsheet; -b NAME writes them as a spreadsheet file
  -w           keep the test files
  -x           processes that are done do not stop the others
  -V N         write the pattern N and check it when reading
  -p           empty the processor's cache before each test; -S SIZE and -L BYTES give its size and line
  -U DIR       each test begins with nothing of its file in the page cache; DIR stays mounted
  -j N         records from one strided read to the next [default: 17]
  -J MS        pause between requests
  -P N         bind processes to processors from N on
  -M           names the machine; -h shows this, -v the version
  -C           what each process of -t moved, and how fast
  -E           tests 9 to 12
  -Q           offset and latency of each request to wol.dat, rwol.dat, rol.dat and rrol.dat
  -+u          processor use
  -+p N        percent of the processes of test 8 that read; -+q N seconds between tests; -+r as -o, for reads too
  -+n          no rewrite, reread and other second passes
  -+d          check every byte of every read

halfpower's own:
  --json FILE           all results as JSON, which `halfpower report` reads
  --force               replace output files that halfpower did not make
  --html FILE           the rates over file and record sizes as surfaces, in a page for a browser
  --repeats N           runs of each test [default: 3, one where it took more than a second]
  --seed N              seeds random orders and data [default: 1]
  --destroy-data NAME   this existing file or device, also named with -f or -F, may be overwritten
  --destroy-signature   even if it bears a file system, or the kernel does not show whether it is in use
";
