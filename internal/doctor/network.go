package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// setting returns a sysctl's number, -1 if there is none.
func (f *Facts) setting(key string) int {
	n := -1
	if v, ok := f.Settings[key]; ok {
		if _, err := fmt.Sscan(v, &n); err != nil {
			return -1
		}
	}
	return n
}

// ConfKey is the name of a device's IPv4 setting; a dot in the device's name becomes a slash, as
// sysctl(8) has it.
func ConfKey(device, name string) string {
	return "net.ipv4.conf." + strings.ReplaceAll(device, ".", "/") + "." + name
}

// strict is the value of rp_filter that drops what comes in where the way back does not lead.
const strict = 1

func askReverseFilter(f *Facts) (all []Finding, well string) {
	var devices []string
	both := f.setting(ConfKey("all", "rp_filter"))
	for _, d := range f.Devices {
		if d.Present && max(both, f.setting(ConfKey(d.Name, "rp_filter"))) == strict {
			devices = append(devices, d.Name)
		}
	}
	if len(devices) == 0 {
		return nil, "not strict"
	}
	fix := "sysctl -w"
	if both == strict {
		fix += " " + ConfKey("all", "rp_filter") + "=0"
	}
	for _, d := range devices {
		if f.setting(ConfKey(d, "rp_filter")) != strict {
			continue
		}
		fix += " " + ConfKey(d, "rp_filter") + "=2"
		if len(fix) > 160 {
			fix += " and so on"
			break
		}
	}
	what := "drops what comes in by another way than the kernel's own routes lead back by"
	if f.Role == RoleSwitch {
		what = "drops packets whose sender lies another way: boomerangs, and half of what comes by other paths"
	}
	return append(all, wrong(explains, fmt.Sprintf("rp_filter of %s is strict (1): the kernel %s", join(devices), what), fix)), ""
}

// join names at most four things.
func join(all []string) string {
	const most = 4
	if n := len(all); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), n-most)
	}
	return strings.Join(all, ", ")
}

func askForwarding(f *Facts) (all []Finding, well string) {
	var off []string
	for _, d := range f.Devices {
		if d.Present && f.setting(ConfKey(d.Name, "forwarding")) == 0 {
			off = append(off, d.Name)
		}
	}
	if len(off) > 0 {
		all = append(all, wrong(explains, "this switch does not forward IPv4 from "+join(off), "sysctl -w net.ipv4.ip_forward=1"))
	}
	return all, "IPv4 from all ports"
}

func askGateway(f *Facts) (all []Finding, well string) {
	var names []string
	for _, g := range f.Gateways {
		names = append(names, g.Addr.String())
		if g.Failed {
			all = append(all, wrong(stops, fmt.Sprintf("the switch %v behind %s does not answer ARP", g.Addr, g.Device),
				fmt.Sprintf("is this the switch that %s is cabled to? ip neigh show dev %s; ip route get %v; gateway: in the configuration", g.Device, g.Device, g.Addr)))
		}
	}
	all = append(all, f.misfit("ip route shows the way to the switches; gateway: auto takes it", "gateway")...)
	if len(names) == 0 {
		return all, "the fabric is on the link"
	}
	return all, strings.Join(names, ", ") + " known"
}

func askPrograms(f *Facts) (all []Finding, well string) {
	if !f.Daemon.Answers || f.Host == nil || f.Host.State == stateAway {
		return nil, "not wanted now"
	}
	for _, d := range f.Devices {
		var lost []string
		for name, there := range d.Programs {
			if !there {
				lost = append(lost, name)
			}
		}
		if slices.Sort(lost); len(lost) > 0 {
			all = append(all, wrong(explains, fmt.Sprintf("weft's program %s is not at %s: somebody removes it", strings.Join(lost, ", "), d.Name),
				"weft attaches it again within 5 s; who removes it? journalctl -u weft-host, bpftool net, tc qdisc"))
		}
	}
	return all, "weft's are attached"
}

// stateAway is the daemon's StateAway.
const stateAway = "out of the way"

