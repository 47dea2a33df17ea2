package main

import (
	"fmt"
	"log"
	"net"
	"net/http"

	"tailscale.com/tailcfg"
	"tailscale.com/tstest/integration/testcontrol"
	"tailscale.com/types/logger"
	"tailscale.com/types/opt"
)

// serveControl runs the control server of tailscale's own tests until this process ends. Hosts
// get their addresses, 100.64.0.1 and 100.64.0.2, as they come, and may send each other
// anything. There is no relay (DERP): packets go directly or not at all.
func serveControl(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--serve=%s: %w", address, err)
	}
	control := &testcontrol.Server{
		ExplicitBaseURL: "http://" + address,
		DERPMap:         &tailcfg.DERPMap{}, // nil stands for tailscale's own relays
		// Tailnets list their hosts' open ports only if someone asks for that.
		CollectServices: opt.NewBool(false),
		Logf:            logger.Discard,
	}
	go func() { log.Fatalln("control server:", http.Serve(l, control)) }()
	return nil
}
