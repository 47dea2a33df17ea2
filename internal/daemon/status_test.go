package daemon

import (
	"context"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFields_flattenInOrder(t *testing.T) {
	got, err := Fields([]byte(`{"z":1,"a":{"b":[true,{"c":18446744073709551615}],"d":null},"e":"x y","f":{},"g":1.5}`))
	want := []Field{{"z", "1"}, {"a.b.0", "true"}, {"a.b.1.c", "18446744073709551615"}, {"a.d", "-"}, {"e", "x y"}, {"g", "1.5"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := Fields([]byte(`{"a":`)); err == nil {
		t.Error("no error for half of a text")
	}
}

func TestStatus_overTheSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		answer(l, func() Status { return Status{Mode: ModeGateway, MTU: 1500} })
		close(done)
	}()
	// One who connects and says nothing keeps nobody from asking for long.
	idle, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	for range 2 {
		text, err := AskStatus(t.Context(), socket)
		if err != nil || !strings.Contains(string(text), `"mode":"gateway"`) || !strings.Contains(string(text), `"mtu":1500`) {
			t.Fatalf("%s, %v", text, err)
		}
	}
	l.Close()
	<-done
	if _, err := AskStatus(t.Context(), socket); err == nil || !strings.Contains(err.Error(), "is weft host running") {
		t.Errorf("closed: %v", err)
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
	if _, err := AskStatus(ctx, socket); err == nil || !strings.Contains(err.Error(), "not a status") {
		t.Errorf("error %v", err)
	}
}
