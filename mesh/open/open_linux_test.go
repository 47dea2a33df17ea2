package open

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/hedera/store/storetest"
	"weft/internal/kernel/kerneltest"
	"weft/mesh"
	"weft/mesh/join"
)

func TestParse_errorsNameWhatIsWrong(t *testing.T) {
	for name, want := range map[string]string{
		"":                            "names no directory",
		"mesh":                        "names no directory",
		"consul://a:1/x":              "consul is no kind",
		"etcd:a:2379/weft":            "two slashes",
		"etcd:///weft":                "is no address with a port",
		"etcd://a/weft":               `"a" is no address with a port`,
		"etcd://a:2379":               "prefix",
		"etcd://a:2379/":              "prefix",
		"etcd://a:2379/weft/":         "slash",
		"etcd://a:2379/weft#x":        "prefix",
		"etcd://a:2379/weft?ca=/x":    "write etcds:",
		"etcds://a:2379/weft?tls=1":   `"tls"`,
		"etcds://a:2379/weft?ca=":     `"ca"`,
		"etcds://a:2379/weft?cert=/x": "belong together",
		"etcd://" + strings.Repeat("a:1,", 16) + "a:1/weft": "are 17",
		"file:members.json":   "whole path",
		"file://members.json": "whole path",
		"file:///etc/weft/":   "whole path",
		"dns:":                "no domain",
		"dns://mesh.example":  "no domain",
		"dns:a..b":            "no domain",
	} {
		if n, err := Parse(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", name, n, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for name, registers := range map[string]bool{
		"etcd://127.0.0.1:2379/weft/mesh/production":                        true,
		"etcd://a:2379,b:2379,c:2379/m":                                     true,
		"etcds://a:2379/weft/mesh":                                          true,
		"etcds://a:2379/weft?ca=/etc/ca.pem&cert=/etc/c.pem&key=/etc/k.pem": true,
		"file:///etc/weft/members.json":                                     false,
		"dns:mesh.example":                                                  false,
		"dns:_x.mesh-1.example.":                                            false,
	} {
		n, err := Parse(name)
		if err != nil || n.Registers() != registers {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
	for name, want := range map[string]string{
		"etcds://a:2379/weft?ca=/nonexistent/ca.pem":                 "ca: open /nonexistent",
		"etcds://a:2379/weft?cert=/nonexistent/c&key=/nonexistent/k": "cert: open /nonexistent",
	} {
		if _, err := Directory(name, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := (Name{}).Open(Options{}); err == nil {
		t.Error("no directory is one")
	}
	if _, err := Directory("etcd://a:2379/weft", Options{TTL: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "TTL") {
		t.Error(err)
	}
}

// told returns what a directory tells first.
func told(t *testing.T, d join.Directory) join.Update {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kerneltest.Patience)
	defer cancel()
	var first join.Update
	err := d.Watch(ctx, func(u join.Update) {
		if !first.All {
			first = u
		}
		cancel()
	})
	if !first.All {
		t.Fatal(err)
	}
	return first
}

// What one host registers by a name, another one finds by the same.
func TestDirectory_etcd(t *testing.T) {
	c := storetest.New(t, 1)
	host := strings.TrimPrefix(c.Endpoints()[0], "http://")
	m := mesh.Member{Name: "a", Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.1/32")}}
	var all []join.Directory
	for _, prefix := range []string{"/weft/mesh/one", "/weft/mesh/one", "/weft/mesh/other"} {
		d, err := Directory("etcd://"+host+prefix, Options{TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		all = append(all, d)
	}
	if _, err := all[0].Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 1, 0} {
		if u := told(t, all[i]); len(u.Put) != want {
			t.Errorf("directory %d: %+v", i, u)
		}
	}
}

func TestDirectory_file(t *testing.T) {
	file := filepath.Join(t.TempDir(), "members.json")
	if err := os.WriteFile(file, []byte(`[{"name":"a","endpoints":["192.0.2.1:1"],"prefixes":["10.9.0.1/32"]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Directory("file://"+file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if u := told(t, d); len(u.Put) != 1 || u.Put[0].Name != "a" {
		t.Errorf("%+v", u)
	}
}
