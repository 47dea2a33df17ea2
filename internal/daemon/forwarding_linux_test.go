package daemon

import (
	"testing"

	netns "weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// A host forwards if its kernel does so in either family.
func TestPlace_findForwarding(t *testing.T) {
	kerneltest.NeedRoot(t)
	ns := kerneltest.Namespace(t, "forwards")
	for _, c := range []struct {
		set  string
		want bool
	}{
		{"net.ipv4.ip_forward=0", false}, {"net.ipv4.ip_forward=1", true}, {"net.ipv4.ip_forward=0", false},
		{"net.ipv6.conf.all.forwarding=1", true}, {"net.ipv6.conf.all.forwarding=0", false},
	} {
		kerneltest.Shell(t, ns, "sysctl -qw "+c.set)
		p := place{forwards: !c.want}
		if err := netns.InNamespace(ns, p.findForwarding); err != nil || p.forwards != c.want {
			t.Errorf("after %s: %t, want %t, %v", c.set, p.forwards, c.want, err)
		}
	}
}
