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
	"os"

	"weft/examples/start"
)

func main() {
	log.SetFlags(0)
	flags := start.NewFlags("")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: httpget -address IP [flags] URL")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := get(flags, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

func get(flags start.Flags, url string) error {
	host, device, err := flags.Host()
	if err != nil {
		return err
	}
	defer host.Close()
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
	log.Printf("%d bytes; sent by bouncing switch: %s; out of order: %d arrived, %d delivered",
		n, sent, s.Resequencer.ArrivedOutOfOrder, s.Resequencer.DeliveredOutOfOrder)
	return err
}
