package tcp

// Touch reads what Ack and Next will need, for who knows that they come soon and
// would rather wait for many cache misses at once. The sum says nothing.
func (s *Sender) Touch() int64 {
	return s.board.una + int64(s.board.have.small[0]) + s.all + s.marks.end + int64(s.deadline) + int64(s.dupAcks)
}

// Touch is Sender's, for Data.
func (r *Receiver) Touch() int64 { return r.total + int64(r.have.small[0]) + int64(len(r.have.big)) }
