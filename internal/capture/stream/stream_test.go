package stream

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"weft/internal/capture"
	"weft/internal/capture/tap"
)

var start = time.Date(2027, 1, 1, 0, 0, 0, 123456789, time.UTC)

func some() []capture.Record {
	return []capture.Record{
		{At: start, Interface: tap.Sent, Point: capture.PointSent, Out: true, HasPath: true, Path: 3, Bytes: []byte{1, 2, 3}, Length: 70000},
		{At: start.Add(time.Second), Interface: tap.Arrived, Point: capture.PointArrived, Bytes: []byte{}, Length: 0},
		{At: start, Interface: tap.Delivered, Point: capture.PointDelivered, Bytes: []byte{9}, Length: 9, Hold: time.Millisecond, Cause: "timed-out"},
	}
}

func TestNext_roundTrip(t *testing.T) {
	var b []byte
	for i, r := range some() {
		b = Append(b, &r, uint64(i))
	}
	from := bytes.NewReader(b)
	for i, want := range some() {
		got, dropped, err := Next(from)
		if err != nil || dropped != uint64(i) || !got.At.Equal(want.At) {
			t.Fatalf("%d: %+v, %d, %v", i, got, dropped, err)
		}
		got.At = want.At
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v became %+v", want, got)
		}
	}
	if _, _, err := Next(from); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
	if _, _, err := Next(bytes.NewReader(b[:50])); err != io.ErrUnexpectedEOF {
		t.Errorf("half a frame: %v", err)
	}
	b[4] = 2
	if _, _, err := Next(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another version: %v", err)
	}
}

// Whatever comes is a frame that would be written so, or an error.
func FuzzNext(f *testing.F) {
	for _, r := range some() {
		f.Add(Append(nil, &r, 5))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, dropped, err := Next(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, twice, err := Next(bytes.NewReader(Append(nil, &r, dropped)))
		if err != nil || !again.At.Equal(r.At) || twice != dropped || !bytes.Equal(again.Bytes, r.Bytes) || again.Cause != r.Cause {
			t.Errorf("%+v became %+v, %v", r, again, err)
		}
	})
}

// A daemon's packets come to who asks, as long as that one reads; then the tap is off again.
func TestServe(t *testing.T) {
	var tapped tap.Tap
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(Pattern, Serve(&tapped))
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	s.Start()
	defer s.Close()
	c, err := Dial(socket, "h:", 0)
	if err != nil {
		t.Fatal(err)
	}
	for !tapped.On() { // the answer's header may be here before it
		time.Sleep(time.Millisecond)
	}
	for _, r := range some() {
		tapped.Add(r)
	}
	var got []string
	if err := c.Run(func(r *capture.Record) {
		if got = append(got, r.Interface); len(got) == len(some()) {
			c.Stop()
		}
	}); err != nil {
		t.Error(err)
	}
	if want := "h:weft-sent h:weft-arrived h:weft-delivered"; strings.Join(got, " ") != want {
		t.Errorf("came %v, want %s", got, want)
	}
	for tapped.On() { // the server notices that the connection has ended
		time.Sleep(time.Millisecond)
	}
	if _, err := Dial(filepath.Join(t.TempDir(), "none"), "", 0); err == nil {
		t.Error("nobody is asked, and answers")
	}
}
