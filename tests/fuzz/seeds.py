#!/usr/bin/env python3
"""Writes the seeds of the corpus: small inputs of the shapes that real machines and tools produce.

    tests/fuzz/seeds.py          needs python3, qemu-img, zstd and lz4; overwrites corpus/<target>/seed-*

What fuzzing found is kept beside them as corpus/<target>/regression-*, by hand.
"""

import bz2
import gzip
import json
import lzma
import socket
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def seed(target, name, data):
    path = CORPUS / target / f"seed-{name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


# Kernel command lines.

TOKEN = "Zm9yZ2VkLXRva2VuLWZvci1mdXp6aW5nLTAxMjM0NTY"
RUN = (
    "beskar7.api=https://10.0.0.1:8082 beskar7.namespace=default beskar7.host=rack1-u7 "
    f"beskar7.token={TOKEN} beskar7.target=http://10.0.0.1:8080/images/os.raw.zst "
    f"beskar7.target-digest=sha256:{'ab' * 32} beskar7.provider-id=b7://default/rack1-u7 beskar7.ca=LS0tLS1CRUdJTg=="
)
OPTIONS = [
    "", "beskar7.disk=/dev/disk/by-id/wwn-0x5000c500a1b2c3d4 beskar7.timeout=60 beskar7.debug=true",
    "beskar7.ip=10.0.0.5::10.0.0.1:24:10.0.0.2 BOOTIF=01-52-54-00-12-34-56",
    "farrier.verify=readback farrier.on-failure=reboot farrier.grow=off farrier.efi-boot=disk-first",
    f"farrier.content-digest=sha256:{'cd' * 32} farrier.run=r-1",
    "farrier.disk-hints=size>=400G,size<=2T,model~=980,rotational=0,transport=nvme,hctl=0:0:0:0",
    "farrier.vlan=4094 farrier.bond=802.3ad:52:54:00:00:00:01,52:54:00:00:00:02 farrier.mtu=9216",
    "farrier.ip6=2001:db8::5/64,fe80::1,2001:db8::53 farrier.ntp=ntp1.example,10.0.0.9",
    "farrier.ip6=auto farrier.bond=active-backup quiet console=ttyS0,115200n8 panic=30",
]
for number, options in enumerate(OPTIONS):
    seed("cmdline", f"{number}", f"{RUN} {options}".strip())
seed("cmdline", "bare", "BOOT_IMAGE=vmlinuz quiet console=tty0")

# SMBIOS (DSP0134): QEMU's table in miniature, one of a two-socket server, an entry point, a truncated one.


def structure(kind, body, *strings):
    text = b"".join(s.encode() + b"\0" for s in strings) or b"\0"
    return bytes([kind, len(body) + 4]) + struct.pack("<H", kind << 8) + body + text + b"\0"


def firmware(vendor, version, date):
    return structure(0, bytes([1, 2, 0, 0xE8, 3, 0]) + bytes(12), vendor, version, date)


def product(*names):
    return structure(1, bytes([1, 2, 3, 4]) + bytes(16) + bytes([6, 0, 0]), *names)


def cpu(cores, threads):
    body = bytearray(0x30 - 4)
    body[0:2], body[3], body[12] = bytes([1, 3]), 2, 3
    body[16:20] = struct.pack("<HH", 4000, 2600)
    body[20], body[31:34] = 0x41, bytes([min(cores, 255)] * 2 + [min(threads, 255)])
    body[38:44] = struct.pack("<HHH", cores, cores, threads)
    return structure(4, bytes(body), "CPU 0", "Intel(R) Corporation", "Intel(R) Xeon(R) Gold 6426Y")


def dimm(size, extended=0):
    body = bytearray(0x5C - 4)
    body[8:10] = struct.pack("<H", size)
    body[12:15] = bytes([1, 2, 0x22])
    body[17:19], body[24:28] = struct.pack("<H", 4800), struct.pack("<I", extended)
    body[28:30] = struct.pack("<H", 4400)
    return structure(17, bytes(body), "DIMM A1", "NODE 1")


