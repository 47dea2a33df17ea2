package daemon

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weft/mesh"
	"weft/mesh/keyfile"
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

// A private key in a folder that cannot be written, as a Kubernetes Secret's, does not keep the daemon from
// joining: what it makes itself it keeps with its state. Where it can be written all is beside the key.
func TestConfig_meshReadOnlyKey(t *testing.T) {
	state, secret, open := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("STATE_DIRECTORY", filepath.Join(state, "made"))
	for _, dir := range []string{secret, open} {
		if err := keyfile.Write(filepath.Join(dir, "mesh.key"), []mesh.PrivateKey{mesh.NewPrivateKey(0)}); err != nil {
			t.Fatal(err)
		}
	}
	made, given, who := filepath.Join(state, "made"), filepath.Join(secret, "mesh.key.known"), mesh.NewIdentity().Public()
	if err := os.WriteFile(given, []byte(who.String()+" given\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := keyfile.Write(filepath.Join(secret, "whole.key"), []mesh.PrivateKey{mesh.NewPrivateKey(0)}); err != nil {
		t.Fatal(err)
	}
	beside, err := keyfile.Identity(filepath.Join(secret, "whole.key.identity"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // and end with it
			if err := errors.Join(unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
				unix.Mount(secret, secret, "", unix.MS_BIND, ""), unix.Mount("", secret, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")); err != nil {
				t.Log("no folder can be made read-only:", err)
				return
			}
		} else if err := os.Chmod(secret, 0o500); err != nil {
			t.Error(err)
		}
		c := meshConfig(t, "  private_key_file: "+filepath.Join(secret, "mesh.key")+"\n")
		first, err := c.identity()
		if err != nil {
			t.Error(err)
			return
		}
		if again, err := c.identity(); err != nil || again.Public() != first.Public() {
			t.Errorf("another identity, %v", err)
		}
		if k := c.known(); filepath.Dir(c.identityFile()) != made || filepath.Dir(k.Path) != made || k.Also != given {
			t.Errorf("%s, %+v", c.identityFile(), k)
		}
		if err := c.known().Keep(map[string]mesh.PublicIdentity{"b": first.Public()}); err != nil {
			t.Error(err)
		}
		if all, err := c.known().Load(); err != nil || len(all) != 2 || all["given"] != who || all["b"] != first.Public() {
			t.Errorf("%v, %v", all, err)
		}
		t.Setenv("STATE_DIRECTORY", filepath.Join(state, "not there yet")) // and the identity is beside the key
		whole := meshConfig(t, "  private_key_file: "+filepath.Join(secret, "whole.key")+"\n")
		if i, err := whole.identity(); err != nil || i.Public() != beside.Public() {
			t.Errorf("not the identity beside the key: %v", err)
		}
		if err := whole.known().Keep(map[string]mesh.PublicIdentity{"b": who}); err != nil {
			t.Error(err)
		}
		t.Setenv("STATE_DIRECTORY", made)
		if os.Geteuid() == 0 { // as with user: weft, in the shipped unit
			if err := c.leaveKeys(4321, 4321); err != nil {
				t.Error(err)
			}
			for _, file := range []string{made, c.identityFile(), c.known().Path} {
				if st, err := os.Stat(file); err != nil || st.Sys().(*syscall.Stat_t).Uid != 4321 {
					t.Errorf("%s is not the user's: %v", file, err)
				}
			}
		}
	}()
	<-done
	if os.Geteuid() != 0 {
		os.Chmod(secret, 0o700)
	}
	t.Setenv("STATE_DIRECTORY", filepath.Join(state, "other"))
	c := meshConfig(t, "  private_key_file: "+filepath.Join(open, "mesh.key")+"\n")
	if k := c.known(); c.identityFile() != filepath.Join(open, "mesh.key.identity") || k.Path != filepath.Join(open, "mesh.key.known") || k.Also != "" {
		t.Errorf("%s, %+v", c.identityFile(), k)
	}
}

// Each private key has an identity of its own: that of another one on the machine, or of the one that the daemon
// made before it was given one, is not taken. What is beside the key counts first.
func TestConfig_meshIdentities(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	t.Setenv("STATE_DIRECTORY", state)
	old, err := meshConfig(t, "").identity()
	if err != nil {
		t.Fatal(err)
	}
	if err := meshConfig(t, "").known().Keep(map[string]mesh.PublicIdentity{"a": old.Public()}); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "two.key")
	if err := keyfile.Write(key, []mesh.PrivateKey{mesh.NewPrivateKey(0)}); err != nil {
		t.Fatal(err)
	}
	now, err := keyfile.Identity(key + ".identity")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&keyfile.Known{Path: key + ".known"}).Keep(map[string]mesh.PublicIdentity{"b": now.Public()}); err != nil {
		t.Fatal(err)
	}
	c := meshConfig(t, "  private_key_file: "+key+"\n")
	_, kept := c.besideKey(".identity")
	if _, err := keyfile.Identity(kept); err != nil { // from when the folder could not be written
		t.Fatal(err)
	}
	if got, err := c.identity(); err != nil || got.Public() != now.Public() {
		t.Errorf("not the identity beside the key: %v", err)
	}
	if all, err := c.known().Load(); err != nil || len(all) != 1 || all["b"] != now.Public() {
		t.Errorf("%v, %v", all, err)
	}
	all := map[string]bool{filepath.Join(state, "mesh.key.identity"): true}
	for _, path := range []string{"/a/mesh.key", "/b/mesh.key", "/a/b-c", "/a-b/c", "/a%2Db/c", "/a/b/c", "/mesh.key/", "/a//mesh.key"} {
		_, kept := (&Config{UDP: UDP{PrivateKeyFile: path}}).besideKey(".identity")
		if all[kept] && path != "/mesh.key/" && path != "/a//mesh.key" || filepath.Dir(kept) != state {
			t.Errorf("%s: %s", path, kept)
		}
		all[kept] = true
	}
}
