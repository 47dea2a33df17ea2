package testbed

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"weft/internal/hostsetup"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// settings describes what a row may change in the network namespace of the
// calling thread.
func settings() (s string, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return "", err
	}
	for _, l := range links {
		filters := 0
		for _, at := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
			if r, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: at}); err == nil { // else there is no TCX
				filters += len(r.Programs)
			}
		}
		for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
			list, _ := netlink.FilterList(l, parent) // an error: there is no clsact, thus no filter
			filters += len(list)
		}
		s += fmt.Sprintf("%s: gso_max_segs %d, %d filters\n", l.Attrs().Name, l.Attrs().GSOMaxSegs, filters)
	}
	rules, err := netlink.RuleList(netlink.FAMILY_V4)
	if err != nil {
		return "", err
	}
	for _, r := range rules {
		s += fmt.Sprintf("rule %d: %v\n", r.Priority, r)
	}
	for _, table := range []int{hostsetup.TableIn, hostsetup.TableOut} {
		routes, _ := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
		s += fmt.Sprintf("table %d: %v\n", table, routes)
	}
	for _, c := range append([]setting{{key: "net/ipv4/conf/p0/rp_filter"}}, sprayedTCP...) {
		b, err := os.ReadFile("/proc/sys/" + c.key)
		if err != nil {
			return "", err
		}
		s += fmt.Sprintf("%s = %s", c.key, b)
	}
	return s, nil
}

func TestSession_closeUndoesWhatSprays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	fatTree, _ := topology.FatTree(4)
	bed, err := InNamespaces(context.Background(), kerneltest.LabName("u"), Config{Topology: fatTree, RateMbit: 50, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
	}()
	look := func() (s string) {
		last := topology.NodeID(fatTree.NumHosts() - 1)
		if err := bed.(*namespaces).lab.Do(last, func() (err error) { s, err = settings(); return err }); err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := look()
	rows, err := Select([]string{"kernel-drb", "gateway-presto"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		s, err := bed.Start(context.Background(), row)
		if err != nil {
			t.Fatal(err)
		}
		if look() == before {
			t.Errorf("%s changes nothing that this test looks at", row.Name)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", row.Name, err)
		}
		if after := look(); after != before {
			t.Errorf("%s leaves\n%s\nit was\n%s", row.Name, after, before)
		}
	}
}
