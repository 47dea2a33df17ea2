// Package session hears routes by BGP from a host's own switches, with GoBGP. It announces
// nothing. One Session may be open in a process: GoBGP keeps settings in global variables.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	packet "github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"weft/topology/graph"
	"weft/topoupdate/bgp"
)

// Neighbor is a switch to hear from.
type Neighbor struct {
	Addr     netip.Addr
	AS       uint32
	Password string // TCP MD5 (RFC 2385), "" for none
}

// ThisHost returns what this machine knows of itself, under a name: its addresses that
// others can reach, and the networks of its devices.
func ThisHost(name string) (h bgp.Host, err error) {
	h.Name = name
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().IsGlobalUnicast() {
			continue
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits())
		h.Addresses = append(h.Addresses, p.Addr())
		if !p.IsSingleIP() {
			h.OnLink = append(h.OnLink, p.Masked())
		}
	}
	return h, err
}

// ParseNeighbor reads a neighbour's address and AS, such as 192.168.1.1=65101.
func ParseNeighbor(text string) (n Neighbor, err error) {
	addr, as, ok := strings.Cut(text, "=")
	if n.Addr, err = netip.ParseAddr(addr); err != nil || !ok {
		return n, fmt.Errorf("neighbor %q: must be an address and an AS, such as 192.168.1.1=65101", text)
	}
	number, err := strconv.ParseUint(as, 10, 32)
	if err != nil || number == 0 {
		return n, fmt.Errorf("neighbor %q: AS %q, must be a number from 1 to 4294967295", text, as)
	}
	n.AS = uint32(number)
	return n, nil
}

// Config is that of a Session.
type Config struct {
	AS        uint32     // the host's own
	RouterID  netip.Addr // an IPv4 address of the host
	Neighbors []Neighbor
	SIDBlock  netip.Prefix // bgp.Config's
	Log       *slog.Logger // nil: none
	// Changed is called when routes or sessions have come or gone. It must not block. May be nil.
	Changed func()
}

func (c Config) check() error {
	switch {
	case c.AS == 0:
		return errors.New("bgp: AS is missing: the host needs a number of its own, such as 4200000001")
	case !c.RouterID.Is4():
		return fmt.Errorf("bgp: RouterID %v, must be an IPv4 address of the host", c.RouterID)
	case len(c.Neighbors) == 0:
		return errors.New("bgp: Neighbors is empty: name the host's own switches")
	}
	for i, n := range c.Neighbors {
		if !n.Addr.IsValid() || n.AS == 0 {
			return fmt.Errorf("bgp: neighbor %v with AS %d: both must be given", n.Addr, n.AS)
		}
		if slices.ContainsFunc(c.Neighbors[:i], func(o Neighbor) bool { return o.Addr == n.Addr }) {
			return fmt.Errorf("bgp: neighbor %v is given twice", n.Addr)
		}
	}
	return nil
}

// Session is the sessions with all neighbours. Its methods may be called concurrently.
type Session struct {
	config Config
	server *server.BgpServer
	cancel context.CancelFunc
	opened time.Time

	mu        sync.Mutex
	table     *bgp.Table
	neighbors map[netip.Addr]*neighbor
}

// families are what is heard of.
var families = []packet.Family{packet.RF_IPv4_UC, packet.RF_IPv6_UC}

// Open begins to connect to the neighbours, and goes on to whenever a session ends. Close
// the Session after use.
func Open(c Config) (*Session, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Changed == nil {
		c.Changed = func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{config: c, server: server.NewBgpServer(server.LoggerOption(c.Log, nil)), cancel: cancel, opened: time.Now(), neighbors: make(map[netip.Addr]*neighbor)}
	t := bgp.Config{AS: c.AS, Neighbors: make(map[netip.Addr]uint32), SIDBlock: c.SIDBlock}
	for _, n := range c.Neighbors {
		t.Neighbors[n.Addr] = n.AS
		s.neighbors[n.Addr] = &neighbor{Neighbor: n}
	}
	s.table = bgp.NewTable(t)
	go s.server.Serve()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("bgp: %w", err), s.Close())
	}
	return s, nil
}

func (s *Session) start(ctx context.Context) error {
	global := &api.Global{Asn: s.config.AS, RouterId: s.config.RouterID.String(), ListenPort: -1}
	if err := s.server.StartBgp(ctx, &api.StartBgpRequest{Global: global}); err != nil {
		return err
	}
	err := s.server.WatchEvent(ctx, server.WatchEventMessageCallbacks{
		OnPathUpdate: s.hear,
		OnPathEor:    func(p *apiutil.Path, _ time.Time) { s.endOf(p) },
		OnPeerUpdate: s.peer,
	}, server.WatchUpdate(true, "", ""), server.WatchEor(true), server.WatchPeer())
	if err != nil {
		return err
	}
	for _, n := range s.config.Neighbors {
		if err := s.server.AddPeer(ctx, &api.AddPeerRequest{Peer: peerOf(n)}); err != nil {
			return fmt.Errorf("neighbor %v: %w", n.Addr, err)
		}
	}
	return nil
}

// retry is how long, in seconds, after the end of a session or of an attempt the next
// attempt is made.
const retry = 1

// restart is how long, in seconds, a neighbour may wait for this host after a session.
const restart = 10

// peerOf returns what GoBGP is to know of a neighbour. GoBGP's own limit on routes counts all
// of them with every update, so it is not used: see tooMany.
func peerOf(n Neighbor) *api.Peer {
	p := &api.Peer{
		Conf:   &api.PeerConf{NeighborAddress: n.Addr.String(), PeerAsn: n.AS, AuthPassword: n.Password},
		Timers: &api.Timers{Config: &api.TimersConfig{ConnectRetry: retry, IdleHoldTimeAfterReset: retry}},
		// FRR marks the end of its routes (RFC 4724) for those who can restart gracefully. No
		// family is named that would: FRR 8.4 crashes when it waits for a neighbour that it knows
		// by a range of addresses.
		GracefulRestart: &api.GracefulRestart{Enabled: true, RestartTime: restart},
	}
	for _, f := range families {
		p.AfiSafis = append(p.AfiSafis, &api.AfiSafi{
			Config:   &api.AfiSafiConfig{Family: apiutil.ToApiFamily(f.Afi(), f.Safi()), Enabled: true},
			AddPaths: &api.AddPaths{Config: &api.AddPathsConfig{Receive: true}},
		})
	}
	return p
}

// hear takes routes.
func (s *Session) hear(paths []*apiutil.Path, _ time.Time) {
	s.mu.Lock()
	before := s.table.Version()
	for _, p := range paths {
		k, ok := keyOf(p)
		switch {
		case !ok || s.neighbors[k.Neighbor] == nil:
		case p.Withdrawal:
			s.table.Withdraw(k)
		default:
			full := s.table.Refused().NoPlace
			if s.table.Set(k, routeOf(p.Attrs)); s.table.Refused().NoPlace != full {
				s.tooMany(s.neighbors[k.Neighbor])
			}
		}
	}
	changed := s.table.Version() != before
	s.mu.Unlock()
	if changed {
		s.config.Changed()
	}
}

// Spec returns what the routes heard so far make up (bgp.Table.Spec).
func (s *Session) Spec(self bgp.Host) (spec graph.Spec, guesses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Spec(self)
}

// Close ends the sessions.
func (s *Session) Close() error {
	s.mu.Lock()
	for _, n := range s.neighbors {
		if n.again != nil {
			n.again.Stop()
		}
	}
	s.mu.Unlock()
	s.cancel()
	s.server.Stop()
	return nil
}
