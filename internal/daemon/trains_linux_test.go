package daemon

import (
	"os"
	"path/filepath"
	"testing"

	plane "weft/internal/dataplane"
)

const inTunnel = "encapsulation: udp\nudp: {name: a, peers: [{name: b, prefixes: [10.9.0.2/32], endpoint: \"192.0.2.1:1\"}]}\n"

// A tunnel's super-segments are trains, unless the kernel forwards longer ones, which it would cut
// into packets. The kernel's refusal is tried again.
func TestFitTrains_unlessTheKernelForwards(t *testing.T) {
	w := newAutoWorld(t, inTunnel+"policy: presto\n")
	cell := w.d.config.policy().Unit.Bytes
	train := plane.TrainPayload(1500, w.d.config.overhead())
	if train >= cell {
		t.Fatalf("a train has %d bytes, a flowcell %d: nothing is tested", train, cell)
	}
	bound := func(want int, when string) {
		t.Helper()
		for range 3 {
			w.tick()
		}
		if got := w.receivers[len(w.receivers)-1].payload; got != want {
			t.Errorf("%s: %d bytes, want %d\n%s", when, got, want, w.log.String())
		}
	}
	bound(train, "at first")
	w.forwards = true
	bound(cell, "when the kernel forwards")
	w.forwards, w.refuse = false, 1
	w.tick()
	w.refuse = 0
	bound(train, "when it forwards no more")
}

// Where each packet has a path of its own, or there is no tunnel, there are no trains.
func TestPayloadMax(t *testing.T) {
	for text, want := range map[string]int{
		inTunnel + "policy: presto\n":   plane.TrainPayload(1500, 20+8+12),
		inTunnel + "policy: ecmp\n":     plane.TrainPayload(1500, 20+8+12),
		inTunnel + "policy: drb\n":      0,
		"mode: gateway\npolicy: ecmp\n": 0,
	} {
		c, err := parse([]byte(text), "host.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.payloadMax(place{mtu: 1500}); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
}

// Whatever device the kernel forwards from counts, but not what devices will be like.
func TestFindAnyForwarding(t *testing.T) {
	if on, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward"); err == nil && string(on) != "0\n" {
		t.Skip("the kernel forwards here")
	}
	dir := t.TempDir()
	set := func(device, to string) {
		t.Helper()
		file := filepath.Join(dir, device, "forwarding")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(to+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want bool, dir, when string) {
		t.Helper()
		var p place
		if err := p.findAnyForwarding(dir); err != nil || p.forwards != want {
			t.Errorf("%s: %t, %v, want %t", when, p.forwards, err, want)
		}
	}
	check(false, filepath.Join(dir, "nothing"), "without sysctls")
	set("lo", "0")
	set("default", "1")
	if err := os.Mkdir(filepath.Join(dir, "gone"), 0o755); err != nil {
		t.Fatal(err)
	}
	check(false, dir, "where none does")
	set("docker0", "1")
	check(true, dir, "where one does")
}
