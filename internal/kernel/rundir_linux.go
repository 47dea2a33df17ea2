package kernel

// RunDir holds the state and the locks of labs and of hosts. It is gone after a reboot,
// as the namespaces are.
const RunDir = "/run/weft"
