package uplink_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"

	"weft/stack"
	"weft/topology"
	"weft/topoupdate/listen"
	"weft/uplink"
)

// A client on host h0.0.2 of a fat-tree, whose embedded stack has the host's address with
// 128 added. It needs root, and a fabric, so it is compiled only.
func Example() {
	fabric, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		panic(err)
	}
	address := netip.MustParseAddr("10.0.0.130")
	host, device, err := uplink.NewHost(stack.Config{
		Address: address, Topology: fabric, Policy: "presto",
		Liveness: &stack.Liveness{}, // it finds dead paths by itself
	}, uplink.Options{})
	if err != nil {
		panic(err) // it names what is missing: a capability, a route, IPv4 forwarding
	}
	defer host.Close()                         // and the device
	fmt.Fprintln(os.Stderr, device.Offloads()) // what of the fast way there is, and why not more

	// Where switches run agents, they tell of failures within milliseconds.
	updates, err := listen.Open(listen.Config{
		Interface: device.Interface(), Topology: fabric, Address: address,
		Deliver: func(t *topology.Topology) { _ = host.SetTopology(t) },
	})
	if err != nil {
		panic(err)
	}
	defer updates.Close()

	client := http.Client{Transport: &http.Transport{DialContext: host.DialContext}}
	response, err := client.Get("http://10.3.1.131:8080/file")
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	io.Copy(os.Stdout, response.Body)
}
