// Package disturb loses, doubles and delays packets that leave by a device, for tests and
// benchmarks: what netem does in kernels that have it. It needs Linux 6.6 and privileges.
package disturb
