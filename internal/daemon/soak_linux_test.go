package daemon

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/lab"
)

// The hosts of a soak besides those of chaos.
const (
	soakEmbedded  = "h1.0.2" // has a Host of its own in a process
	soakServer    = "h2.0.2" // has no weft, but a server
	soakPlain     = "h2.1.2" // has no weft; its programs come and go
	soakStranger  = "h2.1.3" // floods
	soakConns     = 10_000
	soakSample    = 10 * time.Second
	soakJudged    = 10 * time.Minute // shorter, and a quarter has few samples, of what is not full yet
	soakHalfOpen  = 100              // SYNs a second
	soakAbandoned = 10               // connections that are left, every 5 s
)

// soakTunnel are the ends of a tunnel.
var soakTunnel = []string{"h1.1.2", "h2.0.3"}

// soak is a chaos under load for a long time.
type soak struct {
	*chaos
	agents  []*child     // of switches
	tunnel  []*child     // both ends of a tunnel
	service *child       // with an embedded Host
	dark    atomic.Int64 // until when a kernel may have no path, nanoseconds since began
	began   time.Time
	loads   map[string]*soakLoad

	keys, tunnelKeys int // how often each was rolled over
	events, kills    int
	syns, abandoned  atomic.Int64
}

// TestSoak runs for as long as WEFT_SOAK says (30m), with the events of TestChaos by the
// seed of WEFT_CHAOS_SEED. It compares what the processes hold in its second quarter with
// what they hold in its last. WEFT_SOAK_CONNS is the number of open connections,
// WEFT_SOAK_EVENTS a regular expression of the events, WEFT_SOAK_PAUSE the time between
// two.
func TestSoak(t *testing.T) {
	whole, err := time.ParseDuration(os.Getenv("WEFT_SOAK"))
	if err != nil || whole < time.Minute {
		t.Skip("takes a while: WEFT_SOAK is for how long, 1m at least")
	}
	seed, conns := uint64(1), soakConns
	if n, err := strconv.ParseUint(os.Getenv("WEFT_CHAOS_SEED"), 10, 64); err == nil {
		seed = n
	}
	if n, err := strconv.Atoi(os.Getenv("WEFT_SOAK_CONNS")); err == nil {
		conns = n
	}
	raiseDescriptors(t, 17*conns/10+1500) // of many connections both ends are here
	c := &chaos{network: newNetwork(t, "s"), random: rand.New(rand.NewPCG(seed, 0x736f616b)), hosts: []string{"h0.0.2", "h3.1.3"}}
	s := &soak{chaos: c, loads: make(map[string]*soakLoad)}
	s.begin(conns)
	ctx, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	s.load(ctx, &wg, conns, seed)
	// From here on it counts.
	s.began = time.Now()
	for i := range 10 {
		ends := [][2]string{{s.hosts[0], s.hosts[1]}, {s.hosts[1], s.hosts[0]}, {s.hosts[0], soakEmbedded}, {soakServer, s.hosts[1]}}[i%4]
		c.transfer(ends[0], ends[1], s.began, byte(i))
	}
	all := []*soaked{
		{name: "host " + s.hosts[0] + " (TUN)", child: func() *child { return s.children[0] }},
		{name: "host " + s.hosts[1] + " (killed)", child: func() *child { return s.children[1] }},
		{name: "embedded " + soakEmbedded, child: func() *child { return s.service }},
		{name: "tunnel " + soakTunnel[0], child: func() *child { return s.tunnel[0] }},
		{name: "switch " + s.agents[0].node, child: func() *child { return s.agents[0] }},
	}
	wg.Go(func() { s.halfOpen(ctx) })
	wg.Go(func() { s.abandon(ctx) })
	var lost atomic.Int64
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, p := range all {
				if !p.take(time.Since(s.began)) {
					lost.Add(1)
				}
			}
			wait(ctx, soakSample)
		}
	})
	s.rage(whole, seed)
	s.check(s.began, "at the end", chaosStall())
	s.report(whole, all, int(lost.Load()))
	end()
	wg.Wait()
	for h := range s.hosts {
		s.children[h].end(syscall.SIGTERM)
	}
}

// raiseDescriptors lets this process open so many files.
func raiseDescriptors(t *testing.T, n int) {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	if err == nil && limit.Cur < uint64(n) {
		limit.Cur, limit.Max = uint64(n), max(limit.Max, uint64(n))
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	}
	if err != nil {
		t.Skipf("%d descriptors: %v", n, err)
	}
}

// secret is a key by its number, and the same in every run.
func secret(n int) string {
	var b [32]byte
	rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), 1}).Read(b[:])
	return base64.StdEncoding.EncodeToString(b[:])
}

// updateKeys are in a configuration of hosts and switches. The latest of two signs from a
// time on.
func updateKeys(from time.Time, numbers ...int) string {
	text := "keys:"
	for i, n := range numbers {
		text += fmt.Sprintf("\n  - {id: %d, key: %q", 1+n%255, secret(n))
		if i > 0 {
			text += ", from: " + from.UTC().Format(time.RFC3339)
		}
		text += "}"
	}
	return text + "\n"
}

