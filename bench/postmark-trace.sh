#!/usr/bin/env bash
# Shows the gain of a volume RAM cache with lazy writes for PostMark: records the block trace of a real run on a loop device with a file
# system (the kernel's trace points, through tracefs) and replays it with `halfpower twin cache` on a simulated disk.
#
#   bench/postmark-trace.sh [TRACE]
#
# Needs root. TRACE keeps the trace (default: a temporary file). From the environment:
#   HALFPOWER     the program                                          [target/release/halfpower]
#   POSTMARK      what runs the commands                               [$HALFPOWER postmark]
#   TRANSACTIONS  as published: 10,000 files of 500 to 100,000 bytes   [20000]
#   MEMORY        of the run and its page cache, by a control group    [256M]
#   FS            ext4, xfs, ... made by mkfs.FS                       [ext4]
#   DIRECTORY     for the loop device's file                           [/dev/shm]
#   MACHINE, SIZES, DEPTH  for `halfpower twin cache`                  [server-2003, 32m,...,1g, 1]
set -euo pipefail
halfpower=$(realpath "${HALFPOWER:-target/release/halfpower}")
transactions=${TRANSACTIONS:-20000}
memory=${MEMORY:-256M}
fs=${FS:-ext4}
die() { echo "postmark-trace: $*" >&2; exit 2; }
[ "$(id -u)" = 0 ] || die "trace points and loop devices need root"
[ -x "$halfpower" ] || die "no program '$halfpower': cargo build --release, or set HALFPOWER"
command -v "mkfs.$fs" > /dev/null || die "mkfs.$fs is not installed"

work=$(mktemp -d)
image=$(mktemp "${DIRECTORY:-/dev/shm}/postmark-trace-XXXXXX.img")
trace=${1:-$work/trace.csv}
device='' traced='' group=''
clean() {
    # Last in, first out; parts that were not made are skipped.
    [ -z "$traced" ] || { echo 0 > "$traced/events/block/block_rq_issue/enable"; rmdir "$traced"; }
    mountpoint -q "$work/mnt" && umount "$work/mnt"
    [ -z "$device" ] || losetup -d "$device"
    [ -z "$group" ] || rmdir "$group"
    mountpoint -q "$work/tracefs" && umount "$work/tracefs"
    rm -f "$image"
    rm -rf "$work"
}
trap clean EXIT

# A control group holds the page cache within MEMORY: what does not fit goes to the device and comes back from it.
group=/sys/fs/cgroup/memory/postmark-trace-$$ limit=memory.limit_in_bytes
[ -d /sys/fs/cgroup/memory ] || { group=/sys/fs/cgroup/postmark-trace-$$; limit=memory.max; }
mkdir "$group"
echo "$memory" > "$group/$limit"

truncate -s 4G "$image"
device=$(losetup -f --show "$image")
"mkfs.$fs" -q "$device"
mkdir "$work/mnt" "$work/tracefs"
mount "$device" "$work/mnt"
mount -t tracefs none "$work/tracefs"
sync

# A separate instance, so that other traces are not disturbed.
traced=$work/tracefs/instances/postmark-trace-$$
mkdir "$traced"
echo 65536 > "$traced/buffer_size_kb"
IFS=: read -r major minor < <(cat "/sys/block/${device#/dev/}/dev")
echo "dev == $(( (major << 20) | minor ))" > "$traced/events/block/block_rq_issue/filter"
echo 1 > "$traced/events/block/block_rq_issue/enable"

cat > "$work/commands" <<EOF
set location $work/mnt
set number 10000
set transactions $transactions
set subdirectories 5
set size 500 100000
set read 4096
set write 4096
run
quit
EOF
sh -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" ${POSTMARK:-"$halfpower" postmark} "$work/commands" < /dev/null
sync "$work/mnt"
echo 0 > "$traced/events/block/block_rq_issue/enable"

# "comm-pid [cpu] flags seconds: block_rq_issue: 7,0 WS 4096 () 1234 + 8 ...": requests with data, discards and flushes left out.
awk 'BEGIN { print "time_ns,op,offset,bytes" }
     match($0, /[0-9]+\.[0-9]+: block_rq_issue: /) {
         split(substr($0, RSTART), f, " ")
         if (f[8] == "+" && f[9] > 0 && f[4] !~ /D/ && f[4] ~ /[RW]/) {
             split(f[1], t, /[.:]/)
             printf "%s%s000,%s,%.0f,%.0f\n", t[1], t[2], f[4] ~ /R/ ? "r" : "w", f[7] * 512, f[9] * 512
         }
     }' "$traced/trace" > "$trace"
lost=$(cat "$traced"/per_cpu/cpu*/stats | awk '/overrun/ { n += $2 } END { print n + 0 }')
[ "$lost" = 0 ] || die "$lost requests were lost from the kernel's trace buffer: enlarge buffer_size_kb"

"$halfpower" twin cache "$trace" --machine "${MACHINE:-server-2003}" --sizes "${SIZES:-32m,64m,128m,256m,512m,1g}" --depth "${DEPTH:-1}"
