#!/bin/sh
# What becomes of mutants: run.sh PROGRAM SECONDS < NUMBERS-AND-FILTERS > results.txt
#
# Each line of the input is the number of a mutant and which tests are to notice it, `17 plan::` for
# instance. Seconds are those of the processor, so that a busy machine makes no difference.
while read -r number tests; do
    (
        ulimit -t "$2"
        # shellcheck disable=SC2086
        MUTANT=$number exec "$1" -q --test-threads=1 $tests > /dev/null 2>&1
    )
    case $? in
        0) echo "$number survived" ;;
        *) echo "$number noticed" ;;
    esac
done
