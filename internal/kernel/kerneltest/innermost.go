package kerneltest

// Innermost is the IPv4 header behind those that weft puts before it.
func Innermost(b []byte) []byte {
	if b[0]>>4 == 6 {
		if b[6] != 4 {
			return nil
		}
		return b[40:]
	}
	for i := 0; i < 2 && b[9] == 4 && len(b) >= 40; i++ {
		b = b[20:]
	}
	return b
}
