package hostsetup

import (
	"net/netip"

	"weft/internal/kernel"
)

// Way is a further uplink of a host that has several: the kernel's routes divide packets
// between all of them, by flow.
type Way struct {
	Device            string
	Gateway, Gateway6 netip.Addr // as Options.Gateway and Six.Gateway
}

func names(ways []Way) (list []string) {
	for _, w := range ways {
		list = append(list, w.Device)
	}
	return list
}

// Hop is a further device that a route leads to.
type Hop struct {
	Device  string     `json:"device"`
	Gateway netip.Addr `json:"gateway,omitzero"`
}

// several has the kernel use no route to an uplink that has lost its carrier while another
// has one.
func (p *Plan) several(o Options) {
	if len(o.Others) == 0 {
		return
	}
	for _, device := range append([]string{o.Uplink}, names(o.Others)...) {
		p.Sysctls = append(p.Sysctls, kernel.Sysctl{Key: confKey(device, ignoreDown), Value: "1"})
		if o.Six != nil {
			p.Sysctls = append(p.Sysctls, kernel.Sysctl{Key: confKey6(device, ignoreDown), Value: "1"})
		}
	}
}

const ignoreDown = "ignore_routes_with_linkdown"
