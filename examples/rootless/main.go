// Rootless runs weft without any privilege, on any system: two processes of
// ordinary users, each with a TCP/IP stack of its own, whose packets travel in
// UDP. A network that knows nothing of weft spreads the source ports over its
// paths (ECMP). The one serves a folder, the other fetches a file from it.
//
//	rootless -listen 192.0.2.1:5740 -peer 192.0.2.2:5740 -serve /srv
//	rootless -listen 192.0.2.2:5740 -peer 192.0.2.1:5740 -get file > file
//
// With -key, 32 bytes in hexadecimal (openssl rand -hex 32) and the same at both
// ends, nobody else's packets are accepted.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"weft/encap"
	"weft/link"
	"weft/stack"
)

// The stacks' own addresses exist in the tunnel only.
var (
	serverAddr = netip.MustParseAddr("192.168.77.1")
	clientAddr = netip.MustParseAddr("192.168.77.2")
)

func main() {
	log.SetFlags(0)
	listen := flag.String("listen", "", "the `IP:port` where this end receives datagrams")
	peer := flag.String("peer", "", "the `IP:port` where the other end does")
	key := flag.String("key", "", "the key of both ends, 64 hexadecimal digits")
	policy := flag.String("policy", "presto", "how packets are spread over the paths")
	serve := flag.String("serve", "", "the `folder` to serve")
	get := flag.String("get", "", "the `file` to fetch")
	flag.Parse()
	if (*serve == "") == (*get == "") {
		fmt.Fprintln(os.Stderr, "usage: rootless -listen IP:port -peer IP:port (-serve FOLDER | -get FILE)")
		flag.PrintDefaults()
		os.Exit(2)
	}
	self, other := end{"client", clientAddr}, end{"server", serverAddr}
	if *serve != "" {
		self, other = other, self
	}
	host, err := open(*listen, *peer, *key, *policy, self, other)
	if err != nil {
		log.Fatal(err)
	}
	if *serve != "" {
		err = server(host, *serve)
	} else {
		err = client(host, *get)
	}
	host.Close()
	if err != nil {
		log.Fatal(err)
	}
}

// end is one end of the tunnel: its name, which a key needs, and its address
// inside.
type end struct {
	name    string
	address netip.Addr
}

func open(listen, peer, key, policy string, self, other end) (*stack.Host, error) {
	here, err := netip.ParseAddrPort(listen)
	if err != nil {
		return nil, fmt.Errorf("-listen %q: %w", listen, err)
	}
	there, err := netip.ParseAddrPort(peer)
	if err != nil {
		return nil, fmt.Errorf("-peer %q: %w", peer, err)
	}
	p := stack.Peer{Name: other.name, Endpoint: there, Prefixes: []netip.Prefix{netip.PrefixFrom(other.address, 32)}}
	if key != "" {
		secret, err := hex.DecodeString(key)
		if err != nil || len(secret) != 32 {
			return nil, errors.New("-key: 64 hexadecimal digits are wanted")
		}
		p.Key = &encap.UDPKey{Secret: [32]byte(secret)}
	}
	underlay, err := link.OpenUDP(link.UDPConfig{Listen: here})
	if err != nil {
		return nil, err
	}
	host, err := stack.New(stack.Config{
		Address: self.address, Policy: policy,
		Tunnel: &stack.Tunnel{Underlay: underlay, Name: self.name, Peers: []stack.Peer{p}},
	})
	if err != nil {
		underlay.Close()
	}
	return host, err
}

func server(host *stack.Host, dir string) error {
	l, err := host.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	log.Printf("serving %s", dir)
	s := http.Server{Handler: http.FileServer(http.Dir(dir))}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { s.Close() })
	if err := s.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func client(host *stack.Host, file string) error {
	c := http.Client{Transport: &http.Transport{DialContext: host.DialContext}}
	response, err := c.Get(fmt.Sprintf("http://%v/%s", serverAddr, file))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", file, response.Status)
	}
	n, err := io.Copy(os.Stdout, response.Body)
	s := host.Stats()
	log.Printf("%d bytes; %d paths used; out of order: %d arrived, %d delivered",
		n, len(s.Paths), s.Resequencer.ArrivedOutOfOrder, s.Resequencer.DeliveredOutOfOrder)
	return err
}
