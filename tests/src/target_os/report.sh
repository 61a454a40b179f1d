#!/bin/sh
# Says on the console and by HTTP what a first boot found: farrier-report URL FACTS. Without a URL, on the console
# alone.
set -u
report=$1
facts="$2 kernel=$(uname -r) os=$(. /etc/os-release && echo "$ID-$VERSION_ID")"
echo "FARRIER-TARGET-OS up: $facts" > /dev/console

[ -n "$report" ] || exit 0
for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	if perl - "$report" "$facts" <<'PERL'
use strict;
use IO::Socket::IP;
my ($url, $facts) = @ARGV;
my ($host, $port, $path) = $url =~ m{^http://(\[[^\]]+\]|[^:/]+):(\d+)(/.*)$} or die "report URL is not http://host:port/path\n";
my $socket = IO::Socket::IP->new(PeerHost => $host =~ s/[][]//gr, PeerPort => $port, Timeout => 10) or die "connect: $!\n";
print $socket "POST $path HTTP/1.0\r\nHost: $host\r\nContent-Type: text/plain\r\nContent-Length: " . length($facts) . "\r\n\r\n$facts";
my $status = <$socket>;
exit(defined $status && $status =~ / 20\d / ? 0 : 1);
PERL
	then
		echo "FARRIER-TARGET-OS reported (attempt $attempt)" > /dev/console
		exit 0
	fi
	sleep 3
done
echo "FARRIER-TARGET-OS could not report to the address in its user-data" > /dev/console
exit 1
