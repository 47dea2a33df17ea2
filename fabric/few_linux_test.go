package fabric

import (
	"errors"
	"io"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

type closing func() error

func (c closing) Close() error { return c() }

// What lacks a descriptor says so, and not that the kernel is too old.
func TestFewDescriptors_errorsNameTheLimit(t *testing.T) {
	top := kerneltest.Topology(t, "fat-tree:k=4")
	labels := labelPlan(t, top, kerneltest.Node(t, top, "a2.2").ID, Options{SRv6: true})
	labels.Gate = nil
	for _, c := range []struct {
		name string
		open func() (io.Closer, error)
	}{
		{"meter", func() (io.Closer, error) {
			m, err := AttachMeter(MeterConfig{Ports: []MeterPort{{Name: "p0", RateBits: 20e6}}})
			return closing(func() error { return m.Close() }), err
		}},
		// Apply does without these where the kernel is too old, and notes it.
		{"edge", func() (io.Closer, error) { return optional((*Report).attachEdge, kernel.EdgeFilter, labels) }},
		{"classes", func() (io.Closer, error) { return optional((*Report).attachClasses, kernel.ClassFilter, labels) }},
	} {
		t.Run(c.name, func(t *testing.T) { kerneltest.FewDescriptors(t, c.open) })
	}
}

// optional attaches a program to p0, as Apply does. That it did without is an error,
// too.
func optional(attach func(*Report, *netlink.Handle, []netlink.Link, NodePlan) (int, error), filter kernel.Filter, p NodePlan) (io.Closer, error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return nil, kernel.Explain(err)
	}
	ports, err := kernel.Links(h, []string{"p0"})
	if err != nil {
		h.Close()
		return nil, err
	}
	var r Report
	if _, err = attach(&r, h, ports, p); err == nil && len(r.Notes) > 0 {
		err = errors.New(r.Notes[0])
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return closing(func() error {
		defer h.Close()
		_, err := filter.DetachAll(h, ports)
		return err
	}), nil
}
