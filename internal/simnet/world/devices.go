package world

import (
	"fmt"
	"net"
	"slices"

	"weft/internal/dataplane"
	"weft/link"
	"weft/resequencer/gro"
)

// tun is a daemon's: what the kernel routes into it is read, and what is written goes
// to the kernel.
type tun struct {
	daemon *daemon
	queue  []waiting
	closed bool

	read, written int // bytes of TCP payload that the daemon has taken, and sent
}

// waiting is a packet in a device's queue.
type waiting struct {
	h      link.VnetHeader
	packet []byte
}

var _ dataplane.GatewayDevice = (*tun)(nil)

// tunQueue is how many packets wait in a TUN at most.
const tunQueue = 500

func (t *tun) push(h link.VnetHeader, packet []byte) {
	if t.closed || len(t.queue) == tunQueue {
		return
	}
	t.queue = append(t.queue, waiting{h, slices.Clone(packet)})
	t.daemon.out.wake()
}

func (t *tun) ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	if t.closed {
		return 0, net.ErrClosed
	}
	for n < len(bufs) && n < len(t.queue) {
		w := t.queue[n]
		w.h.Put((*[link.VnetHeaderLen]byte)(bufs[n][offset-link.VnetHeaderLen:]))
		sizes[n] = copy(bufs[n][offset:], w.packet)
		t.read += payloadOf(w.packet)
		n++
	}
	t.queue = slices.Delete(t.queue, 0, n)
	return n, nil
}

// wrote takes note of a packet that the daemon sends, wrapped or not: as it is to racks
// to which the carrier is not proved, and by no path that is known to be dead.
func (t *tun) wrote(packet []byte) {
	in := inner(packet)
	t.written += payloadOf(in)
	d, w := t.daemon, t.daemon.kernel.world
	to, ok := w.fabric.ByAddr(destination(in))
	if len(in) == len(packet) || !ok {
		return
	}
	if edge := w.fabric.EdgeOf(to); d.carriage.Plain(edge) {
		w.fail(fmt.Errorf("at %v the Gateway of %v wraps a packet to %v, to whose rack nothing is proved: %s", w.Now(), d.kernel.address, destination(in), d.carriage.Why(edge)))
	}
	paths := d.topology.Paths(d.kernel.id, to)
	if by := destination(packet); by.IsValid() && !slices.ContainsFunc(paths.Live, func(i int) bool { return paths.Addr(i) == by }) {
		w.fail(fmt.Errorf("at %v the Gateway of %v sends to %v by %v, which is no live path", w.Now(), d.kernel.address, destination(in), by))
	}
}

func (t *tun) WriteSuper(bufs [][]byte, offset int) (int, error) {
	if t.closed {
		return 0, net.ErrClosed
	}
	for _, b := range bufs {
		t.daemon.kernel.fromDaemon(link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(b[offset-link.VnetHeaderLen:])), b[offset:])
	}
	return len(bufs), nil
}

func (t *tun) WriteParts(parts [][]byte) error {
	if t.closed {
		return net.ErrClosed
	}
	b := slices.Concat(parts...)
	t.daemon.kernel.fromDaemon(link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(b)), b[link.VnetHeaderLen:])
	return nil
}

func (t *tun) MaxSuper() int                          { return t.daemon.maxSuper }
func (t *tun) MTU() int                               { return t.daemon.kernel.world.config.MTU }
func (t *tun) Read([][]byte, []int, int) (int, error) { return 0, net.ErrClosed }
func (t *tun) Write([][]byte, int) (int, error)       { return 0, net.ErrClosed }

func (t *tun) Close() error {
	t.closed, t.queue = true, nil
	return nil
}

// tap is a daemon's packet socket on the uplink. What continues each other in its
// queue comes out as one, as from a network card's driver.
type tap struct {
	daemon *daemon
	queue  [][]byte
	closed bool
	drops  int
}

var _ dataplane.GatewayDevice = (*tap)(nil)

// tapQueue is how many packets wait in a packet socket at most: 16 MB of buffers.
const tapQueue = 7000

func (t *tap) push(packet []byte) {
	if t.closed || len(t.queue) == tapQueue {
		t.drops++
		return
	}
	t.queue = append(t.queue, slices.Clone(packet))
	t.daemon.in.wake()
}

func (t *tap) ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	if t.closed {
		return 0, net.ErrClosed
	}
	for n < len(bufs) && len(t.queue) > 0 {
		sizes[n] = t.next(bufs[n], offset)
		n++
	}
	return n, nil
}

// next takes the first packet, and what continues it, to buf.
func (t *tap) next(buf []byte, offset int) (size int) {
	var train gro.Train
	ledger, first := &t.daemon.kernel.ledger, t.queue[0]
	ledger.in(first)
	train.Start(first, 0)
	size = copy(buf[offset:], first)
	room := len(buf) - offset
	left := t.queue[:0]
	open := true
	for _, p := range t.queue[1:] {
		open = open && size+len(p) <= room
		switch {
		case string(p[12:24]) != string(first[12:24]): // addresses and ports
		case open && train.Add(p, 0):
			ledger.in(p)
			size += copy(buf[offset+size:], p[train.HeaderLen():])
			continue
		default:
			open = false
		}
		left = append(left, p)
	}
	clear(t.queue[len(left):])
	t.queue = left
	h := link.VnetHeader{Flags: link.VnetDataValid}
	if train.Finish(buf[offset:]) {
		h = link.VnetHeader{Flags: link.VnetNeedsCsum, CsumStart: 20, CsumOffset: 16,
			GSOType: link.VnetGSOTCPv4, GSOSize: uint16(train.MSS()), HdrLen: uint16(train.HeaderLen())}
	}
	h.Put((*[link.VnetHeaderLen]byte)(buf[offset-link.VnetHeaderLen:]))
	return size
}

func (t *tap) Close() error {
	t.closed, t.queue = true, nil
	return nil
}

func (t *tap) MaxSuper() int                          { return 0 }
func (t *tap) MTU() int                               { return t.daemon.kernel.world.config.MTU }
func (t *tap) Read([][]byte, []int, int) (int, error) { return 0, net.ErrClosed }
func (t *tap) Write([][]byte, int) (int, error)       { return 0, fmt.Errorf("nothing is written to it") }
func (t *tap) WriteSuper([][]byte, int) (int, error) {
	return 0, fmt.Errorf("nothing is written to it")
}
func (t *tap) WriteParts([][]byte) error { return fmt.Errorf("nothing is written to it") }
