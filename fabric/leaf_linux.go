package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb leaf bpf/leaf.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/balance"
	"weft/internal/kernel"
	"weft/topology"
)

const leafNeeds = "eBPF: tc programs with locks and atomics as of Linux 5.12 are needed (kernel options BPF_SYSCALL, NET_CLS_BPF)"

// leafAge is how long a report of congestion has full weight (CONGA §3.3), or tau if that is
// longer.
const leafAge = 10 * time.Millisecond

// leafPort is struct port of bpf/leaf.c.
type leafPort struct {
	ToHosts uint32
	Room    uint32 // the longest packet that all ports to the fabric take
	Host    [2][4]byte
}

// knownLeaf is what a topology makes of a leaf's tables.
type knownLeaf struct {
	of     *topology.Topology
	tables leafTables
}

// leafTables are those of the present topology, which need time in a large fabric.
func (b *Balance) leafTables() (leafTables, error) {
	if b.known.of == b.leaf.Topology {
		return b.known.tables, nil
	}
	t, err := b.leaf.tables()
	if err == nil {
		b.known = knownLeaf{b.leaf.Topology, t}
	}
	return t, err
}

// loadLeaf puts the programs of conga and luopan into the kernel.
func (b *Balance) loadLeaf() error {
	if _, err := b.leafTables(); err != nil {
		return err
	}
	if _, err := b.leafPorts(); err != nil {
		return err
	}
	rates, slowest := b.leafRates()
	dres, tau := b.leafDREs(rates, slowest)
	spec, err := leafSpec(b.rule, rand.Uint64(), max(leafAge, tau))
	if err != nil {
		return err
	}
	if err := spec.Variables[leafVarLeastExpiry].Set(uint64(balance.LeastExpiry(slowest))); err != nil {
		return err
	}
	var o struct {
		In       *ebpf.Program `ebpf:"weft_balance"`
		Counters *ebpf.Map     `ebpf:"counters"`
		Ports    *ebpf.Map     `ebpf:"ports"`
		Prefixes *ebpf.Map     `ebpf:"prefixes"`
		Racks    *ebpf.Map     `ebpf:"racks"`
		Local    *ebpf.Map     `ebpf:"local"`
		To       *ebpf.Map     `ebpf:"to"`
		Sampled  *ebpf.Map     `ebpf:"sampled"`
		Lease    *ebpf.Map     `ebpf:"lease"`
	}
	if err := kernel.Load(spec, &o, leafNeeds); err != nil {
		return err
	}
	maps := map[string]*ebpf.Map{kernel.CountersMap: o.Counters, leafMapPorts: o.Ports, leafMapPrefixes: o.Prefixes,
		leafMapRacks: o.Racks, leafMapLocal: o.Local, leafMapTo: o.To, leafMapSampled: o.Sampled, leafMapLease: o.Lease}
	for uplink, d := range dres {
		err = errors.Join(err, o.Local.Put(uplink, d))
	}
	former, err2 := bindFormer(o.In)
	if err = errors.Join(err, err2); err2 == nil {
		maps[formerMap] = former
	}
	var err3 error
	b.in, err3 = kernel.OpenPortProgram(kernel.BalanceFilter, o.In, maps)
	return errors.Join(err, err3, b.loadOut())
}

// loadOut loads what takes hashes away at egress, as with the other rules.
func (b *Balance) loadOut() error {
	spec, err := balanceSpec(balance.Rule{Kind: balance.RB}, 0)
	if err != nil {
		return err
	}
	var o struct {
		Out *ebpf.Program `ebpf:"weft_queue"`
	}
	if err := kernel.Load(spec, &o, balanceNeeds); err != nil {
		return err
	}
	b.out, err = kernel.OpenPortProgram(kernel.QueueFilter, o.Out, nil)
	return err
}

// leafSpec is the program as a rule needs it.
func leafSpec(r balance.Rule, seed uint64, age time.Duration) (*ebpf.CollectionSpec, error) {
	spec, err := loadLeaf()
	if err != nil {
		return nil, err
	}
	one := []string{leafMapSampled}
	if r.Kind == balance.Luopan {
		one = []string{leafMapLocal, leafMapTo, leafMapFrom}
	} else {
		one = append(one, leafMapAnswering)
	}
	for _, name := range one {
		spec.Maps[name].MaxEntries = 1
	}
	return spec, errors.Join(
		spec.Variables[leafVarRule].Set(uint32(r.Kind)),
		spec.Variables[leafVarSamples].Set(uint32(r.Samples)),
		spec.Variables[leafVarGap].Set(uint64(r.Gap)),
		spec.Variables[leafVarFlowcell].Set(uint32(r.Flowcell)),
		spec.Variables[leafVarExpiry].Set(uint64(r.Expiry)),
		spec.Variables[leafVarAge].Set(uint64(age)),
		spec.Variables[leafVarSeed].Set(seed))
}

