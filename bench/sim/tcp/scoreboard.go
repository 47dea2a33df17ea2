package tcp

// scoreboard is a sender's state of its segments (RFC 6675 §4), counted from 0. Those
// below una have been acknowledged, those from next on have never been sent. Of those
// between, the receiver has some beyond a hole (sacked).
//
// Segments are lost in order and sent again in order, so two marks suffice: una <= again
// <= lost <= next. A hole below lost is lost, and a hole below again has been sent once
// more.
type scoreboard struct {
	una, next   int64
	again, lost int64
	sacked      int64 // how many
	missing     int64 // holes that are lost and have yet to be sent again
	top         int64 // above all that are sacked
	have        ring  // sacked ones
}

func (b *scoreboard) reset(window int64) {
	b.have.reset(window)
	*b = scoreboard{have: b.have}
}

// pipe is how many segments are under way as far as the sender knows.
func (b *scoreboard) pipe() int64 { return b.next - b.una - b.sacked - b.missing }

// acknowledge takes all below to from the board, una < to <= next.
func (b *scoreboard) acknowledge(to int64) {
	if b.again < to {
		if b.missing > 0 {
			b.missing -= b.holes(b.again, min(to, b.lost))
		}
		b.again = to
		b.lost = max(b.lost, to)
	}
	if b.sacked > 0 {
		b.sacked -= b.have.count(b.una, to)
		b.have.clear(b.una, to)
	}
	b.una = to
}

// sack notes that the receiver has a range, and that what has thresh sacked
// segments above is lost.
func (b *scoreboard) sack(from, to int64, thresh int) {
	from, to = max(from, b.una), min(to, b.next)
	if from >= to {
		return
	}
	added := b.holes(from, to)
	if added == 0 {
		return
	}
	if b.missing > 0 {
		b.missing -= b.holes(max(from, b.again), min(to, b.lost))
	}
	b.have.set(from, to)
	b.sacked += added
	b.top = max(b.top, to)
	if b.sacked >= int64(thresh) {
		b.lose(b.have.fromTop(b.una, b.top, thresh))
	}
}

// lose gives up the holes below to.
func (b *scoreboard) lose(to int64) {
	if to > b.lost {
		b.missing += b.holes(b.lost, to)
		b.lost = to
	}
}

// loseAll gives up all holes, those that were sent again too (after a timeout).
func (b *scoreboard) loseAll() {
	b.again, b.lost = b.una, b.next
	b.missing = b.next - b.una - b.sacked
}

// resend returns the first lost hole that has yet to be sent again and counts it as
// sent; missing > 0.
func (b *scoreboard) resend() int64 {
	i := b.have.hole(b.again, b.lost)
	b.again = i + 1
	b.missing--
	return i
}

func (b *scoreboard) holes(from, to int64) int64 {
	if from >= to {
		return 0
	}
	return to - from - b.have.count(from, to)
}
