package join

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weft/mesh"
)

// known is a file of known peers.
type knownPeers struct {
	mu    sync.Mutex
	all   map[string]mesh.PublicIdentity
	keeps int
}

func (k *knownPeers) Load() (map[string]mesh.PublicIdentity, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.all), nil
}

func (k *knownPeers) Keep(fresh map[string]mesh.PublicIdentity) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keeps++
	if k.all == nil {
		k.all = map[string]mesh.PublicIdentity{}
	}
	maps.Copy(k.all, fresh)
	return nil
}

// A name whose host comes again with another identity is refused, also by a host that has begun
// anew, until somebody removes it from the known peers.
func TestSession_anotherIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, known := newMemory(), &knownPeers{}
		own, identity := mesh.NewIdentity(), mesh.NewIdentity()
		begin := func() *host {
			return newHost(t, d, 1, func(c *Config) { c.Identity, c.Pins = own, known })
		}
		a := begin()
		b := newHost(t, d, 2, func(c *Config) { c.Identity = identity })
		<-a.Ready()
		<-b.Ready()
		time.Sleep(5 * time.Second)
		b.Close()
		time.Sleep(5 * time.Second)
		// With its identity it may have any key.
		b = newHost(t, d, 2, func(c *Config) { c.Identity = identity })
		time.Sleep(5 * time.Second)
		if !accepts(a, b) || !accepts(b, a) {
			t.Errorf("%+v", a.Status())
		}
		b.Close()
		evil := newHost(t, d, 2, func(c *Config) { c.Identity = mesh.NewIdentity() })
		for range 2 {
			time.Sleep(5 * time.Second)
			if s := a.Status(); len(a.names()) != 0 || len(s.Problems) != 1 || s.Problems[0].Name != "h2" || !strings.Contains(s.Problems[0].What, "set up anew") {
				t.Errorf("%v, %+v", a.names(), s)
			}
			a.Close()
			a = begin()
		}
		time.Sleep(5 * time.Second)
		known.mu.Lock()
		delete(known.all, "h2")
		known.mu.Unlock()
		time.Sleep(15 * time.Second)
		if s := a.Status(); !slices.Equal(a.names(), []string{"h2"}) || len(s.Problems) != 0 || !accepts(a, evil) {
			t.Errorf("accepted: %v, %+v", a.names(), s)
		}
		a.Close()
		evil.Close()
	})
}

// Hosts see keys that are replaced, and say so once for many: where all replace their keys at once, the
// directory is told some times for each of them, not once for each pair.
func TestSession_tellsWhatItHasSeenSometimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		d := newMemory()
		var hosts []*host
		for i := range n {
			hosts = append(hosts, newHost(t, d, i, func(c *Config) { c.Renew = time.Minute }))
		}
		time.Sleep(30 * time.Second)
		d.mu.Lock()
		joined := d.revision
		d.mu.Unlock()
		if joined > 2*n {
			t.Errorf("%d hosts have joined by %d registrations", n, joined)
		}
		time.Sleep(2 * time.Minute)
		d.mu.Lock()
		puts := d.revision - joined
		d.mu.Unlock()
		renewed := uint64(0)
		for _, h := range hosts {
			renewed += h.Status().Renewed
			h.Close()
		}
		if renewed < n || puts > 8*int64(renewed) { // three are the steps of a key
			t.Errorf("%d keys were replaced by %d registrations", renewed, puts)
		}
	})
}

// News that come all the time do not take the processor: the tunnel is left alone for longer than it
// took to give it its peers.
func TestSession_rests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		var took atomic.Int64
		took.Store(int64(100 * time.Millisecond)) // as with very many
		a := newHost(t, d, 1, func(c *Config) {
			set := c.SetPeers
			c.SetPeers = func(peers []mesh.Peer) error {
				time.Sleep(time.Duration(took.Load()))
				return set(peers)
			}
		})
		<-a.Ready()
		before := a.called()
		other := &of{memory: d}
		for i := range 1000 {
			m := mesh.Member{Name: "x", Endpoints: a.c.Endpoints, Prefixes: a.c.Prefixes, Keys: []mesh.PublicKey{mesh.NewPrivateKey(uint8(i)).Public()}}
			if _, err := other.Put(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := a.called() - before; n < 5 || n > 12 {
			t.Errorf("the tunnel was given its peers %d times in 10 s", n)
		}
		// On a machine that is busy with something else, one time that takes long is no reason to be deaf.
		time.Sleep(5 * time.Second)
		end := func() { other.memory.end("x") }
		took.Store(int64(20 * time.Second))
		end()
		time.Sleep(21 * time.Second)
		took.Store(0)
		time.Sleep(maxRest)
		before = a.called()
		if _, err := other.Put(t.Context(), mesh.Member{Name: "x", Endpoints: a.c.Endpoints, Prefixes: a.c.Prefixes, Keys: []mesh.PublicKey{mesh.NewPrivateKey(1).Public()}}); err != nil {
			t.Fatal(err)
		}
		if time.Sleep(maxRest + time.Second); a.called() == before {
			t.Error("after one time that took 20 s the tunnel is left alone")
		}
		a.Close()
	})
}

