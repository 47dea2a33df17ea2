package switchd

import (
	"net"
	"testing"
	"time"

	"weft/fabric"
	"weft/lab"
)

// flows are datagrams between two plain hosts, many five-tuples of them, which
// the switches' own ECMP spreads over all paths.
type flows struct {
	l     *testLab
	socks []net.PacketConn
	to    net.Addr
}

const numFlows = 48

func (l *testLab) flows(from, to string) *flows {
	l.t.Helper()
	f := &flows{l: l}
	a, b := find(l.t, l.top, from), find(l.t, l.top, to)
	open := func(addr string) (c net.PacketConn, err error) { return net.ListenPacket("udp4", addr) }
	var echo net.PacketConn
	err := l.Do(b.ID, func() (err error) { echo, err = open(b.Addr.String() + ":0"); return err })
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { echo.Close() })
	f.to = echo.LocalAddr()
	go func() {
		for p := make([]byte, 100); ; {
			n, from, err := echo.ReadFrom(p)
			if err != nil {
				return
			}
			echo.WriteTo(p[:n], from)
		}
	}()
	err = l.Do(a.ID, func() error {
		for range numFlows {
			c, err := open(a.Addr.String() + ":0")
			if err != nil {
				return err
			}
			f.socks = append(f.socks, c)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		for _, c := range f.socks {
			c.Close()
		}
	})
	return f
}

// answered is how many of the flows come there and back within the time given.
func (f *flows) answered(wait time.Duration) (n int) {
	for _, c := range f.socks {
		c.WriteTo([]byte("ping"), f.to)
	}
	end := time.Now().Add(wait)
	for _, c := range f.socks {
		c.SetReadDeadline(end)
		if _, _, err := c.ReadFrom(make([]byte, 10)); err == nil {
			n++
		}
	}
	return n
}

// Packets that are not encapsulated find another way when a link fails anywhere,
// since the switches before it learn of it; without agents they do not.
func TestAgents_repairPlainTraffic(t *testing.T) {
	l := upLab(t, "r", "fat-tree:k=4")
	f := l.flows("h0.0.2", "h3.1.3")
	l.within("all answered", func() bool { return f.answered(time.Second) == numFlows })
	const link = "a3.2-c1.1" // the destination's side: the sources' switches do not see it
	if _, err := l.Fail(link, lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	if n := f.answered(300 * time.Millisecond); n == numFlows {
		t.Fatal("no flow needs the link: the test shows nothing")
	}
	c := fast
	c.Routes = true
	l.start(c)
	l.within("all answered around the failure", func() bool { return f.answered(300*time.Millisecond) == numFlows })
	for _, other := range []string{"e0.0-a0.3", "e3.1-a3.2"} {
		at, err := l.Fail(other, lab.FailLoud)
		if err != nil {
			t.Fatal(err)
		}
		l.within("all answered without "+other, func() bool { return f.answered(300*time.Millisecond) == numFlows })
		t.Logf("without %s: whole again within %v", other, time.Since(at))
		if _, err := l.Heal(other); err != nil {
			t.Fatal(err)
		}
		l.within("healed", func() bool {
			for _, a := range l.agents {
				if !a.Topology().Live(l.link(other)) {
					return false
				}
			}
			return f.answered(300*time.Millisecond) == numFlows
		})
	}
	if _, err := l.Heal(); err != nil {
		t.Fatal(err)
	}
	// All routes are again as the whole fabric's.
	for id, a := range l.agents {
		l.within("all links are up", func() bool { return len(a.Topology().Down()) == 0 })
		l.within("the routes are the whole fabric's", func() bool {
			plan, err := c.planOf(l, id)
			if err != nil {
				t.Fatal(err)
			}
			var report fabric.Report
			if err := l.Do(id, func() (err error) { report, err = fabric.Apply(plan); return err }); err != nil {
				t.Fatal(err)
			}
			return report.Changed == 0
		})
		if s := a.Status().Routes; s.Errors > 0 {
			t.Errorf("%s: %+v", l.top.Node(id).Name, s)
		}
	}
}
