package hostprog

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/conga"
	"weft/internal/kernel"
)

var heedKind = kind{name: "heed", device: "uplink", place: kernel.HeedFilter, closed: errSprayClosed, forgets: true}

// Of bpf/conga.h and internal/kernel/bpf/dre.h.
const (
	dreTicks = 16 // of Tau
	dreScale = 256
)

// dreTick is a tick in ns, and dreTarget the register of a busy link.
func dreTick(c conga.Config) uint64 { return max(1, uint64(c.Tau)/dreTicks) }
func dreTarget(c conga.Config) uint64 {
	return max(1, uint64(c.RateBits/8*c.Tau.Seconds()*dreScale))
}

// simulated has the program's flowlets and reports go by the map clock (tests).
var simulated = false

// informed sizes the tables of CONGA, and says what the program goes by.
func (o *Spray) informed(c conga.Config, spec *ebpf.CollectionSpec) error {
	c, err := c.WithDefaults()
	if err != nil {
		return err
	}
	informed := o.ways.known.how.mode == sprayInformed
	if spec.Maps[sprayMapPeers].MaxEntries = uint32(c.MaxDestinations); !informed {
		spec.Maps[sprayMapPeers].MaxEntries = 1
	}
	o.conga = c
	return errors.Join(
		spec.Variables[sprayVarInformed].Set(informed),
		spec.Variables[sprayVarDreTick].Set(dreTick(c)),
		spec.Variables[sprayVarDreTarget].Set(dreTarget(c)),
		spec.Variables[sprayVarReportAge].Set(uint64(c.Age)),
		spec.Variables[sprayVarSimulated].Set(simulated))
}

// loadHeeds loads what takes marks in and off at each uplink. Under other policies it removes what a crash
// has left of that.
func (o *Spray) loadHeeds(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) error {
	devices := []string{o.at.Link.Attrs().Name}
	for _, twin := range o.twins {
		devices = append(devices, twin.at.Link.Attrs().Name)
	}
	for _, device := range devices {
		if o.ways.known.how.mode != sprayInformed {
			link, err := kernel.Uplink(o.handle, device)
			if err != nil {
				return err
			}
			if _, err := heedKind.place.DetachAll(o.handle, []netlink.Link{link}); err != nil {
				return err
			}
			continue
		}
		twin := new(program)
		err := twin.open(heedKind, device, func() error {
			link, err := kernel.Uplink(twin.handle, device)
			if err != nil {
				return err
			}
			var objects struct {
				WeftHeed *ebpf.Program `ebpf:"weft_heed"`
			}
			if err := kernel.LoadOver(spec, &objects, maps, kernel.TCNeeds); err != nil {
				return err
			}
			twin.at, err = kernel.NewAttachment(heedKind.place, link, objects.WeftHeed)
			return err
		})
		if err != nil {
			return err
		}
		o.twins = append(o.twins, twin)
	}
	return nil
}
