//go:build !linux

package sim

import "unsafe"

// adviseHugePages does nothing where it is not known how.
func adviseHugePages(unsafe.Pointer) {}
