package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb pace bpf/pace.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"weft/internal/kernel"
	"weft/internal/qcn"
)

const (
	paceNeeds = "eBPF: iterators over TCP sockets that set options as of Linux 5.17 are needed (kernel options BPF_SYSCALL, DEBUG_INFO_BTF)"

	// MaxPaced bounds the connections of a Pacer.
	MaxPaced = 2048

	// MaxPaceRate is the highest rate that a Pacer gives, in bytes a second.
	MaxPaceRate = math.MaxUint32 - 1<<10

	// minPaceRate is the lowest: the kernel's rates have 1 KB of resolution here.
	minPaceRate = 1 << 10
)

// Pacer gives connections of the kernel's TCP over IPv4 a highest rate, whoever's they are,
// and says how they are. TCP then sends by a timer of its own; no queueing discipline such as
// fq is needed. A rate that the program has set itself (SO_MAX_PACING_RATE), before or
// meanwhile, is never exceeded, and comes back afterwards.
//
// A connection that was limited once goes on being paced by TCP's timer until it ends, at a rate
// that is not limited (120 to 200 % of what its window allows): the kernel does not take
// that back. It costs processor time, as super-segments are smaller.
//
// Each Walk goes over all TCP connections of the network namespace, which takes milliseconds
// where the kernel's table is large. A Pacer is not safe for concurrent use.
type Pacer struct {
	home    *kernel.Home // nil: it is not open
	iter    *link.Iter
	paced   *ebpf.Map
	globals *ebpf.Map
	walk    uint64 // the number of the latest
	flows   map[qcn.Flow]bool
}

// pacedFlow is struct pace of bpf/pace.c.
type pacedFlow struct {
	Rate, End uint32 // bytes a second, 0: it is only looked at; 1: it gets its own rate back
	Una, Next uint32
	Own, Last uint64 // what its program wants, and what it was left with in the last walk
	Sent      uint64
	Rated     uint64 // qcn.Connection.Rate
	Walk      uint64 // in which it was seen last; 0: never
}

// OpenPacer returns a Pacer of the calling thread's network namespace, made of what TakePacer
// has taken, or else anew. Connections that an earlier run has left limited are limited no
// more, so there must be no other Pacer in the namespace.
func OpenPacer() (*Pacer, error) {
	p, err := inherited.pacer()
	if err == nil && p == nil {
		p, err = loadPacer()
	}
	if err != nil {
		return nil, err
	}
	home, err := kernel.OpenHome()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.home = &home
	if err := p.sweep(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func loadPacer() (*Pacer, error) {
	spec, err := loadPace()
	if err != nil {
		return nil, err
	}
	spec.Maps[paceMapPaced].MaxEntries = MaxPaced
	var objects struct {
		Prog    *ebpf.Program `ebpf:"weft_pace"`
		Paced   *ebpf.Map     `ebpf:"paced"`
		Globals *ebpf.Map     `ebpf:".bss"`
	}
	if err := kernel.Load(spec, &objects, paceNeeds); err != nil {
		return nil, fmt.Errorf("pacer: %w", err)
	}
	defer objects.Prog.Close()
	p := &Pacer{paced: objects.Paced, globals: objects.Globals, flows: make(map[qcn.Flow]bool)}
	if p.iter, err = link.AttachIter(link.IterOptions{Program: objects.Prog}); err != nil {
		return nil, errors.Join(kernel.Explain(fmt.Errorf("pacer: %w", err)), p.close())
	}
	return p, nil
}

// flowKey is struct flow of bpf/pace.c.
func flowKey(k qcn.Flow) (b [12]byte) {
	local, remote := k.Local.Addr().As4(), k.Remote.Addr().As4()
	copy(b[:], local[:])
	copy(b[4:], remote[:])
	binary.BigEndian.PutUint16(b[8:], k.Local.Port())
	binary.BigEndian.PutUint16(b[10:], k.Remote.Port())
	return b
}

// Watch has a connection seen by the next Walk, without a rate if it has none. It fails if
// there are MaxPaced of them.
func (p *Pacer) Watch(k qcn.Flow) error {
	if p.flows[k] {
		return nil
	}
	return p.change(k, func(*pacedFlow) {})
}

// Limit gives a connection a highest rate in bytes a second, from the next Walk on.
func (p *Pacer) Limit(k qcn.Flow, rate float64) error {
	return p.change(k, func(f *pacedFlow) { f.Rate = uint32(min(max(rate, minPaceRate), MaxPaceRate)) })
}

func (p *Pacer) change(k qcn.Flow, do func(*pacedFlow)) error {
	key := flowKey(k)
	var f pacedFlow
	if p.flows[k] {
		if err := p.paced.Lookup(key[:], &f); err != nil {
			return fmt.Errorf("pacer: %w", err)
		}
	}
	do(&f)
	if err := p.paced.Put(key[:], &f); err != nil {
		return fmt.Errorf("pacer: %w", err)
	}
	p.flows[k] = true
	return nil
}

// Walk goes over all connections.
func (p *Pacer) Walk() error {
	p.walk++
	return p.read(0)
}

// sweep has what an earlier run has left go.
func (p *Pacer) sweep() error { return p.read(1) }

// read runs the program over all connections.
func (p *Pacer) read(sweep uint32) error {
	var globals [16]byte // reading of bpf/pace.c
	binary.NativeEndian.PutUint64(globals[:], p.walk)
	binary.NativeEndian.PutUint32(globals[8:], sweep)
	if err := p.globals.Put(uint32(0), globals[:p.globals.ValueSize()]); err != nil {
		return fmt.Errorf("pacer: %w", err)
	}
	var r io.ReadCloser
	err := p.home.Do(func() (err error) { r, err = p.iter.Open(); return err })
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return kernel.Explain(fmt.Errorf("pacer: %w", err))
	}
	return nil
}

// Look returns how a connection was at the latest Walk; false if there was none.
func (p *Pacer) Look(k qcn.Flow) (qcn.Connection, bool) {
	key := flowKey(k)
	var f pacedFlow
	if p.walk == 0 || !p.flows[k] || p.paced.Lookup(key[:], &f) != nil || f.Walk != p.walk {
		return qcn.Connection{}, false
	}
	return qcn.Connection{Una: f.Una, Next: f.Next, Sent: f.Sent, Rate: float64(f.Rated)}, true
}

// Keep gives the connections that keep refuses their own rates back, and forgets them. It
// walks if there are any.
func (p *Pacer) Keep(keep func(qcn.Flow) bool) error {
	var ended []qcn.Flow
	limited := false
	for k := range p.flows {
		if keep(k) {
			continue
		}
		ended = append(ended, k)
		err := p.change(k, func(f *pacedFlow) {
			limited = limited || f.Rate != 0 && f.Walk == p.walk
			f.End = 1
		})
		if err != nil {
			return err
		}
	}
	if limited {
		if err := p.Walk(); err != nil {
			return err
		}
	}
	for _, k := range ended {
		key := flowKey(k)
		if err := p.paced.Delete(key[:]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("pacer: %w", err)
		}
		delete(p.flows, k)
	}
	return nil
}

// Close gives all connections their own rates back.
func (p *Pacer) Close() error {
	return errors.Join(p.Keep(func(qcn.Flow) bool { return false }), p.close())
}

func (p *Pacer) close() (err error) {
	if p.iter != nil {
		err = p.iter.Close()
	}
	if p.home != nil {
		p.home.Close()
	}
	return errors.Join(err, p.paced.Close(), p.globals.Close()) // of nil, too
}
