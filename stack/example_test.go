package stack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"weft/fabrictest"
	"weft/stack"
)

// pair is two Hosts in different pods of a fabric in memory. In a real fabric each would
// have a device of its own: see Config.Device.
func pair(c stack.Config) (client, server *stack.Host, end func() error) {
	f, err := fabrictest.New("fat-tree:k=4", fabrictest.Config{})
	if err != nil {
		panic(err)
	}
	if client, err = f.Host("h0.0.2", c); err != nil {
		panic(err)
	}
	if server, err = f.Host("h3.1.3", c); err != nil {
		panic(err)
	}
	return client, server, f.Close
}

// A server and a client: the packets of the one connection take all four paths.
func ExampleHost() {
	client, server, end := pair(stack.Config{Policy: "drb"})
	defer end()

	l, err := server.Listen("tcp", ":7")
	if err != nil {
		panic(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.Copy(c, c)
		c.Close()
	}()

	c, err := client.Dial("tcp", net.JoinHostPort(server.Address().String(), "7"))
	if err != nil {
		panic(err)
	}
	c.Write([]byte("by every path"))
	c.(stack.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	fmt.Println(string(answer), err)
	fmt.Println("from", c.LocalAddr().(*net.TCPAddr).IP, "to", c.RemoteAddr())
	// Output:
	// by every path <nil>
	// from 10.0.0.130 to 10.3.1.131:7
}

// HTTP needs a listener on one side and DialContext on the other.
func ExampleHost_DialContext() {
	client, server, end := pair(stack.Config{Policy: "presto"})
	defer end()

	l, err := server.Listen("tcp", ":8080")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s, this is %s", r.UserAgent(), server.Address())
	}))

	over := http.Client{Transport: &http.Transport{DialContext: client.DialContext}}
	request, _ := http.NewRequest("GET", "http://10.3.1.131:8080/", nil)
	request.Header.Set("User-Agent", "example")
	response, err := over.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	fmt.Println(response.Status)
	fmt.Println(string(body))
	// Output:
	// 200 OK
	// hello example, this is 10.3.1.131
}

// Shutdown waits until all that was written has arrived. Close does not.
func ExampleHost_Shutdown() {
	client, server, end := pair(stack.Config{})
	defer end()
	l, err := server.Listen("tcp", ":9")
	if err != nil {
		panic(err)
	}
	received := make(chan int64)
	go func() {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		n, _ := io.Copy(io.Discard, c)
		c.Close()
		received <- n
	}()

	c, err := client.Dial("tcp", "10.3.1.131:9")
	if err != nil {
		panic(err)
	}
	c.Write(make([]byte, 200_000))
	c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = client.Shutdown(ctx)
	fmt.Println(<-received, err)
	_, err = client.Dial("tcp", "10.3.1.131:9")
	fmt.Println(errors.Is(err, net.ErrClosed))
	// Output:
	// 200000 <nil>
	// true
}

// What a connection has done: with ConnPaths also by which switches its packets went.
func ExampleHost_ConnStats() {
	client, server, end := pair(stack.Config{Policy: "drb", ConnPaths: true})
	defer end()
	l, err := server.Listen("tcp", ":5201")
	if err != nil {
		panic(err)
	}
	received := make(chan int64)
	go func() {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		n, _ := io.Copy(io.Discard, c)
		received <- n
	}()

	c, err := client.Dial("tcp", "10.3.1.131:5201")
	if err != nil {
		panic(err)
	}
	c.Write(make([]byte, 1_000_000))
	c.(stack.TCPConn).CloseWrite()
	<-received
	s, err := client.ConnStats(c) // before Close
	if err != nil {
		panic(err)
	}
	c.Close()
	fmt.Println("sent", s.Sent, "bytes by", len(s.Paths), "bouncing switches; measured a round trip:", s.RTT > 0)
	// Output:
	// sent 1000000 bytes by 4 bouncing switches; measured a round trip: true
}
