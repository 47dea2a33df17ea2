package lab

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"weft/internal/kernel/kerneltest"
)

// classifyingLab is a pod of a fat-tree with hosts in both racks.
func classifyingLab(t *testing.T) Config {
	t.Helper()
	c := Config{Name: kerneltest.LabName("c"), Topology: kerneltest.Topology(t, "fat-tree:k=4"), Balance: "classifier:interval=100ms"}
	for _, name := range []string{"e0.0", "e0.1", "a0.2", "a0.3", "h0.0.2", "h0.0.3", "h0.1.2"} {
		c.Only = append(c.Only, kerneltest.Node(t, c.Topology, name).ID)
	}
	return c
}

// sendTo sends a packet from the first host to each of some addresses.
func sendTo(t *testing.T, l *Lab, to ...string) {
	t.Helper()
	err := l.Do(kerneltest.Node(t, l.Config.Topology, "h0.0.2").ID, func() error {
		for _, dst := range to {
			c, err := net.Dial("udp4", netip.AddrPortFrom(netip.MustParseAddr(dst), 9).String())
			if err != nil {
				return err
			}
			if _, err := c.Write(make([]byte, 1000)); err != nil {
				return err
			}
			c.Close()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// upBytes are what e0.0 has sent by its ports up.
func upBytes(t *testing.T, l *Lab) [2]uint64 {
	t.Helper()
	bytes, err := l.PortBytes(kerneltest.Node(t, l.Config.Topology, "e0.0").ID)
	if err != nil {
		t.Fatal(err)
	}
	return [2]uint64{bytes[2].TxBytes, bytes[3].TxBytes}
}

// A lab of this process classifies: two flows to hosts of the same ID go by two ports.
func TestHold_classifies(t *testing.T) {
	kerneltest.NeedRoot(t)
	l, err := Hold(t.Context(), classifyingLab(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	before := upBytes(t, l)
	sendTo(t, l, "10.0.1.3", "10.0.1.131") // by host ID both have the second port
	kerneltest.Within(t, kerneltest.Patience, "both flows are known", func() bool {
		s, err := l.Classified()
		return err == nil && s.Known == 2 && s.Flows == 2
	})
	if after := upBytes(t, l); after[0]-before[0] < 1000 || after[1]-before[1] < 1000 {
		t.Errorf("the ports sent %d and %d bytes, want a flow each", after[0]-before[0], after[1]-before[1])
	}
}

// A lab that stays says that nobody classifies, and does so as long as somebody is asked to.
func TestUp_classifies(t *testing.T) {
	l := upLab(t, classifyingLab(t))
	if !strings.Contains(strings.Join(l.Notes, "\n"), "weft lab agents") {
		t.Errorf("notes %q, want how flows are classified", l.Notes)
	}
	if s, err := l.Classified(); s != nil || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	c, err := l.Classify()
	if err != nil {
		t.Fatal(err)
	}
	sendTo(t, l, "10.0.1.3", "10.0.1.131")
	kerneltest.Within(t, kerneltest.Patience, "both flows are known", func() bool {
		s, err := c.Stats()
		return err == nil && s.Known == 2
	})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	before := upBytes(t, l)
	sendTo(t, l, "10.0.1.3", "10.0.1.131")
	kerneltest.Within(t, kerneltest.Patience, "both go by host ID", func() bool {
		after := upBytes(t, l)
		return max(after[0]-before[0], after[1]-before[1]) >= 2000
	})
	again, err := Up(t.Context(), l.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if len(again.Repaired) > 0 || again.Config.Balance != "classifier:interval=100ms,moves=3" {
		t.Errorf("repaired %q, balance %s", again.Repaired, again.Config.Balance)
	}
}
