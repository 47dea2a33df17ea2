//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
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
)

// asProgram makes the test's binary the example.
const asProgram = "WEFT_TEST_ROOTLESS"

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

// public is a folder that everybody can read.
func public(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-rootless-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "rootless")
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// watched keeps what a program says, and closes said when the text is a part of that.
type watched struct {
	all  bytes.Buffer // embedded, it would be read into by itself
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

func TestRootless_twoProcesses(t *testing.T) {
	bin, dir := public(t), public(t)
	binary := ownBinary(t, bin)
	const size = 20 << 20
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
	for _, key := range []string{"", strings.Repeat("0a", 32)} {
		t.Run(fmt.Sprintf("key %q", key), func(t *testing.T) {
			ports := freePorts(t)
			messages := watched{text: "serving", said: make(chan struct{})}
			server := program(t, binary, "-listen", ports[0], "-peer", ports[1], "-key", key, "-serve", dir)
			server.Stderr = &messages
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			select { // before it listens, its host refuses
			case <-messages.said:
			case <-time.After(time.Minute):
				t.Fatal("the server does not listen")
			}
			got := sha256.New()
			client := program(t, binary, "-listen", ports[1], "-peer", ports[0], "-key", key, "-get", "file")
			client.Stdout, client.Stderr = got, os.Stderr
			if err := client.Run(); err != nil {
				t.Errorf("client: %v", err)
			}
			if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
				t.Error("another file arrived")
			}
			server.Process.Signal(syscall.SIGTERM)
			if err := server.Wait(); err != nil {
				t.Errorf("server: %v\n%s", err, &messages.all)
			}
		})
	}
}

func TestRootless_saysWhichFlagIsWrong(t *testing.T) {
	self, other := end{"client", clientAddr}, end{"server", serverAddr}
	for _, c := range []struct{ listen, peer, key, want string }{
		{"", "127.0.0.1:9", "", "-listen"},
		{"127.0.0.1:0", "127.0.0.1", "", "-peer"},
		{"127.0.0.1:0", "127.0.0.1:9", "0a", "-key"},
	} {
		h, err := open(c.listen, c.peer, c.key, "presto", self, other)
		if err == nil {
			h.Close()
			t.Errorf("%+v: no error", c)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
