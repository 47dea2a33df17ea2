package fabric

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weft/internal/balance"
	"weft/internal/elephant"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// balanceRun is the programs without a network. Test runs do not tell a packet's hash, so
// weft_balance writes it into the mark here.
type balanceRun struct {
	In       *ebpf.Program `ebpf:"weft_balance"`
	Out      *ebpf.Program `ebpf:"weft_queue"`
	Counters *ebpf.Map     `ebpf:"counters"`
	Routes   *ebpf.Map     `ebpf:"destinations"`
	Routes6  *ebpf.Map     `ebpf:"destinations6"`
	Sets     *ebpf.Map     `ebpf:"sets"`
	Queues   *ebpf.Map     `ebpf:"queues"`
	Engines  *ebpf.Map     `ebpf:"engines"`
	Pairs    *ebpf.Map     `ebpf:"pairs"`
	Flowlets *ebpf.Map     `ebpf:"flowlets"`
	Counted  *ebpf.Map     `ebpf:"elephant_flows"`
	Pins     *ebpf.Map     `ebpf:"elephant_pins"`

	rule balance.Rule
	seed uint64
	sets []balance.Set
	cpu  int
}

// cleared is the mark of a packet from which weft_balance takes the hash.
const cleared = 0xc1ea4ed

// hashedContext is the part of struct __sk_buff that a test run takes and gives.
type hashedContext struct {
	_    [8]byte
	Mark uint32
	_    [192 - 12]byte
}

// newBalanceRun has four sets: of four hops, of unequal weights, of sixty-four, and of three
// groups with unequal weights. 10.N.0.0/16 and fd00:0:N::/48 lead by set N, except for
// 10.N.255.0/24 and fd00:0:N:ff::/64, to which there is one way.
func newBalanceRun(t testing.TB, rule string) *balanceRun {
	t.Helper()
	return openBalanceRun(t, rule, hashToMark)
}

// hashToMark has a program write a packet's mark where it writes its hash, which a test run
// does not give.
func hashToMark(t testing.TB, ins asm.Instructions) {
	t.Helper()
	patched := make(map[asm.BuiltinFunc]int)
	for i := range ins {
		if !ins[i].IsBuiltinCall() {
			continue
		}
		f := asm.BuiltinFunc(ins[i].Constant)
		patched[f]++
		switch f {
		case asm.FnSetHash:
			ins[i] = asm.StoreMem(asm.R1, 8, asm.R2, asm.Word).WithMetadata(ins[i].Metadata)
		case asm.FnSetHashInvalid:
			ins[i] = asm.StoreImm(asm.R1, 8, cleared, asm.Word).WithMetadata(ins[i].Metadata)
		}
	}
	if patched[asm.FnSetHash] == 0 || patched[asm.FnSetHashInvalid] == 0 {
		t.Fatal("the program sets or takes no hash")
	}
}

func openBalanceRun(t testing.TB, rule string, change func(testing.TB, asm.Instructions), duty ...elephant.Duty) *balanceRun {
	t.Helper()
	kerneltest.NeedRoot(t)
	r := &balanceRun{seed: 77}
	var err error
	if r.rule, err = balance.Parse(rule); err != nil {
		t.Fatal(err)
	}
	spec, err := balanceSpec(r.rule, r.seed)
	if err != nil {
		t.Fatal(err)
	}
	if err := kernel.SetElephants(spec, slices.Max(append(duty, elephant.Nothing))); err != nil {
		t.Fatal(err)
	}
	change(t, spec.Programs[balanceProgWeftBalance].Instructions)
	if err := kernel.Load(spec, r, balanceNeeds); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.In.Close()
		r.Out.Close()
		for _, m := range []*ebpf.Map{r.Counters, r.Routes, r.Routes6, r.Sets, r.Queues, r.Engines, r.Pairs, r.Flowlets, r.Counted, r.Pins} {
			m.Close()
		}
	})
	routes := make(map[netip.Prefix][]balance.Hop)
	for n, weights := range [][]uint32{slices.Repeat([]uint32{1}, 4), {3, 1, 2}, slices.Repeat([]uint32{7}, 64), {2, 1, 1, 3, 1}} {
		four, six := [4]byte{10, byte(n)}, [16]byte{0xfd, 5: byte(n)}
		for _, prefix := range []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4(four), 16), netip.PrefixFrom(netip.AddrFrom16(six), 48)} {
			for i, w := range weights {
				hop := balance.Hop{Port: uint32(100*n + i + 1), Weight: w}
				if n == 3 {
					hop.Group = []uint32{0, 1, 1, 2, 0}[i]
				}
				routes[prefix] = append(routes[prefix], hop)
			}
		}
		four[2], six[7] = 255, 255
		routes[netip.PrefixFrom(netip.AddrFrom4(four), 24)], routes[netip.PrefixFrom(netip.AddrFrom16(six), 64)] = nil, nil
	}
	r.sets = make([]balance.Set, maxBalanceSets)
	table, changed, f := tablesOf(routes, r.sets)
	if f != (filled{destinations: 8, grouped: 2}) || len(table) != 16 || len(changed) != 4 {
		t.Fatalf("%+v, %v, %v", f, table, changed)
	}
	for _, i := range changed {
		r.put(t, r.Sets, uint32(i), &r.sets[i])
	}
	four, six := byFamily(table)
	for k, v := range four {
		r.put(t, r.Routes, k, v)
	}
	for k, v := range six {
		r.put(t, r.Routes6, k, v)
	}
	r.pin(t)
	return r
}

func (r *balanceRun) put(t testing.TB, m *ebpf.Map, k, v any) {
	t.Helper()
	if err := m.Put(k, v); err != nil {
		t.Fatal(err)
	}
}

// pin keeps the test on one processor, whose engine it then knows.
func (r *balanceRun) pin(t testing.TB) {
	t.Helper()
	runtime.LockOSThread()
	var was, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		t.Fatal(err)
	}
	for r.cpu = 0; !was.IsSet(r.cpu); r.cpu++ {
	}
	one.Set(r.cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.SchedSetaffinity(0, &was)
		runtime.UnlockOSThread()
	})
}

// engine is the processor's for a set, or for a group of it.
func (r *balanceRun) engine(t testing.TB, set uint32) balance.Engine {
	t.Helper()
	var all []balance.Engine
	if err := r.Engines.Lookup(set, &all); err != nil {
		t.Fatal(err)
	}
	return all[r.cpu]
}

// run passes an IP packet through weft_balance and returns its hash.
func (r *balanceRun) run(t testing.TB, packet []byte, mark uint32) (hash uint32) {
	t.Helper()
	return r.runFrame(t, ethernet(packet), mark)
}

func (r *balanceRun) runFrame(t testing.TB, frame []byte, mark uint32) (hash uint32) {
	t.Helper()
	out := hashedContext{}
	o := ebpf.RunOptions{Data: frame, Context: hashedContext{Mark: mark}, ContextOut: &out}
	verdict, err := r.In.Run(&o)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if int32(verdict) != kernel.TCUnspec {
		t.Fatalf("verdict %d, want %d", int32(verdict), kernel.TCUnspec)
	}
	return out.Mark
}

func ethernet(packet []byte) []byte {
	kind := uint16(0x0800)
	if packet[0]>>4 == 6 {
		kind = 0x86dd
	}
	return append(binary.BigEndian.AppendUint16(make([]byte, 12), kind), packet...)
}
