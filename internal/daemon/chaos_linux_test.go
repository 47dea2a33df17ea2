package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"weft/fabric"
	"weft/internal/slowtest"
)

// chaos is a lab in which everything happens to two daemons while connections send.
type chaos struct {
	*network
	random     *rand.Rand
	hosts      []string
	children   []*child
	configs    []string
	owned      []string // what weft has at each host when nothing is wrong
	neighbours []string // commands that make them known again
	// environment has further variables of the daemons.
	environment []string
	transfers   []*transfer
}

// chaosEvent is something that happens to a host, by its place in hosts.
type chaosEvent struct {
	name string
	do   func(c *chaos, host int)
	// undo ends what lasts; nil if there is nothing to end.
	undo func(c *chaos, host int)
	// lasts is how long, where it does.
	lasts time.Duration
	// dark: there is no path, plain or not, while it lasts.
	dark bool
	// says is a part of the line that the daemon must log, "" for none.
	says string
	// goesPlain: nothing is to be said if some packets do so already.
	goesPlain bool
}

func ofHost(script string) func(*chaos, int) {
	return func(c *chaos, host int) { c.shell(c.hosts[host], script) }
}

// gatewayOf is the address of a host's edge switch.
func (c *chaos) gatewayOf(host int) string {
	a := c.node(c.hosts[host]).Addr.As4()
	return fmt.Sprintf("%d.%d.%d.1", a[0], a[1], a[2])
}

// administer does what a machine's own network management does when a device
// comes up.
func administer(c *chaos, host int) {
	c.shell(c.hosts[host], "ip link set p0 up\n"+c.neighbours[host]+"ip route replace default via "+c.gatewayOf(host)+" dev p0 onlink")
}

// permanent are the commands that make a host's neighbours known again.
func (c *chaos) permanent(host string) string {
	return c.shell(host, `ip neigh show dev p0 nud permanent | sed 's/^\([^ ]*\) lladdr \([^ ]*\).*/ip neigh replace \1 lladdr \2 dev p0 nud permanent/'`)
}

// tcx attaches a program that ends the chain, in front or behind, or takes it away.
func foreignProgram(at ebpf.AttachType, front bool) func(*chaos, int) {
	return func(c *chaos, host int) {
		c.do(c.hosts[host], func() error {
			prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "foreign", Type: ebpf.SchedCLS, License: "GPL",
				Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
			if err != nil {
				return err
			}
			defer prog.Close()
			index, err := indexOf("p0")
			if err != nil {
				return err
			}
			anchor := link.Tail()
			if front {
				anchor = link.Head()
			}
			return link.RawAttachProgram(link.RawAttachProgramOptions{Target: index, Program: prog, Attach: at, Anchor: anchor})
		})
	}
}

// indexOf finds a device of the calling thread's namespace.
func indexOf(name string) (int, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	return i.Index, nil
}

// detachPrograms takes programs away from the uplink: weft's, or those of others.
func detachPrograms(wefts bool, ats ...ebpf.AttachType) func(*chaos, int) {
	return func(c *chaos, host int) {
		c.do(c.hosts[host], func() error {
			return detach("p0", func(name string) bool { return strings.HasPrefix(name, "weft_") == wefts }, ats...)
		})
	}
}

// detach takes TCX programs of some names from a device of the calling thread's
// namespace.
func detach(device string, which func(name string) bool, ats ...ebpf.AttachType) error {
	index, err := indexOf(device)
	if err != nil {
		return err
	}
	for _, at := range ats {
		q, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: at})
		if err != nil {
			return err
		}
		for _, p := range q.Programs {
			prog, err := ebpf.NewProgramFromID(p.ID)
			if err != nil {
				continue // it is gone already
			}
			info, err := prog.Info()
			if err == nil && which(info.Name) {
				err = link.RawDetachProgram(link.RawDetachProgramOptions{Target: index, Program: prog, Attach: at})
			}
			prog.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	ingress = ebpf.AttachTCXIngress
	egress  = ebpf.AttachTCXEgress
)

