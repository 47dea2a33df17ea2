package world

import (
	"testing"
	"time"

	"weft/internal/simnet"
	"weft/link"
	"weft/stack"
)

// unaware is a device without stack.QueueDevice.
type unaware struct{ stack.Device }

const (
	slowLinks  = 8_000_000 // bit/s
	fullPacket = link.DefaultMTU + simnet.FrameOverhead
)

// slowHost is how a host whose own link is the slowest of a path sends 4 MB, and what its link
// and the one to the receiver have carried.
func slowHost(t *testing.T, policy string, device func(stack.Device) stack.Device) (f *Flow, out, back simnet.PortStats) {
	t.Helper()
	w := newWorld(t, Config{
		Seed:  1,
		Links: simnet.Config{RateBits: slowLinks, HostQueueBytes: simnet.DefaultQueueBytes},
		Hosts: func(_ string, c *stack.Config) {
			c.Policy, c.Device = policy, device(c.Device)
			c.Resequencer.Hold = 24 * time.Millisecond // 16 packets
		},
	})
	f = w.Flow("h0.0.2", "h0.1.2", 4<<20)
	run(t, w, time.Minute)
	out, _ = w.Network().Link(w.Link("h0.0.2", "e0.0"))
	back, _ = w.Network().Link(w.Link("h0.1.2", "e0.1"))
	return f, out, back
}

// A connection does not fill the queue of its own host. It sends packets as long as the link
// takes, fills the link, and gets one acknowledgement for two of them.
func TestRun_ownQueueIsShort(t *testing.T) {
	for _, policy := range []string{"drb", "presto"} {
		f, out, back := slowHost(t, policy, func(d stack.Device) stack.Device { return d })
		// The handshake, two round trips of some 15 ms, and the end of slow start.
		least := time.Duration(float64(out.Bytes*8) / slowLinks * float64(time.Second))
		if took := f.End; took > least*103/100+60*time.Millisecond {
			t.Errorf("%s: took %v, %v when the link is never idle", policy, took, least)
		}
		if out.Drops > 0 || out.MaxQueue > 14*fullPacket {
			t.Errorf("%s: %d packets dropped in the host's queue, which had up to %d bytes", policy, out.Drops, out.MaxQueue)
		}
		const payload = link.DefaultMTU - 60 // outer header, IP, TCP
		data := uint64(4<<20/payload) + 1
		if out.Packets > data*102/100 {
			t.Errorf("%s: %d packets were sent, %d full ones are enough", policy, out.Packets, data)
		}
		if back.Packets > data*55/100 || back.Packets < data*45/100 {
			t.Errorf("%s: %d packets came back for %d with data", policy, back.Packets, data)
		}
	}
	// What the test can see: a host that does not know its queue fills it.
	if _, out, _ := slowHost(t, "drb", func(d stack.Device) stack.Device { return unaware{d} }); out.Drops == 0 {
		t.Errorf("no packet of a host that does not know its queue was dropped, of which the queue had %d bytes", out.MaxQueue)
	}
}

// Where both ends send, acknowledgements wait behind data, and come in bursts. The links are
// in use all the same. SACK blocks are left out of packets that have no room for them.
func TestRun_ownQueueBothWays(t *testing.T) {
	for _, loss := range []float64{0, 0.005} {
		w := newWorld(t, Config{
			Seed:  1,
			Links: simnet.Config{RateBits: slowLinks, HostQueueBytes: simnet.DefaultQueueBytes},
			Hosts: func(_ string, c *stack.Config) {
				c.Policy, c.Resequencer.Hold = "drb", 24*time.Millisecond
			},
		})
		for _, s := range spines {
			w.Impair(s, "e0.1", simnet.Impairment{Loss: loss})
		}
		flows := []*Flow{w.Flow("h0.0.2", "h0.1.2", 4<<20), w.Flow("h0.1.2", "h0.0.2", 4<<20)}
		run(t, w, time.Minute)
		for i, from := range []string{"h0.0.2", "h0.1.2"} {
			if n := w.Host(from).Stats().Egress.TooLong; n > 0 {
				t.Errorf("loss %v: %d packets of %s were too long", loss, n, from)
			}
			out, _ := w.Network().Link(w.Link(from, "e"+from[1:4]))
			least := time.Duration(float64(out.Bytes*8) / slowLinks * float64(time.Second))
			if took := flows[i].End; loss == 0 && (took > least*103/100+60*time.Millisecond || out.Drops > 0) {
				t.Errorf("%s: took %v, %v when the link is never idle; %d packets dropped in its queue", from, took, least, out.Drops)
			}
		}
	}
}
