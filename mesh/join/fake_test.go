package join

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weft/encap"
	"weft/mesh"
)

// memory is a directory that all hosts of a test share.
type memory struct {
	mu       sync.Mutex
	revision int64
	members  map[string]mesh.Member
	watchers map[chan Update]*of
	down     error // what everything fails with
	restores int
}

func newMemory() *memory {
	return &memory{members: map[string]mesh.Member{}, watchers: map[chan Update]*of{}}
}

// of is the directory of one host.
type of struct {
	*memory
	name     string
	restores int // that the host has been told of
}

func (d *of) Put(_ context.Context, m mesh.Member) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down != nil {
		return 0, d.down
	}
	if _, err := m.Encode(); err != nil {
		return 0, err
	}
	if d.name = m.Name; d.restores != d.memory.restores {
		d.endWatch(d.name)
		return 0, errors.New("the directory has been restored")
	}
	d.revision++
	m.Keys = slices.Clone(m.Keys)
	m.Revision, m.Since = d.revision, d.revision
	if former, ok := d.members[m.Name]; ok {
		m.Since = former.Since
	}
	d.members[m.Name] = m
	d.tell(Update{Put: []mesh.Member{m}})
	return m.Revision, nil
}

func (d *memory) tell(u Update) {
	for w, whose := range d.watchers {
		if whose.restores == d.restores { // else the watch waits for what has been
			w <- u
		}
	}
}

// restore takes the directory back to what it was. Watches are silent until hosts find out.
func (d *memory) restore(members map[string]mesh.Member, revision int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.members, d.revision = maps.Clone(members), revision
	d.restores++
}

// backup is what restore takes.
func (d *memory) backup() (members map[string]mesh.Member, revision int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.members), d.revision
}

// findOut has a host find out that the directory has been restored.
func (d *memory) findOut(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endWatch(name)
}

// endWatch ends a host's watch of what has been.
func (d *memory) endWatch(name string) {
	for w, whose := range d.watchers {
		if whose.name == name && whose.restores != d.restores {
			close(w)
			delete(d.watchers, w)
		}
	}
}

// end ends a registration.
func (d *memory) end(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.members, name)
	d.tell(Update{Gone: []string{name}})
}

// fail makes everything fail, nil: ends that.
func (d *memory) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down = err; err != nil {
		for w := range d.watchers {
			close(w)
			delete(d.watchers, w)
		}
	}
}

func (d *of) Watch(ctx context.Context, told func(Update)) error {
	d.mu.Lock()
	if d.down != nil {
		defer d.mu.Unlock()
		return d.down
	}
	w := make(chan Update, 1000)
	d.watchers[w] = d
	u := Update{All: true, Restored: d.restores != d.memory.restores}
	d.restores = d.memory.restores
	for _, m := range d.members {
		u.Put = append(u.Put, m)
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watchers, w)
	}()
	told(u)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case u, ok := <-w:
			if !ok {
				return errors.New("the directory is down")
			}
			told(u)
		}
	}
}

func (d *of) Close() error {
	if d.name != "" {
		d.end(d.name)
	}
	return nil
}

// host is a Session and what it has given its tunnel.
type host struct {
	*Session
	name  string
	mu    sync.Mutex
	peers []mesh.Peer
	heard atomic.Uint64
	calls int
	fail  error
}

func (h *host) set(peers []mesh.Peer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return h.fail
	}
	h.peers = peers
	h.calls++
	return nil
}

func (h *host) called() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

func (h *host) now() []mesh.Peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.peers
}

func (h *host) names() (names []string) {
	for _, p := range h.now() {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

func newHost(t *testing.T, d *memory, i int, change func(*Config)) *host {
	t.Helper()
	h := &host{name: fmt.Sprint("h", i)}
	c := Config{Directory: &of{memory: d}, Name: fmt.Sprint("h", i), Cipher: encap.UDPAESGCM, SetPeers: h.set, Log: slog.New(slog.DiscardHandler),
		Heard:     func(string) uint64 { return h.heard.Load() },
		Endpoints: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 5740)},
		Prefixes:  []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 32)}}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	h.Session = s
	return h
}

func (h *host) awaitAndClose() {
	<-h.Ready()
	time.Sleep(5 * time.Second)
	h.Close()
}
