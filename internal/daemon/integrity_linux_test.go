package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/kernel/disturb"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
	"weft/topology"
)

// integrity is a part of a fat-tree, between hosts of two pods, whose cores disturb what goes
// to the second.
type integrity struct {
	*network
	from, to   string
	cores      []topology.NodeID
	ports      []string // of the cores, towards to
	disturbers []*disturb.Disturber
	supers     bool // the lab carries super-segments above 64 KB
}

func newIntegrity(t *testing.T) *integrity {
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	i := &integrity{from: "h0.0.2", to: "h3.1.3"}
	from, _ := top.Lookup(i.from)
	to, _ := top.Lookup(i.to)
	var only []topology.NodeID
	paths := top.Paths(from.ID, to.ID)
	for _, n := range paths.Live {
		bounce := paths.Bounce(n)
		path, err := top.Path(from.ID, to.ID, bounce)
		if err != nil {
			t.Fatal(err)
		}
		only = append(only, path.Hops...)
		for at, hop := range path.Hops {
			if hop != bounce {
				continue
			}
			for _, p := range top.Ports(bounce) {
				if p.Peer == path.Hops[at+1] {
					i.cores = append(i.cores, bounce)
					i.ports = append(i.ports, fmt.Sprintf(fabric.DefaultPortFormat, p.Index))
				}
			}
		}
	}
	i.network = newNetwork(t, "y", func(c *lab.Config) {
		*c = lab.Config{Name: c.Name, Topology: c.Topology, Only: only, Unlimited: true}
	})
	return i
}

// disturb has cores disturb packets; of several disturbances core by core in turn.
func (i *integrity) disturb(t *testing.T, all ...disturb.Disturbance) {
	i.disturbers = nil
	for at, core := range i.cores {
		in := func(f func() error) error { return i.lab.Do(core, f) }
		i.disturbers = append(i.disturbers, kerneltest.Disturb(t, in, i.ports[at], all[at%len(all)]))
	}
}

func (i *integrity) disturbed(t *testing.T) (sum disturb.Disturbed) {
	for _, d := range i.disturbers {
		c, err := d.Counts()
		if err != nil {
			t.Fatal(err)
		}
		sum.Lost += c.Lost
		sum.Doubled += c.Doubled
		sum.Long += c.Long
		sum.Late += c.Late
		sum.Latest = max(sum.Latest, c.Latest)
	}
	return sum
}

// resent is what a host's kernel has sent again, in segments.
func (i *integrity) resent(node string) int {
	i.Helper()
	out := strings.Fields(i.shell(node, `awk '/^Tcp:/ && n++ {print $13}' /proc/net/snmp`))
	n, err := strconv.Atoi(out[0])
	if err != nil {
		i.Fatal(err)
	}
	return n
}

// daemons are the daemons of both ends, started with one configuration.
type daemons [2]*child

func (i *integrity) run(config string) (d daemons) {
	for at, node := range []string{i.from, i.to} {
		d[at] = i.start(node, config)
	}
	return d
}

// stream sends bytes by a connection until told to end, and both ends hash them.
type stream struct {
	p           *pair
	sent        atomic.Int64
	end         atomic.Bool
	done        chan error
	began, last time.Time
}

func (i *integrity) stream() *stream {
	s := &stream{p: i.connect(i.from, i.to), done: make(chan error, 1), began: time.Now()}
	go func() { s.done <- s.move() }()
	return s
}

func (s *stream) move() error {
	received := make(chan error, 1)
	var there string
	go func() {
		h := sha256.New()
		_, err := io.Copy(h, s.p.b)
		there = hex.EncodeToString(h.Sum(nil))
		received <- err
	}()
	// 16 MB of random bytes, from anywhere in them: where a piece is missing or comes twice, the
	// hashes differ.
	random := rand.New(rand.NewPCG(18, 2))
	all := make([]byte, 16<<20)
	rand.NewChaCha8([32]byte{18}).Read(all)
	h := sha256.New()
	for !s.end.Load() {
		from := random.IntN(len(all) - 1<<20)
		b := all[from : from+1<<20]
		if _, err := s.p.a.Write(b); err != nil {
			return fmt.Errorf("after %d bytes: %w", s.sent.Load(), err)
		}
		h.Write(b)
		s.sent.Add(int64(len(b)))
	}
	s.p.a.SetDeadline(time.Now().Add(time.Minute))
	s.p.b.SetDeadline(time.Now().Add(time.Minute))
	if err := errors.Join(s.p.a.(interface{ CloseWrite() error }).CloseWrite(), <-received); err != nil {
		return fmt.Errorf("after %d bytes: %w", s.sent.Load(), err)
	}
	s.last = time.Now()
	if here := hex.EncodeToString(h.Sum(nil)); here != there {
		return fmt.Errorf("%d bytes: sent %s, received %s", s.sent.Load(), here, there)
	}
	return nil
}

// integrityPaths are the ways of the kernel's TCP through weft.
var integrityPaths = []struct{ name, config string }{
	{"gateway", "mode: gateway\n"},
	{"offload", "mode: offload\nresequence: true\nreceivers_resequence: true\n"},
	{"big", "mode: offload\nresequence: true\nreceivers_resequence: true\nsuper_segment_bytes: 196608\n"},
}

