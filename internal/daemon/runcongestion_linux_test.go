package daemon

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/congestion"
	"weft/internal/slowtest"
)

// controls are the congestion controls of a connection's ends.
func (p *pair) controls() (a, b string) {
	p.n.Helper()
	of := func(c net.Conn) (name string) {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			p.n.Fatal(err)
		}
		raw.Control(func(fd uintptr) { name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
		if err != nil {
			p.n.Fatal(err)
		}
		return strings.TrimRight(name, "\x00")
	}
	return of(p.a), of(p.b)
}

// Two daemons, without privileges by then, have one congestion control of weft's, towards
// the hosts that each names. It comes and goes with them, and connections go on.
func TestRun_congestionControl(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	before, before2 := n.configuration("h0.0.2"), n.configuration("h3.1.3")
	usual, _ := n.connect("h0.0.2", "h3.0.2").controls()
	const offload = "mode: offload\npolicy: drb\n"
	a := n.start("h0.0.2", offload+"congestion_control: weft_dctcp\ncongestion_control_prefixes: [10.3.1.0/24]\n")
	b := n.start("h3.1.3", offload+"congestion_control: weft_dctcp\n")
	for _, c := range []struct{ from, to, a, b string }{
		{"h0.0.2", "h3.1.3", congestion.Name, congestion.Name},
		{"h3.1.3", "h0.0.2", congestion.Name, congestion.Name},
		{"h0.0.2", "h3.0.2", usual, usual},
		{"h3.1.3", "h1.0.2", "cubic", usual}, // the other end refuses ECN
	} {
		p := n.connect(c.from, c.to)
		p.exchange(100_000)
		if a, b := p.controls(); a != c.a || b != c.b {
			t.Errorf("%s to %s: %s and %s, want %s and %s", c.from, c.to, a, b, c.a, c.b)
		}
	}
	if s := a.status(); s["congestion_control"] != congestion.Name || s["congestion_control_prefixes.0"] != "10.3.1.0/24" {
		t.Errorf("status: %v", s)
	}
	connection := n.connect("h0.0.2", "h3.1.3")
	reload := func(c *child, keys, says string) {
		t.Helper()
		c.write(offload + keys)
		c.cmd.Process.Signal(syscall.SIGHUP)
		c.waitFor(says)
	}
	reload(a, "congestion_control: nosuch\n", `congestion_control: "nosuch" is unknown to this kernel; it has `)
	reload(a, "congestion_control: reno\n", "reloaded: ")
	if now, _ := n.connect("h0.0.2", "h3.1.3").controls(); now != "reno" {
		t.Errorf("after a reload: %s", now)
	}
	a.end(syscall.SIGTERM)
	n.wantUnchanged("h0.0.2", before)
	if err := congestion.Check(congestion.Name); err != nil {
		t.Errorf("one of two daemons has ended: %v", err)
	}
	c := n.start("h0.0.2", offload)
	reload(c, "congestion_control: weft_dctcp\n", "weft_dctcp is brought when the daemon starts; restart it")
	c.end(syscall.SIGTERM)
	b.end(syscall.SIGKILL)
	connection.exchange(100_000)
	if a, b := connection.controls(); a != congestion.Name || b != congestion.Name {
		t.Errorf("a connection went on by %s and %s", a, b)
	}
	b = n.start("h3.1.3", offload)
	b.end(syscall.SIGTERM)
	n.wantUnchanged("h3.1.3", before2)
}
