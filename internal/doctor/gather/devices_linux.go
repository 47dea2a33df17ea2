package gather

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/doctor"
	"weft/internal/kernel"
)

// network looks at the devices, their settings, and the firewall.
func (l *looker) network() {
	f := l.f
	h, err := netlink.NewHandle(kernel.Families...)
	if err != nil {
		for _, check := range []string{"uplink", "ports", "rp_filter", "forwarding", "programs", "foreign", "decapsulation", "mtu", "queue", "gateway"} {
			f.Unknown[check] = err.Error()
		}
		return
	}
	defer h.Close()
	l.setting(doctor.ConfKey("all", "rp_filter"))
	for _, name := range l.ports {
		f.Devices = append(f.Devices, l.device(h, name))
		l.setting(doctor.ConfKey(name, "rp_filter"), doctor.ConfKey(name, "forwarding"))
	}
	if f.Role == doctor.RoleSwitch && len(f.Devices) > 0 {
		if _, err := h.LinkByName("weft-decap0"); err == nil {
			for i := range f.Devices {
				f.Devices[i].Decap = "ipip"
			}
		}
	}
	for i := range f.Gateways {
		f.Gateways[i].Failed = failed(h, &f.Gateways[i])
	}
	l.firewall()
	l.lldp()
}

// device looks at a device.
func (l *looker) device(h *netlink.Handle, name string) doctor.Device {
	d := doctor.Device{Name: name, ToHost: slices.Contains(l.toHosts, name)}
	link, err := h.LinkByName(name)
	if err != nil {
		return d
	}
	a := link.Attrs()
	d.Present, d.Up, d.MTU = true, a.RawFlags&unix.IFF_UP != 0, a.MTU
	d.Carrier = a.RawFlags&unix.IFF_RUNNING != 0
	d.XDP = a.Xdp != nil && a.Xdp.Attached
	l.wanted(&d)
	if link.Type() == "device" { // others make up a speed, and gain nothing by offloads that are off by default
		d.Offloads, d.SpeedMbit = offloads(name), sysNumber(name, "speed")
	}
	duplex, _ := os.ReadFile("/sys/class/net/" + name + "/duplex")
	d.Half = strings.TrimSpace(string(duplex)) == "half"
	l.queues(h, link, &d)
	if l.f.System.Root {
		l.programs(h, link, &d)
	}
	return d
}

// wanted adds what a device is to be like, as far as that is known.
func (l *looker) wanted(d *doctor.Device) {
	if l.Lab != nil {
		if i := slices.IndexFunc(l.Lab.Ports, func(p Port) bool { return p.Name == d.Name }); i >= 0 {
			d.WantMTU, d.WantRate = l.Lab.Ports[i].MTU, l.Lab.Ports[i].RateMbit
		}
		return
	}
	if c := l.f.Config; c != nil {
		d.WantRate = c.RateMbit
	}
}

