pub const HELP: &str = "\
SQLIO: random and sequential requests like those of a database, in the language and with the report of SQLIO 1.5

Usage: halfpower sqlio [OPTIONS] [FILE]...        values follow their options without a blank

  -kR -kW      reads or writes [default: R]
  -t<N>        threads of each file, at most 256 [default: 1]
  -s<N>        seconds [default: 30]
  -f<N>        rows of N blocks, visited column by column [default: 64]; -frandom; -fsequential
  -i<N>        rows of the stripe pattern [default: 64]
  -o<N>        outstanding requests per thread [default: one at a time]
  -b<N>        block size in KB [default: 2]
  -m<C|S><N>   N blocks per request, copied or scattered
  -B<N|Y|H|S>  caches: none, both, the disk's (H), the file cache (S) [default: N]
  -S<N>        first block of the region
  -p[I]<N>     run on processor N; -a<MASK> on several
  -L<S|P>[i]   report latencies
  -U[p]        report processor usage (p: of each processor)
  -F[FILE]     parameter file [default: param.txt]: <file> <threads> [<mask> [<size in MB>]] on each line
  -R<LIST>     comma-separated raw devices; -d<LIST> directories, each with the file
  -64          accepted

A FILE [default: testfile.dat] that does not exist is created and kept; an existing one is only read. In a directory a file is created
and removed at the end.

halfpower's own:
  --size SIZE           size of a new file
  --runtime TIME        length of the run, may be below a second
  --matrix              the published study: reads and writes, random and sequential, 1 to 256 threads, 4 outstanding, 8 KB, 300 s,
                        twice or until the interval is narrow; -b, -o, -s or --runtime change it.
                        On two files, directories or devices: interleaved runs of 60 s, and the differences with intervals
  --align A[,B...]      with --matrix: partition starts such as 31.5k,64k, emulated by shifting every request
  --max-threads N       with --matrix: maximum number of threads
  --repeats N           with --matrix: maximum runs of a point [default: 4; 32 on each of two targets]
  --json FILE           all results as JSON, which `halfpower report` reads; for a study on two targets, `halfpower compare`
  --force               replace output files that halfpower did not create
  --seed N              seed of random orders and data [default: 1]
  --destroy-data NAME   this existing file or device, also named as FILE, may be overwritten
  --destroy-signature   even if it holds a file system, or the kernel does not report whether it is in use
";
