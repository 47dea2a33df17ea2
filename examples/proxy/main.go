// Proxy puts a web server behind a weft host: a reverse proxy whose clients come
// in, and whose backend is asked, over every path of the fabric. Neither of
// them need be a weft host.
//
//	weft lab exec h0.0.2 -- proxy -address 10.0.0.130 -backend http://10.2.0.2:80
//	weft lab exec h1.0.2 -- curl http://10.0.0.130:8080/
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
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
	policy := flag.String("policy", "presto", "how packets are spread over the paths")
	bind := flag.String("listen", ":8080", "`host:port` to listen on")
	backend := flag.String("backend", "", "the `URL` of the server that is asked")
	updates := flag.Bool("updates", true, "hear from the switches what has failed; paths are probed besides")
	flag.Parse()

	to, err := url.Parse(*backend)
	if err != nil || to.Host == "" {
		log.Fatalf("-backend %q: an URL such as http://10.2.0.2:80 is wanted", *backend)
	}
	host, err := open(*spec, *address, *policy, *updates)
	if err != nil {
		log.Fatal(err)
	}
	err = serve(host, *bind, to)
	host.Close()
	if err != nil {
		log.Fatal(err)
	}
}

func serve(host *stack.Host, bind string, backend *url.URL) error {
	l, err := host.Listen("tcp", bind)
	if err != nil {
		return err
	}
	log.Printf("http://%v asks %v", l.Addr(), backend)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(backend)
			r.SetXForwarded()
		},
		Transport: &http.Transport{DialContext: host.DialContext, MaxIdleConnsPerHost: 64},
	}
	s := http.Server{Handler: proxy}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { s.Close() })
	if err := s.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
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