// hostConfig and switchConfig are configurations with keys.
func hostConfig(host int, keys string) string {
	return []string{"policy: drb\n", "policy: presto\n"}[host] + "failures:\n  " + strings.ReplaceAll(keys, "\n  ", "\n    ")
}

func switchConfig(keys string) string { return "configure: false\nroutes: false\n" + keys }

// tunnelConfig is one of an end of the tunnel.
func (s *soak) tunnelConfig(end int, keys string) string {
	peer := s.node(soakTunnel[1-end])
	return fmt.Sprintf(`encapsulation: udp
tun:
  addresses: [10.9.0.%d/32]
udp:
  name: %s
  peers:
    - name: %s
      prefixes: [10.9.0.%d/32]
      endpoint: %s:5740
%s`, end+1, soakTunnel[end], peer.Name, 2-end, peer.Addr, keys)
}

// begin starts all daemons.
func (s *soak) begin(conns int) {
	s.Helper()
	const ready = childVitals + "=1"
	keys := updateKeys(time.Time{}, 0)
	for _, pod := range []string{"0", "3"} {
		for _, name := range []string{"e" + pod + ".0", "e" + pod + ".1", "a" + pod + ".2", "a" + pod + ".3"} {
			a := s.launch(name, switchConfig(keys), childSwitch+"=1", ready)
			a.waitFor("hellos every")
			s.agents = append(s.agents, a)
		}
	}
	s.environment = []string{ready}
	for h, name := range s.hosts {
		s.configs = append(s.configs, hostConfig(h, keys))
		s.neighbours = append(s.neighbours, s.permanent(name))
		s.children = append(s.children, s.start(name, s.configs[h], ready))
	}
	for end, name := range soakTunnel {
		s.tunnel = append(s.tunnel, s.start(name, s.tunnelConfig(end, "      key: "+secret(1000)+"\n"), ready))
	}
	for _, to := range []string{s.hosts[0], s.hosts[1], soakServer, soakTunnel[0], soakTunnel[1]} {
		s.do(to, func() error {
			l, err := net.Listen("tcp", ":7")
			if err == nil {
				s.Cleanup(func() { l.Close() })
				go echo(l)
			}
			return err
		})
	}
	time.Sleep(500 * time.Millisecond)
	for h := range s.hosts {
		s.owned = append(s.owned, s.has(h))
		s.Logf("%s", s.owned[h])
	}
	spec := fmt.Sprintf("%v %d", s.embeddedAddr(), conns*2/10)
	for _, to := range s.hosts {
		spec += " " + net.JoinHostPort(s.node(to).Addr.String(), "7")
	}
	s.service = s.start(soakEmbedded, "", childEmbedded+"="+spec)
	s.neighbours = append(s.neighbours, s.permanent(soakEmbedded))
}

func (s *soak) embeddedAddr() string {
	return s.lab.Config.Topology.EmbeddedAddr(s.node(soakEmbedded).ID).String()
}

// load begins the load of kernels, and waits until that and the embedded Host's is there.
func (s *soak) load(ctx context.Context, wg *sync.WaitGroup, conns int, seed uint64) {
	s.Helper()
	began := time.Now()
	s.began = began
	var opening sync.WaitGroup
	for i, l := range []struct {
		from string
		held int
		to   []string
	}{
		{s.hosts[0], conns * 5 / 10, []string{s.node(s.hosts[1]).Addr.String(), s.node(s.hosts[1]).Addr.String(), s.node(soakServer).Addr.String(), s.embeddedAddr()}},
		{s.hosts[1], conns * 3 / 10, []string{s.node(s.hosts[0]).Addr.String(), s.node(s.hosts[0]).Addr.String(), s.embeddedAddr()}},
		{soakTunnel[0], conns / 50, []string{"10.9.0.2"}},
		{soakTunnel[1], conns / 50, []string{"10.9.0.1"}},
	} {
		load := &soakLoad{held: l.held, away: s.away, dial: func(_ context.Context, to string) (c net.Conn, err error) {
			err2 := s.lab.Do(s.node(l.from).ID, func() error {
				c, err = dialHere(to)
				return nil
			})
			if err2 != nil {
				err = err2
			}
			return c, err
		}}
		for _, a := range l.to {
			load.to = append(load.to, net.JoinHostPort(a, "7"))
		}
		s.loads[l.from] = load
		opening.Add(1)
		wg.Go(func() { load.run(ctx, seed*10+uint64(i), opening.Done) })
	}
	opening.Wait()
	s.service.waitFor("all are open")
	s.Logf("after %v:%s", time.Since(began).Round(time.Second), s.loadTable())
}

// away reports whether a kernel may have no path.
func (s *soak) away() bool { return int64(time.Since(s.began)) < s.dark.Load() }

