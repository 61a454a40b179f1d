#!/bin/sh
# First boot of the installed system, after cloud-init's last stage: tells what that made of its seed.
# Nothing of the user-data itself is printed but its digest and what it says may be told.
set -u
# Written by the user-data: `told` by write_files, the others by commands.
told=/etc/farrier-lab/told
bootcmd=/run/farrier-lab/bootcmd
runcmd=/run/farrier-lab/runcmd
# As cloud-init keeps what it was given.
data=/var/lib/cloud/instance/user-data.txt
log=/var/log/cloud-init.log
complaint='\[(WARNING|ERROR|CRITICAL)\]:'

field() { sed -n "s/^$1=//p" "$told" | head -n 1; }

sum=$(sha256sum "$data" | cut -d ' ' -f 1)
facts="user-data sha256=$sum told-mode=$(stat -c '%a:%u:%g' "$told") marker=$(field marker)"
facts="$facts bootcmd=$(cat "$bootcmd") runcmd=$(cat "$runcmd")"
facts="$facts $(cloud-init query --format 'instance-id={{ v1.instance_id }} local-hostname={{ v1.local_hostname }}')"
facts="$facts hostname=$(uname -n) result=$(tr -d ' \n' < /run/cloud-init/result.json)"
facts="$facts complaints=$(grep -cE "$complaint" "$log") version=$(dpkg-query -W -f '${Version}' cloud-init)"
grep -E "$complaint" "$log" > /dev/console
[ -e "$told" ] || { cat /run/cloud-init/ds-identify.log; cloud-init status --long; } > /dev/console 2>&1
exec /usr/local/sbin/farrier-report "$(field report)" "$facts"
