package doctor

// check is one question about Facts.
type check struct {
	name string
	role string // of the machine; "": both
	// offline: it needs no daemon, and weft host --check asks it, too.
	offline bool
	// ask returns what is wrong. Where nothing is, well says what was looked at.
	ask func(*Facts) (wrong []Finding, well string)
}

// checks are all, those first whose faults are the root of more.
var checks = []check{
	{"kernel", "", true, askKernel},
	{"privileges", "", true, askPrivileges},
	{"memlock", "", true, askMemlock},
	{"config", "", true, askConfig},
	{"user", "", true, askUser},
	{"keys", "", true, askKeys},
	{"topology", RoleHost, true, askTopology},
	{"address", RoleHost, true, askAddress},
	{"uplink", RoleHost, true, askUplink},
	{"gateway", RoleHost, true, askGateway},
	{"congestion_control", RoleHost, true, askCongestion},
	{"daemon", "", false, askDaemon},
	{"duplicate", RoleHost, false, askDuplicate},
	{"firewall", "", true, askFirewall},
	{"rp_filter", "", true, askReverseFilter},
	{"forwarding", RoleSwitch, true, askForwarding},
	{"programs", RoleHost, false, askPrograms},
	{"foreign", "", false, askForeign},
	{"decapsulation", RoleSwitch, true, askDecap},
	{"routes", RoleSwitch, false, askRoutes},
	{"settings", RoleSwitch, false, askSettings},
	{"ports", RoleSwitch, false, askPorts},
	{"mtu", "", true, askMTU},
	{"queue", "", true, askQueue},
	{"conntrack", "", true, askConntrack},
	{"wiring", "", false, askWiring},
	{"identity", RoleSwitch, false, askIdentity},
	{"bouncing", RoleHost, false, askBouncing},
	{"updates", "", false, askUpdates},
	{"bgp", RoleHost, false, askBGP},
	{"path_mtu", RoleHost, false, askPathMTU},
	{"links", "", false, askLinks},
	{"racks", RoleHost, false, askRacks},
	{"status", "", false, askStatus},
	{"clock", "", true, askClock},
	{"link_speed", "", true, askSpeed},
	{"tcp", RoleHost, true, askTCP},
	{"offloads", "", true, askOffloads},
}

// Names lists the checks in the order in which they are made. The names are stable.
func Names() (list []string) {
	for _, c := range checks {
		list = append(list, c.name)
	}
	return list
}

// Examine makes all checks that the facts allow. The findings are sorted (Sort).
func Examine(f *Facts) []Finding {
	all := []Finding{}
	for _, c := range checks {
		if c.role != "" && c.role != f.Role || f.Offline && !c.offline {
			continue
		}
		if why, unknown := f.Unknown[c.name]; unknown {
			all = append(all, Finding{Check: c.name, OK: true, Skipped: why})
			continue
		}
		wrong, well := c.ask(f)
		for i := range wrong {
			wrong[i].Check = c.name
		}
		if len(wrong) == 0 {
			wrong = []Finding{{Check: c.name, OK: true, Cause: well}}
		}
		all = append(all, wrong...)
	}
	Sort(all)
	return all
}

// wrong is a finding of a weight.
func wrong(w weight, cause, fix string) Finding { return Finding{Cause: cause, Fix: fix, Weight: w} }
