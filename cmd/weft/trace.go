package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/encap"
	"weft/internal/daemon"
	"weft/internal/hops"
	"weft/internal/hops/walker"
	"weft/topology"
)

// traceFlags are those of weft trace.
type traceFlags struct {
	socket   string
	topology string
	encap    string
	device   string
	count    int
	interval time.Duration
	timeout  time.Duration
	json     bool
	numeric  bool
}

// leastTraceInterval is what Linux's switches answer at most, with their usual settings.
const leastTraceInterval = time.Second

func newTraceCmd() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace DST",
		Short: "Walk every path to a host, switch by switch: loss and round trips of each hop",
		Long: `Trace sends packets by every path to a host and has each switch of each path answer: those before
the bouncing switch, since the TTL of the outer header is used up, that switch and those behind
it, since that of the packet inside is. The packets are in data's class. At a terminal the table
is drawn anew while it runs; elsewhere it is printed at the end.

Linux answers one host once a second, and a few times in a row (net.ipv4.icmp_ratelimit). So
each switch is asked once in --interval, and so is a target that does not run weft. Paths that
share one ask it in turn. With a smaller interval hops that answer no more look as if they
lost packets. What a hop loses and the hops behind it do not lose are answers, not packets.

The fabric, the address and the carrier are those of the weft host that runs here; without one,
give --topology. The target need not run weft. It needs CAP_NET_RAW.`,
		Example: "  weft trace 10.3.1.3\n" +
			"  weft trace h3.1.3 --count 3 --json\n" +
			"  weft trace -n 10.3.1.3 --count 0\n" +
			"  weft lab exec h0.0.2 -- weft trace --topology fat-tree:k=4 h3.1.3",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	flags.StringVar(&f.topology, "topology", "", "the fabric: a `spec` such as fat-tree:k=4, or a file (default that of the weft host)")
	flags.StringVar(&f.encap, "encap", "", "what carries the path: ipip or srv6 (default that of the weft host, or ipip)")
	flags.StringVar(&f.device, "interface", "", "the `device` that leads into the fabric (default that of the weft host, or that of the route)")
	flags.IntVar(&f.count, "count", 5, "packets to each hop of each path; 0: until interrupted")
	flags.DurationVar(&f.interval, "interval", leastTraceInterval, "between two packets that one switch is to answer, after the first few")
	flags.DurationVar(&f.timeout, "timeout", time.Second, "how long an answer is waited for")
	flags.BoolVar(&f.json, "json", false, "print JSON when it ends")
	flags.BoolVarP(&f.numeric, "numeric", "n", false, "print addresses, no names of switches")
	return cmd
}

func (f *traceFlags) run(ctx context.Context, w io.Writer, to string) error {
	switch {
	case f.count < 0:
		return usagef("--count %d: must be 0 or more", f.count)
	case f.interval < time.Millisecond:
		return usagef("--interval %v: must be 1ms or more", f.interval)
	case f.timeout < time.Millisecond || f.timeout > time.Minute:
		return usagef("--timeout %v: must be from 1ms to 1m", f.timeout)
	}
	from, err := f.place(ctx)
	if err != nil {
		return err
	}
	target, err := traceTarget(from.topology, to)
	if err != nil {
		return err
	}
	paths, err := hops.Plan(from.topology, from.carrier, from.self, target)
	if err != nil {
		return usagef("trace: %w", err)
	}
	walk, err := hops.New(hops.Config{Self: from.self, Target: target, Carrier: from.carrier, Paths: paths, Interval: f.interval, Timeout: f.timeout,
		Count: f.count, Random: randomToken}, time.Now())
	if err != nil {
		return err
	}
	show := func() {}
	_, columns, terminal := terminalSize(w)
	title := fmt.Sprintf("trace of %s (%v) from %v: %d paths by %s", from.topology.HostName(target), target, from.self, len(paths), from.carrier)
	if paths[0].Number < 0 {
		title = fmt.Sprintf("trace of %s (%v) from %v: in the same rack", from.topology.HostName(target), target, from.self)
	}
	if terminal && !f.json {
		screen := tableScreen{w: w, columns: columns}
		show = func() { screen.draw(title + "\n" + f.table(from.topology, walk)) }
	}
	if err := walker.Run(ctx, walk, from.uplinks, show); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	switch {
	case f.json:
		return printJSON(w, f.result(from, target, walk))
	case !terminal:
		_, err = fmt.Fprint(w, title+"\n"+f.table(from.topology, walk))
	}
	return err
}

