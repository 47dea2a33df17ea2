// Package hostprog holds the eBPF programs of a host and what loads them: the one at the
// uplink's egress that encapsulates what the kernel's own TCP and programs send, by a
// policy (Offload); the one at its ingress that keeps what is for weft from the kernel's
// own protocols while somebody reads it (Steer); and the one at the TUN device that sends
// packets past a process that hangs (Detour).
//
// It knows a host's topology, its policy and the device that it attaches to. It does not
// know the host's addresses, routes and rules (internal/hostsetup), nor switches (fabric).
package hostprog
