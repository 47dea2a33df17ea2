package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"weft/internal/event"
	"weft/internal/eventlog"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	netns "weft/internal/kernel"
	"weft/internal/service"
	"weft/topology"
)

// Embedded is what weft host runs in mode offload, inside another program. Its methods are
// safe for concurrent use.
type Embedded struct {
	d        *daemon
	cancel   context.CancelFunc
	home     netns.Home
	requests chan request
	ended    chan struct{} // closed when nothing is left
	err      error         // of the end; to be read after ended
}

// request is what another goroutine asks the owner to do.
type request struct {
	do   func(context.Context) error
	done chan error
}

// Embed starts it in the network namespace of the calling thread, where it stays, and returns
// when packets take its paths. It changes no privileges, no signals and no limits of the
// process. After an error nothing is left.
func Embed(e EmbedConfig) (*Embedded, error) {
	c, err := e.embedded()
	if err != nil {
		return nil, err
	}
	if err := mayEmbed(); err != nil {
		return nil, err
	}
	lock, err := hostsetup.TakeLock() // says whose it is, before the TUN turns out to be there already
	if err != nil {
		return nil, err
	}
	lock.Remove()
	home, err := netns.OpenHome()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Embedded{d: newDaemon("", c, theKernel(), eventlog.New(e.Log, nil)), cancel: cancel, home: home, requests: make(chan request), ended: make(chan struct{})}
	r.d.loop = service.Loop{Log: r.d.log, Summary: r.d.summary}
	r.d.requests = r.requests
	started := make(chan error, 1)
	go func() {
		defer close(r.ended)
		defer r.home.Close()
		defer r.d.log.Close()
		if err := home.Do(func() error { return r.run(ctx, started) }); err != nil {
			r.err = err
			select {
			case started <- err: // the namespace cannot be entered
			default:
			}
		}
	}()
	if err := <-started; err != nil {
		cancel()
		<-r.ended
		return nil, err
	}
	return r, nil
}

// mayEmbed says which privilege is missing.
func mayEmbed() error {
	for _, need := range []struct {
		number int
		name   string
	}{{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {unix.CAP_NET_RAW, "CAP_NET_RAW"}, {unix.CAP_BPF, "CAP_BPF"}} {
		if err := netns.RequireCapability(need.number, need.name); err != nil {
			return err
		}
	}
	return nil
}

// run is the owner's goroutine.
func (r *Embedded) run(ctx context.Context, started chan<- error) error {
	watch, err := hostsetup.NewWatch()
	if err != nil {
		started <- err
		return nil
	}
	defer watch.Close()
	if err := r.d.start(ctx); err != nil {
		started <- errors.Join(err, r.d.stop())
		return nil
	}
	r.d.log.Info(event.Started, r.d.summary())
	started <- nil
	return errors.Join(r.d.serve(ctx, nil, watch.Changed()), r.d.stop())
}

// SetTopology has packets go by a fabric as it stands, that of the beginning or another one
// that has the host. If it is an IPv6 address's, IPv6 packets do. When it returns, no packet
// takes a path that is dead in it. It fails with net.ErrClosed after Close.
func (r *Embedded) SetTopology(t *topology.Topology) error {
	q := request{func(ctx context.Context) error { return r.d.give(ctx, t) }, make(chan error, 1)}
	select {
	case r.requests <- q:
	case <-r.ended:
		return net.ErrClosed
	}
	select {
	case err := <-q.done:
		return err
	case <-r.ended:
		return net.ErrClosed
	}
}

// give has packets of one family go by the fabric that another part of the program tells of.
func (d *daemon) give(ctx context.Context, t *topology.Topology) error {
	defer d.event()()
	v := d.config.views
	if t.Node(0).Addr.Is6() {
		v.fabric6 = t
	} else {
		v.fabric = t
	}
	next, err := d.config.given(v)
	if err != nil {
		return err
	}
	if !d.working {
		d.config = next
		d.trouble.again()
		return nil
	}
	if sameFabric(v.fabric, d.config.fabric) && sameFabric(v.fabric6, d.config.fabric6) {
		d.config = next // what is made anew begins with it
		d.tellFollower(v)
		d.hearAll()
		return d.goBy(d.config)
	}
	if err := d.growTo(ctx, next); err != nil {
		return fmt.Errorf("another fabric: %w", err)
	}
	return nil
}

// Status says how it is.
func (r *Embedded) Status() Status { return r.d.snapshot() }

// Counters returns those of the programs that spray and that restore order. What is sprayed is
// counted from the beginning; what is put in order since weft was last out of the way. It
// fails with net.ErrClosed after Close.
func (r *Embedded) Counters() (s hostprog.SprayStats, o hostprog.OrderStats, err error) {
	select {
	case <-r.ended:
		return s, o, net.ErrClosed
	default:
	}
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	s = r.d.counted
	if spray, ok := r.d.spray.(*hostprog.Spray); ok && spray != nil {
		if s, err = r.d.sprayed(spray); err != nil {
			return s, o, err
		}
	}
	if h, ok := r.d.receiver.(*hostReceiver); ok && h.order != nil {
		o, err = h.order.Stats()
	}
	return s, o, err
}

// Close gives the kernel everything back and returns when nothing is left. Connections live
// on. It may be called more than once.
func (r *Embedded) Close() error {
	r.cancel()
	<-r.ended
	return r.err
}
