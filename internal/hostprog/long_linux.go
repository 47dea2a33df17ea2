package hostprog

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"weft/encap"
	"weft/internal/kernel"
)

// LongStats counts super-segments that are too long for the length of an outer IPv4 header,
// and what their flows sent again. It is of addresses whose TCP is cut.
type LongStats struct {
	Sent  uint64 `json:"sent"`        // super-segments, each once
	Bytes uint64 `json:"bytes"`       // of TCP in them
	Again uint64 `json:"again_bytes"` // sent again by flows that have sent one
}

// longSupers returns how long super-segments may be at a device under the configuration, in
// bytes, if that is more than 64 KB, else 0. why says why that is less than SuperBytes asks for.
//
// A super-segment of more than 64 KB has no length in its IP header. IPv4 does without; IPv6
// has a header more (RFC 2675), which receivers may not know, and an outer IPv6 header has a
// length. So super-segments in IPv6, and of IPv6, have at most 64 KB.
func (c SprayConfig) longSupers(link netlink.Link) (bytes uint32, why string) {
	switch {
	case c.SuperBytes <= kernel.MaxSuper:
		return 0, ""
	case c.Carrier != encap.CarrierIPIP:
		return 0, fmt.Sprintf("the outer header of %v says how long a packet is, up to 64 KB", c.Carrier)
	case len(c.Cut) == 0:
		return 0, "nobody would see that they get lost: the policy has no flowcells, or weft does not cut them at the uplink"
	}
	return longSupers(link, c.SuperBytes)
}

// longSupers is what a device can do of so many bytes.
func longSupers(link netlink.Link, bytes int) (most uint32, why string) {
	a := link.Attrs()
	switch {
	case bytes <= kernel.MaxSuper:
		return 0, ""
	case a.GSOIPv4MaxSize == 0:
		return 0, "the kernel has no gso_ipv4_max_size (Linux 6.3)"
	case a.TSOMaxSize != 0 && a.TSOMaxSize <= kernel.MaxSuper:
		return 0, fmt.Sprintf("%s takes super-segments of at most %d bytes (tso_max_size)", a.Name, a.TSOMaxSize)
	case a.TSOMaxSize != 0 && a.TSOMaxSize < uint32(bytes):
		return a.TSOMaxSize, fmt.Sprintf("%s takes no longer super-segments (tso_max_size)", a.Name)
	}
	return uint32(bytes), ""
}

// ShortSupers has super-segments be as long from now on, at all uplinks, as they would be without
// SprayConfig.SuperBytes: 64 KB, or a flowcell that is smaller. Those that
// are under way, or that a connection still hands over, the kernel cuts behind the program.
func (o *Spray) ShortSupers() (err error) {
	for _, p := range append([]*program{&o.program}, o.twins...) {
		err = errors.Join(err, p.atHome(func() error {
			return p.settings.Want(p.handle, p.at.Link, kernel.GSOSize, o.usual)
		}))
	}
	return err
}

// Supers returns how long super-segments over IPv4 may be at the uplink, in bytes, and if that
// is less than SprayConfig.SuperBytes, why.
func (o *Spray) Supers() (bytes int, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handle == nil {
		return 0, ""
	}
	return int(o.settings.Wanted(kernel.GSOSize)), o.short
}
