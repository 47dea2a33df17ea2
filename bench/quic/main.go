// Command quic measures quic-go by its default settings over a fabric of four paths: as the
// kernel sends it, by one path, and with weft host at both ends, which sprays its datagrams and
// puts them in order (the key datagrams). It is a module of its own, so that weft does not
// depend on quic-go.
//
//	go run . --rate=50 --time=10s --rounds=3
//
// It needs root and Linux. It builds a fabric of network namespaces, and weft by the go command.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "quic:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rate   float64 // of each path, Mbit/s
	time   time.Duration
	rounds int
}

// result is a line of the output.
type result struct {
	Case    string  `json:"case"`
	Path    float64 `json:"path_mbps"` // the rate of each of the four paths
	Mbps    float64 `json:"mbps"`      // of the stream's bytes
	Percent float64 `json:"percent"`   // of the sum of four paths, headers included
	// Packets that quic-go took for lost, a gigabyte of those it sent, and those of them that
	// arrived all the same.
	Lost  float64 `json:"lost_per_gb"`
	False float64 `json:"false_per_gb"`
}

func run() error {
	var o options
	flag.Float64Var(&o.rate, "rate", 50, "of each of the four paths, Mbit/s")
	flag.DurationVar(&o.time, "time", 10*time.Second, "of each measurement")
	flag.IntVar(&o.rounds, "rounds", 1, "of all cases")
	asJSON := flag.Bool("json", false, "print a line of JSON for each measurement")
	flag.Parse()
	if o.rate <= 0 || o.time < time.Second || o.rounds < 1 {
		return fmt.Errorf("--rate is %v, --time %v, --rounds %d: they must be above 0, at least 1s, at least 1", o.rate, o.time, o.rounds)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	print := func(r result) {
		fmt.Printf("%-12s 4 x %g Mbit/s: %6.1f Mbit/s, %5.1f %% of the paths; %.1f packets a GB taken for lost, %.1f of them falsely\n", r.Case, r.Path, r.Mbps, r.Percent, r.Lost, r.False)
	}
	if *asJSON {
		lines := json.NewEncoder(os.Stdout)
		print = func(r result) { lines.Encode(r) }
	}
	return measure(ctx, o, print)
}
