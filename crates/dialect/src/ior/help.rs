pub const HELP: &str = "\
IOR: many tasks write and read files, in the language and with the report of IOR 4

Usage: halfpower ior [OPTIONS]
       mpirun -np 8 halfpower ior [OPTIONS]

  -o FILE      test file; with -F names separated by @ are used in turn [default: testFile]
  -w  -r       write, read [default: both]
  -W  -R       read back and compare after the write, after the read (not timed)
  -b SIZE      contiguous bytes of a task; SIZE has k, m, g or t (binary) [default: 1m]
  -t SIZE      transfer [default: 256k]
  -s N         segments: each has a block of every task [default: 1]
  -i N         repetitions
  -F           a file for each task, named FILE.00000000 and so on; -u in a directory of its own
  -C  -Q N     read what the task N hosts further wrote (N tasks further on one host) [default: 1]
  -Z  -X N     read what a random other task wrote, at least -Q further; seed
  -z           transfers in random order within the task's data
  -e  -Y       fsync at the end of the write; after each transfer
  -g           barriers between open, transfers and close
  -k  -K       keep the files; keep them if the data was wrong
  -E           write into the existing file, without emptying it
  -m           a file of its own for each repetition
  -D N         begin no transfer after N seconds
  -T N         begin no repetition after N minutes
  -d N         N seconds between phases
  -q           stop at the first repetition with wrong data
  -G N         seed of the data and of the random order
  -N N         number of tasks [default: all]
  -A N  -j N   reference number in the summary; warn of tasks N seconds from the mean
  -v           more output
  -f SCRIPT    tests from a script; the options before it apply to all
  -O A=1,B=2   directives: the long names of options, such as
                 stoneWallingWearOut=1            after the deadline all tasks reach the fastest one's transfers
                 stoneWallingStatusFile=FILE      keeps that number for a later read
                 stoneWallingWearOutIterations=N  that number itself
                 summaryFormat=JSON               or CSV; summaryFile=FILE
  --posix.odirect   bypass the page cache (O_DIRECT)
  -a POSIX     the only API here
  -l -H -J -n -U -x   accepted: they change nothing here

halfpower's own:
  --tasks N             N tasks as threads of this process, without mpirun
  --json FILE           all results as JSON, which `halfpower report` reads
  --force               replace output files that halfpower did not create
  --destroy-data NAME   this existing file, also named with -o, may be overwritten

The random data has a stamp in every 512 bytes that holds its place. Files that were there before are
only read, and never removed.
";
