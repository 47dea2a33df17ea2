package tcp

// Touch reads what Ack and Next will need soon, so that many cache misses overlap. The sum
// has no meaning.
func (s *Sender) Touch() int64 {
	return s.all + s.board.una
}

// Touch is Sender.Touch for Data.
func (r *Receiver) Touch() int64 { return r.next + int64(r.have.small[0]) }
