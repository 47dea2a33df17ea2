// Grpc runs gRPC over weft hosts: the server on a listener of the one, the
// client by a dialler of the other. The service is gRPC's own for health checks,
// so that no code needs to be generated. It is a module of its own, so that weft
// does not depend on gRPC.
//
//	weft lab exec h3.1.3 -- grpc -address 10.3.1.131
//	weft lab exec h0.0.2 -- grpc -address 10.0.0.130 -check 10.3.1.131:50051
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	pb "google.golang.org/grpc/health/grpc_health_v1"

	"weft/stack"
	"weft/topology"
	"weft/uplink"
)

func main() {
	log.SetFlags(0)
	spec := flag.String("topology", "fat-tree:k=4", "the fabric")
	address := flag.String("address", "", "the stack's `IP` address: the host's own with 128 added to the last number")
	policy := flag.String("policy", "presto", "how packets are spread over the paths")
	listen := flag.String("listen", ":50051", "`host:port` to serve on")
	target := flag.String("check", "", "check the server at `host:port` instead of serving")
	count := flag.Int("n", 1000, "how many checks")
	flag.Parse()

	host, err := open(*spec, *address, *policy)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *target == "" {
		err = serve(ctx, host, *listen)
	} else {
		start := time.Now()
		if err = check(ctx, host, *target, *count); err == nil {
			log.Printf("%v is serving: %d checks, %v each", *target, *count, (time.Since(start) / time.Duration(*count)).Round(time.Microsecond))
		}
	}
	host.Close()
	if err != nil {
		log.Fatal(err)
	}
}

// serve runs a server until ctx is done.
func serve(ctx context.Context, host *stack.Host, listen string) error {
	l, err := host.Listen("tcp", listen)
	if err != nil {
		return err
	}
	log.Printf("serving on %v", l.Addr())
	s := grpc.NewServer()
	pb.RegisterHealthServer(s, health.NewServer())
	defer context.AfterFunc(ctx, s.GracefulStop)()
	return s.Serve(l)
}

// check asks a server so many times, one after the other on one connection,
// whether it is serving.
func check(ctx context.Context, host *stack.Host, target string, count int) error {
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		return host.DialContext(ctx, "tcp", address)
	}
	// passthrough: the dialler gets the target as it is.
	conn, err := grpc.NewClient("passthrough:///"+target, grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := pb.NewHealthClient(conn)
	for range count {
		r, err := client.Check(ctx, &pb.HealthCheckRequest{})
		if err != nil {
			return err
		}
		if r.Status != pb.HealthCheckResponse_SERVING {
			return fmt.Errorf("%s is %v", target, r.Status)
		}
	}
	return nil
}

func open(spec, address, policy string) (*stack.Host, error) {
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
	return host, nil
}
