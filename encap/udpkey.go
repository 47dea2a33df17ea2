package encap

// UDPKey is a key that two peers share. Its ID travels in the datagram, so that a
// receiver knows which of two keys to try during a change of keys.
type UDPKey struct {
	ID     uint8
	Secret [32]byte // uniformly random, not a passphrase
	Cipher UDPCipher
}
