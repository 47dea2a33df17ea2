package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb steer bpf/steer.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"

	"weft/internal/kernel"
)

// SteerPatience is how long a reader may be silent before the kernel gets its
// packets, those that come in (Steer) and those that go out (DetourConfig.Patience).
// TCP sends again after 0.2 s and, in vain, after 0.6: by then the kernel has them. A
// reader beats every 50 ms.
const SteerPatience = 300 * time.Millisecond

// SteerConfig says what a reader of packets takes from the kernel.
type SteerConfig struct {
	Uplink string // an Ethernet device
	Rules  []SteerRule
}

// SteerStats count the packets to which rules apply, super-segments as their
// segments, since the program was attached.
type SteerStats struct {
	Seen       uint64 `json:"seen"`        // whatever came in, of all protocols; super-segments as one
	Taken      uint64 `json:"taken"`       // kept from the kernel
	PassedDead uint64 `json:"passed_dead"` // left to the kernel, since the reader was silent
}

// Steer is the program attached to an uplink's ingress. Methods are safe for
// concurrent use.
type Steer struct {
	home   kernel.Home
	heart  heart
	counts *ebpf.Map
	filter []bpf.RawInstruction

	mu       sync.Mutex
	handle   *netlink.Handle // nil: closed
	at       kernel.Attachment
	settings *kernel.Settings // of the uplink
}

var errSteerClosed = errors.New("steer: closed")

// AttachSteer keeps packets that come in by an uplink, in the network namespace of the
// calling thread, from the kernel. They are for a reader with a packet socket, which sees
// packets first, with super-segments whole. The kernel has checked nothing by then, not
// even the IP header's checksum.
//
// It takes nothing before the first Beat, nor when Beat has not been called for
// SteerPatience, so that a dead reader does not take the host off the network. Attach, open
// the socket with Filter, then Beat. Attaching again replaces the program and its rules. It
// needs CAP_NET_ADMIN, CAP_BPF and Linux 5.15, and to find what a crash has left also
// CAP_SYS_ADMIN, as AttachOffload does.
//
// If the uplink merges super-segments of more than 64 KB (BIG TCP), which have no length in
// their IP header, it lowers the uplink's gro_ipv4_max_size.
func AttachSteer(cfg SteerConfig) (*Steer, error) {
	if err := checkSteerRules(cfg.Rules); err != nil {
		return nil, fmt.Errorf("steer: %w", err)
	}
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return nil, kernel.Explain(fmt.Errorf("steer: %w", err))
	}
	s := &Steer{handle: h}
	if err := s.attach(cfg); err != nil {
		s.release()
		return nil, fmt.Errorf("steer: uplink %s: %w", cfg.Uplink, err)
	}
	return s, nil
}

func (s *Steer) attach(cfg SteerConfig) (err error) {
	if s.filter, err = bpf.Assemble(steerProgram(cfg.Rules)); err != nil {
		return fmt.Errorf("socket filter: %w", err)
	}
	if s.home, err = kernel.OpenHome(); err != nil {
		return err
	}
	link, err := kernel.Uplink(s.handle, cfg.Uplink)
	if err != nil {
		return err
	}
	if err := s.load(cfg.Rules, link); err != nil {
		return err
	}
	former, err := kernel.SteerFilter.FormerSettings(s.handle, link)
	if err != nil && !errors.As(err, new(kernel.Refused)) { // who may not ask forgets what was set before a crash
		return err
	}
	s.settings = kernel.Wanted{kernel.GROSize: kernel.MaxSuper}.Plan(link, former)
	if err := s.settings.Bind(s.at.Prog); err != nil {
		return err
	}
	if err := s.at.Attach(s.handle); err != nil {
		return err
	}
	if err := s.settings.Apply(s.handle, link, former); err != nil {
		_, err2 := s.at.Detach(s.handle)
		return errors.Join(err, err2)
	}
	return nil
}

func (s *Steer) load(rules []SteerRule, link netlink.Link) error {
	spec, err := loadSteer()
	if err != nil {
		return err
	}
	if err := setPatience(spec, SteerPatience); err != nil {
		return err
	}
	var objects struct {
		WeftSteer *ebpf.Program  `ebpf:"weft_steer"`
		Steered   *ebpf.Map      `ebpf:"steered"`
		Counters  *ebpf.Map      `ebpf:"counters"`
		Heartbeat *ebpf.Variable `ebpf:"heartbeat"`
	}
	if err := kernel.Load(spec, &objects, kernel.TCNeeds); err != nil {
		return err
	}
	defer objects.Steered.Close()
	s.counts = objects.Counters
	s.heart.open(objects.Heartbeat)
	if s.at, err = kernel.NewAttachment(kernel.SteerFilter, link, objects.WeftSteer); err != nil {
		return err
	}
	for _, r := range rules {
		if err := objects.Steered.Put(r.Address.Unmap().As4(), uint8(r.What)); err != nil {
			return fmt.Errorf("address %v: %w", r.Address, err)
		}
	}
	return nil
}

// Beat says that the reader reads. Call it every 100 to 250 ms. It waits for no other
// method, and makes no system call that needs privileges.
func (s *Steer) Beat() error { return s.heart.beat(errSteerClosed) }

// Filter is the classic BPF program (SO_ATTACH_FILTER) for the reader's socket. The socket
// must be of type SOCK_RAW, since offsets count from the Ethernet header, and for
// ETH_P_ALL, since a socket for IP alone sees only what the kernel gets. The filter passes
// exactly what the attached program takes. link.PacketConfig takes it as it is. The caller
// owns the slice.
func (s *Steer) Filter() []bpf.RawInstruction { return slices.Clone(s.filter) }

// Stats returns the counters.
func (s *Steer) Stats() (SteerStats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return SteerStats{}, errSteerClosed
	}
	var st SteerStats
	// The order of the enum in bpf/steer.c.
	err := kernel.SumCounters(s.counts, &st.Taken, &st.PassedDead, &st.Seen)
	return st, err
}

// Close gives the kernel its packets back, unless another AttachSteer has
// replaced the program since. Close it before the socket. Later calls do
// nothing.
func (s *Steer) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handle == nil {
		return nil
	}
	defer s.release()
	err := s.home.Do(func() error {
		was, err := s.at.Detach(s.handle)
		if err != nil || !was {
			return err
		}
		return s.settings.Restore(s.handle, s.at.Link)
	})
	if err != nil {
		return fmt.Errorf("steer: %w", err)
	}
	return nil
}

func (s *Steer) release() {
	s.heart.close()
	s.handle.Close()
	s.handle = nil
	s.home.Close()
	s.at.Release()
	s.settings.Close()
	s.counts.Close()
}

// DetachSteer removes the program from an uplink in the network namespace of the
// calling thread, whoever attached it, also after a crash. removed is false if
// there is none.
func DetachSteer(uplink string) (removed bool, err error) {
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		return false, kernel.Explain(err)
	}
	defer h.Close()
	links, err := kernel.Links(h, []string{uplink})
	if err != nil {
		return false, fmt.Errorf("steer: %w", err)
	}
	id, err := kernel.SteerFilter.Program(h, links[0])
	if err != nil || id == 0 {
		return false, err
	}
	// Whatever the record is worth, the program must go.
	former, err := kernel.SettingsOf(id)
	if err2 := kernel.SteerFilter.Detach(h, links[0]); err2 != nil {
		return false, fmt.Errorf("steer: %w", errors.Join(err2, err))
	}
	if err == nil {
		err = former.Restore(h, links[0])
	}
	if err != nil {
		return true, fmt.Errorf("steer: removed, but settings not restored: %w", err)
	}
	return true, nil
}
