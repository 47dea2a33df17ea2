package lab

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/congestion"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/topology"
)

// marking is K of thesis §5.3.2: 20 packets.
const marking = 20 * 1514

// control is how two hosts send, over a switch that marks above a number of bytes, or does
// not. Of each host it says which congestion control its route names, and tcp_ecn.
type control struct {
	name  string
	marks int
	by    [2]string
	ecn   [2]string
	how   tcp
}

func (c control) measure(t *testing.T) queueFigures {
	t.Helper()
	l, edge, up := slowLink(t, "20", Config{QueueBytes: 300_000, Meter: &Meter{ECNBytes: c.marks}})
	defer Down(l.Config.Name)
	for i, h := range kerneltest.Hosts(l.Config.Topology) {
		sendBy(t, l, h, c.by[i], c.ecn[i])
	}
	return measureQueue(t, l, edge, up, c.name, c.how)
}

// sendBy has a host's routes name a congestion control. A SYN that is lost and sent again
// asks for ECN again.
func sendBy(t *testing.T, l *Lab, host topology.Node, by, ecn string) {
	t.Helper()
	err := l.Do(host.ID, func() error {
		_, err := new(fabric.Report).SetSysctls([]kernel.Sysctl{
			{Key: "net.ipv4.tcp_ecn", Value: ecn}, {Key: "net.ipv4.tcp_ecn_fallback", Value: "0"},
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ns := l.Namespace(host.ID)
	kerneltest.Shell(t, ns, "ip route change "+strings.TrimSpace(kerneltest.Shell(t, ns, "ip route show default"))+" congctl "+by)
}

func registerDCTCP(t *testing.T) {
	t.Helper()
	kerneltest.NeedRoot(t)
	r, err := congestion.Register()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
}

// Thesis §5.3.2: with DCTCP and a switch that marks above K the queue stays near K, and the
// link stays busy. At the same K cubic gives way at each mark by a third, so it meets fewer
// of them. The log has the figures: -v prints them.
func TestDCTCP_keepsTheQueueShort(t *testing.T) {
	slowtest.System(t)
	registerDCTCP(t)
	dctcp, cubic := [2]string{congestion.Name, congestion.Name}, [2]string{"cubic", "cubic"}
	kerneltest.OnTime(t, func() string {
		tail := control{name: "cubic, tail drop", by: cubic, ecn: [2]string{"0", "0"}}.measure(t)
		marked := control{name: "cubic, marks", marks: marking, by: cubic, ecn: [2]string{"1", "1"}}.measure(t)
		d := control{name: "DCTCP", marks: marking, by: dctcp, ecn: [2]string{"2", "2"}}.measure(t)
		switch {
		case d.mean > tail.mean/2 || d.p99 > tail.p99/2:
			return fmt.Sprintf("queue mean %.0f, p99 %.0f bytes; with tail drop %.0f and %.0f", d.mean, d.p99, tail.mean, tail.p99)
		case d.mean > 2*marking || d.drops != 0:
			return fmt.Sprintf("queue mean %.0f bytes of %d, %d drops", d.mean, marking, d.drops)
		case d.mbit < 0.9*tail.mbit || d.mbit < 0.9*marked.mbit:
			return fmt.Sprintf("goodput %.2f Mbit/s; with tail drop %.2f, by cubic with marks %.2f", d.mbit, tail.mbit, marked.mbit)
		case float64(d.marks) < 1.5*float64(marked.marks):
			return fmt.Sprintf("%d marks, by cubic %d: it gives way by too much", d.marks, marked.marks)
		}
		return ""
	})
}

// A receiver with another congestion control echoes a mark until it has heard of a
// reduction (RFC 3168). Then DCTCP reduces more than it should, and is no worse than cubic.
func TestDCTCP_toAPlainReceiver(t *testing.T) {
	slowtest.System(t)
	registerDCTCP(t)
	kerneltest.OnTime(t, func() string {
		plain := control{name: "cubic, marks", marks: marking, by: [2]string{"cubic", "cubic"}, ecn: [2]string{"1", "1"}}.measure(t)
		d := control{name: "DCTCP to cubic", marks: marking, by: [2]string{congestion.Name, "cubic"}, ecn: [2]string{"2", "1"}, how: tcp{back: true}}.measure(t)
		if d.marks == 0 || d.drops != 0 || d.mean > 2*marking || d.mbit < 0.9*plain.mbit {
			return fmt.Sprintf("%+v; by cubic %+v", d, plain)
		}
		return ""
	})
}

// Who connects to a host that refuses ECN sends by cubic.
func TestDCTCP_withoutECNIsCubic(t *testing.T) {
	registerDCTCP(t)
	l := upLab(t, Config{Topology: kerneltest.Topology(t, "fat-tree:k=2")})
	hosts := kerneltest.Hosts(l.Config.Topology)
	sendBy(t, l, hosts[0], congestion.Name, "2")
	sendBy(t, l, hosts[1], "cubic", "2")
	if got := controlOf(t, l, hosts[0], hosts[1]); got != "cubic" {
		t.Errorf("to a host without: by %s", got)
	}
	sendBy(t, l, hosts[1], congestion.Name, "2")
	if got := controlOf(t, l, hosts[0], hosts[1]); got != congestion.Name {
		t.Errorf("to a host with it: by %s", got)
	}
}

// controlOf opens a connection and returns the congestion control of its opener.
func controlOf(t *testing.T, l *Lab, from, to topology.Node) (name string) {
	t.Helper()
	var listener net.Listener
	err := l.Do(to.ID, func() (err error) {
		listener, err = net.Listen("tcp4", to.Addr.String()+":0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	err = l.Do(from.ID, func() error {
		c, err := net.DialTimeout("tcp4", listener.Addr().String(), kerneltest.Patience)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			return err
		}
		return raw.Control(func(fd uintptr) {
			name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			if err != nil {
				t.Error(err)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(name, "\x00")
}
