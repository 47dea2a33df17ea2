package fabric

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/topology"
)

// LeafPaths keeps the paths that conga and luopan take at some ports, whoever has attached
// them. Without conga or luopan it does nothing. Methods are safe for concurrent use, and must
// be called in the network namespace in which it was opened.
type LeafPaths struct {
	mu     sync.Mutex
	h      *netlink.Handle // nil: closed
	ports  []string
	leaf   LeafConfig
	tables leafTables // of leaf.Topology
}

var errLeafPathsClosed = errors.New("balance: the paths are closed")

// OpenLeafPaths binds to the calling thread's network namespace. Links of the configuration
// are not used. It writes nothing: see Repair and SetTopology.
func OpenLeafPaths(ports []string, l LeafConfig) (*LeafPaths, error) {
	tables, err := l.tables()
	if err != nil {
		return nil, fmt.Errorf("balance: %w", err)
	}
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return nil, kernel.Explain(err)
	}
	return &LeafPaths{h: h, ports: slices.Clone(ports), leaf: l, tables: tables}, nil
}

// SetTopology has packets take the live paths of another topology of the same fabric.
func (p *LeafPaths) SetTopology(t *topology.Topology) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.h == nil {
		return errLeafPathsClosed
	}
	if t == p.leaf.Topology {
		return nil
	}
	l := p.leaf
	l.Topology = t
	tables, err := l.tables()
	if err != nil {
		return fmt.Errorf("balance: %w", err)
	}
	p.leaf, p.tables = l, tables
	return p.refresh()
}

// Repair writes the paths into a program that was attached since, or that others have
// changed. It never has anything to tell.
func (p *LeafPaths) Repair() ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.h == nil {
		return nil, errLeafPathsClosed
	}
	return nil, p.refresh()
}

// RepairSettings does nothing: the programs are others'.
func (p *LeafPaths) RepairSettings() ([]string, error) { return nil, nil }

// Close lets go of the namespace. The paths stay as they are.
func (p *LeafPaths) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.h != nil {
		p.h.Close()
		p.h = nil
	}
}

func (p *LeafPaths) refresh() error {
	if err := p.write(); err != nil {
		return fmt.Errorf("balance: %w", err)
	}
	return nil
}

func (p *LeafPaths) write() error {
	links, err := kernel.Links(p.h, p.ports)
	if err != nil {
		return err
	}
	at, err := kernel.AttachedProgram(p.h, links, kernel.BalanceFilter, leafMapPrefixes, leafMapRacks)
	if errors.Is(err, kernel.ErrNoMap) {
		return nil // of another rule
	}
	if err != nil || at == nil {
		return err
	}
	defer at.Close()
	_, err = fillLeaf(at.Maps[leafMapPrefixes], at.Maps[leafMapRacks], &p.tables)
	return err
}

// RefreshLeaf has conga and luopan at ports of the calling thread's network namespace take
// the live paths of a topology, whoever has attached them, as LeafPaths does.
func RefreshLeaf(ports []string, l LeafConfig) error {
	p, err := OpenLeafPaths(ports, l)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.refresh()
}
