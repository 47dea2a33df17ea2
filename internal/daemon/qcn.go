package daemon

import (
	"time"

	"weft/topology"
)

// QCN is the section "qcn": reaction points of quantized congestion notification. 0 is auto.
type QCN struct {
	Enabled      bool    `yaml:"enabled"`
	LimitMbit    float64 `yaml:"limit_mbit,auto"`
	FloorMbit    float64 `yaml:"floor_mbit,auto"`
	IncreaseMbit float64 `yaml:"increase_mbit,auto"`
}

const (
	maxQCNMbit     = 34_000 // the kernel's 32 bits of bytes a second
	minQCNMbit     = 0.01
	defaultQCNMbit = 10_000 // of an uplink of which nothing is known
)

func (c *Config) checkQCN() error {
	q := c.QCN
	for _, r := range []struct {
		key  string
		mbit float64
	}{{"limit_mbit", q.LimitMbit}, {"floor_mbit", q.FloorMbit}, {"increase_mbit", q.IncreaseMbit}} {
		if r.mbit != 0 && !(r.mbit >= minQCNMbit && r.mbit <= maxQCNMbit) {
			return c.lines.Errorf("qcn."+r.key, "is %g, must be from %g to %d, or auto", r.mbit, minQCNMbit, maxQCNMbit)
		}
	}
	switch {
	case q.LimitMbit != 0 && q.FloorMbit >= q.LimitMbit:
		return c.lines.Errorf("qcn.floor_mbit", "is %g, must be less than limit_mbit, %g", q.FloorMbit, q.LimitMbit)
	case q.Enabled && c.tunnels():
		return c.lines.Errorf("qcn.enabled", "switches do not see inside encapsulation: udp; set it to false")
	case q.Enabled && len(c.Failures.Keys) == 0:
		return c.lines.Errorf("qcn.enabled", "is true without failures.keys, so anybody could slow connections; give failures.keys the switches' keys, or set it to false")
	}
	return nil
}

// qcnRates returns the rates for a host in a fabric, in Mbit/s. The increase is 0 where the
// reaction points' default is meant.
func (c *Config) qcnRates(t *topology.Topology, self topology.NodeID) (limit, floor, increase float64) {
	q := c.QCN
	limit = q.LimitMbit
	if limit == 0 && t != nil && len(t.Ports(self)) > 0 {
		limit = t.Rate(t.Ports(self)[0].Link)
	}
	if limit == 0 {
		limit = defaultQCNMbit
	}
	limit = min(limit, maxQCNMbit)
	floor = q.FloorMbit
	if floor == 0 || floor >= limit {
		floor = limit / 1000
	}
	return limit, floor, q.IncreaseMbit
}

// qcnSecret returns what messages are checked by. Unsigned ones are not believed, whatever
// failures.accept_unsigned says of updates.
func (c *Config) qcnSecret() func(key uint8) []byte {
	keys := c.Failures.keys(time.Time{})
	return func(key uint8) []byte {
		for _, k := range keys.List {
			if k.ID == key {
				return k.Secret
			}
		}
		return nil
	}
}