// Bytes arrive as they were sent, by each way, with losses, doubles and a path that is 2 ms
// longer, and while the daemons of both ends are killed again and again. The variables
// WEFT_INTEGRITY_MB and WEFT_INTEGRITY_KILLS ask for more than an ordinary run.
func TestOrderAndIntegrity(t *testing.T) {
	slowtest.Unraced(t) // TestRun_superSegmentsThatGetLost and TestRun_orderSurvivesItsReader race
	megabytes, kills := fromEnv("WEFT_INTEGRITY_MB", 50), fromEnv("WEFT_INTEGRITY_KILLS", 2)
	i := newIntegrity(t)
	if err := i.lab.AllowSupers(maxSupers); err != nil {
		t.Log(err)
	} else {
		i.supers = true
	}
	usual := disturb.Disturbance{Loss: 1000, Double: 1000}
	late := usual
	late.Skew = 2 * time.Millisecond
	i.disturb(t, late, usual, usual, usual)
	for _, p := range integrityPaths {
		t.Run(p.name, func(t *testing.T) {
			i := &integrity{i.network.of(t), i.from, i.to, i.cores, i.ports, i.disturbers, i.supers}
			i.arrives(t, p.config, int64(megabytes)<<20, kills)
		})
	}
}

func fromEnv(name string, usual int) int {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return n
}

func (i *integrity) arrives(t *testing.T, config string, bytes int64, kills int) {
	d := i.run(config)
	before, disturbed := i.resent(i.from), i.disturbed(t)
	s := i.stream()
	killed := 0
	var moved int64
	for stuck := time.Now(); killed < kills || s.sent.Load() < bytes || i.disturbed(t).Lost == disturbed.Lost; time.Sleep(200 * time.Millisecond) {
		select {
		case err := <-s.done:
			t.Fatal(err)
		default:
		}
		if now := s.sent.Load(); now != moved {
			moved, stuck = now, time.Now()
		} else if time.Since(stuck) > 5*kerneltest.Patience {
			t.Fatalf("nothing moves any more, after %d bytes and %d kills", now, killed)
		}
		if killed == kills {
			continue
		}
		end := killed % 2
		d[end].end(syscall.SIGKILL)
		time.Sleep(50 * time.Millisecond)
		d[end] = i.start(d[end].node, config)
		killed++
	}
	status := d[0].status()
	if strings.Contains(config, "super_segment_bytes") && i.supers && status["super_segments.fallbacks"] == "0" {
		kerneltest.Within(t, kerneltest.Patience, "long super-segments leave", func() bool {
			long := d[0].status()["offload.long.sent"]
			return long != "" && long != "0"
		})
	}
	s.end.Store(true)
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	after := i.disturbed(t)
	gb := float64(s.sent.Load()) / 1e9
	t.Logf("%.2f GB at %.2f Gbit/s, %d kills: %.0f segments a GB sent again; of %d late (up to %v), %d lost and %d doubled super-segments; offload.long.sent %s, super_segments %s, fallbacks %s",
		gb, 8*gb/s.last.Sub(s.began).Seconds(), killed, float64(i.resent(i.from)-before)/gb,
		after.Late-disturbed.Late, after.Latest, after.Lost-disturbed.Lost, after.Doubled-disturbed.Doubled,
		status["offload.long.sent"], status["super_segments.bytes"], status["super_segments.fallbacks"])
	if after.Late == disturbed.Late || after.Lost == disturbed.Lost {
		t.Errorf("nothing was disturbed: %+v", after)
	}
	for _, c := range d {
		c.end(syscall.SIGTERM)
	}
}

// Where super-segments above 64 KB get lost, the daemon goes back to shorter ones, says so,
// and connections go on.
func TestRun_superSegmentsThatGetLost(t *testing.T) {
	slowtest.System(t)
	i := newIntegrity(t)
	if err := i.lab.AllowSupers(maxSupers); err != nil {
		t.Skip(err)
	}
	i.disturb(t, disturb.Disturbance{Longest: minSupers})
	d := i.run(integrityPaths[2].config)
	s := i.stream()
	kerneltest.Within(t, 2*kerneltest.Patience, "the daemon goes back to 64 KB", func() bool {
		return d[0].status()["super_segments.fallbacks"] == "1"
	})
	long := i.disturbed(t).Long
	if st := d[0].status(); st["super_segments.bytes"] != "65536" || st["super_segments.asked"] != "196608" || st["super_segments.why"] == "" {
		t.Errorf("status: %v", st)
	}
	d[0].waitFor("seem to get lost on their way")
	at := s.sent.Load()
	kerneltest.Within(t, 2*kerneltest.Patience, "32 MB more", func() bool { return s.sent.Load() > at+32<<20 })
	s.end.Store(true)
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	// A moment later none is made any more, whatever the connection's socket says.
	again := i.disturbed(t).Long
	i.connect(i.from, i.to).exchange(20_000_000)
	if now := i.disturbed(t).Long; now != again || long == 0 {
		t.Errorf("%d long super-segments lost, %d when it was told, %d after it", now, long, again)
	}
	for _, c := range d {
		c.end(syscall.SIGTERM)
	}
}
