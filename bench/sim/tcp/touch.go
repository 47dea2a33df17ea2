package tcp

// Touch reads what Ack and Next will need soon, so that many cache misses overlap. The sum
// has no meaning.
func (s *Sender) Touch() int64 {
	return s.board.una + int64(s.board.have.small[0]) + s.all + s.marks.end + int64(s.deadline) + int64(s.dupAcks)
}

// Touch is Sender.Touch for Data.
func (r *Receiver) Touch() int64 { return r.total + int64(r.have.small[0]) + int64(len(r.have.big)) }
