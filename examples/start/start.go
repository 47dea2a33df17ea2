// Package start is what the examples begin with: the flags that say where in a fabric a
// program is, and a stack of its own there.
package start

import (
	"flag"
	"fmt"
	"log"
	"net/netip"

	"weft/stack"
	"weft/topology"
	"weft/topoupdate/listen"
	"weft/uplink"
)

// Flags are the command line's.
type Flags struct {
	topology, address, policy *string
	updates                   *bool
}

// NewFlags registers flags with flag.CommandLine. policy is the default; "" is that of
// stack.Config.
func NewFlags(policy string) Flags {
	return Flags{
		topology: flag.String("topology", "fat-tree:k=4", "the fabric"),
		address:  flag.String("address", "", "the stack's `IP` address: the host's own with 128 added to the last number"),
		policy:   flag.String("policy", policy, "how packets are spread over the paths"+usual(policy)),
		updates:  flag.Bool("updates", true, "hear from the switches what has failed; paths are probed besides"),
	}
}

func usual(policy string) string {
	if policy == "" {
		return " (default auto)"
	}
	return ""
}

// Host starts a stack of its own on this machine, by the fastest way into the fabric that
// there is here. It keeps off paths that fail. Close the Host, which closes the device.
func (f Flags) Host() (*stack.Host, *uplink.Device, error) {
	fabric, err := topology.Parse(*f.topology)
	if err != nil {
		return nil, nil, err
	}
	address, err := netip.ParseAddr(*f.address)
	if err != nil {
		return nil, nil, fmt.Errorf("-address %q: %w; on host h0.0.2 it would be 10.0.0.130", *f.address, err)
	}
	host, device, err := uplink.NewHost(stack.Config{Address: address, Topology: fabric, Policy: *f.policy, Liveness: &stack.Liveness{}}, uplink.Options{})
	if err != nil {
		return nil, nil, err
	}
	log.Print(device.Offloads())
	if *f.updates { // for as long as the program runs
		_, err = listen.Open(listen.Config{Interface: device.Interface(), Topology: fabric, Address: address,
			Deliver: func(t *topology.Topology) { _ = host.SetTopology(t) }})
	}
	if err != nil {
		host.Close()
		return nil, nil, err
	}
	return host, device, nil
}
