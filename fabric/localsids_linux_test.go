package fabric

import (
	"strings"
	"testing"

	"weft/internal/kernel/kerneltest"
)

// What Apply makes of an operator's SIDs is what the printed commands would make, is not made
// twice, and comes back with a port.
func TestApply_operatorsSIDs(t *testing.T) {
	kerneltest.NeedRoot(t)
	needSIDs(t)
	p := planOf(t, strings.Replace(dual, `"2001:db8:f::1"]}`, `"2001:db8:f::1"], sids: {node: "fcbb:bbbb:1::/48"}}`, 1), "s1")
	p.Bouncing = nil // there may be no module ipip
	const show = "ip -6 route show proto 87"
	byHand := portedNamespace(t, "sidshand", p)
	kerneltest.Shell(t, byHand, "ip link set swp1 up; ip link set swp2 up; sysctl -qw net.ipv6.conf.all.forwarding=1")
	for _, c := range p.Decapsulation() {
		if strings.HasPrefix(c, "ip -6 route") {
			kerneltest.Shell(t, byHand, c)
		}
	}
	want := kerneltest.Shell(t, byHand, show)
	if strings.Count(want, "\n") != 6 || strings.Count(want, "End.DT6 table main") != 2 || strings.Count(want, "flavors next-csid lblen 32 nflen 16") != 2 {
		t.Fatalf("by hand:\n%s", want)
	}
	ns := portedNamespace(t, "sids", p)
	applyNamed(t, ns, p)
	if got := kerneltest.Shell(t, ns, show); got != want {
		t.Errorf("by Apply:\n%s\nby hand:\n%s", got, want)
	}
	if r := applyNamed(t, ns, p); r.Changed != 0 {
		t.Errorf("%d changes the second time", r.Changed)
	}
	kerneltest.Shell(t, ns, "ip link set swp1 down && ip link set swp1 up")
	applyNamed(t, ns, p)
	if got := kerneltest.Shell(t, ns, show); got != want {
		t.Errorf("after a port was down:\n%s\nbefore:\n%s", got, want)
	}
}
