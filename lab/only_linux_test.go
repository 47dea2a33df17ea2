package lab

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// leafSpine is two racks with one host each, and the pod's aggregation switches.
func leafSpine(t *testing.T, top *topology.Topology) (only []topology.NodeID) {
	t.Helper()
	for _, name := range []string{"h0.1.2", "h0.0.2", "e0.0", "e0.1", "a0.2", "a0.3", "e0.1"} { // in no order, one twice
		n, err := top.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		only = append(only, n.ID)
	}
	return only
}

func TestLabOnly_isAFabricOfItsOwn(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	cfg := Config{Name: kerneltest.LabName("o"), Topology: top, Only: leafSpine(t, top)}
	l := upLab(t, cfg)
	if names := namespacesOf(t, cfg.Name); len(names) != 6 {
		t.Errorf("namespaces %v", names)
	}
	status := l.Status()
	for _, n := range status {
		if n.Error != "" {
			t.Errorf("%s: %s", n.Node, n.Error)
		}
		for _, p := range n.Ports {
			if !p.Up || strings.HasPrefix(p.Peer, "c") {
				t.Errorf("%s: %+v", n.Node, p)
			}
		}
	}
	if len(status) != 6 {
		t.Errorf("%d nodes", len(status))
	}
	from, _ := top.Lookup("h0.0.2")
	to, _ := top.Lookup("h0.1.2")
	socks := listenUDP(t, l, from, to)
	for _, pair := range [][2]net.PacketConn{{socks[0], socks[1]}, {socks[1], socks[0]}} {
		if _, err := pair[0].WriteTo([]byte("x"), pair[1].LocalAddr()); err != nil {
			t.Fatal(err)
		}
		pair[1].SetReadDeadline(time.Now().Add(kerneltest.Patience))
		if _, _, err := pair[1].ReadFrom(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	// What is not built is refused, not sent to and fro.
	err := l.Do(from.ID, func() error {
		c, err := net.DialTimeout("tcp", "10.2.0.2:80", 5*time.Second)
		if err == nil {
			c.Close()
		}
		return err
	})
	if !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("dial to another pod: %v", err)
	}
}

func TestLabOnly_isRemembered(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	cfg := Config{Name: kerneltest.LabName("p"), Topology: top, Only: leafSpine(t, top)}
	upLab(t, cfg)
	if l := upLab(t, cfg); !l.Reused {
		t.Error("built anew")
	}
	opened, err := Open(cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if n := len(opened.Status()); n != 6 {
		t.Errorf("opened with %d nodes", n)
	}
	cfg.Only = nil
	if _, err := Up(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "of that h0.0.2,h0.1.2,e0.0,e0.1,a0.2,a0.3") {
		t.Errorf("the whole: error %v", err)
	}
}
