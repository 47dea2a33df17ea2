package hostprog

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
)

// Uplink is one of the devices of a host that has several.
type Uplink struct {
	// Device is "" while there is none. Its paths must then be down.
	Device string
	// Gateway and Gateway6 are the switch's addresses of each family. The zero Addr leaves it
	// to the kernel's routes by that device.
	Gateway, Gateway6 netip.Addr
}

func (c SprayConfig) checkUplinks() error {
	if len(c.Uplinks) == 0 {
		return nil
	}
	if n := len(c.Topology.Uplinks()); len(c.Uplinks) != n || n < 2 {
		return fmt.Errorf("Uplinks are %d, and the host has %d in %s; give all or none", len(c.Uplinks), n, c.Topology)
	}
	if !slices.ContainsFunc(c.Uplinks, func(u Uplink) bool { return u.Device == c.Uplink }) {
		return fmt.Errorf("Uplink %s is not among Uplinks", c.Uplink)
	}
	for i, u := range c.Uplinks {
		if u.Device != "" && slices.ContainsFunc(c.Uplinks[:i], func(o Uplink) bool { return o.Device == u.Device }) {
			return fmt.Errorf("Uplinks: %s is given twice", u.Device)
		}
	}
	return nil
}

// heartMap is the map of the heartbeat (heart.h).
const heartMap = ".bss"

// loadTwins loads the program once more for each further uplink, with the same maps. Each has
// a record of its own of the settings of its device.
func (o *Spray) loadTwins(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) error {
	for _, u := range o.uplinks {
		if u.Device == "" || u.Device == o.at.Link.Attrs().Name {
			continue
		}
		twin := new(program)
		err := twin.open(sprayKind, u.Device, func() error {
			link, err := kernel.Uplink(twin.handle, u.Device)
			if err != nil {
				return err
			}
			var objects struct {
				WeftSpray *ebpf.Program `ebpf:"weft_spray"`
			}
			if err := kernel.LoadOver(spec, &objects, maps, kernel.TCNeeds); err != nil {
				return err
			}
			twin.at, err = kernel.NewAttachment(sprayKind.place, link, objects.WeftSpray)
			return err
		})
		if err != nil {
			return err
		}
		o.twins = append(o.twins, twin)
	}
	return nil
}

// attachTwins attaches them. Until all are there, a packet that is handed over is one that
// nobody looks at again.
func (o *Spray) attachTwins(cfg SprayConfig) error {
	for _, twin := range o.twins {
		var want kernel.Wanted
		if twin.kind.place == sprayKind.place {
			want = cfg.settings(twin.at.Link)
		}
		if err := twin.atHome(func() error { return twin.attachWith(want) }); err != nil {
			return fmt.Errorf("%s: uplink %s: %w", twin.kind.name, twin.at.Link.Attrs().Name, err)
		}
	}
	return nil
}

// lead says in an entry of bounces where its paths lead.
func (o *Spray) lead(b *bounceValue, to end) error {
	if to.addr.Is4() {
		a := to.addr.As4()
		copy(b.To[:], a[:])
	} else {
		b.To = to.addr.As16()
	}
	if len(o.uplinks) == 0 || o.uplinks[to.from].Device == "" {
		return nil
	}
	u := o.uplinks[to.from]
	link, err := kernel.Uplink(o.handle, u.Device)
	if err != nil {
		return err
	}
	b.Device = uint32(link.Attrs().Index)
	switch gateway := u.Gateway6; {
	case to.addr.Is4() && u.Gateway.IsValid():
		a := u.Gateway.As4()
		b.Family = unix.AF_INET
		copy(b.Next[:], a[:])
	case to.addr.Is6() && gateway.IsValid():
		b.Family, b.Next = unix.AF_INET6, gateway.As16()
	}
	return nil
}

// Repair is program.Repair at all uplinks, and of the device that cuts late.
func (o *Spray) Repair() (mended []string, err error) {
	mended, err = o.program.Repair()
	if !errors.Is(err, ErrUplinkGone) && !errors.Is(err, ErrReplaced) && !errors.Is(err, errSprayClosed) {
		err = errors.Join(err, o.atHome(func() error {
			did, err := o.cutter.mend(o.handle, o.settings, time.Now())
			mended = append(mended, did...)
			return err
		}))
	}
	for _, twin := range o.twins {
		did, err2 := twin.Repair()
		mended, err = append(mended, did...), errors.Join(err, err2)
	}
	return mended, err
}

// Foreign is program.Foreign at all uplinks.
func (o *Spray) Foreign() (all []ForeignProgram, err error) {
	all, err = o.program.Foreign()
	for _, twin := range o.twins {
		more, err2 := twin.Foreign()
		all, err = append(all, more...), errors.Join(err, err2)
	}
	return all, err
}

// Close is program.Close at all uplinks.
func (o *Spray) Close() error { return errors.Join(o.program.Close(), o.closeTwins()) }

func (o *Spray) closeTwins() (err error) {
	for _, twin := range o.twins {
		err = errors.Join(err, twin.Close())
	}
	return err
}
