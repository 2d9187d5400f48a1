//! The text of `--help`.

/// The supported options.
pub const HELP: &str = "\
SQLIO: random and sequential requests as a database makes them, in the language and with the report of SQLIO 1.5

Usage: halfpower sqlio [OPTIONS] [FILE]...        values are glued to their options

  -kR -kW      reads or writes [default: R]
  -t<N>        threads of each file, at most 256 [default: 1]
  -s<N>        seconds [default: 30]
  -f<N>        rows of N blocks, visited column by column [default: 64]; -frandom; -fsequential
  -i<N>        rows of the stripe pattern [default: 64]
  -o<N>        requests that each thread keeps outstanding [default: one at a time]
  -b<N>        KB of a block [default: 2]
  -m<C|S><N>   N blocks in a request, copied or scattered
  -B<N|Y|H|S>  caches: none, both, the disk's, the file cache [default: N]
  -S<N>        first block of the region
  -p[I]<N>     run on processor N; -a<MASK> on a set of them
  -L<S|P>[i]   tell latencies
  -U[p]        tell processor use (of each processor)
  -F[FILE]     parameter file [default: param.txt]: <file> <threads> [<mask> [<size in MB>]] on each line
  -R<LIST>     raw devices, with commas; -d<LIST> directories in each of which the file is used
  -64          accepted

FILE [default: testfile.dat] is made where it is not there (and stays), and is only read where it is. A directory: a file is made in it and
removed in the end.

halfpower's own:
  --size SIZE           size of a file that is to be made
  --runtime TIME        length of the run, also below a second
  --matrix              the published study: reads and writes, random and sequential, 1 to 256 threads, 4 outstanding, 8 KB, 300 s,
                        twice or until the interval is tight; -b, -o, -s or --runtime change it.
                        On two files, directories or devices: both in turn, 60 s a run, and their differences with intervals
  --align A[,B...]      with --matrix: partition starts such as 31.5k,64k, emulated by shifting every request, and their differences
  --max-threads N       with --matrix: no more threads than this
  --repeats N           with --matrix: at most so many runs of a point [default: 4; 32 on each of two targets]
  --json FILE           all results as JSON, which `halfpower report` reads; a study on two targets is read by `halfpower compare`
  --force               replace output files that halfpower did not make
  --seed N              seeds random orders and data [default: 1]
  --destroy-data NAME   this existing file or device, also named as FILE, may be overwritten
  --destroy-signature   even if it bears a file system, or the kernel does not show whether it is in use
";
