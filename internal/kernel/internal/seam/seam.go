// Package seam is where kerneltest changes what package kernel does in this process.
// Only these two import it.
package seam

import "sync/atomic"

// OnlyClsact makes this process act as on a kernel without TCX.
var OnlyClsact atomic.Bool

// Forget makes this process forget what programs it has attached. Package kernel sets it.
var Forget func()
