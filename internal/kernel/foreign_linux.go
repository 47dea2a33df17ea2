package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// The values of ForeignProgram.By.
const (
	byTCX    = "TCX"
	byClsact = "clsact"
)

// hook is where the filter is, for people.
func (f Filter) hook() string {
	if f.parent == netlink.HANDLE_MIN_INGRESS {
		return "ingress"
	}
	return "egress"
}

// who names a program.
func (p ForeignProgram) who() string {
	if p.Name == "" {
		return fmt.Sprintf("the %s program %d", p.By, p.ID)
	}
	return fmt.Sprintf("the %s program %d (%s)", p.By, p.ID, p.Name)
}

// Foreign lists other owners' programs at the hook, in the order in which they run. While
// weft's is not there, all of them are in front.
func (a *Attachment) Foreign(h *netlink.Handle) (all []ForeignProgram, err error) {
	var chain chain
	if chain, err = a.place.chain(a.Link); err != nil && !errors.Is(err, errNoTCX) {
		return nil, err
	}
	at := slices.Index(chain.Programs, a.ID)
	for i, id := range chain.Programs {
		if _, wefts := placeOf(id); wefts {
			continue
		}
		all = append(all, ForeignProgram{Hook: a.place.hook(), By: byTCX, ID: uint32(id), Name: calledBy(id), Front: at < 0 || i < at})
	}
	filters, err := clsactFilters(h, a.Link, a.place.parent)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(filters, func(a, b netlink.Filter) int {
		return int(a.Attrs().Priority) - int(b.Attrs().Priority)
	})
	own := slices.IndexFunc(filters, func(f netlink.Filter) bool {
		bpf, ok := f.(*netlink.BpfFilter)
		return ok && ebpf.ProgramID(bpf.Id) == a.ID
	})
	for i, filter := range filters {
		p := ForeignProgram{Hook: a.place.hook(), By: byClsact, Kind: filter.Type(), Front: at < 0 && (own < 0 || i < own)}
		if bpf, ok := filter.(*netlink.BpfFilter); ok {
			p.ID, p.Name = uint32(bpf.Id), bpf.Name
		}
		if !isWefts(p.Name) {
			all = append(all, p)
		}
	}
	return all, nil
}
