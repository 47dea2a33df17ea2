package dataplane

import (
	"errors"
	"net"

	"weft/link"
)

// queue is one of the queues of Programs. It belongs to the goroutine that reads it,
// or to the caller of ReadPrograms. A flow stays in one queue, and so in order.
type queue struct {
	dev   SuperDevice
	alive beat
	bufs  [][]byte
	sizes []int
}

// queues returns the queues of Programs: one unless it has several.
func (c *GatewayConfig) queues() (all []*queue, err error) {
	devs := []SuperDevice{c.Programs}
	d, ok := c.Programs.(interface {
		Queues() int
		Queue(i int) *link.TUNQueue
	})
	if ok && d.Queues() >= 2 {
		devs = nil
		for i := range d.Queues() {
			devs = append(devs, d.Queue(i))
		}
	}
	for i, show := range together(len(devs), c.BeatOut) {
		q := &queue{dev: devs[i], bufs: make([][]byte, superBatch), sizes: make([]int, superBatch)}
		for j := range q.bufs {
			q.bufs[j] = make([]byte, link.SuperHeadroom+link.MaxSuperLen)
		}
		if q.alive, err = newBeat("BeatOut", show, q.dev, c.Clock); err != nil {
			return nil, err
		}
		all = append(all, q)
	}
	return all, nil
}

// round waits for a batch of what programs send, and sends it.
func (q *queue) round(g *Gateway) error {
	q.alive.before()
	n, err := q.dev.ReadSuper(q.bufs, q.sizes, link.SuperHeadroom)
	err = q.alive.after(err)
	g.send(q.bufs[:n], q.sizes[:n])
	return err
}

// start has all devices read, each by a goroutine, unless the time is virtual.
func (g *Gateway) start() {
	if g.config.Clock != nil {
		if g.ingress != nil {
			g.ingress.begin()
			close(g.ingress.done) // no goroutine reads
		}
		return
	}
	if g.ingress != nil {
		g.reading.Go(func() { g.ingress.run(g.fail) })
	}
	for _, q := range g.queues {
		g.reading.Go(func() { g.forward(q) })
	}
}

// forward sends what programs send, by one queue, until the device is closed.
func (g *Gateway) forward(q *queue) {
	for {
		if err := q.round(g); err != nil {
			if !errors.Is(err, net.ErrClosed) {
				g.fail(err)
			}
			return
		}
	}
}

// ReadPrograms reads a batch from each queue of Programs and sends it. It is only for a
// Gateway with a GatewayConfig.Clock. It returns the error of the device.
func (g *Gateway) ReadPrograms() error {
	var errs []error
	for _, q := range g.queues {
		errs = append(errs, q.round(g))
	}
	return errors.Join(errs...)
}

// ReadFabric reads a batch from Fabric, and delivers the packets that are in order. It is
// only for a Gateway with a GatewayConfig.Clock and a Fabric. It returns the error of the
// device.
func (g *Gateway) ReadFabric() error { return g.ingress.round() }
