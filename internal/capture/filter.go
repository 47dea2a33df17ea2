package capture

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Filter says which packets are wanted. The zero value wants all.
type Filter struct {
	Hosts []netip.Addr // one of the innermost addresses is among them
	Ports []uint16     // one of the ports is
	Flow  *Flow        // the packet is of this connection, in either direction
	Kinds []Kind       // the packet is of one of these kinds
}

// Flow is the two ends of a connection.
type Flow struct{ A, B netip.AddrPort }

// ParseFlow reads ADDRESS:PORT-ADDRESS:PORT.
func ParseFlow(s string) (f Flow, err error) {
	a, b, ok := strings.Cut(s, "-")
	if ok {
		if f.A, err = netip.ParseAddrPort(strings.TrimSpace(a)); err == nil {
			f.B, err = netip.ParseAddrPort(strings.TrimSpace(b))
		}
	}
	if !ok || err != nil {
		return f, fmt.Errorf("flow %q: write two ends such as 10.0.0.2:40000-10.3.1.3:80, of IPv6 [fd00::1]:40000-[fd00::2]:80", s)
	}
	f.A, f.B = netip.AddrPortFrom(f.A.Addr().Unmap(), f.A.Port()), netip.AddrPortFrom(f.B.Addr().Unmap(), f.B.Port())
	return f, nil
}

// ParseKind finds a kind by its name.
func ParseKind(name string) (Kind, error) {
	if i := slices.Index(kindNames[:], name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("kind %q is unknown; known are %s", name, strings.Join(kindNames[:], ", "))
}

// Match reports whether a packet is wanted.
func (f *Filter) Match(n *Note) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, n.Kind) {
		return false
	}
	if len(f.Hosts) == 0 && len(f.Ports) == 0 && f.Flow == nil {
		return true
	}
	if !n.IP {
		return false
	}
	t := &n.Packet.Flow
	src, dst := netip.AddrPortFrom(t.Src.IP(), t.SrcPort), netip.AddrPortFrom(t.Dst.IP(), t.DstPort)
	switch {
	case len(f.Hosts) > 0 && !slices.Contains(f.Hosts, src.Addr()) && !slices.Contains(f.Hosts, dst.Addr()):
		return false
	case len(f.Ports) > 0 && !slices.Contains(f.Ports, src.Port()) && !slices.Contains(f.Ports, dst.Port()):
		return false
	case f.Flow != nil:
		return f.Flow.A == src && f.Flow.B == dst || f.Flow.A == dst && f.Flow.B == src
	}
	return true
}
