#!/bin/bash
# Installs sushy-emulator, a Redfish service that nobody here wrote, into a virtual environment of its own, and
# prints its path. Does nothing, and needs no network, when it is there.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=2.2.0
place=${1:-build/sushy-$version}
emulator=$place/bin/sushy-emulator
if [ ! -x "$emulator" ]; then
	python3 -m venv "$place" >&2
	"$place/bin/pip" install --quiet --disable-pip-version-check "sushy-tools==$version" >&2
fi
realpath "$emulator"
