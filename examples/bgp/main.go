// Bgp is a web server, or a client that fetches the URLs on its standard input, over an
// embedded Host that learns the fabric from the switch which the machine is wired to. Its
// addresses are free ones of the rack that the switch leads to this machine.
//
//	bgp -as 4200000001 -neighbor 192.168.1.1=65101 -address 192.168.1.9,2001:db8:1::9 -serve /srv
//	echo 'http://[2001:db8:1::9]:8080/file' | bgp -as 4200000002 -neighbor 192.168.2.1=65102 -address 192.168.2.9,2001:db8:2::9
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"weft/stack"
	"weft/topoupdate/bgp/learn"
	"weft/topoupdate/bgp/session"
	"weft/uplink"
)

func main() {
	as := flag.Uint("as", 0, "this host's AS `number`")
	neighbor := flag.String("neighbor", "", "the switches, such as `192.168.1.1=65101`, with commas between them")
	address := flag.String("address", "", "the stack's `IP` addresses, IPv4 and IPv6, with a comma between them")
	policy := flag.String("policy", "drb", "how packets are spread over the paths")
	folder := flag.String("serve", "", "`folder` to serve on port 8080")
	flag.Parse()
	host, err := start(uint32(*as), *neighbor, *address, *policy)
	if err != nil {
		log.Fatal(err)
	}
	defer host.Close()
	if *folder != "" {
		err = serve(host, *folder)
	} else {
		err = fetch(host, os.Stdin)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// start starts a Host that follows the switches' news for as long as the program runs.
func start(as uint32, neighbors, addresses, policy string) (*stack.Host, error) {
	c := learn.Config{AS: as, Log: slog.Default()}
	for text := range strings.SplitSeq(neighbors, ",") {
		n, err := session.ParseNeighbor(text)
		if err != nil {
			return nil, err
		}
		c.Neighbors = append(c.Neighbors, n)
	}
	for text := range strings.SplitSeq(addresses, ",") {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("-address: %w", err)
		}
		c.Addresses = append(c.Addresses, a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fabric, err := learn.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	config := stack.Config{Topology: fabric.Topology(), Topology6: fabric.Topology6(), Policy: policy, Liveness: &stack.Liveness{}, Log: slog.Default()}
	for _, a := range c.Addresses {
		if a.Is4() {
			config.Address = a
		} else {
			config.Address6 = a
		}
	}
	host, device, err := uplink.NewHost(config, uplink.Options{})
	if err != nil {
		return nil, err
	}
	log.Print(device.Offloads())
	return host, fabric.Follow(host)
}

func serve(host *stack.Host, folder string) error {
	listener, err := host.Listen("tcp", ":8080") // of both families
	if err != nil {
		return err
	}
	return http.Serve(listener, http.FileServer(http.Dir(folder)))
}

// fetch prints of each URL the length, the hash, and what has been sent by each switch so far.
func fetch(host *stack.Host, urls io.Reader) error {
	client := http.Client{Transport: &http.Transport{DialContext: host.DialContext}}
	for lines := bufio.NewScanner(urls); lines.Scan(); {
		response, err := client.Get(lines.Text())
		if err != nil {
			return err
		}
		hash := sha256.New()
		n, err := io.Copy(hash, response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
		fmt.Printf("%d bytes, SHA-256 %x, sent", n, hash.Sum(nil))
		for _, p := range host.Stats().Paths {
			fmt.Printf(" %v:%d", p.Bounce, p.Packets)
		}
		fmt.Println()
	}
	return nil
}