END = structure(127, b"")
QEMU = firmware("EDK II", "2024.02-2", "02/02/2022") + product("QEMU", "Standard PC (Q35 + ICH9, 2009)", "pc-q35-7.2")
QEMU += cpu(2, 2) + structure(16, bytes(19)) + dimm(2048) + structure(32, bytes(7)) + END
SERVER = firmware("Dell Inc.", "2.19.1", "06/04/2024") + product("Dell Inc.", "PowerEdge R750", "-", "CN7792AB")
SERVER += cpu(288, 576) * 2 + dimm(0x7FFF, 65536) * 4 + dimm(0) + structure(38, bytes([1, 0x20, 0x20, 0xFF])) + END
seed("smbios", "qemu", QEMU)
seed("smbios", "server", SERVER)
seed("smbios", "cut", SERVER[: len(SERVER) // 2 + 7])
seed("smbios", "entry-3", b"_SM3_\x8c\x18\x03\x06\x00\x01\x00" + struct.pack("<IQ", 4096, 0xE0000))
seed("smbios", "entry-2", b"_SM_\x5b\x1f\x02\x08" + bytes(23))

# IPMI (v2.0, sections 22.24 and 23.2): responses in the order of the questions, each behind its length.


def responses(*all):
    return b"".join(bytes([len(response)]) + response for response in all)


def lan_values(*values):
    return [b"\0\x11" + value if value is not None else b"\x80" for value in values]


LAN_CHANNEL = b"\0\1\4\1\x80\xf2\x1b\0\0\0"
IPV4 = [bytes.fromhex("ac1f6b8a5fc8"), bytes([10, 0, 9, 7]), b"\xff\xff\xff\0", bytes([10, 0, 9, 1]), b"\2"]
IPV6_SET = b"\0\x80" + socket.inet_pton(socket.AF_INET6, "fd00::7") + b"\x40\0"
seed("ipmi", "server", responses(LAN_CHANNEL, *lan_values(*IPV4, b"\x64\x80", b"\2", b"\1\1\3", IPV6_SET, IPV6_SET), *[b"\xcc"] * 10))
seed("ipmi", "second-channel", responses(b"\0\1\5\5", LAN_CHANNEL, *lan_values(*IPV4, b"\0\0", None), *[b"\xcc"] * 9))
seed("ipmi", "not-set-up", responses(LAN_CHANNEL, *lan_values(bytes(6), bytes(4), b"\2", None, None)))
seed("ipmi", "refuses", responses(b"\xc1"))

# DHCP: an ACK as dnsmasq writes it, one with every option asked for, a NAK, overload, a whole packet.


def dhcp(*options, sname=b"", file=b""):
    head = struct.pack("!BBBBIHH4s4s4s4s", 2, 1, 6, 0, 0x12345678, 0, 0, bytes(4), bytes([10, 0, 0, 77]),
                       bytes([10, 0, 0, 1]), bytes(4))
    head += bytes.fromhex("525400000001") + bytes(10) + sname.ljust(64, b"\0") + file.ljust(128, b"\0")
    return head + bytes.fromhex("63825363") + b"".join(bytes([c, len(v)]) + v for c, v in options) + b"\xff"


def ip(*addresses):
    return b"".join(bytes(int(part) for part in a.split(".")) for a in addresses)


ACK = [(53, b"\5"), (54, ip("10.0.0.1")), (51, struct.pack("!I", 3600)), (58, struct.pack("!I", 1800)),
       (59, struct.pack("!I", 3150)), (1, ip("255.255.255.0")), (28, ip("10.0.0.255")), (3, ip("10.0.0.1")),
       (6, ip("10.0.0.1", "10.0.0.2")), (15, b"lab.example")]
MORE = [(42, ip("10.0.0.9")), (26, struct.pack("!H", 9000)), (121, bytes([24, 10, 1, 2, 10, 0, 0, 1, 0, 10, 0, 0, 1])),
        (119, b"\3lab\7example\0\3one\xc0\4"), (61, b"\1RT\0\0\0\1")]
seed("dhcp", "ack", dhcp(*ACK))
seed("dhcp", "offer", dhcp((53, b"\2"), *ACK[1:]))
seed("dhcp", "all", dhcp(*ACK, *MORE))
seed("dhcp", "offer-all", dhcp((53, b"\2"), *ACK[1:], *MORE))
seed("dhcp", "nak", dhcp((53, b"\6"), (54, ip("10.0.0.1")), (56, b"wrong network")))
seed("dhcp", "overload", dhcp((53, b"\2"), (54, ip("10.0.0.1")), (52, b"\3"), file=b"\3\4\n\0\0\1\xff", sname=b"\1\4\xff\xff\0\0\xff"))
seed("dhcp", "endless", dhcp((53, b"\2"), (54, ip("10.0.0.1")), (51, b"\xff" * 4)))
PAYLOAD = dhcp(*ACK)
PACKET = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(PAYLOAD), 0, 0, 64, 17, 0, ip("10.0.0.1"), ip("10.0.0.77"))
seed("dhcp", "packet", PACKET + struct.pack("!HHHH", 67, 68, 8 + len(PAYLOAD), 0) + PAYLOAD)

# IPv6, LLDP, SNTP.


def ip6(text):
    return socket.inet_pton(socket.AF_INET6, text)


def advertisement(flags, *options):
    body = struct.pack("!BBHBBHII", 134, 0, 0, 64, flags, 1800, 0, 0) + b"".join(options)
    return struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + ip6("fe80::1") + ip6("ff02::1") + body


NAMES = b"\3lab\7example\0\3one\7example\0"
RDNSS = struct.pack("!BBHI", 25, 5, 0, 600) + ip6("2001:db8::53") + ip6("2001:db8::54")
DNSSL = struct.pack("!BBHI", 31, 4, 0, 600) + NAMES.ljust(24, b"\0")
PREFIX = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 86400, 14400, 0) + ip6("2001:db8::")
MTU = struct.pack("!BBHI", 5, 1, 0, 9000)
seed("router_advertisement", "radvd", advertisement(0, b"\1\1RT\0\0\0\1", PREFIX, MTU, RDNSS, DNSSL))
seed("router_advertisement", "managed", advertisement(0xC8, PREFIX))
seed("router_advertisement", "void", advertisement(0, b"\5\0\0\0\0\0\0\0"))


