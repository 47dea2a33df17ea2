#!/bin/sh
# Runs weft host on two hosts of a fabric of network namespaces, and nginx and curl,
# which know nothing of it, through both. As root, with weft, nginx and curl in
# PATH.
#
#   run.sh [LAB]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
lab=${1:-daemon}
server=h3.1.3 address=10.3.1.3 client=h0.0.2
dir=$(mktemp -d)
pids=

on() { # on HOST COMMAND...
	host=$1
	shift
	weft lab exec --name "$lab" "$host" -- "$@"
}

finish() {
	status=$?
	trap - EXIT INT TERM
	for pid in $pids; do kill "$pid" 2>/dev/null || true; done
	wait
	weft lab down --name "$lab"
	rm -rf "$dir"
	exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM

# A burst of 64 KB lets super-segments through whole.
weft lab up --name "$lab" --topology fat-tree:k=4 --rate 500 --queue 300000 --burst 66000

for host in $client $server; do
	weft lab exec --name "$lab" "$host" -- weft host --config "$here/host.yaml" &
	pids="$pids $!"
done
for host in $client $server; do
	tries=0
	until on $host weft status >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { echo "weft host on $host does not start" >&2; exit 1; }
		sleep 0.1
	done
done

head -c 50000000 /dev/urandom >"$dir/file"
chmod 755 "$dir"
chmod 644 "$dir/file"
cat >"$dir/nginx.conf" <<EOF
daemon off; error_log stderr crit; pid $dir/nginx.pid;
events {}
http { access_log off; server { listen $address:80; root $dir; } }
EOF
weft lab exec --name "$lab" "$server" -- nginx -c "$dir/nginx.conf" &
pids="$pids $!"

on $client curl -sS --noproxy '*' --retry 20 --retry-delay 1 --retry-connrefused \
	-w '%{stderr}%{size_download} bytes, %{speed_download} bytes/s\n' "http://$address/file" | cmp - "$dir/file"

echo "what $server has sent, by spine:"
on $server weft status --all | grep -e '^policy' -e '^offload.bounces'
