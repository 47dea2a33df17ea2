package world

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"weft/encap"
	"weft/internal/dataplane"
	"weft/internal/lookout"
	"weft/internal/probe"
	"weft/link"
	"weft/liveness"
	"weft/policy"
	"weft/stack"
	"weft/topology"
)

// daemon is what weft host does for a kernel's TCP: a Gateway, and a prober whose
// verdicts the Gateway goes by.
type daemon struct {
	kernel   *kernel
	process  *process
	gateway  *dataplane.Gateway
	lookout  *lookout.Lookout
	tun      *tun
	tap      *tap
	in, out  *reader
	routed   bool // TCP is routed into the TUN
	closed   bool
	maxSuper int // that the TUN takes

	topology *topology.Topology // what the Gateway goes by
	carriage *liveness.Carriage
}

// Daemon starts a daemon beside a host's kernel, or another one if there is one
// already, which is killed. change, if not nil, may change its configuration.
func (w *World) Daemon(name string, change func(*dataplane.GatewayConfig)) {
	if w.Kernel(name) == nil {
		return
	}
	k := w.kernels[w.node(name)]
	k.kill()
	d, err := k.start(change)
	if err != nil {
		w.fail(err)
		return
	}
	k.daemon = d
}

func (k *kernel) start(change func(*dataplane.GatewayConfig)) (d *daemon, err error) {
	k.ran++
	w := k.world
	d = &daemon{kernel: k, process: &process{clock: &w.clock}, topology: k.known, maxSuper: link.MaxSuperLen}
	d.tun, d.tap = &tun{daemon: d}, &tap{daemon: d}
	c := dataplane.GatewayConfig{
		Address: k.address, Topology: k.known, Policy: "drb", Seed: k.chance.Uint64() | 1, Clock: d.process,
		Programs: d.tun, Fabric: d.tap, Evidence: true,
		BeatOut: func() { k.beatOut = w.Now() }, BeatIn: func() { k.beatIn = w.Now() },
	}
	if change != nil {
		change(&c)
	}
	d.in = &reader{daemon: d, chance: k.chance}
	d.out = &reader{daemon: d, chance: k.chance}
	if d.gateway, err = dataplane.NewGateway(c); err != nil {
		return nil, err
	}
	d.lookout, err = lookout.New(lookout.Config{Clock: d.process, Tell: d.hear, Probe: probe.Config{
		Address: k.address, Topology: k.known, Carrier: c.Carrier, MTU: w.config.MTU, Seed: k.chance.Uint64(), Write: d.sendProbe,
		Observe: func(p *liveness.Watcher, now time.Duration) { d.gateway.Observe(p, now) }}})
	if err != nil {
		return nil, err
	}
	d.lookout.Start()
	d.carriage = d.lookout.Carriage()
	d.gateway.SetCarriage(d.carriage)
	d.in.start(func() (more bool) {
		w.fail(d.gateway.ReadFabric())
		return len(d.tap.queue) > 0
	})
	d.out.start(d.readPrograms)
	d.lookAround()
	d.routed = true
	k.ledger.resumed = w.Now()
	return d, nil
}

// reader is a goroutine that reads from a device: soon after something has come, and
// when it has waited for long, to show that it lives. That is so rare, if well within
// the patience of the kernel's programs, that it hides no timer that was not set.
type reader struct {
	daemon *daemon
	chance *rand.Rand
	timer  stack.Timer
	woken  bool
}

func (r *reader) start(read func() (more bool)) {
	r.timer = r.daemon.process.AfterFunc(0, func() {
		r.woken = false
		if r.daemon.closed {
			return
		}
		more := read()
		r.timer.Reset(400 * time.Millisecond)
		if more {
			r.wake()
		}
	})
	r.woken = true
}

// wake has it read after the time that a process takes to wake up: some microseconds,
// on a machine that is busy some milliseconds, in which packets gather.
func (r *reader) wake() {
	if r.woken {
		return
	}
	r.woken = true
	most := 200
	if r.chance.IntN(8) == 0 {
		most = 8000
	}
	r.timer.Reset(time.Duration(5+r.chance.IntN(most)) * time.Microsecond)
}

// readPrograms has the Gateway send what is in the TUN. All that it takes it must send,
// unless it counts why not.
func (d *daemon) readPrograms() (more bool) {
	d.tun.read, d.tun.written = 0, 0
	before := d.gateway.Stats().Egress
	d.kernel.world.fail(d.gateway.ReadPrograms())
	after := d.gateway.Stats().Egress
	refused := after.TooLong + after.Malformed + after.DeviceDrops + after.NoPath - before.TooLong - before.Malformed - before.DeviceDrops - before.NoPath
	if d.tun.read != d.tun.written && refused == 0 {
		d.kernel.world.fail(fmt.Errorf("at %v the Gateway of %v took %d bytes of payload and sent %d", d.process.Now(), d.kernel.address, d.tun.read, d.tun.written))
	}
	return len(d.tun.queue) > 0
}

