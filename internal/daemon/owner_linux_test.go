package daemon

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weft/internal/eventlog"
	"weft/liveness"
	"weft/topology"
)

// world is a daemon's owner on a fake kernel.
type world struct {
	*fakeKernel
	d        *daemon
	accepted *Config // by the latest reload that was not refused
	reloads  int
	now      time.Time
	log      strings.Builder
}

var worldConfigs = []string{
	"policy: presto\ndrain: 0s\n",
	"policy: drb\ndrain: 0s\n",
	"policy: flowcell-drb\ndrain: 0s\n",
	"policy: luopan\ndrain: 0s\n",
	"policy: letflow\ndrain: 0s\n",
	"policy: presto\ndrain: 0s\ntopology: fat-tree:k=4,hosts=4\n",
	"policy: drb\ndrain: 0s\nfailures:\n  interval: 30ms\n",
	"policy: ecmp\ndrain: 0s\nfailures:\n  accept_unsigned: true\n",
}

func parsed(t *testing.T, text string) *Config {
	t.Helper()
	c, err := parse([]byte(inGateway(text)), "host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{fakeKernel: &fakeKernel{random: rand.New(rand.NewPCG(seed, 1)), index: 7}, now: time.Unix(0, 0)}
	w.accepted = parsed(t, worldConfigs[0])
	w.d = newDaemon("host.yaml", w.accepted, w.kernel(), eventlog.Lines(&w.log))
	if err := w.d.bringUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// event does something at random, and says what.
func (w *world) event(t *testing.T) string {
	ctx := context.Background()
	switch w.random.IntN(12) {
	case 0, 1, 2:
		text := worldConfigs[w.random.IntN(len(worldConfigs))]
		next := parsed(t, text)
		err := w.d.change(ctx, next)
		if err == nil {
			w.accepted = next
			w.reloads++
		}
		return fmt.Sprintf("reload %q: %v", text, err)
	case 3, 4:
		if len(w.followers) == 0 {
			return "no news"
		}
		f := w.followers[0]
		l := topology.LinkID(f.topology.NumHosts() + w.random.IntN(f.topology.NumLinks()-f.topology.NumHosts()))
		f.told, f.proved = f.topology.Without(l), []*liveness.Carriage{f.none, f.all, f.all}[w.random.IntN(3)]
		f.say()
		heard := w.random.IntN(2) == 0 // or the owner is busy with something else
		if heard {
			w.d.hear(t.Context())
		}
		return fmt.Sprintf("news: %s down, carried %v, heard: %v", f.topology.LinkName(l), f.proved == f.all, heard)
	case 5:
		if w.plan != nil {
			w.lost = append(w.lost, "a route")
		}
		w.tick()
		return "a route lost"
	case 6:
		if w.program != nil {
			w.program.detached = true
		}
		w.tick()
		return "the program detached"
	case 7:
		w.absent = !w.absent
		if !w.absent {
			w.index++ // made anew
		}
		w.tick()
		return fmt.Sprint("uplink absent: ", w.absent)
	case 8:
		w.down = !w.down
		w.tick()
		return fmt.Sprint("uplink down: ", w.down)
	case 9:
		w.strict = !w.strict
		w.tick()
		return fmt.Sprint("strict filter: ", w.strict)
	case 10:
		if w.d.working {
			w.d.receiverEnded()
		}
		w.tick()
		return "the receiver ended"
	}
	w.tick()
	return "time passes"
}

// tick lets time pass for the owner.
func (w *world) tick() {
	w.now = w.now.Add(2 * retryAfter)
	w.d.hear(context.Background())
	w.d.glance(w.now)
	w.d.reconcile(context.Background(), w.now)
}

// What others have changed is told, also if it is found while news or a reload is
// carried out.
func TestOwner_tellsOfEachRepair(t *testing.T) {
	for name, happens := range map[string]func(w *world){
		"news": func(w *world) {
			f := w.followers[0]
			f.proved = f.all
			f.say()
			w.d.hear(t.Context())
			w.d.reconcile(t.Context(), w.now)
		},
		"a reload": func(w *world) {
			if err := w.d.change(t.Context(), parsed(t, worldConfigs[1])); err != nil {
				t.Fatal(err)
			}
		},
	} {
		w := newWorld(t, 1)
		w.lost = append(w.lost, "a route")
		happens(w)
		if log := w.log.String(); !strings.Contains(log, "repaired: a route") || w.d.repairs.Count != 1 || len(w.lost) > 0 {
			t.Errorf("%s: %d repairs, lost still %v; the log:\n%s", name, w.d.repairs.Count, w.lost, log)
		}
	}
}

// Events come in any order, and the kernel refuses anything. After each event the status,
// the count of reloads and the data plane agree. While weft is out of the way, it leaves
// nothing behind. When the trouble is over, all is right again, under the latest
// configuration that was not refused.
func TestOwner_agreesWithTheKernel(t *testing.T) {
	seeds, events := 150, 60
	if testing.Short() {
		seeds = 40
	}
	for seed := range uint64(seeds) {
		w := newWorld(t, seed)
		w.refuse = []float64{0, 0.05, 0.2}[seed%3]
		var history []string
		fail := func(format string, args ...any) {
			t.Fatalf("seed %d: %s\nafter:\n  %s\nlog:\n%s", seed, fmt.Sprintf(format, args...), strings.Join(history, "\n  "), w.log.String())
		}
		for range events {
			history = append(history, w.event(t))
			// A plan for what others have changed since may have to wait: for the
			// uplink to be up, or until the kernel refuses no more.
			waits := w.down || w.d.trouble.why != ""
			if what := w.wrong(w.d); what != "" && !(waits && strings.HasPrefix(what, "the plan in force")) {
				fail("%s", what)
			}
			if w.d.reloads != w.reloads || w.d.config != w.accepted {
				fail("%d reloads, want %d; configuration accepted: %v", w.d.reloads, w.reloads, w.d.config == w.accepted)
			}
		}
		w.refuse, w.absent, w.down = 0, false, false
		for range 3 {
			w.tick()
		}
		if !w.d.working || len(w.lost) > 0 || w.program.detached || w.d.trouble.why != "" {
			fail("not right again: working %v, trouble %q, lost %v", w.d.working, w.d.trouble.why, w.lost)
		}
		if what := w.wrong(w.d); what != "" {
			fail("%s", what)
		}
		if err := w.d.stop(); err != nil {
			fail("stop: %v", err)
		}
		if what := w.wrong(w.d); what != "" || w.locked {
			fail("after the stop: %s, locked %v", what, w.locked)
		}
	}
}
