//go:build !linux

package main

import "weft/internal/live"

func awaitLab(string) (live.Source, error) {
	return nil, absentf("demo --live: needs the network namespaces of Linux; run it there or in a virtual machine")
}
