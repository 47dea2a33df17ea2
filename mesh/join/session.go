// Package join makes a host a member of a mesh: it registers the host in a directory,
// follows who else is there, gives the host's tunnel its peers, and replaces the host's key
// from time to time.
package join

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"weft/encap"
	"weft/mesh"
)

// Config is how a host joins.
type Config struct {
	// Directory is closed by the Session once New has succeeded.
	Directory Directory
	// Name, Endpoints and Prefixes are those of the host's mesh.Member. The first Endpoint
	// says of which family its tunnel is.
	Name      string
	Endpoints []netip.AddrPort
	Prefixes  []netip.Prefix
	// Within are the prefixes in which those of others must be: a directory cannot lead other
	// traffic to them. None: they may be any.
	Within []netip.Prefix
	// Keys are the host's, as KeepKeys was given them last, or one; none: a new one that
	// nobody keeps. A host that begins anew with another key has its name again when its
	// former registration has ended.
	Keys []mesh.PrivateKey
	// Identity is who the host is for good: it signs its registrations by it. Others that have seen
	// one take no other's by the same name, so it has to be kept. The zero value: nothing is signed.
	Identity mesh.Identity
	// Pins keeps whose names are; nil: the Session alone knows them, and forgets them at its end.
	Pins Pins
	// Open says that nothing is authenticated: the host has no key.
	Open   bool
	Cipher encap.UDPCipher
	// Renew is after how long the key is replaced by a new one; 0: never.
	Renew time.Duration
	// KeepKeys keeps the host's keys for when it begins anew, before the directory learns of
	// them; nil: nobody keeps them. After an error the key is not replaced, and KeepKeys is
	// called again.
	KeepKeys func([]mesh.PrivateKey) error
	// Linger is how long a peer stays whose registration has ended, as long as it is heard:
	// it may have lost the directory and nothing else. 0: it goes at once.
	Linger time.Duration
	// SetPeers gives the tunnel its peers: stack.Host.SetPeers. After an error it is called
	// again.
	SetPeers func([]mesh.Peer) error
	// Heard returns a number that grows with each authenticated datagram of a peer; nil:
	// nobody lingers.
	Heard func(name string) uint64
	Log   *slog.Logger // nil: slog.Default()
}

// Pins keeps the identities of names. Its methods are called one at a time.
type Pins interface {
	// Load returns what is kept. It is called at the beginning, and from time to time while a
	// registration does not count for its identity: somebody may have removed the name.
	Load() (map[string]mesh.PublicIdentity, error)
	// Keep adds names. It is called once in 10 s at most; after an error again, and sooner.
	Keep(fresh map[string]mesh.PublicIdentity) error
}

// Status is what a Session knows.
type Status struct {
	Registered bool           `json:"registered"`
	Why        string         `json:"why,omitempty"` // not registered, or not following
	Following  bool           `json:"following"`     // the directory tells what changes
	Peers      int            `json:"peers"`
	Lingering  int            `json:"lingering"` // of Peers
	Updates    uint64         `json:"updates"`   // registrations and ends that the directory has told of
	Refused    uint64         `json:"refused"`   // registrations that did not count
	Problems   []mesh.Problem `json:"problems,omitempty"`
	Renewed    uint64         `json:"renewed"` // keys replaced
}

// Session is a host's membership. It is safe for concurrent use.
type Session struct {
	c      Config
	log    *slog.Logger
	cancel context.CancelFunc
	ended  sync.WaitGroup
	news   chan Update
	broken chan error

	mu     sync.Mutex
	status Status
	ready  chan struct{} // closed when the host is registered and knows the others
}

// Bounds.
const (
	settle     = 50 * time.Millisecond // for more news to come
	retry      = time.Second
	minPatient = 3 * time.Second  // for an answer of the directory at first: another of its servers may answer the next time
	maxPatient = 10 * time.Second // and then
	maxSpread  = time.Minute
)

// New joins. It returns before the directory has answered: see Ready.
func New(c Config) (*Session, error) {
	switch {
	case c.Directory == nil:
		return nil, errors.New("join: Config.Directory is missing")
	case c.SetPeers == nil:
		return nil, errors.New("join: Config.SetPeers is missing: stack.Host.SetPeers is one")
	case c.Open && (len(c.Keys) > 0 || c.Cipher != encap.UDPGMAC || c.Renew > 0):
		return nil, errors.New("join: Config.Open is given, and Keys, Cipher or Renew, too")
	case c.Open && !c.Identity.IsZero():
		return nil, errors.New("join: Config.Open is given, and Identity, too")
	case c.Renew < 0 || c.Linger < 0:
		return nil, errors.New("join: Config.Renew and Linger must not be below 0")
	}
	l := &loop{answers: make(chan answer, 1), self: mesh.Self{Name: c.Name, Cipher: c.Cipher, Within: c.Within}}
	if len(c.Endpoints) > 0 {
		l.self.Six = c.Endpoints[0].Addr().Unmap().Is6()
	}
	if !c.Open {
		var err error
		if l.self.Keys, err = ownKeys(c.Keys); err != nil {
			return nil, err
		}
	}
	m := l.member(&c)
	if _, err := m.Encode(); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	if err := l.loadPins(&c); err != nil {
		return nil, fmt.Errorf("join: Config.Pins: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{c: c, log: c.Log, cancel: cancel, news: make(chan Update, 16), broken: make(chan error, 1), ready: make(chan struct{})}
	if s.log == nil {
		s.log = slog.Default()
	}
	l.Session = s
	s.ended.Add(2)
	go func() { defer s.ended.Done(); s.follow(ctx) }()
	go func() { defer s.ended.Done(); l.run(ctx) }()
	return s, nil
}

// Ready is closed when the host is registered and its tunnel has the peers.
func (s *Session) Ready() <-chan struct{} { return s.ready }

// Status returns what the Session knows.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Close leaves the mesh. The tunnel keeps its peers.
func (s *Session) Close() error {
	s.cancel()
	s.ended.Wait()
	return s.c.Directory.Close()
}

// follow has the directory tell what changes.
func (s *Session) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.c.Directory.Watch(ctx, func(u Update) {
			select {
			case s.news <- u:
			case <-ctx.Done():
			}
		})
		select {
		case s.broken <- err:
		case <-ctx.Done():
		}
		// All hosts lose a directory at once. They do not all read it at once when it is back.
		sleep(ctx, retry+jitter(spread(s.members())))
	}
}

// members is how many members the directory has.
func (s *Session) members() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Peers
}

// spread is over how long hosts spread what all of them do: a hundred a second.
func spread(members int) time.Duration {
	return min(time.Duration(members)*10*time.Millisecond, maxSpread)
}

// jitter is a random time below d.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
