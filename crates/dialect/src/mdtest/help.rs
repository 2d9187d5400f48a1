pub const HELP: &str = "\
mdtest: many tasks create, stat, read and remove files and directories, in the language and with the
report of mdtest 4

Usage: halfpower mdtest [OPTIONS]
       mpirun -np 8 halfpower mdtest [OPTIONS]

  -n N         files and directories of each task
  -I N         items in each directory of the tree
  -d DIR       directory of the test; with DIR@DIR the tasks use them in turn [default: .]
  -z N  -b N   depth of the tree [default: 0] and its branching factor [default: 1]
  -L           items only in the leaves of the tree
  -u  -t       a tree for each task [default: one tree for all]
  -F  -D       only files, only directories [default: both]
  -C           create; -T stat; -E read; -r remove [default: all, in this order]
  -w BYTES     write these into each file; -e BYTES read these from each file
  -y           bring each file to stable storage before it is closed
  -Y           the same for the file system, at the end of each phase and in its time
  -N N         each phase works on the items of the task N further than the phase before
  -R[SEED]     stat in random order
  -X           compare what is read with what was written
  -W N         begin to create no item after N seconds; then all tasks reach the fastest one's items
  -x FILE      keeps their number for later phases
  -i N  -p N   iterations; N seconds between them
  -P  -Z       report rates and times; times instead of rates
  -v           more output
  -a POSIX     the only API here

halfpower's own:
  --tasks N        N tasks as threads of this process, without mpirun
  --json FILE      all results as JSON, which `halfpower report` reads
  --force          replace output files that halfpower did not create

An item that exists is never overwritten. -r removes items that an earlier -C has left, by their names.
";
