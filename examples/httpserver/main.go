// Httpserver serves a folder over HTTP from a weft host: an address of its
// own in the fabric, its packets on every path that works.
//
//	weft lab exec h3.1.3 -- httpserver -address 10.3.1.131 -dir /srv
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"weft/stack"
	"weft/topology"
	"weft/topoupdate/listen"
	"weft/uplink"
)

func main() {
	log.SetFlags(0)
	spec := flag.String("topology", "fat-tree:k=4", "the fabric")
	address := flag.String("address", "", "the stack's `IP` address: the host's own with 128 added to the last number")
	policy := flag.String("policy", "", "how packets are spread over the paths (default drb)")
	dir := flag.String("dir", ".", "the folder to serve")
	bind := flag.String("listen", ":8080", "`host:port` to listen on")
	updates := flag.Bool("updates", true, "hear from the switches what has failed; paths are probed besides")
	flag.Parse()

	host, err := open(*spec, *address, *policy, *updates)
	if err != nil {
		log.Fatal(err)
	}
	l, err := host.Listen("tcp", *bind)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving %s on http://%v", *dir, l.Addr())
	server := http.Server{Handler: http.FileServer(http.Dir(*dir))}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	err = server.Serve(l)
	host.Close()
	if err != http.ErrServerClosed {
		log.Fatal(err)
	}
}

// open starts a stack of its own on this machine, by the fastest way into the
// fabric that there is here. It keeps off paths that fail.
func open(spec, address, policy string, updates bool) (*stack.Host, error) {
	fabric, err := topology.Parse(spec)
	if err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return nil, fmt.Errorf("-address %q: %w; on host h0.0.2 it would be 10.0.0.130", address, err)
	}
	host, device, err := uplink.NewHost(stack.Config{Address: addr, Topology: fabric, Policy: policy, Liveness: &stack.Liveness{}}, uplink.Options{})
	if err != nil {
		return nil, err
	}
	log.Print(device.Offloads())
	if updates { // for as long as the program runs
		_, err = listen.Open(listen.Config{Interface: device.Interface(), Topology: fabric, Address: addr,
			Deliver: func(t *topology.Topology) { _ = host.SetTopology(t) }})
	}
	if err != nil {
		host.Close()
	}
	return host, err
}
