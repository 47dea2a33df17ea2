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

// simulated has flowcells, flowlets and reports go by the map clock of bpf/clock.h (tests).
var simulated = false

// informed sizes the tables of CONGA, says what the program goes by, and has it be weft_inform of
// bpf/spray.c. What else is in the specification is not loaded.
func (o *Spray) informed(c conga.Config, spec *ebpf.CollectionSpec) error {
	c, err := c.WithDefaults()
	if err != nil {
		return err
	}
	informed := o.ways.known.how.mode == sprayInformed
	if spec.Maps[sprayMapPeers].MaxEntries = uint32(c.MaxDestinations); !informed {
		spec.Maps[sprayMapPeers].MaxEntries = 1
	}
	if informed {
		inform := spec.Programs[sprayProgWeftInform]
		inform.Name = spec.Programs[sprayProgWeftSpray].Name // by which it is found at the uplink
		spec.Programs[sprayProgWeftSpray] = inform
	}
	o.conga = c
	return errors.Join(
		spec.Variables[sprayVarDreTick].Set(dreTick(c)),
		spec.Variables[sprayVarDreTarget].Set(dreTarget(c)),
		spec.Variables[sprayVarReportAge].Set(uint64(c.Age)),
		spec.Variables[sprayVarSimulated].Set(simulated))
}

// informs reports whether the policy is CONGA.
func (o *Spray) informs() bool { return o.ways.known.how.mode == sprayInformed }

// loadHeeds loads what takes marks in and off at each uplink, or lowers the MSS of what comes.
func (o *Spray) loadHeeds(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) error {
	if !o.informs() && !o.forwards {
		return nil
	}
	devices := []string{o.at.Link.Attrs().Name}
	for _, twin := range o.twins {
		devices = append(devices, twin.at.Link.Attrs().Name)
	}
	for _, device := range devices {
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

// sweepHeeds removes what a process that has crashed has left at ingress, if a program that needs nothing there
// took the place of its program. What a Spray of this process has there its Close removes: until then
// it goes on taking marks off.
func (o *Spray) sweepHeeds() (err error) {
	if o.informs() || o.forwards {
		return nil
	}
	for _, p := range append([]*program{&o.program}, o.twins...) {
		if p.replaced {
			continue
		}
		_, err2 := heedKind.place.DetachAll(p.handle, []netlink.Link{p.at.Link})
		err = errors.Join(err, err2)
	}
	return err
}
