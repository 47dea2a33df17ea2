// Mesh is a service whose instances find each other in a directory: no list of peers, and no
// key that two of them share, is typed anywhere. It needs no privilege. Each instance has a
// TCP/IP stack of its own, and what it sends is encrypted and spread over all paths of a
// network that knows nothing of weft. The one serves a folder by HTTP, the other fetches a
// file from it:
//
//	mesh -directory etcd://10.0.0.9:2379/weft/mesh/demo -name a -listen 192.0.2.1:5740 -address 10.9.0.1 -serve /srv
//	mesh -directory etcd://10.0.0.9:2379/weft/mesh/demo -name b -listen 192.0.2.2:5740 -address 10.9.0.2 -get http://10.9.0.1/file > file
//
// With a directory that others write (file:///…, dns:…) the list has each instance's public
// key, so the private one is kept: -key FILE. The first start makes the file, and weft keygen
// --public FILE prints what belongs into the list. On etcd, -renew 24h has the key replaced.
//
// All of it that is weft's is in join. docs/mesh.md says what a directory is trusted with.
package main

import (
	"context"
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
	"time"

	"weft/encap"
	"weft/link"
	"weft/mesh"
	"weft/mesh/join"
	"weft/mesh/keyfile"
	"weft/mesh/open"
	"weft/stack"
)

// options are what the flags say.
type options struct {
	directory, name string
	listen          netip.AddrPort
	address         netip.Addr
	key             string
	renew           time.Duration
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.directory, "directory", "", "where the instances find each other: "+open.Forms)
	flag.StringVar(&o.name, "name", "", "this instance's name, which no other one has")
	flag.TextVar(&o.listen, "listen", netip.AddrPort{}, "the `IP:port` where this instance receives datagrams, as others reach it")
	flag.TextVar(&o.address, "address", netip.Addr{}, "this instance's `IP` inside the mesh")
	flag.StringVar(&o.key, "key", "", "the `file` of this instance's private key; made if there is none (default: a new key each time)")
	flag.DurationVar(&o.renew, "renew", 0, "after how long the key is replaced (default: never)")
	serve := flag.String("serve", "", "the `folder` to serve")
	get := flag.String("get", "", "the `URL` to fetch")
	flag.Parse()
	if (*serve == "") == (*get == "") {
		fmt.Fprintln(os.Stderr, "usage: mesh -directory NAME -name NAME -listen IP:port -address IP (-serve FOLDER | -get URL)")
		flag.PrintDefaults()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, *serve, *get); err != nil {
		log.Fatal(err)
	}
}

// run takes part in the mesh for as long as it serves or fetches.
func run(ctx context.Context, o options, serve, get string) error {
	host, session, err := enter(o)
	if err != nil {
		return err
	}
	defer host.Close()
	defer session.Close()
	select {
	case <-session.Ready():
	case <-ctx.Done():
		return fmt.Errorf("not in the mesh yet: %s", session.Status().Why)
	}
	if serve != "" {
		return server(ctx, host, serve)
	}
	return client(ctx, host, get)
}

// enter makes the host and has it join.
func enter(o options) (*stack.Host, *join.Session, error) {
	directory, err := open.Directory(o.directory, open.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("-directory: %w", err)
	}
	var keys []mesh.PrivateKey // none: a new one
	var identity mesh.Identity // none: registrations are not signed
	if o.key != "" {
		if keys, err = keyfile.ReadOrMake(o.key); err != nil {
			return nil, nil, fmt.Errorf("-key: %w", err)
		}
		if name, _ := open.Parse(o.directory); name.Registers() { // others know this instance by it
			if identity, err = keyfile.Identity(o.key + ".identity"); err != nil {
				return nil, nil, fmt.Errorf("-key: %w", err)
			}
		}
	}
	underlay, err := link.OpenUDP(link.UDPConfig{Listen: o.listen})
	if err != nil {
		return nil, nil, fmt.Errorf("-listen: %w", err)
	}
	host, err := stack.New(stack.Config{Address: o.address, Policy: "presto",
		Tunnel: &stack.Tunnel{Underlay: underlay, Name: o.name, Room: encap.UDPHiddenOverhead}})
	if err != nil {
		underlay.Close()
		return nil, nil, err
	}
	session, err := join.New(join.Config{Directory: directory, Name: o.name,
		Endpoints: []netip.AddrPort{underlay.LocalAddr()}, Prefixes: []netip.Prefix{netip.PrefixFrom(o.address, o.address.BitLen())},
		Keys: keys, Identity: identity, KeepKeys: o.keep, Cipher: encap.UDPAESGCM, Renew: o.renew, Linger: 10 * time.Minute,
		SetPeers: host.SetPeers, Heard: host.PeerDatagrams})
	if err != nil {
		return nil, nil, errors.Join(err, host.Close())
	}
	return host, session, nil
}

// keep keeps the keys for the next start.
func (o options) keep(keys []mesh.PrivateKey) error {
	if o.key == "" {
		return nil
	}
	return keyfile.Write(o.key, keys)
}

func server(ctx context.Context, host *stack.Host, dir string) error {
	l, err := host.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	log.Printf("serving %s", dir)
	s := http.Server{Handler: http.FileServer(http.Dir(dir))}
	context.AfterFunc(ctx, func() { s.Close() })
	if err := s.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// client fetches. A server whose registration has just come may know this host a moment later
// than this host knows the server: what is lost until then, TCP sends again.
func client(ctx context.Context, host *stack.Host, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	c := http.Client{Transport: &http.Transport{DialContext: host.DialContext}}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	n, err := io.Copy(os.Stdout, response.Body)
	log.Printf("%d bytes; %d paths used", n, len(host.Stats().Paths))
	return err
}