// rage lets things happen, by the seed.
func (s *soak) rage(whole time.Duration, seed uint64) {
	s.Helper()
	only := regexp.MustCompile(os.Getenv("WEFT_SOAK_EVENTS"))
	events := slices.DeleteFunc(append(soakEvents(s), chaosEvents...), func(e chaosEvent) bool { return !only.MatchString(e.name) })
	var order []int
	for i := 0; time.Since(s.began) < whole; i++ {
		if len(order) == 0 {
			order = s.random.Perm(len(events))
		}
		e := events[order[0]]
		order = order[1:]
		host := s.random.IntN(len(s.hosts))
		if strings.Contains(e.name, "killed") { // the other one lives for as long as the soak
			host = 1
			s.kills++
		}
		if e.dark || strings.Contains(e.name, "killed") {
			s.dark.Store(int64(time.Since(s.began) + e.lasts + 3*time.Second))
		}
		s.events++
		s.event(e, host, s.began, fmt.Sprintf("%s: seed %d, event %d", time.Now().Format(time.TimeOnly), seed, i))
		pause, _ := time.ParseDuration(os.Getenv("WEFT_SOAK_PAUSE"))
		time.Sleep(pause + time.Duration(s.random.IntN(1000))*time.Millisecond)
	}
}

// soakEvents are those that chaos has not.
func soakEvents(s *soak) []chaosEvent {
	fail := func(target string, mode lab.FailureMode) (do, undo func(*chaos, int)) {
		return func(c *chaos, _ int) {
				if _, err := c.lab.Fail(target, mode); err != nil {
					c.Fatal(err)
				}
			}, func(c *chaos, _ int) {
				if _, err := c.lab.Heal(target); err != nil {
					c.Fatal(err)
				}
			}
	}
	loud, heal1 := fail("c1.2", lab.FailLoud)
	silent, heal2 := fail("c2.1", lab.FailSilent)
	link, heal3 := fail("e0.0-a0.2", lab.FailLoud)
	return []chaosEvent{
		{name: "a spine dies", do: loud, undo: heal1, lasts: 2 * time.Second},
		{name: "a spine swallows everything", do: silent, undo: heal2, lasts: 2 * time.Second},
		{name: "a link of the rack fails", do: link, undo: heal3, lasts: 2 * time.Second},
		{name: "the keys of updates are rolled over", do: func(*chaos, int) { s.rollUpdates() }},
		{name: "the keys of the tunnel are rolled over", do: func(*chaos, int) { s.rollTunnel() }},
		{name: "the uplink of the embedded Host goes down and up", do: func(c *chaos, _ int) { c.shell(soakEmbedded, "ip link set p0 down") },
			undo: func(*chaos, int) { s.comeUp(soakEmbedded, s.neighbours[2]) }, lasts: 300 * time.Millisecond, dark: true},
	}
}

// reread has daemons read new files, each said to have been read.
func (s *soak) reread(list []*child, config func(i int) string) {
	s.Helper()
	for i, c := range list {
		had := strings.Count(c.messages(), "reloaded: ")
		c.write(config(i))
		c.cmd.Process.Signal(syscall.SIGHUP)
		for end := time.Now().Add(time.Minute); strings.Count(c.messages(), "reloaded: ") == had; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				s.Fatalf("%s does not reload:\n%s", c.node, tail(c.messages()))
			}
		}
	}
}

func tail(text string) string { return text[max(0, len(text)-2000):] }

// rollUpdates gives switches and hosts the next key of updates, waits until it signs,
// and takes the former away.
func (s *soak) rollUpdates() {
	s.Helper()
	rejected := func() (n int) {
		for _, c := range s.children {
			fields := c.status()
			for _, why := range []string{"key", "mac"} {
				v, _ := strconv.Atoi(fields["failures.updates.rejected."+why])
				n += v
			}
		}
		return n
	}
	had := rejected()
	s.keys++
	from := time.Now().Add(3 * time.Second).Truncate(time.Second)
	give := func(keys string) {
		s.reread(s.agents, func(int) string { return switchConfig(keys) })
		for h := range s.hosts {
			s.configs[h] = hostConfig(h, keys)
		}
		s.reread(s.children, func(h int) string { return s.configs[h] })
	}
	give(updateKeys(from, s.keys-1, s.keys))
	time.Sleep(time.Until(from) + 500*time.Millisecond)
	give(updateKeys(time.Time{}, s.keys))
	time.Sleep(6 * time.Second) // a refresh
	if now := rejected(); now != had {
		s.Errorf("roll-over %d: %d updates were refused for their keys", s.keys, now-had)
	}
	for _, c := range s.children {
		if f := c.status(); !strings.HasPrefix(f["failures.updates.trust"], "signed: only") || f["failures.updates.refused"] != "" {
			s.Errorf("roll-over %d: %s: updates are %q, refused %q", s.keys, c.node, f["failures.updates.trust"], f["failures.updates.refused"])
		} else if heard, _ := strconv.ParseFloat(f["failures.updates.heard_s"], 64); heard < 0 || heard > 6 {
			s.Errorf("roll-over %d: %s has heard nothing for %v s", s.keys, c.node, heard)
		}
	}
}
