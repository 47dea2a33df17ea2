// Package examples runs the examples in a lab, against each other and against
// programs that know nothing of weft.
package examples

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

const fileBytes = 50 << 20

// setting is a lab, the examples' binaries and a folder with a file to serve.
type setting struct {
	lab       *lab.Lab
	bin, dir  string
	sum       string // SHA-256 of dir/file
	processes []*exec.Cmd
}

func newSetting(t *testing.T) *setting {
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds a lab of network namespaces")
	}
	s := &setting{bin: binaries(t), dir: t.TempDir()}
	public(s.dir) // nginx serves as another user
	f, err := os.Create(filepath.Join(s.dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8([32]byte{2}), fileBytes); err != nil {
		t.Fatal(err)
	}
	s.sum = hex.EncodeToString(h.Sum(nil))
	fatTree, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	s.lab, err = lab.Hold(context.Background(), lab.Config{
		Name: kerneltest.LabName("e"), Topology: fatTree, RateMbit: 500, BurstBytes: 20000, QueueBytes: 300000,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range s.processes {
			p.Process.Signal(syscall.SIGTERM) // nginx ends its workers, too
			p.Wait()
		}
		if err := s.lab.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// command prepares a program in a node's namespace.
func (s *setting) command(t *testing.T, node, program string, args ...string) *exec.Cmd {
	t.Helper()
	if path := filepath.Join(s.bin, program); fileExists(path) {
		program = path
	}
	n, err := s.lab.Config.Topology.Lookup(node)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("nsenter", append([]string{"--net=/run/netns/" + s.lab.Namespace(n.ID), program}, args...)...)
	c.Stderr = os.Stderr
	return c
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// run runs a program until the end of the test.
func (s *setting) run(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.processes = append(s.processes, c)
}

// start runs a server until the end of the test, and waits until it listens on
// address.
func (s *setting) start(t *testing.T, node, address, program string, args ...string) {
	t.Helper()
	s.run(t, s.command(t, node, program, args...))
	n, _ := s.lab.Config.Topology.Lookup("h0.0.3")
	for range 100 {
		err := s.lab.Do(n.ID, func() error {
			conn, err := net.DialTimeout("tcp4", address, time.Second)
			if err == nil {
				conn.Close()
			}
			return err
		})
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nobody listens on %s", address)
}

// fetch runs a program that writes the file to its output.
func (s *setting) fetch(t *testing.T, node, program string, args ...string) {
	t.Helper()
	start := time.Now()
	s.check(t, s.command(t, node, program, args...))
	took := time.Since(start)
	t.Logf("%s on %s: %d bytes in %v: %.0f Mbit/s, SHA-256 %s", program, node, fileBytes, took.Round(time.Millisecond), fileBytes*8/took.Seconds()/1e6, s.sum)
}

// hung is when a program is taken to have stopped for good.
const hung = 2 * time.Minute

// check runs a program whose output must be the file.
func (s *setting) check(t *testing.T, c *exec.Cmd) {
	t.Helper()
	h := sha256.New()
	c.Stdout = h
	if err := c.Start(); err != nil {
		t.Fatalf("%v: %v", c.Args, err)
	}
	kill := time.AfterFunc(hung, func() { c.Process.Kill() })
	defer kill.Stop()
	if err := c.Wait(); err != nil {
		t.Fatalf("%v: %v", c.Args, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != s.sum {
		t.Errorf("%v: SHA-256 is %s, want %s", c.Args, got, s.sum)
	}
}

// corePackets reads how many packets each core switch has sent.
func (s *setting) corePackets(t *testing.T) (sums []float64) {
	t.Helper()
	for n := range s.lab.Config.Topology.Nodes() {
		if n.Layer != topology.LayerCore {
			continue
		}
		ports, err := s.lab.PortBytes(n.ID)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, p := range ports {
			sum += float64(p.TxPackets)
		}
		sums = append(sums, sum)
	}
	return sums
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("needs %s, which is not installed", program)
	}
}

func TestExamples(t *testing.T) {
	slowtest.System(t)
	need(t, "nsenter")
	s := newSetting(t)
	const server = "http://10.3.1.131:8080/file"
	s.start(t, "h3.1.3", "10.3.1.131:8080", "httpserver", "-address", "10.3.1.131", "-dir", s.dir, "-policy", "drb")

	t.Run("weft to weft, over every spine", func(t *testing.T) {
		before := s.corePackets(t)
		s.fetch(t, "h0.0.2", "httpget", "-address", "10.0.0.130", "-policy", "drb", server)
		least, most := 1e18, 0.0
		for i, b := range s.corePackets(t) {
			least, most = min(least, b-before[i]), max(most, b-before[i])
		}
		// A path that is slow for a second, or whose probes are late, rests for a while. In
		// virtual time shares are as strict as the policy.
		if least < 0.5*most {
			t.Errorf("the cores carried from %.0f to %.0f packets, which is more than by half apart", least, most)
		}
	})
	t.Run("weft server, curl on a plain host", func(t *testing.T) {
		need(t, "curl")
		s.fetch(t, "h1.0.2", "curl", "-sS", "--noproxy", "*", server)
	})
	t.Run("nginx on a plain host, weft client", func(t *testing.T) {
		need(t, "nginx")
		conf := filepath.Join(s.dir, "nginx.conf")
		if err := os.WriteFile(conf, fmt.Appendf(nil, `daemon off; error_log stderr crit; pid %s/nginx.pid;
events {}
http { access_log off; server { listen 10.2.0.2:80; root %s; } }`, s.dir, s.dir), 0o644); err != nil {
			t.Fatal(err)
		}
		s.start(t, "h2.0.2", "10.2.0.2:80", "nginx", "-c", conf)
		s.fetch(t, "h0.0.2", "httpget", "-address", "10.0.0.130", "http://10.2.0.2/file")
	})
	t.Run("proxy", func(t *testing.T) {
		need(t, "curl")
		s.start(t, "h1.0.3", "10.1.0.131:8080", "proxy", "-address", "10.1.0.131", "-backend", "http://10.3.1.131:8080")
		const proxy = "http://10.1.0.131:8080/file"
		s.fetch(t, "h2.1.2", "curl", "-sS", "--noproxy", "*", proxy)
		s.fetch(t, "h0.0.2", "httpget", "-address", "10.0.0.130", "-policy", "presto", proxy)
		s.fetch(t, "h1.0.3", "curl", "-sS", "--noproxy", "*", proxy) // of the proxy's own machine
	})
	t.Run("ping", func(t *testing.T) {
		need(t, "ping")
		c := s.command(t, "h0.0.2", "ping", "-c", "3", "-i", "0.05", "-W", "2", "10.3.1.131")
		if out, err := c.Output(); err != nil || !strings.Contains(string(out), " 0% packet loss") {
			t.Errorf("ping a weft host: %v\n%s", err, out)
		}
	})
}

// What tcpdump sees at a spine: IP-in-IP to the spine's /32 in, the plain
// packet out, by the kernel's routes.
func TestExamples_tcpdumpAtTheSpine(t *testing.T) {
	slowtest.System(t)
	need(t, "nsenter")
	need(t, "tcpdump")
	s := newSetting(t)
	core, _ := s.lab.Config.Topology.Lookup("3.2")
	// TCP, plain or in IP-in-IP, but not the probes, which are UDP.
	dump := s.command(t, core.Name, "tcpdump", "-i", "any", "-nn", "-l", "tcp or (ip proto 4 and ip[29] = 6)")
	text, said := new(messages), new(messages)
	dump.Stdout, dump.Stderr = text, said
	s.run(t, dump)
	said.waitFor(t, "listening on")
	s.start(t, "h3.1.3", "10.3.1.131:8080", "httpserver", "-address", "10.3.1.131", "-dir", s.dir)
	s.fetch(t, "h0.0.2", "httpget", "-address", "10.0.0.130", "http://10.3.1.131:8080/file")
	var wrapped, plain string
	for line := range strings.Lines(text.String()) {
		switch {
		case strings.Contains(line, " In ") && strings.Contains(line, "10.3.1.131 > "+core.Addr.String()+": IP 10.3.1.131.8080 > 10.0.0.130"):
			wrapped = line
		case strings.Contains(line, " Out ") && strings.Contains(line, "IP 10.3.1.131.8080 > 10.0.0.130") && !strings.Contains(line, core.Addr.String()):
			plain = line
		}
	}
	if wrapped == "" || plain == "" {
		t.Fatalf("no IP-in-IP in and plain packet out at %s:\n%.4000s", core.Name, text)
	}
	t.Logf("in:  %sout: %s", wrapped, plain)
}
