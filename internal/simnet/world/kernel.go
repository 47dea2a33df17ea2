package world

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"weft/encap"
	"weft/gso"
	"weft/internal/checksum"
	"weft/link"
	"weft/liveness"
	"weft/resequencer"
	"weft/stack"
	"weft/topology"
)

// kernel is a host's: its TCP, and what a Linux kernel does for a daemon beside it. It
// routes TCP into the daemon's TUN while that is there, gives what comes to the
// daemon's sockets, and does without the daemon when that is late.
type kernel struct {
	world   *World
	id      topology.NodeID
	address netip.Addr
	tcp     *stack.Host
	daemon  *daemon // nil: there is none
	ran     uint64  // daemons so far
	chance  *rand.Rand

	// beatIn and beatOut are the maps of steer and detour, which outlive the daemon:
	// when it showed last that it lives.
	beatIn, beatOut time.Duration

	known  *topology.Topology // what the switches say
	peers  []netip.Addr       // with which it has exchanged TCP, sorted
	ledger ledger
}

// never is a beat that is older than any patience.
const never = -time.Hour

// patience is hostprog.SteerPatience, and that of the detour.
const patience = 300 * time.Millisecond

// Kernel makes a host's TCP its kernel's, by whose address it is known, and returns
// what Host does. Daemon starts a daemon beside it. It must come before other mentions
// of the host.
func (w *World) Kernel(name string) *stack.Host {
	n, err := w.fabric.Lookup(name)
	switch {
	case err != nil:
	case n.Layer != topology.LayerHost:
		err = fmt.Errorf("%s is not a host", name)
	case w.hosts[n.ID] != nil && w.kernels[n.ID] == nil:
		err = fmt.Errorf("%s runs a stack of its own already", name)
	case w.kernels[n.ID] == nil:
		err = w.startKernel(n)
	}
	if err != nil {
		w.fail(err)
		return nil
	}
	return w.hosts[n.ID]
}

func (w *World) startKernel(n topology.Node) (err error) {
	k := &kernel{world: w, id: n.ID, address: n.Addr, known: w.fabric, beatIn: never, beatOut: never,
		chance: rand.New(rand.NewPCG(w.config.Seed, 0x6b65726e656c<<16|uint64(n.ID)))}
	k.ledger.world = w
	c := stack.Config{
		// Nothing is wrapped, and nothing put in order; resends come after 200 ms.
		Address: n.Addr, Topology: w.fabric, Device: &nic{k}, Policy: "ecmp", TCP: stack.TCP{Timestamps: true},
		Simulation: stack.Simulation{Seed: k.chance.Uint64() | 1, Clock: &w.clock},
	}
	c.Resequencer.Discipline, c.Resequencer.Hold = resequencer.Off, 100*time.Millisecond
	if k.tcp, err = stack.New(c); err != nil {
		return err
	}
	w.kernels[n.ID], w.hosts[n.ID] = k, k.tcp
	return nil
}

// nic is the device of the kernel's TCP: everywhere.
type nic struct{ *kernel }

var (
	_ stack.Device      = nic{}
	_ stack.SuperDevice = nic{}
	_ stack.PathDevice  = nic{}
	_ stack.QueueDevice = nic{}
)

func (n nic) Holds(bytes int) bool { return n.world.net.Backlog(n.id, n.world.Now()) >= bytes }

// A kernel encapsulates nothing, and nobody tells it of paths.
func (n nic) Encapsulates() bool                            { return true }
func (n nic) SetTopology(*topology.Topology) error          { return nil }
func (n nic) SetCarriage(*liveness.Carriage) error          { return nil }
func (n nic) Choose(netip.Prefix, int, time.Duration) error { return nil }

func (n nic) MTU() int                                    { return n.world.config.MTU }
func (n nic) MaxSuper() int                               { return link.MaxSuperLen }
func (n nic) Close() error                                { return nil }
func (n nic) Read([][]byte, []int, int) (int, error)      { return 0, net.ErrClosed }
func (n nic) ReadSuper([][]byte, []int, int) (int, error) { return 0, net.ErrClosed }