def option6(code, value):
    return struct.pack("!HH", code, len(value)) + value


LEASE = struct.pack("!III", 1, 1800, 2880) + option6(5, ip6("2001:db8::77") + struct.pack("!II", 3600, 7200))
BOTH = option6(1, b"\0\3\0\1RT\0\0\0\1") + option6(2, b"\0\3\0\1RT\0\0\0\2") + option6(3, LEASE) + option6(7, b"\xff")
BOTH += option6(23, ip6("2001:db8::53")) + option6(24, NAMES) + option6(31, ip6("2001:db8::123")) + option6(56, option6(1, ip6("2001:db8::124")))
seed("dhcp6", "advertise", b"\0\0\0\1" + b"\2\1\2\3" + BOTH)
seed("dhcp6", "reply", b"\0\0\0\1" + b"\7\1\2\3" + BOTH + option6(13, b"\0\0fine"))
seed("dhcp6", "none", b"\0\0\0\1" + b"\2\1\2\3" + option6(3, struct.pack("!III", 1, 0, 0) + option6(13, b"\0\2none")))


def tlv(kind, value):
    return struct.pack("!H", kind << 9 | len(value)) + value


SWITCH = tlv(1, b"\4\0\x1c\x73\1\2\3") + tlv(2, b"\5Ethernet12") + tlv(3, b"\0\x78") + tlv(4, b"to rack1-u7") + tlv(5, b"leaf1.lab.example")
seed("lldp", "switch", SWITCH + tlv(127, b"\0\x80\xc2\1\0\7") + tlv(0, b""))
seed("lldp", "addresses", tlv(1, b"\5\1\x0a\0\0\1") + tlv(2, b"\3\0\x1c\x73\1\2\4") + tlv(0, b""))
seed("sntp", "answer", bytes([0x24, 2, 6, 0xEC]) + bytes(20) + b"\1\2\3\4\5\6\7\x08" + bytes(8) + struct.pack("!II", 3974000000, 1))
seed("sntp", "kiss", bytes([0xE4, 0, 6, 0xEC]) + bytes(8) + b"RATE" + bytes(32))

