// Httpserver serves a folder over HTTP from a weft host: an address of its
// own in the fabric, its packets on every path that works.
//
//	weft lab exec h3.1.3 -- httpserver -address 10.3.1.131 -dir /srv
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"weft/examples/start"
)

func main() {
	log.SetFlags(0)
	flags := start.NewFlags("")
	dir := flag.String("dir", ".", "the folder to serve")
	bind := flag.String("listen", ":8080", "`host:port` to listen on")
	flag.Parse()

	host, _, err := flags.Host()
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