// chaosEvents are what others do to a host.
var chaosEvents = []chaosEvent{
	{name: "the uplink goes down and up", do: ofHost("ip link set p0 down"), undo: administer, lasts: 300 * time.Millisecond, dark: true, says: "p0 is down"},
	{name: "weft's rules are deleted", do: ofHost("for r in 5739 5740 5741; do ip rule del pref $r || true; done"), says: "repaired: rule"},
	{name: "weft's routes are deleted", do: ofHost("ip route flush table 5741; ip route flush table 5740 || true"), says: "repaired: route"},
	{name: "the uplink's reverse path filter is made strict", do: ofHost("sysctl -qw net.ipv4.conf.p0.rp_filter=1"), says: "repaired: setting net.ipv4.conf.p0.rp_filter"},
	{name: "the TUN does not forward any more", do: ofHost("sysctl -qw net.ipv4.conf.weft0.forwarding=0 net.ipv4.conf.weft0.accept_local=0"), says: "repaired: setting net.ipv4.conf.weft0"},
	{name: "the TUN is set down", do: ofHost("ip link set weft0 down"), says: "weft0 was down"},
	{name: "the TUN gets another MTU", do: ofHost("ip link set weft0 mtu 1300"), says: "the MTU of weft0"},
	{name: "the TUN is deleted", do: ofHost("ip link del weft0"), says: "back at work"},
	{name: "the host's address goes and comes", do: func(c *chaos, h int) {
		c.shell(c.hosts[h], fmt.Sprintf("ip address del %s/24 dev p0 2>/dev/null || ip address del %s/32 dev p0", c.node(c.hosts[h]).Addr, c.node(c.hosts[h]).Addr))
	}, undo: func(c *chaos, h int) {
		c.shell(c.hosts[h], fmt.Sprintf("ip address replace %s/24 dev p0\n", c.node(c.hosts[h]).Addr))
		administer(c, h)
	}, lasts: 300 * time.Millisecond, dark: true},
	{name: "weft's programs are detached", do: detachPrograms(true, ingress, egress), says: "where it was missing"},
	{name: "a foreign program gets in front at egress", do: foreignProgram(egress, true), undo: detachPrograms(false, egress), lasts: 500 * time.Millisecond, says: "to the front at egress"},
	{name: "a foreign program gets in front at ingress", do: foreignProgram(ingress, true), undo: detachPrograms(false, ingress), lasts: 500 * time.Millisecond, says: "to the front at ingress"},
	{name: "a foreign program comes behind", do: foreignProgram(egress, false), undo: detachPrograms(false, egress), lasts: 300 * time.Millisecond},
	{name: "clsact is deleted", do: ofHost("tc qdisc del dev p0 clsact 2>/dev/null || true")},
	{name: "a right file and SIGHUP", do: func(c *chaos, h int) { c.hup(h, c.configs[h]+"flowlet_gap: 400us\n", "reloaded: ") }},
	{name: "a wrong file and SIGHUP", do: func(c *chaos, h int) { c.hup(h, "policy: fastest\n", "reload refused") },
		undo: func(c *chaos, h int) { c.children[h].write(c.configs[h]) }},
	{name: "the uplink is renamed", do: ofHost("ip link set p0 name up9"), undo: ofHost("ip link set up9 name p0"), lasts: 500 * time.Millisecond, says: "is now called up9"},
	{name: "half of the spines lose decapsulation", do: decapsulates(false, "c1.1", "c2.1"), undo: decapsulates(true, "c1.1", "c2.1"), lasts: 1500 * time.Millisecond},
	{name: "all spines lose decapsulation", do: decapsulates(false, "c1.1", "c1.2", "c2.1", "c2.2"), undo: decapsulates(true, "c1.1", "c1.2", "c2.1", "c2.2"), lasts: 2500 * time.Millisecond, says: "packets go plain", goesPlain: true},
	{name: "a spine takes only small packets, silently", do: takes(1400), undo: takes(1500), lasts: 2 * time.Second},
	{name: "the daemon is stopped for a while", do: func(c *chaos, h int) { c.children[h].cmd.Process.Signal(syscall.SIGSTOP) },
		undo: func(c *chaos, h int) { c.children[h].cmd.Process.Signal(syscall.SIGCONT) }, lasts: 3 * time.Second},
	{name: "the daemon is killed and started again", do: func(c *chaos, h int) { c.children[h].end(syscall.SIGKILL) },
		undo: func(c *chaos, h int) { c.children[h] = c.start(c.hosts[h], c.configs[h], c.environment...) }, lasts: time.Second},
}

