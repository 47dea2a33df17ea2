package examples

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/frr"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// bgpSetting is a lab with an operator's addresses whose switches run FRR.
type bgpSetting struct {
	*lab.Lab
	graph *graph.Graph
	bin   string
}

// command prepares the example at a host.
func (s *bgpSetting) command(t *testing.T, host string, number int, args ...string) (*exec.Cmd, graph.Node) {
	t.Helper()
	id, ok := s.graph.ByName(host)
	if !ok {
		t.Fatalf("no %s", host)
	}
	edge := s.graph.Up(id)[0].Peer
	gateway, _ := fabric.Gateway(s.graph, edge, s.graph.Node(edge).Prefixes[0])
	own := s.graph.Node(id)
	args = append([]string{"--net=/run/netns/" + s.Namespace(topology.NodeID(id)), filepath.Join(s.bin, "bgp"),
		"-as", strconv.Itoa(4250000000 + number), "-neighbor", fmt.Sprintf("%v=%d", gateway, s.graph.Node(edge).AS),
		"-address", fmt.Sprintf("%v,%v", operator.Embedded(own, false), operator.Embedded(own, true))}, args...)
	return exec.Command("nsenter", args...), own
}

var sentByEach = regexp.MustCompile(` (\S+):(\d+)`)

// Two programs with Hosts of their own learn the fabric from FRR's leaves, fetch a file over both
// families by all spines, and leave a spine whose link is withdrawn.
func TestBGP(t *testing.T) {
	slowtest.System(t)
	if err := lab.CanBuild(); err != nil {
		t.Skip(err)
	}
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	shape, err := topology.Parse("leaf-spine:leaves=2,spines=2,hosts=1")
	if err != nil {
		t.Fatal(err)
	}
	const seed = 3
	s := bgpSetting{bin: binaries(t)}
	if s.graph, err = graph.New(operator.Spec(shape, seed)); err != nil {
		t.Fatal(err)
	}
	if s.Lab, err = lab.Hold(context.Background(), lab.Config{Name: kerneltest.LabName("b"), Graph: s.graph, RateMbit: 100}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	file := make([]byte, 5<<20)
	rand.NewChaCha8([32]byte{seed}).Read(file)
	if err := os.WriteFile(filepath.Join(dir, "file"), file, 0o644); err != nil {
		t.Fatal(err)
	}
	// run returns what a program says so far.
	run := func(c *exec.Cmd) (says func() string) {
		log, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		c.Stderr = log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		says = func() string {
			b, _ := os.ReadFile(log.Name())
			return string(b)
		}
		t.Cleanup(func() {
			c.Process.Kill()
			c.Wait()
			if t.Failed() {
				t.Log(says())
			}
		})
		return says
	}
	server, own := s.command(t, "h2-1", 1, "-serve", dir)
	run(server)
	client, _ := s.command(t, "h1-1", 2)
	in, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	says := run(client)
	lines := bufio.NewScanner(out)
	spines := make(map[netip.Addr]string)
	for _, name := range []string{"spine1", "spine2"} {
		id, _ := s.graph.ByName(name)
		for _, a := range s.graph.Node(id).Addresses {
			spines[a] = name
		}
	}
	before := make(map[string]int)
	// fetch returns how many packets, which are acknowledgements, the client has sent by each spine.
	fetch := func(six bool) map[string]int {
		t.Helper()
		fmt.Fprintf(in, "http://%v/file\n", netip.AddrPortFrom(operator.Embedded(own, six), 8080))
		if !lines.Scan() {
			t.Fatalf("IPv6 %t: the client has ended", six)
		}
		if want := fmt.Sprintf("%d bytes, SHA-256 %x", len(file), sha256.Sum256(file)); !strings.HasPrefix(lines.Text(), want) {
			t.Fatalf("%s, want %s", lines.Text(), want)
		}
		by := make(map[string]int)
		for _, m := range sentByEach.FindAllStringSubmatch(lines.Text()[strings.Index(lines.Text(), "sent"):], -1) {
			i := strings.LastIndexByte(m[0], ':')
			a, err := netip.ParseAddr(strings.TrimSpace(m[0][:i]))
			n, _ := strconv.Atoi(m[0][i+1:])
			if err != nil || a.Is6() != six {
				continue
			}
			by[spines[a]] = n - before[a.String()]
			before[a.String()] = n
		}
		return by
	}
	until := func(what string, six bool, holds func(by map[string]int) bool) {
		t.Helper()
		by := fetch(six)
		for end := time.Now().Add(time.Minute); !holds(by); by = fetch(six) {
			if time.Now().After(end) {
				t.Fatalf("IPv6 %t, %s: sent by %v", six, what, by)
			}
			time.Sleep(200 * time.Millisecond)
		}
		t.Logf("IPv6 %t, %s: sent by %v", six, what, by)
	}
	even := func(by map[string]int) bool {
		a, b := by["spine1"], by["spine2"]
		return a+b > 60 && a < b+b/4 && b < a+a/4
	}
	one := func(by map[string]int) bool { return by["spine1"] == 0 && by["spine2"] > 60 }
	for _, six := range []bool{false, true} {
		until("proved", six, even)
	}
	// Where nothing comes back by outer headers of IPv6, IPv6 goes plain, and IPv4 as before.
	// The hole is in its leaf: what a Host sends does not pass its own kernel's routes.
	id, _ := s.graph.ByName("leaf1")
	holes := func(change string) {
		t.Helper()
		for a := range spines {
			if a.Is6() {
				if out, err := exec.Command("ip", "-n", s.Namespace(topology.NodeID(id)), "-6", "route", change, "blackhole", a.String(), "metric", "1").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
		}
	}
	holes("add")
	until("spines take no outer headers of IPv6 off", true, func(by map[string]int) bool { return by["spine1"]+by["spine2"] == 0 })
	until("spines take no outer headers of IPv6 off", false, even)
	holes("del")
	until("they do again", true, even)
	if _, err := s.Fail("spine1-leaf2", lab.FailLoud); err != nil {
		t.Fatal(err)
	}
	for _, six := range []bool{false, true} {
		until("a link is withdrawn", six, one)
	}
	if strings.Contains(says(), "not as fast as it could be") {
		t.Errorf("%s", says())
	}
	if !strings.Contains(says(), "links down") {
		t.Errorf("the client has not heard of it:\n%s", says())
	}
}
