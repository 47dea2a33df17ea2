package stack

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	gstack "gvisor.dev/gvisor/pkg/tcpip/stack"

	"weft/encap"
	"weft/internal/capture/tap"
	"weft/internal/dataplane"
	"weft/internal/lookout"
	"weft/resequencer"
	"weft/third_party/netstack/tcp"
)

const nic = 1

// Overhead is what a Host adds to a packet, in bytes, with the default Carrier: an
// IPv4 header. Other carriers have encap.Carrier.Overhead.
const Overhead = encap.Overhead

// Socket buffers in bytes. 10 Gbit/s for 1 ms is 1.25 MB; TCP may keep twice
// that in flight without waiting for the reader, and grow when it must.
const (
	bufferMin     = 4 << 10
	bufferDefault = 2560 << 10
	bufferMax     = 8 << 20
)

// maxMinRTO is the least retransmission timeout in most stacks, meant for the
// Internet.
const maxMinRTO = 200 * time.Millisecond

// timeWait is how long a connection's ports stay taken after it was closed here
// first, in place of a minute: twice the longest time that a segment may live
// (RFC 9293 §3.4.1), of which a fabric with milliseconds of queues has plenty in a
// second. With a minute, a Host could open 800 connections a second to an address,
// and no more.
const timeWait = time.Second

// Host is an endpoint of the fabric: an address, or one of each family, with TCP, UDP and
// ICMP echo behind it. It is safe for concurrent use.
type Host struct {
	address  netip.Addr
	address6 netip.Addr // invalid if there is none
	net      *gstack.Stack
	egress   *dataplane.Egress
	ingress  *dataplane.Ingress[received]
	tunnel   bool             // the fabric is a Config.Tunnel
	below    io.Closer        // the device, or what the tunnel runs over
	virtual  *virtual         // nil in real time
	four     watch            // of the paths of IPv4 packets
	six      *watch           // of IPv6 packets; nil without Config.Topology6
	chooser  *pathDevice      // nil if the device chooses no paths
	journal  *lookout.Journal // that of four
	tap      tap.Tap          // where who captures sees packets
	setting  sync.Mutex       // held while egress and chooser are told of a topology
	closing  sync.Once

	mu       sync.Mutex
	sockets  map[*socket]uint64 // by age; nil once closed or failed
	opened   uint64             // sockets, ever
	failed   error              // why the device failed
	draining bool               // Shutdown was called: nobody may listen
}

// New starts a Host. On error nothing is left running and the device stays
// open.
func New(c Config) (*Host, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	e, err := dataplane.NewEgress(c.plane())
	if err != nil {
		return nil, fmt.Errorf("stack: Config.%w", err)
	}
	if c.ConnPaths {
		e.CountConnections()
	}
	h := &Host{address: c.Address, address6: c.Address6, egress: e, tunnel: c.Tunnel != nil, sockets: make(map[*socket]uint64)}
	h.journal = lookout.NewJournal(c.Log, c.Topology, c.Carrier.String(), e.MTU())
	if h.tunnel {
		h.below = c.Tunnel.Underlay
	} else {
		h.below = c.Device
		if d := c.pathDevice(); d != nil {
			h.chooser = &pathDevice{PathDevice: d, journal: h.journal, topology: c.Topology}
		}
	}
	ep := newEndpoint(e)
	if clock := c.Simulation.Clock; clock != nil {
		h.virtual = &virtual{clock: clock}
	}
	h.ingress = dataplane.NewIngress(e, &toNetstack{ep: ep, virtual: h.virtual, timestamps: c.TCP.Timestamps})
	e.TapTo(&h.tap)
	h.ingress.TapTo(&h.tap)
	if err := h.watchPaths(&c); err != nil {
		return nil, err
	}
	options := h.virtual.options(e.Seed())
	families(&options, h.address6.IsValid(), h.below)
	options.HandleLocal = true
	h.net = gstack.New(options)
	h.virtual.attach(h.net)
	if err := h.configure(&c, ep); err != nil {
		h.net.Destroy()
		return nil, err
	}
	for _, w := range h.watches() {
		w.start()
	}
	h.ingress.Start(h.fail)
	return h, nil
}

