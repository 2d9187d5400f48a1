#!/usr/bin/env bash
# Transactions per second of `halfpower postmark` against Debian's postmark, run in turn in the same directory.
#
#   bench/postmark.sh [DIRECTORY] [ROUNDS]
#
# HALFPOWER names the program (default: target/release/halfpower), TRANSACTIONS their number (default 100000).
# Both get the same file of commands; the time is that of the whole process by the shell's clock, because the original counts
# whole seconds. Prints one row a round and the medians; exits 1 where the median ratio is under 1.
set -euo pipefail
directory=${1:-.}
rounds=${2:-9}
transactions=${TRANSACTIONS:-100000}
halfpower=$(realpath "${HALFPOWER:-target/release/halfpower}")
original=$(command -v postmark || ls /usr/games/postmark 2>/dev/null) || { echo "postmark is not installed: apt-get install postmark" >&2; exit 2; }
[ -x "$halfpower" ] || { echo "no program '$halfpower': cargo build --release, or set HALFPOWER" >&2; exit 2; }
cd "$directory"
script=$(mktemp)
trap 'rm -f "$script"' EXIT

# rate PROGRAM...: transactions per second of one run
rate() {
    local began=$EPOCHREALTIME
    "$@" "$script" < /dev/null > /dev/null
    local ended=$EPOCHREALTIME
    awk -v a="$began" -v b="$ended" -v n="$transactions" 'BEGIN { printf "%.0f", n / (b - a) }'
}
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

worst=0
for buffering in true false; do
    printf 'set transactions %s\nset number 1000\nset buffering %s\nset report terse\nrun\nquit\n' "$transactions" "$buffering" > "$script"
    echo "buffering $buffering: 1000 files of 500 to 10000 bytes, $transactions transactions, $(stat -f -c %T .)"
    printf '%5s %14s %14s %7s\n' round halfpower/s original/s ratio
    ours=() theirs=() ratios=()
    for ((round = 1; round <= rounds; round++)); do
        # Who comes first changes, so that neither always finds the other's dirty pages.
        if ((round % 2)); then
            a=$(rate "$halfpower" ${HALFPOWER_COMMAND-postmark}); b=$(rate "$original")
        else
            b=$(rate "$original"); a=$(rate "$halfpower" ${HALFPOWER_COMMAND-postmark})
        fi
        ratio=$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.3f", a / b }')
        printf '%5d %14d %14d %7s\n' "$round" "$a" "$b" "$ratio"
        ours+=("$a") theirs+=("$b") ratios+=("$ratio")
    done
    middle=$(printf '%s\n' "${ratios[@]}" | median)
    printf '%5s %14.0f %14.0f %7s\n' median "$(printf '%s\n' "${ours[@]}" | median)" "$(printf '%s\n' "${theirs[@]}" | median)" "$middle"
    awk -v m="$middle" 'BEGIN { exit m < 1 }' || worst=1
done
exit $worst
