package hostprog

import (
	"fmt"
	"net/netip"
)

// Datagrams says whose UDP is sprayed, and put in order: those with one of the Ports at either
// end, and all with a host in one of Hosts. IPv4 only. The zero value names none.
type Datagrams struct {
	Ports []uint16       // at most 256
	Hosts []netip.Prefix // the other end's; at most 256
}

// maxListed bounds both lists; bpf/listed.h.
const maxListed = 256

func (d Datagrams) none() bool { return len(d.Ports) == 0 && len(d.Hosts) == 0 }

func (d Datagrams) check() error {
	if n := max(len(d.Ports), len(d.Hosts)); n > maxListed {
		return fmt.Errorf("Datagrams has %d ports and %d prefixes, must be at most %d of each", len(d.Ports), len(d.Hosts), maxListed)
	}
	for _, p := range d.Ports {
		if p == 0 {
			return fmt.Errorf("Datagrams: port 0 is none")
		}
	}
	for _, p := range d.Hosts {
		if !p.IsValid() || !p.Addr().Is4() {
			return fmt.Errorf("Datagrams: %v is no IPv4 prefix", p)
		}
	}
	return nil
}
