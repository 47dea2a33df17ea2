//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "tailscale: needs Linux's network and mount namespaces; this is %s\n", runtime.GOOS)
	os.Exit(1)
}
