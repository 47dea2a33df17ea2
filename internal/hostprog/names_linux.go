package hostprog

import "weft/internal/kernel"

// KeepNames makes the names of others' programs readable for the program that this process
// executes next, which may have fewer privileges. It returns a variable for that one's
// environment. It needs CAP_SYS_ADMIN, CAP_PERFMON, and a kernel that describes its types.
func KeepNames() (variable string, err error) { return kernel.KeepNames() }

// TakeNames takes over what KeepNames has left to this process, if anything.
func TakeNames() { kernel.TakeNames() }
