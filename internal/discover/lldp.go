package discover

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weft/topology/graph"
)

// list is what lldpcli writes as an object if there is one, and as an array if there are
// several.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(b []byte) error {
	var one T
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]T)(l))
	}
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*l = list[T]{one}
	return nil
}

type lldpFile struct {
	LLDP *struct {
		Interface list[map[string]lldpNeighbor] `json:"interface"`
	} `json:"lldp"`
}

type lldpNeighbor struct {
	Chassis map[string]json.RawMessage `json:"chassis"` // by system name; without one id, descr and so on
	Port    struct {
		ID struct {
			Type  string `json:"type"`
			Value string `json:"value"`
		} `json:"id"`
		Descr string `json:"descr"`
	} `json:"port"`
}

// port is the name of a neighbour's interface: an identifier that is a name, or else the
// description.
func (n lldpNeighbor) port() string {
	if n.Port.ID.Type == "ifname" || n.Port.Descr == "" {
		return n.Port.ID.Value
	}
	return n.Port.Descr
}

// LLDP reads what lldpcli -f json show neighbors prints at nodes, by their names. Cables are
// what it says. Tiers are guessed, and so are addresses: those of management where nodes tell
// them.
func LLDP(texts map[string][]byte) (f Found, err error) {
	addresses := make(map[string][]netip.Addr)
	used := make(map[[2]string]int) // ends of links: the places in f.Spec.Links
	node := func(name string) string {
		name, _, _ = strings.Cut(name, ".") // without the domain
		if _, known := addresses[name]; !known {
			addresses[name] = nil
		}
		return name
	}
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		self := node(file)
		var text lldpFile
		if err := json.Unmarshal(texts[file], &text); err != nil {
			return f, fmt.Errorf("lldp: %s: is not JSON as LLDP's; it must be the output of lldpcli -f json show neighbors", file)
		}
		if text.LLDP == nil {
			return f, fmt.Errorf("lldp: %s: no key lldp; it must be the output of lldpcli -f json show neighbors", file)
		}
		for _, entry := range text.LLDP.Interface {
			for _, port := range slices.Sorted(maps.Keys(entry)) {
				peer, told := entry[port].chassis()
				if peer == "" {
					f.guess("that what %s sees at %s, which tells no name, is no part of the fabric", self, port)
					continue
				}
				peer = node(peer)
				for _, a := range told {
					if !slices.Contains(addresses[peer], a) {
						addresses[peer] = append(addresses[peer], a)
					}
				}
				here, there := [2]string{self, port}, [2]string{peer, entry[port].port()}
				at, seen := used[here]
				if !seen {
					at, seen = used[there]
				}
				if ends := [2]string{peer, self}; seen && (f.Spec.Links[at].Ends == ends || f.Spec.Links[at].Ends == [2]string{self, peer}) {
					continue // from its other end
				}
				used[here], used[there] = len(f.Spec.Links), len(f.Spec.Links)
				f.Spec.Links = append(f.Spec.Links, graph.Link{Ends: [2]string{self, peer}, Ports: [2]string{port, there[1]}})
			}
		}
	}
	var managed []string
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		n := graph.Node{Name: name, Tier: unknown, Addresses: addresses[name]}
		if n.Addresses != nil {
			managed = append(managed, name)
		}
		f.Spec.Nodes = append(f.Spec.Nodes, n)
	}
	if len(managed) > 0 {
		f.guess("that %s have their addresses of management in the fabric, too", strings.Join(managed, ", "))
	}
	f.guessTiers()
	f.guessAddresses()
	return f, nil
}

// chassis returns a neighbour's name, "" if it has none, and its addresses of management.
func (n lldpNeighbor) chassis() (name string, told []netip.Addr) {
	for _, key := range slices.Sorted(maps.Keys(n.Chassis)) {
		var c struct {
			ID   json.RawMessage `json:"id"`
			Mgmt list[string]    `json:"mgmt-ip"`
		}
		if json.Unmarshal(n.Chassis[key], &c) != nil || c.ID == nil {
			continue
		}
		for _, text := range c.Mgmt {
			if a, err := netip.ParseAddr(text); err == nil && a.IsGlobalUnicast() {
				told = append(told, a)
			}
		}
		return key, told
	}
	return "", nil
}