func randomToken() uint64 {
	var b [8]byte
	rand.Read(b[:]) // does not fail
	return binary.BigEndian.Uint64(b[:]) | 1
}

// tracePlace is from where a trace goes.
type tracePlace struct {
	topology *topology.Topology
	carrier  encap.Carrier
	self     netip.Addr
	uplinks  []string
}

// place asks the weft host for what no flag says.
func (f *traceFlags) place(ctx context.Context) (p tracePlace, err error) {
	c := captureFlags{topology: f.topology}
	if p.topology, err = c.fabric(); err != nil {
		return p, err
	}
	if f.device != "" {
		p.uplinks = []string{f.device}
	}
	var s daemon.Status
	text, asked := askStatus(ctx, f.socket)
	if asked == nil && (json.Unmarshal(text, &s) != nil || isSwitchStatus(text)) {
		asked = fmt.Errorf("what answers is no weft host")
	}
	switch {
	case asked == nil && s.Encapsulation == "udp":
		return p, fmt.Errorf("trace: the weft host uses a tunnel, whose paths nobody knows: it needs ipip or srv6")
	case asked == nil:
		if p.topology == nil {
			if p.topology, err = topology.Parse(s.Topology); err != nil {
				return p, usagef("trace: the weft host's fabric is %q: give it with --topology", s.Topology)
			}
		}
		if f.encap == "" {
			f.encap = s.Encapsulation
		}
		p.self, _ = netip.ParseAddr(s.Address)
		if len(p.uplinks) == 0 {
			p.uplinks = captureDevices(&s)
		}
	case p.topology == nil:
		return p, usagef("trace: --topology is missing, and there is no weft host to ask: %w", asked)
	}
	if f.encap == "" {
		f.encap = encap.CarrierIPIP.String()
	}
	if p.carrier, err = encap.ParseCarrier(f.encap); err != nil {
		return p, usagef("--encap: %w", err)
	}
	if !p.self.IsValid() || len(p.uplinks) == 0 {
		self, device, err := ownPlace(p.topology)
		if err != nil {
			return p, fmt.Errorf("trace: %w", err)
		}
		if !p.self.IsValid() {
			p.self = self
		}
		if len(p.uplinks) == 0 {
			p.uplinks = []string{device}
		}
	}
	return p, nil
}

// traceTarget finds a host by name or address.
func traceTarget(t *topology.Topology, to string) (netip.Addr, error) {
	a, err := netip.ParseAddr(to)
	if err != nil {
		n, err := t.Lookup(to)
		if err != nil {
			return a, usagef("trace: %w", err)
		}
		a = n.Addr
	}
	a = a.Unmap()
	host, _, ok := t.HostAt(a)
	if !ok {
		return a, usagef("trace: %s is no host of %s", to, t)
	}
	if t.Computed() {
		return host, nil
	}
	return a, nil
}

// tableScreen draws a text over the one before.
type tableScreen struct {
	w       io.Writer
	columns int
	lines   int
}

func (s *tableScreen) draw(text string) {
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.lines)
	}
	s.lines = 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if r := []rune(line); len(r) > s.columns {
			line = string(r[:s.columns])
		}
		b.WriteString(line + "\x1b[K\n")
		s.lines++
	}
	io.WriteString(s.w, b.String())
}