// sysNumber is a number that sysfs has of a device, 0 if it has none. Sysfs is that of the
// network namespace in which it was mounted, so in a lab's node it may know no such device.
func sysNumber(device, name string) int {
	text, err := os.ReadFile("/sys/class/net/" + device + "/" + name)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// queues looks for queueing disciplines that limit a device or harm packets.
func (l *looker) queues(h *netlink.Handle, link netlink.Link, d *doctor.Device) {
	all, err := kernel.Dumped(func() ([]netlink.Qdisc, error) { return h.QdiscList(link) })
	if err != nil {
		l.f.Unknown["queue"] = err.Error()
		return
	}
	for _, q := range all {
		switch q := q.(type) {
		case *netlink.Netem:
			d.Disturbed = netem(q)
		case *netlink.Tbf:
			d.Rate = float64(q.Rate) * 8 / 1e6
		}
	}
}

// netem says what a discipline of that kind does to packets.
func netem(q *netlink.Netem) string {
	var words []string
	for _, p := range []struct {
		what  string
		share uint32
	}{{"loses", q.Loss}, {"duplicates", q.Duplicate}, {"corrupts", q.CorruptProb}, {"reorders", q.ReorderProb}} {
		if p.share > 0 {
			words = append(words, fmt.Sprintf("%s %.2g %%", p.what, 100*float64(p.share)/(1<<32)))
		}
	}
	if q.Latency > 0 || q.Jitter > 0 {
		words = append(words, "delays")
	}
	if q.Rate64 > 0 {
		words = append(words, fmt.Sprintf("limits to %.4g Mbit/s", float64(q.Rate64)*8/1e6))
	}
	if len(words) == 0 {
		return ""
	}
	return "netem " + strings.Join(words, ", ")
}

// programs looks for weft's programs at a device, and for others' in front of them.
func (l *looker) programs(h *netlink.Handle, link netlink.Link, d *doctor.Device) {
	type place struct {
		filter kernel.Filter
		wanted bool
		hook   string
	}
	var places []place
	if s := l.f.Host; s != nil {
		places = []place{{kernel.SprayFilter, s.Offload != nil, "egress"}, {kernel.SteerFilter, s.Steer != nil, "ingress"}}
	} else if l.f.Role == doctor.RoleSwitch {
		places = []place{{kernel.DecapFilter, false, "ingress"}}
	}
	d.Programs = make(map[string]bool)
	for _, p := range places {
		foreign, there, err := p.filter.ForeignAt(h, link)
		if err != nil {
			l.f.Unknown["programs"], l.f.Unknown["foreign"] = err.Error(), err.Error()
			return
		}
		switch nameless := slices.ContainsFunc(foreign, isNameless); {
		case p.wanted && !there && nameless && kernel.RequireCapability(unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN") != nil:
			l.f.Unknown["programs"] = "whose programs are at " + link.Attrs().Name + " only root with CAP_SYS_ADMIN can see"
		case p.wanted:
			d.Programs[p.filter.Name] = there
		}
		if p.filter == kernel.DecapFilter && there {
			d.Decap = "ebpf"
		}
		for _, o := range foreign {
			if o.Front {
				d.Foreign = append(d.Foreign, doctor.Foreign{Hook: p.hook, Text: who(o)})
			}
		}
	}
	d.Drops = drops(h, link)
}

func isNameless(p kernel.ForeignProgram) bool { return p.ID != 0 && p.Name == "" }

func who(p kernel.ForeignProgram) string {
	text := "another's"
	if p.Kind != "" && p.Kind != "bpf" {
		return text + " filter of " + p.Kind
	}
	if text += fmt.Sprintf(" program %d", p.ID); p.Name != "" {
		text += " (" + p.Name + ")"
	}
	return text
}

// drops lists the filters of tc at a device that drop packets.
func drops(h *netlink.Handle, link netlink.Link) (all []doctor.Foreign) {
	for _, hook := range []struct {
		name   string
		parent uint32
	}{{"ingress", netlink.HANDLE_MIN_INGRESS}, {"egress", netlink.HANDLE_MIN_EGRESS}} {
		filters, err := kernel.Dumped(func() ([]netlink.Filter, error) { return h.FilterList(link, hook.parent) })
		if err != nil {
			continue // there is no such qdisc
		}
		for _, f := range filters {
			var actions []netlink.Action
			switch f := f.(type) {
			case *netlink.Flower:
				actions = f.Actions
			case *netlink.MatchAll:
				actions = f.Actions
			case *netlink.U32:
				actions = f.Actions
			}
			if slices.ContainsFunc(actions, func(a netlink.Action) bool { return a.Attrs().Action == netlink.TC_ACT_SHOT }) {
				all = append(all, doctor.Foreign{Hook: hook.name, Text: "a filter of " + f.Type() + " drops packets"})
			}
		}
	}
	return all
}

// failed reports whether a gateway does not answer for its address.
func failed(h *netlink.Handle, g *doctor.Gateway) bool {
	link, err := h.LinkByName(g.Device)
	if err != nil {
		return false
	}
	all, err := kernel.Dumped(func() ([]netlink.Neigh, error) { return h.NeighList(link.Attrs().Index, netlink.FAMILY_V4) })
	return err == nil && slices.ContainsFunc(all, func(n netlink.Neigh) bool {
		return n.IP.Equal(g.Addr.AsSlice()) && n.State&(netlink.NUD_FAILED) != 0
	})
}
