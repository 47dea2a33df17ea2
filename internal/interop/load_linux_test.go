package interop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Of each short connection, in bytes.
const (
	requestSize  = 100
	responseSize = 3000
)

// answer is a server for short connections, which it ends first: its own side
// remembers them, and the client's ports are free again.
func answer(args []string) error {
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			request := make([]byte, requestSize)
			if _, err := io.ReadFull(c, request); err != nil {
				return
			}
			response := make([]byte, responseSize)
			for i := range response {
				response[i] = request[i%requestSize]
			}
			c.Write(response)
		}()
	}
}

// load opens so many connections a second for so many seconds, and fails if one
// of them does.
func load(args []string) error {
	to := args[0]
	perSecond, err1 := strconv.Atoi(args[1])
	seconds, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var done, failed atomic.Int64
	var first atomic.Value
	var wg sync.WaitGroup
	room := make(chan struct{}, 1000) // connections at a time
	began := time.Now()
	for i := range perSecond * seconds {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			if err := ask(to, i); err != nil {
				failed.Add(1)
				first.CompareAndSwap(nil, err.Error())
				return
			}
			done.Add(1)
		})
	}
	wg.Wait()
	fmt.Printf("%d connections, %d failed, in %.1f s\n", done.Load(), failed.Load(), time.Since(began).Seconds())
	if failed.Load() > 0 {
		return fmt.Errorf("first: %v", first.Load())
	}
	return nil
}

func ask(to string, i int) error {
	c, err := net.DialTimeout("tcp", to, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	request := make([]byte, requestSize)
	for k := range request {
		request[k] = byte(i >> (k % 4 * 8))
	}
	if _, err := c.Write(request); err != nil {
		return err
	}
	response, err := io.ReadAll(c)
	if err != nil {
		return err
	}
	if len(response) != responseSize {
		return fmt.Errorf("%d bytes, want %d", len(response), responseSize)
	}
	for k := range response {
		if response[k] != request[k%requestSize] {
			return fmt.Errorf("byte %d is another's", k)
		}
	}
	return nil
}
