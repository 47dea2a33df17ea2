package hostprog

import (
	"fmt"
	"net/netip"
)

// Behind says which host a prefix is behind: containers or virtual machines whose packets the
// host forwards, and whose addresses the fabric's routes lead there.
type Behind struct {
	Prefix netip.Prefix
	Host   netip.Addr // one of the fabric's, of the same family
}

// maxBehind bounds the prefixes behind a host; MAX_BEHIND in bpf/behind.h.
const maxBehind = 1024

func checkBehind(list []netip.Prefix) error {
	if n := len(list); n > maxBehind {
		return fmt.Errorf("%d prefixes are behind this host, must be at most %d", n, maxBehind)
	}
	return nil
}
