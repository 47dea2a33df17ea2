// Package kernel holds what weft needs of Linux wherever it configures a node: places
// for its eBPF programs at a device (TCX, and clsact before Linux 6.6), reading and
// writing their maps, netlink listings, network namespaces, kernel settings, the
// settings of a device that weft changes and puts back, and errors that say what is
// missing.
//
// It does not know what a program does, what a node of a fabric is, or which routes
// there are: hosts (internal/hostprog, internal/hostsetup), switches (fabric) and labs
// (lab) build on it, and it imports none of them.
//
// # Why no bpf_link
//
// Programs attach by TCX before those of others, and in a fixed order among themselves. On
// kernels before 6.6 they are clsact filters. They stay when the process has ended, because
// switches must go on decapsulating and hosts must not lose packets. A bpf_link would end
// with the process.
package kernel
