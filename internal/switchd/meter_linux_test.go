package switchd

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"weft/fabric"
)

// The switch's ports are metered at the rate that they have, and the agent reads
// the meters with the two capabilities that it keeps. A second start finds what a
// crash has left, and begins anew.
func TestRun_meters(t *testing.T) {
	l := upLab(t, "m", "fat-tree:k=2", "e0.0", "a0.1", "h0.0.2")
	const config = "topology: fat-tree:k=2\nmeter: {enabled: true, ecn: 12ms}\n"
	send := func() {
		err := l.Do(l.id("h0.0.2"), func() error { // refused by the switch, which says so by its port
			c, err := net.Dial("udp4", "10.0.0.1:9")
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(make([]byte, 1000))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		p := l.child("e0.0", config)
		l.within("it runs", func() bool { return p.status().Switch == "e0.0" })
		if s := p.status(); len(s.Meters) != 2 || s.MeterError != "" {
			t.Fatalf("meters %+v, %s", s.Meters, s.MeterError)
		}
		send()
		l.within("a packet is metered", func() bool { return p.status().Meters[0].Packets > 0 })
		if m := p.status().Meters[0]; m.Port != "p0" || m.RateBits != 20e6 || m.ECNBytes != 30_000 {
			t.Errorf("%+v", m)
		}
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
	err := l.Do(l.id("e0.0"), func() error {
		n, err := fabric.DetachMeter([]string{"p0", "p1"})
		if n != 2 {
			t.Errorf("the end of the agent has left the meters of %d ports, want 2", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRun_meterErrors(t *testing.T) {
	l := upLab(t, "o", "fat-tree:k=2", "e0.0", "a0.1", "h0.0.2")
	p := l.child("e0.0", "topology: fat-tree:k=2\nmeter:\n  enabled: true\n  ecn_bytes: 80000\n")
	if err := p.cmd.Wait(); err == nil || !p.log.has("switch.yaml:3: meter.enabled: meter: port \"p0\": ECNBytes is 80000, must be from 0 to the queue's 75000") {
		t.Errorf("%v, %s", err, p.log.String())
	}
}

// An extension that cannot be loaded is left out, and the agent runs. Its status says so
// after the agent has given up privileges.
func TestRun_extensions(t *testing.T) {
	l := upLab(t, "x", "fat-tree:k=2", "e0.0", "a0.1", "h0.0.2")
	object, err := filepath.Abs("../../fabric/edge_bpfel.o") // any tc program will do
	if err != nil {
		t.Fatal(err)
	}
	p := l.child("e0.0", fmt.Sprintf(`topology: fat-tree:k=2
meter: {enabled: true}
extensions:
- {object: /nonexistent.o, program: one}
- {object: %q, program: two}
- {object: %q, program: weft_edge}
- {pinned: /nonexistent}
`, object, object))
	l.within("it runs", func() bool { return p.status().Switch == "e0.0" })
	s := p.status()
	for i, want := range []string{"no such file", "has no program two; it has weft_edge", "", "no such file"} {
		if i >= len(s.Extensions) || !strings.Contains(s.Extensions[i].Error, want) || want == "" && s.Extensions[i].Error != "" {
			t.Errorf("extension %d, want %q: %+v", i, want, s.Extensions)
		}
	}
	if len(s.Meters) != 2 || s.MeterError != "" {
		t.Errorf("meters %+v, %s", s.Meters, s.MeterError)
	}
	if !p.log.has("extension one of /nonexistent.o is left out") {
		t.Errorf("log: %s", p.log.String())
	}
}
