package membership

import (
	"fmt"
	"io"
	"time"

	"weft/encap"
)

// Options are what Run does.
type Options struct {
	Hosts int           // all, of which one in five comes and goes
	Kills int           // of etcd's leader
	Quiet time.Duration // how long hosts come and go before the first kill
	Renew time.Duration // after how long a host replaces its key
	TTL   time.Duration // of a registration
	// Linger is how long a host stays a peer that is heard and not registered.
	Linger time.Duration
	Cipher encap.UDPCipher
	Seed   uint64    // of what happens when, not of how long it takes
	Notes  io.Writer // nil: nowhere
	// Progress is told how many kills are over.
	Progress func(done, all int)
}

// Bounds of Options.
const (
	MinHosts = 5
	MaxHosts = 500
	MaxKills = 10_000
)

// Check says which option cannot be.
func (o *Options) Check() error {
	switch {
	case o.Hosts < MinHosts || o.Hosts > MaxHosts:
		return fmt.Errorf("--hosts=%d: must be from %d to %d", o.Hosts, MinHosts, MaxHosts)
	case o.Kills < 0 || o.Kills > MaxKills:
		return fmt.Errorf("--kills=%d: must be from 0 to %d", o.Kills, MaxKills)
	case o.Quiet < 0:
		return fmt.Errorf("--quiet=%v: must be 0s or more", o.Quiet)
	case o.Renew < time.Second:
		return fmt.Errorf("--renew=%v: must be 1s or more", o.Renew)
	case o.TTL < 2*time.Second || o.TTL > time.Minute || o.TTL%time.Second != 0:
		return fmt.Errorf("--ttl=%v: must be whole seconds from 2s to 1m", o.TTL)
	case o.Linger <= o.cut():
		return fmt.Errorf("--linger=%v: must be above --ttl and %v, the time for which hosts are cut from etcd", o.Linger, o.cut()-o.TTL)
	}
	return nil
}

// cut is for how long hosts are cut from etcd: their registrations end.
func (o *Options) cut() time.Duration { return o.TTL + 3*time.Second }

// Of hosts that come and go.
func (o *Options) churning() int { return o.Hosts / 5 }
