package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestServeStatus_answersAll(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close() // as a crash leaves it
	asked := 0
	l, err := ServeStatus(socket, nil, func() any { asked++; return map[string]int{"asked": asked} }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(socket); err != nil || st.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v", st, err)
	}
	// One who connects and says nothing keeps nobody from asking, and is answered, too.
	idle, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if text, err := io.ReadAll(idle); err != nil || string(text) != "{\"asked\":1}\n" {
		t.Fatalf("%s, %v", text, err)
	}
	for n := 2; n <= 3; n++ {
		text, err := AskStatus(t.Context(), socket, "weft host")
		if want := fmt.Sprintf(`{"asked":%d}`, n); err != nil || string(text) != want {
			t.Fatalf("%s, %v; want %s", text, err, want)
		}
	}
	l.Close()
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	if _, err := AskStatus(t.Context(), socket, "weft host"); err == nil || !strings.Contains(err.Error(), "is weft host running") {
		t.Errorf("closed: %v", err)
	}
}

// What is no socket is not removed, and the error of a directory that may not be
// written names who may not.
func TestServeStatus_refuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := ServeStatus(file, nil, nil, nil); err == nil {
		l.Close()
		t.Error("a file was taken for a socket")
	}
	if b, err := os.ReadFile(file); string(b) != "precious" {
		t.Errorf("the file has %q, %v", b, err)
	}
	if os.Getuid() == 0 {
		return // who may write everywhere
	}
	defer os.Chmod(dir, 0o700)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := ServeStatus(filepath.Join(dir, "s"), nil, nil, nil); err == nil || !strings.Contains(err.Error(), "may not write there") {
		t.Errorf("error %v", err)
	}
}

func TestAskStatus_refusesWhatIsNoStatus(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("220 smtp.example ESMTP"))
			conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := AskStatus(ctx, socket, "weft host"); err == nil || !strings.Contains(err.Error(), "not a status") {
		t.Errorf("error %v", err)
	}
}

// The context bounds the whole of it, not the connecting alone; and one that is refused says so.
func TestAskStatus_givesUp(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.ReadAll(conn) // until the end of what is asked: it is connected
		cancel()
		conn, err = l.Accept()
		if err == nil {
			conn.Close()
		}
	}()
	began := time.Now()
	if _, err := AskStatus(ctx, socket, "weft host"); !errors.Is(err, context.Canceled) || time.Since(began) > askTime/2 {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if _, err := AskStatus(t.Context(), socket, "weft host"); err == nil || !strings.Contains(err.Error(), "ask again") {
		t.Errorf("refused: %v", err)
	}
}

// Where the configuration says nothing, the socket is where it is by default; and off
// is nowhere.
func TestServeStatus_standardAndOff(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := ServeStatus("", func() (string, error) { return socket, nil }, func() any { return 1 }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := AskStatus(t.Context(), socket, "weft host"); err != nil || string(text) != "1" {
		t.Errorf("%s, %v", text, err)
	}
	l.Close()
	broken := errors.New("no directory")
	if _, err := ServeStatus("", func() (string, error) { return "", broken }, nil, nil); err != broken {
		t.Errorf("error %v, want %v", err, broken)
	}
	l, err = ServeStatus(NoStatus, func() (string, error) { t.Error("a path is looked for"); return "", nil }, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestCheckStatusPath(t *testing.T) {
	for n, fine := range map[int]bool{0: true, maxSocketPath: true, maxSocketPath + 1: false} {
		if err := CheckStatusPath(strings.Repeat("x", n)); (err == nil) != fine {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
