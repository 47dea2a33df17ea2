package stack

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/gso"
	"weft/internal/checksum"
	"weft/internal/dataplane"
	"weft/link"
	"weft/topology"
)

// abused is a SuperDevice behind a bad cable: of what is read, it cuts all
// super-segments, since cables carry packets, changes bytes, cuts off ends, sends
// twice, and swaps. The checksums are the sender's.
type abused struct {
	dataplane.GatewayDevice
	mu      sync.Mutex
	rng     *rand.Rand
	queue   [][]byte
	bufs    [][]byte
	sizes   []int
	spoiled uint64 // packets that nobody may take for good
	intact  uint64
	headers bool // not packets are changed, but what the kernel says of them
}

// Of a thousand packets, how many fare how.
const (
	corrupted  = 10
	truncated  = 10
	duplicated = 10
	swapped    = 50
)

func abuse(d dataplane.GatewayDevice, seed uint64) *abused {
	a := &abused{GatewayDevice: d, rng: rand.New(rand.NewPCG(seed, 1)), bufs: make([][]byte, 8), sizes: make([]int, 8)}
	for i := range a.bufs {
		a.bufs[i] = make([]byte, link.SuperHeadroom+dataplane.SuperBuffer)
	}
	return a
}

func (a *abused) ReadSuper(bufs [][]byte, sizes []int, offset int) (int, error) {
	for len(a.queue) == 0 {
		n, err := a.GatewayDevice.ReadSuper(a.bufs, a.sizes, link.SuperHeadroom)
		for i := range n {
			a.take(a.bufs[i][:link.SuperHeadroom+a.sizes[i]])
		}
		if err != nil {
			return 0, err
		}
	}
	n := min(len(bufs), len(a.queue))
	for i, b := range a.queue[:n] {
		copy(bufs[i][offset-link.VnetHeaderLen:], b)
		sizes[i] = len(b) - link.VnetHeaderLen
	}
	a.queue = a.queue[n:]
	return n, nil
}

// take queues the segments of a packet that stands behind link.SuperHeadroom.
func (a *abused) take(buf []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	packet := buf[link.SuperHeadroom:]
	h := link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(buf[link.SuperHeadroom-link.VnetHeaderLen:]))
	if a.headers {
		a.takeHeader(buf[link.SuperHeadroom-link.VnetHeaderLen:])
		return
	}
	if packet[9] == flowcell.ProtoIPIP { // a switch takes the outer header off
		inner, err := encap.Decapsulate(packet)
		if err != nil {
			panic(err)
		}
		h.CsumStart -= uint16(len(packet) - len(inner))
		packet = inner
	}
	var s gso.Segmenter
	if h.GSO() && s.Start([][]byte{packet}, int(h.GSOSize), gso.Complete) == nil {
		for s.Left() > 0 {
			segment := make([]byte, link.VnetHeaderLen+s.NextLen())
			s.Next(segment[link.VnetHeaderLen:])
			a.add(segment)
		}
		return
	}
	if h.Flags&link.VnetNeedsCsum != 0 {
		binary.BigEndian.PutUint16(packet[h.CsumStart+h.CsumOffset:], ^checksum.Fold(checksum.Sum(packet[h.CsumStart:], 0)))
	}
	a.add(append(make([]byte, link.VnetHeaderLen), packet...))
}

// add queues a packet behind a header that says nothing of it.
func (a *abused) add(b []byte) {
	packet := b[link.VnetHeaderLen:]
	switch dice := a.rng.IntN(1000); {
	case dice < corrupted:
		// Within a byte: the checksum notices any such error, and not any other.
		packet[a.rng.IntN(len(packet))] ^= byte(1 + a.rng.IntN(255))
		a.spoiled++
	case dice < corrupted+truncated:
		b = b[:link.VnetHeaderLen+a.rng.IntN(len(packet))]
		a.spoiled++
	case dice < corrupted+truncated+duplicated:
		a.queue = append(a.queue, bytes.Clone(b))
		a.intact += 2
	default:
		a.intact++
	}
	a.queue = append(a.queue, b)
	if last := len(a.queue) - 1; last > 0 && a.rng.IntN(1000) < swapped {
		other := max(last-1-a.rng.IntN(8), 0)
		a.queue[last], a.queue[other] = a.queue[other], a.queue[last]
	}
}

// takeHeader queues a packet, of whose virtio_net_hdr a byte may be changed.
func (a *abused) takeHeader(b []byte) {
	b = bytes.Clone(b)
	if a.rng.IntN(1000) < corrupted {
		b[a.rng.IntN(link.VnetHeaderLen)] ^= byte(1 + a.rng.IntN(255))
	}
	a.queue = append(a.queue, b)
}

func (a *abused) counts() (intact, spoiled uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.intact, a.spoiled
}

// rejected are all packets that ingress has dropped for what they are.
func rejected(s IngressStats) uint64 {
	return s.Malformed + s.BadChecksum + s.NotForUs + s.Martian + s.Encapsulated + s.PathErrors
}

// settled waits until somebody has done what is under way.
func settled(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("does not come to rest: %s", what)
			return
		}
	}
}

