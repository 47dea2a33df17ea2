package membership

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"weft/mesh"
)

// Ways of somebody who may write all of the directory to take a host's place.
const (
	ownKey     = iota // a public key of the host's, which all may read, beside another one
	ownKeys           // the host's public keys, and another endpoint
	replayed          // what the host has registered before, by keys that it has replaced since
	deletedPut        // the registration is deleted first
	ways
)

var wayNames = [ways]string{"a key of the host's beside another one", "the host's keys at another endpoint", "a former registration of the host's", "deleted, and registered anew"}

// usurperOf is where nobody is to send, for each way.
func usurperOf(way int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 66, 66, byte(way + 1)}), 9)
}

func wayOf(endpoint netip.AddrPort) (way int, ok bool) {
	a := endpoint.Addr().As4()
	return int(a[3]) - 1, a[0] == 127 && a[1] == 66 && a[2] == 66
}

// registration is one that a host has written.
type registration struct {
	value      []byte
	generation uint8
}

// usurp writes registrations over those of hosts that stay, one way after the other: signed by another
// identity, or not at all.
func (b *bed) usurp(ctx context.Context) {
	r := rand.New(rand.NewPCG(b.o.Seed, 1<<23))
	former := make(map[string][]registration) // of each host, one of each key
	for n := 0; b.pause(between(r, 2*time.Second, 6*time.Second)); n++ {
		b.mu.Lock()
		clear(b.brought) // generations come again
		b.mu.Unlock()
		all := b.staying()
		for _, h := range all {
			b.record(ctx, h.name, former)
		}
		h := all[r.IntN(len(all))]
		way := n % ways
		value, err := b.forgery(h, way, r, former)
		if err != nil {
			b.failf("usurp: %v", err)
			return
		}
		if value == nil {
			continue
		}
		if lease := b.write(ctx, h.name, value, way == deletedPut); lease != "" {
			b.mu.Lock()
			b.foreign.Registrations++
			b.foreign.Usurped[way].Tried++
			b.mu.Unlock()
			b.notef("somebody registers as %s: %s", h.name, wayNames[way])
			b.pause(between(r, 0, 2*time.Second))
			// If etcd cannot be reached just then, the lease ends.
			_ = b.cluster.call(ctx, "lease/revoke", map[string]any{"ID": lease}, nil)
		}
	}
}

// forgery makes a registration; nil: there is nothing to make it of yet.
func (b *bed) forgery(h *host, way int, r *rand.Rand, former map[string][]registration) ([]byte, error) {
	if way == replayed {
		list := former[h.name]
		if len(list) < 3 { // the last key but one may be in use somewhere
			return nil, nil
		}
		old := list[r.IntN(len(list)-2)]
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, k := range h.keys {
			if k.Generation == old.generation {
				return nil, nil
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.brought[h.name] = old.generation
		return old.value, nil
	}
	h.mu.Lock()
	m := mesh.Member{Name: h.name, Endpoints: []netip.AddrPort{usurperOf(way)}, Prefixes: []netip.Prefix{netip.PrefixFrom(h.address, 32)}}
	for _, k := range h.keys {
		m.Keys = append(m.Keys, k.Public())
	}
	h.mu.Unlock()
	switch other := mesh.NewPrivateKey(m.Keys[0].Generation + 1).Public(); way {
	case ownKey:
		m.Keys = []mesh.PublicKey{m.Keys[0], other}
	case deletedPut:
		m.Keys = []mesh.PublicKey{other}
	}
	if r.IntN(2) == 0 {
		m.Serial = time.Now().UnixNano()
		if err := m.Sign(mesh.NewIdentity()); err != nil {
			return nil, err
		}
	}
	return m.Encode()
}

func keyOf(name string) []byte {
	return []byte(prefix + "/members/" + hex.EncodeToString([]byte(name)))
}

// record keeps what a host has registered.
func (b *bed) record(ctx context.Context, name string, former map[string][]registration) {
	var has struct {
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if b.cluster.call(ctx, "kv/range", map[string]any{"key": keyOf(name)}, &has) != nil || len(has.Kvs) == 0 {
		return
	}
	m, err := mesh.Decode(has.Kvs[0].Value)
	if err != nil || m.Signature == nil || len(m.Endpoints) == 0 || len(m.Keys) == 0 {
		return
	}
	if _, forged := wayOf(m.Endpoints[0]); forged {
		return
	}
	list := former[name]
	for _, r := range list {
		if r.generation == m.Keys[0].Generation {
			return
		}
	}
	former[name] = append(list, registration{has.Kvs[0].Value, m.Keys[0].Generation})
}

// write writes a registration under a lease, which it returns; "": it cannot.
func (b *bed) write(ctx context.Context, name string, value []byte, deletes bool) string {
	lease := make(map[string]any) // etcd has ID in capitals
	if b.cluster.call(ctx, "lease/grant", map[string]any{"TTL": fmt.Sprint(int(b.o.TTL / time.Second))}, &lease) != nil {
		return ""
	}
	if deletes && b.cluster.call(ctx, "kv/deleterange", map[string]any{"key": keyOf(name)}, nil) != nil {
		return ""
	}
	if b.cluster.call(ctx, "kv/put", map[string]any{"key": keyOf(name), "value": value, "lease": lease["ID"]}, nil) != nil {
		return ""
	}
	id, _ := lease["ID"].(string)
	return id
}

// forged reports whether a peer that a host has taken is as somebody else has registered it, and takes note
// of it if the host knew the name before: who comes meanwhile cannot know better.
func (b *bed) forged(h *host, p *mesh.Peer, known bool) bool {
	way, forged := wayOf(p.Endpoint)
	if generation := generationOf(p, h.name); !forged && generation >= 0 {
		b.mu.Lock()
		old, ok := b.brought[p.Name]
		b.mu.Unlock()
		way, forged = replayed, ok && generation == int(old)
	}
	if forged && known {
		b.mu.Lock()
		b.foreign.Taken++
		b.foreign.Usurped[way].Taken++
		b.mu.Unlock()
		b.notef("%s has taken a forged registration of %s: %s", h.name, p.Name, wayNames[way])
	}
	return forged
}

// generationOf is that of the peer's key by which a host sends; -1: there is none.
func generationOf(p *mesh.Peer, host string) int {
	switch {
	case p.Key == nil:
		return -1
	case p.Name < host:
		return int(p.Key.ID >> 4)
	}
	return int(p.Key.ID & 15)
}

// usurped sums up what was sent where usurpers said.
func (b *bed) usurped() []Usurpation {
	all := b.foreign.Usurped
	for _, h := range b.was {
		h.tap.mu.Lock()
		for to, n := range h.tap.astray {
			if way, ok := wayOf(to); ok {
				all[way].MovedBytes += n.known
				all[way].FirstUseBytes += n.unknown
			}
		}
		h.tap.mu.Unlock()
	}
	return all
}
