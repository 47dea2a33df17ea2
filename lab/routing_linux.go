package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weft/internal/frr"
	"weft/internal/kernel"
	"weft/internal/switchconf"
	"weft/topology"
	"weft/topology/graph"
)

// routingDir has a directory for each switch that runs FRR. Labs have no dot in their names.
func routingDir(lab string) string { return filepath.Join(kernel.RunDir, lab+".frr") }

// router is FRR at a switch.
func (c Config) router(id topology.NodeID) frr.Switch {
	return frr.Switch{Dir: filepath.Join(routingDir(c.Name), c.plant().Node(id).Name), BFD: c.BFD}
}

// startRouting starts those of a switch's daemons that do not run, and returns their names.
func (c Config) startRouting(n topology.Node) (started []string, err error) {
	if n.Layer == topology.LayerHost {
		return nil, nil
	}
	text, err := switchconf.FRR(c.Graph, graph.NodeID(n.ID), switchconf.Options{BFD: c.BFD})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(routingDir(c.Name), 0o755); err != nil {
		return nil, err
	}
	err = kernel.InNamespace(c.namespace(n.Name), func() error {
		started, err = c.router(n.ID).Start(text)
		return err
	})
	return started, err
}

func (b *builder) startRouting(n topology.Node) error {
	_, err := b.cfg.startRouting(n)
	return err
}

// startRouting ends daemons of a namespace that is no more, too.
func (r *labRepair) startRouting(n topology.Node) error {
	if r.fresh[n.ID] && n.Layer != topology.LayerHost {
		if err := r.cfg.router(n.ID).Stop(); err != nil {
			return err
		}
	}
	started, err := r.cfg.startRouting(n)
	for _, name := range started {
		if !r.fresh[n.ID] {
			r.say("%s: started FRR's %s again", n.Name, name)
		}
	}
	return err
}

// stopRouting ends FRR at all switches of a lab, and removes what it has left.
func stopRouting(lab string) error {
	dir := routingDir(lab)
	switches, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return kernel.Explain(err)
	}
	for _, s := range switches {
		err = errors.Join(err, frr.Switch{Dir: filepath.Join(dir, s.Name())}.Stop())
	}
	if err != nil {
		return kernel.Explain(err)
	}
	return os.RemoveAll(dir)
}

// Routing returns nil if FRR runs at a switch of a Graph with all of its daemons, otherwise
// what does not run.
func (l *Lab) Routing(id topology.NodeID) error {
	if l.Config.Graph == nil {
		return fmt.Errorf("lab %s does not run FRR", l.Config.Name)
	}
	return l.Config.router(id).Check()
}

// ShowRouting runs commands of FRR's shell at a switch of a Graph, and returns what they
// print.
func (l *Lab) ShowRouting(id topology.NodeID, commands ...string) ([]byte, error) {
	if l.Config.Graph == nil {
		return nil, fmt.Errorf("lab %s does not run FRR", l.Config.Name)
	}
	return l.Config.router(id).Show(commands...)
}
