package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/lab"
	"weft/topology/graph"
)

// BenchmarkHost_failsOverUnderBGP measures how long weft host loses packets to a link that
// has failed behind its leaf: from just before the failure until the last packet of a
// connection left for the spine above it and did not arrive. The host hears of failures by
// BGP, or its probes find them alone. Then it may use that spine again before the link is
// back: the switches lead its packets round, by another leaf.
//
//	go test ./cmd/weft -run '^$' -bench Host_failsOver -benchtime 30x
func BenchmarkHost_failsOverUnderBGP(b *testing.B) {
	for _, c := range []struct {
		name  string
		mode  lab.FailureMode
		alone bool
		flags []string
	}{
		{"loud/bgp", lab.FailLoud, false, nil},
		{"loud/bgp-bfd", lab.FailLoud, false, []string{"--bfd"}},
		{"loud/alone", lab.FailLoud, true, nil},
		{"silent/bgp", lab.FailSilent, false, nil},
		{"silent/bgp-bfd", lab.FailSilent, false, []string{"--bfd"}},
		{"silent/alone", lab.FailSilent, true, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			l := upBGPLab(b, "leaf-spine:leaves=2,spines=4,hosts=1", c.flags...)
			fabric, err := lab.Open(l.name)
			if err != nil {
				b.Fatal(err)
			}
			defer fabric.Close()
			file := filepath.Join(l.dir, "graph.yaml")
			if err := os.WriteFile(file, fabric.Config.Graph.Text(), 0o644); err != nil {
				b.Fatal(err)
			}
			for i, host := range []string{"h1-1", "h2-1"} {
				text := "mode: offload\npolicy: drb\nuser: root\n"
				if c.alone {
					text += "topology: " + file + "\n"
				} else {
					gateway := strings.Fields(l.in(host, "ip route show default"))[2]
					text += fmt.Sprintf("topology: bgp\nbgp: {as: %d, neighbors: [%s=%s]}\n", 4250000001+i, gateway, l.asOf(fmt.Sprintf("leaf%d", i+1)))
				}
				l.configure(host, text)
				l.waitFor(host+" uses the carrier", func() bool { return strings.Contains(l.says(host), ": carried by ipip") })
			}
			l.stream(fabric)
			left := l.watch("h1-1", fmt.Sprintf("dst host %v and ip[9] = 4 and ip[29] = 6", address(b, fabric, "spine1")))
			arrived := l.watch("h2-1", fmt.Sprintf("tcp and dst host %v", address(b, fabric, "h2-1")))
			var took []float64
			for b.Loop() {
				l.waitFor("spine 1 is used", func() bool { return time.Since(left.last()) < 100*time.Millisecond })
				time.Sleep(300 * time.Millisecond)
				left.forget()
				arrived.forget()
				at, err := fabric.Fail("spine1-leaf2", c.mode)
				if err != nil {
					b.Fatal(err)
				}
				time.Sleep(1200 * time.Millisecond)
				lost := left.lastWithout(arrived, time.Now().Add(-200*time.Millisecond))
				if lost.Sub(at) > 950*time.Millisecond {
					b.Error("a second after the failure packets are still lost")
				}
				took = append(took, max(0, float64(lost.Sub(at))/1e6))
				if _, err := fabric.Heal(); err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(0, "ns/op") // it is that of waiting
			b.ReportMetric(took[len(took)/2], "median-ms")
			b.ReportMetric(took[len(took)-1], "max-ms")
		})
	}
}

// address returns the IPv4 address of a node.
func address(t testing.TB, l *lab.Lab, name string) netip.Addr {
	t.Helper()
	n, err := l.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range l.Config.Graph.Node(graph.NodeID(n.ID)).Addresses {
		if a.Is4() {
			return a
		}
	}
	t.Fatalf("%s has no IPv4 address", name)
	return netip.Addr{}
}

// stream sends some 10 Mbit/s from h1-1 to h2-1 until the test ends.
func (l *bgpLab) stream(fabric *lab.Lab) {
	l.Helper()
	do := func(host string, f func() error) {
		l.Helper()
		n, err := fabric.Lookup(host)
		if err == nil {
			err = fabric.Do(n.ID, f)
		}
		if err != nil {
			l.Fatal(err)
		}
	}
	var server net.Listener
	do("h2-1", func() (err error) {
		server, err = net.Listen("tcp4", netip.AddrPortFrom(address(l, fabric, "h2-1"), 0).String())
		return err
	})
	l.Cleanup(func() { server.Close() })
	go func() {
		if c, err := server.Accept(); err == nil {
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	var client net.Conn
	do("h1-1", func() (err error) {
		client, err = net.Dial("tcp4", server.Addr().String())
		return err
	})
	l.Cleanup(func() { client.Close() })
	go func() {
		for p := make([]byte, 1250); ; time.Sleep(time.Millisecond) {
			if _, err := client.Write(p); err != nil {
				return
			}
		}
	}()
}

// sightings are when packets were seen at a host, by their IP ID, which a connection counts.
type sightings struct {
	mu     sync.Mutex
	latest time.Time
	at     map[string]time.Time
}

func (s *sightings) last() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

func (s *sightings) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = make(map[string]time.Time)
}

func (s *sightings) see(id string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest, s.at[id] = at, at
}

// lastWithout returns when the latest packet was seen, before a moment, that was not seen at
// another host; the zero Time if all were.
func (s *sightings) lastWithout(other *sightings, before time.Time) (last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	for id, at := range s.at {
		if _, there := other.at[id]; !there && at.Before(before) && at.After(last) {
			last = at
		}
	}
	return last
}

// listening prepares tcpdump before it starts, and returns what waits until it listens.
func (l *bgpLab) listening(tcpdump *exec.Cmd) (wait func()) {
	l.Helper()
	said := new(screen)
	tcpdump.Stderr = said
	return func() {
		l.Helper()
		said.waitFor(l.TB, "listening on")
	}
}

// watch looks at the packets that pass a filter until the test ends.
func (l *bgpLab) watch(host, filter string) *sightings {
	l.Helper()
	c := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-"+host, "tcpdump", "-tt", "-n", "-v", "-l", "-i", "eth1", filter)
	out, err := c.StdoutPipe()
	listens := l.listening(c)
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		l.Skipf("needs tcpdump: %v", err)
	}
	l.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	listens()
	s := &sightings{at: make(map[string]time.Time)}
	go func() {
		// The first line of a packet begins with its time, and has its ID.
		for lines := bufio.NewScanner(out); lines.Scan(); {
			stamp, rest, _ := strings.Cut(lines.Text(), " ")
			_, rest, _ = strings.Cut(rest, " id ")
			id, _, numbered := strings.Cut(rest, ",")
			if seconds, err := strconv.ParseFloat(stamp, 64); err == nil && numbered {
				s.see(id, time.UnixMicro(int64(seconds*1e6)))
			}
		}
	}()
	return s
}
