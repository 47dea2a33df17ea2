package daemon

import (
	"net/netip"
	"slices"
	"time"

	"weft/encap"
	"weft/internal/capture/tap"
	plane "weft/internal/dataplane"
	"weft/link"
	"weft/liveness"
	"weft/mesh"
	"weft/policy"
	"weft/resequencer"
	"weft/topology"
)

// dataplane is what carries the packets, once it is started.
type dataplane interface {
	SetTopology(*topology.Topology) error
	SetPolicy(name string, o policy.Options) error
	Done() <-chan struct{} // closed when it has ended, by itself or by Close
	Err() error            // why
	Close() error          // delivers what it holds, and closes the devices
}

// dataplaneConfig is what it needs.
type dataplaneConfig struct {
	address       netip.Addr
	behind        []netip.Prefix // this host
	address6      netip.Addr     // the zero Addr if IPv6 is nobody's concern
	topology      *topology.Topology
	topology6     *topology.Topology // that IPv6 of programs is carried through; nil: none is
	carrier       encap.Carrier
	policy        string
	options       policy.Options
	resequencer   resequencer.Config
	programs      *link.TUN     // what programs send, and the way to them
	uplink        *link.Packet  // what arrives of TCP; nil with a tunnel
	divider       plane.Divider // of what arrives; nil: uplink gets all
	longest       int           // of its super-segments, bytes; 0: as long as an IP header can say
	tunnel        *link.UDP     // nil without
	zeroChecksum  bool          // the tunnel's
	name          string        // this end's, to the peers
	peers         []peer
	joined        []mesh.Peer      // by a directory
	room          int              // for those that come later, bytes
	time          func() time.Time // of day, for a tunnel: see dataplane.Tunnel
	onlyReceiving bool             // nothing is read from programs
	evidence      bool             // losses on paths are to be observed
	tap           *tap.Tap         // where who captures sees packets
	beatIn        func()           // called by what reads from uplink or tunnel, see dataplane.GatewayConfig
	beatOut       func()           // and from programs
}

// peer is a Peer whose endpoint is resolved.
type peer struct {
	Peer
	endpoint netip.AddrPort
}

// startDataplane is a variable for the tests, which have simpler ones. The
// devices are the dataplane's when it succeeds.
var startDataplane = func(c dataplaneConfig) (dataplane, error) {
	o := plane.GatewayConfig{Address: c.address, Address6: c.address6, Behind: c.behind, Policy: c.policy, PolicyOptions: c.options,
		Resequencer: c.resequencer, Programs: c.programs, Evidence: c.evidence, BeatIn: c.beatIn, BeatOut: c.beatOut, Tap: c.tap}
	if c.tunnel != nil {
		o.Tunnel = &plane.Tunnel{Underlay: c.tunnel, Name: c.name, Peers: slices.Concat(stackPeers(c.peers), c.joined), Room: c.room, ZeroChecksum: c.zeroChecksum, Time: c.time}
	} else {
		o.Topology, o.Topology6, o.Fabric, o.Carrier, o.Divider = c.topology, c.topology6, c.uplink, c.carrier, c.divider
		o.Longest = c.longest
	}
	g, err := plane.NewGateway(o)
	if err != nil {
		return nil, err
	}
	return gateway{g}, nil
}

func stackPeers(peers []peer) []plane.Peer {
	var all []plane.Peer
	for _, p := range peers {
		q := plane.Peer{Name: p.Name, Endpoint: p.endpoint, Prefixes: p.Prefixes}
		q.Key, q.Accept = p.keys()
		all = append(all, q)
	}
	return all
}

// keys returns the key for sending to a peer, and others that are accepted from it.
// nil means none.
func (p *Peer) keys() (key *encap.UDPKey, also []encap.UDPKey) {
	if p.secret != [32]byte{} {
		key = &encap.UDPKey{ID: uint8(p.KeyID), Secret: p.secret, Cipher: p.cipher}
	}
	if p.accept != [32]byte{} {
		also = []encap.UDPKey{{ID: uint8(p.AcceptKeyID), Secret: p.accept, Cipher: p.cipher}}
	}
	return key, also
}

// keyed reports whether there are peers with a key.
func (c *Config) keyed() bool {
	return c.meshKeyed() || c.tunnels() && slices.ContainsFunc(c.UDP.Peers, func(p Peer) bool { return p.secret != [32]byte{} })
}

// gateway is stack's, with its counters for the status.
type gateway struct{ *plane.Gateway }

func (g gateway) Status() any { return g.Stats() }

func (g gateway) observe(w *liveness.Watcher, now time.Duration) { g.Observe(w, now) }

func (g gateway) observe6(w *liveness.Watcher, now time.Duration) { g.Observe6(w, now) }
