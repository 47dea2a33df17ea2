package service

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Ordinary users who hold all places, and wait for more, do not keep root from asking.
func TestServeStatus_rootIsAnswered(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be two users")
	}
	dir, err := os.MkdirTemp("", "weft-places") // t.TempDir's parent is root's alone
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "s")
	l, err := ServeStatus(name, nil, func() any { return 1 }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	failed := make(chan error, 1)
	var conns []net.Conn
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := (Account{UID: 65534, GID: 65534}).become(); err != nil {
			failed <- err
			return
		}
		for range maxAsking + maxWaiting/2 {
			c, err := net.Dial("unix", name)
			if err != nil {
				failed <- err
				return
			}
			conns = append(conns, c)
			c.Write([]byte("GET /status HTTP/1.1\r\n")) // and no more
		}
		failed <- nil
	}()
	if err := <-failed; err != nil {
		t.Skipf("as another user: %v", err)
	}
	for _, c := range conns {
		defer c.Close()
	}
	s := l.(*socket)
	for end := time.Now().Add(requestTime / 2); len(s.places.waiting) < maxWaiting/2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Skip("the machine is too slow: the first ones' time is over before the last ones wait")
		}
	}
	if text, err := AskStatus(t.Context(), name, "weft host"); err != nil || string(text) != "1" {
		t.Errorf("%s, %v", text, err)
	}
	if len(s.places.waiting) < maxWaiting/2 {
		t.Skip("the machine is too slow: places have become free before root was answered")
	}
}
