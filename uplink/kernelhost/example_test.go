package kernelhost_test

import (
	"io"
	"net/http"
	"net/netip"
	"os"

	"weft/stack"
	"weft/topology"
	"weft/uplink"
	"weft/uplink/kernelhost"
)

// A client on host h0.0.2 of a fat-tree, by the kernel's own sockets. It needs root, and a
// fabric, so it is compiled only.
func Example() {
	fabric, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		panic(err)
	}
	host, err := kernelhost.New(stack.Config{
		Address: netip.MustParseAddr("10.0.0.2"), Topology: fabric, Policy: "presto",
		Liveness: &stack.Liveness{}, // it finds dead paths by itself
	}, uplink.Options{})
	if err != nil {
		panic(err) // it names what is missing: a capability, an address, a route
	}
	defer host.Close()

	client := http.Client{Transport: &http.Transport{DialContext: host.DialContext}}
	response, err := client.Get("http://10.3.1.3:8080/file")
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	io.Copy(os.Stdout, response.Body)
}
