package switchd

import (
	"time"

	"weft/fabric"
	"weft/internal/config"
	"weft/internal/service"
	"weft/topology"
)

// Plan is what the switch is to be configured with, by its file.
func (f *File) Plan() (fabric.NodePlan, error) {
	self, err := f.self()
	if err != nil {
		return fabric.NodePlan{}, err
	}
	return f.config(self, time.Now()).plan(f.fabric)
}

// HostPorts lists the ports of a plan that lead to hosts.
func (f *File) HostPorts(p fabric.NodePlan) (names []string) {
	for _, port := range p.Ports {
		if n, err := f.fabric.Lookup(port.Peer); err == nil && n.Layer == topology.LayerHost {
			names = append(names, port.Name)
		}
	}
	return names
}

// Account is the user that the agent runs as.
func (f *File) Account() (service.Account, error) {
	a, err := service.LookUp(f.User)
	if err != nil {
		err = f.lines.Errorf("user", "%w", err)
	}
	return a, err
}

// KeyFiles lists the keys' files, "" for those that the file has in it, and how long it is until
// each is in force.
func (f *File) KeyFiles() (files []string, from []time.Duration) {
	for _, k := range f.Keys {
		files, from = append(files, k.KeyFile), append(from, until(k))
	}
	return files, from
}

func until(k config.UpdateKey) time.Duration {
	if k.From.IsZero() {
		return 0
	}
	return time.Until(k.From)
}
