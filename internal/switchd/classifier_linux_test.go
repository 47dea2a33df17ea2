package switchd

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/fabric"
	"weft/internal/kernel"
	"weft/internal/slowtest"
	"weft/lab"
)

// classifyPorts are e0.0's that lead down.
var classifyPorts = []string{"p0", "p1"}

// put has flows of h0.0.2 to some hosts go up by e0.0's first port.
func (l *testLab) put(to ...string) {
	l.t.Helper()
	err := l.Do(l.id("e0.0"), func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		links, err := kernel.Links(h, classifyPorts)
		if err != nil {
			return err
		}
		id, err := kernel.ClassifyFilter.Program(h, links[0])
		if err != nil {
			return err
		}
		flows, err := kernel.MapOf(id, "flows")
		if err != nil {
			return err
		}
		defer flows.Close()
		for _, dst := range to {
			key := struct{ Src, Dst [4]byte }{[4]byte{10, 0, 0, 2}, netip.MustParseAddr(dst).As4()}
			if err := flows.Put(key, struct{ Port, _, Bytes, _ uint32 }{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// elephants sends from h0.0.2 to some hosts, 4 Mbit/s each, until the test ends.
func (l *testLab) elephants(to ...string) {
	l.t.Helper()
	var c net.PacketConn
	err := l.Do(l.id("h0.0.2"), func() (err error) {
		c, err = net.ListenPacket("udp4", "10.0.0.2:0")
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan struct{})
	l.t.Cleanup(func() { c.Close(); <-ended })
	go func() {
		defer close(ended)
		for range time.Tick(2 * time.Millisecond) {
			for _, dst := range to {
				if _, err := c.WriteTo(make([]byte, 1000), net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(dst), 9))); err != nil {
					return
				}
			}
		}
	}()
}

// sentUp returns what e0.0 sends by its ports up until one of them has sent a number of bytes.
func (l *testLab) sentUp(bytes uint64) [2]uint64 { l.t.Helper(); return l.sentUpBy("e0.0", bytes) }

// sentUpBy is sentUp of a switch whose two ports up are built.
func (l *testLab) sentUpBy(node string, bytes uint64) (by [2]uint64) {
	l.t.Helper()
	now := func() [2]uint64 {
		ports, err := l.PortBytes(l.id(node))
		if err != nil {
			l.t.Fatal(err)
		}
		return [2]uint64{ports[len(ports)-2].TxBytes, ports[len(ports)-1].TxBytes}
	}
	before := now()
	l.within("elephants go up", func() bool {
		for i, n := range now() {
			by[i] = n - before[i]
		}
		return max(by[0], by[1]) >= bytes
	})
	return by
}

// removed counts the ports that classify, and removes the program.
func (l *testLab) removed() (n int) {
	l.t.Helper()
	err := l.Do(l.id("e0.0"), func() (err error) {
		n, err = fabric.DetachClassifier(classifyPorts)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

const classifyConfig = "topology: fat-tree:k=4\nbalance: classifier"

func upClassified(t *testing.T, rule string) (*testLab, *child) {
	t.Helper()
	l := upLab(t, "k", "fat-tree:k=4", "e0.0", "a0.2", "a0.3", "h0.0.2", "h0.0.3")
	p := l.child("e0.0", classifyConfig+rule+"\n")
	l.within("it classifies", func() bool { s := p.status(); return s.Classifier != nil && s.BalanceError == "" })
	return l, p
}

// Elephants that collide at a port are taken apart, and the agent has the program repaired,
// kept over a reload, and removed at the end. The tables stay.
func TestRun_classifies(t *testing.T) {
	slowtest.System(t)
	l, p := upClassified(t, ":interval=200ms")
	l.put("10.1.0.2", "10.1.0.3")
	l.elephants("10.1.0.2", "10.1.0.3")
	l.within("one of both is moved", func() bool { return p.status().Classifier.Moved == 1 })
	if by := l.sentUp(200_000); min(by[0], by[1]) < 100_000 {
		t.Errorf("%d bytes went up by the ports, want as many by both", by)
	}
	p.write(classifyConfig + ":interval=200ms\n")
	p.cmd.Process.Signal(syscall.SIGHUP)
	l.within("it has read its keys again", func() bool { return p.log.has("0 keys") })
	if s := p.status().Classifier; s == nil || s.Known != 2 || s.Rule != "classifier:interval=200ms,moves=3" || s.Late != 0 {
		t.Errorf("status %+v", s)
	}
	if n := l.removed(); n != 2 {
		t.Errorf("%d ports classify, want the hosts' 2", n)
	}
	l.within("the program is back", func() bool {
		r := p.status().Repairs
		return r.Trouble == "" && strings.Count(strings.Join(r.Last, "\n"), "weft-classify at") == 2
	})
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Wait()
	if n := l.removed(); n != 0 {
		t.Errorf("%d ports still classify: %s", n, p.log.String())
	}
	if routes, rules, programs := l.twoLevels("e0.0"); routes < 4 || rules != 3 || programs != 4 {
		t.Errorf("the tables have gone with the agent: %d routes, %d rules, %d programs", routes, rules, programs)
	}
}

// Nothing but rearranging takes elephants apart, and behind an agent that was killed host IDs
// choose: the tables, as if it had never been. What it leaves the next start removes. A port
// that fails passes its flows on to the other one.
func TestRun_classifierKilled(t *testing.T) {
	slowtest.System(t)
	l, p := upClassified(t, ":interval=1m")
	l.put("10.1.0.2", "10.1.0.3")
	l.elephants("10.1.0.2", "10.1.0.3")
	for range 2 {
		if by := l.sentUp(300_000); by[1] > 50_000 {
			t.Errorf("%d bytes went up by the ports, want all by the first", by)
		}
	}
	if s := p.status().Classifier; s == nil || s.Moved != 0 {
		t.Errorf("status %+v", s)
	}
	// The cost of a port that is down is infinite (thesis §3.1.8), and flows stay where they go
	// then.
	if _, err := l.Fail("e0.0-a0.2", lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	l.within("both have got the other port", func() bool { return p.status().Classifier.Rescued == 2 })
	if _, err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	l.within("the agent uses the link again", func() bool { return !slices.Contains(p.status().Down, "e0.0-a0.2") })
	if by := l.sentUp(100_000); by[0] > 50_000 {
		t.Errorf("%d bytes went up by the ports, want all by the second", by)
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
	l.within("host IDs choose", func() bool { by := l.sentUp(50_000); return min(by[0], by[1]) > 30_000 })
	p = l.child("e0.0", "topology: fat-tree:k=4\nbalance: two-level\n")
	l.within("it runs", func() bool { return p.status().Switch == "e0.0" })
	if n := l.removed(); n != 0 || !p.log.has("earlier run's classifier from 2 ports") {
		t.Errorf("%d ports still classify: %s", n, p.log.String())
	}
}

// A core has nothing to classify, and no reason to complain.
func TestRun_coreWithClassifier(t *testing.T) {
	l := upLab(t, "k", "fat-tree:k=4", "c1.1", "a0.2", "a1.2", "a2.2", "a3.2")
	p := l.child("c1.1", classifyConfig+"\n")
	l.within("it runs", func() bool { return p.status().Switch == "c1.1" })
	if s := p.status(); s.Classifier != nil || s.BalanceError != "" || s.Repairs == nil || s.Repairs.Trouble != "" {
		t.Errorf("%+v, %q, %+v", s.Classifier, s.BalanceError, s.Repairs)
	}
}
