package throughput

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"

	"weft/topology"
)

// tailscale is the kernel's TCP through tailscaled at both ends, as users run it.
var tailscale = way{
	supports: func(ctx context.Context, b *bench) error {
		if err := needTUN(ctx, b); err != nil {
			return err
		}
		return b.buildTailscale(ctx)
	},
	around: aroundTailscale,
	helper: startTailscale,
	open:   func(s site) (*host, error) { return kernelHost(tailnetAddr(s.topology, s.self), false), nil },
}

// buildTailscale compiles tailscaled and the program that runs it, unless that was done already.
func (b *bench) buildTailscale(ctx context.Context) (err error) {
	if b.tailscaled != "" {
		return nil
	}
	const usual = "bench/tailscale"
	b.note("tailscale: compiling tailscaled, which takes minutes the first time")
	if b.tailnetHost, err = b.compile(ctx, b.options.Tailscale, ".", usual); err != nil {
		return err
	}
	b.tailscaled, err = b.compile(ctx, b.options.Tailscale, "tailscale.com/cmd/tailscaled", usual)
	return err
}

// tailnetAddr is a host's address in the tailnet. Its control server gives addresses to hosts as
// they come; the receiver is the first.
func tailnetAddr(t *topology.Topology, id topology.NodeID) netip.Addr {
	last := byte(2)
	if t.Node(id).Name == toName {
		last = 1
	}
	return netip.AddrFrom4([4]byte{100, 64, 0, last})
}

const (
	controlPort = 8641 // of the control server, at the receiver's host
	// Two daemons find each other within the first of these, and clean up within the second, on
	// a busy machine, too.
	tailnetStart, tailnetExit = time.Minute, 20 * time.Second
)

func startTailscale(ctx context.Context, b *bench, c Case, s site) (*process, error) {
	dir, err := os.MkdirTemp(b.scratch, s.topology.Node(s.self).Name+".tailscale-*")
	if err != nil {
		return nil, err
	}
	control := netip.AddrPortFrom(s.topology.Node(b.to).Addr, controlPort).String()
	argv := []string{b.tailnetHost, "-tailscaled", b.tailscaled, "-dir", dir, "-control", control,
		"-address", tailnetAddr(s.topology, s.self).String(), "-peer", tailnetAddr(s.topology, s.peer).String()}
	if s.self == b.to {
		argv = append(argv, "-serve", control)
	}
	if file := b.profile(c, job{Self: s.self, Carry: true}); file != "" {
		if file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		argv = append(argv, "-profile", file, "-seconds", strconv.Itoa(int(math.Ceil(b.options.Duration.Seconds()))))
	}
	p, err := b.start(s.self, argv)
	if err != nil {
		return nil, err
	}
	p.exitLimit = tailnetExit
	if _, err := p.answerWithin(ctx, tailnetStart); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// aroundTailscale has both hosts forward nothing, and makes sure that no daemon has left its rules
// of routing behind, by which others' packets would go.
func aroundTailscale(b *bench) (undo func() error, err error) {
	before, err := b.countRules()
	if err != nil {
		return nil, err
	}
	forward, err := forwardNothing(b)
	if err != nil {
		return nil, err
	}
	return func() error {
		after, err := b.countRules()
		if err == nil && after != before {
			err = fmt.Errorf("%d rules of routing, %d before: a daemon has not cleaned up, and what follows may be wrong", after, before)
		}
		return errors.Join(err, forward())
	}, nil
}

// countRules counts the rules of routing (ip rule) of both hosts.
func (b *bench) countRules() (n int, err error) {
	for _, id := range []topology.NodeID{b.from, b.to} {
		err := b.lab.Do(id, func() error {
			rules, err := netlink.RuleList(netlink.FAMILY_ALL)
			n += len(rules)
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("rules of routing of %s: %w", b.topology.Node(id).Name, err)
		}
	}
	return n, nil
}