// leafRates are the known rates of uplinks, in bit/s, and the least of them. Uplinks beyond
// balance.LeafUplinks are added to the first ones, as they share tags.
func (b *Balance) leafRates() (rates map[uint32]float64, slowest float64) {
	rates = make(map[uint32]float64)
	for i, p := range b.ports {
		uplink, up := b.leaf.upPort(b.leaf.Links[i])
		at := slices.IndexFunc(b.links, func(l netlink.Link) bool { return l.Attrs().Name == p.Name })
		if !up || at < 0 {
			continue
		}
		as, err := asTheyAre(b.handle, b.links[at:at+1], b.ports[i:i+1])
		if err != nil || as[0].RateBits <= 0 {
			continue
		}
		rates[uint32(uplink%balance.LeafUplinks)] += as[0].RateBits
		if slowest == 0 || as[0].RateBits < slowest {
			slowest = as[0].RateBits
		}
	}
	return rates, slowest
}

// leafDREs are the estimates of the uplinks' load, and how long they remember: without
// tau in the rule as the slowest uplink needs it. An uplink whose rate nobody knows counts as
// idle.
func (b *Balance) leafDREs(rates map[uint32]float64, slowest float64) (dres map[uint32]balance.DRE, tau time.Duration) {
	if b.rule.Kind != balance.CONGA {
		return nil, 0
	}
	tau = cmp.Or(b.rule.Tau, DefaultTau(cmp.Or(slowest, 10e9)))
	dres = make(map[uint32]balance.DRE)
	for uplink, rate := range rates {
		dres[uplink] = balance.NewDRE(tau, rate)
	}
	return dres, tau
}

// leafPorts are the ports that have a device, by its index. It fails if the outer header does
// not fit behind them.
func (b *Balance) leafPorts() (map[uint32]leafPort, error) {
	all := make(map[uint32]leafPort)
	room, most := 0, 0
	var narrow string
	for i, p := range b.ports {
		at := slices.IndexFunc(b.links, func(l netlink.Link) bool { return l.Attrs().Name == p.Name })
		if at < 0 {
			continue
		}
		a := b.links[at].Attrs()
		_, up := b.leaf.upPort(b.leaf.Links[i])
		if !up {
			all[uint32(a.Index)] = leafPort{ToHosts: 1, Host: b.leaf.hostAt(b.leaf.Links[i])}
			most = max(most, a.MTU)
			continue
		}
		all[uint32(a.Index)] = leafPort{}
		if room == 0 || a.MTU < room {
			room, narrow = a.MTU, a.Name
		}
	}
	for index, p := range all {
		p.Room = uint32(room)
		all[index] = p
	}
	if room > 0 && room < most+leafOuter {
		return all, fmt.Errorf("MTU %d of port %s leaves no room for an outer header before hosts' packets of %d bytes: give the ports between switches an MTU of %d, or hosts one of %d",
			room, narrow, most, most+leafOuter, room-leafOuter)
	}
	return all, nil
}

// refreshLeaf brings the program's tables in step with topology and ports.
func (b *Balance) refreshLeaf() error {
	tables, err := b.leafTables()
	if err != nil {
		return err
	}
	b.filled, err = fillLeaf(b.in.Maps[leafMapPrefixes], b.in.Maps[leafMapRacks], &tables)
	if b.stale = err != nil; b.stale {
		return err
	}
	if err := b.renew(); err != nil {
		return err
	}
	ports, narrow := b.leafPorts()
	_, err = kernel.SyncMap(b.in.Maps[leafMapPorts], ports)
	return errors.Join(err, narrow)
}

// renew begins the lease of paths anew, unless they are old ones that could not be replaced.
func (b *Balance) renew() error {
	if !b.rule.AtLeaf() || b.leaf.Lease == 0 || b.stale {
		return nil
	}
	now, err := kernel.Monotonic()
	if err != nil {
		return err
	}
	return kernel.Explain(b.in.Maps[leafMapLease].Put(uint32(0), now+uint64(b.leaf.Lease)))
}

// fillLeaf writes racks before the prefixes that lead to them.
func fillLeaf(prefixes, racks *ebpf.Map, tables *leafTables) (f filled, err error) {
	for number, r := range tables.racks {
		if r.N > 1 {
			f.destinations++
		}
		var was balance.LeafRack
		if err := racks.Lookup(number, &was); err == nil && was == *r {
			continue
		}
		if err := racks.Put(number, r); err != nil {
			return f, fmt.Errorf("paths to rack %d: %w", number, err)
		}
	}
	_, err = kernel.SyncMap(prefixes, tables.prefixes)
	return f, err
}

// SetTopology has conga and luopan take the live paths of a topology of the same fabric. With
// other rules it does nothing.
func (b *Balance) SetTopology(t *topology.Topology) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.handle == nil:
		return errBalanceClosed
	case !b.rule.AtLeaf():
		return nil
	}
	if t == b.leaf.Topology {
		return nil
	}
	b.leaf.Topology = t
	if err := b.refreshLeaf(); err != nil {
		return fmt.Errorf("balance: %w", err)
	}
	return nil
}
