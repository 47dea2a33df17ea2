package doctor

import (
	"fmt"
	"slices"
	"strings"
)

func askConfig(f *Facts) (all []Finding, well string) {
	switch c := f.Config; {
	case c == nil && f.Expected && !f.Daemon.Answers:
		return append(all, wrong(stops, "there is no configuration file of "+f.daemon(),
			fmt.Sprintf("weft %s --print-config > /etc/weft/%s.yaml, and set topology; --config names another file", f.Role, f.Role))), ""
	case c == nil:
		return nil, "not looked at: it is not known which file the daemon has read"
	case c.Error != "":
		fix := fmt.Sprintf("weft %s --print-config explains the keys; weft %s --check --config %s", f.Role, f.Role, c.File)
		if f.Daemon.Answers {
			fix += "; the running daemon still has the former one"
		}
		return append(all, wrong(stops, "the daemon refuses its configuration: "+c.Error, fix)), ""
	default:
		for _, m := range c.Misfits {
			if !slices.Contains(ownChecks, m.Key) {
				all = append(all, wrong(stops, "this machine does not fit the configuration: "+m.Text,
					fmt.Sprintf("weft %s --print-config explains the keys; weft %s --check --config %s", f.Role, f.Role, c.File)))
			}
		}
		return all, c.File
	}
}

// ownChecks are the keys whose misfits other checks tell.
var ownChecks = []string{"topology", "address", "uplink", "mtu", "gateway"}

func askUser(f *Facts) (all []Finding, well string) {
	if f.Config != nil && f.Config.User != "" {
		all = append(all, Finding{Cause: f.Config.User, Fix: "useradd --system weft, and user: auto", Weight: stops, named: true})
	}
	return all, "exists"
}

// misfit returns what is wrong with a key of the configuration on this machine.
func (f *Facts) misfit(fix string, keys ...string) (all []Finding) {
	if f.Config == nil {
		return nil
	}
	for _, m := range f.Config.Misfits {
		for _, key := range keys {
			if m.Key == key {
				all = append(all, Finding{Cause: m.Text, Fix: fix, Weight: stops, named: !m.Auto})
			}
		}
	}
	return all
}

func askTopology(f *Facts) (all []Finding, well string) {
	if f.Config != nil && f.Config.Topology != "" && f.Host != nil && f.Host.Topology != "" && !sameTopology(f.Config.Topology, f.Host.Topology) {
		all = append(all, wrong(slows, fmt.Sprintf("the file says topology %s, and the daemon goes by %s", f.Config.Topology, f.Host.Topology), "systemctl reload weft-host (SIGHUP)"))
	}
	return append(all, f.misfit("compare topology with the fabric: weft topology from-lldp, weft paths --topology", "topology")...), "fits this machine"
}

// sameTopology reports whether two words are of one fabric. A file's name says nothing.
func sameTopology(file, daemon string) bool {
	return file == daemon || strings.HasSuffix(file, ".yaml") || strings.HasSuffix(file, ".yml") || file == "bgp"
}

func askAddress(f *Facts) (all []Finding, well string) {
	return f.misfit("ip address shows what it has; address: auto takes the one that topology gives to a host", "address"), "this machine has its address of the topology"
}

func askUplink(f *Facts) (all []Finding, well string) {
	var names []string
	for _, d := range f.Devices {
		names = append(names, d.Name)
		switch {
		case !d.Present:
			all = append(all, Finding{Cause: "there is no device " + d.Name, Fix: "ip link shows the devices; plug it in, or name another (key uplink)", Weight: stops, named: true})
		case !d.Up:
			all = append(all, wrong(stops, fmt.Sprintf("%s is down: somebody has set it so", d.Name), "ip link set "+d.Name+" up"))
		case !d.Carrier:
			all = append(all, wrong(stops, fmt.Sprintf("%s has no carrier", d.Name), "look at the cable, the optics, and the switch's port"))
		}
	}
	if len(all) == 0 { // else these say the same of the routes
		all = f.misfit("ip link shows the devices; uplink: auto takes the one that the route to the switches leads to", "uplink", "mtu")
	}
	return all, strings.Join(names, ", ") + " up"
}

func askKeys(f *Facts) (all []Finding, well string) {
	if f.Config == nil || len(f.Config.Keys) == 0 {
		return nil, "none configured"
	}
	future := 0
	for _, k := range f.Config.Keys {
		switch {
		case k.Error != "":
			all = append(all, wrong(stops, fmt.Sprintf("key file %s: %s", k.Path, k.Error), "weft keygen --out "+k.Path+", the same on all switches and hosts"))
		case k.Path != "" && !k.Readable:
			all = append(all, wrong(stops, fmt.Sprintf("key file %s: user %s cannot read it, so a reload will fail", k.Path, k.User), fmt.Sprintf("chown %s %s; its directories must let %s in", k.User, k.Path, k.User)))
		case k.Others:
			all = append(all, wrong(slows, fmt.Sprintf("key file %s: every user of this machine may read it", k.Path), "chmod 0400 "+k.Path))
		}
		if k.From > 0 {
			future++
		}
	}
	if future == len(f.Config.Keys) {
		all = append(all, wrong(explains, "no key is in force yet: all have a time from: that is to come", "compare the clock (date) with the times, or add a key without from:"))
	}
	return all, fmt.Sprintf("%d, readable by the daemon's user alone", len(f.Config.Keys))
}
