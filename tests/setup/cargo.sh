#!/bin/bash
# Prints the cargo to build with: the first one new enough on the path, in rustup's home, or from Debian.
set -euo pipefail

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../../Cargo.toml")
for cargo in "$(command -v cargo || true)" "$HOME/.cargo/bin/cargo" /usr/bin/cargo; do
	[ -x "$cargo" ] || continue
	version=$("$cargo" --version 2>/dev/null | awk '{ print $2 }') || continue
	if [ "$(printf '%s\n' "$needed" "$version" | sort --version-sort | head -n 1)" = "$needed" ]; then
		echo "$cargo"
		exit 0
	fi
done
echo "no cargo $needed or newer: run \`make deps\`" >&2
exit 1