func askForeign(f *Facts) (all []Finding, well string) {
	for _, d := range f.Devices {
		for _, p := range d.Foreign {
			all = append(all, wrong(explains, fmt.Sprintf("%s runs in front of weft's at %s of %s, and may keep packets from it", p.Text, p.Hook, d.Name),
				"have it attached behind weft's, or see that it passes packets on: bpftool net, tc filter show dev "+d.Name+" "+p.Hook))
		}
		for _, p := range d.Drops {
			all = append(all, wrong(explains, fmt.Sprintf("%s at %s of %s", p.Text, p.Hook, d.Name), "tc -s filter show dev "+d.Name+" "+p.Hook+"; tc filter del dev "+d.Name+" "+p.Hook))
		}
		if d.XDP {
			all = append(all, wrong(slows, fmt.Sprintf("a program of XDP at %s sees packets before weft's do, and may drop or rewrite them", d.Name),
				"does it pass on IP-in-IP and UDP 9339? ip link show "+d.Name+"; ip link set "+d.Name+" xdp off takes it away"))
		}
	}
	return all, "no others' programs in front of weft's"
}

func askMTU(f *Facts) (all []Finding, well string) {
	least, most := 0, 0
	for _, d := range f.Devices {
		if !d.Present || d.MTU == 0 {
			continue
		}
		if d.WantMTU != 0 && d.MTU < d.WantMTU {
			all = append(all, wrong(explains, fmt.Sprintf("the MTU of %s is %d, and the other end's is %d", d.Name, d.MTU, d.WantMTU), fmt.Sprintf("ip link set %s mtu %d", d.Name, d.WantMTU)))
		}
		if least == 0 || d.MTU < least {
			least = d.MTU
		}
		most = max(most, d.MTU)
	}
	if len(all) == 0 && f.Role == RoleSwitch && least < most {
		for _, d := range f.Devices {
			if d.Present && d.WantMTU == 0 && d.MTU == least {
				all = append(all, wrong(explains, fmt.Sprintf("the MTU of %s is %d, and that of other ports %d: longer packets are lost there", d.Name, d.MTU, most), fmt.Sprintf("ip link set %s mtu %d, at both ends", d.Name, most)))
			}
		}
	}
	if least == 0 {
		return all, "not known"
	}
	return all, fmt.Sprintf("%d bytes", least)
}

func askQueue(f *Facts) (all []Finding, well string) {
	for _, d := range f.Devices {
		if d.Disturbed != "" {
			all = append(all, wrong(explains, fmt.Sprintf("a queueing discipline at %s harms packets: %s", d.Name, d.Disturbed), "tc qdisc del dev "+d.Name+" root, or what was there before: tc qdisc show dev "+d.Name))
		}
		// A little below is a shaper's way to keep the queue here.
		if d.Rate > 0 && d.WantRate > 0 && d.Rate < 0.8*d.WantRate {
			all = append(all, wrong(explains, fmt.Sprintf("a queueing discipline limits %s to %.4g Mbit/s, and the topology has a link of %.4g", d.Name, d.Rate, d.WantRate),
				"tc qdisc show dev "+d.Name+"; give topology the right rate, or take the limit away"))
		}
	}
	return all, "nothing delays, drops or limits on purpose"
}

func askSpeed(f *Facts) (all []Finding, well string) {
	for _, d := range f.Devices {
		switch {
		case !d.Present || !d.Carrier:
		case d.Half:
			all = append(all, wrong(slows, d.Name+" runs at half duplex", "ethtool "+d.Name+"; have both ends negotiate, or set both alike"))
		case d.SpeedMbit > 0 && d.WantRate > 0 && d.Rate == 0 && float64(d.SpeedMbit) < 0.8*d.WantRate:
			all = append(all, wrong(slows, fmt.Sprintf("%s runs at %d Mbit/s, and the topology has a link of %.4g", d.Name, d.SpeedMbit, d.WantRate),
				"ethtool "+d.Name+"; change the cable or optics, or give topology the right rate"))
		}
	}
	return all, "as the topology has it, as far as known"
}

func askOffloads(f *Facts) (all []Finding, well string) {
	names := map[string]string{"gro": "generic-receive-offload", "gso": "generic-segmentation-offload", "tx": "tx-checksumming"}
	for _, d := range f.Devices {
		for _, o := range []string{"gro", "gso", "tx"} {
			if on, known := d.Offloads[o]; known && !on && f.Role == RoleHost {
				all = append(all, wrong(slows, fmt.Sprintf("%s of %s is off: each packet costs several times the processor time", names[o], d.Name), fmt.Sprintf("ethtool -K %s %s on", d.Name, o)))
			}
		}
	}
	return all, "on where weft gains by them"
}