// decapsulates takes the program from switches that decapsulates, or gives it back.
func decapsulates(gives bool, switches ...string) func(*chaos, int) {
	return func(c *chaos, _ int) {
		for _, name := range switches {
			id := c.node(name).ID
			plan, err := c.lab.Plan(id)
			if err != nil {
				c.Fatal(err)
			}
			c.do(name, func() error {
				if gives {
					_, err := fabric.Apply(plan)
					return err
				}
				for _, port := range plan.Ports {
					if err := detach(port.Name, func(name string) bool { return strings.HasPrefix(name, "weft_") }, ingress); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
}

// takes sets the MTU of a spine's ports. What is longer is lost where it comes in,
// and nobody says so.
func takes(mtu int) func(*chaos, int) {
	return func(c *chaos, _ int) {
		c.shell("c1.2", fmt.Sprintf("for p in /proc/sys/net/ipv4/conf/p*; do ip link set ${p##*/} mtu %d; done", mtu))
	}
}

// answers is how a daemon answers SIGHUP.
var answers = []string{"reloaded: ", "reload refused"}

// hup writes a file and has a daemon read it.
func (c *chaos) hup(host int, config, says string) {
	child := c.children[host]
	had := make(map[string]int)
	for _, a := range answers {
		had[a] = strings.Count(child.messages(), a)
	}
	child.write(config)
	child.cmd.Process.Signal(syscall.SIGHUP)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		for _, a := range answers {
			switch m := child.messages(); {
			case strings.Count(m, a) == had[a]:
			case a == says:
				return
			default:
				c.Fatalf("%s: the daemon was to say %q: %s", c.hosts[host], says, m[strings.LastIndex(m, a):])
			}
		}
		if time.Now().After(end) {
			child.cmd.Process.Signal(syscall.SIGQUIT) // which has it say where it hangs
			time.Sleep(time.Second)
			c.Fatalf("%s: a minute after SIGHUP the daemon has not said %q", c.hosts[host], says)
		}
	}
}

// transfer is a connection that sends all the time. Its bytes are compared as they
// arrive.
type transfer struct {
	name    string
	latest  atomic.Int64 // when bytes arrived, in nanoseconds since the test began
	longest atomic.Int64 // stall, in nanoseconds
	bytes   atomic.Int64
	err     atomic.Pointer[error]
	told    bool // what its sockets say while it stalls is in the log
	sockets [2]socketAt
}

// socketAt is one end of a transfer.
type socketAt struct {
	host string
	port string // where ss looks for it
}

// paced is how much a transfer sends at a time, and how often.
const (
	pacedBytes = 1500
	pacedEvery = 50 * time.Millisecond
)

func (c *chaos) transfer(from, to string, began time.Time, seed byte) {
	p := c.connect(from, to)
	t := &transfer{name: from + " to " + to}
	_, port, _ := net.SplitHostPort(p.a.LocalAddr().String())
	t.sockets = [2]socketAt{{from, "sport = :" + port}, {to, "dport = :" + port}}
	t.latest.Store(int64(time.Since(began)))
	c.transfers = append(c.transfers, t)
	fails := func(err error) {
		if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
			t.err.CompareAndSwap(nil, &err)
		}
	}
	go func() {
		src, buf := rand.NewChaCha8([32]byte{seed}), make([]byte, pacedBytes)
		for {
			src.Read(buf)
			if _, err := p.a.Write(buf); err != nil {
				fails(err)
				return
			}
			time.Sleep(pacedEvery)
		}
	}()
	go func() {
		src, got, want := rand.NewChaCha8([32]byte{seed}), make([]byte, 64<<10), make([]byte, 64<<10)
		for {
			n, err := p.b.Read(got)
			src.Read(want[:n])
			if !bytes.Equal(got[:n], want[:n]) {
				err = errors.New("other bytes than were sent")
			}
			if err != nil {
				fails(err)
				return
			}
			now := int64(time.Since(began))
			if stall := now - t.latest.Swap(now); stall > t.longest.Load() {
				t.longest.Store(stall)
			}
			t.bytes.Add(int64(n))
		}
	}()
}

// tellStalls logs what the kernels know of transfers that stall, until stop is closed:
// once for each stall, of the first twenty.
func (c *chaos) tellStalls(began time.Time, stop chan struct{}) {
	for n := 0; n < 20; {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		for _, t := range c.transfers {
			stall := time.Since(began) - time.Duration(t.latest.Load())
			if stall < chaosStall()*3/4 {
				t.told = false
				continue
			}
			if t.told {
				continue
			}
			t.told = true
			n++
			for _, s := range t.sockets {
				out, err := exec.Command("ip", "netns", "exec", c.lab.Namespace(c.node(s.host).ID), "ss", "-tinoH", s.port).CombinedOutput()
				c.Logf("%s: nothing for %v; at %s: %s %v", t.name, stall.Round(time.Millisecond), s.host, out, err)
			}
		}
	}
}

// has lists what weft has at a host: all of it must come back after an event. Routes
// of a smaller MTU stay for a while after a link that takes less, until longer probes
// come home again.
func (c *chaos) has(host int) string {
	text := c.shell(c.hosts[host], `ip rule | grep -E '^57(38|39|4[0-2]):' || true
		ip route show table 5740 | grep -vE 'mtu 1[0-3]|mtu 14[0-7]'; ip route show table 5741 | grep -vE 'mtu 1[0-3]|mtu 14[0-7]'
		[ $(sysctl -n net.ipv4.conf.p0.rp_filter) != 1 ] || echo strict filter
		for k in conf.weft0.rp_filter conf.weft0.forwarding conf.weft0.accept_local; do sysctl net.ipv4.$k 2>&1; done
		ip link show weft0 2>&1 | grep -oE 'weft0.*UP|mtu [0-9]+' || true`)
	c.do(c.hosts[host], func() error {
		index, err := indexOf("p0")
		if err != nil {
			return err
		}
		for _, at := range []ebpf.AttachType{ingress, egress} {
			q, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: at})
			if err != nil {
				return err
			}
			for i, p := range q.Programs {
				prog, err := ebpf.NewProgramFromID(p.ID)
				if err != nil {
					continue
				}
				if info, err := prog.Info(); err == nil && strings.HasPrefix(info.Name, "weft_") {
					text += fmt.Sprintf("program %s at %v, number %d\n", info.Name, at, i)
				}
				prog.Close()
			}
		}
		return nil
	})
	return text
}

// TestChaos has random things happen to two daemons under transfers. No transfer is lost or
// corrupted, and none stalls for long where there is a path. What belongs to weft is back
// soon, and the log says so. With WEFT_TESTS=long "soon" is one second and "long" is two.
// WEFT_CHAOS is the number of events, WEFT_CHAOS_TRANSFERS that of transfers,
// WEFT_CHAOS_SEED the seed.
func TestChaos(t *testing.T) {
	slowtest.Unraced(t)
	number := func(name string, normal int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return normal
	}
	events, transfers, seed := number("WEFT_CHAOS", len(chaosEvents)), number("WEFT_CHAOS_TRANSFERS", 10), number("WEFT_CHAOS_SEED", 1)
	c := &chaos{network: newNetwork(t, "k"), random: rand.New(rand.NewPCG(uint64(seed), 0)), hosts: []string{"h0.0.2", "h3.1.3"}}
	// Each host in a mode of its own: what programs send passes the TUN, or does not.
	c.configs = []string{"policy: drb\n", "policy: presto\n"}
	for h, name := range c.hosts {
		c.neighbours = append(c.neighbours, c.permanent(name))
		c.children = append(c.children, c.start(name, c.configs[h]))
	}
	time.Sleep(500 * time.Millisecond)
	for h := range c.hosts {
		c.Logf("%s", c.has(h))
		c.owned = append(c.owned, c.has(h))
	}
	began := time.Now()
	for i := range transfers {
		ends := [][2]string{{c.hosts[0], c.hosts[1]}, {c.hosts[1], c.hosts[0]}, {c.hosts[0], "h1.0.2"}, {"h2.0.2", c.hosts[1]}}[i%4]
		c.transfer(ends[0], ends[1], began, byte(i))
	}
	stop := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { c.tellStalls(began, stop) })
	defer telling.Wait()
	defer close(stop)
	order := c.random.Perm(len(chaosEvents))
	for i := range events {
		if i%len(order) == 0 && i > 0 {
			order = c.random.Perm(len(chaosEvents))
		}
		c.event(chaosEvents[order[i%len(order)]], c.random.IntN(len(c.hosts)), began, fmt.Sprintf("seed %d, event %d", seed, i))
	}
	for h := range c.hosts {
		c.children[h].end(syscall.SIGTERM)
	}
	c.check(began, "at the end", chaosStall())
}

