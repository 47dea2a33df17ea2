package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/hedera/store/storetest"
	"weft/mesh"
	"weft/mesh/keyfile"
)

// asProgram makes the test's binary the example.
const asProgram = "WEFT_TEST_MESH"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// nobody is who runs the example if the test is root.
const nobody = 65534

// program prepares the example with arguments, as an ordinary user.
func program(t *testing.T, binary string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // one that hangs
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, binary, args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return c
}

// public is a folder that everybody can use.
func public(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-mesh-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// ownBinary copies the test's binary to where everybody can run it.
func ownBinary(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "mesh")
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// watched keeps what a program says, and closes said when the text is a part of that.
type watched struct {
	all  bytes.Buffer
	text string
	said chan struct{}
	once sync.Once
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.all.Write(b)
	if strings.Contains(w.all.String(), w.text) {
		w.once.Do(func() { close(w.said) })
	}
	return n, err
}

// freePorts are two of UDP on the loopback interface that nobody had just now.
func freePorts(t *testing.T) (ports [2]string) {
	t.Helper()
	for i := range ports {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ports[i] = c.LocalAddr().String()
	}
	return ports
}

// Two processes of ordinary users find each other on etcd, and by a file with their public
// keys, and the one fetches what the other one serves.
func TestMesh_twoProcesses(t *testing.T) {
	bin, dir := public(t), public(t)
	binary := ownBinary(t, bin)
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
		messages := watched{text: "serving", said: make(chan struct{})}
		server := program(t, binary, flags(0, "-serve", dir)...)
		server.Stderr = &messages
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Wait() }()
		select { // before it listens, its host refuses
		case <-messages.said:
		case err := <-ended:
			t.Fatalf("the server ended: %v\n%s", err, &messages.all)
		case <-time.After(time.Minute):
			t.Fatal("the server does not listen")
		}
		got := sha256.New()
		client := program(t, binary, flags(1, "-get", "http://10.9.0.1/file")...)
		client.Stdout, client.Stderr = got, os.Stderr
		if err := client.Run(); err != nil {
			t.Errorf("client: %v", err)
		}
		if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Error("another file arrived")
		}
		server.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("server: %v\n%s", err, &messages.all)
		}
	}
	t.Run("etcd", func(t *testing.T) {
		c := storetest.New(t, 1)
		fetches(t, "etcd://"+c.Endpoints()[0]+"/weft/mesh/example", freePorts(t), [2]string{"", filepath.Join(dir, "made.key")})
	})
	t.Run("file", func(t *testing.T) {
		ports := freePorts(t)
		var members []mesh.Member
		var keys [2]string
		for i := range 2 {
			key := mesh.NewPrivateKey(0)
			keys[i] = filepath.Join(bin, ports[i]+".key")
			if err := keyfile.Write(keys[i], []mesh.PrivateKey{key}); err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() == 0 {
				if err := os.Chown(keys[i], nobody, nobody); err != nil {
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
