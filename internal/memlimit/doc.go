// Package memlimit has Go's garbage collector know how much memory the control group
// allows (MemoryMax= of a systemd unit). Without, it lets the heap double before it
// collects, and the kernel kills the daemon meanwhile, whatever is garbage. It is for Linux.
package memlimit
