package interop

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	hostd "weft/internal/daemon"
	"weft/internal/service"
	"weft/internal/switchd"
	"weft/topology"
)

// agent is weft switch on a switch.
type agent struct {
	*process
	node string
	file string
}

// agents starts one on each of these switches and waits until they are at work.
func (n *network) agents(nodes ...string) (all []*agent) {
	n.Helper()
	// Twenty agents share a machine here: with hellos every 50 ms they fill it.
	config := "topology: " + n.lab.Config.Topology.String() + "\nhello: 200ms\n"
	if n.lab.Config.SRv6 {
		config += "encap: srv6\n"
	}
	for _, node := range nodes {
		a := &agent{node: node, file: n.file(node+".yaml", []byte(config))}
		n.Cleanup(func() {
			n.lab.Do(n.node(node).ID, func() error {
				socket, err := switchd.StatusSocket()
				if err == nil {
					err = os.RemoveAll(filepath.Dir(socket))
				}
				return err
			})
		})
		a.process = n.start(node, preferred(binary(n.T), "switch", "--config", a.file)...)
		all = append(all, a)
	}
	for _, a := range all {
		a.says("hellos every")
	}
	return all
}

// switches are the names of all switches.
func (n *network) switches() (names []string) {
	for node := range n.lab.Config.Topology.Nodes() {
		if node.Layer != topology.LayerHost {
			names = append(names, node.Name)
		}
	}
	return names
}

// preferred has a program run with a real-time priority where that can be had, as
// docs/operating.md advises for agents of busy switches: twenty share a machine here
// with all that tests do besides, and one that gets no time for 150 ms is dead to its
// neighbours.
func preferred(argv ...string) []string {
	chrt := []string{"chrt", "--rr", "2"}
	if exec.Command(chrt[0], append(chrt[1:], "true")...).Run() != nil {
		return argv
	}
	return append(chrt, argv...)
}

// restart starts agents anew that have been killed.
func (n *network) restart(all []*agent) {
	n.Helper()
	for _, a := range all {
		a.process = n.start(a.node, preferred(binary(n.T), "switch", "--config", a.file)...)
	}
	for _, a := range all {
		a.says("hellos every")
	}
}

func (a *agent) signal(s syscall.Signal) {
	a.n.Helper()
	if err := a.cmd.Process.Signal(s); err != nil {
		a.n.Fatal(err)
	}
	if out, err := a.wait(); s == syscall.SIGTERM && err != nil {
		a.n.Errorf("%s: %v\n%s", a.node, err, out)
	}
}

// switchStatus is what weft status --json says of a switch, as far as tests look.
type switchStatus struct {
	Switch     string   `json:"switch"`
	Down       []string `json:"down"`
	Neighbours []struct {
		Name  string `json:"neighbour"`
		State string `json:"state"`
		Why   string `json:"why"`
		Hears bool   `json:"hears"`
	} `json:"neighbours"`
	Database []struct {
		Switch string   `json:"switch"`
		Down   []string `json:"down"`
	} `json:"database"`
	Routes struct {
		Last string `json:"last_error"`
	} `json:"routes"`
}

func (a *agent) status() (s switchStatus) {
	a.n.Helper()
	a.n.ask(a.node, &s)
	return s
}

// ask reads a daemon's status socket, as weft status does. Tests ask again and again, and a
// process each time would keep the machine busy.
func (n *network) ask(node string, status any) {
	n.Helper()
	var paths [2]string
	if err := n.lab.Do(n.node(node).ID, func() (err error) {
		if paths[0], err = hostd.StatusSocket(); err != nil {
			return err
		}
		paths[1], err = switchd.StatusSocket()
		return err
	}); err != nil {
		n.Fatal(err)
	}
	var errs []error
	for _, path := range paths {
		out, err := service.AskStatus(n.Context(), path, "weft")
		if err == nil {
			if err := json.Unmarshal(out, status); err != nil {
				n.Fatalf("%s: %v:\n%s", node, err, out)
			}
			return
		}
		errs = append(errs, err)
	}
	n.Fatalf("%s: %v", node, errors.Join(errs...))
}

// adjacent waits until all switches and their neighbours hear each other, no link
// is down, and the routes are as they should be.
func (n *network) adjacent(all []*agent) {
	n.Helper()
	hosts := make(map[string]bool)
	for h := range n.lab.Config.Topology.Hosts() {
		hosts[h.Name] = true
	}
	for _, a := range all {
		n.eventually(a.node+" and its neighbours hear each other, and all is up", func() bool {
			s := a.status()
			for _, b := range s.Neighbours {
				if b.State != "up" || !b.Hears && !hosts[b.Name] {
					return false
				}
			}
			return len(s.Neighbours) > 0 && len(s.Down) == 0 && s.Routes.Last == ""
		})
	}
}

// tells waits until a switch's database says that a switch's link is down.
func (a *agent) tells(of, link string) {
	a.n.Helper()
	a.n.eventually(a.node+" knows of "+of+" that "+link+" is down", func() bool {
		s := a.status()
		if !slices.Contains(s.Down, link) {
			return false
		}
		for _, e := range s.Database {
			if e.Switch == of && slices.Contains(e.Down, link) {
				return true
			}
		}
		return false
	})
}