// sendProbe is the prober's socket.
func (d *daemon) sendProbe(packet []byte, _ netip.Addr) error {
	w := d.kernel.world
	w.trace.add(w.Now(), d.kernel.id, injected, packet)
	w.net.Inject(d.kernel.id, packet, w.Now())
	return nil
}

// probe gives the prober a packet.
func (d *daemon) probe(packet []byte) {
	buf := append(make([]byte, encap.MaxOverhead), packet...)
	d.process.do(func() { d.lookout.Take(buf) })
}

// hear has the Gateway go by what the prober finds out.
func (d *daemon) hear(t *topology.Topology, c *liveness.Carriage) error {
	if t != d.topology {
		d.kernel.world.fail(d.gateway.SetTopology(t))
		d.topology = t
	}
	if c != d.carriage {
		d.gateway.SetCarriage(c)
		d.carriage = c
	}
	return nil
}

// lookAround tells the prober to whom there are connections.
func (d *daemon) lookAround() {
	if d.closed {
		return
	}
	d.lookout.Active(d.kernel.peers...)
	d.process.AfterFunc(500*time.Millisecond, d.lookAround)
}

// setTopology is news from the switches.
func (k *kernel) setTopology(t *topology.Topology) {
	k.known = t
	d := k.daemon
	if d == nil {
		return
	}
	d.process.do(func() {
		if !d.closed {
			k.world.fail(d.lookout.SetTopology(t))
		}
	})
}

// of returns the daemon of a host, which must have one.
func (w *World) of(name string) *daemon {
	if id := w.node(name); id >= 0 && w.kernels[id] != nil && w.kernels[id].daemon != nil {
		return w.kernels[id].daemon
	}
	w.fail(fmt.Errorf("%s has no daemon", name))
	return nil
}

// Stop has a host's daemon do nothing, as SIGSTOP does, until Continue.
func (w *World) Stop(name string) {
	if d := w.of(name); d != nil {
		d.process.stop()
	}
}

// Continue undoes Stop.
func (w *World) Continue(name string) {
	if d := w.of(name); d != nil {
		d.kernel.ledger.resumed = w.Now()
		d.process.resume()
	}
}

// Kill ends a host's daemon at once, as SIGKILL does: what is in its hands is lost.
func (w *World) Kill(name string) {
	if d := w.of(name); d != nil {
		d.kernel.kill()
	}
}

func (k *kernel) kill() {
	d := k.daemon
	if d == nil {
		return
	}
	k.daemon = nil
	d.closed = true
	d.lookout.Close()
	d.process.kill()
	d.tun.Close()
	d.tap.Close()
	clear(k.ledger.inside)
}

// Terminate ends a host's daemon in order, as SIGTERM does.
func (w *World) Terminate(name string) {
	if d := w.of(name); d != nil {
		d.routed = false
		d.process.AfterFunc(100*time.Millisecond, func() { d.end(w.Now() + 100*time.Millisecond) }) // drain
	}
}

// end ends the daemon by a time, or earlier, at a bad moment: when its Gateway holds
// packets.
func (d *daemon) end(by time.Duration) {
	k := d.kernel
	if d.gateway.Stats().Frames == gatewaySlots && k.world.Now() < by {
		d.process.AfterFunc(500*time.Microsecond, func() { d.end(by) })
		return
	}
	k.beatIn, k.beatOut = never, never // steer and detour are gone
	d.closed = true
	d.lookout.Close()
	k.world.fail(d.gateway.Close())
	if n, s := len(k.ledger.inside), d.gateway.Stats(); n > 0 || s.Frames != gatewaySlots {
		k.world.fail(fmt.Errorf("at %v the Gateway of %v has ended: %d packets have not come out, and %d frames are in use: %+v", k.world.Now(), k.address, n, s.Frames, s))
	}
	k.kill()
}

// gatewaySlots are the frames that a Gateway with nothing to hold has in use.
const gatewaySlots = 8

// SetPolicy has a host's daemon choose paths by another policy.
func (w *World) SetPolicy(name, policyName string) {
	if d := w.of(name); d != nil {
		d.process.do(func() { w.fail(d.gateway.SetPolicy(policyName, policy.Options{})) })
	}
}

// Gateway returns that of a host's daemon, to look at.
func (w *World) Gateway(name string) *dataplane.Gateway {
	if d := w.of(name); d != nil {
		return d.gateway
	}
	return nil
}