# Partition tables: led by sector size and disk size.


def gpt(sector, disk_sectors, partitions, entry=128, count=None):
    count = count or max(len(partitions), 4)
    entries = b""
    for first, last, name in partitions:
        guid = bytes(range(first % 200, first % 200 + 16))
        kind = bytes.fromhex("28732ac11ff8d211ba4b00a0c93ec93b")
        entries += (kind + guid + struct.pack("<QQQ", first, last, 0) + name.encode("utf-16-le")[:72]).ljust(entry, b"\0")
    entries = entries.ljust(entry * count, b"\0")
    header = b"EFI PART" + struct.pack("<IIIIQQQQ16sQIII", 0x10000, 92, 0, 0, 1, disk_sectors - 1, 34, disk_sectors - 34,
                                       bytes(range(16)), 2, count, entry, zlib.crc32(entries))
    header = header[:16] + struct.pack("<I", zlib.crc32(header)) + header[20:]
    mbr = bytes(446) + struct.pack("<BBBBBBBBII", 0, 0, 2, 0, 0xEE, 255, 255, 255, 1, disk_sectors - 1) + bytes(48) + b"\x55\xaa"
    return mbr.ljust(sector, b"\0") + header.ljust(sector, b"\0") + entries


def lead(sector, size):
    return bytes([0 if sector == 512 else 1]) + struct.pack("<Q", size)


DEBIAN = [(2048, 8191, "efi"), (8192, 409566, "root")]
for sector in (512, 4096):
    table = gpt(sector, 409600, DEBIAN)
    seed("partition_table", f"gpt-{sector}", lead(sector, 10 << 30) + table)
    seed("partition_table", f"gpt-{sector}-exact", lead(sector, 409600 * sector) + table)
seed("partition_table", "gpt-small-disk", lead(512, 100 << 20) + gpt(512, 409600, DEBIAN))
seed("partition_table", "gpt-wide", lead(512, 10 << 30) + gpt(512, 409600, DEBIAN, entry=256, count=8))
seed("partition_table", "gpt-empty", lead(512, 1 << 20) + gpt(512, 2048, []))
MBR = bytes(446) + struct.pack("<8xII", 2048, 409600).replace(bytes(8), b"\x80\0\0\0\x83\0\0\0", 1)
MBR += struct.pack("<8xII", 411648, 8192).replace(bytes(8), b"\0\0\0\0\x05\0\0\0", 1) + bytes(32) + b"\x55\xaa"
seed("partition_table", "mbr", lead(512, 1 << 30) + MBR)

# Disks.


def at(*marks, size=8192):
    disk = bytearray(size)
    for offset, mark in marks:
        disk[offset:offset + len(mark)] = mark
    return bytes(disk)


seed("signatures", "gpt", gpt(512, 409600, DEBIAN))
seed("signatures", "ext4", at((1080, b"\x53\xef")))
seed("signatures", "xfs", at((0, b"XFSB")))
seed("signatures", "fat", at((54, b"FAT16   "), (510, b"\x55\xaa")))
seed("signatures", "lvm", at((512, b"LABELONE"), (536, b"LVM2 001")))
seed("signatures", "luks", at((0, b"LUKS\xba\xbe\0\2")))
seed("signatures", "md", at((4096, b"\xfc\x4e\x2b\xa9\1\0\0\0"), (0, b"\xfc\x4e\x2b\xa9")))
seed("signatures", "swap", at((4086, b"SWAPSPACE2")))
seed("vpd", "disk", bytes([12, 10]) + b"\0\x80\0\x08ZA1B2C3D" + b"\0\x83\0\x24\1\3\0\x08\x50\0\xc5\0\xa1\xb2\xc3\xd4"
     + b"\2\1\0\x14ATA     " + b"ST4000NM0035" + b"\1\2\0\x08\0\1\2\3\4\5\6\7")
