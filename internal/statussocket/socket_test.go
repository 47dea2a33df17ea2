package statussocket

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestServe_answersAll(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close() // as a crash leaves it
	asked := 0
	l, err := Serve(socket, func() any { asked++; return map[string]int{"asked": asked} })
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(socket); err != nil || st.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v", st, err)
	}
	// One who connects and says nothing keeps nobody from asking for long.
	idle, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	for n := 2; n <= 3; n++ {
		text, err := Ask(t.Context(), socket, "weft host")
		if want := fmt.Sprintf(`{"asked":%d}`, n); err != nil || string(text) != want {
			t.Fatalf("%s, %v; want %s", text, err, want)
		}
	}
	l.Close()
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	if _, err := Ask(t.Context(), socket, "weft host"); err == nil || !strings.Contains(err.Error(), "is weft host running") {
		t.Errorf("closed: %v", err)
	}
}

// What is no socket is not removed, and the error of a directory that may not be
// written names who may not.
func TestServe_refuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := Serve(file, nil); err == nil {
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
	if _, err := Serve(filepath.Join(dir, "s"), nil); err == nil || !strings.Contains(err.Error(), "may not write there") {
		t.Errorf("error %v", err)
	}
}

func TestAsk_refusesWhatIsNoStatus(t *testing.T) {
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
	if _, err := Ask(ctx, socket, "weft host"); err == nil || !strings.Contains(err.Error(), "not a status") {
		t.Errorf("error %v", err)
	}
}
