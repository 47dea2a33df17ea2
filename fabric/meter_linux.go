package fabric

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package fabric -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb meter bpf/meter.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../internal/kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
)

const meterNeeds = "eBPF: tc programs with locks and ring buffers as of Linux 5.8 are needed (kernel options BPF_SYSCALL, NET_CLS_BPF)"

// Meter is what measures the queues of a switch's ports. Methods are safe for
// concurrent use.
type Meter struct {
	mu     sync.Mutex
	handle *netlink.Handle // nil: closed
	ports  []meteredPort
	states *ebpf.Map
	at     *kernel.PortProgram // whose map states is
	links  []netlink.Link      // of the ports, as Repair has found them

	extensions []ExtensionStatus
}

type meteredPort struct {
	name  string
	index int
}

var errMeterClosed = errors.New("meter: closed")

// AttachMeter meters ports of the network namespace of the calling thread, by a
// program at their tc egress that stays when the process ends. Attaching again
// replaces the program, misses no packet, and starts the counters anew. Ports
// that are not in the configuration keep their programs. A device that is made
// anew must be attached anew.
//
// It needs CAP_NET_ADMIN and CAP_BPF.
func AttachMeter(cfg MeterConfig) (*Meter, error) {
	m := &Meter{}
	if err := m.attach(cfg); err != nil {
		m.Close()
		return nil, fmt.Errorf("meter: %w", err)
	}
	return m, nil
}

func (m *Meter) attach(cfg MeterConfig) error {
	names := make([]string, len(cfg.Ports))
	for i, p := range cfg.Ports {
		names[i] = p.Name
	}
	links, err := m.open(names)
	if err != nil {
		return err
	}
	for _, link := range links {
		if kind := link.Attrs().EncapType; kind != "ether" {
			return fmt.Errorf("port %s: frames are of type %s; an Ethernet device is needed", link.Attrs().Name, kind)
		}
	}
	if cfg.Ports, err = asTheyAre(m.handle, links, cfg.Ports); err != nil {
		return err
	}
	if cfg, err = cfg.complete(); err != nil {
		return err
	}
	spec, err := loadMeter()
	if err != nil {
		return err
	}
	spec.Maps[meterMapMeters].MaxEntries = uint32(len(links))
	if !slices.ContainsFunc(cfg.Ports, func(p MeterPort) bool { return p.QCN != QCN{} }) {
		spec.Maps[meterMapNotices].MaxEntries = uint32(os.Getpagesize()) // the least there is
	}
	var objects struct {
		Prog       *ebpf.Program `ebpf:"weft_meter"`
		Meters     *ebpf.Map     `ebpf:"meters"`
		Extensions *ebpf.Map     `ebpf:"weft_extensions"`
		Notices    *ebpf.Map     `ebpf:"notices"`
	}
	if err := kernel.Load(spec, &objects, meterNeeds); err != nil {
		return err
	}
	m.states = objects.Meters
	if m.at, err = kernel.OpenPortProgram(kernel.MeterFilter, objects.Prog, map[string]*ebpf.Map{meterMapMeters: m.states, meterMapWeftExtensions: objects.Extensions, meterMapNotices: objects.Notices}); err != nil {
		return err
	}
	m.extensions = loadExtensions(cfg.Extensions, objects.Extensions)
	for i, p := range cfg.Ports {
		state := p.state()
		if err := m.states.Put(uint32(links[i].Attrs().Index), &state); err != nil {
			return fmt.Errorf("port %s: %w", p.Name, err)
		}
	}
	for i, link := range links {
		if err := kernel.MeterFilter.Attach(m.handle, link, objects.Prog); err != nil {
			for _, done := range links[:i] {
				err = errors.Join(err, kernel.MeterFilter.Detach(m.handle, done))
			}
			return fmt.Errorf("port %s: %w", link.Attrs().Name, err)
		}
	}
	return nil
}

// open finds the ports.
func (m *Meter) open(names []string) (links []netlink.Link, err error) {
	if m.handle, err = netlink.NewHandle(kernel.Families...); err != nil {
		return nil, kernel.Explain(err)
	}
	if links, err = kernel.Links(m.handle, names); err != nil {
		return nil, err
	}
	for i, link := range links {
		m.ports = append(m.ports, meteredPort{names[i], link.Attrs().Index})
	}
	return links, nil
}

