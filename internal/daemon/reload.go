package daemon

import (
	"reflect"
	"slices"

	"weft/internal/config"
)

// reloadable are the keys of the file that a running daemon can change, besides the
// keys of peers that have one.
var reloadable = []string{"topology", "policy", "flowcell_bytes", "flowlet_gap", "samples", "expiry", "samples_only", "tau", "groups", "receivers_resequence", "failures", "drain", "behind", "congestion_control", "congestion_control_prefixes"}

// canBecome names a key that differs and cannot while the daemon runs.
func (c *Config) canBecome(next *Config) error {
	a, b := reflect.ValueOf(*c), reflect.ValueOf(*next)
	for i := range a.NumField() {
		key, _ := config.Tag(a.Type().Field(i))
		if key == "" || slices.Contains(reloadable, key) {
			continue
		}
		was, is := a.Field(i).Interface(), b.Field(i).Interface()
		if udp, ok := was.(UDP); ok {
			was, is = udp.withoutKeys(), is.(UDP).withoutKeys()
		}
		if !reflect.DeepEqual(was, is) {
			return next.lines.Errorf(key, "cannot change while the daemon runs; restart it (systemctl restart weft-host)")
		}
	}
	return nil
}

// canGoOn says why a daemon that is to go on with this configuration would need what it has not
// begun with.
func (c *Config) canGoOn() error {
	p := c.policy()
	switch {
	case c.offloads() && !p.AtUplink():
		return c.lines.Errorf("policy", "%s is decided packet by packet in weft, past which mode auto sends while it is mode offload; restart the daemon (systemctl restart weft-host)", p.Name)
	case c.offloads() && !c.receives() && c.wantsOrder() && c.mustOrder():
		return c.lines.Errorf("policy", "%s sends each %v by one path, so this host has to restore the order of what its peers send, which it has not begun with; restart the daemon (systemctl restart weft-host)", p.Name, p.Unit)
	}
	return nil
}

// withoutKeys is the part of the configuration that a running daemon cannot change. Of the
// peers' keys it says only whether there are any.
func (u UDP) withoutKeys() UDP {
	u.Peers = slices.Clone(u.Peers)
	for i := range u.Peers {
		p := &u.Peers[i]
		keyed := p.secret != [32]byte{}
		*p = Peer{Name: p.Name, Prefixes: p.Prefixes, Endpoint: p.Endpoint}
		if keyed {
			p.Key = "one"
		}
	}
	return u
}