IDENTIFY = bytearray(512)
IDENTIFY[20:40] = b"1WRE2C3D4           "
IDENTIFY[54:94] = b"aSsmnu gSS D78 0VE O0152BG              "
seed("vpd", "ata", bytes([0, 0]) + bytes(60) + bytes(IDENTIFY))
seed("vpd", "wwid", b"t10.ATA     Samsung SSD 870 EVO 250GB               S6PENX0T123456     ")

for name, fields in [
    ("ext4", [(0x438, b"\x53\xef"), (0x418, b"\2"), (0x478, b"COS_OEM")]),
    ("btrfs", [(0x10040, b"_BHRfS_M"), (0x1012B, b"OEM")]),
    ("fat", [(0, b"\xeb\x3c\x90"), (11, b"\0\2\4\4\0\2"), (21, b"\xf8"), (0x26, b"\x29"), (0x2B, b"CIDATA     FAT16   "), (510, b"\x55\xaa")]),
]:
    seed("file_system", name, at(*fields, size=max(offset + len(mark) for offset, mark in fields) + 64))


# UEFI boot entries.


def node(kind, subtype, data=b""):
    return struct.pack("<BBH", kind, subtype, len(data) + 4) + data


def option(name, path):
    return struct.pack("<IH", 1, len(path)) + name.encode("utf-16-le") + b"\0\0" + path


def entry(number, content):
    return struct.pack("<HB", number, len(content)) + content


DRIVE = node(4, 1, struct.pack("<IQQ16sBB", 1, 2048, 6144, b"\7" * 16, 2, 2))
LOADER = node(4, 4, "\\EFI\\BOOT\\BOOTX64.EFI\0".encode("utf-16-le"))
STOP = node(0x7F, 0xFF)
NETWORK = node(2, 1, bytes(8)) + node(3, 11, bytes(33)) + node(3, 12, bytes(23)) + STOP
ENTRIES = entry(0, option("UEFI PXEv4", NETWORK)) + entry(1, option("Farrier", DRIVE + LOADER + STOP))
ENTRIES += entry(2, option("debian", DRIVE + node(4, 4, "\\EFI\\debian\\shimx64.efi\0".encode("utf-16-le")) + STOP))
seed("boot_entries", "board", bytes([0, 0, 0, 3]) + struct.pack("<HHH", 2, 0, 1) + ENTRIES)
seed("boot_entries", "disk-first", bytes([1, 2, 0, 2]) + struct.pack("<HH", 0, 2) + ENTRIES[:120])
seed("boot_entries", "none", bytes(4))

# Images, each of the same small disk.

DISK = gpt(512, 2048, [(40, 2000, "root")]).ljust(4096, b"\0") + bytes(range(256)) * 8
DISK = DISK.ljust(64 << 10, b"\0")
seed("image", "raw", DISK[:4096])
seed("image", "gzip", gzip.compress(DISK, mtime=0))
seed("image", "gzip-members", gzip.compress(DISK[:700], mtime=0) + gzip.compress(DISK[700:], mtime=0))
seed("image", "bzip2", bz2.compress(DISK))
seed("image", "bzip2-streams", bz2.compress(DISK[:700]) + bz2.compress(DISK[700:]))
seed("image", "xz", lzma.compress(DISK))
seed("image", "xz-padded", lzma.compress(DISK[:700]) + bytes(8) + lzma.compress(DISK[700:], check=lzma.CHECK_CRC32))


