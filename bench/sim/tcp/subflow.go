package tcp

// subflow is what a Sender has more if it is one of several of a connection. Its segments
// are whole, so that the data's last one may be anywhere.
type subflow struct {
	group  *Group
	number int
	asked  int32   // what a segment's growth took last, in bytes
	data   []int64 // of segments from una on: which of the data; by number modulo its length
}

// take has a segment be the next of the data that nobody has sent, and reports whether
// there is one.
func (f *subflow) take(b *scoreboard) bool {
	d, ok := f.group.take(f.number)
	if !ok {
		return false
	}
	if n := int64(len(f.data)); b.next-b.una == n {
		wider := make([]int64, 2*n)
		for i := b.una; i < b.next; i++ {
			wider[i&(2*n-1)] = f.data[i&(n-1)]
		}
		f.data = wider
	}
	f.data[b.next&int64(len(f.data)-1)] = d
	return true
}

// needed returns how many bytes must be acknowledged for the window to grow by a segment,
// and how many of them grown are. Those are a part of a segment, of which a link with
// others changes the size.
func (f *subflow) needed(window, grown int32) (needed, part int32) {
	needed = f.group.needs(window)
	if f.asked > 0 && len(f.group.shares) > 1 {
		grown = int32(int64(grown) * int64(needed) / int64(f.asked))
	}
	f.asked = needed
	return needed, grown
}

// of returns which segment of the data a segment carries that is under way.
func (f *subflow) of(i int64) int64 { return f.data[i&int64(len(f.data)-1)] }

// lendAll has others send what has not been acknowledged.
func (f *subflow) lendAll(b *scoreboard) {
	for i := b.una; i < b.next; i++ {
		if !b.have.has(i) {
			f.group.lend(f.of(i), f.number)
		}
	}
}

// Data returns from where on a subflow's segment at seq is of the connection's data. It
// stands for the mapping that MPTCP's packets carry. ok is false of a segment that has
// been acknowledged, of which the receiver has the data.
func (s *Sender) Data(seq int64) (from int64, ok bool) {
	b, mss := &s.board, int64(s.c.MSS)
	i := seq / mss
	if i < b.una || i >= b.next {
		return 0, false
	}
	return s.sub.of(i) * mss, true
}
