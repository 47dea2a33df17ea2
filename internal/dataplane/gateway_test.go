package dataplane

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
)

// broken is a device that fails as soon as it is told to.
type broken struct {
	*superMemory
	fail chan struct{}
}

func (b broken) ReadSuper([][]byte, []int, int) (int, error) {
	<-b.fail
	return 0, errors.New("broken")
}

func TestGateway_endsWhenItsDeviceFails(t *testing.T) {
	near, far := superPair(1500)
	fabric, other := superPair(1500)
	defer far.Close()
	defer other.Close()
	b := broken{near, make(chan struct{})}
	g, err := NewGateway(GatewayConfig{Address: fatTree.Node(0).Addr, Topology: fatTree, Programs: b, Fabric: fabric})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	select {
	case <-g.Done():
		t.Error("ended at once")
	case <-time.After(20 * time.Millisecond):
	}
	close(b.fail)
	select {
	case <-g.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("goes on")
	}
	if err := g.Err(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%v", err)
	}
}

func TestNewGateway_rejects(t *testing.T) {
	near, far := superPair(1500)
	defer near.Close()
	defer far.Close()
	good := GatewayConfig{Address: fatTree.Node(0).Addr, Topology: fatTree, Programs: near, Fabric: far}
	for want, change := range map[string]func(c *GatewayConfig){
		"Programs": func(c *GatewayConfig) { c.Programs = nil },
		"Topology": func(c *GatewayConfig) { c.Topology = nil },
		"Address":  func(c *GatewayConfig) { c.Address = netip.MustParseAddr("192.0.2.1") },
		"Policy":   func(c *GatewayConfig) { c.Policy = "nosuch" },
		"Carrier":  func(c *GatewayConfig) { c.Carrier = encap.CarrierMPLS },
		"Tunnel":   func(c *GatewayConfig) { c.Tunnel = &Tunnel{} },
		"Underlay": func(c *GatewayConfig) { c.Tunnel, c.Topology, c.Fabric = &Tunnel{}, nil, nil },
	} {
		c := good
		change(&c)
		if g, err := NewGateway(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; does not name %s", err, want)
			if g != nil {
				g.Close()
			}
		}
	}
}

// Frames come back to where they can be used again, whatever their size.
func TestFramePool_hasRoom(t *testing.T) {
	var p framePool
	for n := 1; n <= SuperBuffer; n = n*3/2 + 1 {
		f := p.get(n)
		if len(f.buf) < n || len(f.buf) > max(2*n, smallest) {
			t.Errorf("%d bytes for %d", len(f.buf), n)
		}
		p.put(f)
		if p.get(n) != f {
			t.Errorf("a frame of %d bytes is not used again", len(f.buf))
		}
	}
}

// Whatever arrives: what programs get is what was sent, packet for packet.
func FuzzInward(f *testing.F) {
	f.Add(dataPacket(1, 100), 0)
	f.Add(dataPacket(1, 3000), 1000)
	f.Fuzz(func(t *testing.T, b []byte, mss int) {
		var pkt flowcell.Packet
		if len(b) > 60000 || pkt.Parse(b) != nil {
			return
		}
		for _, maximum := range []int{link.MaxSuperLen, 0} {
			r := &recorder{max: maximum}
			w := newToKernel(r)
			a := Arrived{Bytes: b[:pkt.Length], Slot: lent, MSS: min(max(mss, 0), 1<<16-1)}
			if !pkt.IsTCP() {
				a.MSS = 0
			}
			w.Deliver([]*frame{w.Packet(&pkt, &a), w.Packet(&pkt, &a)})
			var payload []byte
			for _, p := range r.written {
				var got flowcell.Packet
				if err := got.Parse(p.packet); err != nil || got.Flow != pkt.Flow {
					t.Fatalf("%x: %v", p.packet, err)
				}
				payload = append(payload, p.packet[len(p.packet)-int(got.Payload):]...)
			}
			want := b[pkt.Length-int(pkt.Payload) : pkt.Length]
			if w.drops == 0 && !bytes.Equal(payload, append(bytes.Clone(want), want...)) {
				t.Fatalf("%d bytes of payload, want twice %d", len(payload), len(want))
			}
		}
	})
}
