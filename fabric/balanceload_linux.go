package fabric

import (
	"errors"
	"math/rand/v2"

	"github.com/cilium/ebpf"

	"weft/internal/balance"
	"weft/internal/kernel"
)

const balanceNeeds = "eBPF: tc programs with locks and atomics as of Linux 5.12 are needed (kernel options BPF_SYSCALL, NET_CLS_BPF)"

// load puts the programs into the kernel.
func (b *Balance) load() error {
	if b.rule.AtLeaf() {
		return b.loadLeaf()
	}
	spec, err := balanceSpec(b.rule, rand.Uint64())
	if err == nil {
		err = kernel.SetElephants(spec, b.duty)
	}
	if err != nil {
		return err
	}
	var o struct {
		In           *ebpf.Program `ebpf:"weft_balance"`
		Out          *ebpf.Program `ebpf:"weft_queue"`
		Counters     *ebpf.Map     `ebpf:"counters"`
		Destinations *ebpf.Map     `ebpf:"destinations"`
		Six          *ebpf.Map     `ebpf:"destinations6"`
		Sets         *ebpf.Map     `ebpf:"sets"`
		Queues       *ebpf.Map     `ebpf:"queues"`
		Flows        *ebpf.Map     `ebpf:"elephant_flows"`
		Pins         *ebpf.Map     `ebpf:"elephant_pins"`
	}
	if err := kernel.Load(spec, &o, balanceNeeds); err != nil {
		return err
	}
	maps := map[string]*ebpf.Map{kernel.CountersMap: o.Counters, balanceMapDestinations: o.Destinations,
		balanceMapDestinations6: o.Six, balanceMapSets: o.Sets, balanceMapQueues: o.Queues,
		kernel.ElephantFlowsMap: o.Flows, kernel.ElephantPinsMap: o.Pins}
	former, err := bindFormer(o.In)
	if err == nil {
		maps[formerMap] = former
	}
	if b.rule.Kind == balance.DRILL && err == nil {
		if maps[groupsMap], err = bindGroups(o.In); err != nil {
			delete(maps, groupsMap)
		}
	}
	var errs [2]error
	b.in, errs[0] = kernel.OpenPortProgram(kernel.BalanceFilter, o.In, maps)
	b.out, errs[1] = kernel.OpenPortProgram(kernel.QueueFilter, o.Out, nil)
	return errors.Join(err, errs[0], errs[1])
}

// balanceSpec is the programs as a rule needs them.
func balanceSpec(r balance.Rule, seed uint64) (*ebpf.CollectionSpec, error) {
	spec, err := loadBalance()
	if err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name string
		of   balance.Kind
	}{{balanceMapPairs, balance.DRB}, {balanceMapFlowlets, balance.LetFlow}} {
		if r.Kind != m.of {
			spec.Maps[m.name].MaxEntries = 1
		}
	}
	return spec, errors.Join(
		spec.Variables[balanceVarRule].Set(uint32(r.Kind)),
		spec.Variables[balanceVarSamples].Set(uint32(r.Samples)),
		spec.Variables[balanceVarMemory].Set(uint32(r.Memory)),
		spec.Variables[balanceVarGap].Set(uint64(r.Gap)),
		spec.Variables[balanceVarSeed].Set(seed))
}