def tool(*command, data):
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout


seed("image", "zstd", tool("zstd", "-q", data=DISK))
seed("image", "zstd-frames", b"\x50\x2a\x4d\x18\4\0\0\0skip" + tool("zstd", "-q", data=DISK[:700]) + tool("zstd", "-q", data=DISK[700:]))
seed("image", "lz4", tool("lz4", "-q", "-c", "--content-size", data=DISK))
seed("image", "lz4-frames", tool("lz4", "-q", "-c", "-B4", "-BD", "-BX", data=DISK[:700]) + tool("lz4", "-q", "-c", data=DISK[700:]))
with tempfile.TemporaryDirectory() as scratch:
    raw = Path(scratch) / "disk.raw"
    raw.write_bytes(DISK)
    for name, options in [("plain", "cluster_size=512"), ("v2", "cluster_size=512,compat=0.10"),
                          ("zstd", "cluster_size=4k,compression_type=zstd")]:
        for compress in ([], ["-c"]):
            out = Path(scratch) / "disk.qcow2"
            subprocess.run(["qemu-img", "convert", *compress, "-O", "qcow2", "-o", options, raw, out], check=True)
            seed("image", f"qcow2-{name}{'-compressed' if compress else ''}", out.read_bytes())
for name, magic in [("vmdk", b"KDMV"), ("zip", b"PK\3\4"), ("page", b"<html>")]:
    seed("image", name, magic.ljust(520, b"\0"))

# Names of devices.

seed("modalias", "pci", "pci:v00008086d00001521sv*sd*bc*sc*i*\npci:v00008086d00001521sv00008086sd00000001bc02sc00i00")
seed("modalias", "acpi", "acpi*:PNP0C0[CE-]:*\nacpi:PNP0C0E:PNP0C0C:")
seed("modalias", "bracket", "a[!a-f]?*z\naq-_z")

# What the controller is told.

REPORT = {
    "manufacturer": "QEMU", "model": "Standard PC (Q35 + ICH9, 2009)", "serialNumber": None, "bootModeDetected": "UEFI",
    "firmwareVersion": "2024.02-2",
    "cpus": [{"id": "CPU 0", "vendor": "QEMU", "model": "pc-q35-7.2", "cores": 2, "threads": 2, "frequency": "2.0GHz"}],
    "memory": [{"id": "DIMM 0", "type": "RAM", "capacity": "2GiB", "speed": "3200MHz"}],
    "disks": [{"name": "/dev/vda", "model": "", "sizeGB": 10, "type": "SSD", "serialNumber": "anvil-0"}],
    "nics": [{"name": "eth0", "macAddress": "52:54:00:00:00:01", "ipAddresses": ["10.77.0.20"], "speedMbps": 1000}],
    "farrier": {"agentVersion": "0.1.0", "notes": ["one"], "tpm": False, "kernelMemoryBytes": 2076463104, "x": 1.5},
}
seed("report", "full", json.dumps(REPORT))
seed("report", "empty", "{}")
seed("report", "nulls", json.dumps({key: None for key in REPORT}))
seed("report", "odd", '{"cpus":[{"cores":-1,"threads":2147483647}],"memory":[{"capacity":"9223372036854775807TiB"}],"unknown":[{}]}')
seed("callback", "failure", json.dumps({"reason": "write: /dev/sda: input/output error at byte 1048576"}))
seed("callback", "odd", json.dumps({"reason": "\u202e\x1b[31mred\u0000 \ufeff"}))
seed("callback", "event", json.dumps({"event": "Installing", "message": "write", "run": "run-1", "step": "write",
                                      "bytes": 58 << 20, "total": 95 << 20, "bytesPerSecond": 5 << 20}))
