#!/usr/bin/env bash
# Transactions per second of `halfpower postmark` against Debian's postmark, run in turn in the same directory.
#
#   bench/postmark.sh [DIRECTORY|fresh:ext4] [ROUNDS]
#
# On ext4 an inode that was deleted within the last minutes is passed over by the next creation (recently_deleted in fs/ext4/ialloc.c), so a run in a
# directory is slower by the files that the run before it deleted, whoever that was: 70 % of the processor time, seen by perf. fresh:ext4 gives every
# run a new file system on a loop device in memory (as root).
#
# HALFPOWER names the program (default: target/release/halfpower), TRANSACTIONS their number (default 200000).
# Both get the same file of commands; times are those of the whole process by the shell's clock, because the original counts
# whole seconds. Prints one row a round (rates, and processor time a transaction, which other programs disturb less) and the medians; exits 1 where the median ratio is under 1.
set -euo pipefail
export HALFPOWER_HISTORY=none
directory=${1:-.}
rounds=${2:-9}
transactions=${TRANSACTIONS:-200000}
halfpower=$(realpath "${HALFPOWER:-target/release/halfpower}")
original=$(command -v postmark || ls /usr/games/postmark 2>/dev/null) || { echo "postmark is not installed: apt-get install postmark" >&2; exit 2; }
[ -x "$halfpower" ] || { echo "no program '$halfpower': cargo build --release, or set HALFPOWER" >&2; exit 2; }
kind=
if [[ $directory == fresh:* ]]; then
    kind=${directory#fresh:}
    work=$(mktemp -d /dev/shm/halfpower-bench-XXXXXX)
    directory=$work/mount
    mkdir "$directory"
fi
script=$(mktemp)
leave() {
    cd /
    rm -f "$script"
    if [ -n "$kind" ]; then
        mountpoint -q "$directory" && umount "$directory"
        rm -rf "$work"
    fi
}
trap leave EXIT
cd "$directory"

# A new file system for the next run, where one is asked for.
renew() {
    [ -n "$kind" ] || return 0
    cd /
    if mountpoint -q "$directory"; then umount "$directory"; fi
    rm -f "$work/disk"
    truncate -s 1G "$work/disk"
    "mkfs.$kind" -q -E lazy_itable_init=0 "$work/disk"
    mount -o loop "$work/disk" "$directory"
    cd "$directory"
}

# rate PROGRAM...: transactions per second and microseconds of processor a transaction, of one run
TIMEFORMAT='%R %U %S'
rate() {
    renew
    { time "$@" "$script" < /dev/null > /dev/null 2>&1; } 2>&1 | awk -v n="$transactions" '{ printf "%.0f %.2f", n / $1, ($2 + $3) / n * 1e6 }'
}
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

worst=0
for buffering in true false; do
    printf 'set transactions %s\nset number 1000\nset buffering %s\nset report terse\nrun\nquit\n' "$transactions" "$buffering" > "$script"
    echo "buffering $buffering: 1000 files of 500 to 10000 bytes, $transactions transactions, ${kind:+a new }${kind:-$(stat -f -c %T .)}"
    printf '%6s %12s %12s %7s %13s %13s %7s\n' round halfpower/s original/s ratio 'halfpower us' 'original us' ratio
    ours=() theirs=() ratios=() costs=()
    for ((round = 1; round <= rounds; round++)); do
        # Who comes first changes, so that neither always finds the other's dirty pages.
        if ((round % 2)); then
            a=$(rate "$halfpower" ${HALFPOWER_COMMAND-postmark}); b=$(rate "$original")
        else
            b=$(rate "$original"); a=$(rate "$halfpower" ${HALFPOWER_COMMAND-postmark})
        fi
        read -r ours_rate ours_cost <<< "$a"
        read -r their_rate their_cost <<< "$b"
        ratio=$(awk -v a="$ours_rate" -v b="$their_rate" 'BEGIN { printf "%.3f", a / b }')
        cost=$(awk -v a="$ours_cost" -v b="$their_cost" 'BEGIN { printf "%.3f", a / b }')
        printf '%6d %12d %12d %7s %13s %13s %7s\n' "$round" "$ours_rate" "$their_rate" "$ratio" "$ours_cost" "$their_cost" "$cost"
        ours+=("$ours_rate") theirs+=("$their_rate") ratios+=("$ratio") costs+=("$cost")
    done
    middle=$(printf '%s\n' "${ratios[@]}" | median)
    cost=$(printf '%s\n' "${costs[@]}" | median)
    printf '%6s %12.0f %12.0f %7s %13s %13s %7s\n' median "$(printf '%s\n' "${ours[@]}" | median)" "$(printf '%s\n' "${theirs[@]}" | median)" "$middle" '' '' "$cost"
    awk -v m="$middle" 'BEGIN { exit m < 1 }' || worst=1
done
exit $worst
