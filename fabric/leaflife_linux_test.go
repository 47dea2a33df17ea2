package fabric

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// leafPorts makes a namespace with the ports of e0.0 of a fat-tree, p0 and p1 to hosts.
func leafPorts(t *testing.T) (ns string, cfg BalanceConfig) {
	t.Helper()
	ns = kerneltest.Namespace(t, "leaf")
	script := "set -e; ip link set lo up; sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=3\n"
	cfg = BalanceConfig{Leaf: leafOf(t, "fat-tree:k=4", "e0.0")}
	for i, p := range cfg.Leaf.Topology.Ports(cfg.Leaf.Self) {
		script += fmt.Sprintf("ip link add p%d type veth peer name q%d; ip link set p%d up; ip link set q%d up\n", i, i, i, i)
		cfg.Ports = append(cfg.Ports, MeterPort{Name: fmt.Sprintf("p%d", i), RateBits: 20e6})
		cfg.Leaf.Links = append(cfg.Leaf.Links, p.Link)
	}
	kerneltest.Shell(t, ns, script)
	return ns, cfg
}

// A leaf is not balanced where outer headers do not fit, and a sentence says what to do. It
// needs no capabilities but two. What is attached is handed on, follows the topology, and
// leaves nothing behind.
func TestLeaf_life(t *testing.T) {
	for _, rule := range []string{"conga", "luopan"} {
		t.Run(rule, func(t *testing.T) {
			ns, cfg := leafPorts(t)
			cfg.Rule = rule
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			attach := func(f func(*Balance) error) error {
				return kernel.InNamespace(ns, func() error {
					return kerneltest.WithCapabilities(func() error {
						b, err := AttachBalance(cfg)
						if err != nil {
							return err
						}
						return f(b)
					}, unix.CAP_NET_ADMIN, unix.CAP_BPF)
				})
			}
			err := attach(func(b *Balance) error { return b.Detach() })
			if err == nil || !strings.Contains(err.Error(), "give the ports between switches an MTU of 1520, or hosts one of 1480") {
				t.Fatalf("with an MTU of 1500 everywhere: %v", err)
			}
			kerneltest.Shell(t, ns, "ip link set p2 mtu 1520; ip link set p3 mtu 1520")
			err = attach(func(b *Balance) error {
				s, err := b.Stats()
				if err != nil || s.Destinations != 7 || s.Leaf == nil || s.Leaf.Racks != nil {
					t.Errorf("%+v, %v", s, err)
				}
				mustPolicy(t, "1")
				if mended, err := b.Repair(); err != nil || len(mended) != 0 {
					t.Errorf("mended %q, %v", mended, err)
				}
				up := cfg.Leaf.Topology.Ports(cfg.Leaf.Self)
				if err := b.SetTopology(cfg.Leaf.Topology.Without(up[2].Link)); err != nil {
					return err
				}
				if s, err := b.Stats(); err != nil || s.Destinations != 6 { // in the pod one path is left
					t.Errorf("%+v, %v", s, err)
				}
				return b.Detach()
			})
			if err != nil {
				t.Error(err)
			}
			err = kernel.InNamespace(ns, func() error {
				b, err := AttachBalance(cfg)
				if err != nil {
					return err
				}
				words, err := b.Descriptors()
				if err != nil {
					return err
				}
				heir, err := InheritBalance(words, cfg)
				if err != nil {
					return err
				}
				b.Close()
				kerneltest.Shell(t, ns, "ip link set p3 mtu 1500")
				if _, err := heir.Repair(); err == nil || !strings.Contains(err.Error(), "MTU 1500 of port p3") {
					t.Errorf("with a narrow port: %v", err)
				}
				return heir.Detach()
			})
			if err != nil {
				t.Error(err)
			}
			err = kernel.InNamespace(ns, func() error {
				mustPolicy(t, "3")
				if n, err := DetachBalance([]string{"p0", "p1", "p2", "p3"}); n != 0 || err != nil {
					t.Errorf("%d ports are left, %v", n, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
