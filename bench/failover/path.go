package failover

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"weft/topology"
)

// path is what determines a packet's way: its two hosts, and its bouncing
// address.
type path struct {
	pair
	bounce netip.Addr
}

// sighting is a packet that a tap saw. The time is the kernel's own, by the
// clock that time.Now has, so scheduling of this process is not in it.
type sighting struct {
	path
	at time.Time
}

// parsePath reads two IPv4 headers, of which the outer has no options. It
// reports false for what is no packet between two hosts of t.
func parsePath(t *topology.Topology, b []byte) (c path, ok bool) {
	if len(b) < 40 || b[0] != 0x45 || b[20]>>4 != 4 {
		return c, false
	}
	host := func(b []byte) (topology.NodeID, bool) {
		id, ok := t.ByAddr(netip.AddrFrom4([4]byte(b)))
		return id, ok && int(id) < t.NumHosts()
	}
	src, ok1 := host(b[32:36])
	dst, ok2 := host(b[36:40])
	return path{pair{src, dst}, netip.AddrFrom4([4]byte(b[16:20]))}, ok1 && ok2
}

// parseTimespec reads struct timespec as a 64-bit kernel lays it.
func parseTimespec(b []byte) (time.Time, error) {
	if len(b) < 16 {
		return time.Time{}, errors.New("a packet's timestamp is cut short")
	}
	seconds, nanos := binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])
	return time.Unix(int64(seconds), int64(nanos)), nil
}
