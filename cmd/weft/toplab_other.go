//go:build !linux

package main

import "weft/internal/live"

func openLabSource(string) (live.Source, error) {
	return nil, absentf("top --lab: needs the network namespaces of Linux; run it there or in a virtual machine")
}
