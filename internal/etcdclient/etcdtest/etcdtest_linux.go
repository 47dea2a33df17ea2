// Package etcdtest runs members of etcd as the programs that people install, where it matters what
// these do: users, certificates, a full disk, backups.
package etcdtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
)

// Cluster is members of etcd.
type Cluster struct {
	t       testing.TB
	Dir     string
	Clients []string // addresses
	peers   []string
	scheme  string
	flags   []string
	ctl     []string
	run     []*member
	said    said
}

// New starts n members with more flags than where they listen. scheme is http or https; ctl are flags
// that etcdctl needs. The test is skipped without the programs.
func New(t testing.TB, n int, scheme string, flags, ctl []string) *Cluster {
	t.Helper()
	for _, program := range []string{"etcd", "etcdctl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v: apt install etcd-server etcd-client", err)
		}
	}
	c := &Cluster{t: t, Dir: t.TempDir(), scheme: scheme, flags: flags, ctl: ctl, run: make([]*member, n)}
	var held []net.Listener // so that the ports are different ones
	for range 2 * n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		if len(c.Clients) < n {
			c.Clients = append(c.Clients, l.Addr().String())
		} else {
			c.peers = append(c.peers, l.Addr().String())
		}
	}
	for _, l := range held {
		l.Close()
	}
	t.Cleanup(func() {
		for i := range n {
			c.Kill(i)
		}
	})
	for i := range n {
		c.Start(i)
	}
	c.Await("etcd answers", func() bool { _, err := c.try("endpoint", "health"); return err == nil })
	return c
}

// Initial is the list of members, as their flag has it.
func (c *Cluster) Initial() string {
	var list []string
	for i, p := range c.peers {
		list = append(list, fmt.Sprintf("m%d=http://%s", i, p))
	}
	return strings.Join(list, ",")
}

// Peer is a member's URL for the others.
func (c *Cluster) Peer(i int) string { return "http://" + c.peers[i] }

// Data is a member's folder.
func (c *Cluster) Data(i int) string { return filepath.Join(c.Dir, fmt.Sprint("m", i)) }

// Start starts a member, for the first time or again.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	at := c.scheme + "://" + c.Clients[i]
	// The shell kills etcd when its input ends: when the test says so, or its process has ended.
	p := exec.Command("sh", append([]string{"-c", `etcd "$@" </dev/null & read x; kill -9 $!; wait`, "sh", "--name", fmt.Sprint("m", i), "--data-dir", c.Data(i), "--logger", "zap", "--log-level", "error",
		"--listen-client-urls", at, "--advertise-client-urls", at, "--listen-peer-urls", c.Peer(i), "--initial-advertise-peer-urls", c.Peer(i),
		"--initial-cluster", c.Initial()}, c.flags...)...)
	p.Env = environment()
	p.Stdout, p.Stderr = &c.said, &c.said
	input, err := p.StdinPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.run[i] = &member{p, input}
}

// member is one that runs.
type member struct {
	*exec.Cmd
	input io.Closer
}

// said is what members complain of.
type said struct {
	mu sync.Mutex
	b  []byte
}

// Write keeps the last of it.
func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b = append(s.b, b...); len(s.b) > 4096 {
		s.b = s.b[len(s.b)-4096:]
	}
	return len(b), nil
}

// environment is the test's, without variables that say the same as flags: etcd ends because of these.
func environment() (all []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ETCD") {
			all = append(all, v)
		}
	}
	return append(all, "ETCDCTL_API=3")
}

// Kill kills a member.
func (c *Cluster) Kill(i int) {
	if p := c.run[i]; p != nil {
		p.input.Close()
		p.Wait() // it was killed
		c.run[i] = nil
	}
}

// Ctl runs etcdctl, and returns what it prints.
func (c *Cluster) Ctl(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("etcdctl %v: %v: %s", args, err, out)
	}
	return out
}

func (c *Cluster) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var list []string
	for _, a := range c.Clients {
		list = append(list, c.scheme+"://"+a)
	}
	p := exec.CommandContext(ctx, "etcdctl", append(append([]string{"--endpoints", strings.Join(list, ",")}, c.ctl...), args...)...)
	p.Env = environment()
	var out bytes.Buffer
	p.Stdout, p.Stderr = &out, &out
	err := p.Run()
	return out.String(), err
}

// Await waits for something.
func (c *Cluster) Await(what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(kerneltest.Patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.said.mu.Lock()
			defer c.said.mu.Unlock()
			c.t.Fatalf("not within %v: %s; etcd says: %s", kerneltest.Patience, what, c.said.b)
		}
	}
}
