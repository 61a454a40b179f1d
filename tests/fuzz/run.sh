#!/bin/bash
# Builds the fuzz targets and runs each for a while, as many at a time as there are processors.
#
#   tests/fuzz/run.sh [TARGET…]      FUZZ_SECONDS=10 each; what they find out is kept in $BUILD/fuzz
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${FUZZ_SECONDS:-10}
work=$(realpath --canonicalize-missing "${BUILD:-build}/fuzz")
target_dir=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
cargo_fuzz=0.13.2
triple=x86_64-unknown-linux-gnu
PATH="$work/bin:$(dirname "$(tests/setup/cargo.sh)"):$PATH"

# One input: as long as a real one, as much memory as a decoder may take, a moment.
limits=(-rss_limit_mb=768 -timeout=10)
longest() {
	case $1 in
	file_system | image | partition_table | signatures) echo 65536 ;;
	*) echo 8192 ;;
	esac
}

run_one() {
	local name=$1 dir=$work/$1
	mkdir -p "$dir/corpus" "$dir/found"
	# A hard bound beside libFuzzer's own, which looks once a second only: an allocation beyond it fails.
	if (
		ulimit -v $((2 << 20)) -c 0
		exec "$target_dir/$triple/debug/$name" "${limits[@]}" -max_len="$(longest "$name")" -max_total_time="$seconds" \
			-print_final_stats=1 -artifact_prefix="$dir/found/" "$dir/corpus" "tests/fuzz/corpus/$name"
	) >"$dir/log" 2>&1; then
		local runs
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/log")
		printf '   %-16s %10s inputs, no fault\n' "$name" "$runs"
		return
	fi
	echo "== fuzz: $name failed"
	tail -n 40 "$dir/log"
	for input in "$dir"/found/*; do
		echo "   again:  $target_dir/$triple/debug/$name $input"
		echo "   keep:   cp $input tests/fuzz/corpus/$name/regression-WHAT   # cargo test runs it from then on"
	done
	return 1
}

if [ "$(cargo-fuzz --version 2>/dev/null)" != "cargo-fuzz $cargo_fuzz" ]; then
	# Unoptimised, since it only calls cargo.
	cargo install --quiet --locked --debug --root "$work" --target-dir "$work/target" "cargo-fuzz@$cargo_fuzz"
fi
# From the folder whose .cargo/config.toml makes the profile. No sanitizer: there is next to no unsafe code to watch.
(
	cd tests/fuzz
	cargo-fuzz fuzz build --fuzz-dir . --dev --sanitizer none --features fuzzing --target "$triple" --target-dir "$target_dir"
)
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(find tests/fuzz/fuzz_targets -name '*.rs' -printf '%f\n' | sed 's/\.rs$//' | sort)
failed=0
running=0
for name in "${names[@]}"; do
	if [ "$running" -ge "$(nproc)" ]; then
		wait -n || failed=1
		running=$((running - 1))
	fi
	run_one "$name" &
	running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
	wait -n || failed=1
	running=$((running - 1))
done
exit "$failed"
