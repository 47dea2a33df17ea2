package membership

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"weft/mesh"
	"weft/mesh/open"
)

// usurper is where nobody is to send.
var usurper = netip.MustParseAddrPort("127.0.0.1:9")

// usurp writes registrations over those of hosts that stay, with a public key of theirs beside another
// one, as whoever may write all of the directory can: signed by another identity, or not at all.
func (b *bed) usurp(ctx context.Context) {
	r := rand.New(rand.NewPCG(b.o.Seed, 1<<23))
	for b.pause(between(r, 2*time.Second, 6*time.Second)) {
		all := b.staying()
		h := all[r.IntN(len(all))]
		h.mu.Lock()
		m := mesh.Member{Name: h.name, Endpoints: []netip.AddrPort{usurper}, Prefixes: []netip.Prefix{netip.PrefixFrom(h.address, 32)},
			Keys: []mesh.PublicKey{h.keys[0].Public(), mesh.NewPrivateKey(h.keys[0].Generation + 1).Public()}}
		h.mu.Unlock()
		if r.IntN(2) == 0 {
			if err := m.Sign(mesh.NewIdentity()); err != nil {
				b.failf("sign: %v", err)
				return
			}
		}
		d, err := open.Directory("etcd://"+strings.Join(b.cluster.clients[:], ",")+prefix, open.Options{TTL: b.o.TTL})
		if err != nil {
			b.failf("usurp: %v", err)
			return
		}
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		if _, err = d.Put(once, m); err == nil {
			b.mu.Lock()
			b.foreign.Registrations++
			b.mu.Unlock()
		}
		cancel()
		b.pause(between(r, 0, 2*time.Second))
		d.Close() // if it cannot be reached just then, the lease ends
	}
}

// taken takes note that a host has taken a usurper's registration.
func (b *bed) taken(host, name string) {
	b.mu.Lock()
	b.foreign.Taken++
	b.mu.Unlock()
	b.notef("%s has taken a forged registration of %s", host, name)
}
