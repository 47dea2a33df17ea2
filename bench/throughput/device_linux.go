package throughput

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"

	"weft/internal/hostprog"
	"weft/link"
	"weft/stack"
)

// uplinkName is the device of a lab's host that leads into the fabric.
const uplinkName = "p0"

func needTUN(context.Context, *bench) error {
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return errors.New("no /dev/net/tun: load the module (modprobe tun) or, in a container, pass the device in (--device /dev/net/tun)")
	}
	return nil
}

// openTUN opens the way into the fabric for a stack in this process.
func openTUN(s site, offload bool) (*link.TUN, error) {
	return link.OpenTUN(link.TUNConfig{
		Name:     "weft0",
		Routes:   []netip.Prefix{netip.PrefixFrom(s.topology.EmbeddedAddr(s.self), 32)},
		Overhead: stack.Overhead,
		Offload:  offload,
	})
}

// fast is a device with super-segments both ways, and what goes with it.
type fast struct {
	*link.Duplex
	steer *hostprog.Steer
	done  chan struct{}
}

// openFast opens a device that sends by a TUN and receives by a packet socket,
// which sees super-segments whole that a bouncing switch has decapsulated.
func openFast(s site) (f *fast, err error) {
	f = &fast{done: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
			f = nil
		}
	}()
	if f.steer, err = hostprog.AttachSteer(hostprog.SteerConfig{Uplink: uplinkName, Rules: []hostprog.SteerRule{
		{Address: s.topology.EmbeddedAddr(s.self), What: hostprog.SteerEverything}}}); err != nil {
		return f, err
	}
	in, err := link.OpenPacket(link.PacketConfig{Interface: uplinkName, Filter: f.steer.Filter()})
	if err != nil {
		return f, err
	}
	out, err := openTUN(s, true)
	if err != nil {
		return f, errors.Join(err, in.Close())
	}
	f.Duplex = link.NewDuplex(in, out)
	go f.beat()
	return f, f.steer.Beat()
}

// beat keeps packets from the kernel until the device is closed.
func (f *fast) beat() {
	tick := time.NewTicker(hostprog.SteerPatience / 5)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.steer.Beat()
		case <-f.done:
			return
		}
	}
}

// Close takes everything away again.
func (f *fast) Close() error {
	close(f.done)
	var all []error
	if f.Duplex != nil {
		all = append(all, f.Duplex.Close())
	}
	if f.steer != nil {
		all = append(all, f.steer.Close())
	}
	return errors.Join(all...)
}