func (h *Host) configure(c *Config, ep *endpoint) error {
	send := tcpip.TCPSendBufferSizeRangeOption{Min: bufferMin, Default: bufferDefault, Max: bufferMax}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: bufferMin, Default: bufferDefault, Max: bufferMax}
	sack := tcpip.TCPSACKEnabled(true)
	moderate := tcpip.TCPModerateReceiveBufferOption(true)
	var recovery tcpip.TCPRecovery
	if c.TCP.RACK {
		recovery = tcpip.TCPRACKLossDetection
	}
	hold := c.Resequencer.Hold
	if hold == 0 {
		hold = resequencer.DefaultHold
	}
	// What is held is not lost. Peers are taken to hold as long as we do.
	timeout := tcpip.TCPMinRTOOption(min(2*hold, maxMinRTO))
	wait := tcpip.TCPTimeWaitTimeoutOption(timeWait)
	options := []tcpip.SettableTransportProtocolOption{&send, &receive, &sack, &moderate, &recovery, &timeout, &wait}
	for _, o := range options {
		if err := h.net.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return fmt.Errorf("stack: TCP option %T: %s", o, err)
		}
	}
	if err := h.net.CreateNIC(nic, ep); err != nil {
		return fmt.Errorf("stack: create interface: %s", err)
	}
	for _, a := range h.addresses() {
		if err := h.net.AddProtocolAddress(nic, protocolAddress(a), gstack.AddressProperties{}); err != nil {
			return fmt.Errorf("stack: add address %v: %s", a, err)
		}
	}
	mtu6 := 0
	if h.address6.IsValid() {
		mtu6 = h.egress.MTU6()
	}
	h.net.SetRouteTable(routes(mtu6))
	return nil
}

// Address returns the stack's IPv4 address.
func (h *Host) Address() netip.Addr { return h.address }

// Address6 returns the stack's IPv6 address; the zero Addr if it has none.
func (h *Host) Address6() netip.Addr { return h.address6 }

// Receive takes a packet from the fabric, as if it had been read from the
// Device; it is how packets come to a Host in a Config.Simulation. The bytes
// are copied.
func (h *Host) Receive(packet []byte) { h.ingress.Receive(packet) }

// Close resets all connections, unblocks every call with net.ErrClosed, stops
// the goroutines and closes the device. What a connection has not yet sent is
// lost: Shutdown waits for it.
// Close may be called more than once; later calls wait for the first.
func (h *Host) Close() error {
	var err error
	h.closing.Do(func() {
		for _, w := range h.watches() {
			w.close()
		}
		h.egress.Close()
		h.abortAll(nil)
		h.net.Close()
		err = h.below.Close()
		h.ingress.Close()
		h.net.Wait()
		h.journal.Close()
	})
	return err
}

// fail ends all connections, for the device does not work any more.
func (h *Host) fail(err error) {
	h.journal.Failed(err)
	h.abortAll(fmt.Errorf("device failed: %w", err))
}

// abortAll closes all sockets and lets no new ones be made. reason is nil for
// Close.
func (h *Host) abortAll(reason error) {
	h.mu.Lock()
	sockets := h.sockets
	h.sockets = nil
	if h.failed == nil {
		h.failed = reason
	}
	h.mu.Unlock()
	byAge := func(a, b *socket) int { return cmp.Compare(sockets[a], sockets[b]) }
	for _, s := range slices.SortedFunc(maps.Keys(sockets), byAge) {
		s.abort()
	}
}

// Err returns why the device failed, which is also what calls fail with from
// then on; nil while it works.
func (h *Host) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

// closeReason is what a call on a closed socket fails with.
func (h *Host) closeReason() error {
	if err := h.Err(); err != nil {
		return err
	}
	return net.ErrClosed
}

// ended is why the Host is at an end, nil if it is not.
func (h *Host) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.endedLocked()
}

func (h *Host) endedLocked() error {
	if h.sockets != nil {
		return nil
	}
	return cmp.Or(h.failed, net.ErrClosed)
}

// track remembers a socket for Close; it fails when Close came first.
func (h *Host) track(s *socket) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.endedLocked(); err != nil {
		return err
	}
	h.opened++
	h.sockets[s] = h.opened
	return nil
}

func (h *Host) forget(s *socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sockets, s)
}
