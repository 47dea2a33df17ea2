package fabric

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/elephant"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// The verifier takes the programs from who has no CAP_PERFMON, of whom it asks more.
func TestAttachBalance_leastCapabilities(t *testing.T) {
	fourWays(t, func() error {
		return kerneltest.WithCapabilities(func() error {
			for _, rule := range []string{"rb", "rrb", "drb", "letflow", "drill:d=4,m=2", "elephants:drill:d=4,m=2", "elephants:ecmp"} {
				rule, pins := strings.CutPrefix(rule, "elephants:")
				cfg := balanceOf(rule)
				if pins {
					cfg.Elephants = elephant.PinAndCount
				}
				b, err := AttachBalance(cfg)
				if err != nil {
					return fmt.Errorf("%s: %w", rule, err)
				}
				_, err = b.Repair()
				if pins {
					_, err2 := b.Flows(nil)
					_, err3 := b.Elephants()
					flow := elephant.Flow{Src: netip.MustParseAddrPort("10.7.0.1:1"), Dst: netip.MustParseAddrPort("10.9.0.1:2"), Protocol: elephant.TCP}
					err = errors.Join(err, err2, err3, b.SetPins([]PortPin{{flow, "p1", 1}}), b.SetPins(nil))
				}
				if err := errors.Join(err, b.Detach()); err != nil {
					return fmt.Errorf("%s: %w", rule, err)
				}
			}
			return nil
		}, unix.CAP_NET_ADMIN, unix.CAP_BPF)
	})
}

func TestOpenClassifier_leastCapabilities(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	ns := portedNamespace(t, p.Node, p)
	applyNamed(t, ns, p)
	err := kernel.InNamespace(ns, func() error {
		return kerneltest.WithCapabilities(func() error {
			c, err := OpenClassifier(p, "classifier")
			if err != nil {
				return err
			}
			_, err = c.Repair()
			return errors.Join(err, c.Step(0), c.Detach())
		}, unix.CAP_NET_ADMIN, unix.CAP_BPF)
	})
	if err != nil {
		t.Fatal(err)
	}
}