seed("callback", "event-unknown", '{"event":"Phoned Home 2","message":"\\u0007"}')
HEX = "0123456789abcdef" * 4
seed("checksum", "bare", f"os.raw.zst\n{HEX}\n")
seed("checksum", "gnu", f"os.raw.zst\n# images\n{HEX[::-1]} *other.img\n{HEX}  ./os.raw.zst\n")
seed("checksum", "bsd", f"os.raw.zst\nSHA256 (os.raw.zst) = {HEX.upper()}\nMD5 (os.raw.zst) = {HEX[:32]}\n")
seed("checksum", "escaped", f"a%20b\n\ufeff{HEX}  a b\r\n")
HOST = """apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: PhysicalHost
metadata:
  name: rack1-u7
  labels: {rack: "1"}
spec:
  redfishConnection:
    address: https://10.0.0.9
    credentialsSecretRef: rack1-bmc
  agentOptions: {vlan: "7", mtu: 9000}
  bootMACAddresses: ["52:54:00:12:34:56"]
"""
SECRET = """apiVersion: v1
kind: Secret
metadata: {name: rack1-bmc, namespace: default}
stringData:
  username: admin
  password: "p\\u0061ss"
data: {more: QUJD}
"""
MACHINE = f"""apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Beskar7Machine
metadata: {{name: rack1-u7}}
spec:
  inspectionImageURL: http://10.0.0.1:8080/inspection
  targetImageURL: http://10.0.0.1:8080/images/os.raw.zst
  targetImageDigest: sha256:{HEX}
  targetDisk: /dev/sda
  hardwareRequirements: {{minCPUCores: 4, minMemoryGB: 16, minDiskGB: 100}}
"""
seed("manifest", "host", HOST)
seed("manifest", "all", f"{HOST}---\n{SECRET}---\n{MACHINE}")
seed("manifest", "marked", f"\ufeff%YAML 1.2\n--- # first\n{SECRET}...\n--- {{kind: Secret, apiVersion: v1, metadata: {{name: b}}}}\n")
seed("manifest", "anchors", "kind: Secret\napiVersion: v1\nmetadata: &m {name: a}\nx: [*m, *m, {<<: *m}]\nstringData:\n  a: |-\n    one\n    two\n  b: >+\n   three\n\n")
seed("range", "closed", struct.pack("<Q", 1000) + b"bytes=2-5")
seed("range", "open", struct.pack("<Q", 1000) + b"bytes=999-")
seed("range", "suffix", struct.pack("<Q", 0) + b"bytes=-30")
SYSTEM = {
    "@odata.id": "/redfish/v1/Systems/1", "@odata.etag": 'W/"1"', "Manufacturer": "Super Micro", "Model": "X12", "SerialNumber": " S1 ",
    "PowerState": "PoweringOn", "Status": {"Health": "OK", "HealthRollup": None, "State": "Enabled"},
    "Boot": {"BootSourceOverrideMode": "UEFI", "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe"]},
    "Actions": {"#ComputerSystem.Reset": {"target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
                                          "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "PowerCycle"]}},
    "EthernetInterfaces": {"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces"},
}
seed("redfish", "system", json.dumps(SYSTEM))
seed("redfish", "root", json.dumps({"Systems": {"@odata.id": "/redfish/v1/Systems"}, "Vendor": "Dell"}))
seed("redfish", "collection", json.dumps({"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]}))
seed("redfish", "interface", json.dumps({"IPv4Addresses": [{"Address": "10.0.0.1"}, {"Address": None}], "IPv6Addresses": [{"Address": "fd00::1"}]}))
seed("redfish", "action-info", json.dumps({"Parameters": [{"Name": "ResetType", "AllowableValues": ["On"]}]}))
seed("redfish", "error", json.dumps({"error": {"code": "Base.1.8.GeneralError", "@Message.ExtendedInfo": [{"MessageId": "Base.1.8.ActionNotSupported"}]}}))
seed("address_list", "mixed", "192.0.2.0/24, bmc1.lab.example.com\n*.lab.example.com 2001:db8::/32\0bmc2.lab.example.com")
seed("address_list", "mapped", "::ffff:192.0.2.7\0[::ffff:192.0.2.7]")

