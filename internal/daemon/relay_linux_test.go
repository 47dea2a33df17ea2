package daemon

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"weft/link"
	"weft/policy"
	"weft/topology"
)

// relay is a dataplane that changes nothing: what programs send goes out as it
// is, what arrives goes in. It shows that rules, routes, programs and devices
// lead packets where they must go.
type relay struct {
	c    dataplaneConfig
	done chan struct{}
	once sync.Once
	err  error
}

func startRelay(c dataplaneConfig) (dataplane, error) {
	r := &relay{c: c, done: make(chan struct{})}
	go r.beat()
	if c.tunnel != nil {
		go r.run(func() error { return r.intoTunnel() })
		go r.run(func() error { return r.outOfTunnel() })
		return r, nil
	}
	if !c.onlyReceiving {
		go r.run(func() error { return pump(c.programs, c.programs) })
	}
	go r.run(func() error { return pump(c.uplink, c.programs) })
	return r, nil
}

// beat shows that the relay lives. It is not what is tested.
func (r *relay) beat() {
	for {
		r.c.beatIn()
		r.c.beatOut()
		select {
		case <-r.done:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (r *relay) run(f func() error) { r.end(f()) }

func (r *relay) end(err error) {
	r.once.Do(func() {
		r.err = err
		close(r.done)
	})
}

const relayOffset = 32

func buffers(n int) [][]byte {
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = make([]byte, relayOffset+65536)
	}
	return bufs
}

// pump hands on super-segments with their headers.
func pump(from interface {
	ReadSuper([][]byte, []int, int) (int, error)
}, to *link.TUN) error {
	bufs, sizes := buffers(16), make([]int, 16)
	out := make([][]byte, 0, 16)
	for {
		n, err := from.ReadSuper(bufs, sizes, relayOffset)
		if err != nil {
			return err
		}
		out = out[:0]
		for i := range n {
			out = append(out, bufs[i][:relayOffset+sizes[i]])
		}
		if _, err := to.WriteSuper(out, relayOffset); err != nil {
			return err
		}
	}
}

// intoTunnel sends whatever programs send, headers and all, to the one peer.
func (r *relay) intoTunnel() error {
	bufs, sizes := buffers(1), make([]int, 1)
	for {
		n, err := r.c.programs.ReadSuper(bufs, sizes, relayOffset)
		if err != nil {
			return err
		}
		for i := range n {
			packet := bufs[i][relayOffset-link.VnetHeaderLen : relayOffset+sizes[i]]
			if err := r.c.tunnel.Send(0, r.c.peers[0].endpoint, 0, [][]byte{packet}, 0); err != nil && !errors.Is(err, link.ErrMessageSize) {
				return err
			}
		}
	}
}

func (r *relay) outOfTunnel() error {
	buf := make([]byte, relayOffset+65536)
	in := [][]byte{buf[relayOffset-link.VnetHeaderLen:]}
	from := make([]netip.AddrPort, 1)
	sizes, segs, tos := make([]int, 1), make([]int, 1), make([]byte, 1)
	for {
		n, err := r.c.tunnel.Receive(in, sizes, segs, tos, from)
		if err != nil {
			return err
		}
		if n == 0 || sizes[0] <= link.VnetHeaderLen || segs[0] != sizes[0] {
			continue
		}
		if _, err := r.c.programs.WriteSuper([][]byte{buf[:relayOffset-link.VnetHeaderLen+sizes[0]]}, relayOffset); err != nil {
			return err
		}
	}
}

func (r *relay) SetTopology(*topology.Topology) error   { return nil }
func (r *relay) SetPolicy(string, policy.Options) error { return nil }
func (r *relay) Done() <-chan struct{}                  { return r.done }
func (r *relay) Err() error                             { return r.err }

func (r *relay) Close() error {
	r.end(nil)
	var err error
	if r.c.uplink != nil {
		err = r.c.uplink.Close()
	}
	if r.c.tunnel != nil {
		err = errors.Join(err, r.c.tunnel.Close())
	}
	return errors.Join(err, r.c.programs.Close())
}
