package link

import "errors"

// Receiver is the receiving half of a device with super-segments.
type Receiver interface {
	Read(bufs [][]byte, sizes []int, offset int) (n int, err error)
	ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error)
	half
}

// Sender is the sending half of a device with super-segments.
type Sender interface {
	Write(bufs [][]byte, offset int) (n int, err error)
	WriteSuper(bufs [][]byte, offset int) (n int, err error)
	WriteParts(parts [][]byte) error
	MaxSuper() int
	MTU() int
	half
}

type half interface {
	Offloads() Offloads
	Drops() uint64
	Close() error
}

// Duplex is a device that receives by one device and sends by another. It receives by a
// packet socket at the uplink, which gets super-segments whole, and sends by a TUN, so
// that the kernel routes the packets. It does not use the other halves of the two
// devices; they remain the caller's.
type Duplex struct {
	rx Receiver
	tx Sender
}

// NewDuplex returns a device that receives by rx and sends by tx, and owns both.
func NewDuplex(rx Receiver, tx Sender) *Duplex { return &Duplex{rx: rx, tx: tx} }

// Read implements the package's Read.
func (d *Duplex) Read(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	return d.rx.Read(bufs, sizes, offset)
}

// ReadSuper implements the package's ReadSuper.
func (d *Duplex) ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	return d.rx.ReadSuper(bufs, sizes, offset)
}

// Write implements the package's Write.
func (d *Duplex) Write(bufs [][]byte, offset int) (n int, err error) {
	return d.tx.Write(bufs, offset)
}

// WriteSuper implements the package's WriteSuper.
func (d *Duplex) WriteSuper(bufs [][]byte, offset int) (n int, err error) {
	return d.tx.WriteSuper(bufs, offset)
}

// WriteParts implements the package's WriteParts.
func (d *Duplex) WriteParts(parts [][]byte) error { return d.tx.WriteParts(parts) }

// MTU returns the sender's.
func (d *Duplex) MTU() int { return d.tx.MTU() }

// MaxSuper returns the sender's.
func (d *Duplex) MaxSuper() int { return d.tx.MaxSuper() }

// Drops returns how many packets the two have lost together.
func (d *Duplex) Drops() uint64 { return d.rx.Drops() + d.tx.Drops() }

// Offloads returns the sender's, with the name of the receiver's opener and its
// reason for a fallback added.
func (d *Duplex) Offloads() Offloads {
	in, out := d.rx.Offloads(), d.tx.Offloads()
	out.Opener = in.Opener + " in, " + out.Opener + " out"
	switch {
	case out.Fallback == "":
		out.Fallback = in.Fallback
	case in.Fallback != "":
		out.Fallback = in.Fallback + "; " + out.Fallback
	}
	return out
}

// Close closes both. It may be called more than once.
func (d *Duplex) Close() error { return errors.Join(d.rx.Close(), d.tx.Close()) }
