package switchd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/slowtest"
	"weft/topology"
)

// The switch's ports are metered at the rate that they have, and the agent reads
// the meters with the two capabilities that it keeps. A second start finds what a
// crash has left, and begins anew.
func TestRun_meters(t *testing.T) {
	slowtest.System(t)
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
	// Without meter.enabled the next start removes them: RED would go on to drop.
	p := l.child("e0.0", "topology: fat-tree:k=2\n")
	l.within("it runs", func() bool { return p.status().Switch == "e0.0" })
	if !p.log.has("removed the meters of an earlier run from 2 ports") {
		t.Errorf("log: %s", p.log.String())
	}
	err := l.Do(l.id("e0.0"), func() error {
		n, err := fabric.DetachMeter([]string{"p0", "p1"})
		if n != 0 {
			t.Errorf("%d ports still have meters", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Without the meter nothing has the extensions open.
func TestInheritMeter_extensionsEndWithIt(t *testing.T) {
	f, err := parse([]byte("meter: {enabled: true}"), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{file: f}
	self := f.fabric.NumHosts() // any switch
	if err := d.inheritMeter(f.config(topology.NodeID(self), time.Now()), "no descriptor", `[{"extension": "a"}, {"extension": "b", "error": "refused"}]`); err != nil {
		t.Fatal(err)
	}
	if d.noMeter == nil || len(d.extensions) != 2 || !strings.Contains(d.extensions[0].Error, "could not be taken over") || d.extensions[1].Error != "refused" {
		t.Errorf("%v, %+v", d.noMeter, d.extensions)
	}
}

func TestRun_meterErrors(t *testing.T) {
	l := upLab(t, "o", "fat-tree:k=2", "e0.0", "a0.1", "h0.0.2")
	p := l.child("e0.0", "topology: fat-tree:k=2\nmeter:\n  enabled: true\n  ecn_bytes: 80000\n")
	if err := p.cmd.Wait(); err == nil || !p.log.has("switch.yaml:3: meter.enabled: meter: port \"p0\": ECNBytes is 80000, must be from 0 to the queue's 75000") {
		t.Errorf("%v, %s", err, p.log.String())
	}
}

// The error of a length that does not fit a port names its key.
func TestRun_redErrors(t *testing.T) {
	l := upLab(t, "o", "fat-tree:k=2", "e0.0", "a0.1", "h0.0.2")
	p := l.child("e0.0", "topology: fat-tree:k=2\nmeter:\n  enabled: true\n  red:\n    action: drop\n    max: 1s\n")
	if err := p.cmd.Wait(); err == nil || !p.log.has("switch.yaml:6: meter.red.max: meter: port \"p0\": RED.Max is 2500000 bytes") {
		t.Errorf("%v, %s", err, p.log.String())
	}
}

// An extension that cannot be loaded is left out, and the agent runs. Its status says so
// after the agent has given up privileges.
func TestRun_extensions(t *testing.T) {
	l := upLab(t, "x", "fat-tree:k=2", "e0.0", "a0.1", "h0.0.2")
	code, err := os.ReadFile("../../fabric/edge_bpfel.o") // any tc program will do
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	object, open := filepath.Join(dir, "tc.o"), filepath.Join(dir, "open.o")
	for name, mode := range map[string]os.FileMode{object: 0o644, open: 0o664} {
		if err := errors.Join(os.WriteFile(name, code, 0o600), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(dir, "foreign.o")
	if err := errors.Join(os.WriteFile(foreign, code, 0o644), os.Chown(foreign, 1, 1)); err != nil {
		t.Fatal(err)
	}
	p := l.child("e0.0", fmt.Sprintf(`topology: fat-tree:k=2
meter: {enabled: true}
extensions:
- {object: /nonexistent.o, program: one}
- {object: %q, program: two}
- {object: %q, program: weft_edge}
- {object: %q, program: weft_edge}
- {object: %q, program: weft_edge}
- {pinned: /nonexistent}
`, object, object, open, foreign))
	l.within("it runs", func() bool { return p.status().Switch == "e0.0" })
	s := p.status()
	for i, want := range []string{"no such file", "has no program two; it has weft_edge", "", "so others can write it: chmod go-w", "belongs to user 1", "no such file"} {
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
