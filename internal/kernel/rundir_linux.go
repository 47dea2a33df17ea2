package kernel

import "os"

// RunDir holds a lab's state and lock. A reboot removes it, as it removes the
// namespaces.
const RunDir = "/run/weft"

// IsFile reports whether path still names the open file f.
func IsFile(f *os.File, path string) bool {
	a, err := f.Stat()
	b, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(a, b)
}