func (n nic) Write(bufs [][]byte, offset int) (int, error) {
	for _, b := range bufs {
		n.route(link.VnetHeader{}, b[offset:])
	}
	return len(bufs), nil
}

func (n nic) WriteSuper(bufs [][]byte, offset int) (int, error) {
	for _, b := range bufs {
		n.route(link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(b[offset-link.VnetHeaderLen:])), b[offset:])
	}
	return len(bufs), nil
}

func (n nic) WriteParts(parts [][]byte) error {
	b := slices.Concat(parts...)
	n.route(link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(b)), b[link.VnetHeaderLen:])
	return nil
}

// route sends a packet of the host's own.
func (k *kernel) route(h link.VnetHeader, packet []byte) {
	if d := k.daemon; d != nil && d.routed && isTCP(packet) && k.world.Now()-k.beatOut <= patience {
		d.tun.push(h, packet)
		return
	}
	k.transmit(h, packet)
}

// transmit sends a packet by the uplink, super-segments cut.
func (k *kernel) transmit(h link.VnetHeader, packet []byte) {
	for _, b := range k.finish(h, packet) {
		k.world.trace.add(k.world.Now(), k.id, injected, b)
		k.world.net.Inject(k.id, b, k.world.Now())
	}
}

// finish does what a packet's header leaves to be done, and returns its segments. If it
// is one, that may be the packet itself.
func (k *kernel) finish(h link.VnetHeader, packet []byte) (segments [][]byte) {
	if err := h.Check(len(packet)); err != nil {
		k.world.fail(fmt.Errorf("%v: %w", k.address, err))
		return nil
	}
	switch {
	case h.GSO():
		var cut gso.Segmenter
		if err := cut.Start([][]byte{packet}, int(h.GSOSize), gso.Complete); err != nil {
			k.world.fail(fmt.Errorf("%v: a super-segment: %w", k.address, err))
			return nil
		}
		for cut.Left() > 0 {
			b := make([]byte, cut.NextLen())
			cut.Next(b)
			segments = append(segments, b)
		}
		return segments
	case h.Flags&link.VnetNeedsCsum != 0:
		packet = slices.Clone(packet)
		at := int(h.CsumStart) + int(h.CsumOffset)
		binary.BigEndian.PutUint16(packet[at:], ^checksum.Fold(checksum.Sum(packet[h.CsumStart:], 0)))
	}
	return [][]byte{packet}
}

// arrive takes a packet from the fabric.
func (k *kernel) arrive(packet []byte) {
	k.world.trace.add(k.world.Now(), k.id, delivered, packet)
	d := k.daemon
	switch {
	case encap.IsProbe(packet):
		if d != nil {
			d.probe(packet)
		}
		return
	case !isTCP(packet):
		k.take(packet)
		return
	}
	k.meet(source(packet))
	if d != nil {
		d.tap.push(packet)
	}
	if k.world.Now()-k.beatIn > patience { // or steer drops it
		k.take(packet)
	}
}

// take gives a packet to the kernel's TCP.
func (k *kernel) take(packet []byte) {
	k.world.trace.add(k.world.Now(), k.id, handed, packet)
	k.tcp.Receive(packet)
}

// fromDaemon takes what the daemon writes to its TUN: for this host, or to be sent.
func (k *kernel) fromDaemon(h link.VnetHeader, packet []byte) {
	if destination(packet) != k.address {
		k.daemon.tun.wrote(packet)
		k.transmit(h, packet)
		return
	}
	for _, b := range k.finish(h, packet) {
		if isTCP(b) {
			k.ledger.out(b)
		}
		k.take(b)
	}
}

// meet takes note of whom there are connections to.
func (k *kernel) meet(peer netip.Addr) {
	if i, known := slices.BinarySearchFunc(k.peers, peer, netip.Addr.Compare); !known {
		k.peers = slices.Insert(k.peers, i, peer)
	}
}

func isTCP(b []byte) bool { return len(b) >= 40 && b[0]>>4 == 4 && b[9] == 6 }

func source(b []byte) netip.Addr { return netip.AddrFrom4([4]byte(b[12:16])) }

// destination is invalid of a packet with labels.
func destination(b []byte) netip.Addr {
	if b[0]>>4 != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(b[16:20]))
}