// Whatever somebody else registers by a host's name, the host registers again: also what has its public keys,
// which all may read. If that goes on, the host says so, and does not race.
func TestSession_overwrittenByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		a := newHost(t, d, 1, nil)
		<-a.Ready()
		other := &of{memory: d}
		registered := func() mesh.Member {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.members[a.c.Name]
		}
		own := registered()
		for what, change := range map[string]func(m *mesh.Member){
			"endpoint": func(m *mesh.Member) { m.Endpoints = []netip.AddrPort{netip.MustParseAddrPort("203.0.113.66:9")} },
			"prefix":   func(m *mesh.Member) { m.Prefixes = []netip.Prefix{netip.MustParsePrefix("203.0.113.66/32")} },
			"key":      func(m *mesh.Member) { m.Keys = []mesh.PublicKey{mesh.NewPrivateKey(0).Public()} },
		} {
			time.Sleep(2 * maxSpread)
			m := own
			change(&m)
			if _, err := other.Put(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if now := registered(); !slices.Equal(now.Endpoints, own.Endpoints) || !slices.Equal(now.Prefixes, own.Prefixes) || !slices.Equal(now.Keys, own.Keys) {
				t.Errorf("%s: %+v stays", what, now)
			}
		}
		time.Sleep(2 * maxSpread)
		if s := a.Status(); !s.Registered || s.Why != "" {
			t.Errorf("%+v", s)
		}
		before := registered().Revision
		for range 1000 { // as a copy of the host does
			m := own
			m.Keys = []mesh.PublicKey{mesh.NewPrivateKey(0).Public()}
			if now := registered(); slices.Equal(now.Keys, own.Keys) {
				if _, err := other.Put(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := registered().Revision - before; n > 60 {
			t.Errorf("%d registrations in 100 s", n)
		}
		if s := a.Status(); !strings.Contains(s.Why, "written over") {
			t.Errorf("%+v", s)
		}
		a.Close()
	})
}

// Names that come all the time are kept once in a while, the first one at once, and all of them. Meanwhile
// none of them is taken for one that somebody has removed.
func TestSession_keepsPinsSometimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, known := newMemory(), &knownPeers{}
		a := newHost(t, d, 1, func(c *Config) { c.Identity, c.Pins = mesh.NewIdentity(), known })
		<-a.Ready()
		flooder, thief := mesh.NewIdentity(), mesh.NewIdentity()
		put := func(i mesh.Identity, name string) {
			m := mesh.Member{Name: name, Endpoints: a.c.Endpoints, Prefixes: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, Keys: []mesh.PublicKey{mesh.NewPrivateKey(0).Public()}, Serial: time.Now().UnixNano()}
			if err := m.Sign(i); err != nil {
				t.Fatal(err)
			}
			d.end(name)
			if _, err := (&of{memory: d}).Put(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		counts := func() (keeps, names int) {
			known.mu.Lock()
			defer known.mu.Unlock()
			return known.keeps, len(known.all)
		}
		put(flooder, "x")
		time.Sleep(2 * time.Second)
		if keeps, names := counts(); keeps != 1 || names != 1 {
			t.Errorf("%d names kept by %d Keeps", names, keeps)
		}
		for i := range 60 {
			put(flooder, fmt.Sprint("x", i))
			put(thief, fmt.Sprint("x", i))
			time.Sleep(time.Second)
		}
		if keeps, _ := counts(); keeps < 6 || keeps > 7 {
			t.Errorf("%d Keeps in a minute", keeps)
		}
		time.Sleep(keepsPins + time.Second)
		known.mu.Lock()
		defer known.mu.Unlock()
		for i := range 60 {
			if known.all[fmt.Sprint("x", i)] != flooder.Public() {
				t.Errorf("x%d is not whose it was first", i)
			}
		}
		known.mu.Unlock()
		put(flooder, "last") // comes between two Keeps, and the Session ends
		time.Sleep(2 * time.Second)
		put(flooder, "very last")
		time.Sleep(2 * time.Second)
		a.Close()
		known.mu.Lock()
		if known.all["very last"] != flooder.Public() {
			t.Error("what was new at the end is not kept")
		}
	})
}
