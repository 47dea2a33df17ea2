package lab

import (
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/congestion"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// What DCTCP does with marks, whatever load the machine has. It cuts a window by half of the
// share of marks, which is little; cubic by three tenths or more (RFC 8257 §3.3). And it hears
// of each marked packet once, where an ordinary receiver repeats a mark for a round trip
// (§3.2). A super-segment may be several packets with one mark of the switch.
func TestDCTCP_cutsByTheShareOfMarks(t *testing.T) {
	slowtest.System(t)
	registerDCTCP(t)
	for _, c := range []struct {
		by, ecn string
		isDCTCP bool
	}{
		{congestion.Name, "2", true},
		{"cubic", "1", false}, // the test tells it from DCTCP
	} {
		t.Run(c.by, func(t *testing.T) {
			f := reactionTo(t, c.by, c.ecn)
			t.Logf("%d cuts to %.2f of the window, median; the switch made %d marks, the sender heard of %d", len(f.cuts), f.median(), f.marks, f.heard)
			if f.marks == 0 || f.heard == 0 {
				t.Fatal("no marks")
			}
			little, once := f.median() > 0.8, f.heard >= f.marks/2 && f.heard <= 3*f.marks
			if got := little && once; got != c.isDCTCP {
				t.Errorf("like DCTCP: %v; cuts to %.2f", got, f.cuts)
			}
		})
	}
}

// reaction is how a sender took marks.
type reaction struct {
	cuts         []float64 // to which part of the window, one for each threshold seen
	marks, heard uint64    // packets
}

func (r reaction) median() float64 {
	sorted := slices.Sorted(slices.Values(r.cuts))
	return sorted[len(sorted)/2]
}

// reactionTo has one connection fill a queue which the switch marks, and
// watches the sender's window until it was cut often.
func reactionTo(t *testing.T, by, ecn string) (r reaction) {
	t.Helper()
	const (
		atFirst = 8 // cuts that do not count: alpha begins at 1
		enough  = 9
	)
	l, edge, up := slowLink(t, "20", Config{QueueBytes: 300_000, Meter: &Meter{ECNBytes: marking}})
	defer Down(l.Config.Name)
	hosts := kerneltest.Hosts(l.Config.Topology)
	for _, h := range hosts {
		sendBy(t, l, h, by, ecn)
	}
	var conn *net.TCPConn
	stop := transfer(t, l, hosts[0], hosts[1], tcp{opened: func(c net.Conn) { conn = c.(*net.TCPConn) }})
	defer stop()
	threshold, most, seen := uint32(0), uint32(0), 0
	var info *unix.TCPInfo
	for end := time.Now().Add(kerneltest.Patience); len(r.cuts) < enough; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d cuts seen in %v: %+v", seen, kerneltest.Patience, info)
		}
		info = infoOf(t, conn)
		if info.Snd_ssthresh == threshold {
			most = max(most, info.Snd_cwnd)
			continue
		}
		if seen++; seen > atFirst {
			r.cuts = append(r.cuts, float64(info.Snd_ssthresh)/float64(most))
		}
		threshold, most = info.Snd_ssthresh, info.Snd_cwnd
	}
	r.heard = uint64(infoOf(t, conn).Delivered_ce)
	r.marks = portMeter(t, l, edge.ID, up).Marks
	return r
}

func infoOf(t *testing.T, c *net.TCPConn) (info *unix.TCPInfo) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err != nil {
		t.Fatal(err)
	}
	return info
}
