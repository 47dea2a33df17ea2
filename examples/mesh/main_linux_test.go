package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/examples/exampletest"
	"weft/hedera/store/storetest"
	"weft/mesh"
	"weft/mesh/keyfile"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// Two processes of ordinary users find each other on etcd, and by a file with their public
// keys, and the one fetches what the other one serves.
func TestMesh_twoProcesses(t *testing.T) {
	bin, dir := exampletest.PublicDir(t), exampletest.PublicDir(t)
	binary := exampletest.Binary(t, bin)
	const size = 5 << 20
	want := sha256.New()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err == nil {
		_, err = io.CopyN(io.MultiWriter(f, want), rand.NewChaCha8([32]byte{3}), size)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	fetches := func(t *testing.T, directory string, ports [2]string, keys [2]string) {
		flags := func(i int, more ...string) []string {
			return append([]string{"-directory", directory, "-name", []string{"a", "b"}[i], "-listen", ports[i], "-address", []string{"10.9.0.1", "10.9.0.2"}[i], "-key", keys[i]}, more...)
		}
		messages := exampletest.NewOutput("serving")
		server := exampletest.Command(t, binary, flags(0, "-serve", dir)...)
		server.Stderr = messages
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Wait() }()
		select { // before it listens, its host refuses
		case <-messages.Said():
		case err := <-ended:
			t.Fatalf("the server ended: %v\n%s", err, messages)
		case <-time.After(time.Minute):
			t.Fatal("the server does not listen")
		}
		got := sha256.New()
		client := exampletest.Command(t, binary, flags(1, "-get", "http://10.9.0.1/file")...)
		client.Stdout, client.Stderr = got, os.Stderr
		if err := client.Run(); err != nil {
			t.Errorf("client: %v", err)
		}
		if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Error("another file arrived")
		}
		server.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("server: %v\n%s", err, messages)
		}
	}
	t.Run("etcd", func(t *testing.T) {
		c := storetest.New(t, 1)
		fetches(t, "etcd://"+c.Endpoints()[0]+"/weft/mesh/example", exampletest.FreePorts(t), [2]string{"", filepath.Join(dir, "made.key")})
	})
	t.Run("file", func(t *testing.T) {
		ports := exampletest.FreePorts(t)
		var members []mesh.Member
		var keys [2]string
		for i := range 2 {
			key := mesh.NewPrivateKey(0)
			keys[i] = filepath.Join(bin, ports[i]+".key")
			if err := keyfile.Write(keys[i], []mesh.PrivateKey{key}); err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() == 0 {
				if err := os.Chown(keys[i], exampletest.Nobody, exampletest.Nobody); err != nil {
					t.Fatal(err)
				}
			}
			members = append(members, mesh.Member{Name: []string{"a", "b"}[i], Endpoints: []netip.AddrPort{netip.MustParseAddrPort(ports[i])},
				Prefixes: []netip.Prefix{netip.MustParsePrefix([]string{"10.9.0.1/32", "10.9.0.2/32"}[i])}, Keys: []mesh.PublicKey{key.Public()}})
		}
		b, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		list := filepath.Join(bin, "members.json")
		if err := os.WriteFile(list, b, 0o644); err != nil {
			t.Fatal(err)
		}
		fetches(t, "file://"+list, ports, keys)
	})
}

func TestEnter_saysWhichFlagIsWrong(t *testing.T) {
	good := options{directory: "file:///etc/weft/members.json", name: "a", listen: netip.MustParseAddrPort("127.0.0.1:0"), address: netip.MustParseAddr("10.9.0.1")}
	for want, change := range map[string]func(*options){
		"-directory": func(o *options) { o.directory = "mesh" },
		"-key":       func(o *options) { o.key = "/nonexistent/key" },
		"name":       func(o *options) { o.name = "" },
	} {
		o := good
		change(&o)
		if h, s, err := enter(o); err == nil {
			s.Close()
			h.Close()
			t.Errorf("%s: no error", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
