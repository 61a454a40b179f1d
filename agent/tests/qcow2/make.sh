#!/bin/bash
# Makes the images here with qemu-img and qemu-io (Debian's qemu-utils), all of one disk of 1 MiB. They are kept, so
# that the tests need neither; those that begin with "refused" cannot be streamed, or not on their own.
set -euo pipefail
out=$(cd "$(dirname "$0")" && pwd)
cd "$(mktemp -d)"

python3 - <<'PYTHON'
import random, struct
size = 1 << 20
disk = bytearray(size)
disk[510:512] = b"\x55\xaa"
disk[446 + 4] = 0x83
disk[446 + 8:446 + 16] = struct.pack("<II", 64, size // 512 - 64)
def put(at, some):
    disk[at:at + len(some)] = some
def text(length):
    return b"".join(b"line %08d of what a file may hold\n" % n for n in range(length // 30))[:length]
put(64 * 512, text(5000))
put(300_000, random.Random(7).randbytes(700))
put(600_000, text(9000))
put(size - 512, text(512))
open("disk", "wb").write(disk)
# Long enough for several tables, with a cluster of text in each hundredth part.
long = bytearray(disk) + bytes(5 * size)
for at in range(65536, len(long), len(long) // 100):
    long[at:at + 2000] = text(2000)
open("long", "wb").write(long)
PYTHON

# NAME OPTIONS [FLAGS] [DISK]
convert() {
	qemu-img convert -f raw -O qcow2 ${3:-} -o "$2" "${4:-disk}" "$1"
}
for cluster in 512 4096 65536; do
	convert "v2-$cluster" "compat=0.10,cluster_size=$cluster"
	convert "v3-$cluster" "compat=1.1,cluster_size=$cluster"
	convert "v2-$cluster-deflate" "compat=0.10,cluster_size=$cluster" -c
	convert "v3-$cluster-deflate" "compat=1.1,cluster_size=$cluster" -c
done
convert v3-4096-zstd cluster_size=4096,compression_type=zstd -c
convert v3-65536-zstd cluster_size=65536,compression_type=zstd -c
convert v3-2097152-deflate cluster_size=2M -c
convert long-v3-4096-deflate cluster_size=4096 -c long
convert long-v3-4096-zstd cluster_size=4096,compression_type=zstd -c long
convert long-v3-4096 cluster_size=4096 '' long
convert v3-65536-preallocated preallocation=metadata
convert v3-4096-allocated cluster_size=4096,preallocation=full
cp v3-4096 v3-4096-snapshot && qemu-img snapshot -c one v3-4096-snapshot
cp v3-4096 v3-4096-resized && qemu-img resize -q v3-4096-resized 8M

create() {
	qemu-img create -q -f qcow2 "$@" 1M
}
convert refused-extended extended_l2=on,cluster_size=16k
create -o cluster_size=4096 refused-rewritten
qemu-io -f qcow2 -c 'write -P 7 512k 4k' -c 'write -P 8 0 4k' refused-rewritten >/dev/null
create -F raw -b disk -o cluster_size=4096 refused-backing
create -o data_file=data,cluster_size=4096 refused-data-file
create --object secret,id=s,data=x -o encrypt.format=aes,encrypt.key-secret=s,cluster_size=4096 refused-encrypted

rm -f data "$out"/*.gz
gzip -9n -- *
mv -- *.gz "$out"
