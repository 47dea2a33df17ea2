package stack

import (
	"io"
	"sync"
)

// io.Copy prefers ReadFrom and WriteTo to a buffer of its own. Theirs are
// recycled and hold a super-segment, so that a copy allocates nothing and each
// piece becomes packets at once.
//
// Rejected: to have netstack read r, and write to w, itself. It would save a copy
// of the bytes. But netstack reads until its buffer is full, so that what a slow r
// has given would wait; and it holds the connection's lock while it writes, so
// that nothing would be received while w blocks, and a copy from a connection to
// itself would never end.

// copyBuffer is the size of a piece in bytes.
const copyBuffer = 64 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// copyPieces hides from io.CopyBuffer what w and r have besides.
func copyPieces(w io.Writer, r io.Reader) (int64, error) {
	b := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, b[:])
}

// ReadFrom implements io.ReaderFrom. What was read when Write failed is lost.
func (c tcpConn) ReadFrom(r io.Reader) (int64, error) {
	n, err := copyPieces(c, r)
	if err != nil {
		err = c.opError("readfrom", err)
	}
	return n, err
}

// WriteTo implements io.WriterTo. What was received when w failed is lost.
func (c tcpConn) WriteTo(w io.Writer) (int64, error) {
	n, err := copyPieces(w, c)
	if err != nil {
		err = c.opError("writeto", err)
	}
	return n, err
}
