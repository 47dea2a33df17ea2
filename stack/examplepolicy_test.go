package stack_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"weft/stack"
)

// upload sends 256 KB to a Host and returns by how many paths they went.
func upload(ctx context.Context, client, server *stack.Host) (paths int) {
	l, err := server.Listen("tcp", ":0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	done := make(chan error)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, c)
			c.Close()
		}
		done <- err
	}()
	before := make(map[netip.Addr]uint64)
	for _, p := range client.Stats().Paths {
		before[p.Bounce] = p.Bytes
	}
	c, err := client.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	c.Write(make([]byte, 256<<10))
	c.Close()
	if err := <-done; err != nil {
		panic(err)
	}
	for _, p := range client.Stats().Paths {
		if p.Bytes-before[p.Bounce] > 10_000 { // more than acknowledgements
			paths++
		}
	}
	return paths
}

// A connection has the policy of its context, for life. Others have the Host's.
func ExampleWithPolicy() {
	client, server, end := pair(stack.Config{Policy: "ecmp"})
	defer end()

	ctx := context.Background()
	fmt.Println("ecmp:", upload(ctx, client, server), "path")
	fmt.Println("drb: ", upload(stack.WithPolicy(ctx, "drb"), client, server), "paths")
	_, err := client.DialContext(stack.WithPolicy(ctx, "dbr"), "tcp", "10.3.1.131:80")
	fmt.Println(err != nil)
	// Output:
	// ecmp: 1 path
	// drb:  4 paths
	// true
}

// Destinations have policies of their own: storage in pod 3 is sprayed packet by
// packet, but for one rack that has plain hosts.
func ExampleConfig_policies() {
	client, server, end := pair(stack.Config{
		Policy: "presto",
		Policies: []stack.PrefixPolicy{
			{Prefix: netip.MustParsePrefix("10.3.0.0/16"), Policy: "drb"},
			{Prefix: netip.MustParsePrefix("10.3.1.0/24"), Policy: "ecmp"},
		},
	})
	defer end()
	fmt.Println(server.Address(), "by", upload(context.Background(), client, server), "path")
	// Output:
	// 10.3.1.131 by 1 path
}
