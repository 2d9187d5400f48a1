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
  -f NAME      test file, a directory to create it in, or twin:NAME (a simulated machine) [default: iozone.tmp]
  -F NAMES     test files, one per process of -t
  -t N         throughput mode with N processes; -l and -u give a range
  -+m FILE     clients of -t, one per line: name, working directory, path of iozone [and test file]; each must be this computer;
               -+h NAME is accepted
  -T           threads (always the case here)
  -I           bypass the page cache (O_DIRECT)
  -o  -+D      each write is on stable storage before it completes (O_DSYNC)
  -e           include the flush in the time
  -c           include closing in the time (not timed separately)
  -H -k N      asynchronous requests at depth N
  -B           mapped memory; -G each write is on stable storage before it completes (msync); -D accepted
  -O  -N       report operations per second; microseconds per operation
  -R           tables for a spreadsheet; -b NAME writes them as a spreadsheet file
  -w           keep the test files
  -x           the first process to finish does not stop the others
  -V N         write the pattern N and check it when reading
  -p           empty the processor's cache before each test; -S SIZE and -L BYTES give its size and line
  -U DIR       start each test with an empty page cache for its file; DIR stays mounted
  -j N         stride in records [default: 17]
  -J MS        pause between requests
  -P N         bind processes to processors, starting with N
  -M           name the machine; -h shows this help, -v the version
  -C           report bytes and rate of each process of -t
  -E           include tests 9 to 12
  -Q           write offset and latency of each request to wol.dat, rwol.dat, rol.dat and rrol.dat
  -+u          report processor usage
  -+p N        percentage of readers in test 8; -+q N seconds between tests; -+r like -o, for reads too
  -+n          skip rewrite, reread and other second passes
  -+d          verify every byte read

halfpower's own:
  --json FILE           all results as JSON, which `halfpower report` reads
  --force               replace output files that halfpower did not create
  --html FILE           page with surfaces of the rates over file and record sizes
  --repeats N           runs of each test [default: 3, or 1 if it takes more than a second]
  --seed N              seed of random orders and data [default: 1]
  --destroy-data NAME   this existing file or device, also named with -f or -F, may be overwritten
  --destroy-signature   even if it holds a file system, or the kernel does not report whether it is in use
";
