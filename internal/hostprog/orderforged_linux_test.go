package hostprog

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/flowcell"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// connect makes a connection from the neighbour to port 80 of the host.
func (o *orderTest) connect(t *testing.T, near string) (there net.Conn, port uint16) {
	t.Helper()
	var l net.Listener
	err := kernel.InNamespace(near, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(orderTo.String(), "80"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var here net.Conn
	err = kernel.InNamespace(o.ns, func() (err error) {
		here, err = net.DialTimeout("tcp", l.Addr().String(), kerneltest.Patience)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close() })
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	return there, here.LocalAddr().(*net.TCPAddr).AddrPort().Port()
}

// flood has the filter see a segment again and again, faster than a budget is renewed.
func (o *orderTest) flood(t *testing.T, s orderSegment, n uint32) {
	t.Helper()
	header := append(make([]byte, 12), 8, 0) // the kernel takes one off
	if _, err := o.order.filter.Run(&ebpf.RunOptions{Data: slices.Concat(header, header, s.bytes()), Repeat: n}); err != nil {
		t.Fatal(err)
	}
}

// The reader gets all packets behind a hole of a flow that has a socket; of those that have none,
// no more than their budget.
func TestOrder_budget(t *testing.T) {
	o := newOrderTest(t)
	const n = 20000
	forged := orderSegment{port: 5000, payload: 100}
	o.arrive(t, forged.bytes())
	forged.seq = 200
	before, began := o.stats(t), time.Now()
	o.flood(t, forged, n)
	// Each processor has a budget of its own, and the kernel may have the program go on elsewhere. The
	// clock that the budget goes by is late where the machine has been.
	most := orderBudget * uint64(time.Since(began)>>24+3) * uint64(ebpf.MustPossibleCPU())
	st := o.stats(t)
	if diverted := st.Diverted - before.Diverted; diverted == 0 || diverted > most || diverted+st.OverBudget != n {
		t.Errorf("of %d packets in %v: %+v", n, time.Since(began), st)
	}
	_, port := o.connect(t, o.near)
	owned := orderSegment{port: port, seq: 1000, payload: 100}
	first := owned
	first.flags = flowcell.FlagSYN
	o.arrive(t, first.bytes()) // from which the flow goes on at 1101, and is known to have a socket
	number, ok := o.order.Find(owned.tuple())
	if !ok {
		t.Fatal("the connection is not known")
	}
	o.order.Return(number, 1101, o.order.Diverted(number))
	owned.seq = 1301
	before = o.stats(t)
	o.flood(t, owned, n)
	if st = o.stats(t); st.Diverted-before.Diverted != n || st.OverBudget != before.OverBudget {
		t.Errorf("of a connection: %+v, before %+v", st, before)
	}
}

// A SYN moves no flow whose connection is alive, but one whose connection has gone.
func TestOrder_forgedSYN(t *testing.T) {
	o := newOrderTest(t)
	there, port := o.connect(t, o.near)
	s := orderSegment{port: port, flags: flowcell.FlagSYN}
	number, ok := o.order.Find(s.tuple())
	if !ok {
		t.Fatal("the connection is not known")
	}
	next := o.order.Next(number) // behind its SYN
	data := orderSegment{port: port, seq: next, payload: 10}
	o.arrive(t, data.bytes())
	next += 10
	for _, far := range []uint32{1 << 10, 1 << 30, 3 << 30} {
		s.seq = next + far
		before := o.stats(t).Strays
		if o.arrive(t, s.bytes()) || o.order.Next(number) != next || o.stats(t).Strays != before+1 {
			t.Errorf("a SYN that is %d ahead: next %d, was %d; %+v", far, o.order.Next(number), next, o.stats(t))
		}
	}
	there.(*net.TCPConn).SetLinger(0)
	there.Close()
	s.seq = next + 1<<10
	if o.arrive(t, s.bytes()) || o.order.Next(number) != s.seq+1 {
		t.Errorf("the SYN of a new connection: next %d, want %d", o.order.Next(number), s.seq+1)
	}
}

// Forged segments at a flow's five-tuple leave it as it is.
func TestOrder_guessedNumbers(t *testing.T) {
	o := newOrderTest(t)
	s := orderSegment{port: 5000, payload: 100}
	for i := range uint32(200) {
		s.seq = i * 100
		if o.arrive(t, s.bytes()) {
			t.Fatalf("segment %d: diverted", i)
		}
		guess := 32<<20 + i%80*50_000_000
		if s.seq += guess; o.arrive(t, s.bytes()) {
			t.Fatalf("a guess %d ahead: diverted", guess)
		}
	}
	if st := o.stats(t); st.Strays != 200 || st.Diverted > 0 {
		t.Errorf("%+v", st)
	}
}