// InheritMeter opens the meter of the named ports from the result of
// Meter.Descriptors. It needs no capability.
func InheritMeter(descriptors string, ports []string) (*Meter, error) {
	m := &Meter{}
	var err error
	if m.at, err = kernel.OpenDescriptors(kernel.MeterFilter, strings.Fields(descriptors)); err == nil && m.at != nil {
		m.states = m.at.Maps[meterMapMeters]
	}
	if err == nil && m.states == nil {
		err = errors.New("no descriptors were passed on")
	}
	if err == nil {
		_, err = m.open(ports)
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("meter: %w", err)
	}
	return m, nil
}

// portName returns the name of a port, "" if the meter has none of that index.
func (m *Meter) portName(index int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.ports {
		if p.index == index {
			return p.name
		}
	}
	return ""
}

// Descriptors returns new file descriptors, as text, for a program that this
// process executes. With them InheritMeter reads the meter without CAP_SYS_ADMIN,
// which finding it would take.
func (m *Meter) Descriptors() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == nil {
		return "", errMeterClosed
	}
	words, err := m.at.Descriptors()
	return strings.Join(words, " "), err
}

// Extensions says of each extension of the configuration whether it runs. Of an inherited
// meter it returns none.
func (m *Meter) Extensions() []ExtensionStatus { return slices.Clone(m.extensions) }

// Close lets go of the meter, which stays attached: see DetachMeter. Its extensions end if
// no other process has the meter.
func (m *Meter) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle != nil {
		m.handle.Close()
		m.handle = nil
	}
	if m.at == nil {
		return m.states.Close() // of nil, too
	}
	at := m.at
	m.at = nil
	return at.Close()
}

// DetachMeter removes the meter from ports of the network namespace of the calling thread,
// whoever attached it. It returns how many ports had one.
func DetachMeter(ports []string) (removed int, err error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return 0, kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Links(h, ports)
	if err != nil {
		return 0, fmt.Errorf("meter: %w", err)
	}
	for _, link := range links {
		id, err := kernel.MeterFilter.Program(h, link)
		if err == nil && id != 0 {
			err = kernel.MeterFilter.Detach(h, link)
		}
		if err != nil {
			return removed, fmt.Errorf("meter: %w", err)
		}
		if id != 0 {
			removed++
		}
	}
	return removed, nil
}

// Ports returns what the meter has measured, in the order of the configuration.
func (m *Meter) Ports() ([]PortMeter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == nil {
		return nil, errMeterClosed
	}
	all := make([]PortMeter, len(m.ports))
	at := make(map[int]int, len(m.ports))
	for i, p := range m.ports {
		var err error
		if all[i], err = readPortMeter(m.states, p.index); err != nil {
			return nil, fmt.Errorf("meter: port %s: %w", p.name, err)
		}
		all[i].Port = p.name
		at[p.index] = i
	}
	qdiscs, err := kernel.Dumped(func() ([]netlink.Qdisc, error) { return m.handle.QdiscList(nil) })
	if err != nil {
		return nil, fmt.Errorf("meter: queue counters: %w", err)
	}
	for _, q := range qdiscs {
		a := q.Attrs()
		if i, ours := at[a.LinkIndex]; ours && a.Parent == netlink.HANDLE_ROOT && a.Statistics != nil && a.Statistics.Queue != nil {
			all[i].Drops = uint64(a.Statistics.Queue.Drops)
		}
	}
	return all, nil
}

func readPortMeter(states *ebpf.Map, index int) (PortMeter, error) {
	var s meterState
	if err := states.LookupWithFlags(uint32(index), &s, ebpf.LookupLock); err != nil {
		return PortMeter{}, err
	}
	now, err := kernel.Monotonic()
	return s.at(now), err
}

// ReadMeters returns what the meters of ports have measured, whoever attached
// them, by the ports' interface indexes. Drops are left out.
func ReadMeters(h *netlink.Handle, ports []netlink.Link) (map[int]PortMeter, error) {
	all := make(map[int]PortMeter)
	maps := make(map[ebpf.ProgramID]*ebpf.Map)
	defer func() {
		for _, m := range maps {
			m.Close()
		}
	}()
	for _, port := range ports {
		id, err := kernel.MeterFilter.Program(h, port)
		if err != nil {
			return nil, err
		}
		if id == 0 {
			continue
		}
		if maps[id] == nil {
			if maps[id], err = kernel.MapOf(id, meterMapMeters); err != nil {
				return nil, err
			}
		}
		a := port.Attrs()
		if all[a.Index], err = readPortMeter(maps[id], a.Index); err != nil {
			return nil, fmt.Errorf("meter of %s: %w", a.Name, err)
		}
	}
	return all, nil
}
