package link

import (
	"errors"
	"testing"
)

// fakeHalf is a device that says which of its calls were made.
type fakeHalf struct {
	name     string
	offloads Offloads
	err      error
	calls    *[]string
}

func (f fakeHalf) call(what string) error {
	*f.calls = append(*f.calls, f.name+" "+what)
	return f.err
}

func (f fakeHalf) Read([][]byte, []int, int) (int, error)      { return 1, f.call("Read") }
func (f fakeHalf) ReadSuper([][]byte, []int, int) (int, error) { return 2, f.call("ReadSuper") }
func (f fakeHalf) Write([][]byte, int) (int, error)            { return 3, f.call("Write") }
func (f fakeHalf) WriteSuper([][]byte, int) (int, error)       { return 4, f.call("WriteSuper") }
func (f fakeHalf) WriteParts([][]byte) error                   { return f.call("WriteParts") }
func (f fakeHalf) Close() error                                { return f.call("Close") }
func (f fakeHalf) Offloads() Offloads                          { return f.offloads }
func (fakeHalf) MTU() int                                      { return 1234 }
func (fakeHalf) MaxSuper() int                                 { return 5678 }
func (fakeHalf) Drops() uint64                                 { return 3 }

func TestDuplex_receivesByOneAndSendsByTheOther(t *testing.T) {
	var calls []string
	rxErr, txErr := errors.New("rx"), errors.New("tx")
	d := NewDuplex(
		fakeHalf{name: "rx", err: rxErr, calls: &calls, offloads: Offloads{Opener: "packet", Fallback: "small buffer"}},
		fakeHalf{name: "tx", err: txErr, calls: &calls, offloads: Offloads{Opener: "netlink", TSO4: true, Queues: 2, Fallback: "old kernel"}},
	)
	for _, call := range []struct {
		name string
		do   func() (int, error)
		n    int
		err  error
	}{
		{"rx Read", func() (int, error) { return d.Read(nil, nil, 0) }, 1, rxErr},
		{"rx ReadSuper", func() (int, error) { return d.ReadSuper(nil, nil, 0) }, 2, rxErr},
		{"tx Write", func() (int, error) { return d.Write(nil, 0) }, 3, txErr},
		{"tx WriteSuper", func() (int, error) { return d.WriteSuper(nil, 0) }, 4, txErr},
		{"tx WriteParts", func() (int, error) { return 0, d.WriteParts(nil) }, 0, txErr},
	} {
		calls = nil
		if n, err := call.do(); n != call.n || err != call.err || len(calls) != 1 || calls[0] != call.name {
			t.Errorf("%s: %d, %v, called %v", call.name, n, err, calls)
		}
	}
	calls = nil
	if err := d.Close(); !errors.Is(err, rxErr) || !errors.Is(err, txErr) || len(calls) != 2 {
		t.Errorf("Close: %v, called %v", err, calls)
	}
	if d.MTU() != 1234 || d.MaxSuper() != 5678 || d.Drops() != 6 {
		t.Errorf("MTU %d, MaxSuper %d, %d drops", d.MTU(), d.MaxSuper(), d.Drops())
	}
	if got := d.Offloads().String(); got != "packet in, netlink out: tso4, 2 queues (small buffer; old kernel)" {
		t.Error(got)
	}
}

func TestOffloads_string(t *testing.T) {
	tests := []struct {
		o    Offloads
		want string
	}{
		{Offloads{Opener: "netlink", Checksum: true, TSO4: true, TSO6: true, USO: true, Queues: 4}, "netlink: checksum tso4 tso6 uso, 4 queues"},
		{Offloads{Opener: "packet", Checksum: true, Queues: 1, Refused: 2, Fallback: "why"}, "packet: checksum, 1 queue, 2 super-segments refused (why)"},
		{(&Memory{}).Offloads(), "memory: no offloads, 1 queue"},
	}
	for _, tt := range tests {
		if got := tt.o.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
