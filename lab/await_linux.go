package lab

import (
	"context"
	"time"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/topology"
)

// linkLimit is more than the kernel takes on a busy machine to find that a link is up.
const linkLimit = 5 * time.Second

// awaitLinks waits until the kernel has found that the links are up, for linkLimit at most.
// This may be up to a second after they were set up, and until then the kernel loses what
// is sent without a word.
func (l *Lab) awaitLinks(ctx context.Context) {
	failed := l.failedLinks()
	end := time.Now().Add(linkLimit)
	for n := range l.Config.nodes() {
		for !l.linked(n.ID, failed) && time.Now().Before(end) && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// linked reports whether all links of a node are up but those that were made to fail. What
// cannot be asked is not waited for.
func (l *Lab) linked(node topology.NodeID, failed map[topology.LinkID]FailureMode) bool {
	all := true
	l.Do(node, func() error {
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		var names []string
		for _, port := range l.Config.ports(node) {
			names = append(names, l.Config.portName(node, port.Index))
		}
		links, err := kernel.Links(h, names)
		if err != nil {
			return err
		}
		for i, port := range l.Config.ports(node) {
			all = all && (links[i].Attrs().OperState == netlink.OperUp || failed[port.Link] != "")
		}
		return nil
	})
	return all
}
