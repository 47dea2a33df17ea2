#!/bin/sh
# Makes the copy of netstack's TCP anew: the files of the gVisor version that go.mod
# names, less what only checkpoints need, with one import path rewritten and the patches
# applied. Usage: sync.sh [directory], by default this one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=${1:-$here}
base=$(cd "$here" && go list -m -f '{{.Dir}}' gvisor.dev/gvisor)
[ -n "$base" ] || { echo "gvisor.dev/gvisor is not in the module cache: go mod download gvisor.dev/gvisor" >&2; exit 1; }

rm -rf "$to/tcp" "$to/internal"
mkdir -p "$to/tcp" "$to/internal/tcp"
cp "$base"/pkg/tcpip/transport/tcp/*.go "$to/tcp/"
cp "$base"/pkg/tcpip/internal/tcp/*.go "$to/internal/tcp/"
cp "$base"/LICENSE "$to/tcp/LICENSE"
chmod -R u+w "$to/tcp" "$to/internal"
# Checkpoints register every type by a name, once in a program, and a program may have
# gVisor's own TCP besides.
rm -f "$to"/tcp/*_autogen.go "$to"/internal/tcp/*_autogen.go
sed -i 's,"gvisor.dev/gvisor/pkg/tcpip/internal/tcp","weft/third_party/netstack/internal/tcp",' "$to"/tcp/*.go
gofmt -w "$to/tcp" # the order of the imports
cd "$to"
for p in "$here"/patches/*.patch; do
  [ -e "$p" ] || continue
  # Outside of any repository, or git would leave out what it does not find there.
  GIT_CEILING_DIRECTORIES=/ GIT_DIR=/nonexistent git apply --whitespace=nowarn "$p"
done
