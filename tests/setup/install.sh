#!/bin/bash
# Installs what building and the lab need on Debian. Does nothing, and needs no network, when all is there.
set -euo pipefail
cd "$(dirname "$0")/../.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
listed() { sed 's/#.*//' "$@" | awk 'NF { print $1 }'; }
present() { [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

wanted=$(listed tests/setup/packages.txt image/packages.txt)
own_rust=$(tests/setup/cargo.sh 2>/dev/null || true)
if [[ -n $own_rust && $own_rust != /usr/bin/cargo ]] && command -v rustup >/dev/null; then
	# rustup builds the workspace. Debian's compiler comes on top only where rustup cannot add the musl target.
	if rustup target list --installed | grep -qx x86_64-unknown-linux-musl ||
		timeout 120 rustup target add x86_64-unknown-linux-musl >/dev/null 2>&1; then
		wanted=$(grep -vx -e cargo-web -e rust-web-src -e rustc-web <<<"$wanted")
	fi
	rustup component add rustfmt clippy >/dev/null 2>&1 || true
else
	wanted="$wanted rustfmt-web rust-web-clippy"
fi

missing=()
for package in $wanted; do present "$package" || missing+=("$package"); done
if [ ${#missing[@]} -gt 0 ]; then
	echo "installing: ${missing[*]}"
	as_root apt-get update -qq
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
# Package lists are needed by the image build even when nothing was installed.
apt-cache show linux-image-amd64 >/dev/null 2>&1 || as_root apt-get update -qq
tests/setup/cargo.sh >/dev/null
