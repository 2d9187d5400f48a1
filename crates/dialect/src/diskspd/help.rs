pub const HELP: &str = "\
diskspd: many kinds of load on files and devices, in the language and with the results of DISKSPD 2.2

Usage: halfpower diskspd [OPTIONS] TARGET...      values follow their options without a blank; sizes in bytes or with K, M, G, T, b (blocks)

  -b<SIZE>     block size [default: 64K]
  -c<SIZE>     create the targets with this size (they stay; in a directory they are removed)
  -d<S> -W<S> -C<S>  seconds of measurement, warm-up, cool-down [default: 10, 5, 0]
  -t<N>        threads of each target [default: 1]
  -o<N>        outstanding requests of each thread per target [default: 2]
  -F<N>        total number of threads, which share all targets; -O<N> outstanding requests of each thread over all targets,
               which are drawn by <Weight>
  -r[SIZE]     random offsets, multiples of SIZE [default: the block size]
  -rs<PERCENT> percentage of random requests; the others follow the previous one
  -rdpct<IO>/<PART>:...  IO percent of the requests go to PART percent of the target, range after range;
               -rdabs<IO>/<SIZE>:... to ranges of SIZE bytes
  -i<N> -j<MS> bursts of N requests, one every MS milliseconds
  -s[i][SIZE]  sequential with this stride; i: the threads share one sequence
  -T<SIZE>     distance between the first requests of neighbouring threads
  -B<SIZE>[:<LENGTH>] -f<SIZE>  first byte in use and their number, or the end
  -fs -fr      page cache hint: sequential or random access
  -w<PERCENT>  percentage of writes [default: 0]
  -l           buffers in large pages
  -S[bhmruw]   b page cache [default], u or r no software cache, w writes reach stable storage, h u and w, m mapped memory
  -Nv          flush mapped memory after each write, as -Smw does
  -Z           write zeros; -Zr random data [default]; -Z<SIZE>[,FILE] cycle through SIZE bytes of random data, or of FILE
  -g<N>[i]     bytes per millisecond of each thread, or with i requests per second
  -L           report latencies; -D[MS] the deviation of the rate over intervals [default: 1000]
  -a<N,N...>   run on these processors; -n, -ag, -v, -x, -I3, -P and -e... accepted; /w100 is -w100
  -z[N]        seed; without N, from the clock
  -R[text|xml] format of the results; -Rp[text|xml] shows the profile in this format and runs nothing
  -X<FILE>     an XML profile instead; -d, -W, -C and -z override all of its time spans, TARGETs replace *1, *2 ...

halfpower's own:
  --json FILE           all results as JSON, which `halfpower report` reads
  --force               replace output files that halfpower did not create
  --destroy-data NAME   this existing file or device, also named as TARGET, may be overwritten
  --destroy-signature   even if it holds a file system, or the kernel does not report whether it is in use
";