func TestHost_abuse(t *testing.T) {
	for _, policy := range []string{"presto", "drb"} {
		devA, devB := superPair(1500)
		cables := [2]*abused{abuse(devA, 1), abuse(devB, 2)}
		var hosts [2]*Host
		for i := range hosts {
			h, err := New(Config{Address: fatTree.EmbeddedAddr(topology.NodeID(15 * i)), Topology: fatTree, Device: encapsulating{GatewayDevice: cables[i]}, Policy: policy, Simulation: Simulation{Seed: 1}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { h.Close() })
			hosts[i] = h
		}
		transferHashed(t, hosts[0], hosts[1], 2e6, func(int) {})
		transferHashed(t, hosts[1], hosts[0], 5e5, func(int) {})
		for i, h := range hosts {
			explained(t, policy, func() IngressStats { return h.Stats().Ingress }, cables[i])
		}
		if r := hosts[1].Stats().Resequencer; r.HeldPackets != 0 {
			t.Errorf("%s: still held: %+v", policy, r)
		}
	}
}

// explained checks that each packet that was spoiled has been refused, and no
// other.
func explained(t *testing.T, what string, stats func() IngressStats, cable *abused) {
	t.Helper()
	settled(t, what, func() bool {
		intact, spoiled := cable.counts()
		return stats().Packets == intact+spoiled
	})
	s := stats()
	if _, spoiled := cable.counts(); spoiled < 3 || rejected(s) != spoiled {
		t.Errorf("%s: %d packets were spoiled, %d refused: %+v", what, spoiled, rejected(s), s)
	}
}

// What a kernel says of a packet is not believed further than it makes sense:
// the bytes are what they are.
func TestHost_abusedHeaders(t *testing.T) {
	devA, devB := superPair(1500)
	cables := [2]*abused{abuse(devA, 3), abuse(devB, 4)}
	var hosts [2]*Host
	for i := range hosts {
		cables[i].headers = true
		h, err := New(Config{Address: fatTree.EmbeddedAddr(topology.NodeID(15 * i)), Topology: fatTree, Device: encapsulating{GatewayDevice: cables[i]}, Policy: "presto", Simulation: Simulation{Seed: 1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		hosts[i] = h
	}
	transferHashed(t, hosts[0], hosts[1], 40e6, func(int) {})
}

// machine is a host whose kernel is played by netstack, with a Gateway.
type machine struct {
	kernel  *Host
	gateway *dataplane.Gateway
	tun     *abused // what the Gateway reads of the kernel's
	uplink  *abused // and of the fabric's
}

// turnpike is a TUN behind which the kernel routes: what is for itself to itself,
// all else to the fabric.
type turnpike struct {
	dataplane.GatewayDevice
	self   [4]byte
	fabric dataplane.GatewayDevice
}

func (d turnpike) to(b []byte) dataplane.GatewayDevice {
	if len(b) >= 20 && [4]byte(b[16:20]) == d.self {
		return d.GatewayDevice
	}
	return d.fabric
}

func (d turnpike) WriteSuper(bufs [][]byte, offset int) (n int, err error) {
	for _, b := range bufs {
		if k, err := d.to(b[offset:]).WriteSuper([][]byte{b}, offset); k != 1 {
			return n, err
		}
		n++
	}
	return n, nil
}

func (d turnpike) WriteParts(parts [][]byte) error {
	return d.to(parts[0][link.VnetHeaderLen:]).WriteParts(parts)
}

func (d turnpike) Close() error {
	d.fabric.Close()
	return d.GatewayDevice.Close()
}

// machines are two on one cable.
func machines(t *testing.T, policy string) (all [2]*machine) {
	t.Helper()
	var wire [2]*superMemory
	wire[0], wire[1] = superPair(1500)
	for i := range all {
		m := &machine{}
		all[i] = m
		self := fatTree.Node(topology.NodeID(15 * i)).Addr
		lower, upper := superPair(1480)
		m.uplink = abuse(wire[i], uint64(10+i))
		m.tun = abuse(turnpike{lower, self.As4(), wire[i]}, uint64(20+i))
		var err error
		if m.gateway, err = dataplane.NewGateway(dataplane.GatewayConfig{Address: self, Topology: fatTree, Programs: m.tun, Fabric: m.uplink, Policy: policy, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.gateway.Close() })
		// with numbers of its own, which the Gateway replaces, and no paths.
		if m.kernel, err = New(Config{Address: self, Topology: fatTree, Device: encapsulating{GatewayDevice: upper}, Policy: "ecmp", Simulation: Simulation{Seed: 1}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.kernel.Close() })
	}
	return all
}

func TestGateway_abuse(t *testing.T) {
	m := machines(t, "presto")
	transferHashed(t, m[0].kernel, m[1].kernel, 3e6, func(int) {})
	transferHashed(t, m[1].kernel, m[0].kernel, 5e5, func(int) {})
	for _, x := range m {
		s := x.gateway.Stats()
		// The Gateway's egress looks at headers only: of what was spoiled before it,
		// something arrives, to be refused by the other end.
		if _, spoiled := x.uplink.counts(); spoiled < 3 || rejected(s.Ingress) < spoiled {
			t.Errorf("%d packets were spoiled: %+v", spoiled, s)
		}
		if _, spoiled := x.tun.counts(); spoiled < 3 || s.Egress.Malformed == 0 || s.Egress.Malformed > spoiled {
			t.Errorf("%d packets were spoiled before: %+v", spoiled, s.Egress)
		}
		if k := x.kernel.Stats().Ingress; rejected(k) != 0 || s.Resequencer.HeldPackets != 0 || s.Refused != 0 {
			t.Errorf("came to programs: %+v, of %+v", k, s)
		}
	}
}
