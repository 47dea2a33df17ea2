// Httpget fetches a URL over a weft host, its packets on every path.
//
//	weft lab exec h0.0.2 -- httpget -address 10.0.0.130 http://10.3.1.131:8080/file > file
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"os"

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
	updates := flag.Bool("updates", true, "hear from the switches what has failed; paths are probed besides")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: httpget -address IP [flags] URL")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := get(*spec, *address, *policy, *updates, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

func get(spec, address, policy string, updates bool, url string) error {
	fabric, err := topology.Parse(spec)
	if err != nil {
		return err
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("-address %q: %w; on host h0.0.2 it would be 10.0.0.130", address, err)
	}
	host, device, err := uplink.NewHost(stack.Config{Address: addr, Topology: fabric, Policy: policy, Liveness: &stack.Liveness{}}, uplink.Options{})
	if err != nil {
		return err
	}
	defer host.Close()
	if updates {
		heard, err := listen.Open(listen.Config{Interface: device.Interface(), Topology: fabric, Address: addr,
			Deliver: func(t *topology.Topology) { _ = host.SetTopology(t) }})
		if err != nil {
			return err
		}
		defer heard.Close()
	}

	client := http.Client{Transport: &http.Transport{DialContext: host.DialContext}}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	n, err := io.Copy(os.Stdout, response.Body)
	s := host.Stats()
	sent := fmt.Sprint(s.Paths)
	if device.Encapsulates() { // and counts
		u, err := device.Stats()
		if err != nil {
			return err
		}
		sent = fmt.Sprint(u.Bounces)
	}
	log.Printf("%s\n%d bytes; sent by bouncing switch: %s; out of order: %d arrived, %d delivered",
		device.Offloads(), n, sent, s.Resequencer.ArrivedOutOfOrder, s.Resequencer.DeliveredOutOfOrder)
	return err
}
