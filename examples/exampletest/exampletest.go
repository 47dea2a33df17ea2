//go:build unix

// Package exampletest runs examples as programs of ordinary users, for their tests.
package exampletest

import (
	"bytes"
	"context"
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

// asProgram makes a test's binary the example.
const asProgram = "WEFT_TEST_AS_EXAMPLE"

// Main is a TestMain that runs the example instead, if Command has started it.
func Main(m *testing.M, example func()) {
	if os.Getenv(asProgram) != "" {
		example()
		return
	}
	os.Exit(m.Run())
}

// Nobody is the user who runs the example if the test is root.
const Nobody = 65534

// Command prepares the example of a Binary with arguments, as an ordinary user.
func Command(t testing.TB, binary string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // one that hangs
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, binary, args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
	}
	return c
}

// PublicDir makes a folder in which everybody can read and write.
func PublicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weft-example-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Binary copies the test's binary to a folder where everybody can run it.
func Binary(t testing.TB, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "example")
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// Output keeps what a program says. It is written by one goroutine.
type Output struct {
	all  bytes.Buffer // embedded, it would be read into by itself
	text string
	said chan struct{}
	once sync.Once
}

// NewOutput waits for a text.
func NewOutput(text string) *Output { return &Output{text: text, said: make(chan struct{})} }

// Said is closed when the text is a part of what the program has said.
func (o *Output) Said() <-chan struct{} { return o.said }

// String is all that the program has said. It must have ended.
func (o *Output) String() string { return o.all.String() }

func (o *Output) Write(b []byte) (int, error) {
	n, err := o.all.Write(b)
	if strings.Contains(o.all.String(), o.text) {
		o.once.Do(func() { close(o.said) })
	}
	return n, err
}

// FreePorts are two of UDP on the loopback interface that nobody had just now.
func FreePorts(t testing.TB) (ports [2]string) {
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
