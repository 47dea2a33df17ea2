package daemon

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weft/internal/event"
	"weft/internal/eventlog"
)

const (
	slow = "topology: fat-tree:k=4,host-rate=100,fabric-rate=100,core-rate=100\n"
	fast = "topology: fat-tree:k=4,host-rate=10000,fabric-rate=10000,core-rate=10000\n"
)

// What mode auto is, and whether this host restores the order.
func TestMode_settles(t *testing.T) {
	udp := "encapsulation: udp\nudp: {name: a, peers: [{name: b, prefixes: [10.9.0.2/32], endpoint: \"192.0.2.1:1\"}]}\n"
	for _, c := range []struct {
		text           string
		old            bool // the kernel cannot keep what arrives in order
		mode           string
		orders, warned bool
		why            string
	}{
		{"", false, ModeOffload, true, false, "the kernel keeps what is in order"},
		{"", true, ModeGateway, true, false, "the kernel refuses"},
		{fast, false, ModeOffload, true, false, "in order"},
		{slow, false, ModeOffload, true, false, "in order"},
		{slow, true, ModeOffload, false, false, "each packet"},
		{slow + "policy: rrb\n", false, ModeOffload, true, false, "in order"},
		{slow + "policy: ecmp\n", false, ModeOffload, false, false, "each flow"},
		{slow + "policy: presto\n", true, ModeGateway, true, false, "cannot restore the order"},
		{slow + "resequence: false\n", false, ModeOffload, false, false, "each packet"},
		{slow + "resequence: true\n", true, ModeGateway, true, false, "cannot restore the order"},
		{slow + "uplink: [p0, p1]\n", false, ModeOffload, false, false, "each packet"},
		{slow + "mode: offload\n", false, ModeOffload, false, false, ""},
		{slow + "mode: offload\nresequence: true\n", false, ModeOffload, true, false, ""},
		{fast + "policy: drb\n", false, ModeOffload, false, false, "each packet"},
		{"policy: presto\n", true, ModeGateway, true, false, "cannot restore the order"},
		{"policy: drb\n", true, ModeOffload, false, false, "each packet"},
		{"policy: drb\nresequence: true\n", false, ModeOffload, true, false, "in order"},
		{"policy: ecmp\n", false, ModeOffload, false, false, "each flow"},
		{"policy: local\n", false, ModeGateway, true, false, "local is decided packet by packet"},
		{"policy: letflow\n", true, ModeOffload, false, false, "each flowlet"},
		{"policy: conga\n", true, ModeOffload, false, false, "each flowlet"},
		{"policy: conga\nresequence: true\n", false, ModeOffload, true, false, "in order"},
		{"policy: drb\ngroups: true\n", false, ModeGateway, true, false, "drb is decided packet by packet"},
		{"policy: presto\ngroups: true\n", false, ModeGateway, true, false, "presto is decided packet by packet"},
		{udp, false, ModeGateway, true, false, "a tunnel"},
		{"resequence: false\n", false, ModeOffload, false, true, "each flowcell"},
		{"resequence: false\nreceivers_resequence: true\n", false, ModeOffload, false, false, "each flowcell"},
		{"uplink: [p0, p1]\n", false, ModeOffload, false, true, "each flowcell"},
		{"mode: offload\npolicy: presto\n", false, ModeOffload, true, false, ""},
		{"mode: offload\npolicy: presto\nreceivers_resequence: false\n", false, ModeOffload, true, true, ""},
		{"mode: offload\npolicy: drb\n", false, ModeOffload, false, false, ""},
		{"mode: gateway\n", false, ModeGateway, true, false, ""},
		{"mode: gateway\npolicy: drb\n", true, ModeGateway, true, false, ""},
	} {
		config, err := parse([]byte(c.text), "host.yaml")
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		config.begin((&fakeKernel{old: c.old}).orders)
		if config.mode() != c.mode || config.receives() != c.orders || config.unordered() != c.warned || !strings.Contains(config.auto.why, c.why) {
			t.Errorf("%q, old kernel %t: mode %s, restores the order %t, warned %t, because %q", c.text, c.old, config.mode(), config.receives(), config.unordered(), config.auto.why)
		}
	}
}

func newAutoWorld(t *testing.T, text string) *world {
	w := &world{fakeKernel: &fakeKernel{random: rand.New(rand.NewPCG(1, 1)), index: 7}, now: time.Unix(0, 0)}
	var err error
	if w.accepted, err = parse([]byte(text), "host.yaml"); err != nil {
		t.Fatal(err)
	}
	w.d = newDaemon("host.yaml", w.accepted, w.kernel(), eventlog.Lines(&w.log))
	if err := w.d.bringUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) becomes(t *testing.T, text string) error {
	next, err := parse([]byte(text), "host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return w.d.change(t.Context(), next)
}

// A reload keeps what the daemon has begun with. What would need more is refused, and changes
// nothing.
func TestMode_survivesReloads(t *testing.T) {
	w := newAutoWorld(t, slow+"policy: ecmp\n")
	if w.program.config.PerPacketTCP || len(w.program.config.Cut) > 0 || w.d.receiver != nil {
		t.Errorf("by flow: %+v", w.program.config)
	}
	for text, want := range map[string]string{
		fast:                      "policy: auto sends each flowcell of 64 KB by one path",
		slow + "policy: presto\n": "which it has not begun with; restart the daemon",
		slow + "policy: local\n":  "restart the daemon",
	} {
		if err := w.becomes(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := w.becomes(t, slow); err != nil || !w.program.config.PerPacketTCP || w.d.receiver != nil {
		t.Errorf("%v, from flows to packets, which gain by order and do not need it: %+v", err, w.program.config)
	}
	if err := w.becomes(t, slow+"policy: ecmp\n"); err != nil || w.program.config.Policy.Name != "ecmp" {
		t.Errorf("%v, the program goes by %s", err, w.program.config.Policy.Name)
	}

	w = newAutoWorld(t, slow)
	if !w.program.config.PerPacketTCP || len(w.program.config.Cut) > 0 || w.d.receiver == nil {
		t.Errorf("at 100 Mbit/s: %+v", w.program.config)
	}

	w = newAutoWorld(t, fast)
	if w.program.config.PerPacketTCP || len(w.program.config.Cut) == 0 || w.d.receiver == nil {
		t.Errorf("at 10 Gbit/s: %+v", w.program.config)
	}
	if err := w.becomes(t, slow); err != nil || !w.program.config.PerPacketTCP || w.d.receiver == nil {
		t.Errorf("%v, from 10 Gbit/s to 100 Mbit/s: %+v", err, w.program.config)
	}
	if err := w.becomes(t, fast); err != nil || w.program.config.PerPacketTCP {
		t.Errorf("%v, and back: %+v", err, w.program.config)
	}
	if s := w.d.snapshot(); s.Mode != ModeOffload || s.ModeWhy == "" || s.Policy != "auto" || s.Unit != "flowcell of 64 KB" {
		t.Errorf("status %+v", s)
	}
}

// A daemon that ends tells what its log has suppressed, and leaves no timer that writes later.
func TestStop_endsTheLog(t *testing.T) {
	w := newAutoWorld(t, slow+"policy: ecmp\n")
	for range event.Burst + 7 {
		w.d.log.Warn(event.Doubt, "doubt")
	}
	if err := w.d.stop(); err != nil {
		t.Fatal(err)
	}
	if want := "events of the name doubt were not told"; !strings.Contains(w.log.String(), want) {
		t.Errorf("the log does not say %q", want)
	}
}
