package hostprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package hostprog -cc clang-14 -strip llvm-strip-14 -no-global-types -tags linux -target bpfel,bpfeb spray bpf/spray.c -- -O2 -g -Wall -Werror -mcpu=v3 -I../kernel/bpf -idirafter /usr/include/x86_64-linux-gnu

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/conga"
	"weft/internal/elephant"
	"weft/internal/kernel"
	"weft/topology"
)

// Spray is the program attached to a host's uplink. Methods are safe for
// concurrent use.
type Spray struct {
	program
	require  bool
	twins    []*program // the same at the host's other uplinks, and what heeds marks at all
	peers    *ebpf.Map  // of CONGA, and what it goes by
	local    *ebpf.Map
	conga    conga.Config
	forwards bool // SprayConfig.Forwarded
	duty     elephant.Duty
	counted  *ebpf.Map // of elephants
	pinned   *ebpf.Map
	obeyed   *kernel.Mirror[elephant.Key, kernel.PinValue] // of pinned
	pins     []PathPin                                     // of SetPins
	uplinks  []Uplink                                      // SprayConfig.Uplinks
	bounces  *ebpf.Map
	switches map[pathWord]netip.Addr // of bounces
	ends     map[pathWord]end        // of these, where outer headers lead whose addresses are not the words

	ways  *ways
	ways6 *ways // nil: IPv6 leaves as it is
	drawn drawn
	short string // why super-segments are shorter than configured
	usual uint32 // how long they are without SprayConfig.SuperBytes

	cutter   cutter         // of SprayConfig.CutLate
	cutterAt *ebpf.Variable // where the program reads its index
}

var (
	errSprayClosed = errors.New("spray: closed")
	sprayKind      = kind{name: "spray", device: "uplink", place: kernel.SprayFilter, closed: errSprayClosed}
)

// AttachSpray sprays packets that leave by an uplink in the network namespace of the
// calling thread. It puts a program at tc egress that encapsulates the packets of this
// host's own addresses to other racks of the fabric. Routes into the fabric should have
// an MTU that is less than the uplink's by the carrier's overhead: packets that do not
// fit leave unchanged.
//
// The program comes before those of others, by TCX, if the kernel has that (Linux 6.6);
// Repair keeps it there. If the process ends without Close, the program continues with
// its last table for SprayConfig.Patience. Attaching again replaces it, misses no packet,
// and starts its counters anew. It lowers the uplink's gso_ipv4_max_size to 64 KB and,
// with SprayConfig.Cut, to a flowcell, unless SprayConfig.SuperBytes raises it.
//
// It needs CAP_NET_ADMIN, CAP_BPF and Linux 5.15. To replace another process's program it
// also needs CAP_SYS_ADMIN. With TCX and without CAP_SYS_ADMIN it does not find a program
// that a crash has left: call DetachSpray before.
func AttachSpray(cfg SprayConfig) (*Spray, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("spray: %w", err)
	}
	o := &Spray{require: cfg.Require}
	if err := o.open(sprayKind, cfg.Uplink, func() error { return o.attach(cfg) }); err != nil {
		return nil, errors.Join(err, o.closeTwins())
	}
	if err := o.attachTwins(cfg); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if err := o.sweepHeeds(); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *Spray) attach(cfg SprayConfig) error {
	link, err := kernel.Uplink(o.handle, cfg.Uplink)
	if err != nil {
		return err
	}
	if err := o.load(cfg, link); err != nil {
		return err
	}
	if err := o.ways.change(cfg.Topology); err != nil {
		return err
	}
	if o.ways6 != nil {
		if err := o.ways6.change(cfg.Topology6); err != nil {
			return err
		}
	}
	if cfg.StartCarried != nil { // the first packet is not to wait for a Beat
		if err := o.Lease(); err != nil {
			return err
		}
	}
	_, o.short = cfg.longSupers(link)
	usual := cfg
	usual.SuperBytes = 0
	o.usual = usual.settings(link)[kernel.GSOSize]
	return o.attachCutting(cfg, link)
}

// Lease is Beat of a process that is about to be busy, for instance with a change of devices
// that has to wait for others: Patience begins in five seconds, or with the next Beat.
func (o *Spray) Lease() error { return o.heart.beat(5*time.Second, errSprayClosed) }

// settings are those that an uplink must have.
func (c SprayConfig) settings(link netlink.Link) (w kernel.Wanted) {
	if c.PerPacketTCP {
		w[kernel.GSOSegments] = 1
	}
	w[kernel.GSOSize] = kernel.MaxSuper
	if len(c.Cut) > 0 {
		w[kernel.GSOSize] = uint32(max(minSuper, min(c.Policy.Unit.Bytes, kernel.MaxSuper)))
	}
	if c.Topology6 != nil {
		w[kernel.GSOSize6] = w[kernel.GSOSize]
	}
	if n, _ := c.longSupers(link); n > 0 {
		w[kernel.GSOSize] = n
		if c.ReceiveLong {
			w[kernel.GROSize] = n
		}
	}
	return w
}

// minSuper is the lowest limit on super-segments, in bytes: some packets.
const minSuper = 4096

// SetTopology takes paths out of use or back into use. t is a topology of AttachSpray, of
// either family, with other links down. During the call each packet takes an old path or a new one;
// after it, a new one. The cost grows with the racks whose paths have changed.
func (o *Spray) SetTopology(t *topology.Topology) error {
	if t == nil {
		return errors.New("spray: SetTopology: no topology")
	}
	return o.use(func() error {
		w := o.ways
		if o.ways6 != nil && o.ways6.fabric.String() == t.String() {
			w = o.ways6
		}
		err := w.change(t)
		if err == nil {
			err = o.putPins()
		}
		if err != nil {
			return fmt.Errorf("spray: SetTopology: %w", err)
		}
		return nil
	})
}

// Replace is AttachSpray, for the uplink of o and where o was attached, whatever the calling
// thread's network namespace is. o is then to be closed, which leaves the other one in place.
func (o *Spray) Replace(cfg SprayConfig) (other *Spray, err error) {
	err = o.atHome(func() (err error) {
		other, err = AttachSpray(cfg)
		return err
	})
	return other, err
}

// DetachSpray removes the programs of a Spray from an uplink in the network namespace of the calling
// thread and restores the former settings, whoever attached them, also after a crash.
// removed is how many there were. It needs CAP_SYS_ADMIN to read the former settings.
func DetachSpray(uplink string) (removed int, err error) {
	for _, detach := range []func(string) (bool, error){sprayKind.detach, heedKind.detach, detachCutter} {
		did, err2 := detach(uplink)
		if did {
			removed++
		}
		err = errors.Join(err, err2)
	}
	return removed, err
}
