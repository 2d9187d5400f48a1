//! The text of `--help`.

/// The supported options.
pub const HELP: &str = "\
diskspd: loads of many kinds on files and devices, in the language and with the results of DISKSPD 2.2

Usage: halfpower diskspd [OPTIONS] TARGET...      values are glued to their options; sizes in bytes or with K, M, G, T, b (blocks)

  -b<SIZE>     block [default: 64K]
  -c<SIZE>     make the targets, so long (they stay; in a directory they go)
  -d<S> -W<S> -C<S>  seconds measured, before and after [default: 10, 5, 0]
  -t<N>        threads of each target [default: 1]
  -o<N>        requests that each thread keeps outstanding on a target [default: 2]
  -F<N>        threads in total, each of which works on all targets; -O<N> its outstanding requests over all of them, the target
               of the next drawn by its <Weight>
  -r[SIZE]     random places, multiples of SIZE [default: the block]
  -rs<PERCENT> so many of the requests are random, the others follow the one before
  -rdpct<IO>/<PART>:...  so many percent of the requests to so many percent of the target, range after range
  -i<N> -j<MS> bursts of N requests, so long apart
  -s[i][SIZE]  sequential, so far from one request to the next; i: the threads share one sequence
  -T<SIZE>     from one thread's first request to the next thread's
  -B<SIZE>[:<LENGTH>] -f<SIZE>  first byte used and how many, or the end
  -fs -fr      tell the page cache that access is sequential or random
  -w<PERCENT>  writes [default: 0]
  -l           buffers in large pages
  -S[bhmruw]   b page cache [default], u or r none in software, w writes reach stable storage, h u and w, m mapped memory
  -Z           write zeros; -Zr random data [default]; -Z<SIZE>[,FILE] SIZE bytes of random data, or of FILE, again and again
  -g<N>[i]     bytes per millisecond of each thread, or with i requests per second
  -L           tell latencies; -D[MS] the spread of the rate over intervals [default: 1000]
  -a<N,N...>   run on these processors; -n, -ag, -v, -x, -I3, -P and -e... accepted; /w100 is -w100
  -z[N]        seed; alone, the clock's
  -R[text|xml] form of the results; -Rp[text|xml] shows the profile in it and runs nothing
  -X<FILE>     an XML profile instead; -d, -W, -C and -z beside it count for all of its time spans, its targets *1, *2 ... are TARGETs

halfpower's own:
  --json FILE           all results as JSON, which `halfpower report` reads
  --force               replace output files that halfpower did not make
  --destroy-data NAME   this existing file or device, also named as TARGET, may be overwritten
  --destroy-signature   even if it bears a file system, or the kernel does not show whether it is in use
";
