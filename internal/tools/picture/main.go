// Command picture serves the page of weft ui with a fabric of any size in which made-up traffic
// flows, without a lab: the tests look at fabrics for which no machine has the processors.
//
//	go run ./internal/tools/picture --topology fat-tree:k=24 --listen 127.0.0.1:0
//
// It prints the address of the page, and ends with SIGINT or SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"weft/internal/live/ui"
	"weft/topology"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	spec := flag.String("topology", "fat-tree:k=24", "the fabric")
	listen := flag.String("listen", ui.DefaultListen, "address and port of the page")
	flag.Parse()
	if err := run(ctx, *spec, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, spec, listen string) error {
	t, err := topology.Parse(spec)
	if err != nil {
		return err
	}
	l, err := ui.Listen(listen, false)
	if err != nil {
		return err
	}
	s := ui.New(newTraffic(t), ui.Options{})
	fmt.Println(l.URL(""))
	return s.Serve(ctx, l)
}