// event has something happen, and wants all to be right again a second later.
func (c *chaos) event(e chaosEvent, host int, began time.Time, which string) {
	c.Helper()
	child := c.children[host]
	if e.goesPlain && c.plain(host) {
		e.says = ""
	}
	had := strings.Count(child.messages(), e.says)
	for _, t := range c.transfers {
		t.longest.Store(0)
	}
	e.do(c, host)
	time.Sleep(e.lasts)
	if e.undo != nil {
		e.undo(c, host)
	}
	done := time.Now()
	var has string
	for time.Since(done) < 10*time.Second {
		if has = c.has(host); has == c.owned[host] {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(done)
	if has != c.owned[host] {
		c.Errorf("%s: %s at %s: after %v weft has\n%s\nand had\n%s", which, e.name, c.hosts[host], took, has, c.owned[host])
	} else if took > chaosPatience() {
		c.Errorf("%s: %s at %s: all was right again only after %v", which, e.name, c.hosts[host], took)
	}
	for end := time.Now().Add(chaosPatience()); e.says != "" && strings.Count(child.messages(), e.says) == had && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if e.says != "" && strings.Count(child.messages(), e.says) == had {
		c.Errorf("%s: %s at %s: the log does not say %q", which, e.name, c.hosts[host], e.says)
	}
	time.Sleep(500 * time.Millisecond)
	allowed := chaosStall()
	if e.dark {
		allowed += 2 * e.lasts
	}
	worst := c.check(began, which+": "+e.name+" at "+c.hosts[host], allowed)
	c.Logf("%s: %s at %s: right after %v, longest stall %v", which, e.name, c.hosts[host], took.Round(time.Millisecond), worst.Round(time.Millisecond))
}

// plain reports whether packets to some rack go plain at a host.
func (c *chaos) plain(host int) bool {
	for name, value := range c.children[host].status() {
		if strings.HasPrefix(name, "racks.") && strings.HasSuffix(name, ".plain") && value == "true" {
			return true
		}
	}
	return false
}

// chaosPatience is how long it may take until all is right again, and chaosStall how
// long a transfer may stall where there is a path. Finding out takes a part of it.
func chaosPatience() time.Duration {
	if slowtest.Long() {
		return time.Second
	}
	return 8 * time.Second
}

func chaosStall() time.Duration {
	if slowtest.Long() {
		return 2 * time.Second
	}
	return 20 * time.Second
}

// check wants all transfers to go on, none to have stalled longer than allowed, and
// returns the longest stall.
func (c *chaos) check(began time.Time, which string, allowed time.Duration) (worst time.Duration) {
	c.Helper()
	for _, t := range c.transfers {
		if err := t.err.Load(); err != nil {
			c.Fatalf("%s: %s: %v", which, t.name, *err)
		}
		stall := max(time.Duration(t.longest.Load()), time.Since(began)-time.Duration(t.latest.Load()))
		worst = max(worst, stall)
	}
	if worst > allowed {
		c.Errorf("%s: a transfer stalled for %v", which, worst)
	}
	return worst
}
