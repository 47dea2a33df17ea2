//go:build !unix

package keyfile

import "io/fs"

// others is nothing where a mode says nothing of other users.
func others(fs.FileInfo) fs.FileMode { return 0 }
