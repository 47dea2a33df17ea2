package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func meshConfig(t *testing.T, more string) *Config {
	t.Helper()
	c, err := parse([]byte("encapsulation: udp\nudp:\n  directory: etcd://127.0.0.1:2379/weft/mesh/test\n"+more), "f")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What others learn of a host that its file does not say is the machine's.
func TestConfig_member(t *testing.T) {
	for more, want := range map[string][2]string{
		"  listen: 192.0.2.7:5740\n":                                    {"192.0.2.7:5740", "192.0.2.7/32"},
		"  listen: 192.0.2.7:5740\naddress: 10.9.0.1\n":                 {"192.0.2.7:5740", "10.9.0.1/32"},
		"  listen: '[fd00::7]:5740'\ntun: {addresses: [10.9.0.1/24]}\n": {"[fd00::7]:5740", "10.9.0.1/32"},
		"  endpoint: 192.0.2.9:99\n  prefixes: [10.9.8.0/24]\n":         {"192.0.2.9:99", "10.9.8.0/24"},
		"uplink: lo\nmtu: 1500\n":                                       {"", ""},
		"  listen: 0.0.0.0:0\n":                                         {"", ""},
	} {
		c := meshConfig(t, more)
		o, err := c.member("a")
		if want[0] == "" {
			if err == nil || !strings.Contains(err.Error(), "udp.endpoint: auto:") || !strings.Contains(err.Error(), "such as 192.0.2.7:5740") {
				t.Errorf("%q: %+v, %v", more, o, err)
			}
			continue
		}
		if err != nil || len(o.Endpoints) != 1 || o.Endpoints[0] != netip.MustParseAddrPort(want[0]) || !slices.Equal(o.Prefixes, []netip.Prefix{netip.MustParsePrefix(want[1])}) {
			t.Errorf("%q: %+v, %v", more, o, err)
		}
	}
}

// The daemon makes its key where it finds it again.
func TestConfig_meshKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	t.Setenv("STATE_DIRECTORY", dir)
	c := meshConfig(t, "")
	first, err := c.meshKeys()
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.meshKeys()
	if err != nil || again[0].Public() != first[0].Public() {
		t.Errorf("another key: %v", err)
	}
	if st, err := os.Stat(filepath.Join(dir, "mesh.key")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
}

// A reload cannot change a membership, and leaves the key file alone.
func TestConfig_meshCannotChange(t *testing.T) {
	a, b := meshConfig(t, ""), meshConfig(t, "  linger: 1m\n")
	if err := a.canBecome(b); err == nil || !strings.Contains(err.Error(), "udp: cannot change") {
		t.Error(err)
	}
	if err := a.canBecome(meshConfig(t, "policy: ecmp\n")); err != nil {
		t.Error(err)
	}
}

// An address is behind a peer if one of the prefixes has it.
func TestPlace_behind(t *testing.T) {
	p := place{peers: []peer{{Peer{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")}}, netip.MustParseAddrPort("192.0.2.1:1")}}}
	p.joined = stackPeers([]peer{{Peer{Prefixes: []netip.Prefix{netip.MustParsePrefix("fd00:9::2/128"), netip.MustParsePrefix("192.0.2.7/32")}}, netip.MustParseAddrPort("192.0.2.7:1")}})
	behind := p.behind()
	for a, want := range map[string]bool{"10.9.0.77": true, "10.9.1.0": false, "fd00:9::2": true, "fd00:9::3": false, "192.0.2.7": true, "192.0.2.8": false} {
		if behind(netip.MustParseAddr(a)) != want {
			t.Errorf("%s: not %v", a, want)
		}
	}
}
