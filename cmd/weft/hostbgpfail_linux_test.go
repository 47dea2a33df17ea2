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
	"sync/atomic"
	"testing"
	"time"

	"weft/lab"
	"weft/topology/graph"
)

// BenchmarkHost_failsOverUnderBGP measures how long weft host sends into a link that has
// failed behind its leaf: from just before the failure to the last packet of a connection
// that left for the spine above it. The host hears of failures by BGP, or its probes find
// them alone.
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
			hole := l.watch(address(b, fabric, "spine1"))
			var took []float64
			for b.Loop() {
				l.waitFor("spine 1 is used", func() bool { return time.Since(hole.last()) < 100*time.Millisecond })
				time.Sleep(300 * time.Millisecond)
				at, err := fabric.Fail("spine1-leaf2", c.mode)
				if err != nil {
					b.Fatal(err)
				}
				time.Sleep(time.Second)
				if time.Since(hole.last()) < 200*time.Millisecond {
					b.Error("a second after the failure the path is still used")
				}
				took = append(took, max(0, float64(hole.last().Sub(at))/1e6))
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

// sightings are the packets of connections that leave h1-1 for one switch.
type sightings struct{ latest atomic.Int64 } // in ns since 1970

func (s *sightings) last() time.Time { return time.Unix(0, s.latest.Load()) }

func (l *bgpLab) watch(spine netip.Addr) *sightings {
	l.Helper()
	c := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-h1-1", "tcpdump", "-tt", "-n", "-l", "-i", "eth1",
		fmt.Sprintf("dst host %v and ip[9] = 4 and ip[29] = 6", spine))
	out, err := c.StdoutPipe()
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
	s := new(sightings)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			stamp, _, _ := strings.Cut(lines.Text(), " ")
			if seconds, err := strconv.ParseFloat(stamp, 64); err == nil {
				s.latest.Store(int64(seconds * 1e9)) // to a quarter of a microsecond
			}
		}
	}()
	return s
}
